"""The rule that all executions of this engine follow.

With H(i, j) the best score of a path from (0, 0) to query base i and target base j, and s the score matrix,

    H(i, j) = max(H(i-1, j-1) + s(query i, target j), E(i, j), F(i, j))
    E(i, j) = max(H(i, j-1) - open, E(i, j-1)) - extend         target alone
    F(i, j) = max(H(i-1, j) - open, F(i-1, j)) - extend         query alone

H(0, 0) = 0 and all else outside the table is minus infinity.  Cells are computed by anti-diagonals r = i + j.  A cell is
*dead*, H = minus infinity, if its score falls by more than `ydrop` below the best score of all anti-diagonals before its
own, or if an earlier alignment passes through it (walls.py).  The extension ends where all cells of two anti-diagonals in
sequence are dead.  Its end is the cell with the highest score: of equal ones the first in the order of i + j, then of i.

Of equal ways into a cell a pair of bases comes before a gap, and target alone before query alone.  A gap that can be as well
extended as opened is extended.  This is the rule of BLASTZ and LASTZ but for the order of the cells: they go by rows, and
know a better best score in some cells and a worse one in others.

Source: S. Schwartz et al., Human-mouse alignments with BLASTZ, Genome Research 13, 2003; Z. Zhang et al., Alignments without
low-scoring regions, J Comput Biol 5, 1998.
"""

from __future__ import annotations

import numpy as np

from bellapy.params.wga import GapScores
from bellapy.records.genomes import PAIR, QUERY_ALONE, TARGET_ALONE

KINDS = 5
"""Codes of bases that the matrix knows: A, C, G, T, unknown."""

CHUNK = 256
"""Anti-diagonals after which scores are taken relative to the best one again, and the bases are staged again."""

__all__ = ["PAIR", "QUERY_ALONE", "TARGET_ALONE"]

MOST16 = (1 << 15) - 1
DEAD16, DEAD32 = -28_000, -(1 << 28)
"""Minus infinity in 16 and in 32 bits: neither a chunk of rises nor the costs of a gap wrap around from it."""


def cell_type(scores: GapScores, ydrop: int) -> type:
    """The narrowest type that holds the scores of a chunk: int16, or int32 for large drops or scores."""
    most = int(np.abs(scores.matrix).max())
    rise = (CHUNK // 2 + 1) * (most + 2 * scores.extend)  # what a chunk may add to the best score, tilted (row.py)
    fits = ydrop + most + scores.extend < -DEAD16 and rise < MOST16 and scores.open + scores.extend + most < DEAD16 + MOST16
    return np.int16 if fits else np.int32


def dead_of(kind: type) -> int:
    """Minus infinity of a type of cells."""
    return DEAD16 if kind == np.int16 else DEAD32
