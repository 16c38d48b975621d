"""The way back through the bits that trace_kernels.py has kept, one thread for each flank."""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import cuda

from bellapy.compute import runs as codec
from bellapy.compute.gpu.ops import I32, U32, U64, inlined, on_device
from bellapy.compute.runs import PAIR, QUERY_ALONE, TARGET_ALONE
from bellapy.engines.linear.gpu.trace_kernels import BITS, COLUMN, LAST, RUNS, first_kept, words_of_chunk
from bellapy.engines.registers.window import CHUNK, EVERY_BIT, HALF

TIME, AT_COLUMN, RUN, NEXT_RUN = range(4)
WAY = 4
"""Where the way back stands between two turns: anti-diagonal (the first is 0) and column, unfinished run, next place."""


operation_of, pack_run, lengthened = map(on_device, (codec.operation_of, codec.pack_run, codec.lengthened))


@inlined
def _append(runs, at, run, operation):
    """Make a run one of `operation`: where `run` is of another, write it to `runs`[`at`], uint32, and begin anew.

    Returns the place of the next run, and the run that goes on.
    """
    if operation_of(run) != operation:
        if run > 0:
            runs[at] = U32(run)
            at += 1
        run = np.int64(pack_run(operation, 0))
    return at, run


@inlined
def _walk(plan, part, bits, failed, ways, runs, counts, group, registers):
    """Go back through the blocks of a turn and write the runs passed; arguments as in `make_walker`."""
    flank = cuda.grid(1)
    if flank >= part.n or failed[flank]:
        return
    rows, span = 2 * registers, 2 * registers * group
    kept = first_kept(plan[flank, LAST], part)
    t, column, run, at = plan[flank, LAST] - 1, plan[flank, COLUMN], np.int64(0), plan[flank, RUNS]
    if part.turn > 0:
        t, column, run, at = (
            ways[flank, TIME], ways[flank, AT_COLUMN], ways[flank, RUN], ways[flank, NEXT_RUN]
        )  # fmt: skip
    while t >= kept * CHUNK:
        p = t >> 1
        seat = I32(I32(column - p - 1 + span // 2) % I32(span))  # of the diagonal in a ring of all rows
        holder, j = seat // I32(rows), seat % I32(rows)
        half = U64(16 if j >= registers else 0)
        j = j - registers if j >= registers else j
        word = bits[
            plan[flank, BITS] + ((p >> 4) - kept) * words_of_chunk(group, registers) + 2 * (j * group + holder) + (t & 1)
        ]
        step = I32(p & 15)
        pairs = U32(word >> half) & HALF
        n_pairs = I32(cuda.clz(I32(U32(pairs << U32(31 - step)) ^ EVERY_BIT)))
        if n_pairs > 0:
            at, run = _append(runs, at, run, np.int64(PAIR))
            run = np.int64(lengthened(run, np.int64(n_pairs)))
            column -= n_pairs
            t -= 2 * n_pairs
        if n_pairs <= step:
            inserted = I32(word >> (half + U64(32) + U64(step - n_pairs)) & U64(1))
            at, run = _append(runs, at, run, np.int64(QUERY_ALONE if inserted else TARGET_ALONE))
            run = np.int64(lengthened(run, np.int64(1)))
            column -= inserted
            t -= 1
    if kept == 0:
        if run > 0:
            runs[at] = U32(run)
            at += 1
        counts[flank] = at - plan[flank, RUNS]
    else:
        ways[flank, TIME], ways[flank, AT_COLUMN], ways[flank, RUN], ways[flank, NEXT_RUN] = t, column, run, at


@cache
def make_walker(group: int, registers: int):
    """The kernel that goes back through the bits of windows of `group` lanes with 2 * `registers` rows each."""

    def walk_back(plan, part, bits, failed, ways, runs, counts):
        """Go back through the blocks of a turn and write the runs passed.

        Parameters
        ----------
        plan, part, bits, failed : as of trace_kernels.make_tracer.
        ways : (n_flanks, WAY) int64, where each flank stands between two turns.
        runs : uint32 (compute/runs.py), from the end of a flank to its seed.
        counts : (n_flanks,) int32: how many runs the flank has, once its first block is passed.
        """
        _walk(plan, part, bits, failed, ways, runs, counts, np.int64(group), np.int64(registers))

    return walk_back
