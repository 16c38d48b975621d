"""Scores of a narrow band, a row of cells in one vector: LLVM does not find the largest one so far in vectors by itself."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils

from bellapy.compute.jit import intrinsic

LANES = 16  # most cells of a row, and how far rows reach beyond the bases on either side
MOST_SHORT = 31  # rows, of which scores have 8 bits


def _shifted(builder, vector, by, kind):
    """A vector whose lanes have gone up by so many places, or down if negative; zeros come in."""
    number = ir.VectorType(ir.IntType(32), kind.count)
    lanes = [lane - by if 0 <= lane - by < kind.count else kind.count for lane in range(kind.count)]
    return builder.shuffle_vector(vector, kind([0] * kind.count), number(lanes))


def _every(builder, value, kind):
    """A vector with a number in every lane."""
    one = builder.insert_element(kind([0] * kind.count), builder.trunc(value, kind.element), ir.IntType(32)(0))
    return builder.shuffle_vector(one, one, ir.VectorType(ir.IntType(32), kind.count)([0] * kind.count))


def _filler(n_lanes, n_bits=16):
    """A function that fills in the scores of a band of fewer cells in a row than lanes, as `_fill` in realign.py does.

    n_bits : of scores while they are computed; vectors of 16 bytes take half as long as larger ones.

    scores : int16, overwritten, with room for n_lanes more.
    bases : uint8, letters of the read; read : of them, that of cell 0 of the first row; n_lanes more may be looked at.
    codes : (n_rows,) uint8.  below : cell 0 of row i has base i - below, and none before 1.  width : cells of a row.
    equal, unequal : what a pair of such letters adds.
    """

    def fill(typing_context, scores, bases, read, codes, n_rows, below, width, equal, unequal):
        cell, letter, kept = (ir.VectorType(ir.IntType(bits), n_lanes) for bits in (n_bits, 8, 16))

        def generate(context, builder, signature, arguments):
            rows_of, letters, codes_of = (
                context.make_array(signature.args[i])(context, builder, arguments[i]).data for i in (0, 1, 3)
            )
            read, n_rows, below, width = (arguments[i] for i in (2, 4, 5, 6))
            if_equal, if_not = _every(builder, arguments[7], cell), _every(builder, arguments[8], cell)
            none, lanes = cell([0] * n_lanes), cell(list(range(n_lanes)))
            inside = builder.icmp_signed("<", lanes, _every(builder, width, cell))

            def store(row, at):
                row = row if n_bits == 16 else builder.sext(row, kept)
                builder.store(row, builder.bitcast(builder.gep(rows_of, [at]), kept.as_pointer()), align=2)

            one = below.type(1)
            line = builder.add(width, one)
            store(none, below.type(0))
            before = cgutils.alloca_once_value(builder, none)
            with cgutils.for_range(builder, n_rows, intp=below.type) as loop:
                diagonal, i = builder.load(before), loop.index
                place = builder.bitcast(builder.gep(letters, [builder.add(read, i)]), letter.as_pointer())
                code = builder.load(builder.gep(codes_of, [i]))
                same = builder.icmp_unsigned("==", builder.load(place, align=1), _every(builder, code, letter))
                paired = builder.add(diagonal, builder.select(same, if_equal, if_not))
                above = _shifted(builder, diagonal, -1, cell)
                row = builder.select(builder.icmp_signed(">", paired, above), paired, above)
                begun = builder.icmp_signed(">=", lanes, _every(builder, builder.sub(below, i), cell))
                row = builder.select(begun, row, none)
                for by in (1, 2, 4, 8):
                    if by < n_lanes:
                        left = _shifted(builder, row, by, cell)
                        row = builder.select(builder.icmp_signed(">", row, left), row, left)
                row = builder.select(inside, row, none)
                store(row, builder.mul(builder.add(i, one), line))
                builder.store(row, before)
            return context.get_dummy_value()

        return types.none(scores, bases, read, codes, n_rows, below, width, equal, unequal), generate

    return intrinsic(fill)


fill_8, fill_16, fill_16_short = _filler(8), _filler(16), _filler(16, 8)
