"""Contigs corrected by the reads that lie on them, window by window: what `polish` does.

A window with its reads is a template with its pile; stretches that hardly any read shows are bridged.  Windows overlap, and
are joined where both left the bases as they were.  Those of a circle go on across its joint.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_entry
from bellapy.compute.runs import PAIR, QUERY_ALONE
from bellapy.compute.threads import map_in_order
from bellapy.engines.tags.support import Support, find_stretches
from bellapy.engines.tags.symbols import Pile, Sources, make_pile
from bellapy.jobs.correct.bridges import Beside, Bridges
from bellapy.jobs.correct.members import choose_depth, neighbours_of
from bellapy.jobs.correct.placements import Placements
from bellapy.jobs.correct.template import Corrected, How, correct_template
from bellapy.jobs.correct.terms import HALF, learn_from, sample
from bellapy.params.correct import CorrectParams
from bellapy.records import ReadSet

WINDOW, MARGIN = 20_000, 1500  # bases of a window, and beside it on either side; the longest bridge lies within two margins
SHORTEST = 200  # columns of a path in a window that is used
DEEPEST = 2  # times the depth that is used in the end are looked at
ENOUGH = 0.0  # of the reads: as few as `least` that show a stretch of a contig keep it, however many others do not
SURE = 12  # bases on either side of a place where windows are joined, which both have as the draft


class Windows(NamedTuple):
    """Windows of contigs, in order; (n,) int64 each.

    low, high : with margins, on the contig; below 0 and past its end on a circle.
    """

    contig: np.ndarray
    low: np.ndarray
    high: np.ndarray


class Piece(NamedTuple):
    """Lines of Placements in windows, by window; shift : bases that are added to their positions."""

    line: np.ndarray
    window: np.ndarray
    shift: np.ndarray


def make_windows(lengths: np.ndarray, circular: np.ndarray) -> Windows:
    """Cut contigs into windows of equal size."""
    rows = []
    for contig, (length, is_circle) in enumerate(zip(lengths.tolist(), circular.tolist(), strict=True)):
        edges = np.linspace(0, length, max(1, round(length / WINDOW)) + 1).astype(np.int64).tolist()
        margin = min(MARGIN, length // 2)
        for a, b in zip(edges[:-1], edges[1:], strict=True):
            low, high = a - margin, b + margin
            rows.append((contig, low, high) if is_circle else (contig, max(0, low), min(length, high)))
    return Windows(*np.array(rows, np.int64).reshape(-1, 3).T)


def find_pieces(placed: Placements, windows: Windows, lengths: np.ndarray, circular: np.ndarray) -> Piece:
    """Which lines lie in which windows; on a circle a line may lie in one twice."""
    apart = 8 * int(lengths.max(initial=1))  # of places on two contigs: lines may lie two turns off
    low, high = windows.contig * apart + windows.low, windows.contig * apart + windows.high
    found = []
    for turn in (-2, -1, 0, 1):
        line = np.flatnonzero(circular[placed.contig] | (turn == 0))
        contig = placed.contig[line]
        shift = turn * lengths[contig]
        first = np.searchsorted(high, contig * apart + placed.start[line] + shift, side="right")
        n = np.maximum(np.searchsorted(low, contig * apart + placed.end[line] + shift) - first, 0)
        step = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
        found.append((np.repeat(first, n) + step, np.repeat(line, n), np.repeat(shift, n)))
    window, line, shift = np.concatenate(found, axis=1)
    order = np.lexsort((shift, line, window))
    return Piece(line[order], window[order], shift[order])


@njit_entry
def _cut(runs, first, last, start, low, high, out, at, found):
    """Cut paths to windows: write the short runs of those parts that begin and end with a pair of bases.

    runs : uint8.  first, last, start, low, high : (n,) int64, of each path its runs, its first column, and the window.
    out : uint8, at : (n,) int64, where the runs go.
    found : (n, 5) int64, bases before the part, its first column, its runs, their columns, and the contig's column behind.
    """
    for i in range(len(first)):
        column, base, columns, n, begun = start[i], 0, 0, at[i], False
        for k in range(first[i], last[i]):
            size, operation = np.int64(runs[k]) >> 2, runs[k] & 3
            a, b = column, column + size
            if operation == QUERY_ALONE:
                a, b = 0, size if column < high[i] else 0
            else:
                column += size
                a, b = max(a, low[i]), min(b, high[i])
            if operation == PAIR and not begun and a < b:
                begun = True
                found[i, 0], found[i, 1] = base + size - (column - a), a
            if begun and a < b:
                out[n] = np.uint8((b - a) << 2 | operation)
                n, columns = n + 1, columns + b - a
                if operation == PAIR:
                    found[i, 2], found[i, 3], found[i, 4] = n - at[i], columns, b
            if operation == PAIR or operation == QUERY_ALONE:
                base += size
            if column >= high[i]:
                break


class Piles:
    """The piles of windows.

    reads : those that `placed` tells of.  contigs : their codes.  most : reads in any place that are used.
    """

    def __init__(self, reads: ReadSet, contigs: list[np.ndarray], circular: np.ndarray, placed: Placements, most: int):
        self.contigs, self._reads, self._placed, self._most = contigs, reads, placed, most
        lengths = np.array([len(codes) for codes in contigs], np.int64)
        self.windows = make_windows(lengths, circular)
        self._pieces = find_pieces(placed, self.windows, lengths, circular)
        self._first = np.searchsorted(self._pieces.window, np.arange(len(self.windows.low) + 1))

    def codes(self, window: int) -> np.ndarray:
        """The bases of a window."""
        low, high = self.windows.low[window], self.windows.high[window]
        return np.take(self.contigs[self.windows.contig[window]], np.arange(low, high), mode="wrap")

    def beside(self, window: int) -> tuple[Beside, np.ndarray]:
        """The reads in a window, those that fit best first where it is deep; (n,) int64, columns of it behind the paths."""
        low, high = int(self.windows.low[window]), int(self.windows.high[window])
        some = slice(self._first[window], self._first[window + 1])
        line, shift, placed = self._pieces.line[some], self._pieces.shift[some], self._placed
        start = np.maximum(placed.start[line] + shift, low) - low
        end = np.minimum(placed.end[line] + shift, high) - low
        order = np.lexsort((line, placed.errors[line], placed.unsure[line], end - start < SHORTEST))
        order = order[: int((end - start >= SHORTEST).sum())]
        kept = choose_depth(start, end, order, self._most, high - low)
        line, start = line[kept], placed.start[line[kept]] + shift[kept]
        first, last = placed.first[line], placed.last[line]
        at = np.cumsum(last - first) - (last - first)
        runs, found = np.empty(int((last - first).sum()), np.uint8), np.zeros((len(line), 5), np.int64)
        window_low, window_high = np.full(len(line), low), np.full(len(line), high)
        _cut(placed.runs, first, last, start, window_low, window_high, runs, at, found)
        used = found[:, 2] > 0
        before, columns, n = found[used, 0], found[used, 3], int(used.sum())
        sources = Sources(
            placed.base[line[used]] + before, placed.flip[line[used]], found[used, 1] - low, at[used],
            at[used] + found[used, 2], columns, np.zeros(n, bool), np.zeros(n, bool),
        )  # fmt: skip
        near = neighbours_of(self._reads, placed.read[line[used]], sources.flips == 0)
        return Beside(near, sources, runs), found[used, 4] - low

    def pile(self, window: int, beside: Beside | None = None) -> Pile:
        """The pile of a window, made of the reads in it."""
        beside = beside or self.beside(window)[0]
        return make_pile(self._reads.both_ways, self.codes(window), beside.sources, beside.runs)


def polish_piles(piles: Piles, params: CorrectParams, threads: int) -> Iterator[tuple[np.ndarray, list[Corrected]]]:
    """Every contig corrected, and its windows as they were corrected."""
    windows = piles.windows
    some = sample(windows.high - windows.low)
    learnt = learn_from(piles.codes, piles.pile, some, params, threads, with_lengths=True)
    how = How(
        learnt.terms, learnt.odds, params.rounds or learnt.rounds, learnt.share or HALF, learnt.telling,
        lengths=learnt.lengths,
    )  # fmt: skip
    bridges = Bridges(how, params.min_support, ENOUGH)

    def correct(window: int) -> Corrected:
        codes, (beside, ends) = piles.codes(window), piles.beside(window)
        found, own, _ = correct_template(codes, piles.pile(window, beside), how, params)
        beside = beside.only(own)
        return bridges.cross_together(found, _bad_stretches(codes, beside, ends[own], bridges.rule), beside)

    corrected = map_in_order(correct, range(len(windows.low)), threads)
    for contig, codes in enumerate(piles.contigs):
        mine = np.flatnonzero(windows.contig == contig).tolist()
        found = [next(corrected) for _ in mine]
        edges = [(int(windows.low[window]), int(windows.high[window])) for window in mine]
        yield _join(codes, found, edges, [piles.codes(window) for window in mine]), found


def _bad_stretches(codes: np.ndarray, beside: Beside, ends: np.ndarray, rule: Support) -> np.ndarray:
    """Starts and ends of the stretches of a window that too few reads support, (n, 2) int64.

    codes : of the window.  beside, ends : from `Piles.beside`.
    """
    first, length, offsets = np.zeros(1, np.int64), np.array([len(codes)]), np.array([0, len(ends)])
    reads = beside.neighbours.codes
    return find_stretches(codes, first, length, reads, beside.sources, beside.runs, ends, offsets, rule)[:, 1:]


def _join(codes: np.ndarray, found: list[Corrected], edges: list[tuple[int, int]], drafts: list[np.ndarray]) -> np.ndarray:
    """The windows of a contig as one sequence; edges : their first and last places."""
    n = len(found)
    kept = [_unchanged(*pair) for pair in zip(found, drafts, strict=True)]
    begins = [0] * n
    ends = [len(draft) for draft in drafts]
    circular = edges[0][0] < 0
    for left in range(n if circular else n - 1):
        right = (left + 1) % n
        behind = len(codes) if right <= left else 0  # positions of a circle begin anew
        shared = edges[left][1] - (edges[right][0] + behind)
        at = _cut_at(kept[left][-shared:], kept[right][:shared])
        ends[left], begins[right] = len(drafts[left]) - shared + at, at
    parts = [one.codes[one.begins[a] : one.begins[b]] for one, a, b in zip(found, begins, ends, strict=True)]
    return np.concatenate(parts)


def _unchanged(found: Corrected, draft: np.ndarray) -> np.ndarray:
    """Mask of the places of a draft whose bases stayed as they were, alone."""
    sizes = np.diff(found.begins)
    same = sizes == 1
    same[same] = found.codes[found.begins[:-1][same]] == draft[same]
    return same


def _cut_at(left: np.ndarray, right: np.ndarray) -> int:
    """Where two windows are joined, in what they share: in the middle of bases that both left, near the middle of all."""
    n = len(left)
    width = 2 * SURE
    if n <= width:
        return n // 2
    both = np.concatenate([[0], np.cumsum(left & right)])
    sure = np.flatnonzero(both[width:] - both[:-width] == width) + SURE
    return int(sure[np.abs(sure - n // 2).argmin()]) if len(sure) else n // 2
