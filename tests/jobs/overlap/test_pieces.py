"""Two overlaps of the same reads: both pieces of a circle are found, and nothing else gets a second line."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from cases import Line, Sample, parse_paf, run, sample_reads
from strategies import change_seeds, make_extensions, make_reads, make_seeds, mutate, random_bases

from bellapy.jobs.overlap.filter import best_of_candidate, filter_overlaps, further_pieces
from bellapy.jobs.overlap.geometry import SLACK, clear_of, measure_geometry
from bellapy.jobs.overlap.judging import Thresholds
from bellapy.params import ExtensionParams, FilterParams
from bellapy.records import Extensions, Seeds

CIRCLE = 5400
DEEP = ["--upper", "500", "--max-copies", "1000"]  # repeats are not left out


# ---------------------------------------------------------------- the rule, one pair of alignments at a time


def random_pieces(rng: np.random.Generator, lengths: list[int], n: int) -> tuple[Seeds, Extensions]:
    """Two or three alignments of each of n candidates, of random spans, many of which reach the ends of the reads."""
    rows = []
    candidates = {(*sorted(rng.choice(len(lengths), 2, replace=False).tolist()), int(rng.choice([-1, 1]))) for _ in range(n)}
    for query, target, strand in sorted(candidates):
        for rank in range(int(rng.integers(2, 4))):
            spans = []
            for read in (query, target):
                size = int(rng.integers(20, lengths[read] * 2 // 3))
                room = lengths[read] - size
                start = int(rng.choice([0, 0, room, room, min(room, 40), rng.integers(0, room + 1)]))
                spans += [start, start + size]
            rows.append((query, target, strand, rank, int(rng.integers(0, 3000)), *spans))
    query, target, strand, rank, score, *ends = (np.array(column) for column in zip(*rows, strict=True))
    seeds = make_seeds(query, target, strand, ends[0], ends[2], 1)
    return change_seeds(seeds, rank=rank), make_extensions(score, *ends)


def is_clear(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """The definition, for query start and end, target start and end of two alignments."""
    shorter = min(one[1] - one[0], other[1] - other[0])
    shared = [len(range(max(one[i], other[i]), min(one[i + 1], other[i + 1]))) for i in (0, 2)]
    return max(shared) <= SLACK * shorter


def ends_of(extensions: Extensions, i: int) -> tuple[int, ...]:
    return tuple(int(getattr(extensions, f"{side}_{end}")[i]) for side in ("query", "target") for end in ("start", "end"))


def test_clear_of(rng):
    _, extensions = random_pieces(rng, [700, 1500, 4000, 900], 60)
    first, second = rng.integers(0, len(extensions), (2, 2000))
    expected = [is_clear(ends_of(extensions, i), ends_of(extensions, j)) for i, j in zip(first, second, strict=True)]
    assert clear_of(extensions.take(first), extensions.take(second)).tolist() == expected
    assert 0 < sum(expected) < len(expected)


@pytest.mark.parametrize("params", [FilterParams(min_overlap=1), FilterParams(min_overlap=200, max_overhang=50)])
def test_a_second_overlap_stands_beside_a_first_one(rng, params):
    lengths, scoring, thresholds = (
        rng.integers(300, 3000, 60).tolist(),
        ExtensionParams(),
        Thresholds(0.3, 0.3, 0.3, None, 0),
    )
    reads = make_reads(["A" * length for length in lengths])
    seeds, extensions = random_pieces(rng, lengths, 1500)
    geometry = measure_geometry(reads, seeds, extensions)
    passing = (geometry.span >= params.min_overlap) & (extensions.score >= 0.3 * geometry.implied)
    overhang = np.maximum(geometry.left, geometry.right)
    passing &= overhang <= (params.max_overhang or np.inf)
    best, rows, twice = best_of_candidate(seeds, extensions), [], 0
    for i in best[passing[best]].tolist():
        rows.append(i)
        others = [
            j for j in range(max(0, i - 2), min(i + 3, len(seeds)))
            if j != i and all(getattr(seeds, n)[j] == getattr(seeds, n)[i] for n in ("query_id", "target_id", "strand"))
            and is_clear(ends_of(extensions, i), ends_of(extensions, j))
            and overhang[j] <= SLACK * geometry.implied[j]
        ]  # fmt: skip
        if others:
            other = max(others, key=lambda j: (extensions.score[j], -seeds.rank[j]))
            rows += [other] * bool(passing[other])
            twice += bool(passing[other])
    assert twice > 20
    failed = thresholds.failures(extensions.score, seeds.copies, geometry, geometry)
    overlaps, dropped = filter_overlaps(seeds, extensions, geometry, failed, scoring, params)
    for name in ("query_start", "query_end", "target_start", "target_end", "score"):
        assert getattr(overlaps, name).tolist() == getattr(extensions, name)[rows].tolist()
    assert sum(dropped.values()) == (~passing[best]).sum(), "a second overlap that is none is no candidate dropped"


def test_nothing_stands_beside_what_is_dropped(rng):
    reads = make_reads(["A" * 4000] * 2)
    seeds = change_seeds(make_seeds([0, 0], [1, 1], [1, 1], [0, 3000], [3000, 0], 1), rank=[0, 1])
    extensions = make_extensions([900, 800], [0, 3000], [1000, 4000], [3000, 0], [4000, 1000])
    geometry = measure_geometry(reads, seeds, extensions)
    assert further_pieces(seeds, extensions, geometry, np.array([0])).tolist() == [1]
    assert further_pieces(seeds, extensions, geometry, np.array([], np.int64)).tolist() == []


# ---------------------------------------------------------------- whole runs


def overlap(folder, sequences: list[str], *options) -> list[Line]:
    (folder / "reads.fa").write_text("".join(f">r{i}\n{sequence}\n" for i, sequence in enumerate(sequences)))
    outcome = run("overlap", folder / "reads.fa", "-t", 1, *options)
    assert outcome.code == 0, outcome.err
    return parse_paf(outcome.out)


def candidate_of(line: Line) -> tuple[int, int, int]:
    return line.query, line.target, line.strand


def circular_reads(seed: int, depth: int = 130, whole: float = 0.5) -> Sample:
    """Reads with 6 % errors of a circle, so many of them of its full length and the others shorter."""
    rng = np.random.default_rng(seed)
    lengths = np.where(rng.random(depth) < whole, CIRCLE, rng.integers(1500, CIRCLE, depth))
    return sample_reads(seed, CIRCLE, error=0.06, lengths=lengths, circular=True)


def true_pieces(sample: Sample, query: int, target: int) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where two reads share sequence of the circle: intervals on both."""
    found = []
    for turn in (-CIRCLE, 0, CIRCLE):  # the target's round relative to the query's
        start = max(sample.start[query], sample.start[target] + turn)
        end = min(sample.end[query], sample.end[target] + turn)
        if end > start:
            found.append((sample.interval(query, start, end), sample.interval(target, start - turn, end - turn)))
    return found


