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

from bellapy.compute.jit import njit, njit_inner, njit_vector
from bellapy.engines.tags.draft import count_columns
from bellapy.engines.tags.links import HALF, LOWEST, ROW_BITS, WIDTH, best_link
from bellapy.engines.tags.symbols import GAP, INSERTED, Pile

LETTERS = 5  # of a slot: four bases and a gap
SLOTS = 6
BLOCK = 128  # columns counted at a time
REACHED = np.int32(-(1 << 23))  # above it paths lie, below it what links add to no path
I32, U = np.int32, np.uint64
START = 0  # the node before the first column


class Terms(NamedTuple):
    """What nodes cost, in parts of UNIT for each read of the coverage; a NamedTuple because compiled code accepts it."""

    insertion: int = 32  # an inserted base
    gap: int = 0  # no base in a column


class Cursor(NamedTuple):
    """How far each read of a pile has been counted: next symbol, last column, last node (-1: none); all (n,) int64."""

    at: np.ndarray
    column: np.ndarray
    node: np.ndarray


class Block(NamedTuple):
    """What the reads show in some columns; the last axis is the node before, in the column before or in the slot before.

    links : BLOCK x LETTERS x WIDTH uint16, end to end, of nodes in slot 0.
    inserted : BLOCK x SLOTS x 4 x HALF uint16, end to end, of nodes in slot d; those of slot 0 are not used.
    top : (BLOCK,) int64, the last slot in use.
    """

    links: np.ndarray
    inserted: np.ndarray
    top: np.ndarray


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
def _count(pile, voters, cursor, first, last, block, cover):
    """Count what reads show in columns first to last - 1, from read `voters` on.

    cover : (n_columns,) int32, reads in a column; those whose letter is not known are taken off.
    """
    symbols, links, inserted = pile.symbols, block.links, block.inserted
    for k in range(U((last - first) * LETTERS * WIDTH)):
        links[k] = 0
    block.top[: last - first] = 0
    for i in range(voters, len(cursor.at)):
        at, end = U(cursor.at[i]), U(pile.offsets[i + 1])
        if pile.starts[i] >= last or at >= end:
            continue
        row, node = cursor.column[i] - first, cursor.node[i]
        while at < end:
            symbol = np.int64(symbols[at])
            if symbol < INSERTED:
                if row + 1 >= last - first:
                    break
                row += 1
                if symbol > GAP:  # not known
                    cover[U(first + row)] -= np.int32(1)
                    node = -1
                else:
                    if node >= 0:
                        links[U((row * LETTERS + symbol) * WIDTH + node)] += np.uint16(1)
                    node = symbol
            elif node >= 0 and symbol - INSERTED < GAP:
                slot = node // LETTERS + 1
                if slot < SLOTS:
                    if slot > block.top[row]:
                        for k in range(U(GAP * HALF)):
                            inserted[U((row * SLOTS + slot) * GAP * HALF) + k] = 0
                        block.top[row] = slot
                    letter, before = symbol - INSERTED, node - (slot - 1) * LETTERS
                    inserted[U(((row * SLOTS + slot) * GAP + letter) * HALF + before)] += np.uint16(1)
                    node = slot * LETTERS + letter
            at += U(1)
        cursor.at[i], cursor.column[i], cursor.node[i] = at, first + row, node


@njit_inner
def _score_column(block, row, cover, terms, wide, before, scores, back):
    """Scores of all nodes of a column and the best ones before them; returns whether any path reaches it.

    wide : whether the column before has more than HALF nodes.  before, scores : (WIDTH,) int32, of the column before;
    overwritten.  back : (WIDTH,) uint8, overwritten.
    """
    scores[:] = LOWEST
    reached = False
    for letter in range(LETTERS):
        at = U((row * LETTERS + letter) * WIDTH)
        best = best_link(block.links, at, before, 0)
        if wide:
            best = max(best, best_link(block.links, at + U(HALF), before, HALF) - I32(HALF))
        if best > REACHED << ROW_BITS:
            reached = True
            back[letter] = WIDTH - 1 - (best & (WIDTH - 1))
            scores[letter] = best >> ROW_BITS
    scores[GAP] -= terms.gap * cover
    for slot in range(1, block.top[row] + 1):
        cost, first = terms.insertion * cover, (slot - 1) * LETTERS
        for letter in range(GAP):
            at = U(((row * SLOTS + slot) * GAP + letter) * HALF)
            best = best_link(block.inserted, at, scores, first)
            if best > REACHED << ROW_BITS:
                scores[first + LETTERS + letter] = (best >> ROW_BITS) - cost
                back[first + LETTERS + letter] = first + WIDTH - 1 - (best & (WIDTH - 1))
    return reached


@njit_vector
def _best_node(scores):
    """The best score of a column and its node, as `_best_link` has them."""
    best = I32(LOWEST << ROW_BITS)
    for m in range(U(WIDTH)):
        best = max(best, I32(scores[m] << I32(ROW_BITS)) | I32(WIDTH - 1 - m))
    return best


@njit_vector
def _rebase(scores, top):
    """Take scores relative to the best one of a column."""
    for m in range(U(WIDTH)):
        scores[m] = scores[m] - top if scores[m] > REACHED else LOWEST


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
    cursor = Cursor(pile.offsets[:-1].copy(), pile.starts - 1, np.where(pile.starts == 0, START, -1))
    block = Block(
        np.zeros(BLOCK * LETTERS * WIDTH, np.uint16), np.zeros(BLOCK * SLOTS * GAP * HALF, np.uint16),
        np.zeros(BLOCK, np.int64),
    )  # fmt: skip
    cover, others = np.zeros(n_columns + 1, np.int32), np.zeros(n_columns + 1, np.int32)
    _count_reads(pile, voters, cover)
    _count_reads(pile, 1, others)
    back = np.zeros((n_columns, WIDTH), np.uint8)
    before, scores = np.full(WIDTH + HALF, LOWEST, np.int32), np.full(WIDTH + HALF, LOWEST, np.int32)
    before[START], best, wide = 0, START, False
    for first in range(0, n_columns, BLOCK):
        last = min(n_columns, first + BLOCK)
        _count(pile, voters, cursor, first, last, block, cover)
        for column in range(first, last):
            if not _score_column(block, column - first, cover[column], terms, wide, before, scores, back[column]):
                scores[:LETTERS], back[column, :LETTERS] = 0, best  # nothing is known: the template's own letter stays
                others[column] = 0
            found = _best_node(scores)
            best = WIDTH - 1 - (found & (WIDTH - 1))
            _rebase(scores, found >> ROW_BITS)
            before, scores, wide = scores, before, (block.top[column - first] + 1) * LETTERS > HALF
    room = n_columns * SLOTS
    codes, raw, slots = np.empty(room, np.uint8), np.empty(room, np.bool_), np.empty(room, np.uint8)
    begins = np.empty(n_columns + 1, np.int64)
    n = trace(template, back, others, least, best, codes, raw, slots, begins)
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
    return Consensus(*_search(template, pile, terms, least, 0 if with_template else 1))
