"""Qualities of corrected bases, learnt from the reads themselves.

Some reads are corrected three times, with all reads of their pile and with either half of them.  Where a half differs from
the whole, the half is taken to be wrong.  If the whole is less sure there, either of them may be.  So it is known how often
a base with a certain margin is wrong.  Margins are measured so that the same holds with all reads.  Some errors most reads
have in common.  The halves then differ from the whole in the same places more often than they would by chance, and so less
often from each other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.engines.tags.graph import Consensus
from bellapy.engines.tags.margins import PARTS, find_differing
from bellapy.engines.tags.realign import realign
from bellapy.engines.tags.symbols import GAP, INSERTED, UNKNOWN_BASE, Pile
from bellapy.jobs.correct.template import Corrected

LOWEST, N_BINS = -PARTS // 2, 5 * PARTS // 2  # margins that are told apart
SURE = 9 * PARTS // 16 - LOWEST  # bin from which on bases have one quality: how much surer they are is not seen
USUAL = 0.08, 6.0, 0.00001  # of bases that are wrong, without more knowledge: first * exp(-second * margin) + third
USUAL_WEIGHT = 20  # bases in each bin
UNSURE = 0.5  # of the halves that differ from a whole that is less sure are wrong
LEAST_QUALITY, MOST_QUALITY = 2, 60


class Half(NamedTuple):
    """What a read tells that was corrected with half of its pile.

    bases : (N_BINS,) int64.  wrong : (N_BINS,) float, those that are taken to be wrong.
    differing : those that differ from the read with all of its pile.  apart : those that differ from the other half's.
    with_all : (N_BINS,) int64, bases of the read with all of its pile.
    """

    bases: np.ndarray
    wrong: np.ndarray
    differing: int
    apart: int
    with_all: np.ndarray


def bins_of(found: Corrected) -> np.ndarray:
    """The bin of each base, by the smallest margin of the run of equal bases in which it stands."""
    edges = np.flatnonzero(np.diff(found.codes, prepend=-1))
    if not len(edges):
        return np.empty(0, np.int64)
    smallest = np.minimum.reduceat(found.margins, edges)
    margins = np.repeat(smallest, np.diff(np.append(edges, len(found.codes))))
    return np.clip(margins - LOWEST, 0, N_BINS - 1).astype(np.int64)


def path_of(found: Corrected) -> tuple[np.ndarray, int]:
    """The symbols of a corrected read on the columns of its raw read, and the first column."""
    sizes = np.diff(found.begins)
    spots = np.cumsum(np.append(0, np.maximum(sizes, 1)))
    column = np.repeat(np.arange(len(sizes)), sizes)
    inside = np.arange(len(found.codes)) - found.begins[column]
    symbols = np.full(spots[-1], GAP, np.uint8)
    letters = np.where(found.codes < GAP, found.codes, UNKNOWN_BASE)
    symbols[spots[column] + inside] = letters + np.where(inside > 0, INSERTED, 0)
    shown = np.flatnonzero(sizes)
    first, last = (shown[0], shown[-1]) if len(shown) else (0, -1)
    return symbols[spots[first] : spots[last + 1]], int(first)


def differing(template: np.ndarray, found: Corrected, other: Corrected) -> np.ndarray:
    """Where a read differs from the same one corrected in another way: the other's base there, (n,) int64; else -1.

    template : (n,) uint8 codes of the raw read.
    """
    symbols, start = path_of(other)
    own = np.where(template < GAP, template, UNKNOWN_BASE).astype(np.uint8)
    offsets = np.array([0, len(own), len(own) + len(symbols)])
    pile = Pile(np.concatenate((own, symbols)), offsets, np.array([0, start]))
    pile = realign(pile, Consensus(found.codes, found.raw, np.zeros(len(found.codes), np.uint8), found.begins))
    return find_differing(pile, found.codes)


def compare_halves(template: np.ndarray, whole: Corrected, half: Corrected, other: Corrected) -> Half:
    """How a read that was corrected with half of its pile differs from those with all of it and with the other half.

    template : (n,) uint8 codes of the raw read.
    """
    beside, bins, of_whole, kept = differing(template, half, whole), bins_of(half), bins_of(whole), ~half.raw
    differs = kept & (beside >= 0)
    wrong = np.where(of_whole[beside[differs]] < bins[differs], UNSURE, 1.0)
    return Half(
        np.bincount(bins[kept], minlength=N_BINS), np.bincount(bins[differs], weights=wrong, minlength=N_BINS),
        int(differs.sum()), int((kept & (differing(template, half, other) >= 0)).sum()),
        np.bincount(of_whole[~whole.raw], minlength=N_BINS),
    )  # fmt: skip


def falling(rates: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The falling values nearest to some rates, by weighted squares (pool adjacent violators)."""
    blocks: list[list[float]] = []  # value, weight, bins
    for rate, weight in zip(rates.tolist(), weights.tolist(), strict=True):
        blocks.append([rate, weight, 1])
        while len(blocks) > 1 and blocks[-2][0] < blocks[-1][0]:
            value, weight, n = blocks.pop()
            before = blocks[-1]
            before[0] = (before[0] * before[1] + value * weight) / (before[1] + weight)
            before[1], before[2] = before[1] + weight, before[2] + n
    return np.repeat([block[0] for block in blocks], [int(block[2]) for block in blocks])


def shared_errors(halves: list[Half]) -> float:
    """Share of the errors of halves that both have in the same places."""
    n = sum(half.differing for half in halves)
    return max(0.0, 1 - sum(half.apart for half in halves) / (2 * n)) if n else 0.0


def learn_rates(halves: list[Half]) -> np.ndarray:
    """Share of bases that are wrong in each bin, (N_BINS,) float."""
    at_zero, slope, rest = USUAL
    margin = (np.arange(N_BINS) + LOWEST + 0.5) / PARTS
    usual = at_zero * np.exp(-slope * np.maximum(margin, 0)) + rest
    bases, wrong, with_all = (
        sum((getattr(half, name) for half in halves), np.zeros(N_BINS)) for name in ("bases", "wrong", "with_all")
    )
    weights = bases + USUAL_WEIGHT
    rates = falling((wrong + USUAL_WEIGHT * usual) / weights, weights)
    with_all = with_all + 1e-6  # without any bases all bins count the same
    rates[SURE:] = np.average(rates[SURE:], weights=with_all[SURE:])
    return np.minimum(0.5, rates + shared_errors(halves) * np.average(rates, weights=with_all))


class Qualities:
    """Tells the quality of each base of a corrected read."""

    def __init__(self, halves: list[Half], raw_errors: float):
        rates = np.append(learn_rates(halves), max(raw_errors, 1e-6))
        found = np.clip(np.round(-10 * np.log10(np.maximum(rates, 1e-9))), LEAST_QUALITY, MOST_QUALITY)
        self._by_bin, self._raw = found[:-1].astype(np.uint8), np.uint8(found[-1])

    def of(self, found: Corrected) -> np.ndarray:
        """(n,) uint8; that of raw bases is the same for all."""
        return np.where(found.raw, self._raw, self._by_bin[bins_of(found)])
