"""Pairs of LOGAN's shape: noisy copies of one random read, or, if spurious, of two, with one exact k-mer as seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bellapy.engines.affine.pieces import Pieces
from bellapy.engines.affine.rule import GLOBAL

K, SHORTEST, LONGEST, ERROR = 17, 2500, 7500, 0.15
LETTERS = np.frombuffer(b"ACGT", np.uint8)


def noisy(rng: np.random.Generator, codes: np.ndarray) -> np.ndarray:
    """A copy with half the pairwise error, a third each of substitutions, insertions, deletions."""
    kind = rng.random(len(codes)) * 6 / ERROR
    copy = np.where(kind < 1, (codes + rng.integers(1, 4, len(codes))) % 4, codes)
    copies = np.where(kind < 1, 1, np.where(kind < 2, 0, np.where(kind < 3, 2, 1)))
    copy = np.repeat(copy, copies)
    inserted = np.cumsum(copies)[(kind >= 2) & (kind < 3)] - 1
    copy[inserted] = rng.integers(0, 4, len(inserted))
    return copy.astype(np.uint8)


def random_read(rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 4, int(rng.integers(SHORTEST, LONGEST + 1))).astype(np.uint8)


def make_pairs(task: tuple[int, int, float]) -> list[tuple[np.ndarray, int, np.ndarray, int]]:
    """Pairs of a random generator: query, start of the seed, target, start of the seed."""
    number, n, spurious = task
    rng, pairs = np.random.default_rng(number), []
    for _ in range(n):
        whole, sides = random_read(rng), []
        at = int(rng.integers(0, len(whole) - K + 1))
        seed = whole[at : at + K]
        unrelated = rng.random() < spurious
        for side in range(2):
            if side and unrelated:
                whole = random_read(rng)
                at = int(rng.integers(0, len(whole) - K + 1))
            left, right = noisy(rng, whole[:at]), noisy(rng, whole[at + K :])
            sides += [np.concatenate((left, seed, right)), len(left)]
        pairs.append(tuple(sides))
    return pairs


def lay_out(pairs: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray, Pieces]:
    """Queries and targets end to end, as pieces for the affine engine."""
    sides = []
    for side in (0, 1):
        lengths = np.array([len(pair[side]) for pair in pairs], np.int64)
        sides.append((np.concatenate([pair[side] for pair in pairs]), np.cumsum(lengths) - lengths, lengths))
    (queries, q_at, q_len), (targets, t_at, t_len) = sides
    ones = np.ones(len(pairs), np.int64)
    return queries, targets, Pieces(q_at, q_len, t_at, t_len, ones, GLOBAL * ones)


def write_pairs(pairs, path: Path) -> None:
    """As `bellapy extend` and LOGAN read them."""
    with path.open("wb") as file:
        for query, query_pos, target, target_pos in pairs:
            file.write(b"%b\t%d\t%b\t%d\tn\n" % (LETTERS[query].tobytes(), query_pos, LETTERS[target].tobytes(), target_pos))
