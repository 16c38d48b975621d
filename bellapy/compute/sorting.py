"""Sorting of words inside compiled code: of few, and of so many as fit the cache."""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit_inner, put

U = np.uint64
U0, U1, WORD_BITS = U(0), U(1), U(64)
DIGIT_BITS = 10  # a digit has as many values as streams can be written side by side
DIGITS = U(1 << DIGIT_BITS)


@njit_inner
def sort_few(words, n):
    """Sort words[:n], of any unsigned type, which are few, by ever smaller steps.

    NumPy's own sort takes most of a second to compile, for each type.
    """
    step = n // 2
    while step > 0:
        for i in range(step, n):
            word, j = words[i], i
            while j >= step and words[j - step] > word:
                words[j] = words[j - step]
                j -= step
            words[j] = word
        step = 1 if step == 2 else step * 5 // 11


@njit_inner
def sort_by_digits(words, low, spare, heads):
    """Sort words by their bits from `low` on; those with equal bits stay in order.

    words : (n,) uint64.  low : bits that do not count.  spare : (n or more,) uint64, heads : (DIGITS + 1,) int64, scratch.
    """
    seen, bits, n = U0, U(low), words.size
    for i in range(U(n)):
        seen |= words[i]
    while bits < WORD_BITS and seen >> bits:  # what is above the highest bit is in order
        _sort_digit(words, n, bits, spare, heads)
        put(words, 0, spare, 0, n)
        bits += U(DIGIT_BITS)


@njit_inner
def _sort_digit(words, n, bits, out, heads):
    """Write words[:n] to `out`, uint64 both, in the order of the digit above so many bits; heads : as in sort_by_digits."""
    heads[:] = 0
    for i in range(U(n)):
        heads[((words[i] >> bits) & (DIGITS - U1)) + U1] += 1
    for digit in range(DIGITS):
        heads[digit + U1] += heads[digit]
    for i in range(U(n)):
        digit = (words[i] >> bits) & (DIGITS - U1)
        slot = heads[digit]
        out[slot] = words[i]
        heads[digit] = slot + 1
