"""The codec of runs, of which paths consist: one number holds a run's operation and its length, as BAM packs a CIGAR."""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit

PAIR, QUERY_ALONE, TARGET_ALONE = map(np.int64, range(3))
"""Operations, numbered as in BAM (M, I, D): a pair of bases, equal or not; a query base alone; a target base alone.

Int64, or what is called with them would be compiled for each.
"""
_OPERATION_BITS = 4


@njit
def pack_run(operation, length):
    """A run of `length` columns of one `operation`, uint32."""
    return np.uint32(np.int64(length) << _OPERATION_BITS | np.int64(operation))


@njit
def operation_of(run):
    """The operation of a `run`, int64."""
    return np.int64(run) & ((1 << _OPERATION_BITS) - 1)


@njit
def length_of(run):
    """The columns of a `run`, int64."""
    return np.int64(run) >> _OPERATION_BITS


@njit
def lengthened(run, n):
    """A `run` with `n` columns more, or fewer if negative, uint32."""
    return np.uint32(np.int64(run) + (np.int64(n) << _OPERATION_BITS))
