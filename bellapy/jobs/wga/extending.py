"""Extensions of anchors, side by side where there are threads, and anchors that lead to no alignment."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from threading import local
from typing import NamedTuple, TypeVar

import numpy as np

from bellapy.compute.jit import njit
from bellapy.compute.threads import even_ranges
from bellapy.engines.ydrop.extend import BLOCK, NEVER, Extender, trace_known
from bellapy.engines.ydrop.foresight import Foresight
from bellapy.engines.ydrop.sweep import Sides
from bellapy.engines.ydrop.walls import no_walls
from bellapy.jobs.wga.cut import QUERY, SCORE, TARGET, find_parts, runs_between, runs_of_part
from bellapy.jobs.wga.kept import Part
from bellapy.jobs.wga.scene import Scene
from bellapy.params.wga import WgaParams
from bellapy.records.genomes import QUERY_ALONE, TARGET_ALONE

PIECES = 8  # of the anchors that are judged, for each thread
Item = TypeVar("Item")
Result = TypeVar("Result")


class Wanted(NamedTuple):
    """An anchor to be extended, by its target and query place.

    ends, last : on the left and on the right the anti-diagonal of the end, NEVER if it is not known, and the last one that
    was looked at to know it.
    """

    target: int
    query: int
    ends: tuple[int, int] = (NEVER, NEVER)
    last: tuple[int, int] = (0, 0)


class Outcome(NamedTuple):
    """What an anchor leads to.

    last : anti-diagonals looked at on the left and on the right.  n_walls : pieces of walls that were there.  n_cells :
    computed.
    """

    parts: list[Part]
    last: tuple[int, int]
    n_walls: int
    n_cells: int


class Extending:
    """Extends anchors of two sequences.

    pool : of `threads` threads; None: the caller's own thread does all.
    """

    def __init__(self, params: WgaParams, pool: Executor | None = None, threads: int = 1):
        self.params, self.pool, self.threads = params, pool, threads
        self.costs = (params.scores.matrix, params.scores.open, params.scores.extend)
        self._own = local()

    def _extender(self) -> Extender:
        """That of the thread."""
        if not hasattr(self._own, "extender"):
            self._own.extender = Extender(self.params.scores, self.params.ydrop)
        return self._own.extender

    def _map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        return list((self.pool.map if self.pool else map)(function, items))

    def extend(self, scene: Scene, wanted: list[Wanted]) -> list[Outcome]:
        """What each of the anchors leads to, all with the walls that are there now."""
        target, query, walls = scene.target, scene.query, scene.walls

        def path(side: tuple[Sides, int]) -> tuple[np.ndarray, int, int]:
            """Runs from the end back to the anchor, last anti-diagonal, cells."""
            extender = self._extender()
            before = extender.n_cells
            end = extender.inspect(side[0], walls, side[1])
            return extender.path(side[0], walls, end), end.last, extender.n_cells - before

        sides = []
        for t, q, (left, right), _ in wanted:
            sides.append((Sides(query, target, q, t, -1, q + 1, t + 1), left))
            sides.append((Sides(query, target, q + 1, t + 1, 1, len(query) - q - 1, len(target) - t - 1), right))
        paths, outcomes = self._map(path, sides), []
        for one, (before, left, cells), (after, right, more) in zip(wanted, paths[::2], paths[1::2], strict=True):
            last = max(left, one.last[0]), max(right, one.last[1])
            outcomes.append(Outcome(self._parts(scene, one, before, after), last, int(walls.used[0]), cells + more))
        return outcomes

    def _parts(self, scene: Scene, anchor: Wanted, before: np.ndarray, after: np.ndarray) -> list[Part]:
        """Alignments from the paths on both sides, each from its end back to the anchor."""
        t = anchor.target + 1 - int(before[before[:, 0] != QUERY_ALONE, 1].sum())
        q = anchor.query + 1 - int(before[before[:, 0] != TARGET_ALONE, 1].sum())
        runs = joined(before, after[::-1])
        found = find_parts(scene.target, scene.query, t, q, runs, self.costs, self.params.cut_drop, self.params.gappedthresh)
        falls = [runs[:0], *(runs_between(runs, *some) for some in zip(found, found[1:], strict=False))]
        return [
            Part(int(part[SCORE]), int(part[TARGET]), int(part[QUERY]), runs_of_part(runs, part), fall)
            for part, fall in zip(found, falls, strict=False)
        ]

    def find_poor(self, scene: Scene, t: np.ndarray, q: np.ndarray, foresight: Foresight) -> np.ndarray:
        """Which anchors, (n,) int64 places, are known to lead to no alignment where no wall is near, (n,) bool.

        A part of the path that spans the anchor scores no more than both sides together.  One that does not has no more
        anti-diagonals than its side.  Where that does not tell, the path is computed.
        """
        least = self.params.gappedthresh
        poor = foresight.known & (foresight.score.sum(axis=1) < least)
        short = 2 * (-(-least // max(1, int(self.params.scores.matrix.max()))))
        unsure = np.flatnonzero(poor & (foresight.r.max(axis=1, initial=0) >= short))
        walls, limits = no_walls(0), (self.params.cut_drop, least)

        def judge(piece: tuple[int, int]) -> None:
            rows, extender = unsure[piece[0] : piece[1]], self._extender()
            scratch = extender.rows, extender.kept, extender.trace
            poor[rows] = are_poor(
                scratch, (scene.target, scene.query), t[rows], q[rows], foresight.r[rows], extender.rule, walls, self.costs,
                limits,
            )  # fmt: skip

        self._map(judge, even_ranges(len(unsure), PIECES * self.threads) if len(unsure) else [])
        return poor


@njit
def are_poor(scratch, texts, t, q, ends, rule, walls, costs, limits):
    """Which anchors have paths without a part that is an alignment, (n,) bool.

    scratch : as in `trace_known`.  texts : uint8 codes of target and query.  t, q : (n,) int64.  ends : (n, 2) int64,
    anti-diagonals of the ends on both sides; of long paths nothing is told.  rule : sweep.Rule.  walls : none.
    costs : as in `find_parts`.  limits : fall of the score where a path is cut, least score of an alignment.
    """
    target, query = texts
    drop, least = limits
    poor = np.zeros(len(t), np.bool_)
    before, after, runs = (
        np.empty((BLOCK, 2), np.int64),
        np.empty((BLOCK, 2), np.int64),
        np.empty((2 * BLOCK, 2), np.int64),
    )
    for x in range(len(t)):
        a, b = q[x], t[x]
        if max(ends[x, 0], ends[x, 1]) > BLOCK:
            continue
        n = trace_known(scratch, Sides(query, target, a, b, -1, a + 1, b + 1), rule, walls, ends[x, 0], before)
        right = Sides(query, target, a + 1, b + 1, 1, len(query) - a - 1, len(target) - b - 1)
        m = trace_known(scratch, right, rule, walls, ends[x, 1], after)
        if n < 0 or m < 0:
            continue
        t_start, q_start = b + 1, a + 1
        for y in range(n):
            runs[y] = before[y]
            t_start -= before[y, 1] if before[y, 0] != QUERY_ALONE else 0
            q_start -= before[y, 1] if before[y, 0] != TARGET_ALONE else 0
        for y in range(m - 1, -1, -1):
            if n > 0 and runs[n - 1, 0] == after[y, 0]:
                runs[n - 1, 1] += after[y, 1]
            else:
                runs[n] = after[y]
                n += 1
        poor[x] = len(find_parts(target, query, t_start, q_start, runs[:n], costs, drop, least)) == 0
    return poor


def joined(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """The runs of two paths in sequence; runs of one operation that meet become one."""
    if len(before) and len(after) and before[-1, 0] == after[0, 0]:
        before = before.copy()
        before[-1, 1] += after[0, 1]
        after = after[1:]
    return np.concatenate((before, after))
