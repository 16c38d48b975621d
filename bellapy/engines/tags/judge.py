"""Every base of a consensus, judged by what the reads show: is it there, and is one missing beside it?

Gaps lie as far left as they go.  So a read that lacks a base of a run of equal bases lacks it in the run's first column, and
one that has a base more has it before this column.  Two cases are compared: a run has n bases, or n - 1.  How likely each
is to give what a read shows follows from how often reads lack a base of such runs, or have one more.  These rates are
counted on other piles.  The logarithms of the two likelihoods are subtracted, and summed over the reads.

Realignment puts bases where they cost least, whatever the number of columns.  Where a run has a column too many, a read with
another base added beside the run shows it in the run's place.  Where the run has one too few, a read with a wrong base in it
seems to add one, or has its last base in the place of a neighbour.  Such reads are those that show another base.  In runs of
more than LONGEST_RUN bases many a read has a wrong base; there it counts as one of the run.  A base of the run that a read
adds behind a wrong one, within the run, counts as added before it.

The template has no vote where many reads lie: its own errors made the columns.  Where there are few, it counts like them.

There are four times as many sequences with a base more, so that each of them is a quarter as likely before reads are seen.

Source: the ratio of what two hypotheses make likely, with independent reads (Bayes factor; Kass and Raftery 1995), and of
their prior odds.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_entry, njit_inner
from bellapy.engines.tags.graph import Consensus
from bellapy.engines.tags.symbols import GAP, INSERTED, UNKNOWN_BASE, Pile

LONGEST_RUN = 9  # longer runs of equal bases are taken for such
USUAL_MISSING, USUAL_MORE, USUAL_OTHER = 0.05, 0.02, 0.02  # rates, without more knowledge
WEIGHT = 200  # reads that the rate of runs of one base less stands for
LEAST_RATE = 0.001  # even the best reads have errors in common
PARTS = 256  # of a unit of logarithms
RARER = round(PARTS * float(np.log(4)))  # by which a sequence is less likely beforehand for each base more
U = np.uint64
MANY = 7  # reads, with which the template has no vote
PERIODS = 2, 3  # bases of the units of tandem repeats that are judged
N_SEEN = 11  # what is counted of a column: five letters, unknown ones, four letters behind it, reads that go on to the next


class Tally(NamedTuple):
    """What reads show of the runs of a consensus; (GAP, LONGEST_RUN + 1) int64 each, by the base and the length of a run.

    runs : reads of such runs.  missing : those that lack the first base.  more : those that have one more; for runs of no
    base this is a base unlike the next one, and each read counts for every such base.
    bases, other : (1,) int64; reads with a base in a column, and those with another one than the consensus.
    """

    runs: np.ndarray
    missing: np.ndarray
    more: np.ndarray
    bases: np.ndarray
    other: np.ndarray


class Odds(NamedTuple):
    """What a read adds to the evidence that a run has n bases and not n - 1; (GAP, LONGEST_RUN + 1) int64 each, by the base
    and n >= 1: some reads lack G and C more often than A and T.

    shown : if it shows the base in question.  other : if it shows another one there.  missing : if it shows none.
    The unit is the natural logarithm of a likelihood ratio, in PARTS.
    """

    shown: np.ndarray
    other: np.ndarray
    missing: np.ndarray


@njit_inner
def see(pile, seen):
    """Count what all reads but the first show in each column and behind it.

    seen : (n_columns * N_SEEN + 1,) int32 of zeros, of each column, end to end; the last entry is scratch.
    """
    symbols, going, nowhere = pile.symbols, U(N_SEEN - 1), len(seen) - 1
    for i in range(1, len(pile.starts)):
        at, inside = pile.starts[i] * N_SEEN, False  # behind the last column
        for k in range(U(pile.offsets[i]), U(pile.offsets[i + 1])):
            symbol = np.int64(symbols[k])
            stands, behind = symbol < INSERTED, at + symbol - (N_SEEN - UNKNOWN_BASE - 1 + INSERTED)
            seen[U(at + symbol if stands else behind if inside & (symbol < INSERTED + GAP) else nowhere)] += np.int32(1)
            at += N_SEEN if stands else 0
            inside = stands
        if pile.offsets[i + 1] > pile.offsets[i]:  # one more goes on from its first column, and one fewer from its last
            seen[U(pile.starts[i] * N_SEEN) + going] += np.int32(1)
            seen[U(at - 1)] -= np.int32(1)
    for at in range(U(N_SEEN) + going, U(len(seen)), U(N_SEEN)):
        seen[at] += seen[at - U(N_SEEN)]


@njit_inner
def see_template(symbols, begin, end, at, n, seen):
    """Count what the template shows in columns of fewer than MANY other reads, and behind them.

    symbols : (n,) uint8, of a pile; those of the template are symbols[begin:end].  at : its first column.
    n : columns.  seen : as `see` fills it.
    """
    alone = False  # or nearly: the column before is one of few reads
    for k in range(begin, end):
        symbol, here = np.int64(symbols[k]), at * N_SEEN
        if symbol < INSERTED:
            others = seen[here] + seen[here + 1] + seen[here + 2] + seen[here + 3] + seen[here + GAP]
            alone = others + seen[here + UNKNOWN_BASE] < MANY
            if alone:
                seen[here + symbol] += np.int32(1)
                seen[here + N_SEEN - 1] += np.int32(at + 1 < n)
            at += 1
        elif alone:
            alone = False
            if symbol < INSERTED + GAP:
                seen[here - N_SEEN + UNKNOWN_BASE + 1 + symbol - INSERTED] += np.int32(1)


@njit_inner
def _measure_runs(codes, runs):
    """Fill in the bases of the run of equal bases that begins with each one; 0 inside of runs."""
    begin = 0
    for k in range(1, len(codes) + 1):
        if k == len(codes) or codes[k] != codes[begin]:
            runs[begin] = min(LONGEST_RUN, k - begin)
            begin = k
        if k < len(codes):
            runs[k] = 0


@njit_entry
def _tally(pile, codes, least, seen, runs, tally):
    see(pile, seen)
    _measure_runs(codes, runs)
    for k in range(len(codes) - 1):
        here = seen[k * N_SEEN : (k + 1) * N_SEEN]
        bases = here[0] + here[1] + here[2] + here[3]
        if bases + here[GAP] < least or codes[k] >= GAP:
            continue
        tally.bases[0] += bases
        tally.other[0] += bases - here[codes[k]]
        if runs[k] > 0:
            tally.runs[codes[k], runs[k]] += bases + here[GAP]
            tally.missing[codes[k], runs[k]] += here[GAP]
        for base in range(GAP):
            more = here[UNKNOWN_BASE + 1 + base]
            if base != codes[k + 1]:
                tally.runs[base, 0] += here[N_SEEN - 1]
                tally.more[base, 0] += more
            elif runs[k + 1] > 0:
                tally.more[base, runs[k + 1]] += more


def no_tally() -> Tally:
    """One in which nothing is counted yet."""
    return Tally(*(np.zeros(shape, np.int64) for shape in (*[(GAP, LONGEST_RUN + 1)] * 3, 1, 1)))


def tally(pile: Pile, codes: np.ndarray, least: int) -> Tally:
    """What the reads of a pile show of the runs of a consensus, (n,) uint8 codes, where at least `least` lie."""
    found = no_tally()
    _tally(pile, codes, least, np.zeros(len(codes) * N_SEEN + 1, np.int32), np.zeros(len(codes), np.int64), found)
    return found


def _rates(counts: np.ndarray, of: np.ndarray, usual: np.ndarray | float) -> np.ndarray:
    """Rates by the length of a run, the last axis; where few runs are known, they are near that of runs of one base less."""
    rates = []
    for n, total in zip(counts.T, of.T, strict=True):
        usual = (n + WEIGHT * usual) / (total + WEIGHT)
        rates.append(np.maximum(usual, LEAST_RATE))
    return np.array(rates).T


def find_odds(tallies: Iterable[Tally]) -> Odds:
    """What a read's bases tell of the length of runs, from what was counted."""
    whole = reduce(lambda a, b: Tally(*map(np.add, a, b)), tallies, no_tally())
    other = float(_rates(whole.other, whole.bases, USUAL_OTHER)[0])
    more = _rates(whole.more, whole.runs, USUAL_MORE)
    missing = _rates(whole.missing[:, 1:], whole.runs[:, 1:], USUAL_MISSING)
    fewer = more[:, :-1]  # of a run of one base less
    others = more[:, 0].sum() - more[:, :1]  # of all other bases
    shown = np.log(np.maximum(1 - missing - other, LEAST_RATE) / fewer)
    absent = np.log(missing / np.maximum(1 - fewer - others, LEAST_RATE))
    unlike = np.broadcast_to(np.log(other / others), fewer.shape)
    return Odds(*(np.round(PARTS * np.pad(odds, ((0, 0), (1, 0)))).astype(np.int64) for odds in (shown, unlike, absent)))


