"""The lengths of runs of equal bases and of tandem repeats, judged by reads that are aligned to both.

The path of a read leads through the consensus as it is.  Where a run has a base too many, a base that the read adds beside
the run may stand in for it, and the read does not show that it lacks one.  So where a share of the reads speaks against a
length, each read's bases there are aligned to the consensus and to the consensus with one unit less, or more.  What either
one gains a read tells something.  How often reads gain how much where a length is right, and where it is not, is counted on
other runs, with lengths that are false for once.

Where a base is missing that parts two runs of the same base, as T in GGTGG, reads add it in several places: those that have
a G more or less than the consensus seem to have it elsewhere.  So it is judged likewise, in every place of the run.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_inner
from bellapy.engines.tags.draft import count_columns, go_to_column
from bellapy.engines.tags.graph import Consensus
from bellapy.engines.tags.judge import LEAST_RATE, LONGEST_RUN, N_SEEN, PARTS, RARER, WEIGHT, count_reads, find_tandem, see
from bellapy.engines.tags.symbols import GAP, INSERTED, UNKNOWN_BASE, Pile

DOUBTED = 3  # a length is looked at where one read in so many speaks against it
FLANK = 8  # columns on either side that are aligned, too
LONGEST = 80  # columns and bases that are aligned
UNEQUAL, ALONE = 3, 2  # costs of two unequal bases and of a gap, as in `realign`
MIDDLE = 2  # gains are told from -MIDDLE to MIDDLE; larger ones count as these
CLASSES = 2 * MIDDLE + 1
SAMPLED = 32  # runs of which one is learnt from


class Site(NamedTuple):
    """A length in doubt.

    begin, end : its columns.  unit : bases of the unit; 1 in a run.  longer : whether a unit may be missing; else one may be
    too many.  at, other : a column of a run before which this base may be missing; GAP: it is a base of the run.
    """

    begin: int
    end: int
    unit: int
    longer: bool
    at: int
    other: int


@njit_inner
def _doubts(codes, seen, begin, end, unit):
    """Whether enough reads lack a unit in columns begin to end - 1, and whether enough have one more.

    seen : as `see` fills it.
    """
    lacking, more, base = np.int64(0), np.int64(0), np.int64(codes[begin])
    for column in range(begin, end):
        here = seen[column * N_SEEN : (column + 1) * N_SEEN]
        lacking += here[0] + here[1] + here[2] + here[3] + here[GAP] - here[codes[column]]
    before = begin - 1
    if before >= 0:
        more += seen[before * N_SEEN + UNKNOWN_BASE + 1 + base]
        more += seen[before * N_SEEN + base] if codes[before] != base else 0
    if end < len(codes):
        more += seen[end * N_SEEN + base] if codes[end] != base else 0
    n = count_reads(seen, begin)
    return DOUBTED * lacking >= n * unit, DOUBTED * more >= n


@njit_inner
def _parting(codes, seen, begin, end):
    """The base that enough reads show within a run, as one more or in the place of the run's; GAP: there is none."""
    best, most = GAP, np.int64(0)
    for base in range(GAP):
        shown = np.int64(0)
        for column in range(begin, end):
            shown += seen[column * N_SEEN + base]
            shown += seen[column * N_SEEN + UNKNOWN_BASE + 1 + base] if column + 1 < end else 0
        if base != codes[begin] and shown > most:
            best, most = base, shown
    return best if DOUBTED * most >= count_reads(seen, begin) else GAP


@njit_inner
def _cost(bases, n, columns, m, scores):
    """Least cost of an alignment from end to end of n bases and m columns; scores : (LONGEST + 1,) int64, overwritten.

    What is equal at both ends is aligned so by one of the best ones.
    """
    first = 0
    while first < min(n, m) and bases[first] == columns[first]:
        first += 1
    while min(n, m) > first and bases[n - 1] == columns[m - 1]:
        n, m = n - 1, m - 1
    for j in range(m - first + 1):
        scores[j] = ALONE * j
    for i in range(first, n):
        before, scores[0] = scores[0], ALONE * (i - first + 1)
        for j in range(m - first):
            pair = before + (0 if bases[i] == columns[first + j] else UNEQUAL)
            before = scores[j + 1]
            scores[j + 1] = min(pair, min(before, scores[j]) + ALONE)
    return scores[m - first]


