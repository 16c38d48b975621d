"""X-drop extension on a GPU in registers: the rule of rule.py, one group of lanes per flank.

A group whose live cells reached the end of its window hands its flank over, with its state before the chunk, to a kernel
with more rows.  For the *longest* result (rule.py) it hands over the state of one chunk earlier, also when all cells
have died: the kernel for any width (wide_kernels.py) goes through the last anti-diagonals again and finds the end.  What is
handed over stands in two arrays (`Handed`): what outgrew the window from their front, what has ended from their back.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numba import cuda

from bellapy.compute.gpu.ops import I32, U32, WARP, ballot, fresh, inlined, shuffle
from bellapy.engines.linear.gpu.step_kernels import (
    HALF,
    SCALE,
    Notes,
    compute_chunk,
    follow_border,
    has_left,
)
from bellapy.engines.linear.rule import STRIDE
from bellapy.engines.registers.bases import Planes, compare_bases, sides_of
from bellapy.engines.registers.host import NOT_YET, STATE_COLUMN
from bellapy.engines.registers.window import (
    CHUNK,
    PAIRS,
    Kind,
    Stacks,
    clear,
    follow,
    in_order,
    load_cells,
    renew,
    save_cells,
    seat_of,
    words_of,
)
from bellapy.params import TILT_UNIT

MOST_REGISTERS = 128  # of a thread, so that four blocks fit a processor
EVERY_PAIRS = 4 * PAIRS  # how often a flank looks at how many are left
FLANK, PAIRS_DONE, SCORE, COLUMN, ROW, FIRST_ROW, BORDER = range(7)
HEAD = 7  # numbers of a head: the names above; COLUMN and ROW are those of the best cell
OUTGROWN, TAKEN, ENDED = range(3)  # columns of `counts`: what the level before handed over, how many of it are taken,
CELLS = 4  # what ended in this level, how many of it are taken; from here on the cells that each lane has computed:
COUNTS = CELLS + WARP  # atomic operations on one number would wait for each other


class Queue(NamedTuple):
    """What a kernel takes its flanks from.

    level : of the kernel, 0 for the narrowest windows; it takes what is in the queue of its level.  That of level 0 is the
        first n flanks in their order, as far as kernels before have not taken them; later ones are what a level handed over.
    n, asked : for level 0; `asked` counts the groups of lanes of the kernels before, each of which has raised TAKEN once
        without finding a flank.
    few : when fewer flanks than this are left and as many have outgrown their windows, those left are handed over too, so
        that the next kernel need not wait for a few long ones; 0: never.
    """

    level: int
    n: int
    asked: int
    few: int


class Handed(NamedTuple):
    """What a level hands over to the next.

    heads : (n, HEAD) int32, see the constants.
    cells : (n, 2, rows / 2) uint32, even and odd ones, two rows in a word.
    """

    heads: np.ndarray
    cells: np.ndarray


class Walk(NamedTuple):
    """Where a group stands between two chunks; int32 but `border`.

    row : this lane's first row.  first : place of the window's first lane.
    pairs : of anti-diagonals that are done.
    score, column, target_row : the best cell.
    border : the floor at which border cells reach it, 0: never; uint32.
    """

    row: np.int32
    first: np.int32
    pairs: np.int32
    score: np.int32
    column: np.int32
    target_row: np.int32
    border: np.uint32


@inlined
def _row_of(top, registers):
    """The first of a lane's rows whose cell has the highest score; `top`: of Rise; `registers`: half the rows."""
    row, most = 0, U32(0)
    for half in range(2):
        its = U32(U32(top >> U32(16 * half)) & HALF)
        if (its >> U32(4)) > most:
            most = U32(its >> U32(4))
            row = half * registers + SCALE - 1 - I32(its & U32(SCALE - 1))
    return row


