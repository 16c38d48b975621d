"""One anti-diagonal: the recurrence of `rule` for n cells in sequence, in vectors of 32 cells where the processor has them.

LLVM finds vector code for everything but the score of a pair of bases: looking 16-bit numbers up in a table is one
instruction of AVX-512 and a few of AVX2, which it does not use by itself.  So `row` is written in LLVM's own language, and
thirty times as fast as `row_plain`, the same in Python, which stands in on other processors and for 32-bit cells.

Rows are places in one flat array; a cell stands at the same place x in all of them, x >= 1.

    work : (rows * capacity,) int16 or int32; for vector code, rows begin at multiples of 64 bytes.
    at : where the rows begin: H of r - 2, H of r, E, F of r - 1, F of r.  E and F stand where they come from.
    window : x, n, y, z: the first cell's place, the number of cells, and where `target` and `trace` begin.
    query : int16, five times the code of a cell's query base, at x.  target : int16, codes of target bases, against the
        direction of i: that of the first cell at y.
    table : (32,) of the cells' type, the score matrix by 5 query + target.
    low : a score; cells below it are dead.
    costs : minus infinity, cost of a gap of one base, and of one base more.
    trace : uint8, from z on one for each place from x - 1 & -32 on (see FROM_PAIR); only `row_traced` writes it.

All return the highest score and the places of the first and the last living cell; -1 for these where there is none.  Up to
32 places before x and after the n-th cell are written too: H becomes minus infinity there, E and F become nothing that
matters.
"""

from __future__ import annotations

from contextlib import contextmanager

import numba
from llvmlite import ir
from numba.core import cgutils
from numba.core.codegen import get_host_cpu_features
from numba.core.types import int16, int64
from numba.core.types.containers import UniTuple
from numba.extending import intrinsic

from bellapy.compute.jit import njit_inner

LANES = 32
FROM_PAIR, FROM_E, FROM_F, E_EXTENDS, F_EXTENDS = 0, 1, 2, 4, 8
"""Bits of a cell's trace: which way its score came; whether the gaps that leave it were open before it."""

FEATURES = () if numba.config.DISABLE_JIT else (numba.config.CPU_FEATURES or get_host_cpu_features()).split(",")
LONG_VECTORS = "+avx512bw" in FEATURES
VECTORS = LONG_VECTORS or "+avx2" in FEATURES
"""Whether there is vector code, and whether one instruction looks 32 cells up."""


@njit_inner
def row_plain(work, at, window, query, target, table, low, costs):
    """See the module."""
    two, h, e, old, new = at
    x, n, y, _ = window
    dead, opened, extended = costs
    most, first, last = dead, -1, -1
    for c in range(x, x + n):
        a, b = work[e + c], work[old + c - 1]
        v = max(work[two + c - 1] + table[query[c] + target[y + c - x]], a, b)
        if v >= low:
            first, last = c if first < 0 else first, c
        else:
            v = dead
        g = v - opened
        work[h + c], work[e + c], work[new + c] = v, max(g, a - extended), max(g, b - extended)
        most = max(most, v)
    work[h + x - 1] = work[h + x + n] = work[e + x + n] = work[new + x - 1] = dead
    return most, first, last


@njit_inner
def row_plain_traced(work, at, window, query, target, table, low, costs, trace):
    """See the module."""
    two, h, e, old, new = at
    x, n, y, z = window
    dead, opened, extended = costs
    most, first, last = dead, -1, -1
    for c in range(x, x + n):
        a, b = work[e + c], work[old + c - 1]
        p = work[two + c - 1] + table[query[c] + target[y + c - x]]
        v = max(p, a, b)
        way = FROM_PAIR if v == p else FROM_E if v == a else FROM_F
        if v >= low:
            first, last = c if first < 0 else first, c
        else:
            v = dead
        g = v - opened
        way |= (E_EXTENDS if a - extended >= g else 0) | (F_EXTENDS if b - extended >= g else 0)
        work[h + c], work[e + c], work[new + c] = v, max(g, a - extended), max(g, b - extended)
        trace[z + c - (x - 1 & -LANES)] = way
        most = max(most, v)
    work[h + x - 1] = work[h + x + n] = work[e + x + n] = work[new + x - 1] = dead
    return most, first, last


