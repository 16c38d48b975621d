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
from bellapy.jobs.wga.scene import Anchors

TURNS = 2
"""Of each anchor."""
PASSED, LEFT_OUT, WAITS, POOR, DUE = range(5)
"""What an anchor's turn brings: none, for it is on a wall or had its turn; DUE: it has to be extended."""


class Round(NamedTuple):
    """Anchors in order, and what is known of them."""

    anchors: Anchors
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
    return is_clear(walls, q, t, around(last), 0)


@njit_inner
def brings(walls, q, t, turn, spanned, waits, foresight):
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
def is_due(walls, q, t, turn, spanned, waits, foresight):
    """Whether the anchor of a turn has to be extended; arguments as in `next_anchor`."""
    return brings(walls, q, t, turn, spanned, waits, foresight) == DUE


@njit
def next_anchor(walls, q, t, begin, spanned, waits, foresight):
    """The first turn from `begin` on whose anchor, of places q and t, (n,) int64, has to be extended, TURNS n if there is
    none; how many anchors were left out, and how many are known to give no alignment.

    Those on walls are passed over.  spanned : Spanned.  waits : (n,) bool, which anchors wait for their second turn; gets
    those that do from now on.
    """
    n_left_out = n_poor = 0
    for turn in range(begin, TURNS * len(q)):
        what = brings(walls, q, t, turn, spanned, waits, foresight)
        if what == DUE:
            return turn, n_left_out, n_poor
        if what == WAITS:
            waits[turn] = True
        n_left_out += what == LEFT_OUT
        n_poor += what == POOR
    return TURNS * len(q), n_left_out, n_poor
