"""Paths of many flanks side by side in vector lanes: the executor.

The score-only extension (extend_lanes.py) has found where each flank's alignment ends.  Here its live cells are computed
once more, in the same windows and by the same steps (lanes.py), up to that end cell, and two bits are kept of every cell:

- whether the pair of bases before it, on its diagonal, is a best predecessor;
- if not: whether the cell one query base before it is, else the one a target base before.

So ties have one rule: a pair, then a query base alone (I), then a target base alone (D), as seen from the end cell.  A live
cell's best predecessor is live, whence the path's score is that of the extension.

Flanks of like length run in groups, as many as there are lanes, all from anti-diagonal 0: every lane is at the same anti-
diagonal.  Bits of OCTET steps along a diagonal share a byte, so that going back costs as much as there are gaps, not bases,
and all lanes go back through the same memory at the same time.

Memory is bounded for any length: a group runs in blocks of chunks, keeps the state at the beginning of each, and goes back
block by block, computing each but the last a second time.  Blocks grow with the square root of the length once that is
beyond BLOCK_BYTES.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_entry, njit_inner
from bellapy.compute.runs import PAIR, QUERY_ALONE, TARGET_ALONE, lengthened, operation_of, pack_run
from bellapy.engines.flank_paths import block_chunks
from bellapy.engines.lanes.shape import TILE, CellType, Shape, aligned, copy_cells
from bellapy.engines.linear.lane_state import (
    FLANK,
    HIGH,
    LOW,
    Task,
    clear_lanes,
    go_on,
    load_window,
    make_lanes,
    place,
    retire,
)
from bellapy.engines.linear.lanes import INSERTED, OCTET, PAIRED, Bits, compute_chunk, make_bases
from bellapy.engines.linear.sizes import scores_of
from bellapy.params import Scoring

TRAILING_ONES = np.array([(~i & (i + 1)).bit_length() - 1 for i in range(256)], np.int64)


class State(NamedTuple):
    """What is kept of a group of lanes between two chunks: these fields of Lanes; one of each for every block."""

    even: np.ndarray
    odd: np.ndarray
    now: np.ndarray


class Way(NamedTuple):
    """Where each lane stands on its way forth and back; all (TILE,) int64.

    last : last anti-diagonal of the flank.
    failed : 1 if live cells may have left the window.
    diagonal, column : of the cell that the way back has come to.
    run : the unfinished run there, 0: none.
    slot : where the next finished run goes.
    """

    last: np.ndarray
    failed: np.ndarray
    diagonal: np.ndarray
    column: np.ndarray
    run: np.ndarray
    slot: np.ndarray


class Traced(NamedTuple):
    """What is asked, and found, of every flank.

    ends : (n, 2) int64, query and target bases of its alignment.
    starts : (n,) int64, where its runs begin in `runs`, uint32.
    counts : (n,) int64, how many they are.
    failed : (n,) int64, 1 if it is left out.
    """

    ends: np.ndarray
    starts: np.ndarray
    runs: np.ndarray
    counts: np.ndarray
    failed: np.ndarray


class Block(NamedTuple):
    """Room for the blocks of a group.

    chunks : of a block.
    states : State, with one more first axis: the beginning of each block.
    bits : Bits of one block.
    """

    chunks: int
    states: State
    bits: Bits


def trace_lanes(
    codes: np.ndarray, flanks: np.ndarray, ends: np.ndarray, shape: Shape, scoring: Scoring, longest: bool, cell: CellType,
    runs: np.ndarray, starts: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Paths of flanks; those whose window grew beyond `shape.height` rows are left out.

    Parameters
    ----------
    codes : uint8 as `ReadSet.both_ways`.
    flanks : (n, 5) int64 as `Flanks.table`, by decreasing length of their alignments.
    ends : (n, 2) int64, query and target bases of each alignment, not both 0, as the extension found them.
    shape, cell : Shape, and CellType that holds such scores.
    longest : unknown bases match each other.
    runs : uint32, overwritten: runs of one operation (compute/runs.py), from the end cell to the seed.
    starts : (n,) int64, where the runs of each flank begin in `runs`; `most_runs` tells the room they need.

    Returns
    -------
    counts : (n,) int64, runs of each flank; 0 where it is left out.
    failed : (n,) bool, the flanks left out.
    """
    task = Task(codes, flanks, shape, scoring, scores_of(scoring, cell, shape), longest)
    group = make_lanes(shape, np.dtype(cell.name))
    kept = State(group.even, group.odd, group.now)
    n_cells, n_chunks = shape.height * shape.lanes, -(-int(ends.sum(axis=1).max(initial=1)) // (2 * shape.half))
    octet_bytes = 4 * n_cells + 8 * TILE
    chunks = block_chunks(n_chunks, octet_bytes * shape.half // OCTET, sum(array.nbytes for array in kept))
    states = State(*(np.empty((-(-n_chunks // chunks), *array.shape), array.dtype) for array in kept))
    octets = chunks * shape.half // OCTET
    bits = Bits(aligned(octets * 4 * n_cells, np.uint8).reshape(octets, 2, 2, n_cells), np.empty((octets, TILE), np.int64))
    traced = Traced(ends, starts, runs, *np.zeros((2, len(flanks)), np.int64))
    _run(task, group, make_bases(shape), Block(chunks, states, bits), Way(*np.zeros((6, TILE), np.int64)), traced)
    return traced.counts, traced.failed > 0


@njit_entry
def _run(task, group, bases, block, way, traced):
    """Group by group, block by block, forward and then back.

    Parameters
    ----------
    task, group, bases : Task, Lanes, two of Bases; the last two are overwritten.
    block : Block, overwritten.
    way : Way, overwritten.
    traced : Traced, filled in.
    """
    lanes = task.shape.lanes
    for begin in range(0, len(task.flanks), lanes):
        n = min(lanes, len(task.flanks) - begin)
        of_group = Task(task.codes, task.flanks[begin : begin + n], task.shape, task.scoring, task.scores, task.longest)
        _begin(way, traced, begin, n)
        _trace_group(of_group, group, bases, block, way, traced.runs)
        for l in range(n):
            _finish(way, traced, begin + l, l)


@njit_inner
def _begin(way, traced, begin, n):
    """Put `way`, Way, at the ends of the `n` flanks from `begin` on; `traced`: Traced."""
    for row in way:
        row[:] = 0
    for l in range(n):
        way.last[l] = way.diagonal[l] = traced.ends[begin + l, 0] + traced.ends[begin + l, 1]
        way.column[l], way.slot[l] = traced.ends[begin + l, 0], traced.starts[begin + l]


@njit_inner
def _finish(way, traced, i, l):
    """Write the last run of flank `i`, of lane `l`, and what is found of it; `way`, `traced`: Way, Traced."""
    traced.failed[i] = way.failed[l]
    if way.run[l] > 0:
        traced.runs[way.slot[l]] = way.run[l]
        way.slot[l] += 1
    traced.counts[i] = 0 if way.failed[l] else way.slot[l] - traced.starts[i]


@njit_inner
def _trace_group(task, group, bases, block, way, runs):
    """Compute the flanks of a task, one in each lane, and write their runs.

    `task`, `group`, `bases`, `block`, `way`: as of `_run`; `runs`: uint32, filled in.
    """
    lanes, half = task.shape.lanes, task.shape.half
    n_chunks = (way.last[0] + 2 * half - 1) // (2 * half)
    last_block = (n_chunks - 1) // block.chunks
    clear_lanes(group, task.scores.dead)
    place(task, group, bases[0], np.int64(0))
    for b in range(last_block + 1):
        _copy_state(_state_of(block.states, b), group)
        _compute_block(task, group, bases, block, way, b, n_chunks)
    for b in range(last_block, -1, -1):
        first = b * block.chunks
        if b < last_block:
            _copy_state(group, _state_of(block.states, b))
            for l in range(lanes):
                if group.now[FLANK, l] >= 0:
                    load_window(task, group, bases[0] if first & 1 == 0 else bases[1], l)
            _compute_block(task, group, bases, block, way, b, n_chunks)
        for octet in range(block.chunks * half // OCTET - 1, -1, -1):
            k = 2 * (first * half + octet * OCTET)
            for l in range(len(task.flanks)):
                if way.diagonal[l] > k and not way.failed[l]:
                    _go_back(block.bits, octet, l, lanes, k, way, runs)


@njit_inner
def _copy_state(to, source):
    """Copy the fields of State to `to` from `source`, each State or Lanes."""
    copy_cells(to.even, source.even, len(source.even))
    copy_cells(to.odd, source.odd, len(source.odd))
    for row in range(len(source.now)):
        copy_cells(to.now[row], source.now[row], TILE)


@njit_inner
def _state_of(states, b):
    """The State of block `b` among all `states`."""
    return State(states.even[b], states.odd[b], states.now[b])


@njit_inner
def _compute_block(task, group, bases, block, way, b, n_chunks):
    """Compute the chunks of block `b`, of `n_chunks` in all, and keep their bits.

    `task`, `group`, `bases`, `block`, `way`: as of `_run`.
    """
    half, first = task.shape.half, b * block.chunks
    octets = half // OCTET
    for chunk in range(first, min(first + block.chunks, n_chunks)):
        now, spare = (bases[0], bases[1]) if chunk & 1 == 0 else (bases[1], bases[0])
        place(task, group, now, len(task.flanks))
        at = (chunk - first) * octets
        bits = Bits(block.bits.planes[at : at + octets], block.bits.columns[at : at + octets])
        compute_chunk(task, group, now, spare, bits)
        _retire_done(task, group, way, 2 * half * (chunk + 1))


@njit_inner
def _retire_done(task, group, way, k):
    """Stop lanes that have passed their end cell before anti-diagonal `k`, or may have had live cells outside their window.

    `task`, `group`, `way`: Task; Lanes and Way, which are changed.
    """
    lanes, height, margin, half = task.shape
    now = group.now
    for l in range(lanes):
        if now[FLANK, l] < 0:
            continue
        done = way.last[l] <= k
        if group.ends[l] > task.scores.dead or not done and now[HIGH, l] - now[LOW, l] > height - margin:
            way.failed[l] = 1
        elif not done:
            go_on(now, l, half)
            continue
        retire(task, group, l)


@njit_inner
def _go_back(bits, octet, l, lanes, first_k, way, runs):
    """Follow one lane back through one octet.

    Parameters
    ----------
    bits : Bits of the block.
    octet : of the block.
    l, lanes : the lane, and how many there are.
    first_k : the octet's first anti-diagonal is the one after it.
    way : Way, changed.
    runs : uint32, to which finished runs are appended.
    """
    planes, origin = bits.planes[octet], bits.columns[octet, l] + 1
    t, column, run, at = way.diagonal[l] - first_k - 1, way.column[l], way.run[l], way.slot[l]
    while t >= 0:
        p = t >> 1
        cell = (column - origin - p) * lanes + l
        paired = TRAILING_ONES[planes[t & 1, PAIRED, cell] >> (OCTET - 1 - p)]
        if paired > 0:
            if operation_of(run) != PAIR:
                runs[at] = run
                at += 1
                run = 0
            run = np.int64(lengthened(run, paired))
            column -= paired
            t -= 2 * paired
            if t < 0:
                break
        p = t >> 1
        inserted = planes[t & 1, INSERTED, cell] >> (OCTET - 1 - p) & 1
        op = QUERY_ALONE if inserted else TARGET_ALONE
        if operation_of(run) != op:
            if run > 0:
                runs[at] = run
                at += 1
            run = np.int64(pack_run(op, 0))
        run = np.int64(lengthened(run, 1))
        column -= inserted
        t -= 1
    way.diagonal[l], way.column[l], way.run[l], way.slot[l] = first_k + 1 + t, column, run, at
