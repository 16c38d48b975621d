"""Gapped alignments of two genomes from their anchors.

Anchors are taken in the order of their support: their score, or that of the seeds around them.  One that an earlier
alignment passes through is left out: it would lead to the same alignment once more.  The others are extended to both sides;
earlier alignments are walls.  A second round takes the anchors of weaker HSPs that lie close to an end of what the first
round found.

In repeats every copy is like every other one.  Where copies are dropped later on, an anchor is left out if earlier
alignments span it on both genomes, whatever their sequences and strands: what it leads to would be dropped.  If they span it
on one genome, it waits until all anchors had their turn.  By then the other copy has an alignment too, as a rule, with one
that had none.

The result depends on the order alone.  Threads extend anchors ahead of their turn, with the walls that are there then.  This
holds if no wall was added since where the extension has been; otherwise the anchor is extended once more.  Of anchors that
are likely to lie on one path, as their limits or places tell, only the first is extended ahead.  What a GPU foresees saves
time likewise, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_inner
from bellapy.compute.resources import Resources
from bellapy.engines.ydrop.foresight import Foresight, foresee
from bellapy.engines.ydrop.walls import is_clear, on_wall
from bellapy.jobs.wga.extending import Extending, Outcome, Wanted, unforeseen
from bellapy.jobs.wga.kept import NOTHING, NOWHERE, Keeper, Part, Progress
from bellapy.jobs.wga.scene import Anchors, Scene, Sequences, ends_of, stretch_around
from bellapy.jobs.wga.select import scored
from bellapy.params.wga import WgaParams
from bellapy.records.genomes import Alignment

CLOSE = 10_000
"""Bases from the end of an alignment, on both sequences, within which weaker HSPs count too."""
AHEAD, FAR_AHEAD = 4, 32
"""Anchors for each thread that are extended at a time.  More of those whose limits tell that they lead to paths of their
own; and without a filter, where nearly all of them lead nowhere, and soon.
"""
SCANNED = 1 << 18  # turns that are gone through for anchors to be extended ahead
TURNS = 2
"""Of each anchor."""
PASSED, LEFT_OUT, WAITS, POOR, DUE = range(5)
"""What an anchor's turn brings: none, for it is on a wall or had its turn; DUE: it has to be extended."""

CPU = Resources()


class Round(NamedTuple):
    """Anchors in order, and what is known of them."""

    anchors: Anchors
    foresight: Foresight


class Aligner:
    """Aligns genomes; not to be used by two threads at once.

    pool : of as many threads as resources tells, for anchors ahead of their turn; None: there are none.
    """

    def __init__(self, params: WgaParams, resources: Resources = CPU, pool: Executor | None = None):
        self.params, self.resources = params, resources
        self.extending = Extending(params, pool, resources.threads)
        few = FAR_AHEAD if params.sensitive else AHEAD
        self.n_ahead = (few * resources.threads, FAR_AHEAD * resources.threads) if pool else (1, 1)

    def align(
        self, sequences: Sequences, anchors: Anchors, *, same: bool = False, trims: bool = False, keeper: Keeper = NOWHERE,
        begun: Progress = NOTHING, advance: Callable[[int], None] = lambda turns: None,
    ) -> Progress:  # fmt: skip
        """All alignments, in the order in which they are found.

        same, trims : as in Scene.  keeper : has what a stopped run found, and is given the rest.  begun : alignments of an
        earlier pass.  advance : is told how many turns of each round there were.
        """
        scene = Scene(sequences, same=same, trims=trims, leave_out=not (self.params.all_copies or self.params.itself))
        done = keeper.load() or begun
        scene.go_on(done)
        strong = (anchors.score >= self.params.hspthresh) | self.params.sensitive
        at = done.at
        if scene.n_first < 0:
            self._round(scene, anchors.take(strong).ordered(), at, keeper, advance)
            scene.n_first, at = len(scene.parts), 0
        weak, first = anchors.take(~strong), scene.parts[: scene.n_first]
        if first and len(weak.score):
            t, q = np.array([end for part in first for end in ends_of(part)], np.int64).T
            # the place behind the last base of a sequence counts as one of this sequence
            ends = np.stack((t, q, sequences.pairs(t, q)), axis=1)[np.argsort(t, kind="stable")]
            pairs = sequences.pairs(weak.target, weak.query)
            weak = weak.take(are_close(weak.target, weak.query, pairs, ends, CLOSE))
            at = self._round(scene, weak.ordered(), at, keeper, advance)
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
        some, ahead = Round(anchors, foresight), dict[int, Outcome]()
        if x == 0:
            scene.waits = np.zeros(len(t), np.bool_)
        while True:
            x, n_left_out, n_poor = next_anchor(scene.walls, q, t, x, scene.spanned, scene.waits, foresight)
            scene.n_left_out, scene.n_extended = scene.n_left_out + n_left_out, scene.n_extended + n_poor
            if x == TURNS * len(t):
                return x
            outcome, at = ahead.get(x), x % len(t)
            if outcome is None or not is_free(scene.walls, q[at], t[at], outcome.region, outcome.n_walls):
                ahead = self._look_ahead(scene, some, x, ahead)
                outcome = ahead[x]
            parts = [some for part in outcome.parts for some in self._free(scene, part, t[at], x < len(t))]
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

    def _look_ahead(self, scene: Scene, some: Round, x: int, ahead: dict[int, Outcome]) -> dict[int, Outcome]:
        """What the anchor of turn x leads to, and others that may have to be extended soon; ahead : known already."""
        t, q = some.anchors.target, some.anchors.query
        held = {
            turn: outcome for turn, outcome in ahead.items()
            if turn > x and is_free(scene.walls, q[turn % len(t)], t[turn % len(t)], outcome.region, outcome.n_walls)
        }  # fmt: skip
        path = some.anchors.path
        turns = next_anchors(scene.walls, q, t, path, x, self.n_ahead, scene.spanned, scene.waits.copy(), some.foresight)
        numbers = [turn for turn in turns.tolist() if turn not in held]
        return held | dict(zip(numbers, self.extending.extend(scene, self._wanted(scene, some, numbers)), strict=True))

    def _wanted(self, scene: Scene, some: Round, numbers: list[int]) -> Wanted:
        """The anchors of some turns, with their ends if they are known and hold."""
        t, q, foresight = some.anchors.target, some.anchors.query, some.foresight
        rows = [number % len(t) for number in numbers]
        wanted = unforeseen(some.anchors.take(np.array(rows)))
        for row, x in enumerate(rows):
            if foresight.known[x] and is_known_free(scene.walls, q[x], t[x], foresight.last[x]):
                wanted.ends[row], wanted.last[row] = foresight.r[x], foresight.last[x]
        return wanted


