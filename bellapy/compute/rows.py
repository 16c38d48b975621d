"""Rows of 512 bits: numbers of a kind of their own, which compiled code computes with bit by bit.

LLVM turns plain loops over words into vector code too, but not where a loop is short or runs inside another one: it then
takes words one by one, or gathers them.  A row is a vector from the start.  It is one register of AVX-512, and some
registers elsewhere.  Without compilation it is an array of WORDS words.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import lower_builtin, models, register_model, type_callable

from bellapy.compute.jit import intrinsic

WORDS = 8
VECTOR = ir.VectorType(ir.IntType(64), WORDS)
"""What a row is to LLVM."""


class Row(types.Type):
    """The type of a row."""


@register_model(Row)
class RowModel(models.PrimitiveModel):
    """A row is one vector."""

    def __init__(self, manager, kind):
        super().__init__(manager, kind, VECTOR)


def _each(builder, word):
    """A row of which each word is `word`."""
    row = ir.Constant(VECTOR, ir.Undefined)
    for i in range(WORDS):
        row = builder.insert_element(row, word, ir.IntType(32)(i))
    return row


def add_operators(kinds: tuple, make: Callable, *operators: Callable) -> None:
    """Let compiled code apply operators to values of these types of Numba; the result has the first one.

    make : builds LLVM's code, from its builder and the values.
    """

    def type_of(context):
        if len(kinds) == 1:
            return lambda row: kinds[0] if (row,) == kinds else None
        return lambda row, other: kinds[0] if (row, other) == kinds else None

    def generate(context, builder, signature, arguments):
        return make(builder, *arguments)

    for each in operators:
        type_callable(each)(type_of)
        lower_builtin(each, *kinds)(generate)


ROW = Row("row")
add_operators((ROW, ROW), ir.IRBuilder.and_, operator.and_, operator.iand)
add_operators((ROW, ROW), ir.IRBuilder.or_, operator.or_, operator.ior)
add_operators((ROW, ROW), ir.IRBuilder.xor, operator.xor, operator.ixor)
add_operators((ROW,), ir.IRBuilder.not_, operator.invert)
add_operators((ROW, types.uint64), lambda builder, row, by: builder.shl(row, _each(builder, by)), operator.lshift)
add_operators((ROW, types.uint64), lambda builder, row, by: builder.lshr(row, _each(builder, by)), operator.rshift)


def _word_of(typing_context, row, i):
    """Word `i` of a row."""

    def generate(context, builder, signature, arguments):
        return builder.extract_element(arguments[0], arguments[1])

    return types.uint64(row, i), generate


def _address(context, builder, kind, array, at):
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [at]), VECTOR.as_pointer())


def _row_at(typing_context, array, at):
    """The row in `array`, flat uint64, from word `at` on."""

    def generate(context, builder, signature, arguments):
        return builder.load(_address(context, builder, signature.args[0], *arguments), align=8)

    return ROW(array, at), generate


def _put_row(typing_context, array, at, row):
    """Write a row to `array`, flat uint64, from word `at` on."""

    def generate(context, builder, signature, arguments):
        builder.store(arguments[2], _address(context, builder, signature.args[0], *arguments[:2]), align=8)
        return context.get_dummy_value()

    return types.none(array, at, row), generate


def _plain_put_row(array, at, row):
    array[int(at) : int(at) + WORDS] = row


def _plain_row_at(array, at) -> np.ndarray:
    return array[int(at) : int(at) + WORDS].copy()


word_of = intrinsic(_word_of, lambda row, i: row[i])
row_at = intrinsic(_row_at, _plain_row_at)
put_row = intrinsic(_put_row, _plain_put_row)
