"""Nets: for every base of the target the best chain that spans it, and what fills the gaps of that chain.

Chains are taken by falling score.  Each one fills what spaces of the target it meets that no better chain spans: at first
the whole sequences, then what is left of a space beside a fill, and the gaps within it.

Source: W. J. Kent et al.: Evolution's cauldron, PNAS 100, 2003.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from typing import NamedTuple

import numpy as np

from bellapy.records.genomes import PAIR, QUERY_ALONE, TARGET_ALONE, Alignment, Fill, Gap, Genome

LEAST_SPACE = 25  # bases of a space that is filled, and of a gap that is told
LEAST_FILL = 12  # bases of a fill
LEAST_SCORE = 2000


class _Space(NamedTuple):
    """A stretch of the target that is not filled yet; fills : where its fill goes."""

    begin: int
    end: int
    fills: list[Fill]


class _Blocks(NamedTuple):
    """The blocks of a chain without gaps: (n,) int64, target and query places, sizes."""

    t: np.ndarray
    q: np.ndarray
    size: np.ndarray


def make_nets(chains: list[Alignment], target: Genome, query: Genome) -> list[list[Fill]]:
    """The net of each target sequence: the fills that no other one spans, in order.  chains : by falling score."""
    nets: list[list[Fill]] = [[] for _ in target.names]
    spaces = [[_Space(0, int(length), net)] for length, net in zip(target.lengths, nets, strict=True)]
    for number, chain in enumerate(chains, 1):
        free, blocks = spaces[chain.target], _blocks(chain)
        first = max(0, bisect_right(free, chain.t_start, key=lambda space: space.begin) - 1)
        last = bisect_right(free, chain.t_end - 1, key=lambda space: space.begin)
        for space in free[first:last]:
            fill = _fill(number, chain, blocks, space, int(query.lengths[chain.query]))
            if fill:
                del free[bisect_right(free, space.begin, key=lambda space: space.begin) - 1]
                insort(space.fills, fill, key=lambda fill: fill.t)
                rest = [(space.begin, fill.t[0], space.fills), (fill.t[1], space.end, space.fills)]
                for begin, end, fills in rest + [(*gap.t, gap.fills) for gap in fill.gaps]:
                    if end - begin >= LEAST_SPACE:
                        insort(free, _Space(begin, end, fills), key=lambda space: space.begin)
    return nets


def _blocks(chain: Alignment) -> _Blocks:
    operation, size = chain.runs[:, 0], chain.runs[:, 1]
    t = chain.t_start + np.cumsum(np.where(operation != QUERY_ALONE, size, 0)) - size
    q = chain.q_start + np.cumsum(np.where(operation != TARGET_ALONE, size, 0)) - size
    pair = operation == PAIR
    return _Blocks(t[pair], q[pair], size[pair])


def _fill(number: int, chain: Alignment, blocks: _Blocks, space: _Space, q_length: int) -> Fill | None:
    """What a chain fills of a space; None if that is too little."""
    begin, end = np.maximum(blocks.t, space.begin), np.minimum(blocks.t + blocks.size, space.end)
    within = begin < end
    t, size = begin[within], (end - begin)[within]
    q = blocks.q[within] + t - blocks.t[within]
    pairs = int(size.sum())
    score = chain.score * pairs // int(blocks.size.sum())
    if pairs < LEAST_FILL or score < LEAST_SCORE:
        return None

    def forward(first: int, last: int) -> tuple[int, int]:
        return (first, last) if chain.strand > 0 else (q_length - last, q_length - first)

    gaps = []
    for x in range(len(t) - 1):
        t_gap, q_gap = (int(t[x] + size[x]), int(t[x + 1])), (int(q[x] + size[x]), int(q[x + 1]))
        if max(t_gap[1] - t_gap[0], q_gap[1] - q_gap[0]) >= LEAST_SPACE:
            gaps.append(Gap(t_gap, forward(*q_gap), []))
    t_span, q_span = (int(t[0]), int(t[-1] + size[-1])), forward(int(q[0]), int(q[-1] + size[-1]))
    return Fill(number, score, pairs, chain.query, chain.strand, t_span, q_span, gaps)
