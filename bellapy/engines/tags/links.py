"""The best link into a node of the tag graph, in one vector: LLVM leaves such short loops with a result as they are."""

from __future__ import annotations

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

UNIT = 64  # of a score: one link
WIDTH = 32  # nodes of a column, filled up to a power of two
ROW_BITS, HALF = 5, 16  # of WIDTH
LOWEST = np.int32(-(1 << 24))  # of a node that no path reaches
NO_LINK = int(LOWEST) << ROW_BITS


def _best_link(typing_context, links, at, scores, first):
    """The best way into a node from HALF nodes before it: score << ROW_BITS | (WIDTH - 1 - its number among these), int32.

    So the first of equals wins.  Where no read links a node to this one, there is no way; without any it is NO_LINK.

    links : uint16, reads that link each node to this one, links[at : at + HALF].
    scores : int32, of these nodes, scores[first : first + HALF].
    """

    def generate(context, builder, signature, arguments):
        small, wide = ir.VectorType(ir.IntType(16), HALF), ir.VectorType(ir.IntType(32), HALF)

        def load(i, kind, align):
            data = context.make_array(signature.args[i])(context, builder, arguments[i]).data
            return builder.load(builder.bitcast(builder.gep(data, [arguments[i + 1]]), kind.as_pointer()), align=align)

        def every(number):
            return wide([number] * HALF)

        counts = load(0, small, 2)
        gain = builder.mul(builder.zext(counts, wide), every(UNIT))
        key = builder.shl(builder.add(load(2, wide, 4), gain), every(ROW_BITS))
        key = builder.or_(key, wide([WIDTH - 1 - m for m in range(HALF)]))
        linked = builder.icmp_unsigned("!=", counts, small([0] * HALF))
        kind = ir.FunctionType(ir.IntType(32), [wide])
        largest = builder.module.declare_intrinsic(f"llvm.vector.reduce.smax.v{HALF}i32", [], kind)
        return builder.call(largest, [builder.select(linked, key, every(NO_LINK))])

    return types.int32(links, at, scores, first), generate


def _plain_best_link(links, at, scores, first):
    """The same, without compiled code."""
    counts, before = links[at : at + HALF].astype(np.int32), scores[first : first + HALF]
    keys = (before + UNIT * counts) << ROW_BITS | WIDTH - 1 - np.arange(HALF, dtype=np.int32)
    return np.where(counts > 0, keys, NO_LINK).max()


best_link = intrinsic(_best_link) if not numba.config.DISABLE_JIT else _plain_best_link
