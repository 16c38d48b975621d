"""Stage 3c: the depth along the reads (repeats.py) -> the columns of the matrix that link reads.

A k-mer above the upper bound links reads where most of its places are in deep reads and in no repeat, and where it does
not return in most of these reads, as in satellites.  Where very many places are deep, the bound itself is wrong, and being
outside repeats is enough.  If there are more of these k-mers than overlaps need, some are left out, in the order of their
hash.  In a repeat, k-mers that are far rarer than those around them link reads too: they set its copies apart.

The rules are learnt from sums over all parts of the k-mers, and then each part is cut down on its own.  What follows works
on tiles, so every part leaves its entries by blocks of reads (blocks.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_inner
from bellapy.compute.threads import even_ranges, map_threads
from bellapy.jobs.overlap.blocks import (
    ANY_COUNT,
    COUNTED,
    KEPT,
    SETTINGS,
    Blocks,
    Kept,
    KeptPart,
    PartMatrices,
    cut,
    matrix_of,
)
from bellapy.jobs.overlap.depth_steps import Bins, bin_of
from bellapy.jobs.overlap.estimate import DEFAULT_ERROR_RATE
from bellapy.jobs.overlap.repeats import DEEP_SHARE, judge_depth
from bellapy.jobs.overlap.store import Result
from bellapy.jobs.overlap.work import Work
from bellapy.records import DepthProfile, KmerMatrix
from bellapy.records.kmers import Held, HeldMatrix
from bellapy.seeding.entries import is_first, place_of
from bellapy.seeding.kmer_matrix import PROFILE_WIDTH, next_column, next_large
from bellapy.seeding.kmers import KmerCounts

USUAL_SPREAD = 1.5  # the upper bound is no lower, in units of the usual level
LINK_SPACING = 50  # bases, from one k-mer that two reads share to the next, in deep molecules
MOST_PLACES = 1 << 12  # of a k-mer that links reads
APART_PLACES = 1 << 9  # and have no more places
APART_WORK = 4  # and make no more products, in units of those up to the upper bound
APART = 8  # k-mers that set the copies of a repeat apart are so much rarer than those around them
ORDINARY, DEEP, APART_KIND, REPEAT = range(4)  # kinds of k-mers: see column_kind
N_KINDS = 4


class Links(NamedTuple):
    """What was done to the k-mers.

    upper : the bound used: never so low that most reads were left out.
    deep_share : share of the bins that are deep and no repeat.
    repeat_share : share of the bins that are repeats.
    kept, found : k-mers of each kind that link reads, and all.
    one_in : one k-mer of each kind in so many links reads.
    """

    upper: int
    deep_share: float
    repeat_share: float
    kept: list[int]
    found: list[int]
    one_in: list[int]


class Rules(NamedTuple):
    """Which columns link reads, learnt from all parts of the matrix.

    tests : of a column.
    one_in : (N_KINDS,) int64, one column of a kind in so many is kept.
    before : (n_parts, N_KINDS) int64, columns of each kind in the parts before.
    reference : (n_reads,) float32, as in DepthProfile.
    in_repeat : (n_reads,) float64, bases in repeats.
    apart_share : k-mers that set copies apart, for each base in repeats, from which on a read counts as set apart.
    deep_share, repeat_share : as in Links.
    """

    tests: Tests
    one_in: np.ndarray
    before: np.ndarray
    reference: np.ndarray
    in_repeat: np.ndarray
    apart_share: float
    deep_share: float
    repeat_share: float


@dataclass(frozen=True)
class Linking:
    """What all counts say: the depth along the reads, the spectrum, and which columns link reads."""

    n_kmers: np.ndarray
    copies: np.ndarray
    spectrum: np.ndarray
    rules: Rules


@dataclass(frozen=True)
class Linked:
    """The depth profile with what was learnt of each read; which k-mers link reads, None where that is not known."""

    profile: DepthProfile
    links: Links | None = None


LINKING = Result("links", Linking)
LINKED = Result("profile", Linked)


def learn_from_parts(work: Work) -> Linking:
    """The depth profile, and which columns link reads."""
    settings, estimate, profile = work.get(SETTINGS), work.estimate, _plain_profile(work)
    rate = DEFAULT_ERROR_RATE if estimate.error_rate is None else estimate.error_rate
    rules = learn_rules(
        PartMatrices(work), profile, (1 - rate) ** settings.k / settings.one_in, 1 / settings.one_in,
        strict=work.params.kmers.upper is not None, threads=work.params.run.threads,
    )  # fmt: skip
    spectrum = np.sum([spectrum for (spectrum,) in work.arrays(COUNTED, "spectrum")], axis=0)
    return Linking(profile.n_kmers, profile.copies, spectrum, rules)


def _plain_profile(work: Work) -> DepthProfile:
    """The sum of the profiles of all parts."""
    if work.plan.n_parts == 1:
        ((n_kmers, copies),) = work.arrays(COUNTED, "n_kmers", "copies")
    else:
        n_kmers, copies = np.zeros((2, int(_offsets(work)[-1])), np.uint32)
        for its_kmers, its_copies in work.arrays(COUNTED, "n_kmers", "copies"):
            n_kmers += its_kmers
            copies += its_copies
    return _profile(work, n_kmers, copies)


def _profile(work: Work, n_kmers: np.ndarray, copies: np.ndarray) -> DepthProfile:
    """A profile without what is learnt of each read."""
    unknown = np.zeros(len(work.reads.lengths))
    return DepthProfile(PROFILE_WIDTH, _offsets(work), n_kmers, copies, unknown.astype(np.float32), unknown.astype(np.uint8))


def _offsets(work: Work) -> np.ndarray:
    """Where the bins of each read begin, and where the last ones end, (n_reads + 1,) int64."""
    return np.concatenate(([0], np.cumsum(work.reads.lengths // PROFILE_WIDTH + 1, dtype=np.int64)))


def keep(work: Work, part: int) -> KeptPart:
    """The columns of a part that link reads, by blocks of reads, and the products that every query makes of them."""
    rules, settings = work.get(LINKING).rules, work.get(SETTINGS)
    entries = work.pop(COUNTED, part).entries
    if isinstance(entries, Held):
        entries, kept = entries.keep(rules)  # type: ignore[attr-defined]
    else:
        kept = keep_columns(entries, rules, part)
        entries = entries[: kept.n_entries]
    n_kmers, blocks = int(kept.kept.sum()), Blocks((entries,))
    if not work.is_whole:
        blocks = cut(work, matrix_of(work, KmerCounts(entries, n_kmers, kept.kept), ANY_COUNT))
    return KeptPart(blocks, n_kmers, len(entries), settings.k, settings.seed_length, kept)


def link_reads(work: Work) -> Linked:
    """The depth profile of all reads, with what was learnt of each, and what was done to the k-mers."""
    learnt = work.get(LINKING)
    profile, rules = _profile(work, learnt.n_kmers, learnt.copies), learnt.rules
    kept = [Kept(0, *numbers) for numbers in work.arrays(KEPT, "kept.kept", "kept.found", "kept.n_apart")]
    return Linked(*link_profile(profile, rules, kept))


# ---------------------------------------------------------------- rules


def choose_thinning(n_sound: int, n_bases: int, share_counted: float) -> int:
    """Leave so many deep k-mers that overlapping reads share one in LINK_SPACING bases: one in so many.

    The share of correct k-mers, and with it that of shared ones, shows in how many places they have on deep stretches.
    """
    if not n_sound:
        return 1
    density = n_sound / n_bases
    return max(1, int(LINK_SPACING * density * density / share_counted))


def learn_rules(
    parts: Iterable[KmerMatrix], profile: DepthProfile, correct: float, share_counted: float, *, strict: bool = False,
    threads: int = 1,
) -> Rules:  # fmt: skip
    """Which columns link reads.

    Parameters
    ----------
    parts : all k-mers that occur more than once, in any number of matrices of the same reads; gone through several times.
    correct : k-mers per base that are expected to be without errors, of those that were counted.
    share_counted : how much of all k-mers was counted.
    strict : no column above the upper bound links reads: the user gave it.
    """
    bins, bound = _about(parts, profile)
    depths = judge_depth(parts, bins, profile, bound, correct, share_counted, threads)
    upper = bound if strict else max(bound, int(USUAL_SPREAD * depths.usual))
    most, apart_places = (0, 0) if strict else (MOST_PLACES, APART_PLACES)
    tests = Tests(bins, upper, most, depths.sound, depths.level, APART, apart_places)
    kinds, products, n_sound = [], np.zeros(N_KINDS, np.int64), 0
    for matrix in parts:
        its_columns, its_products, its_sound = _survey(matrix, tests, threads)
        kinds.append(its_columns)
        products += its_products
        n_sound += its_sound
    one_in = np.ones(N_KINDS, np.int64)
    one_in[DEEP] = choose_thinning(n_sound, profile.width * int(np.count_nonzero(depths.sound)), share_counted)
    one_in[APART_KIND] = max(1, -(-int(products[APART_KIND]) // max(1, APART_WORK * int(products[ORDINARY]))))
    deep_share, repeat_share = (int(np.count_nonzero(mask)) / max(1, len(mask)) for mask in (depths.sound, depths.repeat))
    return Rules(
        tests, one_in, np.cumsum(kinds, axis=0) - kinds, depths.reference,
        profile.width * depths.n_repeat.astype(float), DEEP_SHARE * correct, deep_share, repeat_share,
    )  # fmt: skip


def _survey(matrix: KmerMatrix, tests: Tests, threads: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Columns and products of each kind, (N_KINDS,) int64, and entries of deep columns in sound bins."""
    if isinstance(matrix, HeldMatrix):
        return matrix.entries.survey(tests)

    def survey(part: tuple[int, int]) -> tuple[np.ndarray, int]:
        numbers = np.zeros((2, N_KINDS), np.int64)
        return numbers, survey_columns(matrix.entries, *part, tests, *numbers)

    parts = map_threads(survey, even_ranges(len(matrix.entries), threads), threads)
    columns, products = sum((numbers for numbers, _ in parts), np.zeros((2, N_KINDS), np.int64))
    return columns, products, sum(n_sound for _, n_sound in parts)