@inlined
def _look(walk, rule, results, flank):
    """Let a flank's best cell be its result if its tilted score is the highest (rule.py); whether the flank stops.

    One thread of a group does it; what it has written before is the result so far.  `walk`, `rule`: Walk, Packed;
    `results`: (n, 4) int32; `flank`: its row.
    """
    unit, tilt = np.int64(TILT_UNIT), np.int64(rule.tilt)
    highest = unit * results[flank, 0] - tilt * (np.int64(results[flank, 1]) + np.int64(results[flank, 2]))
    tilted = unit * walk.score - tilt * (np.int64(walk.column) + np.int64(walk.target_row))
    if tilted > highest:
        highest = tilted
        results[flank, 0], results[flank, 1], results[flank, 2] = walk.score, walk.column, walk.target_row
    return rule.fall > 0 and unit * walk.score - tilt * (2 * walk.pairs) < highest - rule.fall


@inlined
def _ticket(counts, line, column, asks, seat):
    """A number for each group that asks: how often `counts`[`line`, `column`], int64, was raised before.

    `asks`: whether this lane's group does; `seat`: Seat.
    """
    ticket = I32(0)
    if asks and seat.place == 0:
        ticket = I32(cuda.atomic.add(counts, (line, column), 1))
    return I32(shuffle(ticket, seat.leader))


