"""Which columns of the k-mer matrix link reads, by the depth around their places: the tests of point 4 in repeats.py."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_inner
from bellapy.jobs.overlap.repeats import Bins, bin_of
from bellapy.seeding.entries import is_first, place_of
from bellapy.seeding.kmer_matrix import next_column, next_large

ORDINARY, DEEP, APART_KIND, REPEAT = range(4)  # kinds of k-mers: see column_kind
N_KINDS = 4


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
    n = last = 0
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
