"""Gapped alignments of two genomes from their anchors.

Anchors are taken in the order of their support: their score, or that of the seeds around them.  One that an earlier
alignment passes through is left out: it would lead to the same alignment once more.  The others are extended to both sides;
earlier alignments are walls.  A second round takes the anchors of weaker HSPs that lie close to an end of what the first
round found.

In repeats every copy is like every other one.  Where copies are dropped later on, an anchor is left out if earlier
alignments span it on both genomes, whatever their sequences and strands: what it leads to would be dropped.  If they span it
on one genome, it waits until all anchors had their turn.  By then the other copy has an alignment too, as a rule, with one
that had none.

The result depends on the order alone.  Threads extend anchors ahead of their turn (ahead.py), and what a GPU foresees saves
time likewise.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import closing

import numpy as np

from bellapy.compute.jit import njit
from bellapy.compute.resources import Resources
from bellapy.engines.ydrop.foresight import foresee
from bellapy.jobs.wga.ahead import Ahead
from bellapy.jobs.wga.extending import Extending
from bellapy.jobs.wga.kept import NOWHERE, Keeper, Part, Progress
from bellapy.jobs.wga.scene import Anchors, Scene, ends_of, stretch_around
from bellapy.jobs.wga.select import scored
from bellapy.jobs.wga.turns import TURNS, Turns, next_anchor
from bellapy.params.wga import WgaParams
from bellapy.records.genomes import Alignment

CLOSE = 10_000
"""Bases from the end of an alignment, on both sequences, within which weaker HSPs count too."""
AHEAD, FAR_AHEAD = 4, 32
"""Anchors for each thread that are held ahead of their turn.  More of those whose limits tell that they lead to paths of
their own; and without a filter, where nearly all of them lead nowhere, and soon.
"""

CPU = Resources()


class Aligner:
    """Aligns genomes; not to be used by two threads at once.

    pool : of as many threads as resources tells, for anchors ahead of their turn; None: there are none.
    """

    def __init__(self, params: WgaParams, resources: Resources = CPU, pool: Executor | None = None):
        self.params, self.resources, self.pool = params, resources, pool
        self.extending = Extending(params, pool, resources.threads)
        few = FAR_AHEAD if params.sensitive else AHEAD
        self.n_ahead = few * resources.threads, FAR_AHEAD * resources.threads

    def align(
        self, scene: Scene, anchors: Anchors, *, keeper: Keeper = NOWHERE,
        advance: Callable[[int], None] = lambda turns: None,
    ) -> Progress:  # fmt: skip
        """Alignments in the order in which they are found, behind those that the scene has.

        keeper : has what a stopped run found, and is given the rest.  advance : is told how many turns of each round there
        were.
        """
        sequences, done = scene.sequences, keeper.load() or Progress(scene.parts)
        scene.go_on(done)
        strong, at = (anchors.score >= self.params.hspthresh) | self.params.sensitive, done.at
        if scene.n_first < 0:
            self._round(scene, anchors.ordered(strong), at, keeper, advance)
            scene.n_first, at = len(scene.parts), 0
        weak, first = anchors.take(~strong), scene.parts[: scene.n_first]
        if first and len(weak.score):
            t, q = np.array([end for part in first for end in ends_of(part)], np.int64).T
            # the place behind the last base of a sequence counts as one of this sequence
            ends = np.stack((t, q, sequences.pairs(t, q)), axis=1)[np.argsort(t, kind="stable")]
            pairs = sequences.pairs(weak.target, weak.query)
            close = are_close(weak.target, weak.query, pairs, ends, CLOSE)
            at = self._round(scene, weak.ordered(close), at, keeper, advance)
        progress = scene.progress(at)
        keeper.save(progress)
        return progress

    def _round(
        self, scene: Scene, anchors: Anchors, x: int, keeper: Keeper, advance: Callable[[int], None]
    ) -> int:  # fmt: skip
        """Extend anchors from turn x on; returns how many turns there are."""
        t, q = anchors.target, anchors.query
        foresight = foresee(scene.sequences[:2], t, q, self.params.scores, self.params.ydrop, self.resources)
        foresight = foresight._replace(poor=self.extending.find_poor(scene, anchors, foresight))
        if x == 0:
            scene.waits = np.zeros(len(t), np.bool_)
        turns = Turns(q, t, anchors.path, scene.waits, np.zeros(len(t), np.bool_), foresight)
        with closing(Ahead(self.extending, scene, turns, anchors.limits, self.pool, self.n_ahead)) as ahead:
            while True:
                x, n_left_out, n_poor = next_anchor(scene.walls, scene.spanned, turns, x)
                scene.n_left_out, scene.n_extended = scene.n_left_out + n_left_out, scene.n_extended + n_poor
                if x == TURNS * len(t):
                    return x
                outcome = ahead.outcome(x)
                parts = [some for part in outcome.parts for some in self._free(scene, part, t[x % len(t)], x < len(t))]
                scene.take(parts, outcome.n_cells)
                x += 1
                advance(x)
                if keeper.is_due():
                    keeper.save(scene.progress(x))

    def _free(self, scene: Scene, part: Part, t: int, is_first: bool) -> list[Part]:
        """What of an alignment is left around its anchor where earlier ones span neither genome, or in the second turn not
        both; all of it where nothing is trimmed.

        t : the anchor's target place.  is_first : whether it is the first turn.
        """
        if not scene.trims or not scene.spanned.meets(part):
            return [part]
        at, least = (part.target, part.query), 1 if is_first else 2
        t_start, q_start, runs = stretch_around(at, part.runs, t, scene.spanned, least)
        if runs[:, 1].sum() == part.runs[:, 1].sum():
            return [part]
        left = Alignment(part.score, 0, 0, 1, t_start, q_start, runs)
        pieces = scored(left, scene.sequences[:2], self.params) if len(runs) else []
        return [Part(piece.score, piece.t_start, piece.q_start, piece.runs) for piece in pieces]


@njit
def are_close(target, query, pairs, ends, most):
    """Which places, (n,) int64, have one of `ends`, (m, 3) int64, within `most` on both sequences.

    pairs : (n,) int64, of sequences.  ends : target, query, pair, sorted by target.
    """
    close = np.zeros(len(target), np.bool_)
    for x in range(len(target)):
        at, behind = 0, len(ends)  # not np.searchsorted: its code takes longer to load than all else, and brings SciPy along
        while at < behind:
            middle = (at + behind) // 2
            if ends[middle, 0] < target[x] - most:
                at = middle + 1
            else:
                behind = middle
        while at < len(ends) and ends[at, 0] <= target[x] + most:
            if abs(ends[at, 1] - query[x]) <= most and ends[at, 2] == pairs[x]:
                close[x] = True
                break
            at += 1
    return close
