"""Chains: what the walk back through the scores takes along."""

from __future__ import annotations

import naive_map
import numpy as np
import pytest

from bellapy.seeding.anchors import Layout
from bellapy.seeding.chain import ChainRule, penalties, score_anchors, walk_back


def test_a_chain_behind_a_costly_joint_is_kept():
    """The second part is joined to the first at a loss: it goes back to where its score is highest, not to the joint."""
    scores = np.array([100, 200, 300, 150, 220, 290], np.int32)
    before = np.array([-1, 0, 1, 2, 3, 4], np.int32)
    rows, members = walk_back(np.argsort(-scores), scores, before, ChainRule(5000, 500, min_anchors=2))
    assert rows.tolist() == [[300, 3, 0], [140, 2, 3]]
    assert members.tolist() == [2, 1, 0, 5, 4]


def test_a_chain_ends_where_its_score_falls_by_more_than_the_band():
    scores = np.array([700, 900, 100, 200, 1000], np.int32)
    before = np.array([-1, 0, 1, 2, 3], np.int32)
    rows, members = walk_back(np.argsort(-scores), scores, before, ChainRule(5000, 500, min_anchors=1))
    assert rows.tolist() == [[900, 2, 0], [900, 2, 2]]
    assert members.tolist() == [4, 3, 1, 0]


@pytest.mark.parametrize("k, max_gap, band", [(4, 12, 9), (15, 300, 50)])
def test_scores_are_those_of_the_definition(rng, k, max_gap, band):
    """Where no search ends early: of all anchors that may stand before one, on its sequence, the best."""
    n, layout, starts = 400, Layout(12, 18), np.array([0, 500, 900])
    places, queries, strands = (rng.integers(0, most, n) for most in (1200, 1200 if k > 4 else 90, 2))
    words = (strands << layout.place_bits | places) << layout.q_bits | queries
    anchors = np.unique(words.astype(np.uint64))
    parts = ((0, layout.q_bits), (layout.q_bits, layout.place_bits), (layout.q_bits + layout.place_bits, 1))
    at, where, on = ([int(word) >> low & (1 << bits) - 1 for word in anchors] for low, bits in parts)
    rows = [((s, t >= starts[1], t >= starts[2]), t, q) for s, t, q in zip(on, where, at, strict=True)]
    rule = ChainRule(max_gap, band, n, n)
    scores, before = score_anchors(anchors, layout, k, rule, penalties(k, band), starts)
    assert scores.tolist() == naive_map.chain_scores(rows, k, max_gap, band)
    assert (before >= 0).sum() > 20 and all(b < i for i, b in enumerate(before.tolist()))
