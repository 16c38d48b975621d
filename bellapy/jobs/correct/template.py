"""Correct one read: its pile, the consensus, the pile on the consensus, and so on."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_entry
from bellapy.engines.tags.columns import Look, compare, tell_apart
from bellapy.engines.tags.graph import Consensus, Terms, find_consensus
from bellapy.engines.tags.judge import Odds, judge
from bellapy.engines.tags.lengths import judge_lengths
from bellapy.engines.tags.margins import find_margins
from bellapy.engines.tags.realign import realign
from bellapy.engines.tags.symbols import Pile
from bellapy.jobs.correct.members import choose_depth, deepest
from bellapy.params.correct import CorrectParams
from bellapy.records.table import frozen

TELLING_READS, TELLING_SHARE = 4, 0.2  # that show a column's second base, for it to tell copies apart
FOREIGN = 3  # such columns against a read, less those for it
LEFT = 4  # reads that phasing leaves at least
JUDGED = 2  # times; what is put in or taken out changes what is seen beside it


class Corrected(NamedTuple):
    """A corrected read.

    codes : (n,) uint8.  raw : (n,) bool, bases that stayed for want of other reads.
    begins : (n_raw + 1,) int64, the base with which each base of the raw read begins.
    n_reads, n_foreign, n_deep : other reads of its pile; left out by phasing; left out by depth.
    support : mean number of other reads over its bases.
    n_bridges : bad stretches that were bridged.
    margins : (n,) int32, see `find_margins`; empty if they are not asked for.
    """

    codes: np.ndarray
    raw: np.ndarray
    begins: np.ndarray
    n_reads: int
    n_foreign: int
    n_deep: int
    support: float
    n_bridges: int = 0
    margins: np.ndarray = np.empty(0, np.int32)


class Changes(NamedTuple):
    """Bases of a read that were replaced, put in and taken out, and bases of the corrected one that stayed as they were."""

    mismatches: int
    inserted: int
    deleted: int
    raw: int


@njit_entry
def _count_changes(template, codes, raw, begins, counts):
    for i in range(len(template)):
        size = begins[i + 1] - begins[i]
        if size == 0:
            counts[2] += 1
        else:
            counts[0] += codes[begins[i]] != template[i]
            counts[1] += size - 1
    for i in range(len(raw)):
        counts[3] += raw[i]


def count_changes(template: np.ndarray, found: Corrected) -> Changes:
    """What became of a read, (n_raw,) uint8 codes."""
    counts = np.zeros(len(Changes._fields), np.int64)
    _count_changes(frozen(template), frozen(found.codes), found.raw, found.begins, counts)
    return Changes(*counts.tolist())


class How(NamedTuple):
    """How consensus is found.

    odds : by which the last consensus is judged.  rounds : of consensus.  share : of the reads that have to show a base.
    with_margins : whether qualities are to be told.
    lengths : by which the lengths of runs are looked at again; see `find_weights`.  None: they are not.
    """

    terms: Terms
    odds: Odds
    rounds: int
    share: float
    with_margins: bool = False
    lengths: np.ndarray | None = None

    def margins(self, pile: Pile, found: Consensus) -> np.ndarray:
        """Margins of a consensus of this pile, if they are asked for."""
        return find_margins(pile, found, self.share) if self.with_margins else np.empty(0, np.int32)


def uncorrected(codes: np.ndarray) -> Corrected:
    """A read that no other one overlaps."""
    return Corrected(
        codes, np.ones(len(codes), bool), np.arange(len(codes) + 1), 0, 0, 0, 0.0, 0, np.zeros(len(codes), np.int32)
    )


def correct_template(template: np.ndarray, pile: Pile, how: How, params: CorrectParams) -> Corrected:
    """Correct a read.

    Parameters
    ----------
    template : (n,) uint8 codes of the read.
    pile : of the read.
    """
    n_reads, n_foreign, n_deep = len(pile) - 1, 0, 0

    def choose(pile: Pile, found: Consensus) -> Pile:
        nonlocal n_foreign, n_deep
        kept, n_foreign, n_deep = choose_reads(look_at(pile, found), params)
        return pile.take(kept)

    found = find_consensus(template, pile, how.terms, params.min_support, with_template=True)
    pile, found, begins = refine(pile, found, how, params.min_support, choose)
    support = (np.diff(pile.offsets)[1:].sum()) / max(1, len(template))
    margins = how.margins(pile, found)
    return Corrected(found.codes, found.raw, begins, n_reads, n_foreign, n_deep, float(support), margins=margins)


def refine(
    pile: Pile, found: Consensus, how: How, least: int, choose: Callable[[Pile, Consensus], Pile] | None = None
) -> tuple[Pile, Consensus, np.ndarray]:  # fmt: skip
    """The pile on a consensus that it gave, the consensus of that, and so on; at last every base is judged.

    least : reads that a place needs to be changed.  choose : the part of the pile that stays, once it is on the consensus.

    Returns the last pile and consensus, and with which of its bases each base of the template begins.
    """
    begins, before = found.begins, None
    for turn in range(1, how.rounds + JUDGED):
        pile = realign(pile, found, before)
        if turn == 1 and choose:
            pile = choose(pile, found)
        before = found.codes
        if turn < how.rounds:
            found = find_consensus(before, pile, how.terms, least, with_template=False)
        else:
            found = judge(pile, before, how.odds, least)
        begins = found.begins[begins]
    if how.lengths is not None:
        pile = realign(pile, found, before)
        found = judge_lengths(pile, found, how.lengths, least)
        begins = found.begins[begins]
    return pile, found, begins


def look_at(pile: Pile, consensus: Consensus) -> Look:
    """What the reads of a pile show on its consensus."""
    n = len(consensus.codes)
    against, _ = tell_apart(pile, n, TELLING_READS, TELLING_SHARE)
    return Look(pile.starts, np.diff(pile.offsets), n, against, lambda: compare(pile, consensus.codes))


def choose_reads(look: Look, params: CorrectParams) -> tuple[np.ndarray, int, int]:
    """Mask of the reads that stay in a pile on its consensus, and how many are left out by phasing and by depth."""
    kept = look.sizes > 0
    kept[0] = True  # the template
    n_before = int(kept.sum())
    if not params.no_phase:
        same = kept & (look.against < FOREIGN)
        if same[1:].sum() >= min(LEFT, kept[1:].sum()):
            kept = same
    n_foreign, others = n_before - int(kept.sum()), np.flatnonzero(kept[1:]) + 1
    ends = look.starts[others] + look.sizes[others]  # or before: some symbols stand between columns
    if len(others) <= params.max_depth or deepest(look.starts[others], ends) <= params.max_depth:
        return kept, n_foreign, 0
    differences = look.differences()
    order = np.argsort(-differences.identity, kind="stable")
    order = order[kept[order] & (order > 0)]
    ends = np.maximum(look.starts + differences.columns, look.starts + 1)
    chosen = choose_depth(look.starts, ends, order, params.max_depth, look.n_columns)
    chosen[0] = True
    return chosen, n_foreign, int(kept.sum() - chosen.sum())