def shows(line: Line, piece: tuple[tuple[int, int], tuple[int, int]], tolerance: int = 120) -> bool:
    ends = (line.query_start, line.query_end), (line.target_start, line.target_end)
    return bool(np.abs(np.subtract(ends, piece)).max() <= tolerance)


def test_both_pieces_of_a_circle(tmp_path):
    sample = circular_reads(11)
    lines = {}
    for line in overlap(tmp_path, sample.sequences):
        lines.setdefault((line.query, line.target), []).append(line)
    twice = whole = 0
    for pair in combinations(range(len(sample)), 2):
        pieces, found = true_pieces(sample, *pair), lines.get(pair, [])
        long = [piece for piece in pieces if min(end - start for start, end in piece) >= 1100]
        assert all(any(shows(line, piece) for piece in pieces) for line in found), pair
        twice += len(long) == 2
        whole += len(long) == 2 and all(any(shows(line, piece) for line in found) for piece in long)
    assert twice > 1000
    assert whole >= 0.998 * twice, "of many shared k-mers a sample is looked at, which a few second pieces miss"


def test_paths_of_both_pieces(tmp_path):
    """A second piece has a path of its own, between the same ends."""
    sample = circular_reads(12, depth=12, whole=1)
    plain, with_paths = (overlap(tmp_path, sample.sequences, *DEEP, *options) for options in ((), ("--cigar",)))
    assert [line[:9] for line in with_paths] == [line[:9] for line in plain]
    assert len({candidate_of(line) for line in plain}) < len(plain)
    assert all(line.matches > 0.8 * line.columns for line in with_paths)


@pytest.mark.parametrize(
    ("genome", "most"),
    [
        (lambda rng: mutate(rng, random_bases(rng, 171) * 90, 0.02), 0.005),
        (lambda rng: random_bases(rng, 12_000) + "ACCT" * 1500 + random_bases(rng, 12_000), 0),
        (lambda rng: (lambda a, b: a + b + a + b + a)(*(random_bases(rng, 6000) for _ in range(2))), 0),
    ],
    ids=["satellite", "low complexity", "long repeats"],
)
def test_repeats_hardly_give_second_lines(tmp_path, genome, most):
    """Of a satellite alone, any two reads overlap at any multiple of its unit: some at both ends."""
    sample = sample_reads(13, genome(np.random.default_rng(13)), depth=10, error=0.06)
    lines = overlap(tmp_path, sample.sequences, *DEEP)
    n_second = len(lines) - len({candidate_of(line) for line in lines})
    assert lines and n_second <= most * len(lines)
