"""The bases of pairs as words, for GPUs.

A word holds 32 bases: in its low half the low bits of their codes, in its high half the high bits, the first base in the
lowest bit of each.  Every sequence begins a word, after its padding (gpu/band_kernels.py).
"""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import bit_of_each, njit_entry

BASES = 32  # of a word


def words_for(lengths: np.ndarray) -> np.ndarray:
    """Words for sequences of these lengths, padding included."""
    return -(-lengths // BASES)


@njit_entry
def pack_bases(codes, at, lengths, step, pads, places, words, known, row):
    """Sequences as words.

    Parameters
    ----------
    codes : (any,) uint8; base b of sequence s is codes[at[s] + b * step[s]].
    at, lengths, step, pads, places : (n,) int64, the last two: bases of padding, first word.
    words : uint64, filled.
    known : (n,) bool, becomes False where a base is unknown.
    row : (BASES,) uint8, scratch.
    """
    for s in range(len(at)):
        pad, total = pads[s], pads[s] + lengths[s]
        for word in range((total + BASES - 1) // BASES):
            first = word * BASES - pad
            low = high = strange = np.uint32(0)
            if step[s] == 1 and first >= 0 and first + BASES <= lengths[s]:
                low, high = bit_of_each(codes, at[s] + first, 0), bit_of_each(codes, at[s] + first, 1)
                strange = bit_of_each(codes, at[s] + first, 2)
            else:
                for b in range(BASES):
                    base = first + b
                    row[b] = codes[at[s] + base * step[s]] if 0 <= base < lengths[s] else np.uint8(0)
                low, high, strange = bit_of_each(row, 0, 0), bit_of_each(row, 0, 1), bit_of_each(row, 0, 2)
            words[places[s] + word] = np.uint64(high) << np.uint64(32) | np.uint64(low)
            if strange:
                known[s] = False
