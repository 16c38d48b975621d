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

import numpy as np

from bellapy.compute.jit import njit, njit_inner, njit_part, put
from bellapy.engines.tags.draft import (
    ANCHOR,
    LONGEST,
    Draft,
    count_columns,
    count_differences,
    find_anchor,
    lay_out,
    measure,
)
from bellapy.engines.tags.graph import Consensus
from bellapy.engines.tags.symbols import GAP, INSERTED, Pile, shift_left

MARGIN = 2
MISMATCH, GAP_COST = 3, 2
EQUAL, UNEQUAL = 2 * GAP_COST, 2 * GAP_COST - MISMATCH  # what a pair saves beside two gaps: the score of a cell
BLOCK = 32  # symbols that are passed at a time
MOST_BASES = 4096  # between two anchors, for want of memory for more
U = np.uint64


@njit_part
def _fill(scores, bases, codes, base, n_bases, reach):
    """Scores of the cells that cheapest paths may cross; that of (row, base) stands at row * (n_bases + 1) + base.

    Cells beside these hold 0, the score of gaps alone.

    scores : int16, overwritten.  bases : uint8, letters of the read; base : of them, with which the rectangle begins.
    codes : (n_rows,) uint8, of its columns.
    reach : the most gaps in both that such a path has beyond those in the longer one that it needs.
    """
    n_rows, width = len(codes), n_bases + 1
    below, beyond = max(0, n_rows - n_bases) + reach, max(0, n_bases - n_rows) + reach
    scores[: min(width, beyond + 2)] = 0
    for i in range(1, n_rows + 1):
        first, last = max(1, i - below), min(n_bases, i + beyond)
        here = U(i * width + first)
        above, read = here - U(width), U(base + first - 1)
        letter, best = codes[i - 1], 0
        scores[here - U(1)] = 0
        before = np.int64(scores[above - U(1)])
        for j in range(U(last - first + 1)):
            up = np.int64(scores[above + j])
            best = max(best, max(up, before + (EQUAL if bases[read + j] == letter else UNEQUAL)))
            scores[here + j] = best
            before = up
        if last < n_bases:
            scores[here + U(last - first + 1)] = 0


@njit_part
def _align(bases, codes, base, n_bases, reach, scores, symbols, at):
    """Align bases of the read to columns of the consensus and write the symbols; returns where they end.

    Of equal costs, seen from the end, a pair goes before a base of the read alone, and this before one of the consensus.

    codes : (n_rows,) uint8, of these columns.  reach : see `_fill`.  scores : int16, overwritten.
    """
    row, j, width = len(codes), n_bases, n_bases + 1
    simple = row == 0 or n_bases == 0 or n_bases > MOST_BASES
    if not simple:
        _fill(scores, bases, codes, base, n_bases, reach)
    last = end = at + row + n_bases  # written backwards from here, then moved
    while row > 0 or j > 0:
        cell = row * width + j
        letter = bases[base + j - 1]
        gain = EQUAL if row > 0 and letter == codes[row - 1] else UNEQUAL
        end -= 1
        if not simple and row > 0 and j > 0 and scores[cell] == scores[cell - width - 1] + gain:
            row, j = row - 1, j - 1
            symbols[end] = letter
        elif j > 0 and (simple or scores[cell] == scores[cell - 1]):
            j -= 1
            symbols[end] = letter + np.uint8(INSERTED)
        else:
            row -= 1
            symbols[end] = GAP
    for k in range(last - end):
        symbols[at + k] = symbols[end + k]
    return at + last - end


@njit_part
def _keep(bases, mates, column, end_column, base, end_base, symbols, at):
    """Write the symbols of bases and columns as they stand on the first path; returns where they end."""
    for c in range(column, end_column):
        mate = mates[c]
        for j in range(base, mate):
            symbols[at] = bases[j] + np.uint8(INSERTED)
            at += 1
        symbols[at] = GAP if mate < 0 else bases[mate]
        at += 1
        base = max(base, mate + 1)
    for j in range(base, end_base):
        symbols[at] = bases[j] + np.uint8(INSERTED)
        at += 1
    return at


