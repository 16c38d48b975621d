"""The reads of a pile, aligned again to the consensus that they gave.

The old path and the consensus give a first path: letters that stood in one column go to the bases that came of this column.
Where ANCHOR bases in a row are equal on it, it stays as it is, but for MARGIN bases at the ends of such a stretch; where no
such stretch begins within LONGEST columns, the longest one there takes its place.  What is between two of them is aligned
from corner to corner at least cost: MISMATCH for two unequal bases, GAP_COST for a base alone.

Where the consensus is, but for a few bases, the template that the reads are aligned to already, what lies between two
anchors and has no such base stays as it is.  Only the stretches around such bases are looked at, from anchor to anchor.

With unit costs two mismatches and a gap in either read often cost the same, and reads disagree where they need not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import COMPILES, njit, njit_inner, njit_part, put
from bellapy.engines.tags.draft import (
    ANCHOR,
    LONGEST,
    ROOM,
    Draft,
    count_columns,
    count_differences,
    find_anchor,
    go_to_column,
    lay_out,
    measure,
)
from bellapy.engines.tags.graph import Consensus
from bellapy.engines.tags.marks import WORD
from bellapy.engines.tags.narrow import LANES, MOST_SHORT, fill_8, fill_16, fill_16_short
from bellapy.engines.tags.symbols import GAP, INSERTED, Pile, shift_left

MARGIN = 2
MISMATCH, GAP_COST = 3, 2
EQUAL, UNEQUAL = 2 * GAP_COST, 2 * GAP_COST - MISMATCH  # what a pair saves beside two gaps: the score of a cell
MOST_BASES = 4096  # between two anchors, for want of memory for more
MOST_ROWS = LONGEST + MARGIN + 1  # of a rectangle's scores
MOST_WIDTH = MOST_BASES + MOST_ROWS + 1  # of its band, with a cell beside it
TOO_SMALL = -1
IN_VECTORS = True if COMPILES else None
U = np.uint64


@njit_part
def _measure_band(n_rows, n_bases, reach):
    """The cells that cheapest paths may cross: how far before its row's number the first one lies, and cells of a row.

    reach : the most gaps in both that such a path has beyond those in the longer one that it needs.
    """
    below = min(n_rows, max(0, n_rows - n_bases) + reach)
    return below, below + min(n_bases, max(0, n_bases - n_rows) + reach) + 1


@njit_part
def _fill(scores, bases, codes, base, n_bases, band):
    """Scores of a band's cells; that of (row, base) stands at row * (width + 1) + base - row + below.

    Cells beside these hold 0, the score of gaps alone.

    scores : int16, overwritten.  bases : uint8, letters of the read; base : of them, with which the rectangle begins.
    codes : (n_rows,) uint8, of its columns.  band : below and width, of `_measure_band`.
    """
    below, width = band
    here = U(width + 1)
    scores[:here] = 0
    for i in range(1, len(codes) + 1):
        first = max(0, below + 1 - i)  # cells before it have no base
        n = U(max(0, min(width, n_bases + below + 1 - i) - first))
        read, at = U(base + first + i - below - 1), here + U(first)
        above = at - U(width + 1)
        letter, best, before = codes[U(i - 1)], 0, np.int64(scores[above])
        if first > 0:
            scores[at - U(1)] = 0
        for k in range(n):
            up = np.int64(scores[above + k + U(1)])
            best = max(best, max(up, before + (EQUAL if bases[read + k] == letter else UNEQUAL)))
            scores[at + k] = best
            before = up
        here += U(width + 1)
        scores[here - U(1)] = 0


@njit_part
def _fill_band(scores, bases, codes, base, n_bases, band, in_vectors):
    """`_fill`, in vectors where it can."""
    below, width = band
    if in_vectors is None:
        _fill(scores, bases, codes, base, n_bases, band)
    elif width < 8:
        fill_8(scores, bases, base - below, codes, len(codes), below, width, EQUAL, UNEQUAL)
    elif width < 16 and len(codes) <= MOST_SHORT:
        fill_16_short(scores, bases, base - below, codes, len(codes), below, width, EQUAL, UNEQUAL)
    elif width < 16:
        fill_16(scores, bases, base - below, codes, len(codes), below, width, EQUAL, UNEQUAL)
    else:
        _fill(scores, bases, codes, base, n_bases, band)


@njit_part
def _align(bases, codes, base, n_bases, reach, scores, symbols, at, in_vectors):
    """Align bases of the read to columns of the consensus and write the symbols; returns where they end.

    Of equal costs, seen from the end, a pair goes before a base of the read alone, and this before one of the consensus.
    So equal bases at the end are pairs, as no path is cheaper without them.

    codes : (n_rows,) uint8, of these columns.  reach : see `_measure_band`.  scores : int16, overwritten.
    in_vectors : see `realign_read`.
    """
    last = end = U(at + len(codes) + n_bases)  # written backwards from here, then moved
    row, j, short = len(codes), n_bases, n_bases <= MOST_BASES
    while short and row > 0 and j > 0 and bases[U(base + j - 1)] == codes[U(row - 1)]:
        row, j, end = row - 1, j - 1, end - U(1)
        symbols[end] = bases[U(base + j)]
    band = _measure_band(row, j, reach)
    if short and row > 0 and j > 0:
        _fill_band(scores, bases, codes[:row], base, j, band, in_vectors)
    line = U(band[1] + 1)
    cell = U(row) * line + U(j - row + band[0])
    while short and row > 0 and j > 0:
        letter = bases[U(base + j - 1)]
        gain = EQUAL if letter == codes[U(row - 1)] else UNEQUAL
        end -= U(1)
        if scores[cell] == scores[cell - line] + gain:
            row, j = row - 1, j - 1
            cell -= line
            symbols[end] = letter
        elif scores[cell] == scores[cell - U(1)]:
            j -= 1
            cell -= U(1)
            symbols[end] = letter + np.uint8(INSERTED)
        else:
            row -= 1
            cell -= line - U(1)
            symbols[end] = GAP
    while j > 0:
        j, end = j - 1, end - U(1)
        symbols[end] = bases[U(base + j)] + np.uint8(INSERTED)
    while row > 0:
        row, end = row - 1, end - U(1)
        symbols[end] = GAP
    for k in range(last - end):
        symbols[U(at) + k] = symbols[end + k]
    return at + np.int64(last - end)


@njit_part
def _keep(bases, mates, column, end_column, base, end_base, symbols, at):
    """Write the symbols of bases and columns as they stand on the first path; returns where they end."""
    for c in range(U(column), U(end_column)):
        mate = np.int64(mates[c])
        for j in range(base, mate):
            symbols[U(at)] = bases[U(j)] + np.uint8(INSERTED)
            at += 1
        symbols[U(at)] = GAP if mate < 0 else bases[U(mate)]
        at += 1
        base = max(base, mate + 1)
    for j in range(base, end_base):
        symbols[U(at)] = bases[U(j)] + np.uint8(INSERTED)
        at += 1
    return at


@njit_inner
def _realign_read(draft, codes, changes, first, n_bases, n_columns, scores, symbols, at, in_vectors):
    """Write the symbols of a stretch of a read; returns where they end, or TOO_SMALL.

    changes : (n + 1,) int64, how many columns before each one are new.  scores : int16, overwritten.
    """
    column = base = np.int64(0)  # what is written already
    while column < n_columns or base < n_bases:
        begin, end = find_anchor(draft, n_columns, column)
        kept, kept_end, mate = begin, end, n_bases
        if end > begin:
            kept = begin + (MARGIN if begin > column and end - begin > 2 * MARGIN else 0)
            kept_end = end - (MARGIN if end < n_columns and end - begin > 2 * MARGIN else 0)
            mate = draft.mates[begin] + kept - begin
        elif begin < n_columns:
            mate = _bases_before(draft.mates, base, column, begin)
        gaps, unequal, n_rows, n_between = 0, 0, kept - column, mate - base
        if changes[first + column] != changes[first + kept]:
            gaps, unequal = count_differences(draft, column, kept, n_between)
        if gaps + unequal < (2 if column > 0 else 1):  # as cheap as any; a gap before the first column would be cut
            at = _keep(draft.bases, draft.mates, column, kept, base, mate, symbols, at)
        else:  # a path that is not dearer than the first one has so many gaps in both
            reach = (gaps - abs(n_rows - n_between) + unequal * MISMATCH // GAP_COST) // 2
            _, width = _measure_band(n_rows, n_between, reach)
            if n_between <= MOST_BASES and (n_rows + 1) * (width + 1) > len(scores):
                return TOO_SMALL
            between = codes[first + column : first + kept]
            at = _align(draft.bases, between, base, n_between, reach, scores, symbols, at, in_vectors)
        put(symbols, at, draft.bases, mate, mate + kept_end - kept)
        at += kept_end - kept
        column, base = kept_end, mate + kept_end - kept
    return at


@njit_inner
def _bases_before(mates, base, column, end):
    """How many bases of the read stand before a column of the first path, where `base` stand before `column`."""
    for at in range(end - 1, column - 1, -1):
        if mates[at] >= 0:
            return mates[at] + 1
    return base


@njit_inner
def _strip(symbols, begin, end, start):
    """The part of a path from its first column with a base to its last one: begin, end, start."""
    while begin < end and (symbols[begin] == GAP or symbols[begin] >= INSERTED):
        start += symbols[begin] == GAP
        begin += 1
    while end > begin and (symbols[end - 1] == GAP or symbols[end - 1] >= INSERTED):
        end -= 1
    return begin, end, start


@njit_inner
def _measure(pile, begins):
    """The most symbols and new columns that a read has, and those of all together."""
    most_symbols = most_columns = total = 0
    for i in range(len(pile.starts)):
        n_symbols = pile.offsets[i + 1] - pile.offsets[i]
        n_columns = count_columns(pile.symbols, pile.offsets[i], pile.offsets[i + 1])
        n_columns = begins[pile.starts[i] + n_columns] - begins[pile.starts[i]]
        most_symbols, most_columns = max(most_symbols, n_symbols), max(most_columns, n_columns)
        total += n_symbols + n_columns
    return most_symbols, most_columns, total


@njit_inner
def _next_slice(symbols, template, next_change, begin, end, column):
    """The next stretch of a read, symbols[begin:end] from a column on, that has to be aligned again.

    It begins with ANCHOR equal bases before the next column that changed, or with the read; it ends behind as many, or with
    the read.  Returns its begin, column and end, and how many of its last symbols are such bases.

    next_change : (n_template + 1,) int64, the next column that changed, from each one on.
    """
    (k, here), equal = go_to_column(symbols, begin, end, column, next_change[column]), 0
    if k == end:
        return end, here, end, 0, here
    first, start = k, here
    while first > begin and equal < ANCHOR:
        first -= 1
        start -= symbols[first] < INSERTED
        equal = equal + 1 if symbols[first] < GAP and symbols[first] == template[start] else 0
    equal = 0
    while k < end and equal < ANCHOR:
        same = next_change[here] != here and symbols[k] < GAP and symbols[k] == template[here]
        equal = equal + 1 if same else 0
        here += symbols[k] < INSERTED
        k += 1
    ahead = equal if k < end else 0
    return first, start, k, ahead, here - ahead


@njit_inner
def _cut_ends(symbols, begin, end, start):
    """Cut the ends of a path that show no base; returns its end and first column."""
    first, end, start = _strip(symbols, begin, end, start)
    if first > begin:
        for k in range(end - first):
            symbols[begin + k] = symbols[first + k]
    return begin + end - first, start


class Change(NamedTuple):
    """How a template became its consensus; of a read's path on the one comes that on the other.

    codes : (n,) uint8, of the consensus.  begins : (n_template + 1,) int64, as `Consensus` has them.
    changes : (n + 1,) int64, how many columns of the consensus before each one are new.
    template : (n_template,) uint8 codes.
    next_change : (n_template + 1,) int64, the next column of the template that is not just one of the consensus.
    """

    codes: np.ndarray
    begins: np.ndarray
    changes: np.ndarray
    template: np.ndarray
    next_change: np.ndarray


@njit_inner
def mark_all(change):
    """Fill changes and next_change where everything is aligned again."""
    for k in range(len(change.changes)):
        change.changes[k] = k
    for k in range(len(change.next_change)):
        change.next_change[k] = k


@njit_inner
def mark_new(change):
    """Fill changes and next_change: a column is new if its base is; beside a base that is left out, both are."""
    begins, changes, next_change = change.begins, change.changes, change.next_change
    n_new, n_old = len(change.codes), len(change.template)
    changes[0] = 0
    for k in range(1, n_new + 1):  # at first, whether the column before k is new
        changes[k] = 1
    for column in range(n_old):
        if begins[column + 1] - begins[column] == 1:
            changes[begins[column] + 1] = change.codes[begins[column]] != change.template[column]
    for column in range(n_old):
        here = begins[column]
        if begins[column + 1] == here:
            if here < n_new:
                changes[here + 1] = 1
            if here > 0:
                changes[here] = 1
    next_change[n_old] = n_old
    for i in range(n_old):
        column = n_old - 1 - i
        stays = begins[column + 1] - begins[column] == 1 and changes[begins[column] + 1] == 0
        next_change[column] = next_change[column + 1] if stays else column
    for k in range(n_new):
        changes[k + 1] += changes[k]


@njit_inner
def realign_read(old, begin, end, column, change, draft, scores, symbols, at, in_vectors):
    """Write the symbols of a read on the consensus from symbols[at] on; returns where they end, and its first column.

    Where they end is TOO_SMALL if `scores` has too little room.

    old : (n,) uint8, symbols; those of the read are old[begin:end], from a column of the template on.
    draft : with room for the whole read, overwritten.  scores : int16, overwritten.
    in_vectors : None for code without vectors, as a GPU needs it; else bases and scores have room for LANES more beside,
        codes, mates and letters for ROOM more behind, and symbols for WORD.
    """
    codes, begins, written = change.codes, change.begins, at
    k, start, all_new = begin, begins[column], change.changes[len(codes)] == len(codes)
    while k < end:
        first, there, last, ahead = begin, column, end, 0
        if not all_new:
            first, there, last, ahead, column = _next_slice(old, change.template, change.next_change, k, end, column)
        put(symbols, at, old, k, first)
        at += first - k
        if first < last:
            n_bases, n_columns = lay_out(old, first, last, there, begins, draft)
            measure(draft, codes, begins[there], n_columns, in_vectors)
            here = at
            at = _realign_read(
                draft, codes, change.changes, begins[there], n_bases, n_columns, scores, symbols, at, in_vectors
            )
            if at == TOO_SMALL:
                return at, start
            at, start = _cut_ends(symbols, written, at, start)
            shift_left(symbols, written, here, at, codes, start if here == written else begins[there], in_vectors)
        at, k = at - ahead, last - ahead
    return at, start


@njit
def _realign(pile, consensus, template, is_new, in_vectors):
    """`realign` with arrays for records; is_new: whether all is aligned again."""
    n, n_new = len(pile.starts), len(consensus.codes)
    codes = np.zeros(n_new + ROOM, np.uint8)
    put(codes, 0, consensus.codes, 0, n_new)
    change = Change(
        codes[:n_new], consensus.begins, np.empty(n_new + 1, np.int64), template, np.empty(len(consensus.begins), np.int64)
    )
    if is_new:
        mark_all(change)
    else:
        mark_new(change)
    most_symbols, most_columns, total = _measure(pile, consensus.begins)
    bases, n_words = np.zeros(most_symbols + 2 * LANES, np.uint8)[LANES:], most_columns // WORD + 1
    draft = Draft(
        bases, np.zeros(most_columns + ROOM, np.int32), np.zeros(most_columns + ROOM, np.uint8),
        np.empty(n_words, U), np.empty(n_words, U), np.empty(n_words, U), np.empty(n_words, U),
    )  # fmt: skip
    scores = np.empty(MOST_ROWS * min(MOST_WIDTH, most_symbols + MOST_ROWS + 1) + LANES, np.int16)
    symbols, offsets, starts = np.empty(total + WORD, np.uint8), np.zeros(n + 1, np.int64), np.empty(n, np.int64)
    for i in range(n):
        offsets[i + 1], starts[i] = realign_read(
            pile.symbols, pile.offsets[i], pile.offsets[i + 1], pile.starts[i], change, draft, scores, symbols, offsets[i],
            in_vectors,
        )  # fmt: skip
    return symbols[: offsets[n]], offsets, starts


def realign(pile: Pile, consensus: Consensus, template: np.ndarray | None = None) -> Pile:
    """The pile of the same reads on the consensus, its first read the template as it was.

    A read of which nothing stands on the consensus has no symbols.

    Parameters
    ----------
    template : (n,) uint8 codes that the pile was realigned to before; None: paths come from elsewhere, all is aligned again.
    """
    is_new = template is None
    return Pile(*_realign(pile, consensus, consensus.codes if template is None else template, is_new, IN_VECTORS))
