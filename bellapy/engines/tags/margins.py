"""How sure a consensus is: how many reads speak for every base of it, beyond those that it needs."""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit_entry, njit_inner
from bellapy.engines.tags.graph import SLOTS, Consensus
from bellapy.engines.tags.symbols import GAP, INSERTED, Pile

PARTS = 64  # of a margin: it is given as a whole number of these
GROWTH, ALONE = 0.6, 11  # power of the number of reads with which the reads grow that a margin stands for, up to so many
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
    unit = max(1, min(n, ALONE)) ** GROWTH * max(1, n / ALONE)
    return np.int32(min(MOST, round(PARTS * beyond / unit)))


@njit_entry
def _find_margins(pile, found, share, counts, others, margins):
    _count_slots(pile, counts, others)
    before, behind = -1, np.int32(MOST)  # the last base; the margin of bases that are not there behind it
    for column in range(len(found.begins) - 1):
        n = others[column]
        k, end, slot = found.begins[column], found.begins[column + 1], 0
        if k == end or found.slots[k] > 0:  # no base in the column
            behind = min(behind, _margin(share * n - (n - counts[column, 0, GAP]), n))
            slot = 1
        while k < end:
            slot = np.int64(found.slots[k]) + 1
            margins[k] = min(behind, _margin(counts[column, slot - 1, found.codes[k]] - share * n, n))
            if before >= 0:
                margins[before] = min(margins[before], behind)
            before, behind = k, np.int32(MOST)
            k += 1
        if slot < SLOTS:
            most = counts[column, slot, 0]
            for base in range(1, GAP):
                most = max(most, counts[column, slot, base])
            behind = min(behind, _margin(share * n - most, n))
    if before >= 0:
        margins[before] = min(margins[before], behind)


def find_margins(pile: Pile, found: Consensus, share: float) -> np.ndarray:
    """How far the reads that speak for each base of a consensus exceed those that it needs, (n,) int32.

    A base needs `share` of the reads.  The unit grows with the number of reads there, in PARTS.  If each read had errors of
    its own, bases would be as sure by the square root of the reads; if errors were common to them, by a share of the reads.
    Few reads are nearer to the first, many to the second.

    The margin of a base that is not in the consensus, but in some reads, is what these lack.  It counts for the bases on
    both sides of it, if it is smaller than their own.  Which of them has the error depends on where one comes from.

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
def _find_differing(pile, codes, beside):
    column, base = pile.starts[1] - 1, -1
    for k in range(pile.offsets[1], pile.offsets[2]):
        symbol = pile.symbols[k]
        base += symbol != GAP
        column += symbol < INSERTED
        if column >= 0 and (symbol >= INSERTED or symbol != codes[column]):
            beside[column] = max(0, base)


def find_differing(pile: Pile, codes: np.ndarray) -> np.ndarray:
    """Where the second read of a pile differs from the template: its base there, or the one before, (n,) int64; else -1.

    What it has more counts for the base before.

    codes : (n,) uint8, of the template.
    """
    beside = np.full(len(codes), -1, np.int64)
    _find_differing(pile, codes, beside)
    return beside
