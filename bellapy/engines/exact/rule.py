"""What an optimal alignment is: scores, modes, and the recurrence of affine gaps.

Rows are bases of the query, columns those of the target.  H is the best score of a cell, E that of a gap that goes on along
the row (it leaves target bases out), F that of a gap that goes on down the column (it leaves query bases out).  E and F are
kept for the next column and the next row:

    H(i, j) = max(H(i-1, j-1) + pair, E(i, j), F(i, j))             and the floor, 0, in local mode
    E(i, j+1) = max(H(i, j) - open - extend, E(i, j) - extend)
    F(i+1, j) = max(H(i, j) - open - extend, F(i, j) - extend)

A gap of g bases costs open + g * extend.  Unknown bases match nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.records.bases import UNKNOWN

NONE = -(1 << 30)
"""Score of what does not exist or was left out, in the arrays of absolute scores (int32)."""

UNKNOWN_TARGET = UNKNOWN + 1
BEYOND_QUERY, BEYOND_TARGET = UNKNOWN + 2, UNKNOWN + 3
"""Codes that equal no other: an unknown base of the target, and cells past the ends of the sequences."""


class Scores(NamedTuple):
    """Affine-gap scores; a NamedTuple because compiled code accepts it.

    match : above 0.  mismatch : below 0.  gap_open : 0 or more.  gap_extend : above 0; a gap of g bases costs
    gap_open + g * gap_extend.
    """

    match: int = 1
    mismatch: int = -3
    gap_open: int = 3
    gap_extend: int = 2

    @property
    def first(self) -> int:
        """What the first base of a gap costs."""
        return self.gap_open + self.gap_extend

    def step(self) -> int:
        """The most by which the scores of neighbouring cells differ."""
        return self.match + 2 * self.first

    def gap(self, size):
        """What gaps of so many bases cost; a number or an array."""
        return np.where(size > 0, self.gap_open + self.gap_extend * size, 0)


def as_target(codes: np.ndarray) -> np.ndarray:
    """Codes of a target: its unknown bases do not equal those of a query."""
    return np.where(codes >= UNKNOWN, np.uint8(UNKNOWN_TARGET), codes)
