"""Pairs for `bellapy extend`: made, written and read back."""

from __future__ import annotations

import naive
import numpy as np
from strategies import mutate, random_bases


def make_pairs(rng: np.random.Generator, n: int, k: int = 9) -> list[tuple[str, int, str, int, str]]:
    """Noisy copies around a common seed, on both strands; some seeds at an end, some sequences with N."""
    pairs = []
    for i in range(n):
        left, seed, right = (random_bases(rng, int(size)) for size in (rng.integers(0, 90), k, rng.integers(0, 90)))
        sides = []
        for _ in range(2):
            before, after = mutate(rng, left, 0.15), mutate(rng, right, 0.15)
            if i % 5 == 1:
                before = ""
            if i % 7 == 2:
                after = random_bases(rng, int(rng.integers(0, 60)))
            if i % 6 == 3 and after:
                at = int(rng.integers(0, len(after)))
                after = after[:at] + "N" * int(rng.integers(1, 4)) + after[at:]
            sides.append((before + seed + after, len(before)))
        (query, query_pos), (target, target_pos) = sides
        strand = "nc"[i % 2]
        if strand == "c":
            target, target_pos = naive.reverse_complement(target), len(target) - target_pos - k
        pairs.append((query, query_pos, target, target_pos, strand))
    return pairs


def text(pairs) -> bytes:
    return "".join("\t".join(map(str, pair)) + "\n" for pair in pairs).encode()


def rows(out: bytes) -> list[tuple[int, ...]]:
    return [tuple(map(int, line.split("\t"))) for line in out.decode().splitlines()]