def _about(parts: Iterable[KmerMatrix], profile: DepthProfile) -> tuple[Bins, int]:
    """Where the bins of the reads lie, and the upper bound."""
    some = next(iter(parts))
    return Bins(some.starts, some.read_table, profile.offsets, profile.width), some.upper


def keep_columns(entries: np.ndarray, rules: Rules, part: int = 0) -> Kept:
    """Move the columns that link reads to the front of `entries`, which are writable and those of one part of the matrix."""
    kept, n_apart = np.zeros((2, N_KINDS), np.int64), np.zeros(len(rules.reference), np.int64)
    kept[1] = rules.before[part]
    n = keep_linking(entries, rules.tests, rules.one_in, kept, n_apart)
    return Kept(n, kept[0], kept[1] - rules.before[part], n_apart)


def link_profile(profile: DepthProfile, rules: Rules, parts: Sequence[Kept]) -> tuple[DepthProfile, Links]:
    """The profile with what was learnt of every read, and what was done; `parts` : what every part keeps."""
    n_apart = np.sum([part.n_apart for part in parts], axis=0)
    in_repeat = rules.in_repeat > 0
    kinds = in_repeat.astype(np.uint8) + (in_repeat & (n_apart > rules.apart_share * rules.in_repeat))
    kept, found = (np.sum(columns, axis=0).tolist() for columns in ([x.kept for x in parts], [x.found for x in parts]))
    links = Links(rules.tests.upper, rules.deep_share, rules.repeat_share, kept, found, rules.one_in.tolist())
    return replace(profile, reference=rules.reference, repeats=kinds), links


