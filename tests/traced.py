"""Overlaps around seeds, and their paths from the tables of their flanks."""

from __future__ import annotations

import re

import naive
import numpy as np
from strategies import extend_seeds, make_reads, make_seeds, random_bases

from bellapy.records import Overlaps, ReadSet


def make_overlaps(sequences, seeds, *steps, longest=False) -> tuple[ReadSet, Overlaps]:
    """Every seed's extension as an overlap."""
    reads = make_reads(sequences)
    return reads, as_overlaps(seeds, extend_seeds(reads, seeds, steps, longest=longest))


def as_overlaps(seeds, found) -> Overlaps:
    """Seeds and their extensions."""
    empty = np.zeros(len(seeds), np.int32)
    return Overlaps(
        seeds.query_id, seeds.target_id, seeds.strand, found.query_start, found.query_end, found.target_start,
        found.target_end, found.score, seeds.n_support, empty, empty.copy(), seeds.query_pos, seeds.target_pos,
        np.full(len(seeds), seeds.length, np.int32), found.left_query, found.left_target, found.right_query,
        found.right_target,
    )  # fmt: skip


def around_seeds(rng, pairs: list[tuple[str, str]], k: int = 6):
    """Reads around seeds, on both strands: a pair of sequences to the left of each seed, the next one to its right."""
    sequences, places = [], []
    for i in range(0, len(pairs), 2):
        left, right = pairs[i], pairs[i + 1] if i + 1 < len(pairs) else ("", "")
        seed, strand = random_bases(rng, k), int(rng.choice([1, -1]))
        query, target = (left[side][::-1] + seed + right[side] for side in range(2))
        at = len(left[1])
        if strand < 0:
            target, at = naive.reverse_complement(target), len(target) - k - at
        places.append((2 * (i // 2), 2 * (i // 2) + 1, strand, len(left[0]), at))
        sequences += [query, target]
    return sequences, make_seeds(*zip(*places, strict=True), k)


def interval(sequences, overlaps, i: int) -> tuple[str, str]:
    """The aligned bases of query and target along the target's forward strand."""
    query = sequences[overlaps.query_id[i]][overlaps.query_start[i] : overlaps.query_end[i]]
    target = sequences[overlaps.target_id[i]][overlaps.target_start[i] : overlaps.target_end[i]]
    return query if overlaps.strand[i] > 0 else naive.reverse_complement(query), target


def check_counts(path: str, query: str, target: str, paths, i: int) -> None:
    """Numbers of a path against those of its columns."""
    assert len(query), len(target) == (len(path) - path.count("D"), len(path) - path.count("I"))
    same = sum(a == b and a in naive.KNOWN for a, b in pairs_of(path, query, target))
    assert (paths.n_matches[i], paths.n_mismatches[i]) == (same, path.count("M") - same)
    assert paths.n_gap_bases[i] == len(path) - path.count("M")
    assert paths.n_gaps[i] == len(re.findall("I+|D+", path))


def pairs_of(path: str, query: str, target: str):
    q = t = 0
    for step in path:
        if step == "M":
            yield query[q], target[t]
        q, t = q + (step != "D"), t + (step != "I")


def joined(sequences, overlaps, steps, longest, i: int = 0) -> str:
    """The path of one overlap from the tables of its flanks, along the target's forward strand."""
    query, target = sequences[overlaps.query_id[i]], sequences[overlaps.target_id[i]]
    q, t, k, same = int(overlaps.seed_query[i]), int(overlaps.seed_target[i]), int(overlaps.seed_length[i]), True
    if overlaps.strand[i] < 0:
        target, t, same = naive.reverse_complement(target), len(target) - k - t, False
    ends = overlaps.query_start[i], overlaps.query_end[i], overlaps.target_start[i], overlaps.target_end[i]
    start, end, first, last = map(int, ends)
    first, last = (first, last) if same else (len(target) - last, len(target) - first)
    near_left, near_right = map(tuple, overlaps.take(slice(i, i + 1)).turns.tolist())
    left = naive.steps_path(query[:q][::-1], target[:t][::-1], steps, (q - start, t - first), near_left, longest)
    right = naive.steps_path(query[q + k :], target[t + k :], steps, (end - q - k, last - t - k), near_right, longest)
    path = left + "M" * k + right[::-1]
    return path if same else path[::-1]
