"""Words of a sequence: how long they should be, what one costs that can't be matched, and where they are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_inner
from bellapy.compute.threads import even_ranges, map_threads
from bellapy.engines.exact.rule import Scores
from bellapy.records.bases import UNKNOWN

RARE = 64  # a word should occur by chance in at most one of so many windows: 4^k >= RARE * columns
WIDE_WORD = 11  # in wide windows longer words have to be less rare, for the memory of their counts:
WIDE_RARE = 4
NEAR_RARE = 16  # the same on the diagonals of a grid: shorter words tell more there, even if more of them occur by chance
MAX_WORD, MIN_WORD = 13, 6
MOST_PARTS = 8  # in which words are listed: every thread looks at all of them


def break_cost(scores: Scores, k: int) -> int:
    """What it costs at least that a word of k bases is no run of matches, beyond the matches lost by other words.

    A mismatch breaks one word, and so does an insertion.  A deletion of g bases breaks at most (g - 2) / k + 2 words and
    costs open + g (extend + match): shared by two words it is cheapest if k (extend + match) is no less than the result.
    """
    per_base = scores.gap_extend + scores.match
    shared = (scores.gap_open + 2 * per_base) // 2
    return min(scores.match - scores.mismatch, scores.first, shared, k * per_base)


class WordCosts(NamedTuple):
    """What a broken word and an unknown base cost at least; and what each diagonal more or less costs beside that."""

    word: int
    unknown: int
    up: float
    down: float


def word_costs(scores: Scores, k: int) -> WordCosts:
    """Costs of broken words of k bases that leave a part of what a gap costs for the diagonals that it changes.

    A gap of g inserted bases breaks one word at most: word + g up <= open + g extend.  One of g deleted bases breaks t
    words, all but two of them deleted as a whole, and costs open + g (extend + match).  If `each` is at least (2 word -
    open) / 2 and word / k, then t words cost no more than open + g each, and the rest of each base pays for the diagonals.
    """
    per_base, most = scores.gap_extend + scores.match, break_cost(scores, k)
    word = max(1, min(most, max(scores.gap_open, 3 * most // 4)))
    each = max((2 * word - scores.gap_open) / 2, word / k)
    up = scores.gap_extend - max(0, word - scores.gap_open)
    return WordCosts(word, int(min(each, scores.match - scores.mismatch)), up, per_base - each)


def unknown_cost(scores: Scores) -> int:
    """What an unknown base costs: it is a mismatch or part of a gap."""
    return scores.match + min(-scores.mismatch, scores.gap_extend)


def word_length(width: int) -> int:
    """Bases of words to look for in windows of so many columns."""
    wanted, wide = (int(np.ceil(np.log(rare * width) / np.log(4))) for rare in (RARE, WIDE_RARE))
    return min(MAX_WORD, max(MIN_WORD, min(wanted, max(WIDE_WORD, wide))))


def near_word_length(diagonals: int) -> int:
    """Bases of words to look for on so many diagonals."""
    return min(MAX_WORD, max(MIN_WORD, int(np.ceil(np.log(NEAR_RARE * diagonals) / np.log(4)))))


@njit_inner
def push(word, known, base, mask):
    """A word, uint64 with two bits a base, and the known bases it ends with, one base (uint8) further; mask : its bits."""
    return (word << np.uint64(2) | np.uint64(base & 3)) & mask, known + 1 if base < UNKNOWN else 0


@njit
def _go_through(codes, k, first, last, begin, places):
    """Count words of k known bases by word, in begin[word + 1]; or, with `places`, list where they are.

    codes : (any,) uint8.  first, last : words to look at, the latter excluded.  begin : (4^k + 1,) int64, changed.
    places : (bases,) int32, filled where begin[word] tells, which is counted up; or empty.
    """
    mask, word, known = np.uint64((1 << (2 * k)) - 1), np.uint64(0), 0
    for end in range(1, len(codes) + 1):
        word, known = push(word, known, codes[end - 1], mask)
        if known >= k and first <= word < last:
            if len(places):
                places[begin[word]] = end - k
                begin[word] += 1
            else:
                begin[word + np.uint64(1)] += 1


@njit
def _mark(codes, k, first, last, marks):
    """Mark words from `first` to `last`, the latter excluded; all parameters as in `mark_words` and `_go_through`."""
    mask, word, known = np.uint64((1 << (2 * k)) - 1), np.uint64(0), 0
    for end in range(1, len(codes) + 1):
        word, known = push(word, known, codes[end - 1], mask)
        if known >= k and first <= word < last:
            marks[word] = 1


def mark_words(codes: np.ndarray, k: int, threads: int) -> np.ndarray:
    """(4^k,) uint8: 1 for every word of k known bases that occurs, 0 for others; codes : (any,) uint8."""
    marks = np.zeros(4**k, np.uint8)
    map_threads(lambda part: _mark(codes, k, *part, marks), _word_ranges(k, threads), threads)
    return marks


def _word_ranges(k: int, threads: int) -> list[tuple[np.uint64, np.uint64]]:
    """Ranges of words for threads, each of which looks at all."""
    return [(np.uint64(a), np.uint64(b)) for a, b in even_ranges(4**k, min(threads, MOST_PARTS))]


def index_words(codes: np.ndarray, k: int, threads: int) -> tuple[np.ndarray, np.ndarray]:
    """The places of all words of k known bases by word: those of word w lie at places[begin[w] : begin[w + 1]], rising.

    codes : (any,) uint8.  Returns begin, (4^k + 1,) int64, and places, (bases,) int32.
    Every thread looks at all words, and lists a part of them.
    """
    begin, places = np.zeros(4**k + 1, np.int64), np.empty(len(codes), np.int32)
    parts = _word_ranges(k, threads)
    map_threads(lambda part: _go_through(codes, k, *part, begin, places[:0]), parts, threads)
    np.cumsum(begin, out=begin)
    free = begin.copy()
    map_threads(lambda part: _go_through(codes, k, *part, free, places), parts, threads)
    return begin, places
