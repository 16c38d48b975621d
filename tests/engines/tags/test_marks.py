"""Marks of columns, and links in vectors, against plain versions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import config, njit

from bellapy.engines.tags import links, marks
from bellapy.engines.tags.links import HALF, LANES, LETTERS, NO_LINK, ROW_BITS, WIDTH

compiled = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="without compiled code there are no vectors")


@njit
def look(words, begin, end):
    return marks.find_set(words, begin, end), marks.find_unset(words, begin), marks.count_set(words, begin, end)


@njit
def compare(one, other, numbers, at):
    return marks.equal_bytes(one, at, other, at + 1), marks.bytes_from(one, at, 2), marks.rising(numbers, at)


@njit
def step(counts, at, keys, first, coming, between, back):
    more = links.follow(counts, at, keys, first, coming, between)
    return more, links.enter(between, 3, 70, 40, keys, first + LETTERS, back, first)


def bits_of(word: int) -> list[bool]:
    return [bool(int(word) >> i & 1) for i in range(marks.WORD)]


@given(st.lists(st.sampled_from([0, 1, 2**63, 2**64 - 1, 2**64 - 2**40, 0x8421]), min_size=1, max_size=4), st.data())
def test_marks_are_found_and_counted(words, data):
    bits = [bit for word in words for bit in bits_of(word)]
    begin = data.draw(st.integers(0, len(bits)))
    end = data.draw(st.integers(begin, len(bits)))
    found = next((i for i in range(begin, end) if bits[i]), end)
    unset = next((i for i in range(begin, len(bits)) if not bits[i]), len(bits))
    assert look(np.array([*words, 0], np.uint64), begin, end) == (found, unset, sum(bits[begin:end]))


@compiled
def test_columns_are_compared_in_vectors():
    rng = np.random.default_rng(1)
    one, other = (rng.choice([0, 1, 2, 255], 200).astype(np.uint8) for _ in range(2))
    numbers = np.cumsum(rng.integers(0, 3, 200)).astype(np.int32)
    for at in (0, 1, 63, 130):
        span, after = slice(at, at + marks.WORD), slice(at + 1, at + 1 + marks.WORD)
        expected = one[span] == other[after], one[span] >= 2, numbers[after] == numbers[span] + 1
        for word, wanted in zip(compare(one, other, numbers, at), expected, strict=True):
            assert bits_of(word) == wanted.tolist()


@compiled
@pytest.mark.parametrize("first", [0, LETTERS, 4 * LETTERS])
def test_links_are_followed_as_the_plain_functions_do(first):
    rng = np.random.default_rng(first)
    for _ in range(50):
        counts = (rng.integers(0, 40, WIDTH * LANES) * (rng.random(WIDTH * LANES) < 0.3)).astype(np.uint16)
        scores = np.where(rng.random(WIDTH + HALF) < 0.8, rng.integers(-3000, 1, WIDTH + HALF), NO_LINK >> ROW_BITS)
        keys = (scores << ROW_BITS | WIDTH - 1 - np.arange(WIDTH + HALF) & WIDTH - 1).astype(np.int32)
        coming, between = (np.full(HALF, NO_LINK, np.int32) for _ in range(2))
        mine = [counts, keys, coming, between, np.zeros(2 * WIDTH, np.uint8)]
        plain = [array.copy() for array in mine]
        more, best = step(mine[0], first * LANES, mine[1], first, *mine[2:])
        assert bool(more) == bool(links._plain_follow(plain[0], first * LANES, plain[1], first, *plain[2:4]))
        assert best == links._plain_enter(plain[3], 3, 70, 40, plain[1], first + LETTERS, plain[4], first)
        for one, other in zip(mine, plain, strict=True):
            assert one.tolist() == other.tolist()
