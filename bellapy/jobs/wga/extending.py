"""Extensions of anchors, side by side where there are threads, and anchors that lead to no alignment."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from threading import local
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_inner
from bellapy.engines.ydrop.blocks import BLOCK
from bellapy.engines.ydrop.extend import Extender, extend_side
from bellapy.engines.ydrop.foresight import Foresight
from bellapy.engines.ydrop.sweep import Sides
from bellapy.engines.ydrop.walls import Walls, no_walls
from bellapy.jobs.wga.cut import N_FIELDS, QUERY, SCORE, TARGET, find_parts, runs_between, runs_of_part
from bellapy.jobs.wga.kept import Part
from bellapy.jobs.wga.scene import Anchors, Scene
from bellapy.params.wga import WgaParams
from bellapy.records.genomes import QUERY_ALONE, TARGET_ALONE

LEFT, RIGHT, LOW, HIGH, CELLS, RUNS_END, PARTS_END, N_TOLD = range(8)
"""What is told of an extended anchor: the region looked at, as in `is_clear`; cells computed; where the runs of its path and
its parts end in the arrays of all.
"""

SHARES = 32
"""Pieces of work for each thread: they differ by far in what they take."""


class Wanted(NamedTuple):
    """Anchors to be extended.

    target, query : (n,) int64 places.  ends : (n, 2) int64, on the left and on the right the anti-diagonal of the end, NEVER
    if it is not known.  last : (n, 2) int64, the last one that was looked at to know it.  limits : as in Anchors.
    """

    target: np.ndarray
    query: np.ndarray
    limits: np.ndarray
    ends: np.ndarray
    last: np.ndarray

    def behind(self, n: int) -> Wanted:
        """Without the first n."""
        return Wanted(*(column[n:] for column in self))


class Outcome(NamedTuple):
    """What an anchor leads to.

    region : as in `is_clear`.  n_cells : computed.
    """

    parts: list[Part]
    region: tuple[int, int, int, int]
    n_cells: int


class Extending:
    """Extends anchors of two genomes; for several threads at once.

    pool : of `threads` threads; None: the caller's own thread does all.
    """

    def __init__(self, params: WgaParams, pool: Executor | None = None, threads: int = 1):
        self.params, self.pool, self.threads = params, pool, threads
        self.costs = (params.scores.matrix, params.scores.open, params.scores.extend)
        self.limits = (params.cut_drop, params.gappedthresh)
        self._own = local()

    def extend(self, scene: Scene, wanted: Wanted) -> list[Outcome]:
        """What each of the anchors leads to, all with the walls that are there now."""
        return [outcome for some in self._run(scene, wanted, scene.walls) for outcome in _outcomes(*some)]

    def find_poor(self, scene: Scene, anchors: Anchors, foresight: Foresight) -> np.ndarray:
        """Which anchors are known to lead to no alignment where no wall is near, (n,) bool.

        A part of the path that spans the anchor scores no more than both sides together.  One that does not has no more
        anti-diagonals than its side.  Where that does not tell, the path is computed, unless it is long.
        """
        least = self.params.gappedthresh
        poor = foresight.known & (foresight.score.sum(axis=1) < least)
        short = 2 * (-(-least // max(1, int(self.params.scores.matrix.max()))))
        furthest = foresight.r.max(axis=1, initial=0)
        unsure, walls = np.flatnonzero(poor & (furthest >= short) & (furthest <= BLOCK)), no_walls(0)
        poor &= furthest <= BLOCK

        def judge(some: Wanted) -> list[bool]:
            told = (np.diff(told[:, PARTS_END], prepend=0) == 0 for told, _, _ in self._run(scene, some, walls))
            return [is_poor for piece in told for is_poor in piece.tolist()]

        n = min(self.threads * SHARES, len(unsure))
        pieces = [unsure[first::n] for first in range(n)]
        wanted = (
            Wanted(anchors.target[some], anchors.query[some], anchors.limits[some], foresight.r[some], foresight.last[some])
            for some in pieces
        )
        for some, judged in zip(pieces, (self.pool.map if self.pool else map)(judge, wanted), strict=True):
            poor[some] = judged
        return poor

    def _run(self, scene: Scene, wanted: Wanted, walls: Walls) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """What `extend_anchors` tells, some anchors after the other, with the extender of this thread."""
        if not hasattr(self._own, "extender"):
            self._own.extender = Extender(self.params.scores, self.params.ydrop)
        extender, done = self._own.extender, 0
        while done < len(wanted.target):
            left = wanted.behind(done)
            *told, lack = extend_anchors(
                extender.scratch, scene.sequences[:2], left, extender.rule, walls, self.costs, self.limits
            )
            done += len(told[0])
            if lack:
                extender.grow(lack)
            yield tuple(told)


def _outcomes(told: np.ndarray, runs: np.ndarray, parts: np.ndarray) -> list[Outcome]:
    outcomes, run, part = [], 0, 0
    for *region, cells, runs_end, parts_end in told.tolist():
        some = _parts(runs[run:runs_end], parts[part:parts_end]) if part < parts_end else []
        outcomes.append(Outcome(some, tuple(region), cells))
        run, part = runs_end, parts_end
    return outcomes


def _parts(runs: np.ndarray, found: np.ndarray) -> list[Part]:
    """Alignments of one path, as `find_parts` finds them."""
    falls = [runs[:0], *(runs_between(runs, *some) for some in zip(found, found[1:], strict=False))]
    return [
        Part(int(part[SCORE]), int(part[TARGET]), int(part[QUERY]), runs_of_part(runs, part), fall)
        for part, fall in zip(found, falls, strict=True)
    ]


@njit
def extend_anchors(scratch, texts, wanted, rule, walls, costs, limits):
    """Extend anchors until there is no room: what is told of those done, (n, N_TOLD) int64, the runs of paths that hold
    alignments, (m, 2), their parts as in `find_parts`, and what was lacking for the next one, 0 for nothing.

    scratch, rule : of an Extender.  texts : uint8 codes of target and query.  costs : as in `find_parts`.  limits : fall of
    the score where a path is cut, least score of an alignment.
    """
    target, query = texts
    drop, least = limits
    told = np.zeros((len(wanted.target), N_TOLD), np.int64)
    all_runs, all_parts = np.empty((0, 2), np.int64), np.empty((0, N_FIELDS), np.int64)
    for x in range(len(told)):
        q, t = wanted.query[x], wanted.target[x]
        limits = wanted.limits[x]
        t_begin, t_end, q_begin, q_end = limits[0], limits[1], limits[2], limits[3]
        left, cells, before = extend_side(
            scratch, Sides(query, target, q, t, -1, q + 1 - q_begin, t + 1 - t_begin), rule, walls, wanted.ends[x, 0]
        )  # fmt: skip
        if left.n_blocks < 0:
            return told[:x], all_runs, all_parts, left.n_blocks
        right, more, after = extend_side(
            scratch, Sides(query, target, q + 1, t + 1, 1, q_end - q - 1, t_end - t - 1), rule, walls,
            wanted.ends[x, 1],
        )  # fmt: skip
        if right.n_blocks < 0:
            return told[:x], all_runs, all_parts, right.n_blocks
        one = told[x]
        one[LEFT], one[RIGHT], one[CELLS] = (
            max(left.last, wanted.last[x, 0]),
            max(right.last, wanted.last[x, 1]),
            cells + more,
        )
        one[LOW] = min(-left.high, right.low, -wanted.last[x, 0], -wanted.last[x, 1])
        one[HIGH] = max(-left.low, right.high, wanted.last[x, 0], wanted.last[x, 1])
        runs, place = np.empty((len(before) + len(after), 2), np.int64), np.array([t + 1, q + 1])
        n = _join(before, after, runs, place)
        parts = find_parts(target, query, place[0], place[1], runs[:n], costs, drop, least)
        if len(parts):
            all_runs, all_parts = np.concatenate((all_runs, runs[:n])), np.concatenate((all_parts, parts))
        one[RUNS_END], one[PARTS_END] = len(all_runs), len(all_parts)
    return told, all_runs, all_parts, 0


@njit_inner
def _join(before, after, runs, place):
    """The runs of a path through an anchor, from those of both sides, back from their ends, into `runs`; their number.

    place : (2,) the target and query base behind those on the left; gets the first ones of the path.
    """
    n = 0
    for x in range(len(before)):
        runs[n, 0], runs[n, 1] = before[x, 0], before[x, 1]
        place[0] -= before[x, 1] if before[x, 0] != QUERY_ALONE else 0
        place[1] -= before[x, 1] if before[x, 0] != TARGET_ALONE else 0
        n += 1
    for x in range(len(after) - 1, -1, -1):
        if n and runs[n - 1, 0] == after[x, 0]:
            runs[n - 1, 1] += after[x, 1]
        else:
            runs[n, 0], runs[n, 1] = after[x, 0], after[x, 1]
            n += 1
    return n


def joined(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """The runs of two paths in sequence; runs of one operation that meet become one."""
    if len(before) and len(after) and before[-1, 0] == after[0, 0]:
        before = before.copy()
        before[-1, 1] += after[0, 1]
        after = after[1:]
    return np.concatenate((before, after))
