"""Where an extension ends: the best cell of its table, looked for on every anti-diagonal (rule.py).

A word holds a score with its cell, so that the larger word is the better cell: of equal scores the one in the highest row,
which is the one with the smallest i.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.gpu.ops import BOTH, I32, U32, add_max2, inlined, largest, max2
from bellapy.engines.affine.rule import LOWEST
from bellapy.engines.registers.window import HALF

TAG_BITS = 3  # of a half: the register, so that there must be no more than 8, and the scale leaves as many bits
LANE_BITS = 5
PLACE_BITS = LANE_BITS + 1 + TAG_BITS  # lane, half, register


class Table(NamedTuple):
    """The part of a band that is in the table; padding counts as bases.

    row : the lane's first row, less the centre.  lane : of the warp.
    n_query, n_target : bases.
    zdrop : as in rule.py.  drift : of scores, for each anti-diagonal.
    """

    row: np.int32
    lane: np.int32
    n_query: np.int32
    n_target: np.int32
    zdrop: np.int32
    drift: np.int32


class Watch(NamedTuple):
    """What is known of the best cell; int32.

    best : its score; 0 before any.  place, diagonal : where it is, and its anti-diagonal.
    before : the best score of the last anti-diagonal.
    dropped : 1 when zdrop has ended the extension.
    offset : what is added to a score of the next anti-diagonal to be without drift and base.
    """

    best: np.int32
    place: np.int32
    diagonal: np.int32
    before: np.int32
    dropped: np.int32
    offset: np.int32


@inlined
def _highest(cells, least, most, row, lane, registers):
    """The best of a lane's cells in rows `least` to `most`, as a word; 0 if there is none.

    `cells`: (registers,) uint32; `row`: of the first; `lane`: of the warp.
    """
    top = U32(0)
    if row < least or row + 2 * registers - 1 > most:
        for j in range(registers):
            low, high = I32(row + j), I32(row + registers + j)
            keep = U32(HALF if least <= low and low <= most else 0)
            keep = U32(keep | (U32(0xFFFF0000) if least <= high and high <= most else U32(0)))
            top = max2(top, U32(U32(cells[j] + U32(j * BOTH)) & keep))
    else:
        for j in range(registers):
            top = add_max2(cells[j], U32(j * BOTH), top)
    low, high = U32(top & HALF), U32(top >> U32(16))
    above = high >> U32(TAG_BITS) >= low >> U32(TAG_BITS)
    word = high if above else low
    place = U32(U32(lane << (TAG_BITS + 1)) | (U32(1 << TAG_BITS) if above else U32(0)) | (word & U32((1 << TAG_BITS) - 1)))
    return U32(U32(word >> U32(TAG_BITS)) << U32(PLACE_BITS) | place)


@inlined
def watch_diagonal(watch, cells, r, table, registers):
    """The Watch after anti-diagonal r, padding included.

    `cells`: (registers,) uint32, this lane's; `table`: Table.
    """
    half = r >> 1
    least, most = I32(half - table.n_query), I32(table.n_target - (r - half))
    word = largest(_highest(cells, least, most, table.row, table.lane, registers))
    score = I32(word >> U32(PLACE_BITS))
    highest = I32(score + watch.offset) if score > 0 else I32(LOWEST)
    best, place, diagonal, before, dropped, offset = watch
    if dropped == 0 and 2 <= r and r <= table.n_query + table.n_target:
        if highest > best:
            best, diagonal, place = highest, I32(r), I32(word & U32((1 << PLACE_BITS) - 1))
        if best - max(highest, before) > table.zdrop:
            dropped = I32(1)
        before = highest
    return Watch(best, place, diagonal, before, dropped, I32(offset - table.drift))


@inlined
def end_of(watch, centre, pad, registers):
    """The query and target bases before the best cell.

    `watch`: Watch; `centre`: row of diagonal 0; `pad`: bases that do not count; `registers`: of a lane.
    """
    if watch.best == 0:
        return I32(0), I32(0)
    place = watch.place
    lane, half, j = place >> (TAG_BITS + 1), place >> TAG_BITS & 1, place & ((1 << TAG_BITS) - 1)
    row = I32(lane * 2 * registers + half * registers + j)
    i = I32((watch.diagonal >> 1) - (row - centre))
    return I32(i - pad), I32(watch.diagonal - i - pad)
