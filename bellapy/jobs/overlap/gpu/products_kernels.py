"""Kernels of the product A·Aᵀ and of the choice of seeds on GPUs.

A product is a word, and beside it the query position of its k-mer:

    [ query, less the first one of its group | target | opposite strand | diagonal ]

Words are made in the order of columns, and sorted as far as the CPU's keys tell diagonals apart (products.py).  So the
k-mers of a candidate come in the CPU's order.  Seeds are chosen by the CPU's own functions (seeds.py), a thread for each
candidate.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import cuda

from bellapy.compute.gpu.ops import U32, U64, inlined
from bellapy.compute.gpu.scan import BLOCK, OWN, TILE, sum_before
from bellapy.jobs.overlap.seeds import (
    DIAGONAL_BIAS,
    MAX_MEMBERS,
    N_COLUMNS,
    PARTS,
    Candidate,
    Members,
    choose,
    list_by_query,
    sort_members,
)
from bellapy.seeding.entries import is_first, place_of, reverse_of
from bellapy.seeding.kmer_matrix import read_at

ONE = U64(1)
HEADS = PARTS + 1  # compiled code wants it as one number
STRONG = 32
"""Above this bit of a count stand the candidates with k-mers enough, below all of them."""


class Matrix(NamedTuple):
    """What kernels need of a KmerMatrix, on the device, and which reads are multiplied.

    entries, starts, table : of a KmerMatrix.  targets_begin : int64, the place from which on targets lie.
    """

    entries: np.ndarray
    starts: np.ndarray
    table: np.ndarray
    targets_begin: np.int64


class Group(NamedTuple):
    """The queries that are multiplied together, and how words are laid out; all int64.

    low, high : the places of the queries.  first_query : the first of them.
    diagonal_bits, target_bits : of the parts of a word.  bias : added to diagonals of equal strands.
    """

    low: np.int64
    high: np.int64
    first_query: np.int64
    diagonal_bits: np.int64
    target_bits: np.int64
    bias: np.int64


class Sorted(NamedTuple):
    """Products in the order of their words, (n,) uint64, and their positions, (n,) uint32."""

    words: np.ndarray
    positions: np.ndarray


@inlined
def _first_target(matrix, i, query):
    """The first entry behind entry i in its column that lies in a target of its query, or the end of the column.

    matrix : Matrix.
    """
    entries, begin = matrix.entries, max(matrix.starts[query + 1], matrix.targets_begin)
    i += 1
    while i < entries.size and not is_first(entries[i]) and place_of(entries[i]) < begin:
        i += 1
    return i


def count_within(entries, low, high, sums):
    """sums[t] = entries with places in [low, high) among the t-th TILE ones, one block for each.

    entries : of a KmerMatrix.  sums : (n_tiles + 1,) int64.
    """
    scratch = cuda.shared.array(BLOCK, np.int64)
    me, own = cuda.threadIdx.x, np.int64(0)
    for r in range(OWN):
        i = np.int64(cuda.blockIdx.x) * TILE + r * BLOCK + me
        if i < entries.size:
            place = place_of(entries[i])
            own += low <= place and place < high
    _, total = sum_before(own, scratch)
    if me == 0:
        sums[cuda.blockIdx.x] = total


def list_within(entries, low, high, before, listed):
    """listed[x] = the x-th entry with its place in [low, high), one block for TILE entries.

    entries : of a KmerMatrix.  before : the sums of `count_within`, scanned.  listed : int64, as many as there are.
    """
    scratch = cuda.shared.array(BLOCK, np.int64)
    first, n = np.int64(cuda.blockIdx.x) * TILE + cuda.threadIdx.x * OWN, np.int64(0)
    end = min(first + OWN, entries.size)
    for i in range(first, end):
        place = place_of(entries[i])
        n += low <= place and place < high
    mine, _ = sum_before(n, scratch)
    at = before[cuda.blockIdx.x] + mine
    for i in range(first, end):
        place = place_of(entries[i])
        if low <= place and place < high:
            listed[at] = i
            at += 1


@inlined
def _listed(listed, x):
    """The x-th entry that is listed; without a list, entry x."""
    return listed[x] if listed.size else np.int64(x)


def count_pairs(matrix, low, high, listed, counts, of_query):
    """counts[x] = products that the x-th entry listed is the query of, if it lies in [low, high), a thread for each.

    matrix : Matrix.  listed : of `list_within`, or empty: all entries.  counts : (n,) uint32, for each of them.
    of_query : (n_reads,) uint64, to which they are added, or empty.
    """
    x, entries = cuda.grid(1), matrix.entries
    if x >= counts.size:
        return
    i = _listed(listed, x)
    place, n = place_of(entries[i]), np.uint32(0)
    if low <= place and place < high:
        query = read_at(place, matrix.starts, matrix.table)
        j = _first_target(matrix, i, query)
        while j < entries.size and not is_first(entries[j]):
            n += np.uint32(1)
            j += 1
        if n and of_query.size:
            cuda.atomic.add(of_query, query, U64(n))
    counts[x] = n


def expand_pairs(matrix, group, listed, begins, words, positions):
    """The words of the products of a group, and their positions, a thread for each entry listed.

    matrix : Matrix.  group : Group.  listed : as in `count_pairs`.  begins : (n,) int64, the scan of its counts.
    words, positions : uint64 and uint32, as many as there are products.
    """
    x, entries = cuda.grid(1), matrix.entries
    if x >= begins.size:
        return
    i = _listed(listed, x)
    place = place_of(entries[i])
    if place < group.low or place >= group.high:
        return
    query = read_at(place, matrix.starts, matrix.table)
    position, at, way = place - matrix.starts[query], begins[x], reverse_of(entries[i])
    high = U64(query - group.first_query) << U64(group.target_bits + 1)
    j = _first_target(matrix, i, query)
    while j < entries.size and not is_first(entries[j]):
        place = place_of(entries[j])
        target = read_at(place, matrix.starts, matrix.table)
        opposite = way ^ reverse_of(entries[j])
        diagonal = place - matrix.starts[target] + (position if opposite else group.bias - position)
        words[at] = (high | U64(target) << ONE | opposite) << U64(group.diagonal_bits) | U64(diagonal)
        positions[at] = U32(position)
        at += 1
        j += 1


@inlined
def _kind_of(words, i, to_pair, least):
    """1 where a candidate begins at words[i], with STRONG set where it has `least` k-mers, else 0; to_pair : uint64."""
    pair = words[i] >> to_pair
    if i > 0 and words[i - 1] >> to_pair == pair:
        return np.int64(0)
    last = i + least - 1
    return np.int64(1) + ((np.int64(1) << STRONG) if last < words.size and words[last] >> to_pair == pair else np.int64(0))


def count_candidates(words, to_pair, least, sums):
    """sums[t] = candidates that begin in the t-th TILE words, and strong ones, one block for each.

    words : (n,) uint64, sorted.  to_pair : uint64, bits below the pair.  least : k-mers of a strong one.
    sums : (n_tiles + 1,) int64.
    """
    scratch = cuda.shared.array(BLOCK, np.int64)
    me, own = cuda.threadIdx.x, np.int64(0)
    for r in range(OWN):
        i = np.int64(cuda.blockIdx.x) * TILE + r * BLOCK + me
        if i < words.size:
            own += _kind_of(words, i, to_pair, least)
    _, total = sum_before(own, scratch)
    if me == 0:
        sums[cuda.blockIdx.x] = total


def list_candidates(words, to_pair, least, before, begins):
    """begins[c] = where strong candidate c begins, int64, one block for TILE words.

    words, to_pair, least : as in `count_candidates`.  before : its sums, scanned.
    """
    scratch = cuda.shared.array(BLOCK, np.int64)
    first, n = np.int64(cuda.blockIdx.x) * TILE + cuda.threadIdx.x * OWN, np.int64(0)
    end = min(first + OWN, words.size)
    for i in range(first, end):
        n += _kind_of(words, i, to_pair, least) >> STRONG
    mine, _ = sum_before(n, scratch)
    at = (before[cuda.blockIdx.x] >> STRONG) + mine
    for i in range(first, end):
        if _kind_of(words, i, to_pair, least) >> STRONG:
            begins[at] = i
            at += 1


@inlined
def _members(products, begin, group):
    """Turn the words of the candidate that begins at `begin` into those of Members, not yet sorted; products : Sorted.

    Return the pair, how many k-mers it shares, and how many of them are looked at.
    """
    words = products.words
    to_pair, diagonals = U64(group.diagonal_bits), (ONE << U64(group.diagonal_bits)) - ONE
    pair, end = words[begin] >> to_pair, begin + 1
    while end < words.size and words[end] >> to_pair == pair:
        end += 1
    n_shared = end - begin
    n, step = 0, (n_shared + MAX_MEMBERS - 1) // MAX_MEMBERS
    for x in range(begin, end, step):
        diagonal = np.int64(words[x] & diagonals)
        biased = U64(diagonal + DIAGONAL_BIAS - (np.int64(0) if pair & ONE else group.bias))
        words[begin + n] = biased << U64(31) | U64(products.positions[x])
        n += 1
    return pair, n_shared, n


def choose_candidates(products, room, used, begins, lengths, group, shape, params, rows, counts):
    """The seeds of some candidates, a thread for each.

    products : Sorted; the words are used up.  room, used : (n,) uint64 and bool, scratch.
    begins : (n_candidates,) int64.  lengths : (n_reads,) int32.  group : Group.  shape : k and seed length of the matrix.
    params : SeedParams.  rows : (n_candidates * (ranks + 1), N_COLUMNS) int32.  counts : (n_candidates,) uint32, rows each.
    """
    c = cuda.grid(1)
    if c >= begins.size:
        return
    begin, heads = begins[c], cuda.local.array(HEADS, np.int64)
    pair, n_shared, n = _members(products, begin, group)
    query = group.first_query + np.int64(pair >> U64(group.target_bits + 1))
    target = np.int64((pair >> ONE) & ((ONE << U64(group.target_bits)) - ONE))
    both = np.int64(lengths[query]), np.int64(lengths[target])
    strand = np.int64(1) - np.int64(2) * np.int64(pair & ONE)
    candidate = Candidate(query, target, strand, both, shape[0], shape[1], n_shared, np.int64(n))
    members = Members(products.words[begin : begin + n], room[begin : begin + n], used[begin : begin + n])
    sort_members(members.words, n)
    list_by_query(members, n, both[0], heads)
    most = params.ranks + 1
    counts[c] = choose(members, candidate, params, rows[c * most : (c + 1) * most], 0)


def gather_rows(rows, counts, begins, most, columns):
    """columns[:, begins[c] + r] = row r of candidate c, a thread for each candidate.

    rows, counts : as in `choose_candidates`; most : rows that a candidate has room for.  begins : (n_candidates,) int64.
    columns : (N_COLUMNS, n) int32.
    """
    c = cuda.grid(1)
    if c < counts.size:
        for r in range(counts[c]):
            for column in range(N_COLUMNS):
                columns[column, begins[c] + r] = rows[c * most + r, column]
