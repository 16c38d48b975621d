"""Ungapped extension along one diagonal, until the score falls by more than `xdrop` below the best.

Where the processor has vectors of 32 cells of 16 bits (row.py), so many pairs of bases are scored, added up and compared at
a time; the rest, and all of it elsewhere, is done pair by pair.  Both give the same.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from bellapy.compute.jit import intrinsic, njit_inner
from bellapy.engines.ydrop.row import LANES, VECTORS, Emitter, llvm, make_lookup
from bellapy.engines.ydrop.rule import KINDS

STEPS = (1, 2, 4, 8, 16)
MOST_FALL = 1 << 14
"""Falls and scores of LANES pairs up to here fit 16 bits together."""


def use_vectors(matrix: np.ndarray, xdrop: int) -> bool:
    """Whether vector code can be used with these scores."""
    return VECTORS and xdrop < MOST_FALL and LANES * int(np.abs(matrix).max()) < MOST_FALL


def table_of(matrix: np.ndarray) -> np.ndarray:
    """The score matrix by 5 query + target as vector code wants it, (LANES,) int16; values beyond are of no use."""
    table = np.zeros(LANES, np.int16)
    table[: matrix.size] = np.clip(matrix, -MOST_FALL, MOST_FALL).T.ravel()
    return table


def _shifted(builder, vector, fill, by: int):
    """The vector moved up by some lanes; the lowest ones come from the highest of `fill`."""
    return builder.shuffle_vector(fill, vector, llvm.lanes(LANES - by))


def _emit(context, builder, signature, arguments, backward: bool):
    """Scores of LANES pairs from places t and q on (or down from them), their sums, the highest sum up to each of them."""
    on = Emitter(context, builder, signature, arguments)
    target, t, query, q, table, rest, xdrop = range(7)

    def codes(argument: int, place: int):
        at = builder.sub(arguments[place], llvm.word(LANES)) if backward else arguments[place]
        wide = builder.zext(builder.load(on.place(argument, at, llvm.bytes), align=1), llvm.cells)
        return builder.shuffle_vector(wide, wide, llvm.lanes(LANES - 1, -1)) if backward else wide

    q_codes = codes(query, q)
    index = builder.add(builder.mul(q_codes, ir.Constant(llvm.cells, [KINDS] * LANES)), codes(target, t))
    sums = make_lookup(on, on.load(table, llvm.word(0)))(index)
    nothing = ir.Constant(llvm.cells, [0] * LANES)
    for by in STEPS:
        sums = builder.add(sums, _shifted(builder, sums, nothing, by))
    sums = builder.add(sums, on.splat(builder.trunc(arguments[rest], llvm.cell)))
    highest = on.most(sums, nothing)
    for by in STEPS:
        highest = on.most(highest, _shifted(builder, highest, nothing, by))
    falls = builder.icmp_signed(">", builder.sub(highest, sums), on.splat(builder.trunc(arguments[xdrop], llvm.cell)))
    return [builder.sext(value, llvm.word) for value in _read_off(builder, sums, highest, falls)]


def _read_off(builder, sums, highest, falls):
    """The lane that falls too far first, LANES for none; the highest sum up to it, its first lane; the sum behind it."""
    bits = ir.IntType(LANES)
    is_zero = ir.IntType(1)(0)
    ended = builder.cttz(builder.bitcast(falls, bits), is_zero)
    last = builder.select(builder.icmp_unsigned("<", ended, bits(LANES)), ended, bits(LANES - 1))
    gain = builder.extract_element(highest, last)
    first = builder.insert_element(ir.Constant(llvm.cells, ir.Undefined), gain, ir.IntType(32)(0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    same = builder.icmp_signed("==", sums, builder.shuffle_vector(first, first, zeros))
    where = builder.cttz(builder.bitcast(same, bits), is_zero)
    return ended, gain, where, builder.sub(builder.extract_element(sums, last), gain)


def _typed(backward: bool):
    def kind(context, target, t, query, q, table, rest, xdrop):
        def generate(context, builder, signature, arguments):
            return cgutils.pack_array(builder, _emit(context, builder, signature, arguments, backward))

        i64 = types.int64
        return types.UniTuple(i64, 4)(target, i64, query, i64, table, i64, i64), generate

    return kind


def _plain(target, t, query, q, table, rest, xdrop):
    """Stands where there is no vector code, and is not called."""
    return 0, 0, 0, rest


_up = intrinsic(_typed(False)) if VECTORS else njit_inner(_plain)
_down = intrinsic(_typed(True)) if VECTORS else njit_inner(_plain)


@njit_inner
def extend_right(target, query, t, q, rule):
    """Bases and score of the best extension to the right, t and q being its first places; how many bases were seen.

    target, query : uint8 codes.  rule : has matrix, table, xdrop, vectors.
    """
    most = min(len(target) - t, len(query) - q)
    best = length = rest = n = np.int64(0)  # rest : the score less the best one
    if rule.vectors:
        while n + LANES <= most:
            ended, gain, where, rest = _up(target, t + n, query, q + n, rule.table, rest, rule.xdrop)
            if gain > 0:
                best, length = best + gain, n + where + 1
            if ended < LANES:
                return length, best, n + ended + 1
            n += LANES
    run = best + rest
    while n < most and run >= best - rule.xdrop:
        run += rule.matrix[target[t + n], query[q + n]]
        n += 1
        if run > best:
            best, length = run, n
    return length, best, n


@njit_inner
def extend_left(target, query, t, q, most, rule):
    """Bases and score of the best extension to the left of places t and q, which are not part of it, by `most` bases."""
    best = length = rest = n = np.int64(0)
    if rule.vectors:
        while n + LANES <= most:
            ended, gain, where, rest = _down(target, t - n, query, q - n, rule.table, rest, rule.xdrop)
            if gain > 0:
                best, length = best + gain, n + where + 1
            if ended < LANES:
                return length, best
            n += LANES
    run = best + rest
    while n < most and run >= best - rule.xdrop:
        n += 1
        run += rule.matrix[target[t - n], query[q - n]]
        if run > best:
            best, length = run, n
    return length, best
