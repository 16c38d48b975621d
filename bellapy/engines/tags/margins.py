"""How sure a consensus is: how many reads speak for every base of it, beyond those that it needs."""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit_entry, njit_inner
from bellapy.engines.tags.graph import SLOTS, Consensus
from bellapy.engines.tags.symbols import GAP, INSERTED, Pile

PARTS = 64  # of a margin: it is given as a whole number of these
GROWTH = 0.8  # power of the number of reads with which the reads grow that a margin stands for
MOST = 32_000


@njit_inner
def _count_slots(pile, counts, others):
    """Count what reads but the first show: bases and gaps of columns, and bases of the slots behind them.

    counts : (n_columns, SLOTS, GAP + 1) int32, others : (n_columns,) int32; both of zeros.
    """
    for i in range(1, len(pile.starts)):
        column, slot = pile.starts[i] - 1, 0
        for k in range(pile.offsets[i], pile.offsets[i + 1]):
            symbol = np.int64(pile.symbols[k])
            if symbol < INSERTED:
                column, slot = column + 1, 0
                others[column] += 1
                if symbol <= GAP:
                    counts[column, 0, symbol] += 1
            else:
                slot += 1
                if slot < SLOTS and symbol - INSERTED < GAP:
                    counts[column, slot, symbol - INSERTED] += 1


@njit_inner
def _margin(beyond, n):
    """The margin of `beyond` reads of n."""
    return np.int32(min(MOST, round(PARTS * beyond / max(1, n) ** GROWTH)))


@njit_entry
def _find_margins(pile, found, share, counts, others, margins):
    _count_slots(pile, counts, others)
    before = -1  # the base that missing ones are told of
    for column in range(len(found.begins) - 1):
        n = others[column]
        k, end, slot = found.begins[column], found.begins[column + 1], 0
        if k == end or found.slots[k] > 0:  # no base in the column
            shown = n - counts[column, 0, GAP]
            if before >= 0:
                margins[before] = min(margins[before], _margin(share * n - shown, n))
            slot = 1
        while k < end:
            slot, before = np.int64(found.slots[k]) + 1, k
            margins[k] = _margin(counts[column, slot - 1, found.codes[k]] - share * n, n)
            k += 1
        if slot < SLOTS and before >= 0:
            most = counts[column, slot, 0]
            for base in range(1, GAP):
                most = max(most, counts[column, slot, base])
            margins[before] = min(margins[before], _margin(share * n - most, n))


def find_margins(pile: Pile, found: Consensus, share: float) -> np.ndarray:
    """How far the reads that speak for each base of a consensus exceed those that it needs, (n,) int32.

    A base needs `share` of the reads.  The unit is a power of the number of reads there, in PARTS.  It lies between a share
    of the reads, by which bases would be as sure if errors were common to them, and the square root, if each had its own.

    The margin of a base that is not in the consensus, but in some reads, is what these lack.  It counts for the base
    before it, if it is smaller than its own.

    Parameters
    ----------
    pile : that the consensus was found from.
    """
    n_columns = len(found.begins) - 1
    counts, others = np.zeros((n_columns, SLOTS, GAP + 1), np.int32), np.zeros(n_columns, np.int32)
    margins = np.zeros(len(found.codes), np.int32)
    _find_margins(pile, found, share, counts, others, margins)
    return margins


@njit_entry
def _mark_wrong(pile, codes, wrong):
    column = pile.starts[1] - 1
    for k in range(pile.offsets[1], pile.offsets[2]):
        symbol = pile.symbols[k]
        if symbol < INSERTED:
            column += 1
            wrong[column] |= symbol != codes[column]
        elif column >= 0:
            wrong[column] = True


def mark_wrong(pile: Pile, codes: np.ndarray) -> np.ndarray:
    """Where the second read of a pile differs from the template, (n,) bool; what it has more counts for the base before.

    codes : (n,) uint8, of the template.
    """
    wrong = np.zeros(len(codes), bool)
    _mark_wrong(pile, codes, wrong)
    return wrong