@njit_inner
def _bases_between(pile, i, k, column, first, last, bases):
    """Copy the bases of a read in columns first to last - 1 and between these; returns how many, and its place there.

    k, column : a symbol of the read at or before `first`, and its column.
    """
    k, column = go_to_column(pile.symbols, k, pile.offsets[i + 1], column, first)
    at, n = k, 0
    while column < last and n < LONGEST:
        symbol = pile.symbols[k]
        column += symbol < INSERTED
        if symbol != GAP:
            bases[n] = symbol & 7
            n += 1
        k += 1
    return n, at


@njit_inner
def _changed(codes, first, last, site, columns):
    """Write columns first to last - 1 with one unit more or less; returns how many there are."""
    n = 0
    for column in range(first, last):
        if column == site.at and site.longer:
            for i in range(site.unit):
                columns[n] = codes[column + i] if site.other == GAP else site.other
                n += 1
        if site.longer or not site.begin <= column < site.begin + site.unit:
            columns[n] = codes[column]
            n += 1
    return n


@njit_inner
def _weigh(pile, codes, site, place, column, ends, work, classes):
    """Count the reads across a site by what the longer of its two lengths gains them; whether it can be told.

    place, column : (n_reads,) int64, symbols of reads at or before the site, and their columns; moved there.
    ends : (n_reads,) int64, columns behind reads.  work : bases, columns as they are, changed ones, and scores.
    classes : (CLASSES,) int64, added to.
    """
    bases, as_is, changed, scores = work
    first, last = max(0, site.begin - FLANK), min(len(codes), site.end + FLANK)
    if last - first + site.unit > LONGEST:
        return False
    n_as_is, n_changed = last - first, _changed(codes, first, last, site, changed)
    for i in range(n_as_is):
        as_is[i] = codes[first + i]
    for i in range(1, len(pile.starts)):
        if pile.starts[i] > first or ends[i] < last:
            continue
        n, k = _bases_between(pile, i, place[i], column[i], first, last, bases)
        place[i], column[i] = k, first
        if n < LONGEST:
            gain = _cost(bases, n, as_is, n_as_is, scores) - _cost(bases, n, changed, n_changed, scores)
            classes[MIDDLE + max(-MIDDLE, min(MIDDLE, gain if site.longer else -gain))] += 1
    return True


