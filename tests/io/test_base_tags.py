"""MM and ML of a part of a read: the same bases are modified as in the whole, with the same probabilities."""

from __future__ import annotations

import random

import pysam
import pytest

from bellapy.io.base_tags import clip_base_tags


def segment(bases: str, tags: list[bytes], reverse: bool = False) -> pysam.AlignedSegment:
    header = pysam.AlignmentHeader.from_dict({"SQ": [{"SN": "g", "LN": 9999}]})
    fields = ["r", "16" if reverse else "0", "g", "1", "60", f"{len(bases)}M", "*", "0", "0", bases, "*"]
    return pysam.AlignedSegment.fromstring("\t".join([*fields, *(tag.decode() for tag in tags)]), header)


def made_tags(rng: random.Random, bases: str) -> list[bytes]:
    entries, values = [], []
    for kind in rng.sample(["C+m", "C+h?", "C+hm.", "A+a?", "N+n", "T-g", "C+76792", "G-m?"], rng.randint(1, 4)):
        places = [i for i, base in enumerate(bases) if kind[0] in ("N", base)]
        chosen = sorted(rng.sample(range(len(places)), rng.randint(0, len(places))))
        skips = [b - a - 1 for a, b in zip([-1, *chosen], chosen, strict=False)]
        entries.append(kind + "".join(f",{n}" for n in skips) + ";")
        n_kinds = len(kind[2:].strip("?.")) if kind[2].isalpha() else 1
        values += [rng.randrange(256) for _ in range(n_kinds * len(chosen))]
    tags = [f"MM:Z:{''.join(entries)}", "ML:B:C" + "".join(f",{value}" for value in values), f"MN:i:{len(bases)}", "XX:i:3"]
    return [tag.encode() for tag in tags]


def modified(found: pysam.AlignedSegment, start: int, end: int) -> dict:
    kinds = {}
    for kind, places in found.modified_bases_forward.items():
        kinds[kind] = [(place - start, chance) for place, chance in places if start <= place < end]
    return {kind: sorted(places) for kind, places in kinds.items() if places}


def test_clipped_tags_are_about_the_same_bases():
    """As htslib reads them; that of older versions of pysam cannot read some."""
    pytest.importorskip("pysam", "0.24")
    rng = random.Random(3)
    for _ in range(400):
        bases = "".join(rng.choices("ACGT", k=rng.randint(1, 60)))
        start, end = sorted(rng.sample(range(len(bases) + 1), 2))
        tags = made_tags(rng, bases)
        clipped = clip_base_tags(tags, bases.encode(), start, end)
        assert f"MN:i:{end - start}".encode() in clipped and b"XX:i:3" in clipped and len(clipped) == 4
        expected = modified(segment(bases, tags), start, end)
        assert modified(segment(bases[start:end], clipped), 0, end) == expected
        assert clip_base_tags(tags, bases.lower().encode(), start, end) == clipped


@pytest.mark.parametrize(
    "tags",
    [
        [b"MM:Z:C+m,9;"], [b"MM:Z:C+m,0"], [b"MM:Z:C+m,x;"], [b"MM:Z:C+m,0;", b"ML:B:C,1,2"], [b"MM:Z:C+m,0;", b"ML:B:C,x"],
        [b"MM:Z:?;", b"ML:B:C"], [b"ML:B:C,1"],
    ],
)  # fmt: skip
def test_tags_that_do_not_fit_are_left_out(tags):
    assert clip_base_tags([*tags, b"XX:i:3"], b"ACGTC", 1, 4) == [b"XX:i:3"]


def test_tags_without_probabilities():
    assert clip_base_tags([b"MM:Z:C+m,1;"], b"CACC", 2, 4) == [b"MM:Z:C+m,0;"]
    assert clip_base_tags([b"Mm:Z:C+m,0,1;", b"Ml:B:C,1,2"], b"CACC", 2, 4) == [b"Mm:Z:C+m,1;", b"Ml:B:C,2"]
