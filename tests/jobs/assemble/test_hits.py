"""Errors of overlaps, and up to how many are usual."""

from __future__ import annotations

import numpy as np

from bellapy.jobs.assemble.hits import FEW, LEAST, USUAL, Hits, error_limit


def hits_of(columns: np.ndarray, wrong: np.ndarray) -> Hits:
    """Overlaps of read i with read i + 1, from end to end."""
    query, none = np.arange(len(columns)), np.zeros(len(columns), np.int64)
    return Hits(query, query + 1, none > 0, none, columns, none, columns, columns - wrong, columns, none + FEW)


def test_a_few_errors_of_a_short_overlap_tell_nothing():
    """Correction leaves as many at the ends of short reads as of long ones: else all reads of a small plasmid were poor."""
    short, long = hits_of(np.full(50, 1200), np.arange(50) % 5), hits_of(np.full(50, 15_000), np.arange(50) % 5)
    for one in (short, long):
        assert error_limit(one) == LEAST
        assert (one.errors <= USUAL).all()
    assert (hits_of(np.array([1200, 15_000]), np.array([6 + FEW, 40])).errors > USUAL).all()


def test_the_limit_of_errors_is_learnt_from_the_best_overlaps():
    """Far more errors than usual are those of another copy; the limit is in between."""
    columns = np.full(1001, 10_000)
    usual, copies = np.random.default_rng(1).poisson(60, 1001), np.full(1001, 300)
    both = np.arange(1001) % 10 == 5
    limit = error_limit(hits_of(columns, np.where(both, copies, usual)))
    assert np.percentile(usual, 99) / 10_000 < limit < 0.03
