"""One anti-diagonal: the recurrence of `rule` for n cells in sequence, in vectors of 32 cells where the processor has them.

LLVM finds vector code for everything but the score of a pair of bases: looking 16-bit numbers up in a table is one
instruction of AVX-512 and a few of AVX2, which it does not use by itself.  So `row` is written in LLVM's own language, and
thirty times as fast as `row_plain`, the same in Python, which stands in on other processors and for 32-bit cells.

Scores are *tilted*: those of anti-diagonal r are higher by r times the cost of one more base in a gap.  So a gap that goes
on keeps its score, and a pair of bases, which goes on by two anti-diagonals, gains twice that cost.  This saves two of a
dozen instructions.

Rows are places in one flat array; a cell stands at the same place x in all of them, x >= 1.

    work : (rows * capacity,) int16 or int32; for vector code, rows begin at multiples of 64 bytes.
    at : where the rows begin: H of r - 2, H of r, E, F of r - 1, F of r.  E and F stand where they come from.
    window : x, n, y, z: the first cell's place, the number of cells, and where `target` and `trace` begin.
    query : int16, five times the code of a cell's query base, at x.  target : int16, codes of target bases, against the
        direction of i: that of the first cell at y.
    table : (32,) of the cells' type, the score matrix by 5 query + target, tilted.
    low : a tilted score; cells below it are dead.
    costs : minus infinity, the cost of opening a gap, that of each of its bases.
    trace : uint32, from z on WAYS numbers for each vector of cells, the first of which begins at x - 1 & -LANES.  Each
        number has a bit for each cell (see FROM_GAP).  Only `row_traced` writes it.

All return the highest score.  Up to 32 places before x and after the n-th cell are written too.  Vector code computes cells
there like all others.  They come out dead, since no living cell leads to them.  The caller sees to it that this holds at the
ends of the sequences, and that places where no cell was computed before hold minus infinity.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import cached_property

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from bellapy.compute.jit import COMPILES, intrinsic, njit_inner
from bellapy.compute.processor import compiled_for

LANES = 32
WAYS = 4
FROM_GAP, FROM_F, E_EXTENDS, F_EXTENDS = range(WAYS)
"""Numbers of a vector's trace, a bit for each cell: whether its score came from a gap; if so, whether from F; whether the
gaps that leave it were open before it.
"""

FEATURES = compiled_for()[1].split(",") if COMPILES else ()
LONG_VECTORS = "+avx512bw" in FEATURES
VECTORS = LONG_VECTORS or "+avx2" in FEATURES
"""Whether there is vector code, and whether one instruction looks 32 cells up."""


@njit_inner
def row_plain(work, at, window, query, target, table, low, costs):
    """See the module."""
    two, h, e, old, new = at
    x, n, y, _ = window
    dead, opened, _ = costs
    most = dead
    for c in range(x, x + n):
        a, b = work[e + c], work[old + c - 1]
        v = max(work[two + c - 1] + table[query[c] + target[y + c - x]], a, b)
        v = v if v >= low else dead
        g = v - opened
        work[h + c], work[e + c], work[new + c] = v, max(g, a), max(g, b)
        most = max(most, v)
    work[h + x - 1] = work[h + x + n] = work[e + x + n] = work[new + x - 1] = dead
    return most


@njit_inner
def row_plain_traced(work, at, window, query, target, table, low, costs, trace):
    """See the module."""
    two, h, e, old, new = at
    x, n, y, z = window
    dead, opened, _ = costs
    most = dead
    begin = x - 1 & -LANES
    trace[z : z + WAYS * ((x + n - begin) // LANES + 1)] = 0
    for c in range(x, x + n):
        a, b = work[e + c], work[old + c - 1]
        p = work[two + c - 1] + table[query[c] + target[y + c - x]]
        v = max(p, a, b)
        at_ways, lane = z + (c - begin) // LANES * WAYS, np.uint32((c - begin) % LANES)
        trace[at_ways + FROM_GAP] |= np.uint32(max(a, b) > p) << lane
        trace[at_ways + FROM_F] |= np.uint32(b > a) << lane
        v = v if v >= low else dead
        g = v - opened
        trace[at_ways + E_EXTENDS] |= np.uint32(a >= g) << lane
        trace[at_ways + F_EXTENDS] |= np.uint32(b >= g) << lane
        work[h + c], work[e + c], work[new + c] = v, max(g, a), max(g, b)
        most = max(most, v)
    work[h + x - 1] = work[h + x + n] = work[e + x + n] = work[new + x - 1] = dead
    return most


class Types:
    """LLVM's types of vectors, made when something is compiled."""

    @cached_property
    def byte(self):
        return ir.IntType(8)

    @cached_property
    def cell(self):
        return ir.IntType(16)

    @cached_property
    def word(self):
        return ir.IntType(64)

    @cached_property
    def bytes(self):
        return ir.VectorType(self.byte, LANES)

    @cached_property
    def cells(self):
        return ir.VectorType(self.cell, LANES)

    def lanes(self, first: int, step: int = 1):
        """Numbers of the lanes that a vector is made of, of two vectors one behind the other."""
        return ir.Constant(ir.VectorType(ir.IntType(32), LANES), [first + step * lane for lane in range(LANES)])


