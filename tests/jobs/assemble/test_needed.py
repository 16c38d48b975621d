"""Which reads are worth correcting, against the definition: reads on a line or a circle, of which all overlaps are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bellapy.jobs.assemble import needed as module
from bellapy.jobs.assemble.needed import CONTAINERS, needed_reads, used_spans, usual_depth, usual_errors
from bellapy.params.assemble import AssembleParams
from bellapy.records import Overlaps

REACH = 500  # bases of the shortest overlap


def overlaps_of(hits: list[tuple[int, ...]]) -> Overlaps:
    """Overlaps of reads, strands, starts and ends; nothing else counts."""
    columns = np.ascontiguousarray(np.array(sorted(hits), np.int32).reshape(-1, 7).T)
    return Overlaps(*columns[:2], np.int8(columns[2]), *columns[3:], *np.zeros((11, len(hits)), np.int32))


def all_hits(reads: list[tuple[int, int]], turned: np.ndarray, circle: int) -> list[tuple[int, ...]]:
    """All overlaps of reads, begin and length each, of a circle of so many bases; 0: a line."""
    hits = []
    for q, (begin, size) in enumerate(reads):
        for t in range(q + 1, len(reads)):
            for turn in (-2, -1, 0, 1, 2) if circle else (0,):
                at = reads[t][0] + turn * circle
                first, last = max(begin, at), min(begin + size, at + reads[t][1])
                if last - first >= REACH:
                    query, target = (first - begin, last - begin), (first - at, last - at)
                    if turned[q]:
                        query = size - query[1], size - query[0]
                    if turned[t]:
                        target = reads[t][1] - target[1], reads[t][1] - target[0]
                    hits.append((q, t, 1 if turned[q] == turned[t] else -1, *query, *target))
    return hits


def needed(overlaps: Overlaps, lengths: np.ndarray, min_depth: int = 1) -> np.ndarray:
    spans = used_spans(overlaps, lengths.astype(np.int32), min_depth)
    return needed_reads(overlaps, spans, 1, 1000)


@pytest.mark.parametrize("circle", [0, 6000])
@pytest.mark.parametrize("at_once", [1 << 18, 50])
def test_reads_that_few_contain_are_needed(circle, at_once, monkeypatch):
    """On a circle a read as long as a turn contains all others, but for overlaps that are too short to be found."""
    monkeypatch.setattr(module, "AT_ONCE", at_once)
    rng = np.random.default_rng(circle)
    sizes = rng.permutation(np.arange(3000, 7500, 150))
    reads = [(int(rng.integers(0, 6000)), int(size)) for size in sizes]
    overlaps = overlaps_of(all_hits(reads, rng.random(len(reads)) < 0.5, circle))

    def contains(one: int, other: int) -> bool:
        off = reads[other][0] - reads[one][0]
        if not circle:
            return 0 <= off and off + reads[other][1] <= reads[one][1]
        inside = any(0 <= off + turn and off + turn + reads[other][1] <= reads[one][1] for turn in (-circle, 0, circle))
        short = (off % circle) + reads[other][1] - circle, reads[one][1] - (off % circle)
        return inside or (reads[one][1] >= circle and min(short) >= REACH)

    n_outside = np.array([
        sum(sizes[one] > sizes[other] and contains(one, other) for one in range(len(reads)))
        for other in range(len(reads))
    ])  # fmt: skip
    mask = needed(overlaps, sizes)
    assert mask.tolist() == (n_outside < CONTAINERS).tolist()
    assert 0 < mask.sum() < len(mask)


@pytest.mark.parametrize("at_once", [1 << 18, 50])
def test_reads_of_a_rare_haplotype_are_needed(at_once, monkeypatch):
    """All of its five reads lie in thirty longer ones of another haplotype, with more errors."""
    monkeypatch.setattr(module, "AT_ONCE", at_once)
    reads = [(10 * i, 9000) for i in range(30)] + [(1000 + 10 * i, 5000) for i in range(5)]
    overlaps = overlaps_of(all_hits(reads, np.zeros(35, bool), 0))
    columns = overlaps.query_end - overlaps.query_start
    apart = np.where((overlaps.query_id < 30) == (overlaps.target_id < 30), 0.002, 0.01)
    overlaps = replace(overlaps, n_matches=np.int32(columns * (1 - apart)), n_columns=columns)
    lengths = np.array([size for _, size in reads])
    spans = used_spans(overlaps, lengths.astype(np.int32), 1)
    assert needed_reads(overlaps, spans, 2, 1000)[30:].all()
    assert not needed_reads(overlaps, spans, 1, 1000)[30:].any()


def test_of_reads_of_one_turn_some_stay():
    rng = np.random.default_rng(1)
    reads = [(int(begin), 5000) for begin in rng.integers(0, 5000, 80)]
    overlaps = overlaps_of(all_hits(reads, rng.random(80) < 0.5, 5000))
    mask = needed(overlaps, np.full(80, 5000), 3)
    assert CONTAINERS <= mask.sum() < 16


def test_a_chimera_is_looked_at_without_its_lesser_part():
    """Its longer part lies in many reads, and no read has the joint."""
    reads = [(100 * i, 9000) for i in range(10)]
    chimera = [(i, 10, 1, 2000 - 100 * i, 7000 - 100 * i, 0, 5000) for i in range(10)]
    overlaps = overlaps_of(all_hits(reads, np.zeros(10, bool), 0) + chimera)
    lengths = np.array([9000] * 10 + [8000])
    assert not needed(overlaps, lengths, 3)[10] and needed(overlaps, lengths, 11)[10]
    spans = used_spans(overlaps, lengths, 3)
    assert (spans.start[10], spans.n_stretches[10]) == (0, 1) and 4500 < spans.end[10] <= 5000


def test_half_of_the_overlaps_have_the_usual_errors():
    overlaps = overlaps_of([(0, 1, 1, 0, 1000, 0, 1000)] * 5)
    matches, columns = np.array([990, 995, 900, 1000, 500], np.int32), np.full(5, 1000, np.int32)
    assert usual_errors(replace(overlaps, n_matches=matches, n_columns=columns)) == pytest.approx(0.01)
    assert usual_errors(replace(overlaps, n_matches=matches, n_columns=columns), 2) == pytest.approx(0.005)
    assert usual_errors(overlaps_of([])) == 1


def test_half_of_the_reads_have_the_usual_depth():
    """Of 40 reads with overlaps of all sizes, by the others over every base."""
    rng = np.random.default_rng(4)
    reads = [
        (int(begin), int(size)) for begin, size in zip(rng.integers(0, 9000, 40), rng.integers(800, 5000, 40), strict=True)
    ]
    hits = all_hits(reads, rng.random(40) < 0.5, 0)
    depth = [np.zeros(size) for _, size in reads]
    for query, target, _, *spans in hits:
        depth[query][slice(*spans[:2])] += 1
        depth[target][slice(*spans[2:])] += 1
    lengths = np.array([size for _, size in reads])
    assert usual_depth(overlaps_of(hits), lengths) == pytest.approx(np.median([one.mean() for one in depth]))
    assert usual_depth(overlaps_of([]), lengths[:0]) == 0


@pytest.mark.parametrize(
    ("errors", "depth", "given", "tail"),
    [(0.01, 30, None, 900), (0.011, 30, None, 0), (0, 0.5, None, 27_000), (0, 30, 3, 0)],
)
def test_bases_without_others_are_used_where_the_next_read_may_end_as_far_away(errors, depth, given, tail):
    assert AssembleParams(min_depth=given).tail_at(errors, depth, 9000) == tail


def test_junk_may_find_support_later():
    assert needed(overlaps_of([]), np.array([3000, 900]), 3).tolist() == [True, False]


@pytest.mark.parametrize("at_once", [1 << 18, 60])
def test_the_longest_stretch_that_enough_others_cover_is_used(at_once, monkeypatch):
    """Against the depth of every base; ends of overlaps do not count, where reads go on."""
    monkeypatch.setattr(module, "AT_ONCE", at_once)
    rng = np.random.default_rng(3)
    lengths = rng.integers(1500, 4000, 30)
    hits = []
    for _ in range(300):
        query, target = sorted(rng.choice(30, 2, replace=False).tolist())
        spans = [sorted(rng.integers(-500, lengths[one] + 500, 2).clip(0, lengths[one]).tolist()) for one in (query, target)]
        if min(end - start for start, end in spans) > 50:
            hits.append((query, target, 1, *spans[0], *spans[1]))
    depth = [np.zeros(n, int) for n in lengths]
    for query, target, _, *spans in hits:
        for read, (start, end) in ((query, spans[:2]), (target, spans[2:])):
            start += 100 if start > 20 else 0
            end -= 100 if lengths[read] - end > 20 else 0
            depth[read][start : max(start, end)] += 1
    spans = used_spans(overlaps_of(hits), lengths.astype(np.int32), 3, threads=2)
    for read, n in enumerate(lengths):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], depth[read] >= 3, [0]]))).reshape(-1, 2)
        sizes = edges[:, 1] - edges[:, 0]
        start, end = edges[sizes.argmax()] if len(edges) else (0, n)
        assert spans.start[read] == (0 if start <= 120 else start)
        assert spans.end[read] == (n if n - end <= 120 else end)
        assert spans.n_stretches[read] == (sizes > 500).sum()


def places_of(hits: list[tuple[int, ...]], lengths: np.ndarray, read: int) -> list[tuple[int, int, bool, bool]]:
    """Start and end of every overlap on a read, and whether both reads go on there."""
    places = []
    for query, target, strand, *spans in hits:
        for own, other, (start, end), there in (
            (query, target, spans[:2], spans[2:]),
            (target, query, spans[2:], spans[:2]),
        ):
            if own == read:
                left, right = (there[0], lengths[other] - there[1])[::strand]
                places.append((start, end, min(start, left) > 20, min(lengths[read] - end, right) > 20))
    return places


@pytest.mark.parametrize("tail", [0, 400])
def test_fewer_others_are_enough_at_ends_where_none_goes_on_differently(tail):
    """Against the depth of every base; half of the ends of overlaps are ends of a read."""
    rng, n_reads = np.random.default_rng(5), 80
    lengths = rng.integers(2000, 5000, n_reads)
    hits = []
    for _ in range(160):
        query, target = sorted(rng.choice(n_reads, 2, replace=False).tolist())
        spans = [
            sorted(rng.integers(-2000, lengths[one] + 2000, 2).clip(0, lengths[one]).tolist()) for one in (query, target)
        ]
        if min(end - start for start, end in spans) > 300:
            hits.append((query, target, rng.choice([-1, 1]), *spans[0], *spans[1]))
    overlaps = overlaps_of(hits)
    plain, wide = used_spans(overlaps, lengths, 2), used_spans(overlaps, lengths, 2, tail)
    n_wider = 0
    for read, n in enumerate(lengths.tolist()):
        places, depth = places_of(hits, lengths, read), np.zeros(n, int)
        for start, end, _, _ in places:
            depth[start + 100 * (start > 20) : max(start, end - 100 * (n - end > 20))] += 1
        used = start, end = plain.start[read], plain.end[read]
        edges = np.flatnonzero(np.diff(np.concatenate([[0], depth > 0, [0]]))).reshape(-1, 2).tolist()
        first, last = max(edges, key=lambda pair: pair[1] - pair[0], default=(n, 0))
        stops = [at for at, _, goes_on, _ in places if goes_on] + [at for _, at, _, goes_on in places if goes_on]
        if tail and (depth > 1).any() and first <= start and end <= last:
            if min(stops, default=n) > start:
                start = 0 if first <= tail else first
            if max(stops, default=0) < end:
                end = n if n - last <= tail else last
        assert (wide.start[read], wide.end[read]) == (start, end)
        n_wider += (start, end) != used
    assert (n_wider > 5) == (tail > 0)


def test_the_end_of_a_chromosome_is_used_a_bad_end_and_half_of_a_chimera_are_not():
    """Ten reads begin one after the other; read 10 has 300 bases more than these, read 11 goes on as they do not."""
    reads = [(300 * i, 9000) for i in range(10)]
    bad = [(i, 10, 1, 3000 - 300 * i, 7000 - 300 * i, 300, 4300) for i in range(10)]
    chimera = [(i, 11, 1, 3000 - 300 * i, 7000 - 300 * i, 0, 4000) for i in range(10)]
    overlaps = overlaps_of(all_hits(reads, np.zeros(10, bool), 0) + bad + chimera)
    lengths = np.array([9000] * 10 + [4300, 8000])
    assert used_spans(overlaps, lengths, 3).start[:3].tolist() == [1000, 700, 400]
    wide = used_spans(overlaps, lengths, 3, 500)
    assert wide.start[:10].tolist() == [0] * 10 and wide.end[9] == 9000
    assert wide.start[10] == 400 and wide.end[11] == 3900