@njit_inner
def _evidence(odds, base, run, shown, n_bases, n):
    """For a run of so many equal bases and not of one less: `shown` of n reads show the base, n_bases any base there."""
    of_run = base, run
    of_reads = odds.shown[of_run] * shown + odds.other[of_run] * (n_bases - shown) + odds.missing[of_run] * (n - n_bases)
    return of_reads - RARER


@njit_inner
def _count_unlike(codes, seen, k):
    """Other bases in the later columns of the run that begins with column k, and the number of its columns.

    seen : as in `decide`.
    """
    unlike, column = np.int64(0), k + 1
    while column < len(codes) and codes[column] == codes[k]:
        there = seen[column * N_SEEN : (column + 1) * N_SEEN]
        unlike += np.int64(there[0] + there[1] + there[2] + there[3] - there[codes[k]])
        column += 1
    return unlike, column - k


@njit_inner
def _count_added(codes, seen, k):
    """Bases of the run that begins behind column k which reads add within it; seen : as in `decide`."""
    added, column, base = np.int64(0), k + 1, np.int64(codes[k + 1])
    while base < GAP and column < len(codes) and codes[column] == base:
        added += np.int64(seen[column * N_SEEN + UNKNOWN_BASE + 1 + base])
        column += 1
    return added


@njit_inner
def _count_misplaced(codes, seen, k, base):
    """Bases that a run with one more than its columns may have lost to them: other bases that are added behind these, and
    the run's bases in the columns beside.  Returns their number and that of the columns.

    k : column before the run, which may be empty, of another base.  base : the code of its bases.  seen : as in `decide`.
    """
    misplaced, column = np.int64(seen[k * N_SEEN + base]), k + 1
    while column < len(codes) and codes[column] == base:
        for other in range(GAP):
            misplaced += np.int64(seen[column * N_SEEN + UNKNOWN_BASE + 1 + other] if other != base else 0)
        column += 1
    if column < len(codes):
        misplaced += np.int64(seen[column * N_SEEN + base])
    return misplaced, column - k - 1


