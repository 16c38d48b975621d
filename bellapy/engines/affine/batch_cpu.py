"""Many alignments by the narrowest band that is good enough: byte lanes of growing classes, then one by one in 32 bits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_inner
from bellapy.compute.runs import QUERY_ALONE, TARGET_ALONE, pack_run
from bellapy.engines.affine import lanes
from bellapy.engines.affine.lanes import LANES, MAX_STEPS, Costs, Scratch
from bellapy.engines.affine.pieces import Pieces, Solved, piece_at
from bellapy.engines.affine.rule import GLOBAL, NO_ZDROP, REACH, band_of, gap_cost, outside, rows_of_band, width_needed
from bellapy.engines.affine.trace import NO_PATH, find_end, query_end, trace
from bellapy.engines.affine.wide import align_wide
from bellapy.params import AffineScoring

HEIGHTS = 12, 16, 24, 32, 64
"""Rows of the classes of lanes."""
PROVED_HEIGHTS = 128, 256
"""Rows of more classes, where every result is that of the whole table: one by one, that takes several times as long."""

MARGIN = 8  # rows that the first class has beyond what the lengths ask for, unless told otherwise
NEAR = 4  # a path so close to the end of its band, in rows, may be better in a wider one
EXTENSION_HEIGHT = 32  # the first class of an extension
WORTH_A_GAP = 100  # bases: with fewer left, an extension cannot earn what leaving its band would have cost
EARLY_MARGIN = 256  # diagonals that an extension is given that ends with more left
WIDE_MARGIN = 64  # diagonals that a wide band has at least beyond its corners
WIDE_SHARE = 8  # and at least this part of the length
WAYS_BYTES = 32 << 20  # of a block of one wide alignment
NEVER = 1 << 40
ALL = 1 << 30  # diagonals: as many as there are


class Effort(NamedTuple):
    """How sure a result has to be before no wider band is tried.

    floor : least score per 1,000 bases of the shorter stretch at which a path that keeps clear of the band's ends is taken
    without proof; NEVER: every result is that of the whole table.  The widest class takes any path that keeps clear.
    margin : rows that the first class has beyond what the lengths ask for.
    zdrop : of extensions, see rule.py.  bonus : what a piece of mode REACH gives up, at most, to use up its query.
    diagonals : the result is the best in a band of at least so many (rule.rows_of_band), whether it is proved or not; 0: no.
    """

    floor: int = NEVER
    margin: int = MARGIN
    zdrop: int = NO_ZDROP
    bonus: int = 0
    diagonals: int = 0


EXACT = Effort()


@njit_inner
def _bonus(mode, effort):
    """What a piece of this mode (of rule.py) gives up to use up its query.  effort : Effort."""
    return effort.bonus if mode == REACH else 0


@njit_inner
def _good(score, i, j, effort):
    """Whether a path of this score to the cell (i, j) needs no proof.  effort : Effort."""
    return effort.floor < NEVER and score * 1000 >= effort.floor * min(i, j)


@njit_inner
def _end_of(scratch, lane, piece, effort, drift):
    """The cell where the path of a lane ends: i, j, its score, whether zdrop ended it.

    scratch : Scratch, after the group of `lane` was run.  piece : Piece.  effort : Effort.  drift : of rule.py's scores.
    """
    q_len, t_len = piece.q_len, piece.t_len
    if piece.mode == GLOBAL:
        row = ((t_len - q_len) >> 1) + scratch.centres[lane]
        r = q_len + t_len
        return q_len, t_len, lanes.score_at(scratch, lane, r, row) - drift * r, False
    i, j, score, dropped = find_end(scratch, lane, q_len, t_len, effort.zdrop, drift)
    bonus = _bonus(piece.mode, effort)
    if bonus > 0 and not dropped:
        other, its_score = query_end(scratch, lane, q_len, t_len, drift)
        if other >= 0 and its_score + bonus >= score:
            return q_len, other, its_score, False
    return i, j, score, dropped


@njit_inner
def _settle(piece, p, lane, scoring, effort, scratch, solved, n):
    """Take the path of one lane if it is good enough; return the end of the runs and how many more diagonals are needed.

    piece : Piece, row p of all.  scoring : AffineScoring.  effort : Effort.  scratch : Scratch, after the group was run.
    solved : Solved; row p is filled, and runs from n on.
    """
    height, mode, bonus = scratch.height, piece.mode, _bonus(piece.mode, effort)
    q_len, t_len = piece.q_len, piece.t_len
    if scratch.centres[lane] < 0:
        return n, ALL
    i, j, score, dropped = _end_of(scratch, lane, piece, effort, scoring.extend2)
    end, counted, near = trace(scratch, lane, piece, i, j, scoring, solved.runs, n)
    if end == NO_PATH or counted != score:
        return n, 2 * height + 1
    covered = lanes.reach(q_len, t_len, mode, height)
    sure = outside(covered, q_len, t_len, mode, bonus, scoring) < score or (dropped and near >= NEAR)
    good = _good(score, i, j, effort) or (height == HEIGHTS[-1] and effort.floor < NEVER)
    early = mode != GLOBAL and min(q_len - i, t_len - j) >= WORTH_A_GAP and effort.floor < NEVER
    if early and (height < HEIGHTS[-1] or solved.score[p] != score):  # until a wider band gives nothing more
        solved.score[p] = score
        return n, EARLY_MARGIN
    if not sure and not (near >= NEAR and good):
        return n, width_needed(score, q_len, t_len, mode, bonus, scoring)
    solved.score[p], solved.q_used[p], solved.t_used[p], solved.dropped[p] = score, i, j, dropped
    solved.starts[p], solved.counts[p] = n, end - n
    return end, 0


@njit
def align_class(codes, pieces, index, scoring, effort, scratch, solved, n, needed):
    """Align the pieces `index` in bands of scratch.height rows; needed[p] becomes 0 where the result is taken.

    codes : of queries and of targets, two arrays of uint8.  pieces : Pieces.  index : (any,) int64, rows of pieces.
    scoring : AffineScoring.  effort : Effort.  scratch : Scratch.  solved : Solved; rows of `index` are filled.
    n : end of the runs so far.  needed : (n_pieces,) int64, diagonals that a wider band needs.

    Returns the end of the runs.
    """
    query, target = codes
    drift = scoring.extend2
    costs = Costs(
        np.int8(scoring.match + 2 * drift), np.int8(scoring.mismatch + 2 * drift), np.int8(scoring.open1),
        np.int8(scoring.extend1 - drift), np.int8(scoring.open2),
    )  # fmt: skip
    for begin in range(0, len(index), LANES):
        group = index[begin : begin + LANES]
        steps, q_rows = lanes.pack_group(query, target, pieces, group, scratch)
        maxima_too = False
        for p in group:
            maxima_too |= pieces.mode[p] != GLOBAL
        lanes.run_group(steps, q_rows, len(group), scratch, costs, maxima_too)
        for lane in range(len(group)):
            p = group[lane]
            piece = piece_at(query, target, pieces, p)
            n, needed[p] = _settle(piece, p, lane, scoring, effort, scratch, solved, n)
    return n


@njit
def align_rest(codes, pieces, index, scoring, effort, solved, n, needed):
    """Align the pieces `index` one by one in the bands they need; returns the end of the runs.

    codes, pieces, index, scoring, effort, solved, n : as in `align_class`.
    needed : (n_pieces,) int64, diagonals beyond the corners to begin with.
    """
    for p in index:
        piece = piece_at(codes[0], codes[1], pieces, p)
        q_len, t_len, mode, bonus = piece.q_len, piece.t_len, piece.mode, _bonus(piece.mode, effort)
        out = needed[p]
        shift = t_len - q_len if mode == GLOBAL else 0
        while True:
            band = (min(0, shift) - out, max(0, shift) + out)
            score, i, j, dropped, end = align_wide(piece, band, scoring, effort.zdrop, bonus, WAYS_BYTES, solved.runs, n)
            if out >= max(q_len, t_len) or outside(out + 1, q_len, t_len, mode, bonus, scoring) < score:
                break
            if _good(score, i, j, effort):
                break
            out = max(2 * out, 1) if dropped else width_needed(score, q_len, t_len, mode, bonus, scoring)
        solved.score[p], solved.q_used[p], solved.t_used[p], solved.dropped[p] = score, i, j, dropped
        solved.starts[p], solved.counts[p] = n, end - n
        n = end
    return n


@njit
def align_bands(codes, pieces, index, scoring, effort, solved, n, rows):
    """Align the pieces `index` one by one in bands of so many rows; returns the end of the runs.

    codes, pieces, index, scoring, effort, solved, n : as in `align_class`.  rows : (n_pieces,) int64.
    """
    for p in index:
        piece = piece_at(codes[0], codes[1], pieces, p)
        band, bonus = band_of(piece.q_len, piece.t_len, piece.mode, rows[p]), _bonus(piece.mode, effort)
        score, i, j, dropped, end = align_wide(piece, band, scoring, effort.zdrop, bonus, WAYS_BYTES, solved.runs, n)
        solved.score[p], solved.q_used[p], solved.t_used[p], solved.dropped[p] = score, i, j, dropped
        solved.starts[p], solved.counts[p] = n, end - n
        n = end
    return n


@njit
def empty_piece(pieces, index, scoring, solved, n):
    """Pieces of which one side is empty: a single gap, or nothing where the end is free; returns the end of the runs.

    pieces, index, scoring, solved, n : as in `align_class`.
    """
    for p in index:
        i, j = pieces.q_len[p], pieces.t_len[p]
        if pieces.mode[p] != GLOBAL:
            i = j = 0
        solved.score[p], solved.q_used[p], solved.t_used[p] = -gap_cost(i + j, scoring), i, j
        solved.dropped[p], solved.starts[p], solved.counts[p] = False, n, 0
        if i + j > 0:
            solved.runs[n] = pack_run(QUERY_ALONE if i > 0 else TARGET_ALONE, i + j)
            solved.counts[p] = 1
            n += 1
    return n


class Tried(NamedTuple):
    """What narrow bands have given.

    solved : Solved; `runs` has room for those of all other pieces.  n_runs : the end of the runs so far.
    needed : (n,) int64, 0 where there is a solution, else diagonals that a wide band begins with.
    """

    solved: Solved
    n_runs: int
    needed: np.ndarray


@njit
def no_solutions(n, n_runs):
    """Room for the solutions of n pieces, and for their runs; a Solved."""
    rows = np.zeros((5, n), np.int64)
    return Solved(rows[0], rows[1], rows[2], np.zeros(n, np.bool_), np.empty(n_runs, np.uint32), rows[3], rows[4], 0)


@njit
def first_try(pieces, effort):
    """Which pieces lanes take, (n,) bool, the rows that each asks for at first, and what it needs if none is enough.

    pieces : Pieces.  effort : Effort.  Rows and needs : (n,) int64.
    """
    n = len(pieces.q_at)
    waiting, rows, needed = np.empty(n, np.bool_), np.empty(n, np.int64), np.empty(n, np.int64)
    unproved = effort.floor == NEVER and effort.zdrop != NO_ZDROP  # a drop can only be proved in the whole table
    for p in range(n):
        q_len, t_len, is_global = pieces.q_len[p], pieces.t_len[p], pieces.mode[p] == GLOBAL
        rows[p] = abs(t_len - q_len) // 2 + effort.margin if is_global else EXTENSION_HEIGHT
        whole = unproved and not is_global
        needed[p] = max(q_len, t_len) if whole else max(WIDE_MARGIN, min(q_len, t_len) // WIDE_SHARE)
        waiting[p] = q_len > 0 and t_len > 0 and q_len + t_len <= MAX_STEPS and not whole
    return waiting, rows, needed


@njit
def _shortest_first(pieces, some):
    """Rows of the pieces for which `some`, (n,) bool, holds, (any,) int64, the shortest first.

    pieces : Pieces; these ones have MAX_STEPS anti-diagonals at most.
    """
    ends = np.zeros(MAX_STEPS + 2, np.int64)
    for p in range(len(some)):
        if some[p]:
            ends[pieces.q_len[p] + pieces.t_len[p] + 1] += 1
    ends = np.cumsum(ends)
    order = np.empty(ends[-1], np.int64)
    for p in range(len(some)):
        if some[p]:
            length = pieces.q_len[p] + pieces.t_len[p]
            order[ends[length]] = p
            ends[length] += 1
    return order


@njit
def try_classes(codes, pieces, scoring, effort, scratches):
    """Align the pieces that the narrow bands of lanes are good enough for; a Tried.

    codes, pieces, scoring, effort : as in `align_class`.  scratches : tuple of Scratch, one for each class, low to high.
    """
    waiting, rows, needed = first_try(pieces, effort)
    lengths = pieces.q_len + pieces.t_len
    solved, n, cells = no_solutions(len(lengths), lengths.sum() + 1), np.int64(0), np.int64(0)
    order = _shortest_first(pieces, waiting)
    index = np.empty_like(order)
    for scratch in scratches:
        if scratch.height > HEIGHTS[-1] and effort.floor < NEVER:
            break
        size = 0
        for p in order:
            if waiting[p] and rows[p] <= scratch.height:
                index[size] = p
                size += 1
        now = index[:size]
        n = align_class(codes, pieces, now, scoring, effort, scratch, solved, n, needed)
        for p in now:
            cells += lengths[p] * scratch.height
            waiting[p] = needed[p] > 0
            rows[p] = scratch.height + 1
            if effort.floor == NEVER:  # what is needed for a proof
                shift = abs(pieces.t_len[p] - pieces.q_len[p]) if pieces.mode[p] == GLOBAL else 0
                rows[p] = max(rows[p], (shift + 1) // 2 + (needed[p] + 1) // 2 + 1)
    return Tried(_with_cells(solved, cells), n, needed)


@njit
def _with_cells(solved, cells):
    """A Solved with another number of cells."""
    return Solved(
        solved.score, solved.q_used, solved.t_used, solved.dropped, solved.runs, solved.starts, solved.counts, cells
    )  # fmt: skip


@njit
def solve_rest(codes, pieces, scoring, effort, tried):
    """Align the pieces that narrow bands have not solved; returns the end of the runs.

    codes, pieces, scoring, effort : as in `align_class`.  tried : Tried; changed.
    """
    solved, n, needed = tried.solved, tried.n_runs, tried.needed
    index, size = np.empty(len(needed), np.int64), 0
    for p in range(len(needed)):
        if pieces.q_len[p] == 0 or pieces.t_len[p] == 0:
            index[size] = p
            size += 1
    n = empty_piece(pieces, index[:size], scoring, solved, n)
    size = 0
    for p in range(len(needed)):
        if pieces.q_len[p] > 0 and pieces.t_len[p] > 0 and needed[p] > 0:
            needed[p] = min(needed[p], max(pieces.q_len[p], pieces.t_len[p]))
            index[size] = p
            size += 1
    return align_rest(codes, pieces, index[:size], scoring, effort, solved, n, needed)


class Aligner:
    """Aligns pieces; holds the working memory of one thread.

    scoring : from rule.ordered.
    """

    def __init__(self, scoring: AffineScoring):
        self.scoring = scoring
        self.heights = (*HEIGHTS, *PROVED_HEIGHTS) if lanes.fits(scoring) else ()
        self._room = lanes.room_for_scores(PROVED_HEIGHTS[-1])
        self._scratch: dict[int, Scratch] = {}

    def scratch(self, height: int) -> Scratch:
        if height not in self._scratch:
            self._scratch[height] = lanes.make_scratch(height, self._room)
        return self._scratch[height]

    def align(self, query_codes: np.ndarray, target_codes: np.ndarray, pieces: Pieces, effort: Effort = EXACT) -> Solved:
        """Align all pieces; the result of each does not depend on the others."""
        codes = (query_codes, target_codes)
        if effort.diagonals:
            return self._in_bands(codes, pieces, effort)
        return self.finish(codes, pieces, effort, self.try_lanes(codes, pieces, effort))

    def try_lanes(self, codes: tuple[np.ndarray, np.ndarray], pieces: Pieces, effort: Effort) -> Tried:
        """Align the pieces that the narrow bands of lanes are good enough for.

        codes : of queries and of targets, uint8.
        """
        if not self.heights:
            room = int((pieces.q_len + pieces.t_len).sum()) + 1
            return Tried(no_solutions(len(pieces.q_at), room), 0, first_try(pieces, effort)[2])
        return try_classes(codes, pieces, self.scoring, effort, tuple(map(self.scratch, self.heights)))

    def finish(
        self, codes: tuple[np.ndarray, np.ndarray], pieces: Pieces, effort: Effort, tried: Tried
    ) -> Solved:  # fmt: skip
        """The solutions of all pieces, with those of narrow bands; tried : changed."""
        n = solve_rest(codes, pieces, self.scoring, effort, tried)
        return tried.solved._replace(runs=tried.solved.runs[:n])

    def _in_bands(self, codes: tuple[np.ndarray, np.ndarray], pieces: Pieces, effort: Effort) -> Solved:
        """The best of each piece in a band of so many diagonals as `effort` says."""
        n, lengths = len(pieces.q_at), pieces.q_len + pieces.t_len
        solved, empty = no_solutions(n, int(lengths.sum()) + 1), (pieces.q_len == 0) | (pieces.t_len == 0)
        at = empty_piece(pieces, np.flatnonzero(empty), self.scoring, solved, 0)
        rows = rows_of_band(effort.diagonals, pieces.q_len, pieces.t_len, pieces.mode)
        at = align_bands(codes, pieces, np.flatnonzero(~empty), self.scoring, effort, solved, at, rows)
        cells = int((2 * rows * np.minimum(pieces.q_len, pieces.t_len))[~empty].sum())
        return solved._replace(cells=cells, runs=solved.runs[:at])
