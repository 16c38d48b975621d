"""The tag graph of a pile, and the best path through it: the consensus.

A node is a column of the template, a slot and a letter.  Slot 0 is the column itself, with a base or a gap.  Slots 1 to 5
hold bases that reads have between this column and the next one.  A read links every node to the one before it.  A path
scores the links it takes, UNIT for each.  An inserted node costs a share of the column's coverage, and so does a gap.

Where fewer reads than are asked for stand beside the template, its own base stays, and nothing is inserted.

Source: the tags of falcon_sense (Chin et al. 2013), as a graph with linked nodes.  Differs from it in the costs, which are
learnt, and in that every slot is linked to the one before it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_inner
from bellapy.engines.tags.draft import count_columns
from bellapy.engines.tags.links import HALF, LANES, LEAST_KEY, LETTERS, NO_LINK, ROW_BITS, WIDTH, enter, follow
from bellapy.engines.tags.symbols import GAP, INSERTED, UNKNOWN_BASE, Pile

SLOTS = 6
BLOCK = 128  # columns counted at a time
I32, U = np.int32, np.uint64
START = 0  # the node before the first column
SLOT = (BLOCK + 1) * LETTERS  # nodes that are counted in a slot


class Terms(NamedTuple):
    """What nodes cost, in parts of UNIT for each read of the coverage; a NamedTuple because compiled code accepts it."""

    insertion: int = 32  # an inserted base
    gap: int = 0  # no base in a column


class Consensus(NamedTuple):
    """The consensus of a pile.

    codes : (n,) uint8.
    raw : (n,) bool, where the template's base stays for want of other reads.
    slots : (n,) uint8, of each base: 0 in a column, others between columns.
    begins : (n_template + 1,) int64, the consensus base with which each column of the template begins.
    """

    codes: np.ndarray
    raw: np.ndarray
    slots: np.ndarray
    begins: np.ndarray


@njit_inner
def _count_reads(pile, first, depth):
    """Count the reads in each column, from read `first` on; depth : (n_columns + 1,) int32 of zeros."""
    for i in range(first, len(pile.starts)):
        begin = pile.starts[i]
        depth[begin] += np.int32(1)
        depth[begin + count_columns(pile.symbols, pile.offsets[i], pile.offsets[i + 1])] -= np.int32(1)
    for column in range(1, len(depth)):
        depth[column] += depth[column - 1]


@njit_inner
def _count(pile, voters, next_symbol, first, last, links, cover):
    """Count what reads show after each node of columns first to last - 1, from read `voters` on.

    Nothing of it but the end of a read hangs on a branch: where reads have errors cannot be foreseen.

    next_symbol : (n,) int64, the symbol of each read to go on from, which stands in a column; changed.
    links : uint16, of the column before `first` and of these ones: LANES counts for each node, by the symbol that comes
        next, be it behind `last` - 1.  Slot by slot, so that nodes in use lie close together.  What comes after letters that
        are not known is counted behind the slots, where nobody looks.
    cover : (n_columns,) int32, reads in a column; those whose letter is not known are taken off.
    """
    symbols, end_row, step, nowhere = pile.symbols, U((last - first + 1) * LETTERS), U(SLOT), U(SLOTS * SLOT)
    for i in range(voters, len(next_symbol)):
        at, end = U(next_symbol[i]), U(pile.offsets[i + 1])
        if pile.starts[i] >= last or at >= end:
            continue
        row, symbol = U((max(first, pile.starts[i]) - first + 1) * LETTERS), U(symbols[at])
        if pile.starts[i] == 0 and first == 0:
            links[U(START * LANES) + symbol] += np.uint16(1)
        node = slot = U(0)
        while True:
            grown = (symbol >> U(3)) * (slot + step)  # 0 for a symbol in a column
            if symbol & U(5) != U(UNKNOWN_BASE) and grown < nowhere:
                slot, node = grown, grown + (symbol & U(7))
            elif symbol < U(INSERTED):  # not known
                cover[U(first) + row // U(LETTERS) - U(1)] -= np.int32(1)
                node = slot = nowhere
            at += U(1)
            if at >= end:
                break
            symbol = U(symbols[at])
            links[(row + node) * U(LANES) + symbol] += np.uint16(1)
            row += U(LETTERS) if symbol < U(INSERTED) else U(0)
            if row >= end_row:
                break
        next_symbol[i] = at


@njit_inner
def _score_column(links, row, costs, top, coming, between, keys, back, at):
    """Keys of all nodes of a column, and the best ones before them.  Returns the best key, and whether any path reaches it.

    links : as `_count` has them; those of the row are set to 0.  costs : of inserted nodes and of gaps.
    top : the best score of the column before.
    coming, between : (HALF,) int32, the best keys before the letters of this column, NO_LINK; then those of the next one.
    keys : (WIDTH + HALF,) int32, overwritten.  back : uint8, from `at` on overwritten.
    """
    place = row * LETTERS * LANES
    best = enter(coming, top, 0, costs[1], keys, 0, back, at)
    reached, first = best > LEAST_KEY, 0
    if not reached:  # nothing is known: the template's own letter stays
        for letter in range(LETTERS):
            keys[letter] = WIDTH - 1 - letter
        best = I32(WIDTH - 1)
    more = follow(links, place, keys, 0, coming, between)
    if not reached:
        between[:] = NO_LINK
    while more and first < (SLOTS - 1) * LETTERS:
        first, place = first + LETTERS, place + SLOT * LANES
        best = max(best, enter(between, 0, costs[0], 0, keys, first, back, at + first))
        more = follow(links, place, keys, first, coming, between)
    if more:  # beyond the slots
        between[:] = NO_LINK
    return best, reached


@njit_inner
def trace(template, back, others, least, node, codes, raw, slots, begins):
    """Follow the best path back from a node of the last column.  Returns the number of bases; `codes` holds them backwards.

    begins : filled with bases still to come after each column begins.
    """
    n = 0
    for column in range(len(template) - 1, -1, -1):
        few = others[column] < least
        while node >= LETTERS:
            if not few:
                codes[n], raw[n], slots[n] = node % LETTERS, False, node // LETTERS
                n += 1
            node = np.int64(back[column, node])
        if few or node != GAP:
            codes[n], raw[n], slots[n] = (template[column] if few else node), few, 0
            n += 1
        begins[column] = n
        node = np.int64(back[column, node])
    return n


@njit
def _search(template, pile, terms, least, voters):
    """`find_consensus` with arrays for records."""
    n_columns = len(template)
    next_symbol, links = pile.offsets[:-1].copy(), np.zeros((SLOTS + 1) * SLOT * LANES, np.uint16)
    cover, others = np.zeros(n_columns + 1, np.int32), np.zeros(n_columns + 1, np.int32)
    _count_reads(pile, voters, cover)
    _count_reads(pile, np.int64(1), others)
    back = np.empty((n_columns + 1, WIDTH), np.uint8)
    flat_back = back.reshape(-1)
    coming, between = np.full(HALF, NO_LINK, np.int32), np.full(HALF, NO_LINK, np.int32)
    keys = np.full(WIDTH + HALF, NO_LINK, np.int32)
    keys[START] = best = I32(WIDTH - 1 - START)
    for first in range(0, n_columns, BLOCK):
        last = min(n_columns, first + BLOCK)
        _count(pile, voters, next_symbol, first, last, links, cover)
        if first == 0:
            follow(links, 0, keys, 0, coming, between)
        for column in range(first, last):
            costs, before = (terms.insertion * cover[column], terms.gap * cover[column]), best
            best, reached = _score_column(
                links, column - first + 1, costs, best >> ROW_BITS, coming, between, keys, flat_back, column * WIDTH
            )
            if not reached:
                back[column, :LETTERS], others[column] = WIDTH - 1 - (before & (WIDTH - 1)), 0
    room = n_columns * SLOTS
    codes, raw, slots = np.empty(room, np.uint8), np.empty(room, np.bool_), np.empty(room, np.uint8)
    begins = np.empty(n_columns + 1, np.int64)
    n = trace(template, back, others, least, np.int64(WIDTH - 1 - (best & (WIDTH - 1))), codes, raw, slots, begins)
    for column in range(n_columns):
        begins[column] = n - begins[column]
    begins[n_columns] = n
    return codes[:n][::-1].copy(), raw[:n][::-1].copy(), slots[:n][::-1].copy(), begins


def find_consensus(template: np.ndarray, pile: Pile, terms: Terms, least: int, *, with_template: bool) -> Consensus:
    """The consensus of the reads of a pile.

    Parameters
    ----------
    template : (n,) uint8 codes.
    pile : fewer than 2^15 reads, the template first.
    least : reads beside the template that a column needs to be changed.
    with_template : whether the pile's first read counts too.

    Notes
    -----
    Ties: the smallest node before, by slot and then by letter.
    """
    own = template.copy()  # reads cannot be written to: Numba compiles all anew for such arrays
    return Consensus(*_search(own, pile, terms, least, 0 if with_template else 1))