CELL, BYTE, WORD = ir.IntType(16), ir.IntType(8), ir.IntType(64)
CELLS, BYTES = ir.VectorType(CELL, LANES), ir.VectorType(BYTE, LANES)
LANE_NUMBERS = ir.Constant(CELLS, list(range(LANES)))


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
        return self.builder.load(self.place(argument, index, CELLS), align=2)

    def store(self, argument: int, index, value):
        self.builder.store(value, self.place(argument, index, value.type), align=1)

    def splat(self, value):
        first = self.builder.insert_element(ir.Constant(CELLS, ir.Undefined), value, ir.IntType(32)(0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        return self.builder.shuffle_vector(first, ir.Constant(CELLS, ir.Undefined), zeros)

    def most(self, a, b):
        return self.builder.select(self.builder.icmp_signed(">", a, b), a, b)

    def call(self, name: str, result, *values):
        kind = ir.FunctionType(result, [value.type for value in values])
        return self.builder.call(cgutils.get_or_insert_function(self.builder.module, kind, name), values)


def make_lookup(on: Emitter, table):
    """Code that looks cells up in a table of LANES: a function from indices to values, both CELLS.

    AVX2 looks up bytes, in tables of 16.  So there is a table for each half of the entries and of their bytes.
    """
    builder = on.builder
    if LONG_VECTORS:
        return lambda index: on.call("llvm.x86.avx512.permvar.hi.512", CELLS, table, index)
    half = LANES // 2
    parts = [builder.trunc(table, BYTES), builder.trunc(builder.lshr(table, ir.Constant(CELLS, [8] * LANES)), BYTES)]
    lanes = [ir.Constant(ir.VectorType(ir.IntType(32), LANES), 2 * list(range(at, at + half))) for at in (0, half)]
    tables = [[builder.shuffle_vector(part, part, some) for some in lanes] for part in parts]

    def look_up(index):
        short = builder.trunc(index, BYTES)
        is_low = builder.icmp_unsigned("<", short, ir.Constant(BYTES, [half] * LANES))
        found = []
        for low, high in tables:
            both = (on.call("llvm.x86.avx2.pshuf.b", BYTES, some, short) for some in (low, high))
            found.append(builder.zext(builder.select(is_low, *both), CELLS))
        return builder.or_(found[0], builder.shl(found[1], ir.Constant(CELLS, [8] * LANES)))

    return look_up


SHIFTED = ir.Constant(ir.VectorType(ir.IntType(32), LANES), list(range(LANES - 1, 2 * LANES - 1)))
"""The last lane of one vector, then all but the last of the next one."""


def _emit(context, builder, signature, arguments, traced: bool):
    """The loop over vectors, all of which begin at multiples of LANES: what was stored is loaded whole, which is fast.

    The cells of the place before are in the vector before, so each vector is kept for the next one.
    """
    on = Emitter(context, builder, signature, arguments)
    work, query, target, table = 0, 3, 4, 5
    two, h, e, old, new = cgutils.unpack_tuple(builder, arguments[1], 5)
    x, n, y, z = cgutils.unpack_tuple(builder, arguments[2], 4)
    low = on.splat(builder.trunc(arguments[6], CELL))
    prices = (builder.trunc(value, CELL) for value in cgutils.unpack_tuple(builder, arguments[7], 3))
    dead, opened, extended = (on.splat(value) for value in prices)
    look_up = make_lookup(on, on.load(table, WORD(0)))
    begin = builder.and_(builder.sub(x, WORD(1)), WORD(-LANES))
    end = builder.add(x, n)
    count = builder.add(builder.udiv(builder.sub(end, begin), WORD(LANES)), WORD(1))
    before = builder.sub(begin, WORD(LANES))
    best = cgutils.alloca_once_value(builder, dead)
    h_before = cgutils.alloca_once_value(builder, on.load(work, builder.add(two, before)))
    f_before = cgutils.alloca_once_value(builder, on.load(work, builder.add(old, before)))
    lane = cgutils.alloca_once_value(
        builder, builder.add(LANE_NUMBERS, on.splat(builder.trunc(builder.sub(begin, x), CELL)))
    )
    size, step = on.splat(builder.trunc(n, CELL)), ir.Constant(CELLS, [LANES] * LANES)
    with cgutils.for_range(builder, count) as loop:
        c = builder.add(begin, builder.mul(loop.index, WORD(LANES)))
        h_here, f_here = on.load(work, builder.add(two, c)), on.load(work, builder.add(old, c))
        diagonal = builder.shuffle_vector(builder.load(h_before), h_here, SHIFTED)
        b = builder.shuffle_vector(builder.load(f_before), f_here, SHIFTED)
        builder.store(h_here, h_before)
        builder.store(f_here, f_before)
        pair = builder.add(on.load(query, c), on.load(target, builder.add(y, builder.sub(c, x))))
        p = builder.add(diagonal, look_up(pair))
        a = on.load(work, builder.add(e, c))
        v = on.most(p, on.most(a, b))
        number = builder.load(lane)
        inside = builder.icmp_unsigned("<", number, size)
        builder.store(builder.add(number, step), lane)
        alive = builder.and_(builder.icmp_signed(">=", v, low), inside)
        kept = builder.select(alive, v, dead)
        g, longer_e, longer_f = builder.sub(kept, opened), builder.sub(a, extended), builder.sub(b, extended)
        on.store(work, builder.add(h, c), kept)
        on.store(work, builder.add(e, c), on.most(g, longer_e))
        on.store(work, builder.add(new, c), on.most(g, longer_f))
        builder.store(on.most(builder.load(best), kept), best)
        if traced:
            on.store(8, builder.add(z, builder.sub(c, begin)), _ways(builder, v, p, a, g, longer_e, longer_f))
    highest = on.call(f"llvm.vector.reduce.smax.v{LANES}i16", CELL, builder.load(best))
    ends = (_living(on, builder.add(h, begin), count, dead, last) for last in (False, True))
    first, last = (builder.select(builder.icmp_signed("<", end, WORD(0)), end, builder.add(begin, end)) for end in ends)
    return cgutils.pack_array(builder, [builder.sext(highest, WORD), first, last])


@contextmanager
def _looking(builder, number, count, alive):
    """A loop while vectors are left and none of their cells was alive."""
    head, body, behind = (builder.append_basic_block(name) for name in ("looking.head", "looking.body", "looking.behind"))
    builder.branch(head)
    builder.position_at_end(head)
    is_left = builder.icmp_signed("<", builder.load(number), count)
    none = builder.icmp_unsigned("==", builder.load(alive), alive.type.pointee(0))
    builder.cbranch(builder.and_(is_left, none), body, behind)
    builder.position_at_end(body)
    yield
    builder.branch(head)
    builder.position_at_end(behind)


def _living(on: Emitter, row, count, dead, last: bool):
    """The first or the last living cell of a row of `count` vectors that begins at place `row`; -1 if there is none.

    It is in one of the first vectors that are looked at, as a rule.
    """
    builder, bits = on.builder, ir.IntType(LANES)
    number = cgutils.alloca_once_value(builder, WORD(0))
    alive, at = cgutils.alloca_once_value(builder, bits(0)), cgutils.alloca_once_value(builder, WORD(0))
    with _looking(builder, number, count, alive):
        vector = builder.load(number)
        builder.store(builder.add(vector, WORD(1)), number)
        vector = builder.sub(builder.sub(count, WORD(1)), vector) if last else vector
        builder.store(builder.mul(vector, WORD(LANES)), at)
        cells = on.load(0, builder.add(row, builder.load(at)))
        builder.store(builder.bitcast(builder.icmp_signed("!=", cells, dead), bits), alive)
    found, is_zero = builder.load(alive), ir.IntType(1)(0)
    if last:
        lane = builder.sub(bits(LANES - 1), builder.ctlz(found, is_zero))
    else:
        lane = builder.cttz(found, is_zero)
    cell = builder.add(builder.load(at), builder.zext(lane, WORD))
    return builder.select(builder.icmp_unsigned("!=", found, bits(0)), cell, WORD(-1))


def _ways(builder, v, p, a, g, longer_e, longer_f):
    """The bits of a vector's traces."""

    def number(value: int):
        return ir.Constant(BYTES, [value] * LANES)

    way = builder.select(builder.icmp_signed("==", v, a), number(FROM_E), number(FROM_F))
    way = builder.select(builder.icmp_signed("==", v, p), number(FROM_PAIR), way)
    for longer, bit in ((longer_e, E_EXTENDS), (longer_f, F_EXTENDS)):
        way = builder.or_(way, builder.select(builder.icmp_signed(">=", longer, g), number(bit), number(0)))
    return way


def _typed(traced: bool):
    """Vector code for 16-bit cells, the plain loop for others."""
    places, window, prices = (UniTuple(int64, n) for n in (5, 4, 3))
    plain = row_plain_traced if traced else row_plain

    def kind(work, query, target, table, *trace):
        def generate(context, builder, signature, arguments):
            if VECTORS and work.dtype == int16:
                return _emit(context, builder, signature, arguments, traced)
            return context.compile_internal(builder, plain.py_func, signature, arguments)

        return prices(work, places, window, query, target, table, int64, prices, *trace), generate

    return kind


def _row(context, work, at, window, query, target, table, low, costs):
    return _typed(False)(work, query, target, table)


def _row_traced(context, work, at, window, query, target, table, low, costs, trace):
    return _typed(True)(work, query, target, table, trace)


row = row_plain if numba.config.DISABLE_JIT else intrinsic(_row)
row_traced = row_plain_traced if numba.config.DISABLE_JIT else intrinsic(_row_traced)
