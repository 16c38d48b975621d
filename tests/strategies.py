"""What the tests run on: Hypothesis strategies for small cases, seeded generators for large ones.

Sequences are strings; `make_reads` packs them as the program does.
"""

from __future__ import annotations

from dataclasses import fields

import naive
import numpy as np
from hypothesis import strategies as st

from bellapy.compute.resources import Resources
from bellapy.engines.ends import End
from bellapy.engines.extend import extend_anchors
from bellapy.engines.flanks import Flanks
from bellapy.params import Scoring
from bellapy.records import Extensions, KmerMatrix, ReadSet, Seeds
from bellapy.records.kmers import FIRST, REVERSE, places_of


def make_reads(sequences: list[str]) -> ReadSet:
    """The ReadSet of some sequences, named r0, r1, ..."""
    return ReadSet.from_sequences(sequences, [f"r{i}" for i in range(len(sequences))])


def make_seeds(query_id, target_id, strand, query_pos, target_pos, length: int) -> Seeds:
    """Seeds at given places; their other columns, which extension does not look at, are zero."""
    given = {
        "query_id": query_id, "target_id": target_id, "strand": strand, "query_pos": query_pos, "target_pos": target_pos
    }  # fmt: skip
    empty, zeros = Seeds.none(length), np.zeros(len(given["query_id"]))
    columns = {f.name: getattr(empty, f.name).dtype for f in fields(Seeds) if f.name != "length"}
    return Seeds(**{name: np.array(given.get(name, zeros), dtype) for name, dtype in columns.items()}, length=length)


# ---------------------------------------------------------------- entries of a KmerMatrix


def column_bounds(matrix: KmerMatrix) -> np.ndarray:
    """Where the columns begin in the entries, and the end of the last, (n_kmers + 1,) int64."""
    return np.append(np.flatnonzero(matrix.entries & np.uint8(FIRST)), len(matrix.entries))


def locate(matrix: KmerMatrix) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Read, position in it and strand (+1, -1 for reverse) of every entry, (nnz,) int64 each."""
    place = places_of(matrix.entries)
    read_id = np.searchsorted(matrix.starts, place, side="right") - 1
    return read_id, place - matrix.starts[read_id], 1 - 2 * (matrix.entries & np.uint8(REVERSE)).astype(np.int64)


# ---------------------------------------------------------------- engines


def end_of(longest: bool) -> End:
    return End.LONGEST if longest else End.BEST


def on_tables(extend_flanks):
    """A backend's function with plain arguments: codes, flanks, scoring, longest, threads; its result is (n, 3) int64."""

    def extend(codes, flanks, scoring, longest, threads):
        return extend_flanks(codes, flanks, scoring, end_of(longest), Resources(threads)).table

    return extend


def on_ends(trace_flanks):
    """The same of an executor: codes, flanks, ends, scoring, longest, threads."""

    def trace(codes, flanks, ends, scoring, longest, threads):
        return trace_flanks(codes, flanks, ends, scoring, end_of(longest), Resources(threads))

    return trace


def extend_seeds(reads, seeds, steps, *, longest=False, threads=1, device="cpu", progress=None) -> Extensions:
    return extend_anchors(reads, seeds.anchors, steps, end_of(longest), Resources(threads, device, progress=progress))


# ---------------------------------------------------------------- seeded generators


def random_bases(rng: np.random.Generator, length: int) -> str:
    return "".join(rng.choice(list("ACGT"), length)) if length else ""


def mutate(rng: np.random.Generator, sequence: str, error: float) -> str:
    """A copy with substitutions, insertions and deletions, a third of `error` each."""
    letters = np.array(list(sequence), dtype="U2")
    kind, other = rng.random(len(letters)), rng.choice(list("ACGT"), len(letters))
    letters = np.where(kind < error / 3, other, letters)
    letters = np.where((kind >= error / 3) & (kind < 2 * error / 3), np.char.add(letters, other), letters)
    return "".join(letters[~((kind >= 2 * error / 3) & (kind < error))])


