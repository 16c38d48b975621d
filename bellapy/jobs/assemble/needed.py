"""Which reads are worth correcting, those that few others contain, and which part of them is used."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bellapy.compute.threads import map_in_order
from bellapy.jobs.assemble.hits import Hits, Kinds, Spans, clip, error_limit, find_spans, sort_kinds, widen
from bellapy.records import Overlaps

CONTAINERS = 6  # of a read that is left out, for each haplotype
OVERHANG, SHARE = 100, 0.9  # of overlaps that say so
MARGIN = 100  # bases at the end of an overlap that are not trusted
AT_ONCE = 1 << 18  # overlaps that are looked at together
FEW_THREADS = 4  # look at so many; each copies them


def usual_errors(overlaps: Overlaps, haplotypes: int = 1) -> float:
    """Share of an overlap's columns without two equal bases, in the median of those within a haplotype, which are the best
    ones; 1: there are no overlaps."""
    if not len(overlaps):
        return 1.0
    return 1 - float(np.quantile(overlaps.n_matches / np.maximum(1, overlaps.n_columns), 1 - 0.5 / haplotypes))


def usual_depth(overlaps: Overlaps, lengths: np.ndarray) -> float:
    """Other reads that lie over a base of a read, in the median of all reads; 0: there are no reads."""
    n = len(lengths)
    query, target = overlaps.query_end - overlaps.query_start, overlaps.target_end - overlaps.target_start
    bases = np.bincount(overlaps.query_id, query, n) + np.bincount(overlaps.target_id, target, n)
    return float(np.median(bases / np.maximum(1, lengths))) if n else 0.0


def used_spans(
    overlaps: Overlaps, lengths: np.ndarray, min_depth: int, tail: int = 0, threads: int = 1
) -> Spans:  # fmt: skip
    """The part of every read that is used, as `find_spans` finds it: without bad ends, and of a chimera its longest part.

    All of a read that has no support, which correction may bring; it has 0 stretches.

    min_depth : other reads that a base of a read needs to be used: one fewer than of corrected reads, as not all overlaps of
        raw reads are found, and what they leave is looked at again.
    tail : bases at ends of reads that need none, as `widen` tells.
    """
    lengths = lengths.astype(np.int64)
    spans = Spans(np.zeros_like(lengths), lengths.copy(), np.zeros_like(lengths))
    n_hits = np.bincount(overlaps.query_id, minlength=len(lengths)) + np.bincount(overlaps.target_id, minlength=len(lengths))
    part = np.cumsum(n_hits) // AT_ONCE

    def look(number: int) -> tuple[np.ndarray, Spans]:
        own = part == number
        hits = Hits.of(overlaps, own[overlaps.query_id] | own[overlaps.target_id])
        its = find_spans(hits, lengths, min_depth, MARGIN)
        if tail:
            its = widen(its, hits, lengths, MARGIN, tail)
        return own & (its.lengths > 0), its

    for own, its in map_in_order(look, np.unique(part).tolist(), min(threads, FEW_THREADS)):
        for column, found in zip(spans, its, strict=True):
            column[own] = found[own]
    return spans


def needed_reads(overlaps: Overlaps, spans: Spans, haplotypes: int, min_overlap: int, threads: int = 1) -> np.ndarray:
    """Mask of the reads that are in fewer than some others, and are as long as an overlap has to be.

    What is left out would be found inside another read after correction, too.  Over every place at least as many reads stay
    as a read that is left out has around it: the longest ones.  Those of one haplotype may be few among them.  So of several
    haplotypes a read is needed, too, that few reads contain whose overlaps have no more errors than the best ones.

    overlaps : in the order of their queries.  spans : the part of every read that is looked at.
    """
    lengths = spans.lengths
    limit = _limit_of_like(overlaps, len(lengths), haplotypes) if haplotypes > 1 else 1.0

    def count(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        hits = clip(Hits.of(overlaps, rows), spans, 1)
        found = _times_inside(hits, lengths)
        return found, _times_inside(hits.take(hits.errors <= limit), lengths) if haplotypes > 1 else found

    n_outside, n_like = np.zeros((2, len(lengths)), np.int64)
    for of_all, of_like in map_in_order(count, _pieces(overlaps.query_id), min(threads, FEW_THREADS)):
        n_outside += of_all
        n_like += of_like
    return ((n_outside < CONTAINERS * haplotypes) | (n_like < CONTAINERS)) & (lengths >= min_overlap)


def _limit_of_like(overlaps: Overlaps, n_reads: int, haplotypes: int) -> float:
    """Errors up to which overlaps are of one haplotype, by the best ones of some reads."""
    some = np.zeros(n_reads, bool)
    some[:: 1 + len(overlaps) // AT_ONCE] = True
    return error_limit(Hits.of(overlaps, some[overlaps.query_id] | some[overlaps.target_id]), haplotypes, some)


def _times_inside(hits: Hits, lengths: np.ndarray) -> np.ndarray:
    """How many others each read is inside, (n_reads,) int64."""
    kinds = sort_kinds(hits, lengths, OVERHANG, SHARE)
    inner = [hits.query[kinds.query_inside], hits.target[kinds.target_inside], *in_circles(hits, kinds, lengths)]
    return np.bincount(np.concatenate(inner), minlength=len(lengths))


def _pieces(query: np.ndarray) -> Iterator[slice]:
    """Rows that are looked at together, all of a query; query : (n,) int32, ascending."""
    begin = 0
    while begin < len(query):
        last = query[min(begin + AT_ONCE, len(query)) - 1]
        end = int(np.searchsorted(query, last, side="right"))
        yield slice(begin, end)
        begin = end


def in_circles(hits: Hits, kinds: Kinds, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Queries and targets, one for each time that another read contains them if this is closed to a circle.

    Reads of one turn of a plasmid begin anywhere.  Two of them overlap twice, each one's end and the other's beginning, and
    both overlaps together cover them from end to end.  Of two that contain each other the shorter one is inside, or that
    with the larger number.

    lengths : of the reads, as they are cut.
    """
    rows = np.flatnonzero(kinds.ends)
    pairs = hits.query[rows] * len(lengths) + hits.target[rows]
    rows = rows[np.argsort(pairs << 2 | hits.turned[rows] << 1 | kinds.forward[rows], kind="stable")]
    one, other = rows[:-1], rows[1:]  # the query's beginning with the target's end, and its end with the target's beginning
    pair = ~kinds.forward[one] & kinds.forward[other] & (hits.turned[one] == hits.turned[other])
    pair &= (hits.query[one] == hits.query[other]) & (hits.target[one] == hits.target[other])
    one, other = one[pair], other[pair]
    query, target = hits.query[one], hits.target[one]
    query_inside = kinds.query_right[one] + kinds.query_left[other] <= lengths[query] + OVERHANG
    target_inside = kinds.target_left[one] + kinds.target_right[other] <= lengths[target] + OVERHANG
    both = query_inside & target_inside
    query_shorter = (lengths[query] < lengths[target]) | ((lengths[query] == lengths[target]) & (query > target))
    return query[query_inside & (~both | query_shorter)], target[target_inside & (~both | ~query_shorter)]
