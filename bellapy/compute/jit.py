"""Numba's decorators with the settings of this package, in one place: functions release the GIL, and check no bounds.

`njit` is for functions that Python calls; their machine code is kept on the disk (code_cache.py).  `njit_entry` is the same
without reference counts, so such a function must not make arrays.  Reference counts are atomic operations, and would cost
more than the short functions of an inner loop.  `njit_inner` is for calls from compiled code: machine code is kept as
part of the caller's.  The vector ones are for loops that LLVM must turn into vector code.  They promise that array arguments
do not overlap.  Without this promise LLVM checks every loop for overlap at run time, and often gives up.  `njit_part` is for
parts of one function, which takes them in.  Else the arrays of a record are handed over one by one, which costs a few
percent where it happens every few thousand cells.  `njit_body` is for functions that do little but call large ones, in one
place or two.  Numba takes them in.  Else LLVM would go over all that they call once more, for code that nobody runs.
`prefetch` hides the wait for memory where many streams are read side by side; `bit_of_each` is an instruction or two of
every vector unit that LLVM does not find in a loop.

A number, a tuple of numbers or True that is written in a call is a type of its own to Numba, which compiles what is called
anew for it; so is a variable that begins as such and is handed on before it changes.  np.int64(0) and np.bool_(True) are
not.  Arrays that cannot be written to, or that run backwards, are other types as well.  Where an array is assigned to a
slice, Numba compiles the text of an error for unequal lengths, which takes seconds; a loop has none.  Compiling is nearly
all of a first run, so functions are written to be compiled once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic as _intrinsic

from bellapy.compute import code_cache, lowering

COMPILES = not numba.config.DISABLE_JIT
"""Whether functions are compiled at all: NUMBA_DISABLE_JIT is a setting of Numba."""

_OPTIONS = {"boundscheck": False, "error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}


def _decorator(cache: bool = False, **options: Any) -> Callable[[Callable], Any]:
    """A decorator that compiles with these options of Numba, beside those for all; cache : whether code is kept on disk."""

    def decorate(function: Callable) -> Any:
        if not COMPILES:
            return function
        if not (cache and code_cache.can_keep()):
            return numba.njit(function, no_cpython_wrapper=not cache, **_OPTIONS, **options)
        with code_cache.in_use():
            return numba.njit(function, cache=True, **_OPTIONS, **options)

    return decorate


njit = _decorator(cache=True)
njit_entry = _decorator(cache=True, **lowering.NO_COUNTS)
njit_vector_entry = _decorator(cache=True, **lowering.NO_COUNTS, **lowering.NO_OVERLAP)
njit_inner = _decorator(**lowering.NO_COUNTS)
njit_vector = _decorator(**lowering.NO_COUNTS, **lowering.NO_OVERLAP)
njit_part = _decorator(**lowering.NO_COUNTS, forceinline=True)
njit_body = _decorator(inline="always")


def intrinsic(function: Callable, plain: Callable | None = None) -> Any:
    """As Numba's decorator.  plain : does the same where nothing is compiled."""
    return _intrinsic(function) if COMPILES else plain


@njit_vector
def put(target, at, source, begin, end):
    """Copy source[begin:end] to target[at:], one-dimensional arrays of any type that do not overlap.

    An assignment to a slice takes a second more to compile: Numba makes the text of an error about shapes, for each type.
    """
    to, start = np.uint64(at), np.uint64(begin)
    for x in range(np.uint64(max(0, end - begin))):
        target[to + x] = source[start + x]


def _prefetch(typing_context, array, index):
    """Ask for the cache line of array[index], one-dimensional, before it is needed; index may lie outside the array."""

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [address, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [address], kind)
        for_reading, keep, data_cache = number(0), number(3), number(1)
        place = builder.bitcast(builder.gep(data, [arguments[1]]), address)
        builder.call(function, [place, for_reading, keep, data_cache])
        return context.get_dummy_value()

    return types.none(array, index), generate


def _bit_of_each(typing_context, array, index, bit):
    """One bit of each of the 32 bytes from array[index] on, as a word; the first byte's is the lowest."""

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        bytes_, none = ir.VectorType(ir.IntType(8), 32), ir.Constant(ir.IntType(8), 0)
        address = builder.bitcast(builder.gep(data, [arguments[1]]), bytes_.as_pointer())
        wanted = builder.shl(ir.IntType(8)(1), builder.trunc(arguments[2], ir.IntType(8)))
        mask = ir.Constant(bytes_, [none] * 32)
        for i in range(32):
            mask = builder.insert_element(mask, wanted, ir.IntType(32)(i))
        found = builder.icmp_unsigned("!=", builder.and_(builder.load(address, align=1), mask), bytes_([none] * 32))
        return builder.bitcast(found, ir.IntType(32))

    return types.uint32(array, index, bit), generate


prefetch = intrinsic(_prefetch, lambda array, index: None)
bit_of_each = intrinsic(
    _bit_of_each,
    lambda array, index, bit: np.packbits(array[index : index + 32] >> bit & 1, bitorder="little").view(np.uint32)[0],
)
