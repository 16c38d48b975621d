"""The reads of a pile, aligned again to the consensus that they gave.

The old path and the consensus give a first path: letters that stood in one column go to the bases that came of this column.
Where ANCHOR bases in a row are equal on it, it stays as it is, but for MARGIN bases at the ends of such a stretch; where no
such stretch begins within LONGEST columns, the longest one there takes its place.  What is between two of them is aligned
from corner to corner at least cost: MISMATCH for two unequal bases, GAP_COST for a base alone.

Where the consensus is, but for a few bases, the template that the reads are aligned to already, what lies between two
anchors and has no such base stays as it is.

With unit costs two mismatches and a gap in either read often cost the same, and reads disagree where they need not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_inner, njit_vector
from bellapy.engines.tags.graph import Consensus
from bellapy.engines.tags.symbols import GAP, INSERTED, Pile, shift_left

ANCHOR, MARGIN = 8, 2
LONGEST = 256
EQUAL, MISMATCH, GAP_COST = np.int16(0), np.int16(3), np.int16(2)
MOST_BASES = 4096  # between two anchors: their costs fit 16 bits
FAR = np.int16(1 << 14)  # the cost of a cell outside the table
TILE = 32  # rows of an anti-diagonal computed at a time
BESIDE = 255  # a base beyond the ends of the read: equal to nothing
U = np.uint64


class Draft(NamedTuple):
    """The first path of one read.

    bases : uint8, the read's letters, as symbols below INSERTED.
    mates : int64, for each column of the consensus from the first one on, the base of the read that stands there, or -1.
    """

    bases: np.ndarray
    mates: np.ndarray


class Table(NamedTuple):
    """Working memory of one alignment.

    costs : (n,) int16, of cells by anti-diagonals, with one before the first; a row beside another, the first at TILE.
    read : (n,) uint8, bases of the read backwards, from TILE on.
    template : (n,) uint8, the base before every row.
    """

    costs: np.ndarray
    read: np.ndarray
    template: np.ndarray


@njit_inner
def _draft(pile, i, begins, draft):
    """Fill the first path of read i; returns the numbers of its bases and columns."""
    n_bases, column = 0, pile.starts[i] - 1
    first = room = end = begins[column + 1]  # room to end: what came of the present column and has no base yet
    for k in range(pile.offsets[i], pile.offsets[i + 1]):
        symbol = pile.symbols[k]
        if symbol < INSERTED:
            column += 1
            for new in range(room, end):
                draft.mates[new - first] = -1
            room, end = begins[column], begins[column + 1]
        if symbol != GAP:
            draft.bases[n_bases] = symbol & 7
            if room < end:
                draft.mates[room - first] = n_bases
                room += 1
            n_bases += 1
    for new in range(room, end):
        draft.mates[new - first] = -1
    return n_bases, end - first


@njit_inner
def _anchor(draft, codes, first, n_columns, column):
    """The next anchor from a column on: its first column and its end; both n_columns if there is none any more."""
    best, best_size, at = column, 0, column
    limit = min(n_columns, column + LONGEST)
    while at < limit:
        mate = draft.mates[at]
        begin = at
        while at < n_columns and mate >= 0 and draft.mates[at] == mate and draft.bases[mate] == codes[first + at]:
            at, mate = at + 1, mate + 1
        if at - begin > best_size:
            best, best_size = begin, at - begin
            if best_size >= ANCHOR:
                return best, at
        at = max(at, begin + 1)
    if limit == n_columns:
        return n_columns, n_columns
    return (best, best + best_size) if best_size else (limit, limit)


@njit_vector
def _diagonal(new, new_at, old, old_at, older, older_at, read, read_at, template, tiles):
    """Costs of the cells of one anti-diagonal, TILE rows at a time.

    new, old, older : parts of one array, which do not overlap: it and those before it, from *_at on.
    tiles : int64, the first tile and the end of the last.
    """
    for t in range(U(tiles[0]), U(tiles[1])):
        at = t * U(TILE)
        n, o, p, r = U(new_at) + at, U(old_at) + at, U(older_at) + at, U(read_at) + at
        for e in range(U(TILE)):
            alone = np.int16(min(old[o + e], old[o + e - U(1)]) + GAP_COST)
            paired = np.int16(older[p + e - U(1)] + (EQUAL if read[r + e] == template[at + e] else MISMATCH))
            new[n + e] = min(alone, paired)


@njit_inner
def _fill(table, draft, codes, column, n_rows, base, n_bases):
    """Costs of all cells; that of (row, base) stands at (row + base + 1) * width + TILE + row.  Returns width."""
    read, template, costs = table.read, table.template, table.costs
    for j in range(TILE):
        read[j] = read[TILE + n_bases + j] = BESIDE
    for j in range(n_bases):
        read[TILE + n_bases - 1 - j] = draft.bases[base + j]
    for j in range(n_rows):
        template[j + 1] = codes[column + j]
    width = TILE * (n_rows // TILE + 2)
    costs[: (n_rows + n_bases + 2) * width] = FAR
    costs[width + TILE] = 0
    for d in range(1, n_rows + n_bases + 1):
        new = (d + 1) * width + TILE
        tiles = max(0, d - n_bases) // TILE, min(n_rows, d) // TILE + 1
        _diagonal(costs, new, costs, new - width, costs, new - 2 * width, read, n_bases - d + TILE, template, tiles)
    return width


@njit_inner
def _align(draft, codes, column, n_rows, base, n_bases, table, symbols, at):
    """Align bases of the read to columns of the consensus and write the symbols; returns where they end.

    Of equal costs, seen from the end, a pair goes before a base of the read alone, and this before one of the consensus.
    """
    row, j = n_rows, n_bases
    simple = n_rows == 0 or n_bases == 0 or n_bases > MOST_BASES
    width = 0 if simple else _fill(table, draft, codes, column, n_rows, base, n_bases)
    end, here = at + n_rows + n_bases, np.int16(0)  # written backwards from here, then moved
    last, costs = end, table.costs
    while row > 0 or j > 0:
        cell = (row + j + 1) * width + TILE + row
        here = costs[cell]
        letter = draft.bases[base + j - 1]
        price = EQUAL if row > 0 and letter == codes[column + row - 1] else MISMATCH
        end -= 1
        if not simple and row > 0 and j > 0 and here == costs[cell - 2 * width - 1] + price:
            row, j = row - 1, j - 1
            symbols[end] = letter
        elif j > 0 and (simple or here == costs[cell - width] + GAP_COST):
            j -= 1
            symbols[end] = letter + np.uint8(INSERTED)
        else:
            row -= 1
            symbols[end] = GAP
    for k in range(last - end):
        symbols[at + k] = symbols[end + k]
    return at + last - end


@njit_inner
def _keep(draft, column, end_column, base, end_base, symbols, at):
    """Write the symbols of bases and columns as they stand on the first path; returns where they end."""
    for c in range(column, end_column):
        mate = draft.mates[c]
        for j in range(base, mate):
            symbols[at] = draft.bases[j] + np.uint8(INSERTED)
            at += 1
        symbols[at] = GAP if mate < 0 else draft.bases[mate]
        at += 1
        base = max(base, mate + 1)
    for j in range(base, end_base):
        symbols[at] = draft.bases[j] + np.uint8(INSERTED)
        at += 1
    return at


@njit_inner
def _realign_read(draft, codes, changes, first, n_bases, n_columns, table, symbols, at):
    """Write the symbols of one read; returns where they end.

    changes : (n + 1,) int64, how many columns before each one are new.
    """
    column = base = 0  # what is written already
    while column < n_columns or base < n_bases:
        begin, end = _anchor(draft, codes, first, n_columns, column)
        kept, kept_end, mate = begin, end, n_bases
        if end > begin:
            kept = begin + (MARGIN if begin > column and end - begin > 2 * MARGIN else 0)
            kept_end = end - (MARGIN if end < n_columns and end - begin > 2 * MARGIN else 0)
            mate = draft.mates[begin] + kept - begin
        elif begin < n_columns:
            mate = _bases_before(draft, base, column, begin)
        if changes[first + column] == changes[first + kept]:
            at = _keep(draft, column, kept, base, mate, symbols, at)
        else:
            at = _align(draft, codes, first + column, kept - column, base, mate - base, table, symbols, at)
        for k in range(kept_end - kept):
            symbols[at + k] = draft.bases[mate + k]
        at += kept_end - kept
        column, base = kept_end, mate + kept_end - kept
    return at


@njit_inner
def _bases_before(draft, base, column, end):
    """How many bases of the read stand before a column of the first path, where `base` stand before `column`."""
    for at in range(end - 1, column - 1, -1):
        if draft.mates[at] >= 0:
            return draft.mates[at] + 1
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
        n_symbols, n_columns = pile.offsets[i + 1] - pile.offsets[i], 0
        for k in range(pile.offsets[i], pile.offsets[i + 1]):
            n_columns += pile.symbols[k] < INSERTED
        n_columns = begins[pile.starts[i] + n_columns] - begins[pile.starts[i]]
        most_symbols, most_columns = max(most_symbols, n_symbols), max(most_columns, n_columns)
        total += n_symbols + n_columns
    return most_symbols, most_columns, total


@njit
def _realign(pile, codes, begins, changes):
    """`realign` with arrays for records; changes as `_realign_read` takes them."""
    n = len(pile.starts)
    most_symbols, most_columns, total = _measure(pile, begins)
    draft = Draft(np.empty(most_symbols, np.uint8), np.empty(most_columns, np.int64))
    n_rows, n_bases = LONGEST + MARGIN, min(MOST_BASES, most_symbols)
    table = Table(
        np.empty((n_rows + n_bases + 2) * (n_rows + 2 * TILE), np.int16), np.empty(n_bases + 2 * TILE, np.uint8),
        np.zeros(n_rows + 2 * TILE, np.uint8),
    )  # fmt: skip
    symbols, offsets, starts = np.empty(total, np.uint8), np.zeros(n + 1, np.int64), np.empty(n, np.int64)
    at = 0
    for i in range(n):
        first = begins[pile.starts[i]]
        n_bases, n_columns = _draft(pile, i, begins, draft)
        begin, end, starts[i] = _strip(
            symbols, at, _realign_read(draft, codes, changes, first, n_bases, n_columns, table, symbols, at), first
        )
        for k in range(end - begin):
            symbols[at + k] = symbols[begin + k]
        end -= begin - at
        shift_left(symbols, at, end, codes, starts[i])
        offsets[i + 1] = at = end
    return symbols[:at].copy(), offsets, starts


def count_changes(consensus: Consensus, template: np.ndarray) -> np.ndarray:
    """How many columns before each one of a consensus are new, (n + 1,) int64; beside a base that is left out, both are."""
    begins, sizes = consensus.begins[:-1], np.diff(consensus.begins)
    old = begins[sizes == 1]
    changed = np.ones(len(consensus.codes) + 1, bool)
    changed[old] = consensus.codes[old] != template[sizes == 1]
    left_out = begins[sizes == 0]
    changed[left_out] = True
    changed[left_out[left_out > 0] - 1] = True
    return np.concatenate(([0], np.cumsum(changed[:-1])))


def realign(pile: Pile, consensus: Consensus, template: np.ndarray | None = None) -> Pile:
    """The pile of the same reads on the consensus, its first read the template as it was.

    A read of which nothing stands on the consensus has no symbols.

    Parameters
    ----------
    template : (n,) uint8 codes that the pile was realigned to before; None: paths come from elsewhere, all is aligned again.
    """
    n = len(consensus.codes)
    changes = np.arange(n + 1) if template is None else count_changes(consensus, template)
    return Pile(*_realign(pile, consensus.codes, consensus.begins, changes))
