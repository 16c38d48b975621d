"""Chains: what the walk back through the scores takes along."""

from __future__ import annotations

import numpy as np

from bellapy.seeding.chain import ChainRule, walk_back


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
