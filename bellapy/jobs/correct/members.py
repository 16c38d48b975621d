"""Which overlaps stand in the pile of each read, and where their bases come from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bellapy.engines.tags.columns import choose_deep
from bellapy.engines.tags.symbols import Sources, shorten
from bellapy.records import Overlaps, Paths, ReadSet
from bellapy.records.bases import UNKNOWN

BIN = 64  # columns in which depth is counted together

Traced = tuple[np.ndarray, np.ndarray, np.ndarray]  # short runs, their number and the columns of each overlap
Tracer = Callable[[np.ndarray], Iterator[Traced]]
"""Gives the paths of some overlaps, by their rows, in order and perhaps in several parts."""


@dataclass(frozen=True)
class Members:
    """The overlaps in which each read takes part, by template.

    overlap : (n,) int64, row of the overlap.  as_query : (n,) bool, whether the template is its query.
    offsets : (n_reads + 1,) int64; those of read r are overlap[offsets[r] : offsets[r + 1]].
    """

    overlap: np.ndarray
    as_query: np.ndarray
    offsets: np.ndarray

    def of(self, read: int) -> tuple[np.ndarray, np.ndarray]:
        span = slice(self.offsets[read], self.offsets[read + 1])
        return self.overlap[span], self.as_query[span]

    def only(self, wanted: np.ndarray) -> Members:
        """Those of some templates, a mask; the others have none."""
        sizes = np.diff(self.offsets)
        kept = np.repeat(wanted, sizes)
        offsets = np.concatenate(([0], np.cumsum(np.where(wanted, sizes, 0))))
        return Members(self.overlap[kept], self.as_query[kept], offsets)


def find_members(overlaps: Overlaps, n_reads: int) -> Members:
    """Every overlap stands in the piles of both its reads, in the order of the overlaps."""
    n = len(overlaps)
    template = np.concatenate([overlaps.target_id, overlaps.query_id])
    rows = np.concatenate([np.arange(n), np.arange(n)])
    order = np.lexsort((rows, template))
    offsets = np.searchsorted(template[order], np.arange(n_reads + 1))
    return Members(rows[order], order >= n, offsets.astype(np.int64))


def limit_depth(overlaps: Overlaps, members: Members, lengths: np.ndarray, most: int) -> Members:
    """Leave out overlaps where a pile is deeper than `most`, those with the lowest score per base first.

    lengths : (n_reads,) of the reads.
    """
    spans = overlaps.query_end - overlaps.query_start + overlaps.target_end - overlaps.target_start
    rate = overlaps.score / np.maximum(spans, 1)
    kept = np.ones(len(members.overlap), bool)
    for read in np.flatnonzero(np.diff(members.offsets) > most).tolist():
        rows, as_query = members.of(read)
        order = np.argsort(-rate[rows], kind="stable")
        start, end = spans_on_template(overlaps, rows, as_query)
        mine = kept[members.offsets[read] : members.offsets[read + 1]]
        mine[:] = choose_depth(start, end, order, most, int(lengths[read]))
    sizes = np.add.reduceat(np.append(kept, False), members.offsets[:-1]) * (np.diff(members.offsets) > 0)
    return Members(members.overlap[kept], members.as_query[kept], np.concatenate(([0], np.cumsum(sizes))))


def choose_depth(start: np.ndarray, end: np.ndarray, order: np.ndarray, most: int, length: int) -> np.ndarray:
    """Mask of the intervals to keep, chosen in this order, so that about `most` lie in any place."""
    chosen = np.zeros(len(start), bool)
    choose_deep(start, end, order.astype(np.int64), most, BIN, np.zeros(length // BIN + 1, np.int32), chosen)
    return chosen


def deepest(start: np.ndarray, end: np.ndarray) -> int:
    """The most intervals that lie in one bin, as `choose_depth` counts them."""
    n_bins = int(end.max(initial=0)) // BIN + 2
    begun = np.bincount(start // BIN, minlength=n_bins)
    ended = np.bincount((end - 1) // BIN + 1, minlength=n_bins)
    return int(np.cumsum(begun - ended).max(initial=0))


def spans_on_template(overlaps: Overlaps, rows: np.ndarray, as_query: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Start and end of overlaps on their templates, int64."""
    start = np.where(as_query, overlaps.query_start[rows], overlaps.target_start[rows])
    end = np.where(as_query, overlaps.query_end[rows], overlaps.target_end[rows])
    return start.astype(np.int64), end.astype(np.int64)


