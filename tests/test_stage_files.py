"""Files between stages: records come back as they were, from the same reads only."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from cases import listing
from strategies import make_reads, make_seeds

from bellapy.errors import InputError, OutputError
from bellapy.records import DepthProfile, Extensions, KmerMatrix
from bellapy.stage_files import KINDS, fingerprint, load_stage, save_stage

READS = make_reads(["ACGTACGT", "", "ACGNNACGT"])
MATRIX = KmerMatrix(5, 2, np.array([6, 9, 13], np.uint32), np.append(READS.starts, len(READS.codes)), 8, 5)
PROFILE = DepthProfile(
    256, np.arange(4), np.array([1, 0, 7], np.uint32), np.array([2**31, 0, 7], np.uint32),
    np.array([2.5, 0, 3], np.float32), np.array([0, 2, 1], np.uint8),
)  # fmt: skip
SEEDS = make_seeds([0, 1], [2, 2], [1, -1], [3, 4], [5, 6], 5)
EXTENSIONS = Extensions(*(np.array([i, 2**31 - 1 - i], np.int32) for i in range(9)))
RECORDS = {"matrix": MATRIX, "profile": PROFILE, "seeds": SEEDS, "extensions": EXTENSIONS}
META = {"estimate": {"depth": 0.1, "error_rate": None, "given": False, "source": "µ"}, "match": -3}


def save(path, kind: str, reads=READS, **changes) -> str:
    save_stage(str(path), kind, reads, META, **({name: RECORDS[name] for name in KINDS[kind]} | changes))
    return str(path)


def same(one, other) -> bool:
    """Whether two records hold the same, types included."""
    pairs = [(getattr(one, f.name), getattr(other, f.name)) for f in fields(one)]
    return type(one) is type(other) and all(
        type(a) is type(b) and np.array_equal(a, b) and getattr(a, "dtype", 0) == getattr(b, "dtype", 0) for a, b in pairs
    )


@pytest.mark.parametrize("name", ["x.npz", "x", "x.gz"])
@pytest.mark.parametrize("kind", KINDS)
def test_round_trip(tmp_path, kind, name):
    meta, *records = load_stage(save(tmp_path / name, kind), kind, READS)
    assert meta == META
    assert listing(tmp_path) == {name}
    assert len(records) == len(KINDS[kind])
    for record, kept in zip(KINDS[kind], records, strict=True):
        assert same(kept, RECORDS[record])


@pytest.mark.parametrize("kind", KINDS)
def test_round_trip_of_nothing(tmp_path, kind):
    empty = {name: RECORDS[name].take(np.zeros(0, int)) for name in KINDS[kind] if hasattr(RECORDS[name], "take")}
    _, *records = load_stage(save(tmp_path / "x", kind, **empty), kind, READS)
    for name, kept in zip(KINDS[kind], records, strict=True):
        assert same(kept, empty.get(name, RECORDS[name]))


def test_same_arrays_same_file(tmp_path):
    paths = [save(tmp_path / name, "k-mers") for name in "ab"]
    assert Path(paths[0]).read_bytes() == Path(paths[1]).read_bytes()


@pytest.mark.parametrize(
    "other",
    [
        make_reads(["ACGTACGT", "", "ACGNNACGA"]),
        make_reads(["ACGTACGT", "", "ACGNNACG"]),
        make_reads(["ACGTACG", "T", "ACGNNACGT"]),
        make_reads(["ACGTACGT", ""]),
        make_reads(["", "ACGTACGT", "ACGNNACGT"]),
        replace(READS, names=("r0", "r1", "r9")),
    ],
    ids=range(6),
)
def test_other_reads(tmp_path, other):
    with pytest.raises(InputError, match="x: was made from other reads"):
        load_stage(save(tmp_path / "x", "seeds"), "seeds", other)
    assert fingerprint(other) != fingerprint(READS)


def test_other_kind(tmp_path):
    with pytest.raises(InputError, match=r"x: holds k-mers \(format 4\); seeds are needed here"):
        load_stage(save(tmp_path / "x", "k-mers"), "seeds", READS)


def rewrite(path: str, **arrays) -> None:
    """Replace arrays of a stage file; None removes one."""
    with np.load(path) as stored:
        held = dict(stored)
    held |= arrays
    with open(path, "wb") as stream:
        np.savez(stream, **{name: array for name, array in held.items() if array is not None})


@pytest.mark.parametrize(
    ("arrays", "problem"),
    [
        ({"seeds.strand": None}, "seeds.strand"),
        ({"seeds.strand": np.zeros(2, np.int64)}, "expected contiguous int8"),
        ({"header": None}, "header"),
        ({"header": np.frombuffer(b"{", np.uint8)}, "damaged"),
        ({"header": np.array([{}], object)}, "damaged"),
    ],
)
def test_tampered_file(tmp_path, arrays, problem):
    path = save(tmp_path / "x", "seeds")
    rewrite(path, **arrays)
    with pytest.raises(
        InputError, match=f"is not a stage file of bellapy, or damaged.*{'' if problem == 'damaged' else problem}"
    ):
        load_stage(path, "seeds", READS)


def test_later_format(tmp_path):
    path = save(tmp_path / "x", "seeds")
    with np.load(path) as stored:
        header = json.loads(stored["header"].tobytes())
    rewrite(path, header=np.frombuffer(json.dumps({**header, "format": 99}).encode(), np.uint8))
    with pytest.raises(InputError, match=r"holds seeds \(format 99\)"):
        load_stage(path, "seeds", READS)


def test_every_flipped_byte_is_noticed_or_harmless(tmp_path):
    content = Path(save(tmp_path / "x", "seeds")).read_bytes()
    for at in range(0, len(content), 41):
        (tmp_path / "bad").write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        try:
            meta, seeds = load_stage(str(tmp_path / "bad"), "seeds", READS)
        except InputError:
            continue
        assert meta == META and same(seeds, SEEDS), at


def test_nothing_stays_after_an_error(tmp_path):
    with pytest.raises(TypeError):
        save_stage(str(tmp_path / "x"), "seeds", READS, {"not JSON": {1, 2}}, seeds=SEEDS)
    with pytest.raises(OutputError):
        save(tmp_path / "nowhere" / "x", "seeds")
    assert listing(tmp_path) == set()
