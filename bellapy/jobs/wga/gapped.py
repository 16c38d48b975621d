"""Gapped alignments of two sequences from their anchors.

Anchors are taken in the order of their scores.  One that an earlier alignment passes through is left out: it would lead to
the same alignment once more.  The others are extended to both sides; earlier alignments are walls.  A second round takes the
anchors of weaker HSPs that lie close to an end of what the first round found.

In repeats every copy is like every other one.  Where copies are dropped later on, an anchor is left out if earlier
alignments span it on both sequences: what it leads to would be dropped.  The result depends on the order alone: what a GPU
foresees saves time, and changes nothing.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit
from bellapy.compute.resources import Resources
from bellapy.engines.ydrop.extend import NEVER, Extender
from bellapy.engines.ydrop.foresight import foresee
from bellapy.engines.ydrop.sweep import Sides
from bellapy.engines.ydrop.walls import Walls, add_wall, is_clear, no_walls, on_wall
from bellapy.jobs.wga.cut import QUERY, SCORE, TARGET, find_parts, runs_of_part
from bellapy.jobs.wga.kept import NOWHERE, Keeper, Part, Progress
from bellapy.params.wga import WgaParams
from bellapy.records.genomes import PAIR, QUERY_ALONE, TARGET_ALONE

CLOSE = 10_000
"""Bases from the end of an alignment, on both sequences, within which weaker HSPs count too."""


class Spanned(NamedTuple):
    """Bases of two sequences that alignments span, (n,) bool each; no bases at all where anchors are not left out."""

    target: np.ndarray
    query: np.ndarray

    def add(self, part: Part) -> None:
        begin, end = _ends(part)
        self.target[begin[0] : end[0]] = True
        self.query[begin[1] : end[1]] = True


CPU = Resources()


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


class Scene:
    """Two sequences while they are aligned: walls, what is spanned, and how far the alignment is."""

    def __init__(self, target: np.ndarray, query: np.ndarray, *, same: bool, leave_out: bool):
        self.target, self.query, self.parts, self.n_first = target, query, list[Part](), -1
        self.walls = no_walls(len(target) + len(query))
        if same:
            self.walls = add_wall(self.walls, 0, 0, np.array([(PAIR, len(target))], np.int64))
        self.spanned = Spanned(*(np.zeros(len(text) if leave_out else 0, np.bool_) for text in (target, query)))
        self.n_extended = self.n_left_out = 0

    def go_on(self, progress: Progress) -> None:
        """Take over what a stopped run has found."""
        for part in progress.parts:
            self.add(part)
        self.n_first, self.n_extended, self.n_left_out = progress.n_first, progress.n_extended, progress.n_left_out

    def add(self, part: Part) -> None:
        self.parts.append(part)
        if len(self.spanned.target):
            self.spanned.add(part)
        self.walls = add_wall(self.walls, part.query, part.target, part.runs)

    def progress(self, at: int, n_cells: int) -> Progress:
        return Progress(self.parts, self.n_first, at, self.n_extended, self.n_left_out, n_cells)


class Aligner:
    """Aligns pairs of sequences; not to be used by two threads at once.

    beside : threads that have nothing else to do; the two sides of an anchor are extended at the same time.
    """

    def __init__(self, params: WgaParams, resources: Resources = CPU, beside: Executor | None = None):
        self.params, self.resources, self.beside = params, resources, beside
        self.extenders = Extender(params.scores, params.ydrop), Extender(params.scores, params.ydrop)
        self.costs = (params.scores.matrix, params.scores.open, params.scores.extend)

    def align(
        self, target: np.ndarray, query: np.ndarray, anchors: Anchors, *, same: bool = False, keeper: Keeper = NOWHERE
    ) -> Progress:
        """All alignments of two sequences, uint8 codes, in the order in which they are found.

        same : the two are one, and its alignment with itself is a wall from the beginning.  keeper : has what a stopped run
        found, and is given the rest.
        """
        scene = Scene(target, query, same=same, leave_out=not (self.params.all_copies or self.params.itself))
        done = keeper.load()
        scene.go_on(done)
        self.extenders[0].n_cells, self.extenders[1].n_cells = done.n_cells, 0
        strong = (anchors.score >= self.params.hspthresh) | self.params.sensitive
        at = done.at
        if scene.n_first < 0:
            self._round(scene, anchors.take(strong).ordered(), at, keeper)
            scene.n_first, at = len(scene.parts), 0
        weak, first = anchors.take(~strong), scene.parts[: scene.n_first]
        if first and len(weak.score):
            ends = np.array([end for part in first for end in _ends(part)], np.int64)
            ends = ends[np.argsort(ends[:, 0], kind="stable")]
            weak = weak.take(are_close(weak.target, weak.query, ends, CLOSE))
            at = self._round(scene, weak.ordered(), at, keeper)
        progress = scene.progress(at, self._n_cells())
        keeper.save(progress)
        return progress

    def _round(self, scene: Scene, anchors: Anchors, x: int, keeper: Keeper) -> int:
        """Extend anchors from number x on; returns how many there are."""
        params, t, q = self.params, anchors.target, anchors.query
        foresight = foresee((scene.target, scene.query), t, q, params.scores, params.ydrop, self.resources)
        least = params.gappedthresh
        short = 2 * (-(-least // max(1, int(params.scores.matrix.max()))))
        while True:
            x, n_left_out, n_poor = next_anchor(scene.walls, q, t, x, scene.spanned, foresight, (least, short))
            scene.n_left_out, scene.n_extended = scene.n_left_out + n_left_out, scene.n_extended + n_poor
            if x == len(t):
                return x
            scene.n_extended += 1
            ends = NEVER, NEVER
            if foresight.known[x] and is_free(scene.walls, q[x], t[x], *foresight.last[x]):
                ends = int(foresight.r[x, 0]), int(foresight.r[x, 1])
            for part in self._parts(scene, *self._extend(scene, int(t[x]), int(q[x]), ends)):
                scene.add(part)
            x += 1
            if keeper.is_due():
                keeper.save(scene.progress(x, self._n_cells()))

    def _extend(self, scene: Scene, t: int, q: int, ends: tuple[int, int]) -> tuple[int, int, np.ndarray]:
        """The path through an anchor: places of its first base, runs.  ends : anti-diagonals, as far as they are known."""
        target, query, walls = scene.target, scene.query, scene.walls
        left = Sides(query, target, q, t, -1, q + 1, t + 1)
        right = Sides(query, target, q + 1, t + 1, 1, len(query) - q - 1, len(target) - t - 1)
        if self.beside and max(ends) == NEVER:
            coming = self.beside.submit(_path, self.extenders[0], left, walls, ends[0])
            after = _path(self.extenders[1], right, walls, ends[1])
            before = coming.result()
        else:
            before, after = (
                _path(*some) for some in zip(self.extenders, (left, right), (walls, walls), ends, strict=True)
            )  # fmt: skip
        t_start = t + 1 - int(before[before[:, 0] != QUERY_ALONE, 1].sum())
        q_start = q + 1 - int(before[before[:, 0] != TARGET_ALONE, 1].sum())
        return t_start, q_start, joined(before, after[::-1])

    def _n_cells(self) -> int:
        return sum(extender.n_cells for extender in self.extenders)

    def _parts(self, scene: Scene, t: int, q: int, runs: np.ndarray) -> list[Part]:
        found = find_parts(scene.target, scene.query, t, q, runs, self.costs, self.params.cut_drop, self.params.gappedthresh)
        return [Part(int(part[SCORE]), int(part[TARGET]), int(part[QUERY]), runs_of_part(runs, part)) for part in found]


def _path(extender: Extender, side: Sides, walls: Walls, until: int) -> np.ndarray:
    """The runs of one side, from its end back to the anchor."""
    return extender.path(side, walls, extender.inspect(side, walls, until))


@njit
def is_free(walls, q, t, left, right):
    """`is_clear` for callers that are not compiled."""
    return is_clear(walls, q, t, left, right)


@njit
def next_anchor(walls, q, t, begin, spanned, foresight, bounds):
    """The first anchor, of places q and t, (n,) int64, from `begin` on that has to be extended, n if there is none; how many
    were left out, and how many are known to give no alignment.

    Those on walls are passed over.  spanned : Spanned.  bounds : least score of an alignment; the anti-diagonals that one
    has at least.  A part of the path that spans the anchor scores no more than both sides together.  One that does not has
    no more anti-diagonals than its side.
    """
    least, short = bounds
    n_left_out = n_poor = 0
    for x in range(begin, len(q)):
        if on_wall(walls, q[x], t[x]):
            continue
        if len(spanned.target) and spanned.target[t[x]] and spanned.query[q[x]]:
            n_left_out += 1
            continue
        score, r, last = foresight.score[x], foresight.r[x], foresight.last[x]
        is_poor = foresight.known[x] and score[0] + score[1] < least and max(r[0], r[1]) < short
        if is_poor and is_clear(walls, q[x], t[x], last[0], last[1]):
            n_poor += 1
            continue
        return x, n_left_out, n_poor
    return len(q), n_left_out, n_poor


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
