"""Depth and the share of correct k-mers, from what all reads show of the pieces of some (coverage.py, points 3 and 4)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bellapy.compute.mapped import let_go
from bellapy.compute.threads import even_ranges, map_threads
from bellapy.jobs.overlap.coverage import MOST_PIECES, Pieces, Table, make_table, see_pieces, see_pieces_by
from bellapy.records import ReadSet
from bellapy.seeding.kmer_hashes import make_stretch

N_PIECES, LEAST_PIECES = 64, 16
NEAR = 2.0  # counts are near each other up to this factor
SPREAD, LEAST_SPREAD = 2.0, 1 / 3  # they are as far from their median as Poisson's spread allows, or uneven sequencing
LEAST_SHARE = 0.05  # of the k-mers that a piece usually shares with a read that covers it
TELLING = 3  # reads that share most with a piece: the last of them tells what is usual
RANGES = 64  # of reads, for each thread
FEW_THREADS = 8  # are enough where the k-mers are found already

ALL_READS = slice(None)
Finder = Callable[[Table], np.ndarray | None]


class Measured(NamedTuple):
    """What the pieces tell.

    depth : reads that cover a base, for most bases.  spread : standard error of that.
    correct : share of the k-mers without errors.
    """

    depth: float
    spread: float
    correct: float


def measure_depth(
    reads: ReadSet, k: int, one_in: int, threads: int = 1, find: Finder | None = None, sampled: slice = ALL_READS
) -> Measured | None:
    """Depth and share of correct k-mers; None where the reads are too few or too bad to tell.

    k : of k-mers that are rarely shared by chance.  one_in : keep one in so many of them, where reads share many.
    find : finds the table's k-mers in all reads, as `see_pieces_by` takes them; without it, or where it gives None, the
        CPU does.
    sampled : the reads that pieces are taken from.
    """
    ids = np.arange(len(reads))[sampled]
    long_enough = ids[reads.lengths[ids] >= np.median(reads.lengths[ids])] if len(ids) else ids
    chosen = long_enough[:N_PIECES]
    if len(chosen) < LEAST_PIECES or reads.lengths[chosen].min() < k:
        return None
    table, pieces, enough = make_table(reads, chosen, k, one_in)
    piece, shared, bases = _see(reads, table, pieces, threads, find(table) if find else None).T
    share = shared / (bases * (pieces.kept / pieces.sizes)[piece])
    sure = share >= LEAST_SHARE * _usual_share(piece, share)
    counts = np.bincount(piece[sure], minlength=len(chosen))
    usual = usual_pieces(counts[enough])
    if usual is None:
        return None
    covering, rows = counts[enough][usual], sure & np.isin(piece, np.flatnonzero(enough)[usual])
    return Measured(
        float(covering.mean()),
        float(covering.std() / math.sqrt(len(covering))),
        math.sqrt(min(1.0, float(np.median(share[rows])))),
    )


def _usual_share(piece: np.ndarray, share: np.ndarray) -> float:
    """The share of a piece's k-mers that a read which covers it shows, for most pieces: repeats show less.

    piece, share : (n,) of all reads that seem to cover pieces, the piece and its share.
    """
    order = np.lexsort((-share, piece))
    first = np.flatnonzero(np.diff(piece[order], prepend=-1))
    sizes = np.diff(np.append(first, len(piece)))
    return float(np.median(share[order][first + np.minimum(sizes, TELLING) - 1])) if len(first) else 0.0


def _see(reads: ReadSet, table: Table, pieces: Pieces, threads: int, found: np.ndarray | None) -> np.ndarray:
    """What all reads show of the pieces, (n, 3) int64, as `see_pieces` gives it; found : as in `see_pieces_by`."""
    ends = np.append(reads.starts, len(reads.codes)).astype(np.uint64)
    edges = np.zeros(0, np.int64) if found is None else np.searchsorted(found[1] >> np.uint64(1), ends)

    def see(part: tuple[int, int]) -> np.ndarray:
        if found is None:
            seen = see_pieces(reads.codes, reads.starts, reads.lengths, *part, table, pieces, make_stretch())
            let_go(reads.codes)
            return seen
        hits = np.empty((2, MOST_PIECES * int(np.diff(edges).max(initial=0))), np.uint64)
        scratch = (*hits, np.empty(2 * len(pieces.own), np.int64))
        return see_pieces_by(found, edges, reads.starts, reads.lengths, *part, table, pieces, scratch)

    parts = even_ranges(len(reads), RANGES * threads if found is None else min(threads, FEW_THREADS))
    return np.concatenate([np.zeros(0, np.int64), *map_threads(see, parts, threads)]).reshape(-1, 3)


def usual_pieces(counts: np.ndarray) -> np.ndarray | None:
    """Mask of the counts around the one that has most others near it, without those of two copies and more.

    None for too few, or where most are 0.
    """
    if len(counts) < LEAST_PIECES or not np.median(counts):
        return None
    levels = np.unique(counts[counts > 0])
    near = (counts >= levels[:, None] / NEAR) & (counts <= levels[:, None] * NEAR)
    most = np.flatnonzero(near.sum(axis=1) == near.sum(axis=1).max())
    usual = near[most[len(most) // 2]]
    middle = np.median(counts[usual])
    return usual & (np.abs(counts - middle) <= max(SPREAD * math.sqrt(middle), LEAST_SPREAD * middle))
