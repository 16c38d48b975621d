"""Stage 5: products of A·Aᵀ -> seeds: which shared k-mers of a pair of reads support each other.

Every shared k-mer lies on a diagonal of the pair: target position minus query position, or their sum where the strands are
opposite.  K-mers of one overlap lie within a band of diagonals.  Its width grows with the overlap, since insertions and
deletions add up.  The support of a band is the number of its k-mers at least k apart on both reads.  The best-supported
band gives the first seed of a candidate (its k-mer on the middle diagonal), and the next best band the second.  Reads of a
circle overlap at both ends (geometry.py). Where the second seed is not such a second overlap, the best band that is one
gives a third seed.
"""

from __future__ import annotations

from dataclasses import fields
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_inner, prefetch
from bellapy.compute.threads import even_ranges, map_threads
from bellapy.jobs.overlap.geometry import SLACK
from bellapy.jobs.overlap.products import Products
from bellapy.params import SeedParams
from bellapy.records import KmerMatrix, ReadSet, Seeds

U = np.uint64
U0, U1, U31, U32, U33 = (U(x) for x in (0, 1, 31, 32, 33))
DIAGONAL_BIAS = 1 << 31  # keeps diagonals positive
LOW31, LOW33 = U((1 << 31) - 1), U((1 << 33) - 1)
MAX_MEMBERS = 256  # shared k-mers of one candidate that are looked at, evenly spread over all of them
PARTS = 64  # of a query
FEW = 12  # members that are sorted at once
AHEAD = 24  # products whose places are asked for before they are needed
N_COLUMNS = 13  # of Seeds that are chosen; the others follow
SEED_BYTES = 8 * N_COLUMNS  # of a seed in the table, and in the columns made from it


class Found(NamedTuple):
    """Seeds of all candidates in parts of whole candidates, and how many products, candidates and dropped candidates."""

    parts: list[Seeds]
    n_products: int
    n_candidates: int
    n_weak: int


class Members(NamedTuple):
    """Working memory: the shared k-mers of one candidate, at most MAX_MEMBERS.

    words : uint64, [diagonal + bias | query position], sorted.  by_query : uint64, [query position | diagonal + bias],
    sorted.  used : bool, those of `words` that a seed has taken.
    """

    words: np.ndarray
    by_query: np.ndarray
    used: np.ndarray


class Candidate(NamedTuple):
    """A pair of reads with shared k-mers; strand : 1 or -1.  lengths : of query and target.  k, seed_length : of the matrix.

    n_shared : k-mers.  n : those of them that are looked at.
    """

    query: int
    target: int
    strand: int
    lengths: tuple[int, int]
    k: int
    seed_length: int
    n_shared: int
    n: int


@njit_inner
def implied_overlap(query_pos, target_pos, strand, query_length, target_length, seed_length):
    """Bases of the overlap that runs along a seed's diagonal to the ends of the reads.

    query_pos, target_pos : of a seed of seed_length bases.  strand : 1 or -1.  query_length, target_length : of the reads.
    """
    if strand < 0:
        target_pos = target_length - seed_length - target_pos
    right = min(query_length - query_pos, target_length - target_pos) - seed_length
    return min(query_pos, target_pos) + seed_length + right


@njit_inner
def _lie(query_pos, target_pos, candidate):
    """Query and target start of the overlap that runs along a seed's diagonal, as the query runs, and its length.

    query_pos, target_pos : of the seed.  candidate : Candidate.
    """
    strand, lengths, seed_length = candidate.strand, candidate.lengths, candidate.seed_length
    implied = implied_overlap(query_pos, target_pos, strand, lengths[0], lengths[1], seed_length)
    if strand < 0:
        target_pos = lengths[1] - seed_length - target_pos
    left = min(query_pos, target_pos)
    return query_pos - left, target_pos - left, np.int64(implied)


