"""Stage 5: products of A·Aᵀ -> seeds: which shared k-mers of a pair of reads support each other.

Every shared k-mer lies on a diagonal of the pair: target position minus query position, or their sum where the strands are
opposite.  K-mers of one overlap lie within a band of diagonals.  Its width grows with the overlap, since insertions and
deletions add up.  The support of a band is the number of its k-mers at least k apart on both reads.  The best-supported
band gives the first seed of a candidate (its k-mer on the middle diagonal), and the next best band the second.  Reads of a
circle overlap at both ends (pieces.py). Where the second seed is not such a second overlap, the best band that is one gives
a third seed.
"""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from bellapy.compute.jit import njit
from bellapy.compute.threads import even_ranges, map_threads
from bellapy.jobs.overlap.candidates import Products
from bellapy.jobs.overlap.pieces import SLACK
from bellapy.params import SeedParams
from bellapy.records import KmerMatrix, ReadSet, Seeds

U = np.uint64
U1, U31, U32, U33 = U(1), U(31), U(32), U(33)
DIAGONAL_BIAS = 1 << 31  # keeps diagonals positive
LOW31, LOW33 = U((1 << 31) - 1), U((1 << 33) - 1)
MAX_MEMBERS = 256  # shared k-mers of one candidate that are looked at, evenly spread over all of them
N_COLUMNS = 13


@njit
def implied_overlap(query_pos, target_pos, strand, query_length, target_length, seed_length):
    """Bases of the overlap that runs along a seed's diagonal to the ends of the reads."""
    if strand < 0:
        target_pos = target_length - seed_length - target_pos
    right = min(query_length - query_pos, target_length - target_pos) - seed_length
    return min(query_pos, target_pos) + seed_length + right


@njit
def _lie(query_pos, target_pos, strand, lengths, seed_length):
    """Query and target start of the overlap that runs along a seed's diagonal, as the query runs, and its length."""
    implied = implied_overlap(query_pos, target_pos, strand, lengths[0], lengths[1], seed_length)
    if strand < 0:
        target_pos = lengths[1] - seed_length - target_pos
    left = min(query_pos, target_pos)
    return query_pos - left, target_pos - left, np.int64(implied)


@njit
def _clear(one, other):
    """Whether two overlaps, as from `_lie`, share hardly any bases, neither on the query nor on the target."""
    for side in range(2):
        shared = min(one[side] + one[2], other[side] + other[2]) - max(one[side], other[side])
        if shared > SLACK * min(one[2], other[2]):
            return False
    return True


@njit
def _sort(words, n):
    """Insertion sort of words[:n]: lists are short, and members come nearly sorted."""
    for i in range(1, n):
        word, j = words[i], i
        while j > 0 and words[j - 1] > word:
            words[j] = words[j - 1]
            j -= 1
        words[j] = word


@njit
def _unpack(word, strand):
    """Diagonal, query position, target position of a member [diagonal + bias | query position]."""
    diagonal = np.int64(word >> U31) - DIAGONAL_BIAS
    query_pos = np.int64(word & LOW31)
    return diagonal, query_pos, (diagonal - query_pos if strand < 0 else diagonal + query_pos)


@njit
def _support(by_query, n, low, high, strand, k):
    """Members on diagonals low to high that lie at least k apart on both reads, taken greedily by query position.

    by_query : (n,) uint64, [query position | diagonal + bias], sorted.
    """
    support = 0
    last_query = last_target = np.int64(-(1 << 40))
    for x in range(n):
        diagonal = np.int64(by_query[x] & LOW33) - DIAGONAL_BIAS
        if low <= diagonal <= high:
            query_pos = np.int64(by_query[x] >> U33)
            target_pos = diagonal - query_pos if strand < 0 else diagonal + query_pos
            if query_pos - last_query >= k and abs(target_pos - last_target) >= k:
                support += 1
                last_query, last_target = query_pos, target_pos
    return support


