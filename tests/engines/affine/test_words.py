"""Bases of pairs as words, which the CPU makes for GPUs."""

from __future__ import annotations

import numpy as np

from bellapy.engines.affine.words import BASES, pack_bases, words_for
from bellapy.records.bases import UNKNOWN


def test_words_hold_padding_and_bases_in_the_order_of_the_alignment(rng):
    n = 60
    lengths, pads, step = rng.integers(0, 200, n), rng.integers(1, 17, n), np.where(rng.random(n) < 0.5, 1, -1)
    begins = np.cumsum(lengths) - lengths
    codes = rng.integers(0, 4, lengths.sum() + BASES).astype(np.uint8)
    codes[rng.integers(0, lengths.sum(), 9)] = UNKNOWN
    sizes = words_for(lengths + pads)
    places, words, known = np.cumsum(sizes) - sizes, np.zeros(sizes.sum(), np.uint64), np.ones(n, np.bool_)
    at = np.where(step > 0, begins, begins + lengths - 1)
    pack_bases(codes, at, lengths, step, pads, places, words, known, np.empty(BASES, np.uint8))
    for s in range(n):
        wanted = np.concatenate([np.zeros(pads[s], np.uint8), codes[begins[s] : begins[s] + lengths[s]][:: step[s]]])
        bits = np.unpackbits(words[places[s] : places[s] + sizes[s]].view(np.uint8), bitorder="little").reshape(-1, 2, BASES)
        got = (bits[:, 0] + 2 * bits[:, 1]).ravel()[: len(wanted)]
        assert (got == wanted % 4).all() and known[s] == (wanted < UNKNOWN).all()
    assert 0 < known.sum() < n
