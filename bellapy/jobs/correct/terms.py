"""What nodes of the tag graph cost, learnt from how reads differ from the consensus of a first round."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bellapy.engines.tags.columns import Differences
from bellapy.engines.tags.graph import UNIT, Terms

SAMPLE_BASES = 400_000  # of templates that are corrected once to learn from
LEAST_COLUMNS = 10_000  # with fewer the terms stay as they are
RARE = 1e-3  # rates are taken for no smaller than this
BASES = 4  # that an inserted base may be


class Rates(NamedTuple):
    """Errors of reads for each column of the consensus: a base is missing, is inserted, is another one."""

    gap: float
    inserted: float
    mismatch: float
    columns: int


def measure_rates(found: list[Differences]) -> Rates:
    """Rates of all reads of some piles but their templates."""
    columns, matches, gaps, inserted = (
        sum(int(column[1:].sum()) for column in columns) for columns in zip(*found, strict=True)
    ) if found else (0, 0, 0, 0)  # fmt: skip
    n = max(1, columns)
    return Rates(gaps / n, inserted / n, (columns - matches - gaps) / n, columns)


def threshold(rates: Rates) -> float:
    """The share of reads that have to show a base between two columns for it to be there.

    With r the rate at which a true base is missing and i the one at which a false one is inserted, of each kind, the base is
    as likely true as false if a share s of the reads shows it, with s log((1 - r) / i) = (1 - s) log((1 - i) / r).
    """
    missing, false = max(rates.gap, RARE), max(rates.inserted / BASES, RARE)
    against, pro = math.log((1 - false) / missing), math.log((1 - missing) / false)
    return against / (against + pro)


def learn_terms(rates: Rates) -> Terms:
    """Costs at which a path with a base and one without it score the same where the threshold's share shows it.

    An inserted base takes 2 s links and its cost in the place of 1 - s links; a gap 2 (1 - s) links and its cost in the
    place of 2 s.
    """
    if rates.columns < LEAST_COLUMNS:
        return Terms()
    share = threshold(rates)
    return Terms(round(UNIT * (3 * share - 1)), round(UNIT * (2 - 4 * share)))


def sample(lengths: np.ndarray) -> np.ndarray:
    """Evenly spaced reads of about SAMPLE_BASES together, (n,) int64."""
    n = max(1, min(len(lengths), int(SAMPLE_BASES // max(1, lengths.mean())))) if len(lengths) else 0
    return np.unique(np.linspace(0, len(lengths) - 1, n).astype(np.int64)) if n else np.empty(0, np.int64)
