"""Anchors that other threads extend ahead of their turn.

Of anchors that are likely to lie on one path, as their limits or places tell, only the first is extended ahead: the others
are likely to lie on what it leads to.  Once its turn is over, the next one that lies on no wall follows.

An extension goes on with the walls that are there when it begins.  When paths are added where it has been, it is done once
more.  So what an anchor leads to depends on the order of turns alone.
"""

from __future__ import annotations

from concurrent.futures import Executor
from queue import PriorityQueue, SimpleQueue
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_inner
from bellapy.engines.ydrop.walls import FAR, box_of
from bellapy.jobs.wga.extending import Extending, Outcome, Wanted, unforeseen
from bellapy.jobs.wga.scene import Scene
from bellapy.jobs.wga.turns import DUE, Round, brings, is_due, is_free, is_known_free
from bellapy.seeding.sampling import MIXER

NOWHERE = FAR, -FAR, FAR, -FAR
"""A box, as of `box_of`, that meets none."""


class Paths(NamedTuple):
    """Anchors by path.

    after : (n,) int64, the next anchor of the same path, n for none.  heap : (n_paths,) int64, a heap of anchors, of each
    path the first one that has not been taken.  size : (1,) int64, of the heap.
    """

    after: np.ndarray
    heap: np.ndarray
    size: np.ndarray


def link_paths(path: np.ndarray, some: np.ndarray) -> Paths:
    """path : as in Anchors.  some : (n,) bool, the anchors that count."""
    after = np.full(len(path), len(path))
    firsts = np.sort(_link(path, some, after))
    return Paths(after, firsts, np.array([len(firsts)]))


@njit
def _link(path, some, after):
    """The first anchor of each path, in any order; the others into `after`."""
    table = np.full(_power_above(2 * len(path)), -1, np.int64)
    last, n = np.uint64(len(table) - 1), 0
    for x in range(len(path) - 1, -1, -1):
        if some[x]:
            at = np.uint64(path[x]) * MIXER >> np.uint64(32) & last
            while table[at] >= 0 and path[table[at]] != path[x]:
                at = at + np.uint64(1) & last
            if table[at] >= 0:
                after[x] = table[at]
            else:
                n += 1
            table[at] = x
    firsts, k = np.empty(n, np.int64), 0
    for x in table:
        if x >= 0:
            firsts[k] = x
            k += 1
    return firsts


@njit_inner
def _power_above(n):
    power = 1
    while power <= n:
        power *= 2
    return power


@njit_inner
def _push(heap, n, x):
    """Put x into a heap of n numbers."""
    at = n
    while at > 0 and heap[(at - 1) >> 1] > x:
        heap[at] = heap[(at - 1) >> 1]
        at = (at - 1) >> 1
    heap[at] = x


@njit_inner
def _pop(heap, n):
    """Take the smallest of n numbers out of a heap."""
    first, x, at, child = heap[0], heap[n - 1], 0, 1
    while child < n - 1:
        child += child + 1 < n - 1 and heap[child + 1] < heap[child]
        if heap[child] >= x:
            break
        heap[at] = heap[child]
        at, child = child, 2 * child + 1
    heap[at] = x
    return first


@njit
def next_due(paths, path, over, begin, most, walls, q, t, spanned, waits, foresight):
    """Turns behind `begin`, (m,) int64, whose anchors may have to be extended, one of each path, and are taken from `paths`.

    path : as in Anchors.  over : (k,) int64, turns that were taken, and are over: the next anchors of their paths may be
    taken.  most : turns before one whose anchor has no limits of its own, and in all.  Other arguments as in `next_anchor`.
    """
    n, n_turns, second = len(q), 0, begin - begin % len(q)
    turns = np.empty(max(0, most[1]), np.int64)
    for turn in over:
        x = paths.after[turn % n]
        if x < n:
            _push(paths.heap, paths.size[0], x)
            paths.size[0] += 1
    while paths.size[0] and n_turns < most[np.int64(path[paths.heap[0]] >= 0)]:
        x = _pop(paths.heap, paths.size[0])
        paths.size[0] -= 1
        if x + second > begin and brings(walls, q, t, x + second, spanned, waits, foresight) == DUE:
            turns[n_turns] = x + second
            n_turns += 1
            continue
        x = paths.after[x]
        while x < n and (x + second <= begin or brings(walls, q, t, x + second, spanned, waits, foresight) != DUE):
            x = paths.after[x]
        if x < n:
            _push(paths.heap, paths.size[0], x)
            paths.size[0] += 1
    return turns[:n_turns]


class Held:
    """A turn that was begun.  slot : a number that no other one has.  n_walls : pieces of walls there were then.

    outcome : None until it is known.
    """

    __slots__ = ("n_walls", "outcome", "slot")

    def __init__(self, slot: int):
        self.slot, self.n_walls = slot, 0
        self.outcome: Outcome | None = None


