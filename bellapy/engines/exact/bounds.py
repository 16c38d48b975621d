"""How much an alignment can still gain: upper bounds by k-mers, and where it may run at all (docs/exact.md has the proof).

Cut disjoint words out of a sequence, none of which occurs in the other one where an alignment of the wanted score may run.
Each costs at least `break_cost`: it can't be a run of matches.  So what a part of a path gains is at most a match for every
base less the cost of every word in it.  From the left and from the right together, such bounds leave an interval of columns
to every row; within narrower intervals more words are absent, and the bounds get tighter.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit
from bellapy.compute.threads import even_ranges, map_threads
from bellapy.engines.exact.cpu import Bounds
from bellapy.engines.exact.gains import BLOCK, Corridor, Gains, find_gains, whole
from bellapy.engines.exact.heights import NO_BLOCKS, Heights, block_shape, bound_blocks, reversed_heights
from bellapy.engines.exact.narrow import (
    NONE_UNMATCHED,
    FindGpus,
    Limits,
    Matrix,
    find_limits,
    find_none,
    is_for_gpus,
    is_worth,
)
from bellapy.engines.exact.rule import Scores

ROUNDS = 8
PROGRESS = 0.5  # another round is worth it if the last one left at most this share of the area
HOPE = 8  # an alignment that scores less than such a part of what is possible leaves too much to a grid


def find_corridor(
    rows: Gains, columns: Gains, known: int, slack: int, from_start: bool, to_end: bool, before: Corridor, threads: int = 1
) -> Corridor:
    """The part of a corridor that an alignment scoring `known` or more may touch.

    slack : the opening of a gap, which may have been paid before.
    """
    first, last = np.empty_like(before.first), np.empty_like(before.last)
    wanted = (rows.behind, from_start), (rows.ahead, to_end), (columns.behind, from_start), (columns.ahead, to_end)
    found = map_threads(lambda one: one[0](one[1]), wanted, threads)
    along, across = found[:2], found[2:]
    _put_in_order(*across)

    def find(blocks: tuple[int, int]) -> None:
        _find_intervals(*along, *across, known - slack, before, *blocks, first, last)

    map_threads(find, even_ranges(len(first), threads), threads)
    first = np.minimum.accumulate(first[::-1])[::-1].copy()  # windows slide one way
    return Corridor(first, np.maximum.accumulate(last))


@njit
def _put_in_order(behind, ahead):
    """Raise `behind` and `ahead`, (any,) int32, so that neither falls towards where it is higher."""
    m = len(behind) - 1
    for j in range(1, m + 1):
        behind[j] = max(behind[j], behind[j - 1])
        ahead[m - j] = max(ahead[m - j], ahead[m - j + 1])


@njit
def _find_intervals(behind, ahead, columns_behind, columns_ahead, need, before, begin_block, end_block, first, last):
    """The columns of each block of rows that an alignment may touch which gains `need` or more; first > last: none.

    behind, ahead : (rows + 1,) int32, as Gains has them; columns_behind, columns_ahead : (columns + 1,), in order.
    before : Corridor.  begin_block, end_block : blocks to look at, the latter excluded.  first, last : (n_blocks,) int64,
    filled.
    """
    n, m = len(behind) - 1, len(columns_behind) - 1
    for block in range(begin_block, end_block):
        most_behind = most_ahead = most = np.int64(-(1 << 62))
        for i in range(block * BLOCK, min((block + 1) * BLOCK, n) + 1):  # with the first one of the next block
            most_behind, most_ahead = max(most_behind, behind[i]), max(most_ahead, ahead[i])
            most = max(most, np.int64(behind[i]) + ahead[i])
        first[block], last[block] = m + 1, -1
        if most >= need:
            begin = _count_below(columns_behind, need - most_ahead, np.bool_(False))
            end = m + 1 - _count_below(columns_ahead, need - most_behind, np.bool_(True))
            first[block], last[block] = max(before.first[block], begin), min(before.last[block], end - 1)


@njit
def _count_below(values, least, falling):
    """How many values, (any,) int32 in order, are less than `least`."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        if (values[middle] >= least) == falling:
            low = middle + 1
        else:
            high = middle
    return len(values) - low if falling else low


class Region(NamedTuple):
    """What is known of all alignments of a pair that score at least `known`.

    rows, columns : Gains along query and target.  corridor : of the query's blocks.  from_start, to_end : whether all
    begin at the sequences' starts and end at their ends.  limits : what a grid has told.  most : that any of them scores.
    """

    rows: Gains
    columns: Gains
    corridor: Corridor
    known: int
    slack: int
    from_start: bool
    to_end: bool
    limits: Limits | None = None
    most: int = np.iinfo(np.int32).max


