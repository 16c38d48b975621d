"""Neither the order nor the strand of the reads, nor their names or files, changes what is found."""

from __future__ import annotations

import naive
import numpy as np
import pytest
from cases import run, sample_reads
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import make_reads, read_sets

from bellapy.io import fastx_blocks
from bellapy.io.fastx import GatheredReads, gather_reads, load_reads
from bellapy.io.pieces import Pieces
from bellapy.jobs.overlap import canonical
from bellapy.jobs.overlap.canonical import canonical_reads, given_overlaps, given_reads, hash_taken, sort_rows
from bellapy.records import Overlaps


def text_of(reads, i: int) -> str:
    codes = reads.codes[reads.starts[i] : reads.starts[i] + reads.lengths[i]]
    return "".join("ACGTN"[min(code, 4)] for code in codes)


@given(read_sets(), st.randoms(use_true_random=False), st.integers(1, 3))
def test_the_same_reads_in_any_order_and_on_any_strand(sequences, random, threads):
    other = [naive.reverse_complement(s) if random.random() < 0.5 else s for s in sequences]
    random.shuffle(other)
    sets = [canonical_reads(make_reads(some), threads)[0] for some in (sequences, other)]
    texts = [[text_of(reads, i) for i in range(len(reads))] for reads in sets]
    assert texts[0] == texts[1]


@given(read_sets(), st.integers(1, 3))
def test_there_and_back(sequences, threads):
    reads = make_reads(sequences)
    given_before = [text_of(reads, i) for i in range(len(reads))]
    canonical, order = canonical_reads(reads, threads)
    for i, j in enumerate(order.given):
        its = given_before[j]
        assert text_of(canonical, i) == (naive.reverse_complement(its) if order.flipped[i] else its)
        assert canonical.names[i] == reads.names[j]
    light = given_reads(canonical, order, threads, with_bases=False)
    assert light.names == reads.names and light.lengths.tolist() == reads.lengths.tolist()
    before = canonical.both_ways
    back = given_reads(canonical, order, threads, with_bases=True)
    assert back.both_ways is not before, "GPUs know by the array whether they have the bases"
    assert back.names == reads.names
    np.testing.assert_array_equal(back.codes, reads.codes)
    np.testing.assert_array_equal(back.starts, reads.starts)
    np.testing.assert_array_equal(back.both_ways, reads.both_ways)


def test_overlaps_lie_on_the_reads_as_given(rng):
    """Aligned stretches that are equal stay so, and so do the seeds and the turns of their flanks."""
    shared = [naive.reverse_complement(s) if i % 2 else s for i, s in enumerate(["ACGGTCATTGCA" * 3] * 6)]
    sequences = [s[: 20 + i] for i, s in enumerate(shared)]
    reads = make_reads(sequences)
    canonical, order = canonical_reads(reads)
    q, t = np.triu_indices(6, 1)
    n, lengths = len(q), canonical.lengths
    column = lambda low, high: rng.integers(low, high, n).astype(np.int32)  # noqa: E731
    start, seed = column(0, 4), column(5, 8)
    overlaps = Overlaps(
        q.astype(np.int32), t.astype(np.int32), rng.choice([1, -1], n).astype(np.int8), start, start + 12, start, start + 12,
        *(column(1, 9) for _ in range(4)), seed, seed, np.full(n, 3, np.int32), *(column(0, 9) for _ in range(4)),
    )  # fmt: skip
    found = given_overlaps(overlaps, lengths, order, 3)
    assert (found.query_id < found.target_id).all()
    rows = {(frozenset((order.given[a], order.given[b]))): i for i, (a, b) in enumerate(zip(q, t, strict=True))}
    for i in range(n):
        j = rows[frozenset((int(found.query_id[i]), int(found.target_id[i])))]
        swapped = order.given[q[j]] != found.query_id[i]
        names = ("target", "query") if swapped else ("query", "target")
        flips = [bool(order.flipped[getattr(overlaps, f"{name}_id")[j]]) for name in names]
        assert found.strand[i] == overlaps.strand[j] * (-1) ** sum(flips)
        for name, old, flip in zip(("query", "target"), names, flips, strict=True):
            size = lengths[getattr(overlaps, f"{old}_id")[j]]
            ends = [getattr(overlaps, f"{old}_{end}")[j] for end in ("start", "end")]
            ends = [size - ends[1], size - ends[0]] if flip else ends
            assert [getattr(found, f"{name}_{end}")[i] for end in ("start", "end")] == ends
            at = getattr(overlaps, f"seed_{old}")[j]
            assert getattr(found, f"seed_{name}")[i] == (size - 3 - at if flip else at)
            new_left_is_old_left = flips[0] == (swapped and overlaps.strand[j] < 0)
            for side, other in (("left", "right"), ("right", "left")):
                was = side if new_left_is_old_left else other
                assert getattr(found, f"{side}_{name}")[i] == getattr(overlaps, f"{was}_{old}")[j]
        assert found.score[i] == overlaps.score[j]


