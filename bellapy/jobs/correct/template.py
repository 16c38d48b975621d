"""Correct one read: its pile, the consensus, the pile on the consensus, and so on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_entry
from bellapy.engines.tags.changes import Changes, Corrections, count_changes
from bellapy.engines.tags.columns import FAR, FEW, SAME, Choice, Differences, Look, Telling, compare, tell_apart
from bellapy.engines.tags.graph import Consensus, Terms, find_consensus
from bellapy.engines.tags.judge import Odds, judge
from bellapy.engines.tags.lengths import judge_lengths
from bellapy.engines.tags.margins import find_margins
from bellapy.engines.tags.realign import realign
from bellapy.engines.tags.symbols import Pile
from bellapy.jobs.correct.members import choose_depth, deepest
from bellapy.params.correct import CorrectParams

LOOKS = 4  # at what is left of a pile, at most
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


def changes_of(template: np.ndarray, found: Corrected) -> Changes:
    """What became of a read, (n_raw,) uint8 codes."""
    offsets, ends = np.array([0, len(template)]), np.array([0, len(found.codes)])
    (changes,) = count_changes(Corrections(template, offsets, found.codes, found.raw, ends, found.begins))
    return changes


class How(NamedTuple):
    """How consensus is found.

    odds : by which the last consensus is judged.  rounds : of consensus.  share : of the reads that have to show a base.
    telling : which columns tell copies apart.
    with_margins : whether qualities are to be told.
    lengths : by which the lengths of runs are looked at again; see `find_weights`.  None: they are not.
    """

    terms: Terms
    odds: Odds
    rounds: int
    share: float
    telling: Telling
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


class Solved(NamedTuple):
    """A read that is corrected but for its bad stretches.

    own : (n_reads,) bool, which other reads of its pile are of its copy, as `Choice` tells.
    changes : what became of the read, if that is counted.
    """

    found: Corrected
    own: np.ndarray
    changes: Changes | None = None


def correct_template(template: np.ndarray, pile: Pile, how: How, params: CorrectParams) -> Solved:
    """Correct a read.

    Parameters
    ----------
    template : (n,) uint8 codes of the read.
    pile : of the read.
    """
    placed, found, choice = place(template, pile, how.terms, how.telling, params)
    if not choice.anew[0]:
        placed = placed.take(choice.kept)
    pile, found, begins = refine(placed, found, how, params.min_support, is_placed=True)
    support = float(np.diff(pile.offsets)[1:].sum() / max(1, len(template)))
    numbers = len(choice.own) - 1, int(choice.n_foreign[0]), int(choice.n_deep[0]), support
    corrected = Corrected(found.codes, found.raw, begins, *numbers, margins=how.margins(pile, found))
    return Solved(corrected, choice.own[1:])


def place(
    template: np.ndarray, pile: Pile, terms: Terms, telling: Telling, params: CorrectParams
) -> tuple[Pile, Consensus, Choice]:  # fmt: skip
    """The pile of a read on its first consensus, and which reads stay: only these where they have a consensus anew."""

    def found_of(pile: Pile) -> tuple[Pile, Consensus]:
        found = find_consensus(template, pile, terms, params.min_support, with_template=True)
        return realign(pile, found), found

    placed, found = found_of(pile)
    choice = choose_reads(look_at(placed, found, telling), params)
    if choice.anew[0]:
        placed, found = found_of(pile.take(choice.kept))
    return placed, found, choice


def refine(
    pile: Pile, found: Consensus, how: How, least: int, *, is_placed: bool = False
) -> tuple[Pile, Consensus, np.ndarray]:  # fmt: skip
    """The pile on a consensus that it gave, the consensus of that, and so on; at last every base is judged.

    least : reads that a place needs to be changed.  is_placed : whether the pile is on the consensus.

    Returns the last pile and consensus, and with which of its bases each base of the template begins.
    """
    begins, before = found.begins, None
    for turn in range(1, how.rounds + JUDGED):
        if turn > 1 or not is_placed:
            pile = realign(pile, found, before)
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


def look_at(pile: Pile, consensus: Consensus, telling: Telling) -> Look:
    """What the reads of a pile show on its consensus."""
    n = len(consensus.codes)
    firsts, sizes = np.array([0, len(pile)]), np.diff(pile.offsets)

    def kinds(kept: np.ndarray) -> np.ndarray:
        return tell_apart(pile, kept, n, telling)[0]

    return Look(firsts, np.array([n]), pile.starts, sizes, kinds, lambda: compare(pile, consensus.codes))


@njit_entry
def _leave_out(firsts, kinds, again, kept, n_foreign):
    """Leave out the reads of each pile that are of another copy; see `choose_reads`.

    again : (n_piles,) bool, whether a pile is looked at; then whether a read that differs much was left out.
    """
    for p in range(len(firsts) - 1):
        if not again[p]:
            continue
        again[p] = False
        first, end, n_others, n_own = firsts[p] + 1, firsts[p + 1], 0, 0
        for i in range(first, end):
            n_others += kept[i]
            n_own += kept[i] and kinds[i] == SAME
        if n_own >= min(LEFT, n_others):
            for i in range(first, end):
                again[p] |= kept[i] and kinds[i] == FAR
                kept[i] &= kinds[i] == SAME
            n_foreign[p] += n_others - n_own


def choose_reads(look: Look, params: CorrectParams) -> Choice:
    """The reads that stay in piles.

    Where reads that differ much are left out, the others are looked at again: copies that differ little are seen then.
    """
    kept, n_piles = look.sizes > 0, len(look.n_columns)
    kept[look.firsts[:-1]] = True  # templates
    there = kept.copy()
    n_foreign, n_deep = np.zeros(n_piles, np.int64), np.zeros(n_piles, np.int64)
    again = np.full(n_piles, not params.no_phase)
    for _ in range(LOOKS):
        if not again.any():
            break
        _leave_out(look.firsts, look.kinds(kept), again, kept, n_foreign)
    n_reads = np.diff(look.firsts) - 1
    anew = (n_foreign > 0) & (FEW * n_foreign >= n_reads)
    own = kept | ~there | np.repeat(~anew, n_reads + 1)
    n_others = np.add.reduceat(kept, look.firsts[:-1], dtype=np.int64) - 1
    for pile in np.flatnonzero(n_others > params.max_depth).tolist():
        n_deep[pile] = _limit_depth(look, pile, params.max_depth, kept)
    return Choice(own, kept, n_foreign, n_deep, anew)


def _limit_depth(look: Look, pile: int, most: int, kept: np.ndarray) -> int:
    """Where a pile is deeper than `most`, keep the reads that are most like its consensus; how many are left out.

    kept : of all piles, changed.
    """
    its = slice(look.firsts[pile], look.firsts[pile + 1])
    starts, mine = look.starts[its], kept[its]
    others = np.flatnonzero(mine[1:]) + 1
    ends = starts[others] + look.sizes[its][others]  # or before: some symbols stand between columns
    if deepest(starts[others], ends) <= most:
        return 0
    differences = Differences(*(column[its] for column in look.differences()))
    order = np.argsort(-differences.identity, kind="stable")
    order = order[mine[order] & (order > 0)]
    ends, n_before = np.maximum(starts + differences.columns, starts + 1), int(mine.sum())
    mine[:] = choose_depth(starts, ends, order, most, int(look.n_columns[pile]))
    mine[0] = True
    return n_before - int(mine.sum())
