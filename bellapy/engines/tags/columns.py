"""What the reads of a pile show in each column: how they differ from the consensus, and which come from other copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_entry, njit_inner
from bellapy.engines.tags.draft import go_to_column
from bellapy.engines.tags.symbols import GAP, INSERTED, UNKNOWN_BASE, Pile

LETTERS = GAP + 1
U = np.uint64
FEW = 4  # times fewer than a pile's reads: fewer of other copies make no difference
SAME, NEAR, FAR = 0, 1, 2  # kinds of reads: of the template's copy; of another one that differs little, or much


class Differences(NamedTuple):
    """Of every read from the template, (n,) int64 each; `columns` are those of the template, `inserted` stand between."""

    columns: np.ndarray
    matches: np.ndarray
    gaps: np.ndarray
    inserted: np.ndarray

    @property
    def identity(self) -> np.ndarray:
        """Matches of all columns, (n,) float."""
        return self.matches / np.maximum(self.columns + self.inserted, 1)


class Look(NamedTuple):
    """What the reads of some piles show, each pile on its consensus, the template first.

    firsts : (n_piles + 1,) int64; reads firsts[p] .. firsts[p + 1] - 1 are those of pile p.
    n_columns : (n_piles,) int64, of the consensus.
    starts, sizes : (n,) int64, first column and number of symbols of each read.
    kinds : gives what `tell_apart` gives, (n,) integers, of those reads that stay, a mask.
    differences : gives what `compare` gives, of those at least that stayed when `kinds` was last asked for.
    """

    firsts: np.ndarray
    n_columns: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray
    kinds: Callable[[np.ndarray], np.ndarray]
    differences: Callable[[], Differences]


class Choice(NamedTuple):
    """Which reads of some piles stay, (n,) bool each, the templates among them.

    own : those of the template's copy; all, where so few are of other copies that they make no difference.
    kept : those of the template's copy that a pile is not too deep for.
    n_foreign, n_deep : (n_piles,) int64, reads left out by phasing, and by depth.
    anew : (n_piles,) bool, whether so many are of other copies that a pile is done again with what stays, since the
        consensus may have been that of another copy.
    """

    own: np.ndarray
    kept: np.ndarray
    n_foreign: np.ndarray
    n_deep: np.ndarray
    anew: np.ndarray


@njit_entry
def _compare(pile, template, found):
    for i in range(len(pile.starts)):
        column = pile.starts[i]
        for k in range(pile.offsets[i], pile.offsets[i + 1]):
            symbol = pile.symbols[k]
            if symbol < INSERTED:
                found.columns[i] += 1
                found.matches[i] += symbol == template[column]
                found.gaps[i] += symbol == GAP
                column += 1
            else:
                found.inserted[i] += 1


def compare(pile: Pile, template: np.ndarray) -> Differences:
    """How every read of a pile differs from the template, (n,) uint8 codes."""
    known = np.where(template < GAP, template, np.uint8(255))  # an unknown base is no gap
    found = Differences(*(np.zeros(len(pile), np.int64) for _ in range(4)))
    _compare(pile, known, found)
    return found


@njit_inner
def _letters(pile, kept, counts):
    """Count letters in each column, of all reads that stay but the first.

    counts : (n_columns * LETTERS + 1,) int32, bases and gaps of each column, end to end; the last entry is scratch.
    """
    symbols, nowhere = pile.symbols, U(len(counts) - 1)
    for i in range(1, len(pile.starts)):
        if not kept[i]:
            continue
        at = U(pile.starts[i] * LETTERS)
        for k in range(U(pile.offsets[i]), U(pile.offsets[i + 1])):
            symbol = U(symbols[k])
            counts[at + symbol if symbol <= U(GAP) else nowhere] += np.int32(1)
            at += U(LETTERS) if symbol < U(INSERTED) else U(0)


class Telling(NamedTuple):
    """A column tells copies apart if so many other reads show its second base, and such a share of them.

    own, own_share : the same where the template shows that base, too.
    against : a read is of another copy if so many more columns are against it than for it.
    many, many_share : or if so many are against it, and such a share of all.  Of several copies, equally far from each
        other, columns in which a third one differs are for every read.
    """

    reads: int
    share: float
    own: int
    own_share: float
    against: int
    many: int
    many_share: float


@njit_inner
def choose_columns(counts, shown, telling, first, second):
    """The columns that tell copies apart, by their two most frequent bases; -1 elsewhere.  Returns their number.

    shown : (n,) uint8, what the template shows.  telling : Telling.
    """
    n = 0
    for column in range(len(first)):
        here = counts[column * LETTERS : (column + 1) * LETTERS]
        a = b = -1
        total = here[GAP]
        for base in range(GAP):
            count = here[base]
            total += count
            if a < 0 or count > here[a]:
                a, b = base, a
            elif b < 0 or count > here[b]:
                b = base
        told = here[b] >= telling.reads and here[b] >= telling.share * total
        told |= b >= 0 and b == shown[column] and here[b] >= telling.own and here[b] >= telling.own_share * total
        first[column], second[column] = (a, b) if told else (-1, -1)
        n += told
    return n


@njit_inner
def find_kind(n_for, n_against, telling):
    """The kind of a read by the telling columns in which it shows the same base as the template, or not."""
    many = n_against >= telling.many
    if n_against - n_for >= telling.against or many and n_against >= telling.many_share * (n_for + n_against):
        return FAR if many else NEAR
    return SAME


@njit_inner
def _note_next(told, next_told):
    """Fill next_told, (n + 1,) int32: the next column of those told, from each one on; told : (n,) int8, -1 if it is not."""
    next_told[len(told)] = len(told)
    for i in range(len(told)):
        column = len(told) - 1 - i
        next_told[column] = column if told[column] >= 0 else next_told[column + 1]


@njit_inner
def _note_shown(pile, shown):
    """Fill in what the template shows in each column, (n_columns,) uint8."""
    column = pile.starts[0]
    for k in range(pile.offsets[0], pile.offsets[1]):
        if pile.symbols[k] < INSERTED:
            shown[column] = pile.symbols[k]
            column += 1


@njit_entry
def _tell_apart(pile, kept, telling, counts, first, second, own, kinds, next_told):
    _letters(pile, kept, counts)
    _note_shown(pile, own)
    n = choose_columns(counts, own, telling, first, second)
    _note_next(first, next_told)
    symbols = pile.symbols
    for i in range(len(pile.starts)):
        column, k, end, n_for, n_against = pile.starts[i], pile.offsets[i], pile.offsets[i + 1], 0, 0
        while k < end and kept[i]:
            k, column = go_to_column(symbols, k, end, column, next_told[column])
            if k == end or column == len(first):
                break
            one, other, symbol = first[column], second[column], symbols[k]
            if (symbol == one or symbol == other) and (own[column] == one or own[column] == other):
                n_for += symbol == own[column]
                n_against += symbol != own[column]
            column += 1
            k += 1
        kinds[i] = find_kind(n_for, n_against, telling)
    return n


def tell_apart(pile: Pile, kept: np.ndarray, n_columns: int, telling: Telling) -> tuple[np.ndarray, int]:
    """Whether reads come from another haplotype, or another copy of a repeat, than the template.

    kept : (n,) bool, reads that stay; the others tell nothing.  telling : which columns tell copies apart.

    Returns
    -------
    kinds : (n,) uint8, SAME; NEAR or FAR if a read shows the other base than the template in some, or many, such columns.
    n : number of such columns.
    """
    counts, kinds = np.zeros(n_columns * LETTERS + 1, np.int32), np.zeros(len(pile), np.uint8)
    first, second = np.empty(n_columns, np.int8), np.empty(n_columns, np.int8)
    own = np.full(n_columns, UNKNOWN_BASE, np.uint8)  # what the template shows
    n = _tell_apart(pile, kept, telling, counts, first, second, own, kinds, np.empty(n_columns + 1, np.int32))
    return kinds, n


@njit_entry
def choose_deep(starts, ends, order, most, bin_size, depth, chosen):
    """Choose intervals so that none is left out where fewer than `most` chosen ones lie.

    starts, ends : (n,) int64.  order : (n,) int64, the best first.  depth : (n_bins,) int32 of zeros, overwritten: chosen
    intervals that touch each bin of `bin_size`.  chosen : (n,) bool, overwritten.
    """
    for i in order:
        first, last = starts[i] // bin_size, (ends[i] - 1) // bin_size
        chosen[i] = False
        for b in range(first, last + 1):
            if depth[b] < most:
                chosen[i] = True
                break
        if chosen[i]:
            for b in range(first, last + 1):
                depth[b] += 1


@njit_entry
def _count_shares(pile, least, counts, present, absent):
    """See `count_shares`; counts : (n_columns, 6) int32 of zeros: reads with a base, with a gap, with each base inserted."""
    for i in range(1, len(pile.starts)):
        column, inside = pile.starts[i] - 1, True
        for k in range(pile.offsets[i], pile.offsets[i + 1]):
            symbol = np.int64(pile.symbols[k])
            if symbol < INSERTED:
                column, inside = column + 1, True
                counts[column, 1 if symbol == GAP else 0] += 1
            elif inside and symbol < INSERTED + GAP:
                counts[column, 2 + symbol - INSERTED] += 1
                inside = False
    n_bins = len(present)
    for column in range(len(counts)):
        n = counts[column, 0] + counts[column, 1]
        if n >= least:
            present[min(n_bins - 1, counts[column, 0] * n_bins // n)] += 1
            most = counts[column, 2]
            for base in range(1, GAP):
                most = max(most, counts[column, 2 + base])
            absent[min(n_bins - 1, most * n_bins // n)] += 1


def count_shares(pile: Pile, n_columns: int, least: int, n_bins: int) -> np.ndarray:
    """How many bases, in the consensus or not, are shown by which share of the reads: (n_bins,) int64.

    A base of the consensus is shown by the reads that have a base in its column; one that is not there is the base that
    most reads insert between two columns.  Only columns with `least` reads beside the template count.
    """
    present, absent = np.zeros(n_bins, np.int64), np.zeros(n_bins, np.int64)
    _count_shares(pile, least, np.zeros((n_columns, 6), np.int32), present, absent)
    return present + absent
