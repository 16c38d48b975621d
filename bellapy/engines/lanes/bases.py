"""The bases that windows side by side meet: read in words of eight, written to the rows of every lane."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_inner, njit_vector
from bellapy.engines.lanes.shape import U

U8 = np.uint8
U_EIGHT = U(8)
EVERY_BYTE = U(0x0101010101010101)
BEYOND_QUERY, BEYOND_TARGET = U8(6), U8(7)
"""Codes of bases past the ends of a flank: they match nothing, not even each other.  A target's base is complemented by
exclusive or with 3; unknown ones are 4 then, or 5 where unknown bases must not match."""


class Bases(NamedTuple):
    """The bases of a chunk: codes by row and lane, the query's down the rows, the target's up.

    query, target : ((height + half) * lanes,) uint8.
    """

    query: np.ndarray
    target: np.ndarray


@njit_inner
def read_word(codes, p):
    """Eight `codes`, uint8, from place `p` on, in one word."""
    x = U(codes[U(p)])
    for i in range(1, 8):
        x |= U(codes[U(p) + U(i)]) << U(8 * i)  # LLVM makes this one load
    return x


@njit_inner
def _word_at_end(codes, p, end):
    """Eight `codes` from place `p` on; those from `end` on, or before 0, are BEYOND_QUERY."""
    if p >= end:
        return EVERY_BYTE * U(BEYOND_QUERY)
    x = U(0)
    for i in range(8):
        x |= U(codes[p + i] if 0 <= p + i < end else BEYOND_QUERY) << U(8 * i)
    return x


@njit_inner
def word_within(codes, p, end):
    """Eight `codes` from place `p` on; those from `end` on, or before 0, are BEYOND_QUERY."""
    return read_word(codes, p) if 0 <= p and p + 8 <= end else _word_at_end(codes, p, end)


@njit_inner
def as_target(x, flip, apart):
    """A word of the query's codes, `x`, as one of the target's.

    `flip` is 3 to complement known bases, or 0; unknown ones become 4 + `apart`; bases beyond the flank BEYOND_TARGET.
    """
    beyond = (x >> U(1)) & (x >> U(2)) & EVERY_BYTE
    unknown = ((x >> U(2)) & EVERY_BYTE) ^ beyond
    known = EVERY_BYTE ^ beyond ^ unknown
    complemented = (known | known << U(1)) & U(np.int64(-(flip & 1)))  # no product: vector units have none of words
    return (x ^ complemented) + unknown * U(apart) + beyond


@njit_inner
def load_bases(codes, flank, l, shape, at, apart, bases):
    """All bases of one lane's window, after a start or a move.

    Parameters
    ----------
    codes : uint8 as `ReadSet.both_ways`.
    flank : one row of `Flanks.table`.
    l : the lane.
    shape : Shape.
    at : where the windows of query and target begin in `codes`; may lie outside.
    apart : 1 if unknown bases match nothing, else 0.
    bases : Bases; overwritten.
    """
    query_begin, query_length, target_begin, target_length, flip = flank
    lanes, lane, height = U(shape.lanes), U(l), U(shape.height)
    last = height + U(shape.half) - U(1)
    for j in range(U(0), height, U_EIGHT):
        x = word_within(codes, at[0] + np.int64(j), query_begin + query_length)
        y = as_target(word_within(codes, at[1] + np.int64(j), target_begin + target_length), flip, apart)
        for w in range(j, min(j + U_EIGHT, height)):
            bases.query[w * lanes + lane] = U8(x)
            bases.target[(last - w) * lanes + lane] = U8(y)
            x, y = x >> U_EIGHT, y >> U_EIGHT


@njit_vector
def as_targets(word, flip, apart, lanes):
    """The same for the words of all `lanes`: `word`, (TILE,) uint64, changed; `flip`: (TILE,) int64; `apart`: as above."""
    for l in range(U(lanes)):
        word[l] = as_target(word[l], flip[l], apart)


@njit_vector
def spread(word, rows, row, step, lanes):
    """Write the eight bases that each lane holds in a word to eight rows.

    Parameters
    ----------
    word : (TILE,) uint64.
    rows : uint8, one column of Bases; changed.
    row : the first row.
    step : from one row to the next, 1 or -1.
    lanes : their number.
    """
    for i in range(U_EIGHT):
        at = U(row + i * step) * U(lanes)
        for l in range(U(lanes)):
            rows[at + l] = U8(word[l] >> (i * U_EIGHT))