class Tests(NamedTuple):
    """What a column has to be to link reads.

    ORDINARY : it has up to `upper` entries.  DEEP : up to `most`, more than half in bins that are `sound`.  APART : up to
    `apart_places`, and `apart` times fewer than the mean `level` of the bins they lie in.  Of the last two, most are
    the only one in their read.  REPEAT : none of these.

    sound : (n_bins,) bool.  level : (n_bins,) float32, mean count of a bin's k-mers.
    """

    bins: Bins
    upper: int
    most: int
    sound: np.ndarray
    level: np.ndarray
    apart: int
    apart_places: int


@njit_inner
def column_kind(entries, first, last, tests):
    """What a column, entries[first:last], may do by tests (Tests), and how many entries of a deep one lie in sound bins."""
    bins, upper, most, sound, level, apart, apart_places = tests
    size = last - first
    if size <= upper:
        return ORDINARY, 0
    if size > max(most, apart_places):
        return REPEAT, 0
    n_sound, n_back, levels, before = 0, 0, 0.0, -1
    for i in range(first, last):
        r, b = bin_of(place_of(entries[i]), bins)
        n_sound += sound[b]
        n_back += r == before
        levels += level[b]
        before = r
    if 2 * n_back >= size:
        return REPEAT, n_sound
    if 2 * n_sound > size and size <= most:
        return DEEP, n_sound
    if size <= apart_places and apart * size * size <= levels:
        return APART_KIND, n_sound
    return REPEAT, n_sound