class Ahead:
    """What the anchors of a round lead to.

    pool : of threads that extend anchors ahead of their turn; None: there are none.  most : anchors that are held, as of
    `next_due`.
    """

    def __init__(self, extending: Extending, scene: Scene, some: Round, pool: Executor | None, most: tuple[int, int]):
        self.extending, self.scene, self.some, self.pool, self.most = extending, scene, some, pool, most
        self._held, self._n_checked = dict[int, Held](), scene.walls.used  # by turn; pieces of walls that it is checked for
        n = most[1] + 1
        self._free, self._turns, self._boxes = [*range(n)], np.zeros(n, np.int64), np.tile(np.array(NOWHERE), (n, 1))
        self._over, self._sweep = list[int](), -1
        self._waiting, self._wanted = PriorityQueue[int](), dict[int, Wanted]()
        self._ended = SimpleQueue[tuple[int, Outcome | BaseException]]()

    def outcome(self, turn: int) -> Outcome:
        """What the anchor of a turn leads to with the walls that are there now.  Turns come in order."""
        if self.pool is None:
            return self.extending.extend(self.scene, self._want(turn))[0]
        self._look_again()
        self._begin_until(turn)
        while (outcome := self._held[turn].outcome) is None:
            self._note(*self._ended.get())
        return outcome

    def close(self) -> None:
        """Leave what no thread has begun."""
        self._wanted.clear()

    def _look_again(self) -> None:
        """Begin again where walls have been added, and take what has ended."""
        first, last, low, high = box_of(self.scene.walls, self._n_checked)
        boxes, n_checked = self._boxes, self._n_checked
        meets = (boxes[:, 0] <= last) & (boxes[:, 1] >= first) & (boxes[:, 2] <= high) & (boxes[:, 3] >= low)
        self._n_checked = self.scene.walls.used
        for turn in self._turns[meets].tolist():
            self._check(turn, n_checked)
        while not self._ended.empty():
            self._note(*self._ended.get())

    def _begin_until(self, turn: int) -> None:
        """Begin a turn, and others behind it, as far as there is room."""
        anchors, scene = self.some.anchors, self.scene
        for past in [held for held in self._held if held < turn]:
            self._end(past)
        if turn // len(scene.waits) != self._sweep:
            self._sweep, self._over = turn // len(scene.waits), []
            self._paths = link_paths(anchors.path, scene.waits if self._sweep else np.arange(len(scene.waits)) >= turn)
        if turn not in self._held:
            self._begin(turn)
        over, most = np.array(self._over, np.int64), [most - len(self._held) for most in self.most]
        self._over = []
        for other in next_due(
            self._paths, anchors.path, over, turn, (most[0], most[1]), scene.walls, anchors.query, anchors.target,
            scene.spanned, scene.waits, self.some.foresight,
        ).tolist():  # fmt: skip
            if other not in self._held:
                self._begin(other)

    def _begin(self, turn: int) -> None:
        if turn not in self._held:
            self._held[turn] = Held(self._free.pop())
        held = self._held[turn]
        held.outcome, held.n_walls = None, self.scene.walls.used
        self._turns[held.slot], self._boxes[held.slot] = turn, NOWHERE
        self._wanted[turn] = self._want(turn)
        self._waiting.put(turn)
        if self.pool:
            self.pool.submit(self._work)

    def _end(self, turn: int) -> None:
        """A turn is over, or brings nothing any more."""
        slot = self._held.pop(turn).slot
        self._boxes[slot] = NOWHERE
        self._free.append(slot)
        self._over.append(turn)

    def _want(self, turn: int) -> Wanted:
        """The anchor of a turn, with its ends if they are known and hold."""
        anchors, foresight, x = self.some.anchors, self.some.foresight, turn % len(self.scene.waits)
        t, q, one = anchors.target, anchors.query, slice(x, x + 1)
        if foresight.known[x] and is_known_free(self.scene.walls, q[x], t[x], foresight.last[x]):
            return Wanted(t[one], q[one], anchors.limits[one], foresight.r[one], foresight.last[one])
        return unforeseen(t[one], q[one], anchors.limits[one])

    def _work(self) -> None:
        """Extend the first anchor that waits; for a thread of the pool."""
        turn = self._waiting.get()
        wanted = self._wanted.pop(turn, None)
        if wanted is None:
            return
        try:
            self._ended.put((turn, self.extending.extend(self.scene, wanted)[0]))
        except BaseException as error:
            self._ended.put((turn, error))

    def _note(self, turn: int, outcome: Outcome | BaseException) -> None:
        """Take what an anchor leads to."""
        if isinstance(outcome, BaseException):
            raise outcome
        if held := self._held.get(turn):
            t, q = self._place(turn)
            left, right, low, high = outcome.region
            held.outcome = outcome
            self._boxes[held.slot] = q + t - left, q + t + 2 + right, q - t + low, q - t + high
            self._check(turn, held.n_walls)

    def _check(self, turn: int, n_walls: int) -> None:
        """Begin a turn again if pieces of walls behind the first n_walls lie where its extension has been."""
        t, q = self._place(turn)
        outcome = self._held[turn].outcome
        if outcome is None or is_free(self.scene.walls, q, t, outcome.region, n_walls):
            return
        anchors, scene = self.some.anchors, self.scene
        if is_due(scene.walls, anchors.query, anchors.target, turn, scene.spanned, scene.waits, self.some.foresight):
            self._begin(turn)
        else:
            self._end(turn)

    def _place(self, turn: int) -> tuple[int, int]:
        """The target and query place of its anchor."""
        x = turn % len(self.scene.waits)
        return int(self.some.anchors.target[x]), int(self.some.anchors.query[x])