def simulate_reads(
    rng: np.random.Generator, n_reads: int = 24, genome: int = 3000, longest: int = 1200, error: float = 0.04
) -> list[str]:
    """Reads of both strands of a genome with repeats, some with N; among them tandem repeats, short and empty reads."""
    text = random_bases(rng, genome)
    text = text[: genome // 2] + text[:300] + "ACGATTCA" * 20 + text[genome // 2 :]
    reads = []
    for _ in range(n_reads):
        length = int(rng.integers(longest // 4, longest))
        start = int(rng.integers(0, max(1, len(text) - length)))
        read = mutate(rng, text[start : start + length], error)
        if rng.random() < 0.3:
            at = int(rng.integers(0, len(read)))
            read = read[:at] + "N" * int(rng.integers(1, 30)) + read[at:]
        reads.append(naive.reverse_complement(read) if rng.random() < 0.5 else read)
    reads[n_reads // 2 : n_reads // 2] = ["", "A", "ACGTACG", "N" * 40, "AT" * 100, "A" * 150]
    return reads


def simulate_flanks(rng: np.random.Generator, n: int, longest: int = 400) -> list[tuple[str, str]]:
    """Pairs of sequences to extend over: noisy copies, unrelated ones, repeats, large indels, N, one base, none."""
    pairs = []
    for i in range(n):
        query = random_bases(rng, int(rng.integers(1, longest)))
        kind = i % 10
        if kind < 5:
            target = mutate(rng, query, (0.0, 0.02, 0.1, 0.2, 0.35)[kind]) + random_bases(rng, int(rng.integers(0, 40)))
        elif kind == 5:
            target = random_bases(rng, int(rng.integers(1, longest)))
        elif kind == 6:
            unit = random_bases(rng, int(rng.integers(1, 7)))
            query, target = (mutate(rng, unit * (len(query) // len(unit) + 1), 0.1) for _ in range(2))
        elif kind == 7:
            at, size = int(rng.integers(0, len(query))), int(rng.integers(1, 60))
            target = query[:at] + random_bases(rng, size) + query[at:]
            query, target = (query, target) if rng.random() < 0.5 else (target, query)
        elif kind == 8:
            query, target = sprinkle(rng, query), sprinkle(rng, mutate(rng, query, 0.05))
        else:
            target = query[: int(rng.integers(0, 3))]
        pairs.append((query, target))
    rng.shuffle(pairs)
    return pairs


def sprinkle(rng: np.random.Generator, sequence: str) -> str:
    """A copy with a few runs of N."""
    for _ in range(int(rng.integers(1, 4))):
        at, size = int(rng.integers(0, len(sequence) + 1)), int(rng.integers(1, 12))
        sequence = sequence[:at] + "N" * size + sequence[at + size :]
    return sequence


def lay_out_flanks(pairs: list[tuple[str, str]], rng: np.random.Generator) -> tuple[np.ndarray, Flanks]:
    """`both_ways` and Flanks for pairs of sequences: each at the end or start of a read, on either strand.

    Other bases stand on the seed's side of every flank, as in a read, and padding beyond its end.
    """
    sequences, places = [], []
    for query, target in pairs:
        query_back, target_back, opposite = rng.random(3) < 0.5
        for flank, back, complement in ((query, query_back, False), (target, target_back, opposite)):
            seed = random_bases(rng, int(rng.integers(0, 50)))
            flank = naive.reverse_complement(flank)[::-1] if complement else flank
            sequences.append(flank[::-1] + seed if back else seed + flank)
            places.append((back, len(seed), len(flank), complement))
    reads = make_reads(sequences)
    at = np.empty(len(places), np.int64)
    for i, (back, seed, length, _) in enumerate(places):
        at[i] = 2 * len(reads.codes) - reads.starts[i] - length if back else reads.starts[i] + seed
    length = np.array([place[2] for place in places], np.int64)
    complement = np.array([place[3] for place in places[1::2]], np.uint8)
    columns = (at[::2], length[::2], at[1::2], length[1::2])
    return reads.both_ways, Flanks(*(np.ascontiguousarray(column) for column in columns), complement)


# ---------------------------------------------------------------- Hypothesis strategies


def texts(letters: str = "ACGT", max_size: int = 60) -> st.SearchStrategy[str]:
    return st.text(letters, max_size=max_size)


@st.composite
def edited(draw, sequence: str, max_edits: int = 12) -> str:
    """A copy of a sequence with some bases replaced, inserted or deleted."""
    letters = list(sequence)
    for _ in range(draw(st.integers(0, min(max_edits, len(letters))))):
        at = draw(st.integers(0, max(0, len(letters) - 1)))
        kind, letter = draw(st.sampled_from("SID")), draw(st.sampled_from("ACGTN"))
        letters[at : at + (kind != "I")] = [] if kind == "D" else [letter]
    return "".join(letters)


@st.composite
def flank_pairs(draw, max_size: int = 80) -> tuple[str, str]:
    """Two sequences to extend over: copies with edits, unrelated ones, tandem repeats, one base, or none."""
    kind = draw(st.sampled_from(("copies", "copies", "noisy", "unrelated", "repeats", "tiny")))
    if kind == "copies":
        query = draw(texts(max_size=max_size))
        return query, draw(edited(query)) + draw(texts(max_size=10))
    if kind == "noisy":
        rng = np.random.default_rng(draw(st.integers(0, 1 << 32)))
        query = random_bases(rng, draw(st.integers(1, max_size)))
        return query, mutate(rng, query, draw(st.sampled_from((0.0, 0.05, 0.15, 0.3, 0.6))))
    if kind == "unrelated":
        return draw(texts("ACGTN", max_size)), draw(texts("ACGTN", max_size))
    if kind == "repeats":
        unit, times = draw(st.text("ACGTN", min_size=1, max_size=5)), max_size // 5
        query = unit * draw(st.integers(1, times))
        return query, draw(edited(unit * draw(st.integers(1, times)), 4))
    return draw(texts("ACGTN", 1)), draw(texts("ACGTN", 3))


def scorings(max_xdrop: int = 300) -> st.SearchStrategy[Scoring]:
    return st.builds(
        Scoring, match=st.integers(1, 5), mismatch=st.integers(-6, -1), gap=st.integers(-6, -1),
        xdrop=st.one_of(st.integers(0, 40), st.integers(0, max_xdrop)),
        tilt=st.one_of(st.just(0), st.integers(0, 60)), fall=st.one_of(st.just(0), st.integers(1, 3000)),
    )  # fmt: skip


@st.composite
def read_sets(draw, max_reads: int = 6) -> list[str]:
    """Small sets of reads: pieces that several reads share, in either direction, between other bases, N and repeats."""
    pool = draw(st.lists(st.text("ACGT", min_size=4, max_size=50), min_size=1, max_size=3))
    piece = st.sampled_from(pool)
    part = st.one_of(
        piece,
        piece.map(naive.reverse_complement),
        piece.flatmap(edited),
        texts("ACGTN", 20),
        texts("acgtn", 8),
        st.integers(1, 40).map(lambda n: "N" * n),
        st.builds(lambda unit, n: unit * n, st.text("ACGT", min_size=1, max_size=4), st.integers(2, 12)),
    )
    read = st.lists(part, max_size=4).map("".join)
    return draw(st.lists(read, min_size=1, max_size=max_reads))


def make_extensions(score, query_start, query_end, target_start, target_end) -> Extensions:
    return Extensions(
        *(np.array(x, np.int32) for x in (score, query_start, query_end, target_start, target_end)),
        *np.zeros((4, len(score)), np.int32),
    )


def change_seeds(seeds: Seeds, **columns) -> Seeds:
    """Seeds with some columns replaced."""
    names = [name for name in Seeds.__dataclass_fields__ if name != "length"]
    kept = {name: getattr(seeds, name) for name in names}
    return Seeds(**{**kept, **{n: np.array(v, kept[n].dtype) for n, v in columns.items()}}, length=seeds.length)