@njit
def _best_band(members, by_query, n, used, strand, lengths, k, seed_length, base, slope):
    """Best-supported band of diagonals among the unused members, which are sorted: support, first, last + 1."""
    best = best_first = best_last = last = seen = 0
    for first in range(n):
        if used[first]:
            continue
        diagonal, query_pos, target_pos = _unpack(members[first], strand)
        implied = implied_overlap(query_pos, target_pos, strand, lengths[0], lengths[1], seed_length)
        width = base + np.int64(slope * implied)
        last = max(last, first)
        while last < n and not used[last] and _unpack(members[last], strand)[0] - diagonal <= width:
            last += 1
        if last <= seen or last - first <= best:  # part of the band before, or too few to win
            continue
        seen = last
        support = _support(by_query, n, diagonal, _unpack(members[last - 1], strand)[0], strand, k)
        if support > best:
            best, best_first, best_last = support, first, last
    return best, best_first, best_last


@njit
def _extent(members, first, last, strand):
    """First and last query position, first and last target position of members [first, last)."""
    _, query_first, target_first = _unpack(members[first], strand)
    query_last, target_last = query_first, target_first
    for x in range(first + 1, last):
        _, query_pos, target_pos = _unpack(members[x], strand)
        query_first, query_last = min(query_first, query_pos), max(query_last, query_pos)
        target_first, target_last = min(target_first, target_pos), max(target_last, target_pos)
    return query_first, query_last, target_first, target_last


@njit
def _leave_pieces(members, n, used, first, strand, lengths, seed_length):
    """Use up the members whose diagonals imply no overlap clear of the first one; return how many are left."""
    left = 0
    for x in range(n):
        if not used[x]:
            _, query_pos, target_pos = _unpack(members[x], strand)
            used[x] = not _clear(first, _lie(query_pos, target_pos, strand, lengths, seed_length))
            left += not used[x]
    return left