@njit_inner
def _length(site):
    """Units of the longer of both lengths, as they are counted."""
    if site.other < GAP:
        return np.int64(1)
    return min(LONGEST_RUN, (site.end - site.begin) // site.unit + site.longer)


@njit_inner
def _run_end(codes, k):
    """The end of the run of equal bases that begins with column k; k: none does."""
    end = k + 1
    while end < len(codes) and codes[end] == codes[k]:
        end += 1
    return k if k > 0 and codes[k - 1] == codes[k] else end


@njit
def _begin(pile):
    """Where all reads begin, their ends, and room to work in, as `_weigh` takes them."""
    ends = pile.starts.copy()
    for i in range(len(ends)):
        ends[i] += count_columns(pile.symbols, pile.offsets[i], pile.offsets[i + 1])
    bases, columns = np.empty(LONGEST, np.uint8), (np.empty(LONGEST, np.uint8), np.empty(LONGEST, np.uint8))
    return pile.offsets[:-1].copy(), pile.starts.copy(), ends, (bases, *columns, np.empty(LONGEST + 1, np.int64))


@njit
def _tally(pile, codes, counts):
    place, column, ends, work = _begin(pile)
    n = 0
    for k in range(len(codes)):
        end = _run_end(codes, k) if codes[k] < GAP else k
        n += end > k
        if end > k and n % SAMPLED == 0:
            for longer in range(2):
                site = Site(k, end, 1, longer == 1, k, GAP)
                _weigh(pile, codes, site, place, column, ends, work, counts[longer, codes[k], _length(site)])
            if end > k + 1:
                parting = Site(k, end, 1, True, k + 1, (np.int64(codes[k]) + 1 + n // SAMPLED % 3) % 4)
                _weigh(pile, codes, parting, place, column, ends, work, counts[1, parting.other, 1])


def tally_lengths(pile: Pile, codes: np.ndarray) -> np.ndarray:
    """What the reads of a pile gain by the true lengths of runs and by others, of one run in SAMPLED.

    Returns (2, GAP, LONGEST_RUN + 1, CLASSES) int64: reads where the shorter or the longer length is false, by the run's
    base, the longer length, and what this one gains the read.  A base that parts a run falsely is a longer run of one base.
    """
    counts = np.zeros((2, GAP, LONGEST_RUN + 1, CLASSES), np.int64)
    _tally(pile, codes, counts)
    return counts


def find_weights(counts: np.ndarray) -> np.ndarray:
    """Logarithms of the likelihood ratios of both lengths, in PARTS, for what `tally_lengths` counted, for the longer one.

    Returns (GAP, LONGEST_RUN + 1, CLASSES) int64.  Where few runs are known, they are near that of runs of one base less.
    """
    usual, shares = np.full((2, GAP, CLASSES), 1 / CLASSES), []
    for some in np.moveaxis(counts, 2, 0):
        usual = (some + WEIGHT * usual) / (some.sum(axis=2, keepdims=True) + WEIGHT)
        shares.append(usual)
    true, false = np.log(np.maximum(np.stack(shares, axis=2), LEAST_RATE))
    return np.round(PARTS * (true - false)).astype(np.int64)


@njit
def _judge_lengths(pile, codes, weights, least):
    n, free, seen, classes = len(codes), 0, np.zeros(len(codes) * N_SEEN + 1, np.int32), np.zeros(CLASSES, np.int64)
    see(pile, seen)
    place, column, ends, work = _begin(pile)
    gone, more, parting = np.zeros(n, np.bool_), np.zeros(n, np.int64), np.full(n, GAP, np.uint8)
    for k in range(n):
        if codes[k] >= GAP or count_reads(seen, k) < least:
            continue
        tandem, tandem_end = find_tandem(codes, k)
        for unit, end in ((tandem, tandem_end), (1, _run_end(codes, k))):
            if end == k or k < free:
                continue
            for longer, doubted in enumerate(_doubts(codes, seen, k, end, unit)):
                site = Site(k, end, unit, longer == 1, k, GAP)
                if not doubted or k < free or (not longer and end == k + 1):  # `judge` knows of single bases
                    continue
                classes[:] = 0
                if not _weigh(pile, codes, site, place, column, ends, work, classes):
                    continue
                evidence = (weights[codes[k], _length(site)] * classes).sum() - RARER * unit
                if evidence <= 0 if site.longer else evidence >= 0:
                    continue
                free = end + 1
                if site.longer:
                    more[k] = unit
                else:
                    gone[k : k + unit] = True
        end = _run_end(codes, k)
        other = _parting(codes, seen, k, end) if end > k + 1 and k >= free else GAP
        best = np.int64(0)
        for at in range(k + 1, end if other < GAP else k):
            classes[:] = 0
            if not _weigh(pile, codes, Site(k, end, 1, True, at, other), place, column, ends, work, classes):
                break
            evidence = (weights[other, 1] * classes).sum() - RARER
            if evidence > best:
                best, free = evidence, end + 1
                more[k:end], parting[k:end] = 0, GAP
                more[at], parting[at] = 1, other
    return gone, more, parting


def judge_lengths(pile: Pile, consensus: Consensus, weights: np.ndarray, least: int) -> Consensus:
    """A consensus whose runs and tandem repeats have the likelier lengths, and with the bases that part runs.

    Parameters
    ----------
    pile : of reads that are aligned to it; the first one, the template, does not count.
    weights : see `find_weights`.
    least : reads that a column needs to be changed.

    Notes
    -----
    A length changes by one unit at most, and not where the one before it does.
    """
    codes = consensus.codes
    gone, more, parting = _judge_lengths(pile, codes, weights, max(2, least))
    sizes = np.where(gone, 0, 1 + more)
    begins = np.concatenate(([0], np.cumsum(sizes)))
    column = np.repeat(np.arange(len(codes)), sizes)
    within = np.arange(len(column)) - begins[column]
    new = within < more[column]  # what is put in stands before the unit that it repeats
    found = codes[np.where(new, column + within, column)]
    parts = new & (parting[column] < GAP)
    found[parts] = parting[column[parts]]
    return Consensus(found, consensus.raw[column] & ~new, new.astype(np.uint8), begins)
