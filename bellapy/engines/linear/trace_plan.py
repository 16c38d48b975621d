"""What the CPU prepares for the kernels of paths, outside the GIL and beside the threads of other GPUs."""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit, njit_entry
from bellapy.engines.linear.gpu.trace_kernels import BITS, COLUMN, LAST, RUNS, STATES
from bellapy.engines.registers.window import CHUNK


@njit
def list_longest_first(ends, begin, end, rows):
    """List the flanks that have bases to align, those with the most chunks first; return their number.

    Parameters
    ----------
    ends : (n, 2) int64, query and target bases up to where extensions end.
    begin, end : the flanks looked at.
    rows : (at least end - begin,) int64, filled from the front by their rows.
    """
    most = np.int64(0)
    for i in range(begin, end):
        most = max(most, (ends[i, 0] + ends[i, 1] + CHUNK - 1) // CHUNK)
    places = np.zeros(most + 2, np.int64)
    for i in range(begin, end):
        places[most - (ends[i, 0] + ends[i, 1] + CHUNK - 1) // CHUNK + 1] += 1
    for rank in range(most):
        places[rank + 1] += places[rank]
    n = places[most]
    for i in range(begin, end):
        rank = most - (ends[i, 0] + ends[i, 1] + CHUNK - 1) // CHUNK
        if rank < most:
            rows[places[rank]] = i
            places[rank] += 1
    return n


@njit_entry
def lay_out(rows, ends, begins, words, block, plan):
    """Where each flank's bits and states go, one after the other, and where its runs go.

    Parameters
    ----------
    rows : (n,) int64, the flanks.
    ends : as above.
    begins : (all + 1,) int64, where the runs of each flank begin.
    words : 64-bit words of a chunk's bits, 32-bit words of a state.
    block : chunks of a block.
    plan : (n + 1, PLAN) int64, overwritten, as gpu/trace_kernels.py has it; the last row : what they take.
    """
    bits = states = np.int64(0)
    n = len(rows)
    for i in range(n):
        row = rows[i]
        last = ends[row, 0] + ends[row, 1]
        chunks = (last + CHUNK - 1) // CHUNK
        plan[i, LAST], plan[i, COLUMN] = last, ends[row, 0]
        plan[i, BITS], plan[i, STATES], plan[i, RUNS] = bits, states, begins[row]
        bits += min(chunks, block) * words[0]
        states += ((chunks + block - 1) // block - 1) * words[1]
    plan[n, LAST] = plan[n, COLUMN] = plan[n, RUNS] = 0
    plan[n, BITS], plan[n, STATES] = bits, states
