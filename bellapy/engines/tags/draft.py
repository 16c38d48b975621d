"""The first path of a read on a new consensus, and where it can stay as it is.

Letters that stood in one column go to the bases that came of this column.  Both loops over a path have no branches that
depend on the reads: what comes next is as hard to foresee as errors are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_inner, njit_part, njit_vector
from bellapy.engines.tags.symbols import GAP, INSERTED

ANCHOR = 8  # equal bases in a row that stay aligned
BLOCK = 32  # symbols that are passed at a time
LONGEST = 256  # columns in which the longest such row stays, where none has ANCHOR bases
SEEN = np.int64(1) << 32
U = np.uint64


class Draft(NamedTuple):
    """The first path of one read, beside its columns of the consensus.

    bases : (n_bases,) uint8, the read's letters, as symbols below INSERTED.
    mates : (n_columns + 1,) int32, the base that stands in a column, or -1; the last entry is scratch.
    rows : (n_columns,) int32, equal bases in a row, from each column on, with nothing between them.
    anchors : (n_columns + 1,) int32, the next column from which on ANCHOR of them follow; n_columns if there is none.
    differences : (n_columns + 1,) int64, columns with a base from each one on, times SEEN, and those of them with another
        base than the consensus.
    """

    bases: np.ndarray
    mates: np.ndarray
    rows: np.ndarray
    anchors: np.ndarray
    differences: np.ndarray


@njit_vector
def count_columns(symbols, begin, end):
    """Columns of the template in symbols[begin:end]; symbols : (n,) uint8, of a pile."""
    n = 0
    for k in range(U(begin), U(end)):
        n += symbols[k] < INSERTED
    return n


@njit_inner
def go_to_column(symbols, k, end, column, wanted):
    """From symbols[k], before `column`, on to the symbol of column `wanted`, or to the end; returns its place and column.

    symbols : (n,) uint8, of a pile; those before `end` belong to the read.
    """
    while k + BLOCK <= end and column + BLOCK <= wanted:
        column += count_columns(symbols, k, k + BLOCK)
        k += BLOCK
    while k < end and (column < wanted or symbols[k] >= INSERTED):
        column += symbols[k] < INSERTED
        k += 1
    return k, column


@njit_inner
def lay_out(symbols, begin, end, column, begins, draft):
    """Fill bases and mates from symbols[begin:end], from a column of the template on; returns their numbers.

    symbols : (n,) uint8, of a pile.  begins : (n_template + 1,) int64, of the consensus.  draft : overwritten.
    """
    n_columns = begins[column + count_columns(symbols, begin, end)] - begins[column]
    for c in range(n_columns):
        draft.mates[c] = -1
    first, spare = begins[column], U(len(draft.mates) - 1)
    room = last = np.int64(0)  # room to last: what came of the present column and has no base yet
    n_bases, here = np.int64(0), U(column)
    for k in range(U(begin), U(end)):
        symbol = symbols[k]
        stands, shows = symbol < INSERTED, symbol != GAP
        room = begins[here] - first if stands else room
        here += U(stands)
        last = begins[here] - first if stands else last
        fits = shows & (room < last)
        draft.mates[U(room) if fits else spare] = n_bases
        draft.bases[U(n_bases)] = symbol & 7
        n_bases += shows
        room += fits
    return n_bases, n_columns


@njit_inner
def measure(draft, codes, first, n_columns):
    """Fill what is told of each column, from the last one back.

    draft : bases and mates as `lay_out` fills them; the others are overwritten.
    codes : (n,) uint8, of the consensus.  first : column of it with which the path begins.
    """
    row, anchor, mate_after, seen = np.int32(0), np.int32(n_columns), np.int32(-1), np.int64(0)
    draft.anchors[n_columns], draft.differences[n_columns] = n_columns, 0
    for i in range(U(n_columns)):
        c = U(n_columns - 1) - i
        mate = draft.mates[c]
        shows = mate >= 0
        equal = shows & (draft.bases[U(mate if shows else 0)] == codes[U(first) + c])
        row = np.int32((row if mate_after == mate + 1 else np.int32(0)) + np.int32(1)) if equal else np.int32(0)
        anchor = np.int32(c) if row >= ANCHOR else anchor
        seen += SEEN * shows + (shows & (not equal))
        draft.rows[c], draft.anchors[c], draft.differences[c] = row, anchor, seen
        mate_after = mate


@njit_part
def find_anchor(draft, n_columns, column):
    """The next row of equal bases that stays, from a column on: its begin and end; both n_columns if there is none any more.

    The first one with ANCHOR bases; where none begins within LONGEST columns, the longest one there.
    """
    limit, begin = min(n_columns, column + LONGEST), np.int64(draft.anchors[column])
    if begin < limit:
        return begin, begin + draft.rows[begin]
    if limit == n_columns:
        return n_columns, n_columns
    begin, size, at = limit, np.int32(0), column
    while at < limit:
        if draft.rows[at] > size:
            begin, size = at, draft.rows[at]
        at += max(np.int32(1), draft.rows[at])
    return begin, begin + size


@njit_part
def count_differences(draft, column, end, n_bases):
    """Gaps and unequal pairs of the first path in some columns, where so many bases stand."""
    between = draft.differences[column] - draft.differences[end]
    return end - column + n_bases - 2 * (between // SEEN), between % SEEN
