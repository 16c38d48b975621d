"""What the turn of an anchor brings.

Turns x and x + n are those of anchor x.  Walls and what alignments span only grow, so an anchor that its turn leaves out is
left out for good.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_inner
from bellapy.engines.ydrop.foresight import Foresight
from bellapy.engines.ydrop.walls import is_clear, on_wall

TURNS = 2
"""Of each anchor."""
PASSED, LEFT_OUT, WAITS, POOR, DUE = range(5)
"""What an anchor's turn brings: none, for it is on a wall or had its turn; DUE: it has to be extended."""


class Turns(NamedTuple):
    """Anchors in order, and what is known of them.

    q, t, path : (n,) int64, as in Anchors.  waits : (n,) bool, which ones wait for their second turn.  on_wall : (n,) bool,
    which ones are known to be on a wall.
    """

    q: np.ndarray
    t: np.ndarray
    path: np.ndarray
    waits: np.ndarray
    on_wall: np.ndarray
    foresight: Foresight


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
    return is_clear(walls, q, t, around(last), np.int64(0))


@njit_inner
def brings(walls, spanned, turns, turn):
    """What a turn brings; spanned : Spanned."""
    x = turn % len(turns.q)
    if turns.on_wall[x] or turn >= len(turns.q) and not turns.waits[x]:
        return PASSED
    q, t, n_spanned, half = turns.q[x], turns.t[x], 0, len(spanned.query)
    if on_wall(walls, q, t):
        turns.on_wall[x] = True
        return PASSED
    if half:
        n_spanned = np.int64(spanned.target[t]) + np.int64(spanned.query[q if q < half else 2 * half - 1 - q])
    if n_spanned == 2:
        return LEFT_OUT
    if n_spanned == 1 and turn < len(turns.q):
        return WAITS
    if turns.foresight.poor[x] and is_clear(walls, q, t, around(turns.foresight.last[x]), np.int64(0)):
        return POOR
    return DUE


@njit
def is_due(walls, spanned, turns, turn):
    """Whether the anchor of a turn has to be extended; arguments as in `brings`."""
    return brings(walls, spanned, turns, turn) == DUE


@njit
def next_anchor(walls, spanned, turns, begin):
    """The first turn from `begin` on whose anchor has to be extended, TURNS n if there is none; how many anchors were left
    out, and how many are known to give no alignment.  Notes which ones wait from now on.  Arguments as in `brings`.
    """
    n_left_out = n_poor = 0
    for turn in range(begin, TURNS * len(turns.q)):
        what = brings(walls, spanned, turns, turn)
        if what == DUE:
            return turn, n_left_out, n_poor
        if what == WAITS:
            turns.waits[turn] = True
        n_left_out += what == LEFT_OUT
        n_poor += what == POOR
    return TURNS * len(turns.q), n_left_out, n_poor
