"""Sorting of few words inside compiled code."""

from __future__ import annotations

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
