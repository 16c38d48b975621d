"""Links of the tag graph in vectors, with a lane for each symbol: LLVM leaves such short loops with a result as they are.

A key holds a node's score and its number, score << ROW_BITS | WIDTH - 1 - number.  So of two keys the larger one is the
better score, and the smaller number where scores are equal.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types

from bellapy.compute.jit import intrinsic

UNIT, UNIT_BITS = 64, 6  # of a score: one link
WIDTH, ROW_BITS = 32, 5  # nodes of a column, filled up to a power of two
LETTERS = 5  # of a slot: four bases and a gap
HALF, LANES = 8, 16  # symbols in a column; with those between two columns
LOWEST = np.int32(-(1 << 24))  # of a node that no path reaches
REACHED = np.int32(-(1 << 23))  # above it paths lie, below it what links add to no path
NO_LINK, LEAST_KEY = int(LOWEST) << ROW_BITS, int(REACHED) << ROW_BITS

WORD = ir.IntType(32)
WIDE = ir.VectorType(WORD, HALF)


def _loader(context, builder, signature, arguments):
    """What makes the address of an array's entry as one of a vector, by the number of the array's argument."""

    def address(i, at, kind):
        data = context.make_array(signature.args[i])(context, builder, arguments[i]).data
        return builder.bitcast(builder.gep(data, [at]), kind.as_pointer())

    return address


def _every(builder, number):
    """A vector with a number of 32 bits in every lane."""
    one = builder.insert_element(WIDE([0] * HALF), number, WORD(0))
    return builder.shuffle_vector(one, one, WIDE([0] * HALF))


def _larger(builder, one, other):
    return builder.select(builder.icmp_signed(">", one, other), one, other)


def _reduce(builder, name, vector, element):
    """One number of all lanes, by LLVM's function of this name."""
    kind = ir.FunctionType(element, [vector.type])
    bits = f"v{vector.type.count}i{element.width}"
    return builder.call(builder.module.declare_intrinsic(f"llvm.vector.reduce.{name}.{bits}", [], kind), [vector])


def _follow(typing_context, links, at, keys, first, coming, between):
    """Follow the links of a slot's nodes, and set them to 0; returns whether any read shows a base between columns next.

    links : uint16, how many reads show each symbol after a node, LANES for each; those of node `first` begin at `at`.
    keys : int32, of the column's nodes.
    coming, between : (HALF,) int32, the best key with each symbol in the next column, and between the two; raised.
    """

    def generate(context, builder, signature, arguments):
        address = _loader(context, builder, signature, arguments)
        _, at, _, first, _, _ = arguments
        counts, place = ir.VectorType(ir.IntType(16), LANES), at.type
        none = counts([0] * LANES)
        halves = [list(range(HALF)), list(range(HALF, LANES))]
        rooms = [address(i, place(0), WIDE) for i in (4, 5)]
        best, seen = [builder.load(room, align=4) for room in rooms], none
        for letter in range(LETTERS):
            where = address(0, builder.add(at, place(letter * LANES)), counts)
            shown = builder.load(where, align=2)
            builder.store(none, where, align=2)
            seen = builder.or_(seen, shown)
            key = _every(builder, builder.load(address(2, builder.add(first, place(letter)), WORD), align=4))
            for i, half in enumerate(halves):
                mine = builder.shuffle_vector(shown, none, ir.VectorType(WORD, HALF)(half))
                gain = builder.shl(builder.zext(mine, WIDE), WIDE([UNIT_BITS + ROW_BITS] * HALF))
                linked = builder.icmp_unsigned("!=", mine, ir.VectorType(ir.IntType(16), HALF)([0] * HALF))
                way = builder.select(linked, builder.add(key, gain), WIDE([NO_LINK] * HALF))
                best[i] = _larger(builder, best[i], way)
        for room, vector in zip(rooms, best, strict=True):
            builder.store(vector, room, align=4)
        bases = ir.VectorType(ir.IntType(16), LETTERS - 1)
        inserted = builder.shuffle_vector(seen, none, ir.VectorType(WORD, bases.count)(halves[1][: bases.count]))
        return builder.zext(_reduce(builder, "or", inserted, ir.IntType(16)), ir.IntType(64))

    return types.int64(links, types.int64, keys, types.int64, coming, between), generate


