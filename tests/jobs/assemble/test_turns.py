"""Reads that go round a circle, by the definition: words that they have twice, words of their ends that stand before."""

from __future__ import annotations

import numpy as np
import pytest
from layouts import graph_of

from bellapy.jobs.assemble import turns as module
from bellapy.jobs.assemble.turns import PROBE, PROBED, WORD, find_turns, turn_of, unrolled
from bellapy.records.bases import UNKNOWN


def with_errors(codes: np.ndarray, rate: float, rng: np.random.Generator) -> np.ndarray:
    """Codes of which some are others, left out, or unknown."""
    codes = codes.copy()
    wrong = rng.random(len(codes)) < rate
    codes[wrong] = rng.integers(0, UNKNOWN + 1, wrong.sum())
    return codes[rng.random(len(codes)) >= rate / 2]


@pytest.mark.parametrize("rate", [0.0, 0.01, 0.03])
@pytest.mark.parametrize("size", [900, 2500, 6000])
def test_a_read_that_goes_round_has_the_turn_of_its_circle(size, rate):
    rng = np.random.default_rng(size)
    circle = rng.integers(0, 4, size).astype(np.uint8)
    for turns in (1.4, 2.0, 4.3):
        read = with_errors(np.resize(circle, int(turns * size)), rate, rng)
        assert turn_of(read)[0] == pytest.approx(size, abs=0.02 * size)
        assert len(unrolled(read)) <= len(read)
    line = with_errors(rng.integers(0, 4, 3 * size).astype(np.uint8), rate, rng)
    assert turn_of(line) == (0, 0) and unrolled(line) is line


def test_words_are_those_of_known_bases():
    codes = np.random.default_rng(1).choice(5, 3000, p=[0.24] * 4 + [0.04]).astype(np.uint8)
    expected = []
    for at in range(len(codes) - WORD + 1):
        word = 0
        for code in codes[at : at + WORD].tolist():
            word = 4 * word + code
        if (codes[at : at + WORD] < UNKNOWN).all():
            expected.append((word, at))
    words = np.empty(len(codes), np.int64)
    n = module._write_words(codes, words)
    assert [(int(word) >> module.PLACE_BITS, int(word) % 2**module.PLACE_BITS) for word in words[:n]] == expected
    assert n > 1000


def test_only_reads_whose_end_stands_before_it_are_looked_at(monkeypatch):
    """Against `bytes.find`; bases that are unknown are bases here."""
    looked_at = []
    monkeypatch.setattr(module, "turn_of", lambda codes: looked_at.append(codes) or (0, 0))
    rng = np.random.default_rng(2)
    expected = []
    for i in range(400):
        read = rng.integers(0, 5, int(rng.integers(0, 900))).astype(np.uint8)
        if i % 2 and len(read) > 100:  # what its end has stands before, or in its end alone
            at, to = len(read) - rng.choice(PROBED) - PROBE, int(rng.integers(0, len(read) - PROBE))
            read[to : to + PROBE] = read[max(0, at) : max(0, at) + PROBE]
        text, n = read.tobytes(), len(read)
        ends = [text[n - at - PROBE : n - at] for at in PROBED if n > at + PROBE]
        if any(text.find(end) < n - PROBED[-1] - PROBE for end in ends):
            expected.append(text)
        assert unrolled(read) is read
    assert [codes.tobytes() for codes in looked_at] == expected
    assert 20 < len(expected) < 200


def reads_around(units: list[np.ndarray], n: int, rate: float, rng: np.random.Generator) -> list[tuple[int, np.ndarray]]:
    """Reads of one and a half to three units in a row, with errors; their numbers and codes."""
    row, size = np.concatenate(units), len(units[0])
    begins, lengths = rng.integers(0, len(row) - 3 * size, n), rng.integers(3 * size // 2, 3 * size, n)
    return [(i, with_errors(row[a : a + b], rate, rng)) for i, (a, b) in enumerate(zip(begins, lengths, strict=True))]


@pytest.mark.parametrize(("errors", "rate"), [(0.002, 0.0005), (0.02, 0.004)])
def test_copies_of_an_array_are_no_turns_of_a_circle_where_errors_are_fewer(errors, rate):
    rng = np.random.default_rng(7)
    unit, n = rng.integers(0, 4, 2000).astype(np.uint8), 20
    copies = [np.where(rng.random(2000) < 0.05, rng.integers(0, 4, 2000), unit).astype(np.uint8) for _ in range(8)]
    lengths = np.full(n, 6000)
    arcs = graph_of({(2 * i, 2 * ((i + 1) % n)): 3000 for i in range(n)}, lengths).arcs  # each leads to the next one
    circle, array = (reads_around(units, n, rate, rng) for units in ([unit] * 8, copies))
    assert find_turns(circle, arcs, lengths, errors) == pytest.approx(np.full(n, 2000), abs=20)
    assert not find_turns(array, arcs, lengths, errors).any()
    assert find_turns(array, arcs, lengths, 0.15) == pytest.approx(np.full(n, 2000), abs=20)  # not told apart