def _narrow(gains: tuple[Gains, Gains, Corridor], known: int, slack: int, ends: bool, threads: int) -> Corridor:
    """A corridor within one, by the gains along it and across."""
    along, across, before = gains
    return find_corridor(along, across, known, slack, ends, ends, before, threads)


def whole_gains(query: np.ndarray, target: np.ndarray, scores: Scores, threads: int = 1) -> list[Gains]:
    """Bounds along both sequences by words that the other one lacks, whatever score is known."""
    n, m = len(query), len(target)
    ways = (query, target, whole(n, m)), (target, query, whole(m, n))
    return map_threads(lambda way: find_gains(*way, scores, threads), ways, threads)


def bound_region(
    query: np.ndarray, target: np.ndarray, scores: Scores, mode: str, known: int, threads: int = 1,
    first: list[Gains] | None = None, find_gpus: FindGpus = find_none, unmatched: np.ndarray = NONE_UNMATCHED,
    unmatched_across: np.ndarray = NONE_UNMATCHED,
) -> Region:  # fmt: skip
    """Bounds for alignments that score at least `known`, made in rounds as long as they get much tighter.

    query, target : uint8 codes.  first : `whole_gains`, if they are there; not for global mode.
    find_gpus, unmatched : as in Matrix.  unmatched_across : the same of the transposed matrix; if there are any, its bounds
    narrow the corridor first: only stretches of rows are held by windows.
    """
    n, m = len(query), len(target)
    ends = mode == "global"
    across, down = whole(n, m), whole(m, n)
    if ends:
        across, down = (_band(x, y, y - x, scores, known, c) for x, y, c in ((n, m, across), (m, n, down)))
    area, most = across.area(n), np.iinfo(np.int32).max
    for _ in range(ROUNDS):
        ways = (query, target, across), (target, query, down)
        rows, columns = first or map_threads(lambda way: find_gains(*way, scores, threads), ways, threads)
        first = None
        both = (rows, columns, across), (columns, rows, down)
        across, down = map_threads(
            partial(_narrow, known=known, slack=scores.gap_open, ends=ends, threads=threads), both, threads
        )
        region = Region(rows, columns, across, known, scores.gap_open, ends, ends, most=most)
        before, area = area, across.area(n)
        if is_worth(area, n, threads, find_gpus) and upper_bound(region) <= HOPE * known:
            if len(unmatched_across):
                other = bound_region(target, query, scores, mode, known, threads, None, find_gpus, unmatched_across)
                across, down = _both(across, transposed(other.corridor, m, n)), _both(down, other.corridor)
                most, unmatched_across = upper_bound(other), NONE_UNMATCHED
                continue
            matrix = Matrix(query, target, scores, known, ends, BLOCK, threads, find_gpus, unmatched)
            return _by_grid(matrix, region)
        if not area or area > PROGRESS * before:
            break
    return region


def upper_bound(region: Region) -> int:
    """The most that any alignment can score; less than what is known if none scores as much."""
    both = (gains.ahead(region.to_end) for gains in (region.rows, region.columns))
    most = int(min(ahead[0] if region.from_start else ahead.max() for ahead in both))
    if not (region.corridor.first <= region.corridor.last).any():
        return min(most, region.known - 1)
    most = min(most, region.most)
    return most if region.limits is None else min(most, int(region.limits.ahead.max()))


def _by_grid(matrix: Matrix, region: Region) -> Region:
    """The same region with the tighter bounds of a grid."""
    query, target, corridor = matrix.query, matrix.target, region.corridor
    limits = find_limits(matrix, corridor.first, corridor.last)
    first = np.maximum(corridor.first, np.minimum.accumulate(limits.first[::-1])[::-1])
    across = Corridor(first, np.minimum(corridor.last, np.maximum.accumulate(limits.last)))
    if not (across.first <= across.last).any():
        return region._replace(corridor=across)
    if is_for_gpus(matrix, across.area(len(query))):  # they take less time for what words would save
        return region._replace(corridor=across, limits=limits)
    ways = (query, target, across), (target, query, transposed(across, len(query), len(target)))
    rows, columns = map_threads(lambda way: find_gains(*way, matrix.scores, matrix.threads), ways, matrix.threads)
    return region._replace(rows=rows, columns=columns, corridor=across, limits=limits)


def _both(one: Corridor, other: Corridor) -> Corridor:
    """What lies in two corridors."""
    return Corridor(np.maximum(one.first, other.first), np.minimum(one.last, other.last))


