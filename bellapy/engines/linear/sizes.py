"""Which windows and cells of lanes linear scores fit.

Cells are bytes, or 16 bits for large X.  At the start of a chunk the best score of a lane is `top_score`, chosen so that a
chunk of matches, with the drift (lanes.py), stays within the type.  A live cell is at least that less X; a dead one is the
type's `dead`, put back at every step, so that it neither wraps around nor comes to life.  `fits` states the bounds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.engines.lanes.shape import HALVES, TILE, CellType, Shape
from bellapy.params import Scoring

SLACK = 20  # rows beyond what X-drop admits at a time: they cost little and save narrow lanes from being moved or given up
MARGIN = 6  # of narrow windows: fewer flanks outgrow them than with a smaller one, and few lanes are moved
MAX_NARROW = 124  # rows of 64 lanes


class CellScores(NamedTuple):
    """Scores in the type of the cells.

    equal, unequal : what a match and a mismatch add beyond two gaps.
    drift : by how much scores rise each anti-diagonal.
    xdrop : X; it may wrap around: what it is taken from wraps back.
    dead : a dead cell.
    top : score of a lane's best cell at the start of a chunk.
    """

    equal: np.integer
    unequal: np.integer
    drift: np.integer
    xdrop: np.integer
    dead: np.integer
    top: np.integer


def top_score(scoring: Scoring, cell: CellType, half: int) -> int:
    """Score that a lane's best cell has at the start of a chunk: `half` matches and twice as many drifts later it fits."""
    return cell.highest - half * scoring.match + 2 * half * scoring.gap


def fits(scoring: Scoring, cell: CellType, half: int) -> bool:
    """Whether live and dead cells of this type stay apart, and neither they nor the rise of a chunk wrap around."""
    equal, unequal = scoring.match - 2 * scoring.gap, scoring.mismatch - 2 * scoring.gap
    room = cell.dead - np.iinfo(cell.name).min
    top = top_score(scoring, cell, half)
    return top >= 0 and -unequal <= room and top - scoring.xdrop > cell.dead + equal


def narrow_height(scoring: Scoring) -> int:
    """Rows that true overlaps stay within: X-drop admits about X / gap diagonals of one parity."""
    return (scoring.xdrop // -scoring.gap + SLACK + 3) // 4 * 4


def shapes(scoring: Scoring, cell: CellType) -> list[Shape]:
    """Windows to try one after the other with such cells."""
    half = next((half for half in HALVES if fits(scoring, cell, half)), None)
    if half is None:
        return []
    narrow = narrow_height(scoring)
    sizes = [Shape(TILE, height, MARGIN, half) for height in (narrow, 2 * narrow) if height <= MAX_NARROW]
    return sizes + [Shape(lanes, height, half + 1, half) for lanes, height in cell.wide if height >= narrow]


def scores_of(scoring: Scoring, cell: CellType, shape: Shape) -> CellScores:
    """The scores as cells of windows of this shape have them."""
    gaps, top = 2 * scoring.gap, top_score(scoring, cell, shape.half)
    numbers = scoring.match - gaps, scoring.mismatch - gaps, -scoring.gap, scoring.xdrop, cell.dead, top
    return CellScores(*np.array(numbers).astype(cell.name))
