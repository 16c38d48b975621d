"""The bases that the rows of a lane meet: read as bit planes (compute/gpu/planes.py), turned into words of one bit for each
row and pair of anti-diagonals.

Cells stay where they are, the bases move: before every chunk a lane reads those of its rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.gpu.ops import I32, LOW_HALVES, U32, U64, inlined, permute, reverse_bits
from bellapy.engines.registers.window import EVERY_BIT, ONE


class Reads(NamedTuple):
    """The reads on a device (compute/gpu/reads.py).

    planes : (words, 3) uint32.
    n_bases : of one direction.
    """

    planes: np.ndarray
    n_bases: int


class Sides(NamedTuple):
    """The two sides of a flank: a row of `Flanks.table`.

    query_at, target_at : int64, places in `ReadSet.both_ways`.
    n_query, n_target : int32, bases.
    flip : uint32, every bit set to complement the target's bases, or none.
    """

    query_at: np.int64
    n_query: np.int32
    target_at: np.int64
    n_target: np.int32
    flip: np.uint32


class Planes(NamedTuple):
    """Scratch: bit planes of the bases that a lane's rows meet in a chunk; all (words_of(registers) + 1,) uint32.

    The low and the high bit of codes, and unknown bases, of the query and of the target.
    """

    query_low: np.ndarray
    query_high: np.ndarray
    query_unknown: np.ndarray
    target_low: np.ndarray
    target_high: np.ndarray
    target_unknown: np.ndarray


@inlined
def sides_of(table, flank):
    """The Sides of row `flank` of `table`, (n, 5) int64."""
    flip = EVERY_BIT if table[flank, 4] else U32(0)
    return Sides(table[flank, 0], I32(table[flank, 1]), table[flank, 2], I32(table[flank, 3]), flip)


@inlined
def _load_plane(planes, plane, begin, reverse, words, window):
    """One plane of words * 32 bases.

    `planes`, `plane`: of Reads, and which; `begin`: the first base, which may lie outside; `reverse`: turned around;
    `words`: their number; `window`: (words + 1,) uint32, overwritten.
    """
    most, shift = I32(planes.shape[0] - 1), U64(begin & 31)
    for i in range(words):
        block = I32((begin >> 5) + (words - 1 - i if reverse else i))
        low, high = planes[max(I32(0), min(block, most)), plane], planes[max(I32(0), min(I32(block + 1), most)), plane]
        word = U32((U64(high) << U64(32) | U64(low)) >> shift)
        window[i] = reverse_bits(word) if reverse else word
    window[words] = U32(0)


@inlined
def _load_window(reads, at, length, masks, words, low, high, unknown):
    """The planes of the bases from a place on.

    Parameters
    ----------
    reads : Reads.
    at : the place in `ReadSet.both_ways`; it may lie outside.
    length : bases that belong to the flank.
    masks : every bit of the first set to complement known bases; of the second, to set the low bit of unknown ones; of the
        third, to set that of bases past `length`, whose other bits are set.
    words : of 32 bases.
    low, high, unknown : (words + 1,) uint32, overwritten.
    """
    flip, unlike, beyond = masks
    n_bases, planes = reads.n_bases, reads.planes
    reverse = at >= n_bases
    begin = 2 * n_bases - at - 32 * words if reverse else at
    _load_plane(planes, 0, begin, reverse, words, low)
    _load_plane(planes, 1, begin, reverse, words, high)
    _load_plane(planes, 2, begin, reverse, words, unknown)
    for i in range(words):
        left = I32(length - 32 * i)
        inside = EVERY_BIT if left >= 32 else U32(0) if left <= 0 else U32((ONE << U32(left)) - ONE)
        known, outside = U32(unknown[i] ^ EVERY_BIT), U32(inside ^ EVERY_BIT)
        low[i] = U32((((low[i] ^ flip) & known | unlike & unknown[i]) & inside) | beyond & outside)
        high[i] = U32(((high[i] ^ flip) & known & inside) | outside)
        unknown[i] |= outside


@inlined
def _sixteen(window, at):
    """Bits `at` .. `at` + 15 of a plane, `window`; more may stand above them."""
    return U32((U64(window[at // 32 + 1]) << U64(32) | U64(window[at // 32])) >> U64(at % 32))


@inlined
def _two_rows(window, low, high):
    """Sixteen bits of a plane, `window`, from bit `low` on in the low half, from bit `high` on in the high half."""
    return permute(_sixteen(window, low), _sixteen(window, high), LOW_HALVES)


@inlined
def _compare(loaded, at, registers, bits):
    """For every row, where its query bases are its target bases.

    Three loops, since longer ones are not unrolled, and what is not unrolled is not in registers.

    Parameters
    ----------
    loaded : Planes.
    at : bit of the target's planes with the base of the first row.
    registers : half the rows.
    bits : (registers,) uint32, overwritten, as in Stacks.
    """
    query, target = loaded.query_unknown, loaded.target_unknown
    for j in range(registers):
        bits[j] = _two_rows(query, j, registers + j) ^ _two_rows(target, at - j, at - registers - j)
    query, target = loaded.query_low, loaded.target_low
    for j in range(registers):
        bits[j] |= _two_rows(query, j, registers + j) ^ _two_rows(target, at - j, at - registers - j)
    query, target = loaded.query_high, loaded.target_high
    for j in range(registers):
        bits[j] = U32(
            U32(bits[j] | (_two_rows(query, j, registers + j) ^ _two_rows(target, at - j, at - registers - j))) ^ EVERY_BIT
        )


@inlined
def compare_bases(reads, sides, longest, pairs, row, registers, loaded, stacks):
    """For a lane's rows and the next PAIRS pairs of anti-diagonals: where bases are equal.

    Parameters
    ----------
    reads, sides : Reads, Sides.
    longest : unknown bases match each other.
    pairs : of anti-diagonals that were computed before.
    row : the lane's first row.
    registers : of the lane, half its rows.
    loaded : Planes, overwritten.
    stacks : Stacks, whose bits are overwritten.
    """
    none, rows, words = U32(0), 2 * registers, loaded.query_low.shape[0] - 1
    begin = I32(pairs + row)  # of the query's bases for the first row
    left = I32(sides.n_query - begin)
    _load_window(
        reads, sides.query_at + begin, left, (none, none, none), words,
        loaded.query_low, loaded.query_high, loaded.query_unknown,
    )  # fmt: skip
    begin = I32(pairs - row - rows)  # of the target's for the last row
    left = I32(sides.n_target - begin)
    unlike = none if longest else EVERY_BIT
    _load_window(
        reads, sides.target_at + begin, left, (sides.flip, unlike, EVERY_BIT), words,
        loaded.target_low, loaded.target_high, loaded.target_unknown,
    )  # fmt: skip
    _compare(loaded, rows - 1, registers, stacks.odd_bits)
    _compare(loaded, rows, registers, stacks.even_bits)
