"""Numba's defaults, in one place: compiled functions release the GIL and never raise; those for Python are kept on disk.

`njit` is for ordinary kernels.  The others leave out reference counts, so they must not make arrays.  Reference counts are
atomic operations, and would cost more than the short functions of an inner loop.  The inner ones are for calls from
compiled code only, and are compiled as `compiler.py` says; Python cannot call them.  The vector ones are for loops that
LLVM must turn into vector code.  They promise that array arguments do not overlap.  Without this promise LLVM checks every
loop for overlap at run time, and often gives up.  `njit_part` is for parts of one function, which takes them in.  Else the
arrays of a record are handed over one by one, which costs a few percent where it happens every few thousand cells.
`prefetch` hides the wait for memory where many streams are read side by side; `bit_of_each` is an instruction or two of
every vector unit that LLVM does not find in a loop.
"""

from __future__ import annotations

import numpy as np

from bellapy.compute.late import COMPILES, Inner, Module, intrinsic
from bellapy.compute.stored import Outer

ir, types = Module("llvmlite.ir"), Module("numba.core.types")

_NO_COUNTS = {"_nrt": False}


def _decorator(inner=False, **options):
    """A decorator that compiles with these options of Numba, beside those for all; cache : whether code is kept on disk."""

    def decorate(function, cache=True):
        def make():
            from bellapy.compute.compiler import dispatcher

            return dispatcher(function, inner, options)

        if not COMPILES:
            return function
        return Inner(function, make) if inner else Outer(function, make, cache)

    return decorate


njit = _decorator()
njit_entry = _decorator(**_NO_COUNTS)
njit_vector_entry = _decorator(**_NO_COUNTS, noalias=True)
njit_inner = _decorator(True, **_NO_COUNTS)
njit_vector = _decorator(True, **_NO_COUNTS, noalias=True)
njit_part = _decorator(True, **_NO_COUNTS, forceinline=True)


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