@njit_inner
def _survey_ordinary(entries, begin, end, columns, products):
    """Add the columns in entries [begin, end), all of them ORDINARY, to columns and products, as in survey_columns."""
    n_columns = n_products = np.int64(0)
    first = begin
    for i in range(begin, end):  # without a branch, as in next_large
        begins = is_first(entries[i])
        first = i if begins else first
        n_columns += begins
        n_products += i - first
    columns[ORDINARY] += n_columns
    products[ORDINARY] += n_products


@njit
def survey_columns(entries, begin, end, tests, columns, products):
    """Add columns and products of each kind to columns and products; return the entries of deep columns in sound bins.

    Of columns that begin in [begin, end).
    entries : of a KmerMatrix.  tests : Tests.  columns, products : (N_KINDS,) int64.
    """
    n_sound, last, end = 0, next_column(entries, begin), next_column(entries, end)
    while last < end:
        first = next_large(entries, last, end, tests.upper)
        _survey_ordinary(entries, last, first, columns, products)
        if first == end:
            break
        last = next_column(entries, first + 1)
        kind, its_sound = column_kind(entries, first, last, tests)
        columns[kind] += 1
        products[kind] += (last - first) * (last - first - 1) // 2
        n_sound += its_sound if kind == DEEP else 0
    return n_sound


@njit_inner
def _keep_ordinary(entries, begin, end, n, kept):
    """Move entries [begin, end), of ORDINARY columns, to entries[n:], and count them in `kept`; return where they end."""
    n_columns = 0
    for i in range(begin, end):
        entries[n] = entries[i]
        n += 1
        n_columns += is_first(entries[i])
    kept[0, ORDINARY] += n_columns
    kept[1, ORDINARY] += n_columns
    return n


@njit
def keep_linking(entries, tests, one_in, kept, n_apart):
    """Move the columns that link reads to the front of `entries`; return how many entries they have.

    entries : of a KmerMatrix.  tests : Tests.
    All ORDINARY ones are kept, of the other kinds one column in one_in[kind].
    kept : (2, N_KINDS) int64, columns of each kind that are kept, all; both grow, and those in matrices before this one are
        counted in the second.
    n_apart : (n_reads,) int64, entries of apart columns, kept or not.
    """
    n = last = np.int64(0)
    while last < entries.size:
        first = next_large(entries, last, entries.size, tests.upper)
        n = _keep_ordinary(entries, last, first, n, kept)
        if first == entries.size:
            break
        last = next_column(entries, first + 1)
        kind = column_kind(entries, first, last, tests)[0]
        keep = kind != REPEAT and kept[1, kind] % one_in[kind] == 0
        kept[0, kind] += keep
        kept[1, kind] += 1
        if kind == APART_KIND:
            for i in range(first, last):
                n_apart[bin_of(place_of(entries[i]), tests.bins)[0]] += 1
        if keep:
            for i in range(first, last):
                entries[n] = entries[i]
                n += 1
    return n
