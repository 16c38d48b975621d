"""Words of sequences, which tell what stands in what."""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit_entry
from bellapy.compute.threads import map_threads
from bellapy.seeding.sampling import MIXER

U = np.uint64
WORD = 31  # bases
PART_BITS = 4  # the highest ones, by which words are sorted in parts
STRETCH = 1000  # words
INSIDE = 0.75  # of the words of a sequence that stand in another one, from which on it is a copy of a part of that


def words_of(codes: np.ndarray, circular: bool) -> np.ndarray:
    """A number for the word at every place, the same for its reverse complement, (n,) uint64; it mixes all bases."""
    if circular:
        codes = np.concatenate([codes, np.resize(codes, WORD - 1)])
    words = np.empty(max(0, len(codes) - WORD + 1), np.uint64)
    _write_words(codes, words)
    return words


@njit_entry
def _write_words(codes, words):
    """words[i] = the number of codes[i : i + WORD], uint8, of which the last two bits count."""
    mask, top = (U(1) << U(2 * WORD)) - U(1), U(2 * (WORD - 1))
    forward = back = U(0)
    for i in range(len(codes)):
        code = U(codes[i]) & U(3)
        forward, back = (forward << U(2) | code) & mask, back >> U(2) | (U(3) - code) << top
        if i >= WORD - 1:
            word = min(forward, back)
            for _ in range(2):
                word = (word ^ word >> U(29)) * MIXER
            words[i - WORD + 1] = word ^ word >> U(32)


def find_alone(words: np.ndarray, threads: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Mask of the words, as of `words_of`, that stand there once, and indices of the others, ascending by their words."""
    alone = np.empty(len(words), bool)

    def look(part: int) -> np.ndarray:
        rows = np.empty(len(words), np.int64)
        rows = rows[: _write_rows(words, U(part), rows)]
        order = np.argsort(words[rows])
        rows, mine = rows[order], words[rows][order]
        same = np.zeros(len(rows) + 1, bool)  # as the one before
        same[1:-1] = mine[1:] == mine[:-1]
        several = same[:-1] | same[1:]
        alone[rows] = ~several
        return rows[several]

    return alone, np.concatenate(map_threads(look, range(1 << PART_BITS), threads))


@njit_entry
def _write_rows(words, part, rows):
    """Write to `rows`, int64, which words, uint64, have `part` as their highest bits; returns how many."""
    n = 0
    for i in range(len(words)):
        if words[i] >> U(64 - PART_BITS) == part:
            rows[n] = i
            n += 1
    return n


def distinct(words: np.ndarray) -> np.ndarray:
    """Words, each once, ascending; NumPy's `unique` takes several times as long."""
    words = np.sort(words)
    return words[np.append(True, words[1:] != words[:-1])] if len(words) else words


def share_of(some: np.ndarray, others: np.ndarray) -> float:
    """The share of some words that is among others, both as of `distinct`, and at least one each."""
    return float(_are_among(some, others).mean())


def is_allele(words: np.ndarray, others: np.ndarray, least: float) -> bool:
    """Whether in most stretches of a sequence a share of the words, at least, stands in another sequence.

    words : as of `words_of`; others : as of `distinct`; at least one each.
    """
    if least > 1:
        return False
    begins = np.linspace(0, len(words), max(1, len(words) // STRETCH), endpoint=False, dtype=np.int64)
    shares = np.add.reduceat(_are_among(words, others), begins, dtype=np.int64) / np.diff(begins, append=len(words))
    return bool((shares >= least).mean() > INSIDE)


def _are_among(some: np.ndarray, others: np.ndarray) -> np.ndarray:
    place = np.minimum(np.searchsorted(others, some), len(others) - 1)
    return others[place] == some
