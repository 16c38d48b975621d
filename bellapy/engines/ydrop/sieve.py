"""Seed hits that make no high-scoring segment, told 32 at a time: one hit in each lane.

Nearly all hits are chance.  Their extension ends within a few dozen bases on either side, and scores little.  So the first
LEFT and RIGHT bases of 32 extensions are computed side by side, from bases packed in two bits.  What ends there, and scores
too little, is done with.  All other hits are left to diagonal.py, and so are those near unknown bases.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import types

from bellapy.compute.jit import intrinsic, njit, njit_inner
from bellapy.compute.threads import even_ranges, map_threads
from bellapy.engines.ydrop.row import LANES, LONG_VECTORS, VECTORS, Emitter, llvm, make_lookup

BASES = 24  # of one word: eight in each of three planes
LEFT_WORDS, RIGHT_WORDS = 4, 3
LEFT, RIGHT = LEFT_WORDS * BASES, RIGHT_WORDS * BASES
WORDS = LEFT_WORDS + RIGHT_WORDS
MARGIN = 128  # packed bases before the first one, and behind the last one
ROUGH_SHIFT = 7
"""Bits of places that share a mark."""
PIECES = 64  # of a genome, for threads
MOST_SPAN = 64  # of a seed: what its extension looks at lies within one mark to either side
MOST_DROP, MOST_SCORE = 15_000, ((1 << 15) - 1) // (2 * LEFT)
"""Of scores up to here, differences of two sums over LEFT bases fit 16 bits."""


class Packed(NamedTuple):
    """bases : uint8, four to a byte, with MARGIN bases before and behind.  rough : (n >> ROUGH_SHIFT + 2,) bool, whether an
    unknown base is among the places with a mark, or with the marks beside it.
    """

    bases: np.ndarray
    rough: np.ndarray


def can_sieve(matrix: np.ndarray, xdrop: int, span: int) -> bool:
    """Whether these scores and seeds fit."""
    return VECTORS and xdrop < MOST_DROP and int(np.abs(matrix).max()) <= MOST_SCORE and span <= MOST_SPAN


def sieve_table(matrix: np.ndarray) -> np.ndarray:
    """The score matrix by 4 query + target, twice, (LANES,) int16."""
    return np.tile(np.clip(matrix[:4, :4], -MOST_SCORE, MOST_SCORE).T.ravel(), 2).astype(np.int16)


def pack(codes: np.ndarray, threads: int = 1) -> Packed:
    """Bases for the sieve; codes : (n,) uint8."""
    bases = np.zeros((len(codes) + 2 * MARGIN >> 2) + 8, np.uint8)
    marked = np.zeros((len(codes) >> ROUGH_SHIFT) + 2, np.bool_)
    marks = even_ranges((len(codes) >> ROUGH_SHIFT) + 1, PIECES)  # whose bases share no byte with those of others

    def put(some: tuple[int, int]) -> None:
        _pack(codes, some[0] << ROUGH_SHIFT, min(some[1] << ROUGH_SHIFT, len(codes)), bases, marked)

    map_threads(put, marks, threads)
    rough = marked.copy()
    rough[1:] |= marked[:-1]
    rough[:-1] |= marked[1:]
    return Packed(bases, rough)


@njit
def _pack(codes, begin, end, bases, marked):
    for place in range(begin, end):
        code = codes[place]
        marked[place >> ROUGH_SHIFT] |= code > 3
        at = place + MARGIN
        bases[at >> 2] |= np.uint8((code & 3) << 2 * (at & 3))


def _load(typing_context, array, byte):
    """The 64 bits of a uint8 array from a byte on."""

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.load(builder.bitcast(builder.gep(data, [arguments[1]]), llvm.word.as_pointer()), align=1)

    return types.uint64(array, types.int64), generate


def _planes(on: Emitter, row):
    """The three planes of a row of words, each with eight bases of every hit."""
    planes = ir.VectorType(llvm.word, LANES)
    words = on.builder.load(on.place(0, on.builder.mul(row, llvm.word(LANES)), planes), align=8)
    for shift in (0, 16, 32):
        moved = on.builder.lshr(words, ir.Constant(planes, [shift] * LANES))
        yield on.builder.trunc(moved, llvm.cells)


def _side(on: Emitter, look_up, rows: range, leftward: bool):
    """Best scores of an extension over some rows of words, and how far they have fallen below them at most.

    Both are taken after every second base.  So the best scores may be higher by one pair, and falls may be deeper.  Where a
    score rises again after a fall that ends the extension, the best one is too high.
    """
    builder = on.builder

    def all_of(value: int):
        return ir.Constant(llvm.cells, [value] * LANES)

    run = best = fall = all_of(0)
    for row in rows:
        pairs = list(zip(_planes(on, llvm.word(row)), _planes(on, llvm.word(WORDS + row)), strict=True))
        for target, query in pairs[::-1] if leftward else pairs:
            even = builder.or_(
                builder.and_(target, all_of(0x3333)), builder.shl(builder.and_(query, all_of(0x3333)), all_of(2))
            )  # fmt: skip
            odd = builder.or_(
                builder.and_(builder.lshr(target, all_of(2)), all_of(0x3333)), builder.and_(query, all_of(0xCCCC))
            )  # fmt: skip
            for number, base in enumerate(range(7, -1, -1) if leftward else range(8)):
                index = builder.lshr((even, odd)[base & 1], all_of(base >> 1 << 2))
                if not LONG_VECTORS:  # these look at five bits, and the table holds its 16 values twice
                    index = builder.and_(index, all_of(15))
                run = builder.add(run, look_up(index))
                if number % 2:
                    fall = on.most(fall, builder.sub(best, run))
                    best = on.most(best, run)
    return best, fall


def _sieve(typing_context, words, table, xdrop, least):
    """Which of LANES hits may score `least`, a bit for each.

    words : (2 WORDS * LANES,) uint64: target, then query; of each the words to the left of the seed's end, then those to
    its right.
    """

    def generate(context, builder, signature, arguments):
        on = Emitter(context, builder, signature, arguments)
        table = on.load(1, llvm.word(0))
        look_up = make_lookup(on, table)
        left, left_fall = _side(on, look_up, range(LEFT_WORDS), True)
        right, right_fall = _side(on, look_up, range(LEFT_WORDS, WORDS), False)
        pair = on.call(f"llvm.vector.reduce.smax.v{LANES}i16", llvm.cell, table)
        least = builder.sub(builder.trunc(arguments[3], llvm.cell), builder.shl(pair, llvm.cell(1)))
        enough = builder.icmp_signed(">=", builder.add(left, right), on.splat(least))
        xdrop = on.splat(builder.trunc(arguments[2], llvm.cell))
        goes_on = (builder.icmp_signed("<=", fall, xdrop) for fall in (left_fall, right_fall))
        return builder.bitcast(builder.or_(enough, builder.or_(*goes_on)), ir.IntType(LANES))

    return types.uint32(words, table, types.int64, types.int64), generate


_load_word = intrinsic(_load) if VECTORS else njit_inner(lambda array, byte: np.uint64(0))
_sieve_words = intrinsic(_sieve) if VECTORS else njit_inner(lambda words, table, xdrop, least: np.uint32(0))


@njit_inner
def _put_words(packed, end, words, at, lane):
    """The words of one hit around the end of its seed."""
    place = end + MARGIN
    byte, shift = place >> 2, np.uint64(2 * (place & 3))
    for row in range(WORDS):
        moved = (row - LEFT_WORDS) if row >= LEFT_WORDS else -row - 1
        words[np.uint64((at + row) * LANES + lane)] = _load_word(packed.bases, byte + moved * (BASES >> 2)) >> shift


@njit_inner
def sieve(target, query, hits, begin, n, rule, words):
    """Which of n <= LANES hits from row `begin` of `hits` on, (m, 2) int64 target and query places, have to be extended: a
    bit for each.

    target, query : Packed.  rule : has sieve_table, span, xdrop, least.  words : (2 WORDS * LANES,) uint64, scratch.
    """
    sure = np.uint32(0)
    for lane in range(n):
        hit = np.uint64(begin + lane)  # without a sign: Numba would look at each place whether it counts from the end
        t, q = hits[hit, 0], hits[hit, 1]
        _put_words(target, t + rule.span, words, 0, lane)
        _put_words(query, q + rule.span, words, WORDS, lane)
        rough = target.rough[np.uint64(t >> ROUGH_SHIFT)] | query.rough[np.uint64(q >> ROUGH_SHIFT)]
        sure |= np.uint32(rough) << np.uint32(lane)
    some = _sieve_words(words, rule.sieve_table, rule.xdrop, rule.least) | sure
    return some & np.uint32((np.uint64(1) << np.uint64(n)) - np.uint64(1))
