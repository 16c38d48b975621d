"""What the CPU does for GPUs, outside the GIL and beside the threads of other GPUs: pieces of flanks, reads as bit planes.

Pieces are consecutive, so that each needs few of the reads; in a piece the longest flanks come first.

Bit planes let the register kernel compare 16 bases at a time.  Word (b, i) holds one bit for each of the bases 32 b ..
32 b + 31, the first one in the lowest bit: for i = 0 and 1 the two bits of the code, for i = 2 whether the base is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bellapy.jit import njit, njit_entry, njit_inner
from bellapy.sequence import UNKNOWN
from bellapy.xdrop.flanks import Flanks

SAMPLE = 1 << 14  # flanks by which the work is estimated
STEP = 16  # bases: flanks count as equally long within it
LENGTHS = 1 << 16  # steps that are told apart
BASES = 32  # of a word of the planes
BLOCK = 1 << 16  # bases that are uploaded together


def cut_pieces(flanks: Flanks, n: int, most: int, end_of_bases: int) -> list[tuple[int, int]]:
    """First row and end of about `n` pieces of equal work, none of more than `most` flanks, in the order of the reads.

    That order brings left and right flanks of the same reads together.  `end_of_bases` is that of `ReadSet.both_ways`.  All
    flanks have windows of like width, so cells grow with the length of the shorter sequence.
    """
    every = max(1, len(flanks) // SAMPLE)
    lengths = np.minimum(flanks.query_length[::every], flanks.target_length[::every])
    total = np.cumsum(lengths + 1)
    inner = every * np.searchsorted(total, np.linspace(0, total[-1] if len(total) else 0, n + 1)[1:-1])
    edges = [0, *inner.tolist(), len(flanks)]
    spans = zip(edges, edges[1:], strict=False)
    pieces = [(at, min(at + most, end)) for begin, end in spans for at in range(begin, end, most)]
    return sorted(pieces, key=lambda piece: min(flanks.query_at[piece[0]], end_of_bases - flanks.query_at[piece[0]]))


@njit_inner
def _rank(query_length, target_length):
    """0 for the longest; LENGTHS for flanks with nothing to extend."""
    shorter = min(query_length, target_length)
    return LENGTHS - 1 - min(shorter // STEP, LENGTHS - 1) if shorter > 0 else LENGTHS


@njit
def list_piece(query_at, query_length, target_at, target_length, complement, begin, end, rows, table):
    """The flanks of a piece that are not empty, longest first: their rows, and their `Flanks.table`; return their number.

    rows : (at least end - begin,) int32, filled from the front; so is `table`, int64.
    """
    places = np.zeros(LENGTHS + 2, np.int64)
    for i in range(begin, end):
        places[_rank(query_length[i], target_length[i]) + 1] += 1
    for rank in range(LENGTHS):
        places[rank + 1] += places[rank]
    n = places[LENGTHS]
    for i in range(begin, end):
        rank = _rank(query_length[i], target_length[i])
        if rank < LENGTHS:
            at = places[rank]
            places[rank] += 1
            rows[at] = i
            table[at, 0], table[at, 1] = query_at[i], query_length[i]
            table[at, 2], table[at, 3], table[at, 4] = target_at[i], target_length[i], 3 * complement[i]
    return n


@njit_entry
def put_back(rows, found, results):
    """Results of a piece into the rows of all."""
    for i in range(len(rows)):
        for j in range(3):
            results[rows[i], j] = found[i, j]


@njit
def _pack(eights, planes):
    """Words of the planes from codes, eight of which are a number of `eights`."""
    ones, gather, top = np.uint64(0x0101010101010101), np.uint64(0x0102040810204080), np.uint64(56)
    for block in range(len(planes)):
        for i in range(3):
            word = np.uint64(0)
            for j in range(4):
                bits = eights[4 * block + j] >> np.uint64(i) & ones
                word |= (bits * gather >> top) << np.uint64(8 * j)
            planes[block, i] = word


def pack_planes(codes: np.ndarray, planes: np.ndarray) -> None:
    """Bit planes of uint8 codes into `planes`, (at least len(codes) / BASES, 3) uint32; unknown bases fill the last word."""
    whole = len(codes) // BASES
    with np.errstate(over="ignore"):
        _pack(codes[: BASES * whole].view(np.uint64), planes[:whole])
        if rest := len(codes) - BASES * whole:
            last = np.full(BASES, UNKNOWN, np.uint8)
            last[:rest] = codes[BASES * whole :]
            _pack(last.view(np.uint64), planes[whole : whole + 1])


@njit_entry
def mark_blocks(table, n_bases, needed):
    """Set `needed`, one flag for every block, where the flanks of a `Flanks.table` have bases."""
    for i in range(len(table)):
        for side in range(2):
            begin, length = table[i, 2 * side], table[i, 2 * side + 1]
            if begin >= n_bases:
                begin = 2 * n_bases - begin - length
            for block in range(begin // BLOCK, (begin + length - 1) // BLOCK + 1):
                needed[block] = True


def stretches(flags: np.ndarray, most: int) -> Iterator[tuple[int, int]]:
    """Beginnings and ends of the runs of set flags, cut after `most` flags."""
    edges = np.flatnonzero(np.diff(flags.astype(np.int8), prepend=0, append=0))
    for begin, end in edges.reshape(-1, 2).tolist():
        for at in range(begin, end, most):
            yield at, min(at + most, end)
