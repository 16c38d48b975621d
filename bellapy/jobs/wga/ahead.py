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
from bellapy.engines.ydrop.extend import NEVER
from bellapy.engines.ydrop.walls import FAR, box_of
from bellapy.jobs.wga.extending import Extending, Outcome, Wanted
from bellapy.jobs.wga.scene import Scene
from bellapy.jobs.wga.turns import DUE, Turns, brings, is_due, is_free, is_known_free
from bellapy.seeding.sampling import MIXER

NOWHERE = FAR, -FAR, FAR, -FAR
"""A box, as of `box_of`, that meets none."""


class Paths(NamedTuple):
    """Anchors by path.

    number : (n,) int64, of the path of each anchor.  members : (m,) int64, the anchors of each path in order, one path
    after the other.  at, ends : (n_paths,) int64, in these, of each path the next anchor and the place behind its last one.
    heap : (n_paths,) int64, a heap of anchors, one of each path, which stand before `at`.  size : (1,) int64, of the heap.
    """

    number: np.ndarray
    members: np.ndarray
    at: np.ndarray
    ends: np.ndarray
    heap: np.ndarray
    size: np.ndarray


@njit
def paths_with(path, some):
    """Some anchors, (n,) bool, by path; path : as in Turns."""
    number, first = np.full(len(path), -1, np.int64), np.empty(len(path), np.int64)
    table = np.full(_power_above(2 * len(path)), -1, np.int64)
    last, n_paths, n_some = np.uint64(len(table) - 1), 0, 0
    for x in range(len(path)):
        if some[x]:
            slot = np.uint64(path[x]) * MIXER >> np.uint64(32) & last
            while table[slot] >= 0 and path[first[table[slot]]] != path[x]:
                slot = slot + np.uint64(1) & last
            if table[slot] < 0:
                table[slot] = n_paths
                first[n_paths] = x
                n_paths += 1
            number[x] = table[slot]
            n_some += 1
    ends, members = np.zeros(n_paths, np.int64), np.empty(n_some, np.int64)
    for x in range(len(path)):
        if some[x]:
            ends[number[x]] += 1
    total = 0
    for y in range(n_paths):
        total, ends[y] = total + ends[y], total
    at = ends + 1  # the first ones stand in the heap
    for x in range(len(path)):
        if some[x]:
            members[ends[number[x]]] = x
            ends[number[x]] += 1
    return Paths(number, members, at, ends, first[:n_paths].copy(), np.array([n_paths]))


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


@njit_inner
def _go_on(paths, y, walls, spanned, turns, begin):
    """Put the next anchor of path y that is due in a turn behind `begin`, if there is one, into the heap."""
    second = begin - begin % len(turns.q)
    while paths.at[y] < paths.ends[y]:
        x = paths.members[paths.at[y]]
        paths.at[y] += 1
        if x + second > begin and brings(walls, spanned, turns, x + second) == DUE:
            _push(paths.heap, paths.size[0], x)
            paths.size[0] += 1
            return


@njit
def next_due(paths, walls, spanned, turns, over, begin, most):
    """Turns behind `begin`, (m,) int64, whose anchors may have to be extended, one of each path.

    over : (k,) int64, turns that this function returned, and that are over: their paths may have another one.  most : turns
    before one whose anchor has no limits of its own, and in all.  Other arguments as in `brings`.
    """
    n, second = 0, begin - begin % len(turns.q)
    found = np.empty(max(0, most[1]), np.int64)
    for turn in over:
        _go_on(paths, paths.number[turn % len(turns.q)], walls, spanned, turns, begin)
    while paths.size[0] and n < most[np.int64(turns.path[paths.heap[0]] >= 0)]:
        x = _pop(paths.heap, paths.size[0])
        paths.size[0] -= 1
        if x + second > begin and brings(walls, spanned, turns, x + second) == DUE:
            found[n] = x + second
            n += 1
        else:
            _go_on(paths, paths.number[x], walls, spanned, turns, begin)
    return found[:n]


class Held:
    """A turn that was begun.  slot : a number that no other one has.  n_walls : pieces of walls there were then.  outcome :
    None until it is known.  of_path : whether it is the one of its path that `next_due` has found.
    """

    __slots__ = ("n_walls", "of_path", "outcome", "slot")

    def __init__(self, slot: int, of_path: bool):
        self.slot, self.of_path, self.n_walls = slot, of_path, 0
        self.outcome: Outcome | None = None


