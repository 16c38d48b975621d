"""Inversions inside alignments, which have too few anchors for a chain of their own.

Where the alignment of a chain is cut, or falls by a quarter of what it would be cut for and rises again, the bases between
are aligned to the other strand of the reference.  If they fit, it is cut there, and they have a line of their own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_inner
from bellapy.compute.runs import length_of, operation_of
from bellapy.engines.affine.pieces import Pieces
from bellapy.engines.affine.rule import GLOBAL
from bellapy.jobs.map.join import Paths, advance, cut_points, join_strokes, merge_paths, with_room, write_parts
from bellapy.jobs.map.pieces import Steps, Strokes
from bellapy.params import AffineScoring
from bellapy.seeding.chain import overlap_of

FALL_SHARE = 4  # of what a path is cut for, that it falls by at an inversion
LEAST, MOST = 40, 2000  # bases of read and reference that are looked at: longer inversions have chains
BETWEEN = -1  # in the place of a run: the bases lie between two paths


class Dips(NamedTuple):
    """Where paths fall and rise again; all columns (n,) int64.

    path : the row in Paths.  end_run, end_in, begin_run, begin_in : its runs and pairs into them, where it begins to fall,
    and where it rises again; end_run is BETWEEN where the bases lie between the path before and this one.
    q_start, q_end, t_start, t_end : the bases between, in the codes of reads and reference.
    """

    path: np.ndarray
    end_run: np.ndarray
    end_in: np.ndarray
    begin_run: np.ndarray
    begin_in: np.ndarray
    q_start: np.ndarray
    q_end: np.ndarray
    t_start: np.ndarray
    t_end: np.ndarray

    def take(self, rows: np.ndarray) -> Dips:
        """Some of them: indices or a mask."""
        return Dips(*(column[rows] for column in self))


@njit_inner
def _could_be(row):
    """Whether a row of `_find_dips` has neither too few nor too many bases, and of read and reference not twice as many."""
    fewer, more = min(row[6] - row[5], row[8] - row[7]), max(row[6] - row[5], row[8] - row[7])
    return fewer >= LEAST and more <= min(MOST, 2 * fewer)


@njit_inner
def _is_new(paths, mirror, row):
    """Whether no path covers more than half of a row of `_find_dips` on the other strand, on read and reference.

    mirror : as in `find_inversions`, of its read.
    """
    q_start, q_end, t_start, t_end = mirror - row[6] + 1, mirror - row[5] + 1, row[7], row[8]
    for a in range(len(paths.source)):
        q_shared = overlap_of(q_start, q_end, paths.q_start[a], paths.q_end[a])
        t_shared = overlap_of(t_start, t_end, paths.t_start[a], paths.t_end[a])
        if 2 * q_shared > q_end - q_start and 2 * t_shared > t_end - t_start:
            return False
    return True


@njit
def _find_dips(query, target, paths, mirror, scoring, fall, bonus):
    """The columns of Dips, (9, n) int64: of paths (Paths) that fall by more than `fall`, and between those of one chain.

    query, target, mirror : as in `find_inversions`.  scoring : AffineScoring.  bonus : as in `cut_points`.
    """
    longest = np.int64(1)
    for a in range(len(paths.source)):
        longest = max(longest, paths.n_matches[a] + paths.n_mismatches[a] + paths.n_gap_bases[a])
    points = np.empty((longest // max(1, fall // (4 * scoring.match)) + 4, 4), np.int64)
    rows, n = np.empty((64, 9), np.int64), 0
    for a in range(len(paths.source)):
        runs = paths.runs[paths.first[a] : paths.first[a] + paths.n_runs[a]]
        place, n_parts = (paths.q_start[a], paths.t_start[a]), 0
        if paths.fall[a] > fall:
            n_parts, _ = cut_points(query, target, *place, runs, len(runs), scoring, fall, bonus, points)
        rows = with_room(rows, n, n_parts + 1)
        if a > 0 and paths.source[a - 1] == paths.source[a]:
            row = rows[n]
            row[0], row[1], row[2], row[3], row[4] = a, BETWEEN, 0, 0, 0
            row[5], row[6], row[7], row[8] = paths.q_end[a - 1], paths.q_start[a], paths.t_end[a - 1], paths.t_start[a]
            n += _could_be(row) and _is_new(paths, mirror[a], row)
        (q, t), at = place, 0
        for p in range(1, n_parts):
            row = rows[n]
            row[0], row[1], row[2], row[3], row[4] = a, points[p - 1, 2], points[p - 1, 3], points[p, 0], points[p, 1]
            for side in range(2):
                while at < row[1 + 2 * side]:
                    q_size, t_size = advance(operation_of(runs[at]), np.int64(length_of(runs[at])))
                    q, t, at = q + q_size, t + t_size, at + 1
                row[5 + side], row[7 + side] = q + row[2 + 2 * side], t + row[2 + 2 * side]
            n += _could_be(row)
    return rows[:n].T.copy()


@njit
def _cut_out(query, target, paths, dips, scoring):
    """The columns of Paths, (13, n) int64, and the runs, of what is left of paths (Paths) without the dips (Dips).

    query, target, scoring : as in `_find_dips`.
    """
    n_dips = len(dips.path)
    rows, n_rows = np.empty((2 * n_dips, 13), np.int64), np.int64(0)
    runs, n_runs = np.empty(0, np.uint32), np.int64(0)
    points, x = np.empty((n_dips + 1, 4), np.int64), 0
    while x < n_dips:
        a, n_parts = dips.path[x], 1
        path = paths.runs[paths.first[a] : paths.first[a] + paths.n_runs[a]]
        points[0, 0], points[0, 1] = 0, 0
        while x < n_dips and dips.path[x] == a:
            points[n_parts - 1, 2], points[n_parts - 1, 3] = dips.end_run[x], dips.end_in[x]
            points[n_parts, 0], points[n_parts, 1] = dips.begin_run[x], dips.begin_in[x]
            x, n_parts = x + 1, n_parts + 1
        points[n_parts - 1, 2], points[n_parts - 1, 3] = len(path) - 1, length_of(path[-1])
        runs = with_room(runs, n_runs, len(path) + 2 * n_parts)
        place, to = (paths.q_start[a], paths.t_start[a]), (rows, n_rows, runs, n_runs)
        n_rows, n_runs = write_parts(query, target, paths.source[a], place, path, points, n_parts, to, scoring)
    return rows[:n_rows].T.copy(), runs[:n_runs]


def find_inversions(
    query: np.ndarray, target: np.ndarray, paths: Paths, mirror: np.ndarray, scoring: AffineScoring, zdrop: int, bonus: int,
    least: int,
) -> Steps[tuple[Paths, Paths]]:  # fmt: skip
    """The paths, some of them cut, and the inversions; `source` of these is that of the path they were in.

    query, target : uint8, codes of reads and reference.  mirror : (n_paths,) int64, the sum of the places of a base and its
    complement in the codes of reads.  zdrop, bonus : as in `cut_points`.  least : score of an inversion.
    """
    dips = Dips(*_find_dips(query, target, paths, mirror, scoring, zdrop // FALL_SHARE, bonus))
    if not len(dips.path):
        return paths, Paths._make([*(column[:0] for column in paths)])
    q_start = mirror[dips.path] - dips.q_end + 1
    q_len, t_len = dips.q_end - dips.q_start, dips.t_end - dips.t_start
    ones, zeros = np.ones_like(q_len), np.zeros_like(q_len)
    solved = yield Pieces(q_start, q_len, dips.t_start, t_len, ones, np.full_like(q_len, GLOBAL))
    strokes = Strokes(np.arange(len(ones)), zeros, zeros, solved.starts, solved.counts, solved.runs)
    spans = np.stack([q_start, q_start + q_len, dips.t_start, dips.t_end])
    columns, runs = join_strokes(query, target, strokes, spans, scoring, zdrop, bonus)
    fits = np.flatnonzero(columns[5] >= least)
    fits = fits[np.lexsort((-columns[5, fits], columns[0, fits]))]
    fits = fits[np.diff(columns[0, fits], prepend=-1) > 0]
    found, dips = columns[:, fits], dips.take(columns[0, fits])
    turned = Paths._make([paths.source[dips.path], *found[1:], runs])
    dips = dips.take(dips.end_run != BETWEEN)
    whole = np.ones(len(paths.source), bool)
    whole[dips.path] = False
    left = Paths._make([*(column[whole] for column in paths[:-1]), paths.runs])
    columns, runs = _cut_out(query, target, paths, dips, scoring)
    return merge_paths(left, Paths._make([*columns, runs])), turned