@njit
def _choose(members, by_query, n, pair, strand, lengths, k, seed_length, params, n_shared, used, out, n_out):
    """Append up to params.ranks seeds of one candidate to out, and one of another piece if none is; sorts its members."""
    _sort(members, n)
    _sort(by_query, n)
    used[:n] = False
    unused, begin, has_piece, first_lie = n, n_out, False, (np.int64(0), np.int64(0), np.int64(0))
    for rank in range(params.ranks + 1):
        if rank == params.ranks:
            if has_piece or n_out == begin:
                break
            unused = _leave_pieces(members, n, used, first_lie, strand, lengths, seed_length)
        if unused < params.min_support:
            break
        support, first, last = _best_band(
            members, by_query, n, used, strand, lengths, k, seed_length, params.band, params.band_slope
        )
        if support < params.min_support:
            break
        span = _extent(members, first, last, strand)
        _, query_pos, target_pos = _unpack(members[(first + last) // 2], strand)
        lie = _lie(query_pos, target_pos, strand, lengths, seed_length)
        implied = lie[2]
        if implied >= params.min_overlap:
            if n_out == begin:
                first_lie = lie
            has_piece |= _clear(first_lie, lie)
            row = out[n_out]
            n_out += 1
            row[0], row[1], row[2], row[3], row[4] = pair[0], pair[1], strand, query_pos, target_pos
            row[5], row[6], row[7], row[8] = rank, support, n_shared, implied
            row[9], row[10], row[11], row[12] = span
        width = params.band + np.int64(params.band_slope * implied)
        low = _unpack(members[first], strand)[0] - width
        high = _unpack(members[last - 1], strand)[0] + width
        for x in range(n):
            if not used[x] and low <= _unpack(members[x], strand)[0] <= high:
                used[x] = True
                unused -= 1
    return n_out


@njit
def choose_in_blocks(keys, payload, bounds, first_query, layout, begin, end, read_lengths, k, seed_length, params, out):
    """Seeds of the candidates in blocks [begin, end).

    Return the number of rows of `out`, of candidates seen and of those with too few shared k-mers.
    """
    pair_shift = U(layout.number_bits + layout.diagonal_bits)
    number_mask = (U1 << U(layout.number_bits)) - U1
    target_mask = (U1 << U(layout.target_bits)) - U1
    members, by_query = np.empty(MAX_MEMBERS, np.uint64), np.empty(MAX_MEMBERS, np.uint64)
    used = np.zeros(MAX_MEMBERS, np.bool_)
    n_out = n_candidates = n_weak = 0
    for b in range(begin, end):
        i = bounds[b]
        while i < bounds[b + 1]:
            candidate, j = keys[i] >> pair_shift, i + 1
            while j < bounds[b + 1] and keys[j] >> pair_shift == candidate:
                j += 1
            n_candidates += 1
            if j - i < params.min_support:
                n_weak += 1
                i = j
                continue
            strand = 1 - 2 * np.int64(candidate & U1)
            target = np.int64((candidate >> U1) & target_mask)
            query = first_query[b] + np.int64(candidate >> U(layout.target_bits + 1))
            n = 0
            for x in range(i, j, (j - i + MAX_MEMBERS - 1) // MAX_MEMBERS):
                places = payload[bounds[b] + np.int64(keys[x] & number_mask)]
                query_pos, target_pos = np.int64(places >> U32), np.int64(places & U((1 << 32) - 1))
                diagonal = target_pos + query_pos if strand < 0 else target_pos - query_pos
                members[n] = (U(diagonal + DIAGONAL_BIAS) << U31) | U(query_pos)
                by_query[n] = (U(query_pos) << U33) | U(diagonal + DIAGONAL_BIAS)
                n += 1
            lengths = (np.int64(read_lengths[query]), np.int64(read_lengths[target]))
            before = n_out
            n_out = _choose(
                members, by_query, n, (query, target), strand, lengths, k, seed_length, params, j - i, used, out, n_out
            )
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
            products.keys, products.payload, products.bounds, products.first_query, products.layout, *piece,
            reads.lengths, matrix.k, matrix.seed_length, params, out,
        )  # fmt: skip
        return seeds_from_rows(out[:n], matrix.seed_length), n_candidates, n_weak

    parts = map_threads(choose, even_ranges(len(products.first_query), 4 * threads), threads)
    return [part[0] for part in parts], sum(part[1] for part in parts), sum(part[2] for part in parts)


def seed_bytes(params: SeedParams) -> int:
    """Bytes that `choose_seeds` needs at most for each product: the table, and the columns made from it."""
    return 2 * N_COLUMNS * np.dtype(np.int32).itemsize // params.min_support


def seeds_from_rows(rows: np.ndarray, seed_length: int) -> Seeds:
    """Seeds from the (n, N_COLUMNS) int32 table that the kernel writes."""
    query_id, target_id, strand, query_pos, target_pos, rank, *others = (np.ascontiguousarray(c) for c in rows.T)
    return Seeds(
        query_id, target_id, strand.astype(np.int8), query_pos, target_pos, rank.astype(np.int8), *others,
        np.ones(len(rows), np.float32), seed_length,
    )  # fmt: skip


def join_seeds(parts: list[Seeds], seed_length: int, threads: int = 1) -> Seeds:
    """Seeds of consecutive groups of queries as one record."""
    if not parts:
        return seeds_from_rows(np.empty((0, N_COLUMNS), np.int32), seed_length)
    names = [f.name for f in fields(Seeds) if f.name != "length"]
    columns = map_threads(lambda name: np.concatenate([getattr(part, name) for part in parts]), names, threads)
    return Seeds(*columns, length=seed_length)


def first_of_candidate(seeds: Seeds) -> np.ndarray:
    """Mask of the first row of every candidate (query, target, strand)."""
    return starts_of_candidates(seeds.query_id, seeds.target_id, seeds.strand)


def starts_of_candidates(query_id: np.ndarray, target_id: np.ndarray, strand: np.ndarray) -> np.ndarray:
    """Mask of the rows that differ from the row before, the first one included."""
    first = np.ones(len(query_id), bool)
    first[1:] = query_id[1:] != query_id[:-1]
    first[1:] |= (target_id[1:] != target_id[:-1]) | (strand[1:] != strand[:-1])
    return first


def has_any(seeds: Seeds, mask: np.ndarray) -> np.ndarray:
    """Whether any of its seeds is in the mask, for every candidate in order."""
    candidate = np.cumsum(first_of_candidate(seeds)) - 1
    return np.bincount(candidate, mask, minlength=int(candidate[-1]) + 1 if len(candidate) else 0) > 0