@njit_inner
def around(last):
    """A region that holds all that is (2,) anti-diagonals away on the left and on the right."""
    most = max(last[0], last[1])
    return last[0], last[1], -most, most


@njit
def is_free(walls, q, t, region, since):
    """`is_clear` for callers that are not compiled."""
    return is_clear(walls, q, t, region, since)


@njit
def is_known_free(walls, q, t, last):
    """Likewise, for what was looked at without walls: (2,) anti-diagonals on the left and on the right."""
    return is_clear(walls, q, t, around(last), 0)


@njit_inner
def _brings(walls, q, t, turn, spanned, waits, foresight):
    """What a turn brings; arguments as in `next_anchor`."""
    x = turn % len(q)
    if turn >= len(q) and not waits[x] or on_wall(walls, q[x], t[x]):
        return PASSED
    n_spanned = 0
    if len(spanned.target):
        half = len(spanned.query)
        n_spanned = np.int64(spanned.target[t[x]]) + np.int64(spanned.query[q[x] if q[x] < half else 2 * half - 1 - q[x]])
    if n_spanned == 2:
        return LEFT_OUT
    if n_spanned == 1 and turn < len(q):
        return WAITS
    if foresight.poor[x] and is_clear(walls, q[x], t[x], around(foresight.last[x]), 0):
        return POOR
    return DUE


@njit
def next_anchor(walls, q, t, begin, spanned, waits, foresight):
    """The first turn from `begin` on whose anchor, of places q and t, (n,) int64, has to be extended, TURNS n if there is
    none; how many anchors were left out, and how many are known to give no alignment.

    Turns x and x + n are those of anchor x.  Those on walls are passed over.  spanned : Spanned.  waits : (n,) bool, which
    anchors wait for their second turn; gets those that do from now on.
    """
    n_left_out = n_poor = 0
    for turn in range(begin, TURNS * len(q)):
        brings = _brings(walls, q, t, turn, spanned, waits, foresight)
        if brings == DUE:
            return turn, n_left_out, n_poor
        if brings == WAITS:
            waits[turn] = True
        n_left_out += brings == LEFT_OUT
        n_poor += brings == POOR
    return TURNS * len(q), n_left_out, n_poor


@njit
def next_anchors(walls, q, t, path, begin, most, spanned, waits, foresight):
    """Turns from `begin` on, (m,) int64, whose anchors may have to be extended, each likely to lead to a path of its own.

    most : turns before one whose anchor has no limits of its own, and in all.  path : as in Anchors; other arguments as in
    `next_anchor`.
    """
    turns, n = np.empty(most[1], np.int64), 0
    found = set(path[:0])
    for turn in range(begin, min(begin + SCANNED, TURNS * len(q))):
        x = turn % len(q)
        if n >= most[np.int64(path[x] >= 0)]:
            break
        if path[x] in found:
            continue
        brings = _brings(walls, q, t, turn, spanned, waits, foresight)
        if brings == WAITS:
            waits[x] = True
        if brings == DUE:
            found.add(path[x])
            turns[n] = turn
            n += 1
    return turns[:n]


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
