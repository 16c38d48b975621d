"""Windows in registers: a group of lanes of a warp for each flank.

A row of a window is one diagonal of the alignment matrix.  A lane holds 2 R rows in R registers for each of two stacks,
even and odd anti-diagonals: row j of its 2 R in the low half of register j, row R + j in the high half.  So the neighbours
of a register are the next register, and one word comes from the next lane.  The lanes of a group are a ring: a window that
follows the alignment takes a lane from one end to the other, and no cell moves.

Halves are 0 (dead) or more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import cuda

from bellapy.compute.gpu.ops import (
    HIGH_HALVES,
    I32,
    LOW_HALVES,
    U32,
    U64,
    WARP,
    add_max2,
    inlined,
    max2,
    max2_any,
    permute,
)

CHUNK = 32
PAIRS = CHUNK // 2  # of anti-diagonals
HALF, EVERY_BIT = U32(0xFFFF), U32(0xFFFFFFFF)
ONE = U32(1)
NEXT, NEXT_AT_END = U32(0x5432), U32(0xDD32)  # own high half, next lane's low half (0 at the end of the window)
BEFORE, BEFORE_AT_END = U32(0x1076), U32(0x10FF)  # previous lane's high half (0 at the end), own low half


class Kind(NamedTuple):
    """What a kernel is made for; constant while it is compiled.

    group : lanes of a group, a power of two, at least 4.
    registers : of a lane, for each stack; even, since two of them share the words of a state.
    unit : a match scores 1, so the best score rises by one unit at a time.
    packed : the device has instructions for packed maxima (compute capability 9.0 and more).
    traced : bits are kept of every cell; else the place of the best one.
    dear : a mismatch costs more than two gaps; matters to bits alone.
    """

    group: int
    registers: int
    unit: bool
    packed: bool
    traced: bool = False
    dear: bool = False


class Seat(NamedTuple):
    """Where a thread sits.

    lane : of the warp, int32.  place : of the group.  leader : the group's first lane.  members : the group's lanes, as
    bits, uint32.  after, before : the lanes beside this one in the ring.
    """

    lane: np.int32
    place: np.int32
    leader: np.int32
    members: np.uint32
    after: np.int32
    before: np.int32


class Stacks(NamedTuple):
    """A lane's cells, and where bases are equal; all (registers,) uint32.

    even, odd : cells of the last two anti-diagonals.
    even_bits, odd_bits : bit i of each half: whether the bases of that row are equal in the i-th pair of the anti-diagonals
        that come next.
    """

    even: np.ndarray
    odd: np.ndarray
    even_bits: np.ndarray
    odd_bits: np.ndarray


def words_of(registers: int) -> int:
    """Words of 32 bases that the rows of a lane meet in a chunk."""
    return (2 * registers + PAIRS + 31) // 32


@inlined
def larger(a, b, packed):
    """The larger of each half of `a` and `b`; `packed` as in Kind."""
    return max2(a, b) if packed else max2_any(a, b)


@inlined
def larger_sum(a, b, c, packed):
    """The larger of each half of `a` + `b` and `c`; `packed` as in Kind."""
    return add_max2(a, b, c) if packed else max2_any(U32(a + b), c)


@inlined
def seat_of(kind):
    """The Seat of this thread in a kernel of a Kind, `kind`."""
    last, lane = kind.group - 1, I32(cuda.threadIdx.x & (WARP - 1))
    place = I32(lane & last)
    leader = I32(lane - place)
    members = U32(U32((1 << kind.group) - 1) << U32(leader))
    return Seat(lane, place, leader, members, I32(leader + (place + 1 & last)), I32(leader + (place - 1 & last)))


@inlined
def trim(cells, registers, row, least, most):
    """Kill the cells of rows below `least` and above `most`.

    `cells`: (registers,) uint32 of this lane, changed; `registers`: their number; `row`: its first row.
    """
    for j in range(registers):
        low, high = I32(row + j), I32(row + registers + j)
        keep = U32(HALF if least <= low and low <= most else 0)
        cells[j] &= U32(keep | (U32(0xFFFF0000) if least <= high and high <= most else U32(0)))


@inlined
def in_order(votes, leader, first, group):
    """Votes of a group's lanes as bits, from the first lane of its window on.

    `votes`: of the warp, uint32; `leader`, `group`: the group's first lane, and how many they are; `first`: place of the
    window's first lane in the group.
    """
    bits = U32(U32(votes >> U32(leader)) & U32((1 << group) - 1))
    return U32((U64(bits) << U64(group) | U64(bits)) >> U64(first)) & U32((1 << group) - 1)


@inlined
def follow(living, row, first, place, kind):
    """Take lanes from one end of the window to the other, so that the living ones are in the middle.

    Parameters
    ----------
    living : lanes with live cells, bits from the window's first lane on, uint32.
    row : this lane's first row.
    first : place of the window's first lane.
    place : of this lane in its group.
    kind : Kind.

    Returns
    -------
    This lane's first row, and the place of the window's first lane, then.
    """
    group, span = kind.group, 2 * kind.registers * kind.group
    free_below = I32(cuda.ffs(I32(living))) - 1
    free_above = I32(cuda.clz(I32(living))) - (32 - group)
    by = (free_below - free_above) // 2 if free_below > free_above else -((free_above - free_below) // 2)
    seat = place - first & group - 1
    if seat < by:
        row = I32(row + span)
    if seat - group >= by:
        row = I32(row - span)
    return row, I32(first + by & group - 1)


@inlined
def renew(stacks, kind, shift, row, least, most):
    """Take scores relative to the best again and kill rows that have left the matrix.

    Parameters
    ----------
    stacks : Stacks; the cells are changed.
    kind : Kind.
    shift : what is taken away, in both halves.
    row : this lane's first row.
    least, most : rows that are in the matrix.

    Returns
    -------
    Not 0 if a cell lives.
    """
    even, odd, alive = stacks.even, stacks.odd, U32(0)
    for j in range(kind.registers):
        even[j] = U32(larger(even[j], shift, kind.packed) - shift)
        odd[j] = U32(larger(odd[j], shift, kind.packed) - shift)
    if row < least or row + 2 * kind.registers - 1 > most:
        trim(even, kind.registers, row, least, most)
        trim(odd, kind.registers, row, least, most)
    for j in range(kind.registers):
        alive |= even[j] | odd[j]
    return alive


@inlined
def clear(stacks, kind):
    """Make all cells of `stacks` dead; `kind`: Kind."""
    for j in range(kind.registers):
        stacks.even[j] = stacks.odd[j] = U32(0)


@inlined
def _saved_rows(words, at):
    """The cells of two rows that were handed over, `words`[`at`]; dead outside the window they come from."""
    inside = U32(at) < U32(words.shape[0])
    word = words[U32(at) if inside else U32(0)]
    return word if inside else U32(0)


@inlined
def load_cells(words, at, registers, cells):
    """A lane's cells from saved ones.

    `words`: uint32, two rows in each; `at`: the word with its first two; `registers`: how many; `cells`: overwritten.
    """
    for i in range(registers // 2):
        low, high = _saved_rows(words, I32(at + i)), _saved_rows(words, I32(at + registers // 2 + i))
        cells[2 * i], cells[2 * i + 1] = permute(low, high, LOW_HALVES), permute(low, high, HIGH_HALVES)


@inlined
def save_cells(kept, state, registers, words, at):
    """The other way: `registers` numbers from `kept`[`state`] on, a lane's cells, to `words`[`at`] and those after it."""
    for i in range(registers // 2):
        one, two = kept[state + 2 * i], kept[state + 2 * i + 1]
        words[at + i], words[at + registers // 2 + i] = permute(one, two, LOW_HALVES), permute(one, two, HIGH_HALVES)