class TracedPiles(NamedTuple):
    """The piles of some templates, with the paths of their reads.

    templates : (n,) int64, ascending.
    sources : of all piles end to end, see `make_pile`.  offsets : (n + 1,) int64, those of each pile.
    ends : (n_sources,) int64, columns of the template behind each path.  runs : uint8, short runs.
    """

    templates: np.ndarray
    sources: Sources
    offsets: np.ndarray
    ends: np.ndarray
    runs: np.ndarray

    def of(self, first: int, end: int) -> Sources:
        """The sources of templates first .. end - 1 of these."""
        return self.sources.part(slice(self.offsets[first], self.offsets[end]))


def pack(_: Overlaps, paths: Paths) -> Traced:
    """What is kept of paths."""
    runs, offsets = shorten(paths)
    return runs, np.diff(offsets), (paths.n_matches + paths.n_mismatches + paths.n_gap_bases).astype(np.int64)


def trace_piles(
    trace: Tracer, reads: ReadSet, overlaps: Overlaps, members: Members, templates: np.ndarray
) -> TracedPiles:  # fmt: skip
    """Get the paths of the piles of some templates, (n,) int64, ascending."""
    none = np.empty(0, np.int64), np.empty(0, bool)
    rows, as_query = map(np.concatenate, zip(none, *map(members.of, templates.tolist()), strict=True))
    traced, place = np.unique(rows, return_inverse=True)
    parts = list(trace(traced)) or [(np.empty(0, np.uint8), none[0], none[0])]
    runs, sizes, columns = (np.concatenate(column) for column in zip(*parts, strict=True))
    last = np.cumsum(sizes)
    same, (start, end) = overlaps.strand[rows] > 0, spans_on_template(overlaps, rows, as_query)
    other = np.where(as_query, overlaps.target_id[rows], overlaps.query_id[rows])
    first, (its_start, its_end) = reads.starts[other], spans_on_template(overlaps, rows, ~as_query)
    base = np.where(same, first + its_start, 2 * len(reads.codes) - first - its_end)
    sources = Sources(
        base, np.where(same, 0, 3), start, (last - sizes)[place], last[place], columns[place], as_query, as_query & ~same
    )  # fmt: skip
    offsets = np.concatenate(([0], np.cumsum(np.diff(members.offsets)[templates])))
    return TracedPiles(templates, sources, offsets, end, runs)


class Neighbours(NamedTuple):
    """The reads of a pile, in the direction of the template; int64, with an entry for each.

    firsts, lasts : the whole read, indices in `codes`.
    flips : 3 if bases are to be complemented, else 0.  reads : which read it is.
    codes : `ReadSet.both_ways`.
    """

    firsts: np.ndarray
    lasts: np.ndarray
    flips: np.ndarray
    reads: np.ndarray
    codes: np.ndarray

    def only(self, some: np.ndarray) -> Neighbours:
        """Some of them; some : a mask."""
        return Neighbours(self.firsts[some], self.lasts[some], self.flips[some], self.reads[some], self.codes)

    def text(self, row: int, first: int, last: int) -> tuple[np.ndarray, int]:
        """The part of a read between two indices, as far as it reaches, and the index where it begins."""
        first, last = max(first, int(self.firsts[row])), min(last, int(self.lasts[row]))
        codes = self.codes[first : max(first, last)]
        return np.where(codes < UNKNOWN, codes ^ np.uint8(self.flips[row]), codes), first


def neighbours_of(reads: ReadSet, numbers: np.ndarray, same: np.ndarray) -> Neighbours:
    """Some reads, (n,) int64, beside a template; same : (n,) bool, which have its direction."""
    first = reads.starts[numbers]
    last, whole = first + reads.lengths[numbers], 2 * len(reads.codes)
    firsts, lasts = np.where(same, first, whole - last), np.where(same, last, whole - first)
    return Neighbours(firsts, lasts, np.where(same, 0, 3), numbers, reads.both_ways)


def find_neighbours(reads: ReadSet, overlaps: Overlaps, rows: np.ndarray, as_query: np.ndarray) -> Neighbours:
    """The reads of a template's pile."""
    other = np.where(as_query, overlaps.target_id[rows], overlaps.query_id[rows])
    return neighbours_of(reads, other.astype(np.int64), overlaps.strand[rows] > 0)