def _enter(typing_context, coming, top, cost, gap_cost, keys, first, back, at):
    """Make keys of a slot's nodes from the best ones before them; returns the largest.

    coming : (HALF,) int32, the best key with each symbol; set to NO_LINK.  top : int32, taken off all scores.
    cost, gap_cost : int32, of every node, and of node GAP beside that.
    keys : int32, of the column's nodes; HALF of them are overwritten from node `first` on.
    back : uint8, of the column the best node before each node; HALF are overwritten from at on.
    """

    def generate(context, builder, signature, arguments):
        address = _loader(context, builder, signature, arguments)
        _, top, cost, gap_cost, _, first, _, at = arguments
        room = address(0, at.type(0), WIDE)
        scale, node = WIDE([ROW_BITS] * HALF), WIDE([WIDTH - 1] * HALF)
        key = builder.sub(builder.load(room, align=4), _every(builder, builder.shl(top, WORD(ROW_BITS))))
        builder.store(WIDE([NO_LINK] * HALF), room, align=4)
        is_letter = ir.VectorType(ir.IntType(1), HALF)([lane < LETTERS for lane in range(HALF)])
        reached = builder.and_(builder.icmp_signed(">", key, WIDE([LEAST_KEY] * HALF)), is_letter)
        key = builder.select(reached, key, WIDE([NO_LINK] * HALF))
        before = builder.trunc(builder.sub(node, builder.and_(key, node)), ir.VectorType(ir.IntType(8), HALF))
        builder.store(before, address(6, at, before.type), align=1)
        of_gap = builder.insert_element(WIDE([0] * HALF), gap_cost, WORD(LETTERS - 1))
        score = builder.sub(builder.ashr(key, scale), builder.add(_every(builder, cost), of_gap))
        last = builder.trunc(builder.sub(at.type(WIDTH - 1), first), WORD)
        number = builder.sub(_every(builder, last), WIDE(list(range(HALF))))
        made = builder.select(reached, builder.or_(builder.shl(score, scale), number), WIDE([NO_LINK] * HALF))
        builder.store(made, address(4, first, WIDE), align=4)
        return _reduce(builder, "smax", made, WORD)

    number, place = types.int32, types.int64
    return number(coming, number, number, number, keys, place, back, place), generate


def _plain_follow(links, at, keys, first, coming, between):
    """The same, without compiled code."""
    shown = links[at : at + LETTERS * LANES].reshape(LETTERS, LANES).astype(np.int32)
    links[at : at + LETTERS * LANES] = 0
    ways = np.where(shown > 0, keys[first : first + LETTERS, None] + (shown << UNIT_BITS + ROW_BITS), NO_LINK)
    coming[:] = np.maximum(coming, ways[:, :HALF].max(axis=0))
    between[:] = np.maximum(between, ways[:, HALF:].max(axis=0))
    return int(shown[:, HALF : HALF + LETTERS - 1].sum())


def _plain_enter(coming, top, cost, gap_cost, keys, first, back, at):
    """The same, without compiled code."""
    key, lane = coming - (top << ROW_BITS), np.arange(HALF)
    coming[:] = NO_LINK
    reached = (key > LEAST_KEY) & (lane < LETTERS)
    key = np.where(reached, key, NO_LINK)
    back[at : at + HALF] = WIDTH - 1 - (key & WIDTH - 1)
    score = (key >> ROW_BITS) - cost - gap_cost * (lane == LETTERS - 1)
    keys[first : first + HALF] = np.where(reached, score << ROW_BITS | WIDTH - 1 - first - lane & WIDTH - 1, NO_LINK)
    return int(keys[first : first + HALF].max())


follow, enter = intrinsic(_follow, _plain_follow), intrinsic(_enter, _plain_enter)
