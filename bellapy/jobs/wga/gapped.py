"""Gapped alignments of two sequences from their anchors.

Anchors are taken in the order of their scores.  One that an earlier alignment passes through is left out: it would lead to
the same alignment once more.  The others are extended to both sides; earlier alignments are walls.  A second round takes the
anchors of weaker HSPs that lie close to an end of what the first round found.

In repeats every copy is like every other one.  Where copies are dropped later on, an anchor is left out if earlier
alignments span it on both sequences: what it leads to would be dropped.  The result depends on the order alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit
from bellapy.engines.ydrop.extend import Extender
from bellapy.engines.ydrop.sweep import Sides
from bellapy.engines.ydrop.walls import Walls, add_wall, first_free, no_walls
from bellapy.jobs.wga.cut import QUERY, SCORE, TARGET, find_parts, runs_of_part
from bellapy.params.wga import WgaParams
from bellapy.records.genomes import PAIR, QUERY_ALONE, TARGET_ALONE

CLOSE = 10_000
"""Bases from the end of an alignment, on both sequences, within which weaker HSPs count too."""


class Spanned:
    """Bases of two sequences that alignments span; n_left_out : anchors that were left out for that."""

    def __init__(self, target: np.ndarray, query: np.ndarray):
        self.target, self.query, self.n_left_out = np.zeros(len(target), np.bool_), np.zeros(len(query), np.bool_), 0

    def add(self, part: Part) -> None:
        begin, end = _ends(part)
        self.target[begin[0] : end[0]] = True
        self.query[begin[1] : end[1]] = True

    def leaves_out(self, t: int, q: int) -> bool:
        """Whether the anchor at t and q is left out, which is counted."""
        both = bool(self.target[t] and self.query[q])
        self.n_left_out += both
        return both


class Anchors(NamedTuple):
    """target, query : (n,) int64 places.  score : (n,) int64, of the HSP."""

    target: np.ndarray
    query: np.ndarray
    score: np.ndarray

    def take(self, rows: np.ndarray) -> Anchors:
        return Anchors(*(column[rows] for column in self))

    def ordered(self) -> Anchors:
        """By falling score, then by target place, then by query place."""
        return self.take(np.lexsort((self.query, self.target, -self.score)))


class Part(NamedTuple):
    """An alignment: score, places of the first pair, runs as in `Alignment`."""

    score: int
    target: int
    query: int
    runs: np.ndarray


class Aligner:
    """Aligns pairs of sequences; not to be used by two threads at once.

    n_extended : anchors that were extended.  n_left_out : left out in repeats.  n_cells : computed.
    """

    def __init__(self, params: WgaParams):
        self.params, self.n_extended, self.n_left_out = params, 0, 0
        self.extender = Extender(params.scores, params.ydrop)
        self.costs = (params.scores.matrix, params.scores.open, params.scores.extend)

    @property
    def n_cells(self) -> int:
        return self.extender.n_cells

    def align(self, target: np.ndarray, query: np.ndarray, anchors: Anchors, *, same: bool = False) -> list[Part]:
        """All alignments of two sequences, uint8 codes, in the order in which they are found.

        same : the two are one, and its alignment with itself is a wall from the beginning.
        """
        strong = (anchors.score >= self.params.hspthresh) | self.params.sensitive
        walls = no_walls(len(target) + len(query))
        if same:
            walls = add_wall(walls, 0, 0, np.array([(PAIR, len(target))], np.int64))
        spanned = None if self.params.all_copies or self.params.itself else Spanned(target, query)
        parts, walls = self._round(target, query, anchors.take(strong).ordered(), walls, spanned)
        weak = anchors.take(~strong)
        if parts and len(weak.score):
            ends = np.array([end for part in parts for end in _ends(part)], np.int64)
            ends = ends[np.argsort(ends[:, 0], kind="stable")]
            weak = weak.take(are_close(weak.target, weak.query, ends, CLOSE))
            parts += self._round(target, query, weak.ordered(), walls, spanned)[0]
        self.n_left_out += spanned.n_left_out if spanned else 0
        return parts

    def _round(
        self, target, query, anchors: Anchors, walls: Walls, spanned: Spanned | None
    ) -> tuple[list[Part], Walls]:  # fmt: skip
        parts, x = [], 0
        while (x := first_free(walls, anchors.query, anchors.target, x)) < len(anchors.score):
            at = int(anchors.target[x]), int(anchors.query[x])
            x += 1
            if spanned and spanned.leaves_out(*at):
                continue
            t, q, runs = self._extend(target, query, *at, walls)
            for part in self._parts(target, query, t, q, runs):
                parts.append(part)
                if spanned:
                    spanned.add(part)
                walls = add_wall(walls, part.query, part.target, part.runs)
        return parts, walls

    def _extend(self, target, query, t: int, q: int, walls: Walls) -> tuple[int, int, np.ndarray]:
        """The path through an anchor: places of its first base, runs."""
        self.n_extended += 1
        left = Sides(query, target, q, t, -1, q + 1, t + 1)
        right = Sides(query, target, q + 1, t + 1, 1, len(query) - q - 1, len(target) - t - 1)
        runs = [self.extender.path(side, walls, self.extender.inspect(side, walls)) for side in (left, right)]
        before = runs[0]
        t_start = t + 1 - int(before[before[:, 0] != QUERY_ALONE, 1].sum())
        q_start = q + 1 - int(before[before[:, 0] != TARGET_ALONE, 1].sum())
        return t_start, q_start, joined(before, runs[1][::-1])

    def _parts(self, target, query, t: int, q: int, runs: np.ndarray) -> list[Part]:
        found = find_parts(target, query, t, q, runs, self.costs, self.params.cut_drop, self.params.gappedthresh)
        return [Part(int(part[SCORE]), int(part[TARGET]), int(part[QUERY]), runs_of_part(runs, part)) for part in found]


def joined(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """The runs of two paths in sequence; runs of one operation that meet become one."""
    if len(before) and len(after) and before[-1, 0] == after[0, 0]:
        before = before.copy()
        before[-1, 1] += after[0, 1]
        after = after[1:]
    return np.concatenate((before, after))


def _ends(part: Part) -> list[tuple[int, int]]:
    """Target and query places of both ends."""
    operation, size = part.runs[:, 0], part.runs[:, 1]
    t_end = part.target + int(size[operation != QUERY_ALONE].sum())
    q_end = part.query + int(size[operation != TARGET_ALONE].sum())
    return [(part.target, part.query), (t_end, q_end)]


@njit
def are_close(target, query, ends, most):
    """Which places, (n,) int64, have one of `ends`, (m, 2) int64 sorted by target, within `most` on both sequences."""
    close = np.zeros(len(target), np.bool_)
    for x in range(len(target)):
        at = np.searchsorted(ends[:, 0], target[x] - most)
        while at < len(ends) and ends[at, 0] <= target[x] + most:
            if abs(ends[at, 1] - query[x]) <= most:
                close[x] = True
                break
            at += 1
    return close