@inlined
def _begin(flank, stacks, seat, rule, kind, results):
    """The Walk of a flank at its beginning.

    `flank`: its row of `results`, which is cleared; `stacks`: Stacks, overwritten; `seat`, `rule`, `kind`: as above.
    """
    row = I32((seat.place - kind.group // 2) * (2 * kind.registers))
    clear(stacks, kind)
    if row == 0:
        stacks.even[0] = rule.origin
    if seat.place == 0:
        for j in range(4):
            results[flank, j] = 0
    return Walk(row, I32(0), I32(0), I32(0), I32(0), I32(0), rule.border)


@inlined
def _take_over(taken, ticket, stacks, seat, kind):
    """The Walk of a flank that the level before handed over.

    `taken`, `ticket`: Handed, and its row; `stacks`: Stacks, overwritten; `seat`, `kind`: Seat, Kind.
    """
    heads, cells, rows = taken.heads, taken.cells, 2 * kind.registers
    at = I32(seat.place * rows - (rows * kind.group // 2 - cells.shape[2]))  # in the window it comes from
    load_cells(cells[ticket, 0], I32(at >> 1), kind.registers, stacks.even)
    load_cells(cells[ticket, 1], I32(at >> 1), kind.registers, stacks.odd)
    return Walk(
        I32(heads[ticket, FIRST_ROW] + at), I32(0), heads[ticket, PAIRS_DONE], heads[ticket, SCORE], heads[ticket, COLUMN],
        heads[ticket, ROW], U32(heads[ticket, BORDER]),
    )  # fmt: skip


@inlined
def _keep(kept, state, stacks, walk, kind):
    """Keep a lane's state before a chunk: its cells, row, first lane, score, border, from `kept`[`state`] on, uint32.

    `stacks`, `walk`, `kind`: Stacks, Walk, Kind.
    """
    R = kind.registers
    for j in range(R):
        kept[state + j], kept[state + R + j] = stacks.even[j], stacks.odd[j]
    kept[state + 2 * R], kept[state + 2 * R + 1] = U32(walk.row), U32(walk.first)
    kept[state + 2 * R + 2], kept[state + 2 * R + 3] = U32(walk.score), walk.border


@inlined
def _leaves(chunk, pairs, counts, queue, n_queue):
    """Whether a flank goes on in wider windows: a cell may have left this one, or few flanks are left and as many have gone.

    `chunk`: Chunk; `pairs`: of anti-diagonals before it; `counts`: int64; `queue`: Queue; `n_queue`: flanks in it.
    """
    leaves = has_left(chunk)
    if queue.few > 0 and pairs % EVERY_PAIRS == 0:
        gone = fresh(counts, queue.level + 1, OUTGROWN)
        left = n_queue - fresh(counts, queue.level, ENDED) - gone
        leaves = leaves or (left < queue.few and left <= gone)
    return leaves


@inlined
def _advance(walk, chunk, outgrown, seat, rule, kind):
    """The Walk after a chunk, and by how much scores are less then.

    `walk`, `chunk`: Walk, Chunk; `outgrown`: the best cell stays; `seat`, `rule`, `kind`: Seat, Packed, Kind.
    """
    rise, last = chunk.rise, kind.group - 1
    lead = in_order(rise.winners, seat.leader, walk.first, kind.group)
    winner = I32(seat.leader + (walk.first + I32(cuda.ffs(I32(lead))) - 1 & last))
    diagonal = shuffle(I32(walk.row + _row_of(rise.top, kind.registers)), winner)
    column, target_row = walk.column, walk.target_row
    if rise.time >= 0 and not outgrown:
        column = I32(walk.pairs + (rise.time >> 1) + diagonal + 1)
        target_row = I32(walk.pairs + rise.time - (rise.time >> 1) - diagonal)
    shift = U32(rule.floor - chunk.floor)
    score = I32(walk.score + (I32(U32(shift - U32(CHUNK) * rule.drift) & HALF) >> 4))
    border = follow_border(walk.border, shift, rule)
    return Walk(walk.row, walk.first, I32(walk.pairs + PAIRS), score, column, target_row, border), shift


class Fate(NamedTuple):
    """What becomes of a group's flank after a chunk.

    ends : it leaves the group.  outgrown : for wider windows.  hands_over : with its state, for another kernel.
    longest : the state is that of one chunk earlier, where there is one.
    """

    ends: bool
    outgrown: bool
    hands_over: bool
    longest: bool


@inlined
def _hand_over(given, fate, ticket, kept, age, walk, flank, seat, kind, results):
    """Write the state of a flank that another kernel goes on with.

    Parameters
    ----------
    given : Handed, changed.
    fate, ticket : Fate; the number among those of the same fate.
    kept, age : (2 * state,) uint32, states before this chunk and the one before (`_keep`); chunks before.
    walk, flank : Walk, after the chunk; the flank.
    seat, kind : Seat, Kind.
    results : (n, 4) int32; the flank is marked there.
    """
    R, heads = kind.registers, given.heads
    ticket = ticket if fate.outgrown else I32(heads.shape[0] - 1 - ticket)
    earlier = I32(1 if fate.longest and age > 0 else 0)
    state = I32((age - earlier & 1) * (2 * R + 4))
    at = I32(seat.place - I32(kept[state + 2 * R + 1]) & kind.group - 1)
    save_cells(kept, state, R, given.cells[ticket, 0], at * R)
    save_cells(kept, state + R, R, given.cells[ticket, 1], at * R)
    if at == 0:
        results[flank, STATE_COLUMN] = NOT_YET
        heads[ticket, FLANK], heads[ticket, PAIRS_DONE] = flank, I32(walk.pairs - PAIRS - earlier * PAIRS)
        heads[ticket, SCORE] = I32(kept[state + 2 * R + 2])
        heads[ticket, COLUMN], heads[ticket, ROW] = walk.column, walk.target_row
        heads[ticket, FIRST_ROW] = I32(kept[state + 2 * R])
        heads[ticket, BORDER] = I32(kept[state + 2 * R + 3])


@inlined
def _work_off(reads, table, counts, queue, handed, rule, longest, results, scratch, kind):
    """Extend the flanks of a queue; outside `make_kernel`, so that Numba takes it in once for windows of all sizes.

    Parameters
    ----------
    reads, table, counts, queue, rule, longest, results : as below.
    handed : Handed by the level before and to the next.
    scratch : Stacks, Planes, and states at the start of this chunk and of the one before, (2 * state,) uint32.
    kind : Kind.
    """
    (taken, given), (stacks, planes, kept), R = handed, scratch, kind.registers
    seat, level = seat_of(kind), queue.level
    none = Notes(stacks.even, stacks.even, stacks.even, stacks.even)  # no bits are kept
    n_queue, asked = (I32(queue.n), I32(queue.asked)) if level == 0 else (I32(counts[level, OUTGROWN]), I32(0))
    flank, age, busy = I32(0), I32(0), I32(0)  # busy: chunks with live cells in this lane
    sides = sides_of(table, flank)
    walk = Walk(I32(0), I32(0), I32(0), I32(0), I32(0), I32(0), U32(0))
    tilted = (rule.tilt > 0 or rule.fall > 0) and not longest
    active, waiting = False, True
    clear(stacks, kind)
    while True:
        asks = waiting and not active
        if ballot(asks):
            ticket = I32(_ticket(counts, level, TAKEN, asks, seat) - asked)
            if asks:
                waiting = active = ticket < n_queue
                if active and level == 0:
                    flank = ticket
                    walk = _begin(flank, stacks, seat, rule, kind, results)
                elif active:
                    flank = taken.heads[ticket, FLANK]
                    walk = _take_over(taken, ticket, stacks, seat, kind)
                sides, age = sides_of(table, flank), I32(0)
        if not ballot(active):
            break
        _keep(kept, I32((age & 1) * (2 * R + 4)), stacks, walk, kind)
        compare_bases(reads, sides, longest, walk.pairs, walk.row, R, planes, stacks)
        chunk = compute_chunk(stacks, none, seat, walk.first, walk.row, walk.pairs, walk.border, rule, kind)
        outgrown = U32(ballot(_leaves(chunk, walk.pairs, counts, queue, n_queue)) & seat.members) != 0
        walk, shift = _advance(walk, chunk, outgrown, seat, rule, kind)
        least, most = I32(walk.pairs - 1 - sides.n_target), I32(sides.n_query - walk.pairs)
        alive = renew(stacks, kind, shift, walk.row, least, most)
        busy = I32(busy + (1 if active and alive else 0))
        living = in_order(ballot(alive != 0), seat.leader, walk.first, kind.group)
        looks = tilted and walk.pairs % (STRIDE // 2) == 0 and active and not outgrown and seat.place == 0
        fallen = looks and _look(walk, rule, results, flank)
        fallen = U32(ballot(fallen) & seat.members) != 0
        ends = active and (outgrown or not living or fallen)
        fate = Fate(ends, outgrown, ends and (outgrown or longest), longest)
        if ballot(ends):
            line, column = (I32(level + 1), OUTGROWN) if outgrown else (I32(level), ENDED)
            ticket = _ticket(counts, line, column, ends, seat)
            if fate.hands_over:
                _hand_over(given, fate, ticket, kept, age, walk, flank, seat, kind, results)
        age = I32(age + 1)
        if ends:
            active = False
            if seat.place == 0 and not fate.hands_over:
                _look(walk, rule, results, flank)
                results[flank, STATE_COLUMN] = 0
            clear(stacks, kind)
        elif active:
            row, first = follow(living, walk.row, walk.first, seat.place, kind)
            walk = Walk(row, first, walk.pairs, walk.score, walk.column, walk.target_row, walk.border)
    cuda.atomic.add(counts, (level, CELLS + seat.lane), np.int64(busy) * (CHUNK * 2 * R))


@cache
def make_kernel(group: int, registers: int, unit: bool, packed: bool):
    """The function of a kernel for groups of `group` lanes with 2 * `registers` rows each; parameters as in Kind."""
    KIND, R, WINDOW = Kind(group, registers, unit, packed), registers, words_of(registers) + 1
    STATES = 2 * (2 * R + 4)  # words of a lane's states

    def extend_stacks(reads, table, counts, queue, taken, given, rule, longest, results):
        """Extend the flanks of a queue.

        Parameters
        ----------
        reads : Reads.
        table : (n_flanks, 5) int64, rows of `Flanks.table`.
        counts : (levels, COUNTS) int64; CELLS: of lanes with live cells.
        queue : Queue.
        taken, given : Handed, by the level before and to the next.
        rule : Packed.
        longest : which result is wanted.
        results : (n_flanks, 4) int32: score, query bases, target bases as far as is known; NOT_YET where a flank is handed
            over, else 0.
        """
        stacks = Stacks(
            cuda.local.array(R, np.uint32), cuda.local.array(R, np.uint32), cuda.local.array(R, np.uint32),
            cuda.local.array(R, np.uint32),
        )  # fmt: skip
        planes = Planes(
            cuda.local.array(WINDOW, np.uint32), cuda.local.array(WINDOW, np.uint32), cuda.local.array(WINDOW, np.uint32),
            cuda.local.array(WINDOW, np.uint32), cuda.local.array(WINDOW, np.uint32), cuda.local.array(WINDOW, np.uint32),
        )  # fmt: skip
        scratch = stacks, planes, cuda.local.array(STATES, np.uint32)
        _work_off(reads, table, counts, queue, (taken, given), rule, longest, results, scratch, KIND)

    extend_stacks.most_registers = MOST_REGISTERS  # type: ignore[attr-defined]  # for `kernel_of`
    return extend_stacks