@pytest.mark.parametrize("n_reads", [1, 2, 40])
def test_rows_in_order(rng, n_reads):
    """Equal rows stay in order, also where one read has most of them."""
    query, target = (rng.integers(0, n_reads, 500) * rng.integers(0, 2, 500) for _ in range(2))
    query, target, strand = query.astype(np.int32), target.astype(np.int32), rng.choice([1, -1], 500).astype(np.int8)
    for threads in (1, 3):
        np.testing.assert_array_equal(
            sort_rows(query, target, strand, n_reads, threads), np.lexsort((strand, target, query))
        )
    assert not len(sort_rows(query[:0], target[:0], strand[:0], n_reads))


@pytest.fixture(scope="module")
def sample():
    return sample_reads(11, genome=12_000, depth=9, mean=2500, error=0.1)


def overlaps_of(tmp_path, files: list[list[tuple[str, str]]], *options) -> dict:
    """Lines by the names of their reads; the read whose name comes first is the query."""
    paths = [tmp_path / f"reads{i}.fa" for i in range(len(files))]
    for path, records in zip(paths, files, strict=True):
        path.write_text("".join(f">{name}\n{bases}\n" for name, bases in records))
    outcome = run("overlap", *paths, *options)
    assert outcome.code == 0, outcome.err
    lines = {}
    for text in outcome.out.decode().splitlines():
        f = text.split("\t")
        sides = sorted([(f[0], *map(int, f[1:4])), (f[5], *map(int, f[6:9]))])
        key = (sides[0][0], sides[1][0], f[4], sides[0][2])
        assert key not in lines
        lines[key] = (*sides, *f[9:])
    return lines


def turn(lines: dict, flipped: set[str]) -> dict:
    """What overlaps are when some reads are read on the other strand."""
    turned = {}
    for (_, _, strand, _), (*sides, matches, columns, quality, tp, cm, score, dv) in lines.items():
        sides = [(n, size, size - e, size - s) if n in flipped else (n, size, s, e) for n, size, s, e in sides]
        odd = sum(side[0] in flipped for side in sides) % 2
        strand = {"+": "-", "-": "+"}[strand] if odd else strand
        turned[sides[0][0], sides[1][0], strand, sides[0][2]] = (*sides, matches, columns, quality, tp, cm, score, dv)
    return turned


@settings(max_examples=8)
@given(random=st.randoms(use_true_random=False))
def test_order_strand_names_files_and_threads_do_not_matter(tmp_path_factory, sample, random):
    folder = tmp_path_factory.mktemp("reads")
    records = [(f"r{i}", bases) for i, bases in enumerate(sample.sequences)]
    expected = overlaps_of(folder, [records], "-t", 1)
    assert len(expected) > 100
    flipped = {name for name, _ in records if random.random() < 0.5}
    other = [(f"x{name}", naive.reverse_complement(bases) if name in flipped else bases) for name, bases in records]
    random.shuffle(other)
    cut = random.randrange(len(other) + 1)
    found = overlaps_of(folder, [other[:cut], other[cut:]] if 0 < cut < len(other) else [other], "-t", random.choice([1, 2]))
    renamed = {
        (key[0][1:], key[1][1:], *key[2:]): tuple((v[0][1:], *v[1:]) if isinstance(v, tuple) else v for v in line)
        for key, line in found.items()
    }
    assert renamed == turn(expected, flipped)


@pytest.mark.parametrize("threads", [1, 3])
def test_hashes_are_made_while_reads_are_read(tmp_path, monkeypatch, threads):
    monkeypatch.setattr(fastx_blocks, "BLOCK_SIZE", 1000)
    path, rng = tmp_path / "x.fa", np.random.default_rng(5)
    texts = ["".join(rng.choice(list("ACGTN"), n)) for n in rng.integers(0, 500, 60)]
    path.write_text("".join(f">{i}\n{bases}\n" for i, bases in enumerate([*texts, "", "ACGTNN"])))
    wanted, order = canonical_reads(load_reads([path]), threads)
    gathered = gather_reads([path], threads=threads, look=hash_taken)
    assert sum(some.shape[1] for some in gathered.seen) == len(wanted)
    monkeypatch.setattr(canonical, "_hashes_of", None)  # not made again
    got, its_order = canonical_reads(gathered, threads)
    assert got.names == wanted.names and got.codes.tobytes() == wanted.codes.tobytes()
    np.testing.assert_array_equal(its_order.flipped, order.flipped)


@given(read_sets(), st.integers(1, 3), st.randoms(use_true_random=False))
def test_reads_need_not_be_joined_before(sequences, threads, random):
    """Reads as they were gathered, in pieces of any size, are put in order as those of one array are."""
    reads = make_reads(sequences)
    wanted, its_order = canonical_reads(reads, threads)
    pieces, at = Pieces(), 0
    edges = sorted({0, len(reads), *(random.randint(0, len(reads)) for _ in range(3))})
    for edge in edges:
        end = int(reads.starts[edge]) if edge < len(reads) else len(reads.codes)
        pieces.add(reads.codes[at:end].copy())
        at = end
    gathered = GatheredReads(reads.names, pieces, reads.starts.copy(), reads.lengths.copy(), 0.1, {"K": 1})
    got, order = canonical_reads(gathered, threads)
    assert got.names == wanted.names and got.error_rate == 0.1
    for name in ("codes", "starts", "lengths", "both_ways"):
        np.testing.assert_array_equal(getattr(got, name), getattr(wanted, name))
    np.testing.assert_array_equal(order.given, its_order.given)
    np.testing.assert_array_equal(order.flipped, its_order.flipped)