llvm = Types()


class Emitter:
    """What the code of vectors needs again and again."""

    def __init__(self, context, builder, signature, arguments):
        self.context, self.builder, self.signature, self.arguments = context, builder, signature, arguments

    def place(self, argument: int, index, kind):
        data = self.context.make_array(self.signature.args[argument])(
            self.context, self.builder, self.arguments[argument]
        ).data
        return self.builder.bitcast(self.builder.gep(data, [index]), kind.as_pointer())

    def load(self, argument: int, index):
        return self.builder.load(self.place(argument, index, llvm.cells), align=2)

    def store(self, argument: int, index, value):
        self.builder.store(value, self.place(argument, index, value.type), align=2)

    def splat(self, value):
        first = self.builder.insert_element(ir.Constant(llvm.cells, ir.Undefined), value, ir.IntType(32)(0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        return self.builder.shuffle_vector(first, ir.Constant(llvm.cells, ir.Undefined), zeros)

    def most(self, a, b):
        return self.builder.select(self.builder.icmp_signed(">", a, b), a, b)

    def call(self, name: str, result, *values):
        kind = ir.FunctionType(result, [value.type for value in values])
        return self.builder.call(cgutils.get_or_insert_function(self.builder.module, kind, name), values)


def make_lookup(on: Emitter, table):
    """Code that looks cells up in a table of LANES: a function from indices to values, both vectors of cells.

    AVX2 looks up bytes, in tables of 16.  So there is a table for each half of the entries and of their bytes.
    """
    builder = on.builder
    if LONG_VECTORS:
        return lambda index: on.call("llvm.x86.avx512.permvar.hi.512", llvm.cells, table, index)
    half = LANES // 2
    parts = [
        builder.trunc(table, llvm.bytes),
        builder.trunc(builder.lshr(table, ir.Constant(llvm.cells, [8] * LANES)), llvm.bytes),
    ]
    lanes = [ir.Constant(ir.VectorType(ir.IntType(32), LANES), 2 * list(range(at, at + half))) for at in (0, half)]
    tables = [[builder.shuffle_vector(part, part, some) for some in lanes] for part in parts]

    def look_up(index):
        short = builder.trunc(index, llvm.bytes)
        is_low = builder.icmp_unsigned("<", short, ir.Constant(llvm.bytes, [half] * LANES))
        found = []
        for low, high in tables:
            both = (on.call("llvm.x86.avx2.pshuf.b", llvm.bytes, some, short) for some in (low, high))
            found.append(builder.zext(builder.select(is_low, *both), llvm.cells))
        return builder.or_(found[0], builder.shl(found[1], ir.Constant(llvm.cells, [8] * LANES)))

    return look_up


def _emit(context, builder, signature, arguments, traced: bool):
    """The loop over vectors, all of which begin at multiples of LANES.

    The cells of F of the place before are in the vector before, so each vector is kept for the next one: what was stored a
    moment ago is loaded as fast as it was stored, whole.  H of two anti-diagonals ago is loaded from the place before.
    """
    on = Emitter(context, builder, signature, arguments)
    work, query, target, table = 0, 3, 4, 5
    two, h, e, old, new = cgutils.unpack_tuple(builder, arguments[1], 5)
    x, n, y, z = cgutils.unpack_tuple(builder, arguments[2], 4)
    low = on.splat(builder.trunc(arguments[6], llvm.cell))
    minus_infinity, opened, _ = (builder.trunc(value, llvm.cell) for value in cgutils.unpack_tuple(builder, arguments[7], 3))
    dead, opened = on.splat(minus_infinity), on.splat(opened)
    look_up = make_lookup(on, on.load(table, llvm.word(0)))
    begin = builder.and_(builder.sub(x, llvm.word(1)), llvm.word(-LANES))
    count = builder.add(builder.udiv(builder.sub(builder.add(x, n), begin), llvm.word(LANES)), llvm.word(1))
    on.store(work, builder.add(h, builder.sub(begin, llvm.word(1))), minus_infinity)
    best, f_before = cgutils.alloca_once_value(builder, dead), cgutils.alloca_once_value(builder, dead)
    with cgutils.for_range(builder, count) as loop:
        c = builder.add(begin, builder.mul(loop.index, llvm.word(LANES)))
        f_here = on.load(work, builder.add(old, c))
        b = builder.shuffle_vector(builder.load(f_before), f_here, llvm.lanes(LANES - 1))
        builder.store(f_here, f_before)
        pair = builder.add(on.load(query, c), on.load(target, builder.add(y, builder.sub(c, x))))
        p = builder.add(on.load(work, builder.add(two, builder.sub(c, llvm.word(1)))), look_up(pair))
        a = on.load(work, builder.add(e, c))
        gap = on.most(a, b)
        v = on.most(p, gap)
        kept = builder.select(builder.icmp_signed(">=", v, low), v, dead)
        g = builder.sub(kept, opened)
        on.store(work, builder.add(h, c), kept)
        on.store(work, builder.add(e, c), on.most(g, a))
        on.store(work, builder.add(new, c), on.most(g, b))
        builder.store(on.most(builder.load(best), kept), best)
        if traced:
            ways = builder.add(z, builder.mul(loop.index, llvm.word(WAYS)))
            for way, larger, smaller, or_equal in (
                (FROM_GAP, gap, p, ""), (FROM_F, b, a, ""), (E_EXTENDS, a, g, "="), (F_EXTENDS, b, g, "="),
            ):  # fmt: skip
                bits = builder.bitcast(builder.icmp_signed(">" + or_equal, larger, smaller), ir.IntType(LANES))
                on.store(8, builder.add(ways, llvm.word(way)), bits)
    highest = on.call(f"llvm.vector.reduce.smax.v{LANES}i16", llvm.cell, builder.load(best))
    return builder.sext(highest, llvm.word)


@contextmanager
def _looking(builder, number, count, found):
    """A loop while vectors are left and no cell was found."""
    head, body, behind = (builder.append_basic_block(name) for name in ("looking.head", "looking.body", "looking.behind"))
    builder.branch(head)
    builder.position_at_end(head)
    is_left = builder.icmp_signed("<", builder.load(number), count)
    none = builder.icmp_unsigned("==", builder.load(found), found.type.pointee(0))
    builder.cbranch(builder.and_(is_left, none), body, behind)
    builder.position_at_end(body)
    yield
    builder.branch(head)
    builder.position_at_end(behind)


def _search(on: Emitter, row, count, comparison: str, value, last: bool):
    """The first or the last cell of a row of `count` vectors that compares with `value`, counted from place `row` on; -1 if
    there is none.

    It is in one of the first vectors that are looked at, as a rule.
    """
    builder, bits = on.builder, ir.IntType(LANES)
    number = cgutils.alloca_once_value(builder, llvm.word(0))
    found, at = cgutils.alloca_once_value(builder, bits(0)), cgutils.alloca_once_value(builder, llvm.word(0))
    with _looking(builder, number, count, found):
        vector = builder.load(number)
        builder.store(builder.add(vector, llvm.word(1)), number)
        vector = builder.sub(builder.sub(count, llvm.word(1)), vector) if last else vector
        builder.store(builder.mul(vector, llvm.word(LANES)), at)
        cells = on.load(0, builder.add(row, builder.load(at)))
        builder.store(builder.bitcast(builder.icmp_signed(comparison, cells, value), bits), found)
    lanes, is_zero = builder.load(found), ir.IntType(1)(0)
    if last:
        lane = builder.sub(bits(LANES - 1), builder.ctlz(lanes, is_zero))
    else:
        lane = builder.cttz(lanes, is_zero)
    cell = builder.add(builder.load(at), builder.zext(lane, llvm.word))
    return builder.select(builder.icmp_unsigned("!=", lanes, bits(0)), cell, llvm.word(-1))


def _typed(traced: bool):
    """Vector code for 16-bit cells, the plain loop for others."""
    places, window, prices = (types.UniTuple(types.int64, n) for n in (5, 4, 3))
    plain = row_plain_traced if traced else row_plain

    def kind(work, query, target, table, *trace):
        def generate(context, builder, signature, arguments):
            if VECTORS and work.dtype == types.int16:
                return _emit(context, builder, signature, arguments, traced)
            return context.compile_internal(builder, plain.py_func, signature, arguments)

        return types.int64(work, places, window, query, target, table, types.int64, prices, *trace), generate

    return kind


def _row(context, work, at, window, query, target, table, low, costs):
    return _typed(False)(work, query, target, table)


def _row_traced(context, work, at, window, query, target, table, low, costs, trace):
    return _typed(True)(work, query, target, table, trace)


FIRST_ALIVE, LAST_ALIVE, EQUAL = range(3)


def _plain_search(kind: int):
    """The loop over cells that `_searching` stands for."""

    def search(work, row, begin, end, value):
        for step in range(end - begin):
            x = end - 1 - step if kind == LAST_ALIVE else begin + step
            if (work[row + x] == value) == (kind == EQUAL):
                return x
        return -1

    return search


def _searching(kind: int):
    """A search among the cells at places `begin` to `end` of a row, at least one: for the first or the last one that is not
    `value`, minus infinity, or for the first one that is; -1 if there is none.

    Vector code looks at whole vectors: what lies beyond is dead.
    """
    plain = _plain_search(kind)

    def search(context, work, row, begin, end, value):
        def generate(context, builder, signature, arguments):
            if not (VECTORS and work.dtype == types.int16):
                return context.compile_internal(builder, plain, signature, arguments)
            on = Emitter(context, builder, signature, arguments)
            _, row_at, begin_at, end_at, wanted = arguments
            first = builder.and_(begin_at, llvm.word(-LANES))
            count = builder.udiv(builder.add(builder.sub(end_at, first), llvm.word(LANES - 1)), llvm.word(LANES))
            compared, comparison = on.splat(builder.trunc(wanted, llvm.cell)), "==" if kind == EQUAL else "!="
            found = _search(on, builder.add(row_at, first), count, comparison, compared, kind == LAST_ALIVE)
            return builder.select(builder.icmp_signed("<", found, llvm.word(0)), found, builder.add(found, first))

        return types.int64(work, *[types.int64] * 4), generate

    return intrinsic(search, plain)


row, row_traced = intrinsic(_row, row_plain), intrinsic(_row_traced, row_plain_traced)
first_alive, last_alive, first_equal = map(_searching, (FIRST_ALIVE, LAST_ALIVE, EQUAL))
