"""What the CPU does for GPUs, outside the GIL and beside the threads of other GPUs: pieces of flanks.

A piece is both flanks of consecutive seeds, so that each needs few of the reads; in a piece the longest flanks come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from bellapy.compute.jit import njit, njit_entry, njit_inner
from bellapy.engines.flanks import Flanks

SAMPLE = 1 << 12  # flanks by which the work is estimated
STEP = 32  # bases: flanks count as equally long within it
LENGTHS = 1 << 13  # steps that are told apart


RESULT_COLUMNS, STATE_COLUMN = 4, 3  # of results on a device: score, query bases, target bases, state
NOT_YET = 1  # state of a flank that no kernel has finished


def _halves_of(begin: int, end: int, n: int) -> tuple[slice, slice]:
    """Of n flanks, those of seeds begin .. end - 1 (`make_flanks`): rows of the first half, and of the second one."""
    half = (n + 1) // 2
    return slice(begin, end), slice(half + begin, min(half + end, n))


def rows_of(begin: int, end: int, n: int) -> np.ndarray:
    """The same as numbers, one half after the other."""
    return np.concatenate([np.arange(half.start, half.stop) for half in _halves_of(begin, end, n)])


def clear(begin: int, end: int, results: np.ndarray) -> None:
    """Set the results of seeds begin .. end - 1 to 0, both flanks."""
    for half in _halves_of(begin, end, len(results)):
        results[half] = 0


def cut_seeds(flanks: Flanks, shares: Sequence[int], most: int) -> list[tuple[int, int]]:
    """First seed and end of pieces with these shares of the work, none with more than `most` seeds.

    All flanks have windows of like width, so cells grow with the length of the shorter sequence.
    """
    seeds = (len(flanks) + 1) // 2
    every = max(1, seeds // SAMPLE)
    rows = np.arange(0, seeds, every)
    rows = np.stack((rows, np.minimum(rows + seeds, len(flanks) - 1)))
    total = np.cumsum(np.minimum(flanks.query_length[rows], flanks.target_length[rows]).sum(axis=0) + 1)
    whole = total[-1] if seeds else 0
    edges = [0, *(every * np.searchsorted(total, whole * np.cumsum(shares)[:-1] / np.sum(shares))).tolist(), seeds]
    return [(at, min(at + most, end)) for begin, end in pairwise(edges) for at in range(begin, end, most)]


@njit_inner
def _rank(query_length, target_length):
    """0 for the longest, by `query_length` and `target_length`, bases; LENGTHS for flanks with nothing to extend."""
    shorter = min(query_length, target_length)
    return LENGTHS - 1 - min(shorter // STEP, LENGTHS - 1) if shorter > 0 else LENGTHS


@njit
def list_piece(query_at, query_length, target_at, target_length, complement, begin, end, rows, table):
    """List the flanks of some seeds that are not empty, the longest first; return their number.

    Parameters
    ----------
    query_at, query_length, target_at, target_length, complement : of Flanks.
    begin, end : first seed, and the one past the last.
    rows : (at least 2 (end - begin),) int32, filled from the front by the flanks' rows.
    table : (as many, 5) int64, filled from the front by rows of `Flanks.table`.
    """
    half = (len(query_at) + 1) // 2
    n, from_second = end - begin + min(half + end, len(query_at)) - (half + begin), half - (end - begin)
    places = np.zeros(LENGTHS + 2, np.int64)
    for i in range(begin, begin + n):
        row = i if i < end else i + from_second
        places[_rank(query_length[row], target_length[row]) + 1] += 1
    for rank in range(LENGTHS):
        places[rank + 1] += places[rank]
    found = places[LENGTHS]
    for i in range(begin, begin + n):
        row = i if i < end else i + from_second
        rank = _rank(query_length[row], target_length[row])
        if rank < LENGTHS:
            at = places[rank]
            places[rank] += 1
            rows[at] = row
            table[at, 0], table[at, 1] = query_at[row], query_length[row]
            table[at, 2], table[at, 3], table[at, 4] = target_at[row], target_length[row], 3 * complement[row]
    return found


@njit_entry
def put_back(begin, end, rows, found, results, late):
    """Put results that have come from a device where they belong.

    Parameters
    ----------
    begin, end : first flank of those sent there, and the one past the last.
    rows : (n,) int32, their rows among all flanks.
    found : (n, RESULT_COLUMNS) int32, what has come.
    results : (all, 3) int64, filled in where there is a result.
    late : int32, filled from the front by the numbers of the others.

    Returns
    -------
    How many have none yet.
    """
    n = 0
    for i in range(begin, end):
        if found[i, STATE_COLUMN] == NOT_YET:
            late[n] = i
            n += 1
        else:
            for j in range(3):
                results[rows[i], j] = found[i, j]
    return n


@njit_entry
def put_late(late, rows, found, results):
    """The same for the flanks whose numbers are in `late`, which all have a result now.

    `rows`, `found`, `results`: as of `put_back`.
    """
    for i in late:
        for j in range(3):
            results[rows[i], j] = found[i, j]
