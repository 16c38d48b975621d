"""The first path of a read on a new consensus, and where it can stay as it is.

Letters that stood in one column go to the bases that came of this column.  Both loops over a path have no branches that
depend on the reads: what comes next is as hard to foresee as errors are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_inner, njit_part, njit_vector
from bellapy.engines.tags.marks import (
    WORD,
    bytes_from,
    count_set,
    equal_bytes,
    find_set,
    find_unset,
    first_bits,
    rising,
    shifted,
)
from bellapy.engines.tags.symbols import GAP, INSERTED

ANCHOR = 8  # equal bases in a row that stay aligned
BLOCK = 32  # symbols that are passed at a time
LONGEST = 256  # columns in which the longest such row stays, where none has ANCHOR bases
NOTHING = np.uint8(255)  # in the place of a letter
ROOM = WORD + 1  # entries behind those of columns that vectors may look at
U = np.uint64


class Draft(NamedTuple):
    """The first path of one read, beside its columns of the consensus.

    bases : (n_bases,) uint8, the read's letters, as symbols below INSERTED.
    mates : (n_columns + 1,) int32 or more, the base that stands in a column, or -1; the last entry is scratch.
    letters : (n_columns + 1,) uint8 or as many more, this base itself, or NOTHING.
    shown, equal, linked, anchors : (n_columns // WORD + 1,) uint64, marks of columns: with a base; with that of the
        consensus; with it as the next one, and nothing between the two; with ANCHOR such ones from here on.
    """

    bases: np.ndarray
    mates: np.ndarray
    letters: np.ndarray
    shown: np.ndarray
    equal: np.ndarray
    linked: np.ndarray
    anchors: np.ndarray


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
    """Fill bases, mates and letters from symbols[begin:end], from a column of the template on; returns their numbers.

    symbols : (n,) uint8, of a pile.  begins : (n_template + 1,) int64, of the consensus.  draft : overwritten.
    """
    n_columns = begins[column + count_columns(symbols, begin, end)] - begins[column]
    for c in range(U(n_columns)):
        draft.mates[c] = -1
        draft.letters[c] = NOTHING
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
        place, letter = U(room) if fits else spare, symbol & 7
        draft.mates[place] = n_bases
        draft.letters[place] = letter
        draft.bases[U(n_bases)] = letter
        n_bases += shows
        room += fits
    return n_bases, n_columns


@njit_part
def _mark_some(draft, codes, first, column, n):
    """What `measure` notes of n columns from `column` on, without vectors: those with a base, with an equal one, and those
    whose base stands before that of the next column."""
    shown = equal = rises = U(0)
    for i in range(n):
        mate, bit = draft.mates[column + i], U(1) << U(i)
        if mate >= 0:
            shown |= bit
            equal |= bit if draft.letters[column + i] == codes[first + column + i] else U(0)
            rises |= bit if draft.mates[column + i + 1] == mate + 1 else U(0)
    return shown, equal, rises


@njit_inner
def measure(draft, codes, first, n_columns, in_vectors):
    """Mark the columns, word by word from the last one back.

    draft : bases, mates and letters as `lay_out` fills them; the others are overwritten.
    codes : (n,) uint8, of the consensus.  first : column of it with which the path begins.
    in_vectors : None for code without vectors; else mates, letters and codes have ROOM entries more behind them.
    """
    equal_after = linked_after = pairs_after = fours_after = U(0)
    for back in range(n_columns // WORD + 1):
        w = n_columns // WORD - back
        column = w * WORD
        n = min(WORD, n_columns - column)
        if in_vectors is None:
            shown, equal, rises = _mark_some(draft, codes, first, column, n)
        else:
            kept = ~U(0) if n == WORD else first_bits(n)
            shown = ~bytes_from(draft.letters, column, NOTHING) & kept
            equal = equal_bytes(draft.letters, column, codes, first + column) & kept
            rises = rising(draft.mates, column)
        linked = equal & shifted(equal, equal_after, 1) & rises
        pairs = linked & shifted(linked, linked_after, 1)
        fours = pairs & shifted(pairs, pairs_after, 2)
        draft.shown[w], draft.equal[w], draft.linked[w] = shown, equal, linked
        draft.anchors[w] = fours & shifted(fours, fours_after, ANCHOR - 1 - 4)
        equal_after, linked_after, pairs_after, fours_after = equal, linked, pairs, fours


@njit_part
def find_anchor(draft, n_columns, column):
    """The next row of equal bases that stays, from a column on: its begin and end; both n_columns if there is none any more.

    The first one with ANCHOR bases; where none begins within LONGEST columns, the longest one there.
    """
    limit = min(n_columns, column + LONGEST)
    begin = find_set(draft.anchors, column, limit)
    if begin < limit:
        return begin, find_unset(draft.linked, begin) + 1
    if limit == n_columns:
        return n_columns, n_columns
    begin, size, at = limit, 0, find_set(draft.equal, column, limit)
    while at < limit:
        row = find_unset(draft.linked, at) + 1 - at
        if row > size:
            begin, size = at, row
        at = find_set(draft.equal, at + row, limit)
    return begin, begin + size


@njit_part
def count_differences(draft, column, end, n_bases):
    """Gaps and unequal pairs of the first path in some columns, where so many bases stand."""
    n_shown = count_set(draft.shown, column, end)
    return end - column + n_bases - 2 * n_shown, n_shown - count_set(draft.equal, column, end)
