"""Pieces of a set of flanks for GPUs: consecutive, so that each needs few of the reads; in a piece the longest come first.

What is compiled here runs outside the GIL, beside the threads of other GPUs.
"""

from __future__ import annotations

import numpy as np

from bellapy.jit import njit, njit_entry, njit_inner
from bellapy.xdrop.flanks import Flanks

SAMPLE = 1 << 14  # flanks by which the work is estimated
STEP = 16  # bases: flanks count as equally long within it
LENGTHS = 1 << 16  # steps that are told apart


def cut_pieces(flanks: Flanks, n: int, most: int) -> list[tuple[int, int]]:
    """First row and end of about `n` pieces of equal work, none of more than `most` flanks.

    All flanks have windows of like width, so cells grow with the length of the shorter sequence.
    """
    every = max(1, len(flanks) // SAMPLE)
    lengths = np.minimum(flanks.query_length[::every], flanks.target_length[::every])
    total = np.cumsum(lengths + 1)
    inner = every * np.searchsorted(total, np.linspace(0, total[-1] if len(total) else 0, n + 1)[1:-1])
    edges = [0, *inner.tolist(), len(flanks)]
    return [
        (at, min(at + most, end)) for begin, end in zip(edges, edges[1:], strict=False) for at in range(begin, end, most)
    ]


@njit_inner
def _rank(query_length, target_length):
    """0 for the longest; LENGTHS for flanks with nothing to extend."""
    shorter = min(query_length, target_length)
    return LENGTHS - 1 - min(shorter // STEP, LENGTHS - 1) if shorter > 0 else LENGTHS


@njit
def list_piece(query_at, query_length, target_at, target_length, complement, begin, end, rows, table):
    """The flanks of a piece that are not empty, longest first: their rows, and their `Flanks.table`; return their number.

    rows : (at least end - begin,) int32, filled from the front; so is `table`, int64.
    """
    places = np.zeros(LENGTHS + 2, np.int64)
    for i in range(begin, end):
        places[_rank(query_length[i], target_length[i]) + 1] += 1
    for rank in range(LENGTHS):
        places[rank + 1] += places[rank]
    n = places[LENGTHS]
    for i in range(begin, end):
        rank = _rank(query_length[i], target_length[i])
        if rank < LENGTHS:
            at = places[rank]
            places[rank] += 1
            rows[at] = i
            table[at, 0], table[at, 1] = query_at[i], query_length[i]
            table[at, 2], table[at, 3], table[at, 4] = target_at[i], target_length[i], 3 * complement[i]
    return n


@njit_entry
def put_back(rows, found, results):
    """Results of a piece into the rows of all."""
    for i in range(len(rows)):
        for j in range(3):
            results[rows[i], j] = found[i, j]
