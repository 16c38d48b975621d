"""Words of sequences, which tell what stands in what."""

from __future__ import annotations

import numpy as np

from bellapy.seeding.sampling import MIXER

WORD = 31  # bases
INSIDE = 0.75  # of the words of a sequence that stand in another one, from which on it is a copy of a part of that


def words_of(codes: np.ndarray, circular: bool) -> np.ndarray:
    """A number for the word at every place, the same for its reverse complement, (n,) uint64; it mixes all bases."""
    if circular:
        codes = np.concatenate([codes, np.resize(codes, WORD - 1)])
    n = max(0, len(codes) - WORD + 1)
    forward, back = np.zeros(n, np.uint64), np.zeros(n, np.uint64)
    for i in range(WORD):
        code = codes[i : i + n].astype(np.uint64) & np.uint64(3)
        forward = forward << np.uint64(2) | code
        back |= (np.uint64(3) - code) << np.uint64(2 * i)
    words = np.minimum(forward, back)
    for _ in range(2):
        words = (words ^ words >> np.uint64(29)) * MIXER
    return words ^ words >> np.uint64(32)


def distinct(words: np.ndarray) -> np.ndarray:
    """Words, each once, ascending; NumPy's `unique` takes several times as long."""
    words = np.sort(words)
    return words[np.append(True, words[1:] != words[:-1])] if len(words) else words


def share_of(some: np.ndarray, others: np.ndarray) -> float:
    """The share of some words that is among others, both as of `distinct`, and at least one each."""
    place = np.minimum(np.searchsorted(others, some), len(others) - 1)
    return float((others[place] == some).mean())
