"""Marks of columns: one bit for each, the lowest one of a word first.  Most of a path is passed a word at a time."""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types

from bellapy.compute.jit import COMPILES, intrinsic, njit_inner, njit_part

WORD = 64  # bits
U8, U32, U64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)


def _load(context, builder, signature, arguments, i, index, element):
    """WORD numbers of the array that is argument i."""
    kind = ir.VectorType(element, WORD)
    data = context.make_array(signature.args[i])(context, builder, arguments[i]).data
    return builder.load(builder.bitcast(builder.gep(data, [index]), kind.as_pointer()), align=element.width // 8)


@intrinsic
def equal_bytes(typing_context, one, i, other, j):
    """Where one[i : i + WORD] equals other[j : j + WORD], as a word; uint8 both."""

    def generate(context, builder, signature, arguments):
        given = context, builder, signature, arguments
        same = builder.icmp_unsigned("==", _load(*given, 0, arguments[1], U8), _load(*given, 2, arguments[3], U8))
        return builder.bitcast(same, U64)

    return types.uint64(one, i, other, j), generate


@intrinsic
def bytes_from(typing_context, array, i, least):
    """Where array[i : i + WORD], uint8, is `least` or more, as a word."""

    def generate(context, builder, signature, arguments):
        bytes_ = _load(context, builder, signature, arguments, 0, arguments[1], U8)
        one = builder.insert_element(bytes_.type([0] * WORD), builder.trunc(arguments[2], U8), U32(0))
        every = builder.shuffle_vector(one, one, ir.VectorType(U32, WORD)([0] * WORD))
        return builder.bitcast(builder.icmp_unsigned(">=", bytes_, every), U64)

    return types.uint64(array, i, least), generate


@intrinsic
def rising(typing_context, array, i):
    """Where array[i : i + WORD], int32, is followed by a number that is larger by one, as a word."""

    def generate(context, builder, signature, arguments):
        given = context, builder, signature, arguments
        here = _load(*given, 0, arguments[1], U32)
        after = _load(*given, 0, builder.add(arguments[1], arguments[1].type(1)), U32)
        return builder.bitcast(builder.icmp_signed("==", after, builder.add(here, here.type([1] * WORD))), U64)

    return types.uint64(array, i), generate


U = np.uint64
PAIRS, FOURS, EIGHTS, BYTES = U(0x5555555555555555), U(0x3333333333333333), U(0x0F0F0F0F0F0F0F0F), U(0x0101010101010101)


def _count_bits(word):
    """How many bits of a word are set; LLVM makes this one instruction."""
    word = word - (word >> U(1) & PAIRS)
    word = (word & FOURS) + (word >> U(2) & FOURS)
    return np.int64(((word + (word >> U(4))) & EIGHTS) * BYTES >> U(56))


def _plain_count_bits(word):
    """The same, without compiled code: there numbers must not overflow."""
    return int(word).bit_count()


count_bits = njit_part(_count_bits) if COMPILES else _plain_count_bits


@njit_part
def lowest_bit(word):
    """The number of the lowest bit that is set; there has to be one."""
    return count_bits(~word & (word - U(1)))


@njit_part
def first_bits(n):
    """A word with its first n bits set, n < WORD."""
    return (U(1) << U(n)) - U(1)


@njit_part
def shifted(word, after, by):
    """The bits that follow by so many places, those of the next word among them; 0 < by < WORD."""
    return word >> U(by) | after << U(WORD - by)


@njit_inner
def find_set(words, begin, end):
    """The first mark at begin or after it; `end` if there is none before that."""
    at = begin
    while at < end:
        word = words[U(at) >> U(6)] >> (U(at) & U(63))
        if word:
            return min(end, at + lowest_bit(word))
        at = (at | 63) + 1
    return end


@njit_inner
def find_unset(words, begin):
    """The first place without a mark, at begin or after it; there has to be one."""
    at = begin
    while True:
        word = ~words[U(at) >> U(6)] >> (U(at) & U(63))
        if word:
            return at + lowest_bit(word)
        at = (at | 63) + 1


@njit_inner
def count_set(words, begin, end):
    """Marks from begin on, before end."""
    n, at = np.int64(0), begin
    while at < end:
        word, left = words[U(at) >> U(6)] >> (U(at) & U(63)), end - at
        n += count_bits(word if left >= WORD else word & first_bits(left))
        at = (at | 63) + 1
    return n
