"""Windows of alignments side by side: how many lanes and rows, what cells are made of, and memory for them.

Row w of lane l is cell w * lanes + l, so that plain loops over tiles of TILE cells become vector code for any number of
lanes: 64 lanes with one row a tile serve narrow windows, 8 with eight or 1 with 64 serve wide ones.  The rows of a tile are
its phases.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_inner, njit_vector

U = np.uint64
TILE = 64
U_TILE = U(TILE)
HALVES = 32, 16  # of a chunk, two anti-diagonals each: the longer where scores leave room for it


class CellType(NamedTuple):
    """What cells are made of.

    dead : a dead cell's value.
    highest : what a cell can hold.
    wide : lanes and rows of wide windows; rows are numbered by tile, in this type.
    """

    name: str
    dead: int
    highest: int
    wide: tuple[tuple[int, int], ...]


BYTE = CellType("int8", -112, 127, ((32, 248), (8, 992), (1, 7936)))
SHORT = CellType("int16", -32_000, 32_767, ((8, 2048), (1, 65_536)))


class Shape(NamedTuple):
    """Windows of one size.

    lanes : alignments side by side; divides TILE.
    height : rows of the window, a multiple of TILE // lanes.
    margin : rows between a window's end and its live cells below which it is moved.
    half : bases of a query or target that a chunk of twice as many anti-diagonals goes on.
    """

    lanes: int
    height: int
    margin: int
    half: int


def aligned(n: int, dtype: np.typing.DTypeLike) -> np.ndarray:
    """n zeros on a 64-byte boundary, else every vector load touches two cache lines."""
    raw = np.zeros(n * np.dtype(dtype).itemsize + 64, np.uint8)
    skip = -raw.ctypes.data % 64
    return raw[skip : len(raw) - 64 + skip].view(dtype)


@njit_vector
def copy_cells(to, source, n):
    """Copy the first `n` numbers of an array, `source`, to another, `to`, which do not overlap."""
    for i in range(U(n)):
        to[i] = source[i]


@njit_inner
def move(rows, shape, l, by, dead):
    """Move one lane's window; cells that enter it are dead.

    Parameters
    ----------
    rows : (height * lanes,) cells of one stack; changed.
    shape : Shape.
    l : the lane.
    by : rows; `height` and more empties the window.
    dead : a dead cell.
    """
    lanes, lane, height = U(shape.lanes), U(l), shape.height
    kept = U(max(0, height - abs(by)))  # unsigned and without branches: this costs as much as many steps of the lane
    ahead = U(abs(by))
    if by > 0:
        for w in range(kept):
            rows[w * lanes + lane] = rows[(w + ahead) * lanes + lane]
        for w in range(kept, U(height)):
            rows[w * lanes + lane] = dead
    else:
        for j in range(kept):
            w = U(height) - U(1) - j
            rows[w * lanes + lane] = rows[(w - ahead) * lanes + lane]
        for w in range(U(height) - kept):
            rows[w * lanes + lane] = dead
