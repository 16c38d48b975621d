"""Stage 3c: the depth along the reads -> the columns of the matrix that link reads; column_kinds.py says which these are.

The matrix may come in parts, each of some of the k-mers.  The rules are learnt from sums over all parts, and then each part
is cut down on its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bellapy.compute.threads import even_ranges, map_threads, shared_by
from bellapy.jobs.overlap.column_kinds import (
    APART_KIND,
    DEEP,
    N_KINDS,
    ORDINARY,
    REPEAT,
    Tests,
    keep_linking,
    survey_columns,
)
from bellapy.jobs.overlap.molecules import in_molecules
from bellapy.jobs.overlap.repeats import DEEP_SHARE, STEP, Bins, describe_bins, judge_stretches, reference_depth
from bellapy.records import DepthProfile, KmerMatrix
from bellapy.records.kmers import HeldMatrix

USUAL_SPREAD = 1.5  # the upper bound is no lower, in units of the usual level
LEAST_TOLD = 0.01  # share of the bases that the log tells
LINK_SPACING = 50  # bases, from one k-mer that two reads share to the next, in deep molecules
MOST_PLACES = 1 << 12  # of a k-mer that links reads
APART_PLACES = 1 << 9  # and have no more places
APART_WORK = 4  # and make no more products, in units of those up to the upper bound
MOST_DEEP = 0.25  # share of the bins that are deep; if there are more, it is the upper bound that is wrong
APART = 8  # k-mers that set the copies of a repeat apart are so much rarer than those around them


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
    repeat, deep = judge_stretches(parts, bins, profile, bound, correct, threads)
    usual, level, n_repeat = reference_depth(profile, repeat, threads)
    unlike = (level > STEP * usual) | (STEP * level < usual)
    own = np.where(unlike | in_molecules(parts, bins, profile, bound, level, usual, threads), level, 0)
    bound_is_wrong = len(deep) and deep.mean() > MOST_DEEP
    sound, bin_level, columns = deep, np.empty(len(deep), np.float32), (profile.offsets, profile.n_kmers, profile.copies)
    counts = (own > usual) | bound_is_wrong
    shared_by(threads)(lambda part: describe_bins(*columns, counts, *part, sound, bin_level), len(counts))
    upper = bound if strict else max(bound, int(USUAL_SPREAD * usual))
    most, apart_places = (0, 0) if strict else (MOST_PLACES, APART_PLACES)
    tests = Tests(bins, upper, most, sound, bin_level, APART, apart_places)
    kinds, products, n_sound = [], np.zeros(N_KINDS, np.int64), 0
    for matrix in parts:
        its_columns, its_products, its_sound = _survey(matrix, tests, threads)
        kinds.append(its_columns)
        products += its_products
        n_sound += its_sound
    one_in = np.ones(N_KINDS, np.int64)
    one_in[DEEP] = choose_thinning(n_sound, profile.width * int(sound.sum()), share_counted)
    one_in[APART_KIND] = max(1, -(-int(products[APART_KIND]) // max(1, APART_WORK * int(products[ORDINARY]))))
    deep_share, repeat_share = (float(mask.mean()) if len(mask) else 0.0 for mask in (sound, repeat))
    return Rules(
        tests, one_in, np.cumsum(kinds, axis=0) - kinds, _references(own, level, usual),
        profile.width * n_repeat.astype(float), DEEP_SHARE * correct, deep_share, repeat_share,
    )  # fmt: skip


def _references(own: np.ndarray, level: np.ndarray, usual: float) -> np.ndarray:
    """`reference` of a DepthProfile: a read's own level, else the usual one; 0 for reads that are all repeat."""
    return np.where(own > 0, own, np.where(level > 0, usual, 0)).astype(np.float32)


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


class Kept(NamedTuple):
    """What a part keeps.  n_entries : at its front.  kept, found : (N_KINDS,) int64, columns of each kind.

    n_apart : (n_reads,) int64, entries of columns that set copies apart.
    """

    n_entries: int
    kept: np.ndarray
    found: np.ndarray
    n_apart: np.ndarray


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


def describe(links: Links) -> list[str]:
    """What the log tells of it."""
    said = []
    if links.deep_share > LEAST_TOLD:
        share = f", one in {links.one_in[DEEP]}" if links.one_in[DEEP] > 1 else ""
        said.append(
            f"uneven depth: {100 * links.deep_share:.0f} % of the bases are in stretches far deeper than the bound allows; "
            f"there, {links.kept[DEEP]:,} k-mers above {links.upper} link reads{share}"
        )
    if links.repeat_share > LEAST_TOLD:
        said.append(
            f"repeats: {100 * links.repeat_share:.0f} % of the bases are in sequence over {STEP:g} times as deep as that "
            f"around it; {links.found[REPEAT]:,} k-mers of repeats are left out, {links.kept[APART_KIND]:,} that differ "
            "between copies are used"
        )
    return said