class Ahead:
    """What the anchors of a round lead to.

    limits : of the anchors, as in Anchors.  pool : of threads that extend anchors ahead of their turn; None: there are none.
    most : anchors that are held, as of `next_due`.
    """

    def __init__(
        self, extending: Extending, scene: Scene, turns: Turns, limits: np.ndarray, pool: Executor | None,
        most: tuple[int, int],
    ):  # fmt: skip
        self.extending, self.scene, self.turns, self.limits = extending, scene, turns, limits
        self.pool, self.most, self.n = pool, most, len(turns.q)
        self._held, self._n_checked = dict[int, Held](), scene.walls.used  # by turn; pieces of walls that it is checked for
        n = most[1] + 1
        self._free, self._in_slots, self._boxes = [*range(n)], np.full(n, FAR), np.tile(np.array(NOWHERE), (n, 1))
        self._over, self._sweep = list[int](), -1
        self._unforeseen = np.full((1, 2), NEVER), np.zeros((1, 2), np.int64)  # ends, last ones looked at
        self._waiting, self._wanted = PriorityQueue[int](), dict[int, Wanted]()
        self._ended = SimpleQueue[tuple[int, Outcome | BaseException]]()

    def outcome(self, turn: int) -> Outcome:
        """What the anchor of a turn leads to with the walls that are there now.  Turns come in order."""
        if self.pool is None:
            return self.extending.extend(self.scene, self._want(turn))[0]
        for past in self._in_slots[self._in_slots < turn].tolist():
            self._end(past)
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
        walls, boxes, n_checked = self.scene.walls, self._boxes, self._n_checked
        if walls.used > n_checked:
            self._n_checked = walls.used
            first, last, low, high = box_of(walls, n_checked)
            meets = (boxes[:, 0] <= last) & (boxes[:, 1] >= first) & (boxes[:, 2] <= high) & (boxes[:, 3] >= low)
            for turn in self._in_slots[meets].tolist():
                self._check(turn, n_checked)
        while not self._ended.empty():
            self._note(*self._ended.get())

    def _begin_until(self, turn: int) -> None:
        """Begin a turn, and others behind it, as far as there is room."""
        turns, scene = self.turns, self.scene
        if turn // self.n != self._sweep:
            self._sweep, self._over = turn // self.n, []
            self._paths = paths_with(turns.path, turns.waits if self._sweep else np.arange(self.n) >= turn)
        if turn not in self._held:
            self._begin(turn)
        over, self._over = np.array(self._over, np.int64), []
        few, many = (most - len(self._held) for most in self.most)
        for other in next_due(self._paths, scene.walls, scene.spanned, turns, over, turn, (few, many)).tolist():
            self._begin(other, of_path=True)

    def _begin(self, turn: int, *, of_path: bool = False) -> None:
        if turn not in self._held:
            self._held[turn] = Held(self._free.pop(), of_path)
        held = self._held[turn]
        held.outcome, held.n_walls = None, self.scene.walls.used
        self._in_slots[held.slot], self._boxes[held.slot] = turn, NOWHERE
        self._wanted[turn] = self._want(turn)
        self._waiting.put(turn)
        if self.pool:
            self.pool.submit(self._work)

    def _end(self, turn: int) -> None:
        """A turn is over, or brings nothing any more."""
        held = self._held.pop(turn)
        self._in_slots[held.slot], self._boxes[held.slot] = FAR, NOWHERE
        self._free.append(held.slot)
        if held.of_path:
            self._over.append(turn)

    def _want(self, turn: int) -> Wanted:
        """The anchor of a turn, with its ends if they are known and hold."""
        turns, foresight, x = self.turns, self.turns.foresight, turn % self.n
        one = slice(x, x + 1)
        if foresight.known[x] and is_known_free(self.scene.walls, turns.q[x], turns.t[x], foresight.last[x]):
            return Wanted(turns.t[one], turns.q[one], self.limits[one], foresight.r[one], foresight.last[one])
        return Wanted(turns.t[one], turns.q[one], self.limits[one], *self._unforeseen)

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
        outcome, scene = self._held[turn].outcome, self.scene
        if outcome is None or is_free(scene.walls, q, t, outcome.region, n_walls):
            return
        if is_due(scene.walls, scene.spanned, self.turns, turn):
            self._begin(turn)
        else:
            self._end(turn)

    def _place(self, turn: int) -> tuple[int, int]:
        """The target and query place of its anchor."""
        return int(self.turns.t[turn % self.n]), int(self.turns.q[turn % self.n])
