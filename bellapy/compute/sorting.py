"""Sorting of few words inside compiled code, and values that differ."""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit_inner


@njit_inner
def sort_few(words, n):
    """Sort words[:n], uint64, which are few, by ever smaller steps."""
    step = n // 2
    while step > 0:
        for i in range(step, n):
            word, j = words[i], i
            while j >= step and words[j - step] > word:
                words[j] = words[j - step]
                j -= step
            words[j] = word
        step = 1 if step == 2 else step * 5 // 11


def distinct(values: np.ndarray) -> np.ndarray:
    """The values, (n,) of one type, each once and in order.

    As `np.unique`, which loads what NumPy knows of masked arrays, to ask whether this is one.
    """
    in_order = np.sort(values)
    others = in_order[1:]
    return np.concatenate((in_order[:1], others[others != in_order[:-1]]))


def median(values: np.ndarray) -> float:
    """The value in the middle of some, (n,) floats without NaN, or the mean of the two there.

    As `np.median`, which loads what NumPy knows of masked arrays where values are floats.
    """
    in_order, n = np.sort(values), len(values)
    return float(in_order[(n - 1) // 2 : n // 2 + 1].mean())