@njit_inner
def _is_likely(codes, odds, seen, k, run):
    """Whether the run of equal bases that begins with column k has so many bases; seen : as in `decide`."""
    here = seen[k * N_SEEN : (k + 1) * N_SEEN]
    bases = np.int64(here[0] + here[1] + here[2] + here[3])
    unlike, columns = _count_unlike(codes, seen, k)
    shown = bases if columns > LONGEST_RUN else max(np.int64(0), here[codes[k]] - unlike)
    return _evidence(odds, np.int64(codes[k]), run, shown, bases, bases + here[GAP]) >= 0


@njit_inner
def _find_missing(codes, odds, seen, k):
    """The base that is likely to be missing behind column k, or GAP; one of a run is, if anywhere, before the run.

    seen : as in `decide`.
    """
    here, best, most, more = seen[k * N_SEEN : (k + 1) * N_SEEN], GAP, np.int64(0), np.int64(0)
    added = _count_added(codes, seen, k) if codes[k + 1] != codes[k] else np.int64(0)
    for base in range(GAP):
        shown = np.int64(here[UNKNOWN_BASE + 1 + base]) + (added if base == codes[k + 1] else 0)
        more += shown
        if shown > most and base != codes[k]:
            best, most = base, shown
    if best == GAP:
        return GAP
    misplaced, columns = _count_misplaced(codes, seen, k, best)
    n = np.int64(here[N_SEEN - 1])
    bases = min(n, more + misplaced * max(0, n - more) // max(1, n))  # as expected of reads that do not add one here
    shown = min(n, most) if columns < LONGEST_RUN else bases
    return best if _evidence(odds, best, min(LONGEST_RUN, columns + 1), shown, bases, n) > 0 else GAP


@njit_inner
def count_reads(seen, k):
    """Reads that show anything in a column; seen : as in `decide`."""
    here = seen[k * N_SEEN : (k + 1) * N_SEEN]
    return here[0] + here[1] + here[2] + here[3] + here[GAP] + here[UNKNOWN_BASE]


@njit_inner
def find_tandem(codes, k):
    """The unit's bases, and the end, of a tandem repeat that begins with column k; 0 and k: there is none.

    A unit of two or three bases, which are not all equal, stands there twice at least, the last time perhaps in part.
    """
    for period in PERIODS:
        end, mixed = k + period, False
        while end < len(codes) and codes[end] == codes[end - period] and codes[end] < GAP:
            mixed |= codes[end] != codes[k]
            end += 1
        if mixed and end >= k + 2 * period and (k == 0 or codes[k - 1] != codes[k - 1 + period]):
            return period, end
    return 0, k


@njit_inner
def _has_unit(codes, odds, seen, k, period, end):
    """Whether the tandem repeat in columns k to end - 1 is likely to have so many units, and not one less.

    What a read lacks of a unit stands in any of its columns: reads have other errors there, and the unit's first base may be
    missing in a run before.  So each base of the unit is looked at as a run of as many bases.  What a read has more of it
    makes up for one that it lacks.  Repeats of more units than runs have known lengths are not judged as a whole: the rates
    are not of such, and a read that lacks many units at once would count as many times.  seen : as in `decide`.
    """
    if end - k >= (LONGEST_RUN + 1) * period:
        return True
    here, evidence = seen[k * N_SEEN : (k + 1) * N_SEEN], np.int64(0)
    n = np.int64(here[0] + here[1] + here[2] + here[3] + here[GAP])
    for i in range(period):
        base, times, run, lacking, first = np.int64(codes[k + i]), 0, 0, np.int64(0), k
        for j in range(period):
            times += codes[k + j] == base
        while i == 0 and first > 0 and codes[first - 1] == base:
            first -= 1
        for column in range(first, end):
            if codes[column] == base:
                lacking, run = lacking + seen[column * N_SEEN + GAP], run + 1
        for column in range(max(0, first - 1), end):
            lacking -= seen[column * N_SEEN + UNKNOWN_BASE + 1 + base]
        shown = n - min(n, max(np.int64(0), lacking) // times)
        evidence += _evidence(odds, base, min(LONGEST_RUN, run), shown, shown, n)
    return evidence >= 0


@njit_inner
def decide(codes, odds, least, seen, runs, found):
    """Fill in the judged consensus; returns its number of bases.

    codes : (n,) uint8, the consensus.  odds : Odds.  least : reads that a column needs to be changed, at least two.
    seen : (n * N_SEEN,) int32, see `see` and `see_template`.  runs : (n + 1,) int64, overwritten.
    found : Consensus with room for 2 * n bases, overwritten.
    """
    n, at, least, gone = len(codes), 0, max(2, least), 0  # the template alone tells nothing
    _measure_runs(codes, runs)
    for k in range(n):
        found.begins[k], few = at, count_reads(seen, k) < least
        period, end = (0, k) if few or k < gone else find_tandem(codes, k)
        if period > 0 and count_reads(seen, k + period - 1) >= least and not _has_unit(codes, odds, seen, k, period, end):
            gone = k + period
        if k < gone:
            continue
        judged = not few and codes[k] < GAP and runs[k] > 0
        if not judged or _is_likely(codes, odds, seen, k, runs[k]):
            found.codes[at], found.raw[at], found.slots[at] = codes[k], few, 0
            at += 1
        if few or k + 1 == n:
            continue
        missing = _find_missing(codes, odds, seen, k)
        if missing < GAP:
            found.codes[at], found.raw[at], found.slots[at] = missing, False, 1
            at += 1
    found.begins[n] = at
    return at


@njit
def _judge(pile, codes, odds, least):
    n = len(codes)
    seen, runs = np.zeros(n * N_SEEN + 1, np.int32), np.zeros(n + 1, np.int64)
    see(pile, seen)
    see_template(pile.symbols, pile.offsets[0], pile.offsets[1], pile.starts[0], n, seen)
    found = Consensus(
        np.empty(2 * n, np.uint8), np.empty(2 * n, np.bool_), np.empty(2 * n, np.uint8), np.empty(n + 1, np.int64)
    )
    at = decide(codes, odds, least, seen, runs, found)
    return found.codes[:at].copy(), found.raw[:at].copy(), found.slots[:at].copy(), found.begins


def judge(pile: Pile, codes: np.ndarray, odds: Odds, least: int) -> Consensus:
    """A consensus without the bases that are not likely, and with those that are likely to be missing.

    Parameters
    ----------
    pile : of reads that are aligned to it; the first one, the template, counts where there are fewer than MANY others.
    codes : (n,) uint8, the consensus.
    least : reads that a column needs to be changed, the template among them where it counts.

    Notes
    -----
    One base of a run is taken out or put in at most, and one base between two others.  Without evidence all stays.
    """
    return Consensus(*_judge(pile, codes, odds, least))
