"""Cells of paths on a GPU: the chunks of stack_kernels.py once more, of which two bits of every cell are kept.

A row of the stacks is a diagonal of the alignment matrix and belongs to one half of one register of one lane of the group,
always the same, since lanes change places by whole windows.  So a cell's bits are where its diagonal says: in a chunk's
words, one of 64 bits for each register, lane and parity of the anti-diagonal.  The low half says of both rows of the
register in which of the chunk's sixteen steps a pair was a best last step, the high half where a query base alone was no
worse than a target base alone.  A run of pairs is a run of ones.  The rule of ties is that of trace_lanes.py.

A cell that lives has the score it has in the extension, and its best predecessors live, whatever the widths of the windows.
A mismatch that costs more than two gaps counts as much as these here (step_kernels.py); it is no step of a best path then.

Memory is bounded as on the CPU: chunks go in blocks.  The first turn computes all of them, keeps the state at the beginning
of each block but the first, and the bits of the last; each further turn computes the block before.  After each turn the way
back goes through what it has kept (walk_kernels.py).
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numba import cuda

from bellapy.compute.gpu.ops import I32, U32, U64, ballot, inlined, on_device
from bellapy.engines.linear.gpu.step_kernels import Notes, compute_chunk, follow_border, has_left
from bellapy.engines.registers.bases import Planes, compare_bases, sides_of
from bellapy.engines.registers.window import (
    CHUNK,
    PAIRS,
    Kind,
    Stacks,
    clear,
    follow,
    in_order,
    renew,
    seat_of,
    words_of,
)

LAST, COLUMN, BITS, STATES, RUNS = range(5)
PLAN = 5
"""What the kernels are told of a flank: last anti-diagonal and column of its end cell, where its bits (64-bit words), its
states (32-bit words) and its runs begin."""


class Part(NamedTuple):
    """What a kernel works on.

    n : the first so many flanks, those that have more than `turn` blocks.
    block : chunks of a block.
    turn : 0: from the start, bits of the last block; i: the block i before that.
    """

    n: int
    block: int
    turn: int


def chunk_words(group: int, registers: int) -> int:
    """64-bit words of a chunk's bits."""
    return 2 * group * registers


def state_words(group: int, registers: int) -> int:
    """32-bit words of a state: cells, first row and first lane of the window, border."""
    return group * (2 * registers + 3)


words_of_chunk, words_of_state = map(on_device, (chunk_words, state_words))