def transposed(corridor: Corridor, n: int, m: int) -> Corridor:
    """A corridor of the query's blocks as one of the target's; n, m : rows and columns."""
    begin = np.arange(m // BLOCK + 1) * BLOCK
    first = np.searchsorted(corridor.last, begin) * BLOCK
    last = np.searchsorted(corridor.first, begin + BLOCK, side="right") * BLOCK
    return Corridor(np.minimum(first, n + 1), np.minimum(last, n))


def tightened(region: Region, known: int, threads: int) -> Region:
    """The same bounds for a higher score: its corridor, without looking for words again."""
    ends = region.from_start, region.to_end
    corridor = find_corridor(region.rows, region.columns, known, region.slack, *ends, region.corridor, threads)
    return region._replace(known=known, corridor=corridor)


def _band(n: int, m: int, apart: int, scores: Scores, known: int, corridor: Corridor) -> Corridor:
    """Diagonals that a global alignment can reach and come back from: y bases off, it needs 2 y more in gaps."""
    most = scores.match * min(n, m) - scores.gap_extend * abs(apart) - known
    off = max(0, most) // (scores.match + 2 * scores.gap_extend) + 1
    rows = np.arange(len(corridor.first)) * BLOCK
    first = np.maximum(corridor.first, rows + min(0, apart) - off)
    return Corridor(first, np.minimum(corridor.last, rows + BLOCK + max(0, apart) + off))


def ahead_bounds(region: Region, size: int, scores: Scores, threads: int = 1) -> Bounds:
    """A region's bounds as a sweep from the sequences' starts wants them."""
    rows, columns = map_threads(lambda gains: gains.ahead(region.to_end), (region.rows, region.columns), threads)
    n, m, blocks = len(rows) - 1, len(columns) - 1, NO_BLOCKS
    if region.limits is not None:
        rows = np.minimum(rows, region.limits.ahead)
        blocks = bound_blocks(region.limits.at_ahead, n, m, scores, block_shape(n, m)[0], threads)
    return Bounds(rows, columns, *by_tile_rows(region.corridor, n, m, size), blocks)


def behind_bounds(
    region: Region, n: int, m: int, size: int, most: int | None, scores: Scores, behind: Heights | None = None,
    threads: int = 1,
) -> Bounds:  # fmt: skip
    """The same for a sweep backwards from row n and column m.

    most : what no alignment's first part exceeds, if known.  behind : what the sweep forth has told.
    """
    both = map_threads(lambda gains: gains.behind(region.from_start), (region.rows, region.columns), threads)
    rows, columns = both[0][n::-1], both[1][m::-1]
    if region.limits is not None:
        rows, behind = np.minimum(rows, region.limits.behind[n::-1]), behind or region.limits.at_behind
    if most is not None:
        rows, columns = np.minimum(rows, most), np.minimum(columns, most)
    blocks, shape = NO_BLOCKS, block_shape(len(region.rows.end) - 1, len(region.columns.end) - 1)
    if behind is not None:
        blocks = bound_blocks(reversed_heights(behind, n, m, threads), n, m, scores, shape[0], threads)
    first, last = by_tile_rows(region.corridor, n, m, size, backwards=True)
    return Bounds(np.ascontiguousarray(rows), np.ascontiguousarray(columns), first, last, blocks)


def open_bounds(corridor: Corridor, n: int, m: int, scores: Scores) -> Bounds:
    """A corridor, and no other bound than that every base left may match; for tiles of BLOCK rows."""
    rows, columns = (scores.match * np.arange(k, -1, -1, dtype=np.int32) for k in (n, m))
    return Bounds(rows, columns, *by_tile_rows(corridor, n, m, BLOCK))


def narrowed(corridor: Corridor, reach: np.ndarray, size: int) -> Corridor:
    """The part of a corridor that a sweep's computed tiles, `Sweep.reach`, touch."""
    blocks = np.arange(len(corridor.first)) * BLOCK
    there = reach[:, 1] >= 0
    first = np.where(there, reach[:, 0].astype(np.int64) * size, np.iinfo(np.int64).max)
    last = np.where(there, (reach[:, 1].astype(np.int64) + 1) * size, -1)
    rows = [np.minimum(np.maximum(0, blocks + by) // size, len(reach) - 1) for by in (-1, BLOCK - 1)]
    first, last = np.minimum(*(first[r] for r in rows)), np.maximum(*(last[r] for r in rows))
    first, last = np.maximum(first, corridor.first), np.minimum(last, corridor.last)
    return Corridor(np.minimum.accumulate(first[::-1])[::-1].copy(), np.maximum.accumulate(last))


def by_tile_rows(corridor: Corridor, n: int, m: int, size: int, backwards: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Intervals of columns for rows of tiles, (n_tile_rows,) int32 both; `backwards`: of a matrix read from row n on."""
    begin = np.arange(0, n, size)
    end = np.minimum(begin + size, n)
    if backwards:
        begin, end = n - end, n - begin
    first, last = corridor.first[begin // BLOCK], corridor.last[np.minimum(end // BLOCK, len(corridor.last) - 1)]
    if backwards:
        first, last = m - last, m - first
    return np.clip(first, 0, m + 1).astype(np.int32), np.clip(last, -1, m).astype(np.int32)
