"""Kernels over the columns of a matrix on GPUs: the depth profile, and which columns link reads (linking.py says which do).

Most columns are short, but that of a k-mer of a microsatellite may have millions of entries.  What looks at every entry of
such columns gives each thread as many entries, whichever columns they are of.  Elsewhere a thread, or a few, take a column.
"""

from __future__ import annotations

import numpy as np
from numba import cuda

from bellapy.compute.gpu.ops import SIMULATED, U32, U64, inlined
from bellapy.compute.gpu.scan import BLOCK, OWN, TILE, sum_before
from bellapy.jobs.overlap.depth_steps import COMPANY_PLACES, bin_of, company_of, count_steps
from bellapy.jobs.overlap.linking import APART_KIND, DEEP, N_KINDS, REPEAT, Tests, column_kind
from bellapy.jobs.overlap.repeats import repeat_share
from bellapy.seeding.entries import is_first, place_of

LANES = 2 if SIMULATED else 8
"""Threads of a column."""
TOTALS = 2 * N_KINDS + 1
"""Columns and products of each kind, and entries of deep columns in sound bins."""


def count_firsts(entries, sums):
    """sums[t] = columns that begin in the t-th TILE entries, one block for each.

    entries : of a KmerMatrix.  sums : (n_tiles + 1,) int64.
    """
    scratch = cuda.shared.array(BLOCK, np.int64)
    me, own = cuda.threadIdx.x, np.int64(0)
    for r in range(OWN):
        i = np.int64(cuda.blockIdx.x) * TILE + r * BLOCK + me
        if i < entries.size and is_first(entries[i]):
            own += 1
    _, total = sum_before(own, scratch)
    if me == 0:
        sums[cuda.blockIdx.x] = total


def list_firsts(entries, before, begins):
    """begins[c] = where column c begins, one block for TILE entries.

    entries : of a KmerMatrix.  before : the sums of `count_firsts`, scanned.  begins : (n_columns + 1,) int64, but the last.
    """
    scratch = cuda.shared.array(BLOCK, np.int64)
    first, n = np.int64(cuda.blockIdx.x) * TILE + cuda.threadIdx.x * OWN, np.int64(0)
    end = min(first + OWN, entries.size)
    for i in range(first, end):
        n += is_first(entries[i])
    mine, _ = sum_before(n, scratch)
    at = before[cuda.blockIdx.x] + mine
    for i in range(first, end):
        if is_first(entries[i]):
            begins[at] = i
            at += 1


@inlined
def _own_entries(entries):
    """The first of the OWN consecutive entries of this thread, and the one after the last."""
    first = np.int64(cuda.grid(1)) * OWN
    return first, min(first + OWN, entries.size)


@inlined
def _column_of(begins, i):
    """The column with entry i; begins : (n_columns + 1,) int64."""
    low, high = np.int64(0), np.int64(begins.size - 1)
    while high - low > 1:
        middle = (low + high) // 2
        if begins[middle] <= i:
            low = middle
        else:
            high = middle
    return low


def add_to_profile(entries, begins, bins, most, n_kmers, copies):
    """Count all entries: kmer_matrix.add_to_profile for all places, a thread for OWN entries.

    begins : (n_columns + 1,) int64.  bins : Bins.  most : copies counted of a k-mer.  n_kmers, copies : (n_bins,) uint32.
    """
    first, end = _own_entries(entries)
    if first < end:
        c = _column_of(begins, first)
        for i in range(first, end):
            if i == begins[c + 1]:
                c += 1
            b = bin_of(place_of(entries[i]), bins)[1]
            cuda.atomic.add(n_kmers, b, U32(1))
            cuda.atomic.add(copies, b, U32(min(begins[c + 1] - begins[c], most)))


def add_company(entries, begins, bins, runs, unit, company):
    """depth_steps.add_company for all columns, a thread for each.

    begins, bins : as in `add_to_profile`.  runs, unit, company : as there.
    """
    c = cuda.grid(1)
    if c < begins.size - 1:
        first, last = begins[c], begins[c + 1]
        if last - first > COMPANY_PLACES:
            return
        counts = count_steps(entries, first, last, bins, runs)
        if counts[0] > 0:
            for i in range(first, last):
                run, share = company_of(entries[i], counts, bins, runs, unit)
                if run >= 0:
                    cuda.atomic.add(company, (0, run), U32(share))
                    cuda.atomic.add(company, (1, run), U32(1))


