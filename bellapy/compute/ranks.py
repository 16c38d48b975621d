"""Medians and other quantiles of many numbers, by threads.

Numbers are counted by classes of their range first.  So it is known in which class a quantile lies, and few are sorted.
Where most numbers are of one class, since a few lie far out, the same is done with those of this class.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_entry, njit_inner
from bellapy.compute.threads import even_ranges, map_threads

CLASSES = FEW = 1 << 16  # of so few numbers a sort is quick
EQUAL = np.zeros(0, np.int32)
"""Weights, where all are 1."""


class _Range(NamedTuple):
    """The smallest number, and the width of a class; 0: all numbers are equal."""

    low: float
    width: float


def quantiles(values: np.ndarray, shares: Sequence[float], threads: int = 1) -> list[float]:
    """The numbers below which these shares of (n,) float64 lie, as `numpy.quantile` gives them; n is at least 1."""
    found = []
    for share in shares:
        place = (len(values) - 1) * share
        before = int(place)
        a, b = order_statistics(values, (before, min(before + 1, len(values) - 1)), threads)
        part = place - before
        found.append(b - (b - a) * (1 - part) if part >= 0.5 else a + (b - a) * part)
    return found


def median(values: np.ndarray, threads: int = 1) -> float:
    """The median of (n,) float64; n is at least 1."""
    a, b = order_statistics(values, ((len(values) - 1) // 2, len(values) // 2), threads)
    return (a + b) / 2


def weighted_median(values: np.ndarray, weights: np.ndarray, threads: int = 1) -> float:
    """Smallest of (n,) float64 with at least half of all weight at it or below; weights : (n,) int32; n is at least 1."""
    half = weights.sum(dtype=np.int64) / 2
    while len(values) > FEW:
        its_range = _range_of(values, threads)
        if not its_range.width:
            return its_range.low
        up_to = np.cumsum(_count(values, weights, its_range, threads))
        its_class = int(np.searchsorted(up_to, half))
        rows = _rows_of(values, its_range, its_class, threads)
        values, weights, half = values[rows], weights[rows], half - _before(up_to, its_class)
    order = np.argsort(values, kind="stable")
    return float(values[order[np.searchsorted(np.cumsum(weights[order], dtype=np.int64), half)]])


def order_statistics(values: np.ndarray, ranks: Sequence[int], threads: int = 1) -> list[float]:
    """The numbers of (n,) float64 at these places, if they were sorted."""
    if len(values) <= FEW:
        return np.partition(values, ranks)[list(ranks)].tolist()
    its_range = _range_of(values, threads)
    if not its_range.width:
        return [its_range.low] * len(ranks)
    up_to = np.cumsum(_count(values, EQUAL, its_range, threads))
    found: dict[int, float] = {}
    classes = np.searchsorted(up_to, ranks, side="right").tolist()
    for its_class in set(classes):
        its_ranks = [rank for rank, c in zip(ranks, classes, strict=True) if c == its_class]
        before = _before(up_to, its_class)
        some = values[_rows_of(values, its_range, its_class, threads)]
        found |= zip(its_ranks, order_statistics(some, [rank - before for rank in its_ranks], threads), strict=True)
    return [found[rank] for rank in ranks]


def _before(up_to: np.ndarray, its_class: int) -> int:
    """How much lies in the classes before one; up_to : (CLASSES,) int64, sums of all classes up to each."""
    return int(up_to[its_class - 1]) if its_class else 0


def _range_of(values: np.ndarray, threads: int) -> _Range:
    ends = map_threads(lambda part: (values[slice(*part)].min(), values[slice(*part)].max()), *_parts(values, threads))
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    return _Range(float(low), float((high - low) / CLASSES))


def _parts(values: np.ndarray, threads: int) -> tuple[list[tuple[int, int]], int]:
    return even_ranges(len(values), threads), threads


def _count(values: np.ndarray, weights: np.ndarray, its_range: _Range, threads: int) -> np.ndarray:
    """The weight of each class, (CLASSES,) int64."""

    def count(part: tuple[int, int]) -> np.ndarray:
        sums = np.zeros(CLASSES, np.int64)
        add_to_classes(values, weights, *part, its_range, sums)
        return sums

    return sum(map_threads(count, *_parts(values, threads)), np.zeros(CLASSES, np.int64))


def _rows_of(values: np.ndarray, its_range: _Range, its_class: int, threads: int) -> np.ndarray:
    """The rows of the numbers in a class, in order."""

    def list_part(part: tuple[int, int]) -> np.ndarray:
        rows = np.empty(part[1] - part[0], np.int64)
        return rows[: list_class(values, *part, its_range, its_class, rows)].copy()

    return np.concatenate(map_threads(list_part, *_parts(values, threads)))


@njit_inner
def _class_of(value, its_range):
    """The class of a number; its_range : _Range."""
    return np.int64(min((value - its_range.low) / its_range.width, CLASSES - 1.0)) if its_range.width > 0 else 0


@njit_entry
def add_to_classes(values, weights, begin, end, its_range, sums):
    """Add the weights of values[begin:end] to sums, (CLASSES,) int64, each to that of its class.

    values : (n,) float64.  weights : (n,) int32, or empty: all are 1.  its_range : _Range.
    """
    for i in range(begin, end):
        sums[_class_of(values[i], its_range)] += weights[i] if len(weights) else 1


@njit_entry
def list_class(values, begin, end, its_range, its_class, rows):
    """Write the rows of values[begin:end], float64, in a class to `rows`, (end - begin,) int64; return how many.

    its_range : _Range.
    """
    n = 0
    for i in range(begin, end):
        if _class_of(values[i], its_range) == its_class:
            rows[n] = i
            n += 1
    return n
