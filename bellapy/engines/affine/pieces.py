"""What is aligned, and what comes out: stretches of a query's and of a target's bases, and their solutions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit


class Pieces(NamedTuple):
    """Pairs of stretches to align; base b of the query is query_codes[q_at + b * step], and so for the target.

    q_at, t_at : (n,) int64.  q_len, t_len : (n,) int64.  step : (n,) int64, 1 or -1.  mode : (n,) int64, one of rule.py's.
    """

    q_at: np.ndarray
    q_len: np.ndarray
    t_at: np.ndarray
    t_len: np.ndarray
    step: np.ndarray
    mode: np.ndarray

    def take(self, rows: np.ndarray) -> Pieces:
        return Pieces(*(column[rows] for column in self))


class Piece(NamedTuple):
    """One row of Pieces with the codes that it points into.

    query, target : (any,) uint8, base codes; the caller's.  q_at, q_len, t_at, t_len, step, mode : int64, as in Pieces.
    """

    query: np.ndarray
    target: np.ndarray
    q_at: int
    q_len: int
    t_at: int
    t_len: int
    step: int
    mode: int


@njit  # not an inner one: it hands arrays out, and references to these are counted
def piece_at(query, target, pieces, p):
    """Row p of pieces (Pieces) with its codes, query and target (uint8), as a Piece."""
    return Piece(
        query, target, pieces.q_at[p], pieces.q_len[p], pieces.t_at[p], pieces.t_len[p], pieces.step[p], pieces.mode[p]
    )


class Solved(NamedTuple):
    """What came out.

    score : (n,) int64.  q_used, t_used : (n,) int64, bases up to the end.  dropped : (n,) bool, ended by zdrop.
    runs : uint32, length << 4 | operation.  starts, counts : (n,) int64; the runs of a piece are
    runs[starts : starts + counts], from its end to its beginning.
    cells : computed in all.
    """

    score: np.ndarray
    q_used: np.ndarray
    t_used: np.ndarray
    dropped: np.ndarray
    runs: np.ndarray
    starts: np.ndarray
    counts: np.ndarray
    cells: int