def count_in_repeats(entries, begins, bins, upper, repeat, counts):
    """counts[:, c] = reads of a column with more than `upper` entries whose first place lies in a repeat, and places behind
    another one in the same read, as repeats.repeat_shares counts them.

    A thread for OWN entries.  begins, bins : as in `add_to_profile`.  repeat : (n_bins,) uint8.
    counts : (2, n_columns) uint32, zeros.
    """
    first, end = _own_entries(entries)
    if first < end:
        c, n, n_again, before = _column_of(begins, first), U32(0), U32(0), np.int64(-1)
        if first > begins[c]:
            before = np.int64(bin_of(place_of(entries[first - 1]), bins)[0])
        for i in range(first, end):
            if i == begins[c + 1]:
                if n:
                    cuda.atomic.add(counts, (0, c), n)
                if n_again:
                    cuda.atomic.add(counts, (1, c), n_again)
                c, n, n_again, before = c + 1, U32(0), U32(0), np.int64(-1)
            if begins[c + 1] - begins[c] > upper:
                r, b = bin_of(place_of(entries[i]), bins)
                if r == before:
                    n_again += U32(1)
                elif repeat[b]:
                    n += U32(1)
                before = np.int64(r)
        if n:
            cuda.atomic.add(counts, (0, c), n)
        if n_again:
            cuda.atomic.add(counts, (1, c), n_again)


def add_votes(entries, begins, bins, upper, voting, counts, votes):
    """repeats.add_votes for all places, a thread for OWN entries.

    begins, bins : as in `add_to_profile`.  upper, counts : of `count_in_repeats`.  voting : Voting.
    votes : (2, n_bins) uint32, grows.
    """
    first, end = _own_entries(entries)
    if first < end:
        c = _column_of(begins, first)
        for i in range(first, end):
            if i == begins[c + 1]:
                c += 1
            size = begins[c + 1] - begins[c]
            if size > upper:
                b = bin_of(place_of(entries[i]), bins)[1]
                share = repeat_share(np.int64(counts[0, c]), np.int64(counts[1, c]), size, voting)
                cuda.atomic.add(votes, (0, b), U32(share))
                cuda.atomic.add(votes, (1, b), U32(1))


def survey_columns(entries, begins, bins, limits, sound, level, kinds, totals, n_apart):
    """The kind of every column, and repeats.survey_columns, a thread for each column.

    begins, bins : as in `add_to_profile`.  limits : upper, most, apart and apart_places of Tests.  sound, level : of Tests.
    kinds : (n_columns,) uint8.  totals : (TOTALS,) uint64, columns and products of each kind, and entries of deep
    columns in sound bins; grows.  n_apart : (n_reads,) uint64, entries of apart columns; grows.
    """
    here = cuda.shared.array(TOTALS, np.uint64)
    c, me = cuda.grid(1), cuda.threadIdx.x
    for x in range(me, TOTALS, BLOCK):
        here[x] = U64(0)
    cuda.syncthreads()
    if c < begins.size - 1:
        first, last = begins[c], begins[c + 1]
        tests = Tests(bins, limits[0], limits[1], sound, level, limits[2], limits[3])
        kind, n_sound = column_kind(entries, first, last, tests)
        kinds[c] = kind
        cuda.atomic.add(here, kind, U64(1))
        cuda.atomic.add(here, N_KINDS + kind, U64((last - first) * (last - first - 1) // 2))
        if kind == DEEP:
            cuda.atomic.add(here, 2 * N_KINDS, U64(n_sound))
        if kind == APART_KIND:
            for i in range(first, last):
                cuda.atomic.add(n_apart, bin_of(place_of(entries[i]), bins)[0], U64(1))
    cuda.syncthreads()
    for x in range(me, TOTALS, BLOCK):
        if here[x]:
            cuda.atomic.add(totals, x, here[x])


def size_kept(begins, kinds, sizes):
    """sizes[c] = entries of column c, 0 for those that link no reads.  begins, kinds : of `survey_columns`.

    sizes : (n_columns,) uint32.
    """
    c = cuda.grid(1)
    if c < kinds.size:
        sizes[c] = U32(0) if kinds[c] == REPEAT else U32(begins[c + 1] - begins[c])


def copy_kept(entries, begins, sizes, to, out):
    """Bring the columns that link reads together.

    entries, begins : of `survey_columns`.  sizes : of `size_kept`.  to : (n_columns,) int64, its scan.  out : of entries.
    """
    c, lane = cuda.grid(1) // LANES, cuda.grid(1) % LANES
    if c < sizes.size:
        for i in range(lane, sizes[c], LANES):
            out[to[c] + i] = entries[begins[c] + i]