@njit_inner
def _clear(one, other):
    """Whether two overlaps, one and other as from `_lie`, share hardly any bases, neither on the query nor on the target."""
    for side in range(2):
        shared = min(one[side] + one[2], other[side] + other[2]) - max(one[side], other[side])
        if shared > SLACK * min(one[2], other[2]):
            return False
    return True


@njit_inner
def sort_members(words, n):
    """Insertion sort of words[:n], uint64: lists are short, and members come nearly sorted."""
    for i in range(1, n):
        word, j = words[i], i
        while j > 0 and words[j - 1] > word:
            words[j] = words[j - 1]
            j -= 1
        words[j] = word


@njit_inner
def _unpack(word, strand):
    """Diagonal, query position, target position of a word of Members, on a strand (1 or -1)."""
    diagonal = np.int64(word >> U31) - DIAGONAL_BIAS
    query_pos = np.int64(word & LOW31)
    return diagonal, query_pos, (diagonal - query_pos if strand < 0 else diagonal + query_pos)


@njit_inner
def _support(by_query, low, high, candidate):
    """Members on diagonals low to high that lie at least k apart on both reads, taken greedily by query position.

    by_query : of Members.  candidate : Candidate.
    """
    support, strand, k = 0, np.int64(candidate.strand), np.int64(candidate.k)
    last_query = last_target = np.int64(-(1 << 40))
    for x in range(candidate.n):  # without a branch: there is no telling which members count
        diagonal, query_pos = np.int64(by_query[x] & LOW33) - DIAGONAL_BIAS, np.int64(by_query[x] >> U33)
        target_pos = diagonal + strand * query_pos
        apart = (query_pos - last_query >= k) & (abs(target_pos - last_target) >= k)
        counts = apart & (low <= diagonal) & (diagonal <= high)
        support += counts
        last_query = query_pos if counts else last_query
        last_target = target_pos if counts else last_target
    return support


@njit_inner
def _best_band(members, candidate, base, slope):
    """Best-supported band of diagonals among the unused members, which are sorted: support, first, last + 1.

    members : Members.  candidate : Candidate.  base, slope : diagonals of a band, and more for each base of the overlap.
    """
    words, used, n, strand = members.words, members.used, candidate.n, candidate.strand
    best = best_first = best_last = last = seen = 0
    for first in range(n):
        if used[first]:
            continue
        diagonal, query_pos, target_pos = _unpack(words[first], strand)
        lengths = candidate.lengths
        implied = implied_overlap(query_pos, target_pos, strand, lengths[0], lengths[1], candidate.seed_length)
        width = base + np.int64(slope * implied)
        last = max(last, first)
        while last < n and not used[last] and _unpack(words[last], strand)[0] - diagonal <= width:
            last += 1
        if last <= seen or last - first <= best:  # part of the band before, or too few to win
            continue
        seen = last
        support = _support(members.by_query, diagonal, _unpack(words[last - 1], strand)[0], candidate)
        if support > best:
            best, best_first, best_last = support, first, last
    return best, best_first, best_last


@njit_inner
def _extent(words, first, last, strand):
    """First and last query position, first and last target position of words [first, last) of Members, on a strand."""
    _, query_first, target_first = _unpack(words[first], strand)
    query_last, target_last = query_first, target_first
    for x in range(first + 1, last):
        _, query_pos, target_pos = _unpack(words[x], strand)
        query_first, query_last = min(query_first, query_pos), max(query_last, query_pos)
        target_first, target_last = min(target_first, target_pos), max(target_last, target_pos)
    return query_first, query_last, target_first, target_last


@njit_inner
def _leave_pieces(members, candidate, first):
    """Use up the members whose diagonals imply no overlap clear of the first one; return how many are left.

    members : Members.  candidate : Candidate.  first : as from `_lie`.
    """
    left, used = 0, members.used
    for x in range(candidate.n):  # all are written: LLVM 22 stores wrong flags where it writes some, 8 members at a time
        _, query_pos, target_pos = _unpack(members.words[x], candidate.strand)
        counts = (not used[x]) & _clear(first, _lie(query_pos, target_pos, candidate))
        used[x] = not counts
        left += counts
    return left