@njit_inner
def _realign_read(draft, codes, changes, first, n_bases, n_columns, scores, symbols, at):
    """Write the symbols of one read; returns where they end.

    changes : (n + 1,) int64, how many columns before each one are new.  scores : int16, overwritten.
    """
    column = base = 0  # what is written already
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
            between = codes[first + column : first + kept]
            at = _align(draft.bases, between, base, n_between, reach, scores, symbols, at)
        for k in range(kept_end - kept):
            symbols[at + k] = draft.bases[mate + k]
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
    change, k, here, equal = next_change[column], begin, column, 0
    while k + BLOCK <= end and here + BLOCK <= change:
        here += count_columns(symbols, k, k + BLOCK)
        k += BLOCK
    while k < end and (here < change or symbols[k] >= INSERTED):
        here += symbols[k] < INSERTED
        k += 1
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


@njit
def _realign(pile, codes, begins, changes, template, next_change):
    """`realign` with arrays for records; changes and next_change as `_realign_read` and `_next_slice` take them."""
    n = len(pile.starts)
    most_symbols, most_columns, total = _measure(pile, begins)
    draft = Draft(
        np.empty(most_symbols, np.uint8), np.empty(most_columns + 1, np.int32), np.empty(most_columns, np.int32),
        np.empty(most_columns + 1, np.int32), np.empty(most_columns + 1, np.int64),
    )  # fmt: skip
    scores = np.empty((LONGEST + MARGIN + 1) * (min(MOST_BASES, most_symbols) + 1), np.int16)
    symbols, offsets, starts = np.empty(total, np.uint8), np.zeros(n + 1, np.int64), np.empty(n, np.int64)
    for i in range(n):
        at = begin = offsets[i]
        k, end, column = pile.offsets[i], pile.offsets[i + 1], pile.starts[i]
        starts[i] = begins[column]
        while k < end:
            first, start, last, ahead, column = _next_slice(pile.symbols, template, next_change, k, end, column)
            put(symbols, at, pile.symbols, k, first)
            at += first - k
            if first < last:
                n_bases, n_columns = lay_out(pile.symbols, first, last, start, begins, draft)
                measure(draft, codes, begins[start], n_columns)
                written = at
                at = _realign_read(draft, codes, changes, begins[start], n_bases, n_columns, scores, symbols, at)
                at, starts[i] = _cut_ends(symbols, begin, at, starts[i])
                shift_left(symbols, begin, written, at, codes, starts[i] if written == begin else begins[start])
            at, k = at - ahead, last - ahead
        offsets[i + 1] = at
    return symbols[:at].copy(), offsets, starts


def mark_changes(consensus: Consensus, template: np.ndarray) -> np.ndarray:
    """Which columns of a consensus are new, (n,) bool; beside a base that is left out, both are."""
    begins, sizes = consensus.begins[:-1], np.diff(consensus.begins)
    old = begins[sizes == 1]
    changed = np.ones(len(consensus.codes) + 1, bool)
    changed[old] = consensus.codes[old] != template[sizes == 1]
    left_out = begins[sizes == 0]
    changed[left_out] = True
    changed[left_out[left_out > 0] - 1] = True
    return changed[:-1]


def find_next(consensus: Consensus, changed: np.ndarray) -> np.ndarray:
    """The next column of the template that is not just a column of the consensus, from each one on, (n + 1,) int64."""
    begins, sizes = consensus.begins[:-1], np.diff(consensus.begins)
    places = np.append(
        np.where((sizes != 1) | np.append(changed, True)[begins], np.arange(len(sizes)), len(sizes)), len(sizes)
    )
    return np.minimum.accumulate(places[::-1])[::-1]


def realign(pile: Pile, consensus: Consensus, template: np.ndarray | None = None) -> Pile:
    """The pile of the same reads on the consensus, its first read the template as it was.

    A read of which nothing stands on the consensus has no symbols.

    Parameters
    ----------
    template : (n,) uint8 codes that the pile was realigned to before; None: paths come from elsewhere, all is aligned again.
    """
    if template is None:
        changed, next_change = np.ones(len(consensus.codes), bool), np.arange(len(consensus.begins))
        template = consensus.codes  # not looked at
    else:
        changed = mark_changes(consensus, template)
        next_change = find_next(consensus, changed)
    changes = np.concatenate(([0], np.cumsum(changed)))
    return Pile(*_realign(pile, consensus.codes, consensus.begins, changes, template, next_change))
