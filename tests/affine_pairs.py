"""Pairs of sequences as the affine engine takes them, and the paths that it gives."""

from __future__ import annotations

import numpy as np

from bellapy.engines.affine.pieces import Pieces
from bellapy.records.bases import encode


def pieces_of(pairs: list[tuple[str, str]], mode: int, step: int = 1) -> tuple[np.ndarray, np.ndarray, Pieces]:
    """Pairs end to end; with a step of -1 they stand backwards and are read from their last base."""
    sides = []
    for side in (0, 1):
        lengths = np.array([len(pair[side]) for pair in pairs], np.int64)
        at = np.cumsum(lengths) - lengths
        codes = encode("".join(pair[side][::step] for pair in pairs))
        sides.append((codes, at if step > 0 else at + lengths - 1, lengths))
    (queries, q_at, q_len), (targets, t_at, t_len) = sides
    ones = np.ones(len(pairs), np.int64)
    return queries, targets, Pieces(q_at, q_len, t_at, t_len, step * ones, mode * ones)


def runs_of(solved, p: int) -> list[tuple[str, int]]:
    runs = solved.runs[solved.starts[p] : solved.starts[p] + solved.counts[p]][::-1]
    return [("MID"[x & 15], int(x) >> 4) for x in runs]