@inlined
def first_kept(last, part):
    """The first chunk whose bits are kept, of a flank with so many anti-diagonals, `last`; `part`: Part."""
    return (((last + CHUNK - 1) // CHUNK - 1) // part.block - part.turn) * part.block


@inlined
def _save_state(states, at, stacks, row, first, border, kind):
    """Keep a lane's state.

    `states`: uint32; `at`: where its first word goes; `stacks`: Stacks; `row`, `first`, `border`: of the window, as in
    `compute_chunk`; `kind`: Kind.
    """
    R, group = kind.registers, kind.group
    for j in range(R):
        states[at + j * group], states[at + (R + j) * group] = stacks.even[j], stacks.odd[j]
    states[at + 2 * R * group], states[at + (2 * R + 1) * group] = U32(row), U32(first)
    states[at + (2 * R + 2) * group] = border


@inlined
def _load_state(states, at, stacks, kind):
    """The other way; returns first row, first lane, border.

    `states`, `at`, `kind`: as above; `stacks`: Stacks, overwritten.
    """
    R, group = kind.registers, kind.group
    for j in range(R):
        stacks.even[j], stacks.odd[j] = states[at + j * group], states[at + (R + j) * group]
    return I32(states[at + 2 * R * group]), I32(states[at + (2 * R + 1) * group]), states[at + (2 * R + 2) * group]


@inlined
def _write_bits(bits, at, notes, kind):
    """Write a lane's bits of a chunk to `bits`[`at`] and on, uint64; `notes`, `kind`: Notes, Kind."""
    for j in range(kind.registers):
        odd = U64(notes.odd_inserts[j]) << U64(32) | U64(notes.odd_pairs[j])
        even = U64(notes.even_inserts[j]) << U64(32) | U64(notes.even_pairs[j])
        bits[at + 2 * j * kind.group], bits[at + 2 * j * kind.group + 1] = odd, even


@inlined
def _trace(reads, table, plan, part, rule, longest, kept_at, failed, scratch, kind):
    """Compute flanks up to their ends; outside `make_tracer`, so that Numba takes it in once for windows of all sizes.

    Parameters
    ----------
    reads, table, plan, part, rule, longest, failed : as below.
    kept_at : `bits` and `states` there.
    scratch : Stacks, Notes, Planes, overwritten.
    kind : Kind.
    """
    (bits, states), (stacks, notes, planes), R = kept_at, scratch, kind.registers
    chunk_size, state_size = words_of_chunk(kind.group, R), words_of_state(kind.group, R)
    seat = seat_of(kind)
    flank = (cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x) // kind.group
    active = flank < part.n and failed[min(flank, part.n - 1)] == 0
    flank = min(flank, part.n - 1)
    sides, last = sides_of(table, flank), plan[flank, LAST]
    kept = first_kept(last, part)
    chunk, end = np.int64(0), min((last + CHUNK - 1) // CHUNK, kept + part.block)
    row, first, border = I32((seat.place - kind.group // 2) * 2 * R), I32(0), rule.border
    clear(stacks, kind)
    for j in range(R):
        notes.even_pairs[j] = notes.odd_pairs[j] = notes.even_inserts[j] = notes.odd_inserts[j] = U32(0)
    if row == 0:
        stacks.even[0] = rule.origin
    if part.turn > 0 and kept > 0:
        chunk = kept
        at = plan[flank, STATES] + (chunk // part.block - 1) * state_size + seat.place
        row, first, border = _load_state(states, at, stacks, kind)
    while ballot(active):
        if active and part.turn == 0 and chunk > 0 and chunk % part.block == 0:
            at = plan[flank, STATES] + (chunk // part.block - 1) * state_size + seat.place
            _save_state(states, at, stacks, row, first, border, kind)
        pairs = I32(chunk * PAIRS)
        compare_bases(reads, sides, longest, pairs, row, R, planes, stacks)
        found = compute_chunk(stacks, notes, seat, first, row, pairs, border, rule, kind)
        if active and chunk >= kept:
            at = plan[flank, BITS] + (chunk - kept) * chunk_size + 2 * seat.place
            _write_bits(bits, at, notes, kind)
        if ballot(has_left(found)) & seat.members and active:
            active = False
            failed[flank] = 1
        shift = U32(rule.floor - found.floor)
        border = follow_border(border, shift, rule)
        pairs = I32(pairs + PAIRS)
        alive = renew(stacks, kind, shift, row, I32(pairs - 1 - sides.n_target), I32(sides.n_query - pairs))
        living = in_order(ballot(alive != 0), seat.leader, first, kind.group)
        if active:
            row, first = follow(living, row, first, seat.place, kind)
        chunk += 1
        active = active and chunk < end


@cache
def make_tracer(group: int, registers: int, unit: bool, packed: bool, dear: bool):
    """The kernel that computes cells and keeps their bits, for groups of `group` lanes with 2 * `registers` rows each;
    parameters as in Kind."""
    KIND, R, WINDOW = Kind(group, registers, unit, packed, True, dear), registers, words_of(registers) + 1

    def trace_stacks(reads, table, plan, part, rule, longest, bits, states, failed):
        """Compute the flanks up to their ends, and keep the bits of one block of each.

        Parameters
        ----------
        reads : Reads.
        table, plan : (n_flanks, 5) int64, rows of `Flanks.table`; (n_flanks, PLAN) int64.
        part : Part.
        rule : Packed.
        longest : unknown bases match each other.
        bits, states : uint64, uint32, where they are kept.
        failed : (n_flanks,) int32, set where live cells reached an end of the window.
        """
        stacks = Stacks(
            cuda.local.array(R, np.uint32), cuda.local.array(R, np.uint32), cuda.local.array(R, np.uint32),
            cuda.local.array(R, np.uint32),
        )  # fmt: skip
        notes = Notes(
            cuda.local.array(R, np.uint32), cuda.local.array(R, np.uint32), cuda.local.array(R, np.uint32),
            cuda.local.array(R, np.uint32),
        )  # fmt: skip
        planes = Planes(
            cuda.local.array(WINDOW, np.uint32), cuda.local.array(WINDOW, np.uint32), cuda.local.array(WINDOW, np.uint32),
            cuda.local.array(WINDOW, np.uint32), cuda.local.array(WINDOW, np.uint32), cuda.local.array(WINDOW, np.uint32),
        )  # fmt: skip
        _trace(reads, table, plan, part, rule, longest, (bits, states), failed, (stacks, notes, planes), KIND)

    return trace_stacks