@njit_inner
def choose(members, candidate, params, out, n_out):
    """Append up to params.ranks seeds of one candidate to out, and one of another piece if none is.

    members : Members.  candidate : Candidate.  params : SeedParams.  out : (any, N_COLUMNS) int32, of which n_out rows hold
    seeds; their number then is returned.
    """
    words, used, n, strand = members.words, members.used, candidate.n, candidate.strand
    used[:n] = False
    unused, begin, has_piece, first_lie = n, n_out, False, (np.int64(0), np.int64(0), np.int64(0))
    for rank in range(params.ranks + 1):
        if rank == params.ranks:
            if has_piece or n_out == begin:
                break
            unused = _leave_pieces(members, candidate, first_lie)
        if unused < params.min_support:
            break
        support, first, last = _best_band(members, candidate, params.band, params.band_slope)
        if support < params.min_support:
            break
        span = _extent(words, first, last, strand)
        _, query_pos, target_pos = _unpack(words[(first + last) // 2], strand)
        lie = _lie(query_pos, target_pos, candidate)
        implied = lie[2]
        if implied >= params.min_overlap:
            if n_out == begin:
                first_lie = lie
            has_piece |= _clear(first_lie, lie)
            row = out[n_out]
            n_out += 1
            row[0], row[1], row[2], row[3], row[4] = candidate.query, candidate.target, strand, query_pos, target_pos
            row[5], row[6], row[7], row[8] = rank, support, candidate.n_shared, implied
            row[9], row[10], row[11], row[12] = span
        width = params.band + np.int64(params.band_slope * implied)
        low = _unpack(words[first], strand)[0] - width
        high = _unpack(words[last - 1], strand)[0] + width
        for x in range(n):
            if not used[x] and low <= _unpack(words[x], strand)[0] <= high:
                used[x] = True
                unused -= 1
    return n_out


@njit_inner
def _turned(word):
    """A word of Members.words as one of Members.by_query."""
    return word << U33 | word >> U31


@njit_inner
def list_by_query(members, n, query_length, heads):
    """Fill members.by_query from the first n of members.words, which are sorted.

    Many come by parts of the query first: so k-mers of one stretch of equal bases, on one diagonal, stay in order.
    query_length : bases.  heads : (PARTS + 1,) int64, scratch.
    """
    words, by_query, to_part = members.words, members.by_query, U0
    if n > FEW:
        while U(query_length) >> to_part >= U(PARTS):
            to_part += U1
        heads[:] = 0
        for x in range(U(n)):
            heads[((words[x] & LOW31) >> to_part) + U1] += 1
        for part in range(U(PARTS)):
            heads[part + U1] += heads[part]
        for x in range(U(n)):
            part = (words[x] & LOW31) >> to_part
            by_query[U(heads[part])] = _turned(words[x])
            heads[part] += 1
    else:
        for x in range(U(n)):
            by_query[x] = _turned(words[x])
    sort_members(by_query, n)


@njit_inner
def _may_agree(keys, begin, end, n, width, layout):
    """Whether any n of keys[begin:end], of one candidate, may lie on a band of `width` diagonals: most candidates have none.

    keys : as in Products.  begin, end : uint64.  layout : KeyLayout.
    """
    to_diagonal, more = U(layout.number_bits), U(n - 1)
    apart = (U(width) >> U(layout.diagonal_shift)) + U1  # where keys hold only the high bits of diagonals
    for x in range(begin + more, end):
        if (keys[x] >> to_diagonal) - (keys[x - more] >> to_diagonal) <= apart:
            return True
    return False


@njit
def choose_in_blocks(products, begin, end, read_lengths, k, seed_length, params, out):
    """Seeds of the candidates in blocks [begin, end).

    products : Products.  read_lengths : (n_reads,) int32.  k, seed_length : of the matrix.  params : SeedParams.
    out : (any, N_COLUMNS) int32, filled.

    Return the number of rows of `out`, of candidates seen and of those that gave no seed.
    """
    keys, payload, bounds, first_query, layout = products
    pair_shift = U(layout.number_bits + layout.diagonal_bits)
    number_mask = (U1 << U(layout.number_bits)) - U1
    target_mask = (U1 << U(layout.target_bits)) - U1
    words, by_query = np.empty(MAX_MEMBERS, np.uint64), np.empty(MAX_MEMBERS, np.uint64)
    members, heads = Members(words, by_query, np.zeros(MAX_MEMBERS, np.bool_)), np.empty(PARTS + 1, np.int64)
    n_out = n_candidates = n_weak = np.int64(0)
    for b in range(begin, end):
        i, first, last = U(bounds[b]), U(bounds[b]), U(bounds[b + 1])
        while i < last:
            pair, j = keys[i] >> pair_shift, i + U1
            while j < last and keys[j] >> pair_shift == pair:
                j += U1
            n_candidates += 1
            target = np.int64((pair >> U1) & target_mask)
            query = first_query[b] + np.int64(pair >> U(layout.target_bits + 1))
            lengths = (np.int64(read_lengths[query]), np.int64(read_lengths[target]))
            widest = params.band + np.int64(params.band_slope * min(lengths))
            if not _may_agree(keys, i, j, params.min_support, widest, layout):
                n_weak += 1
                i = j
                continue
            strand = 1 - 2 * np.int64(pair & U1)
            n = np.int64(0)
            for x in range(i, j, (j - i + U(MAX_MEMBERS - 1)) // U(MAX_MEMBERS)):
                prefetch(payload, first + (keys[min(x + U(AHEAD), last - U1)] & number_mask))
                places = payload[first + (keys[x] & number_mask)]
                query_pos, target_pos = np.int64(places >> U32), np.int64(places & U((1 << 32) - 1))
                diagonal = target_pos + query_pos if strand < 0 else target_pos - query_pos
                words[n] = (U(diagonal + DIAGONAL_BIAS) << U31) | U(query_pos)
                n += 1
            before = n_out
            candidate = Candidate(query, target, strand, lengths, k, seed_length, np.int64(j - i), n)
            sort_members(words, n)
            list_by_query(members, n, lengths[0], heads)
            n_out = choose(members, candidate, params, out, n_out)
            n_weak += n_out == before
            i = j
    return n_out, n_candidates, n_weak


def choose_seeds(products: Products, matrix: KmerMatrix, reads: ReadSet, params: SeedParams, threads: int = 1):
    """Seeds of all candidates in `products`, and how many candidates there were and were dropped.

    Returns
    -------
    list of Seeds, to be joined; number of candidates (query, target, strand); number of those dropped for fewer than
    `params.min_support` k-mers that agree, or an implied overlap shorter than `params.min_overlap`.
    """

    def choose(piece):
        size = int(products.bounds[piece[1]] - products.bounds[piece[0]])
        out = np.empty((size // params.min_support, N_COLUMNS), np.int32)  # every seed uses up so many k-mers
        n, n_candidates, n_weak = choose_in_blocks(
            products, *piece, reads.lengths, matrix.k, matrix.seed_length, params, out
        )  # fmt: skip
        return seeds_from_columns(out[:n].T.copy(), matrix.seed_length), n_candidates, n_weak

    parts = map_threads(choose, even_ranges(len(products.first_query), 4 * threads), threads)
    return [part[0] for part in parts], sum(part[1] for part in parts), sum(part[2] for part in parts)


def seeds_from_columns(columns: np.ndarray, seed_length: int) -> Seeds:
    """Seeds from the first columns of Seeds, (N_COLUMNS, n) int32."""
    names = [f.name for f in fields(Seeds)][:N_COLUMNS]
    types = {"strand": np.int8, "rank": np.int8}
    typed = {name: column.astype(types.get(name, np.int32), copy=False) for name, column in zip(names, columns, strict=True)}
    return Seeds(**typed, copies=np.ones(columns.shape[1], np.float32), length=seed_length)
