"""What nodes of the tag graph cost, learnt from how reads differ from the consensus of a first round.

A base belongs to the consensus if enough reads show it; how many are enough depends on what errors the reads have.  Of true
bases most are shown by nearly all reads, of false ones by few.  Where the two kinds are equally rare is the threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import comb
from typing import NamedTuple

import numpy as np

from bellapy.compute.threads import map_in_order
from bellapy.engines.tags.columns import Differences, Telling, compare, count_shares
from bellapy.engines.tags.graph import Terms, find_consensus
from bellapy.engines.tags.judge import Odds, Tally, find_odds, tally
from bellapy.engines.tags.lengths import find_weights, tally_lengths
from bellapy.engines.tags.links import UNIT
from bellapy.engines.tags.realign import realign
from bellapy.engines.tags.symbols import Pile
from bellapy.jobs.correct.template import place
from bellapy.params.correct import CorrectParams

SAMPLE_BASES = 400_000  # of templates that are corrected once to learn from
N_BINS = 20  # of shares
FITTED = slice(3, 17)  # bins around the valley
LEAST_SITES = 1000  # in these bins; with fewer the terms stay as they are
SHARES = 0.3, 0.65  # the threshold lies in between
LEAST_DEPTH = 8  # of columns to learn from
HALF = 0.5  # of the reads have to show a base, where nothing else is learnt
TELLING = (
    Telling(4, 0.2, 3, 0.1, 2, 6, 0.35), Telling(4, 0.2, 4, 0.1, 2, 6, 0.35), Telling(4, 0.2, 4, 0.2, 3, 30, 0.45),
)  # fmt: skip
CHANCE = 1e-5  # share of the columns that chance alone may make tell copies apart
NOISY, ROUNDS, NOISY_ROUNDS = 0.16, 2, 3  # errors of reads from which on a further round pays


def by_chance(telling: Telling, mismatch: float) -> float:
    """Share of the columns in which as many reads as for `own` have the same wrong base, where just as many are its share.

    mismatch : wrong bases of reads, as a share of all.
    """
    return 3 * comb(round(telling.own / telling.own_share), telling.own) * (mismatch / 3) ** telling.own


class Learnt(NamedTuple):
    """gap, inserted, mismatch : errors of reads for each base of the consensus: missing bases, added ones, and wrong ones.

    share : of the reads that have to show a base; None: too little to learn from.
    odds : by which single bases are judged.  lengths : see `find_weights`; None: not learnt.
    """

    gap: float
    inserted: float
    mismatch: float
    share: float | None
    odds: Odds
    lengths: np.ndarray | None = None

    @property
    def terms(self) -> Terms:
        """Costs at which a path with a base and one without it score the same where `share` of the reads show it.

        An inserted base takes 2 s links and its cost in the place of 1 - s links; a gap 2 (1 - s) links and its cost in the
        place of 2 s.
        """
        if self.share is None:
            return Terms()
        return Terms(round(UNIT * (3 * self.share - 1)), round(UNIT * (2 - 4 * self.share)))

    @property
    def telling(self) -> Telling:
        """The fewest reads that chance seldom gives: a haplotype may have few, and must not take the other's bases there."""
        return next((one for one in TELLING if by_chance(one, self.mismatch) <= CHANCE), TELLING[-1])

    @property
    def errors(self) -> float:
        """All of them, for each base of the consensus."""
        return self.gap + self.inserted + self.mismatch

    @property
    def rounds(self) -> int:
        """How many rounds such reads need."""
        return NOISY_ROUNDS if self.errors > NOISY else ROUNDS


def find_valley(counts: np.ndarray) -> float | None:
    """Where bases are rarest by the share of reads that show them: the vertex of a parabola through the logarithms.

    counts : (N_BINS,) int64.  None if there are too few bases, or no valley.
    """
    if counts[FITTED].sum() < LEAST_SITES:
        return None
    shares = (np.arange(N_BINS) + 0.5) / N_BINS
    square, slope, _ = np.polyfit(shares[FITTED], np.log(counts[FITTED] + 1.0), 2)
    return float(np.clip(-slope / (2 * square), *SHARES)) if square > 0 else None


class Seen(NamedTuple):
    """What the pile of a template tells: differences of its reads, bases by the share of reads that show them, runs, and
    what `tally_lengths` counts, if it is asked for."""

    differences: Differences
    shares: np.ndarray
    tally: Tally
    lengths: np.ndarray | None


def learn(seen: list[Seen]) -> Learnt:
    """What the piles of some templates tell."""
    shares = sum((one.shares for one in seen), np.zeros(N_BINS, np.int64))
    columns, matches, gaps, inserted = (
        sum(int(getattr(one.differences, name)[1:].sum()) for one in seen) for name in Differences._fields
    )
    n = max(1, columns)
    odds = find_odds([one.tally for one in seen])
    lengths = [one.lengths for one in seen if one.lengths is not None]
    weights = find_weights(np.sum(lengths, axis=0)) if lengths else None
    return Learnt(gaps / n, inserted / n, (columns - matches - gaps) / n, find_valley(shares), odds, weights)


def learn_from(
    codes_of: Callable[[int], np.ndarray], pile_of: Callable[[int], Pile], templates: Sequence[int] | np.ndarray,
    params: CorrectParams, threads: int, *, with_lengths: bool = False,
) -> Learnt:  # fmt: skip
    """What some templates tell in a first round, done again with what it tells.

    Reads of other copies count as errors at first.  Where they are many they are left out, as far as what is learnt tells
    them apart, and once more if others are told apart then.

    codes_of, pile_of : give the codes and the pile of a template.
    """

    def look(template: int, before: Learnt | None = None) -> Seen:
        codes, pile = codes_of(template), pile_of(template)
        if before:
            pile, found, _ = place(codes, pile, before.terms, before.telling, params)
        else:
            found = find_consensus(codes, pile, Terms(), params.min_support, with_template=True)
            pile = realign(pile, found)
        shares = count_shares(pile, len(found.codes), LEAST_DEPTH, N_BINS)
        lengths = tally_lengths(pile, found.codes) if with_lengths and before else None
        return Seen(compare(pile, found.codes), shares, tally(pile, found.codes, LEAST_DEPTH), lengths)

    learnt = learn(list(map_in_order(look, templates, threads)))
    for _ in TELLING:
        before, learnt = learnt, learn(list(map_in_order(partial(look, before=learnt), templates, threads)))
        if learnt.telling == before.telling:
            break
    return learnt


def sample(lengths: np.ndarray) -> np.ndarray:
    """Evenly spaced reads of about SAMPLE_BASES together, (n,) int64."""
    n = max(1, min(len(lengths), int(SAMPLE_BASES // max(1, lengths.mean())))) if len(lengths) else 0
    return np.unique(np.linspace(0, len(lengths) - 1, n).astype(np.int64)) if n else np.empty(0, np.int64)
