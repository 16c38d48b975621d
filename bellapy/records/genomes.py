"""Genomes and alignments of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bellapy.records.bases import reversed_codes

BETWEEN = 64
"""Unknown bases before, between and behind sequences: no seed reaches across, and no ungapped extension."""

PAIR, QUERY_ALONE, TARGET_ALONE = range(3)
"""Operations of a path, as BAM packs them."""


@dataclass(frozen=True)
class Genome:
    """Sequences as base codes, end to end with BETWEEN unknown bases before, between and behind them.

    names : of the sequences.  codes : (n,) uint8.  masked : (n,) bool, lower case in the file.
    starts, lengths : (n_sequences,) int64, in `codes`.
    """

    names: tuple[str, ...]
    codes: np.ndarray
    masked: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray

    @property
    def n_bases(self) -> int:
        return int(self.lengths.sum())

    def reverse(self) -> Genome:
        """The reverse complement of every sequence, in the order of `names`."""
        codes = reversed_codes(self.codes)
        return Genome(
            self.names, codes, np.ascontiguousarray(self.masked[::-1]),
            len(codes) - self.starts - self.lengths, self.lengths,
        )  # fmt: skip

    def sequence(self, i: int) -> np.ndarray:
        """Codes of one sequence."""
        return self.codes[self.starts[i] : self.starts[i] + self.lengths[i]]

    def owners(self, places: np.ndarray) -> np.ndarray:
        """The sequence that holds each place in `codes`, (n,) int64."""
        order = np.argsort(self.starts)
        return order[np.searchsorted(self.starts[order], places, "right") - 1]


def bases_of(runs: np.ndarray, other_alone: int) -> int:
    """How many bases of a sequence a path has; other_alone : the operation that has none of them."""
    return int(runs[:, 1] @ (runs[:, 0] != other_alone))


class Alignment(NamedTuple):
    """One alignment; positions count from 0 on the sequences, the query's on the strand that is aligned.

    score; target, query : sequences.  strand : 1, or -1 for the query's reverse complement.  t_start, q_start : the first
    pair. runs : (n, 2) int64, operation and length; the first and the last are pairs.
    """

    score: int
    target: int
    query: int
    strand: int
    t_start: int
    q_start: int
    runs: np.ndarray

    @property
    def t_end(self) -> int:
        return self.t_start + bases_of(self.runs, QUERY_ALONE)

    @property
    def q_end(self) -> int:
        return self.q_start + bases_of(self.runs, TARGET_ALONE)

    def behind(self, runs: np.ndarray) -> Alignment:
        """A path without a score that ends where this one begins."""
        t, q = (bases_of(runs, alone) for alone in (QUERY_ALONE, TARGET_ALONE))
        return self._replace(score=0, t_start=self.t_start - t, q_start=self.q_start - q, runs=runs)

    def order(self) -> tuple:
        """By place on the target, then on the query."""
        return self.target, self.t_start, self.query, -self.strand, self.q_start, self.t_end

    def forward(self, length: int) -> tuple[int, int]:
        """Start and end on the query's forward strand; length : of the query."""
        if self.strand > 0:
            return self.q_start, self.q_end
        return length - self.q_end, length - self.q_start

    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Target and query positions of all pairs of bases, (n,) int64 each."""
        operation, size = self.runs[:, 0], self.runs[:, 1]
        t_at = self.t_start + np.cumsum(np.where(operation != QUERY_ALONE, size, 0))
        q_at = self.q_start + np.cumsum(np.where(operation != TARGET_ALONE, size, 0))
        pair = operation == PAIR
        size = size[pair]
        within = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
        return np.repeat(t_at[pair] - size, size) + within, np.repeat(q_at[pair] - size, size) + within


class Fill(NamedTuple):
    """A part of a chain in a net: what best fills a stretch of a target sequence.

    chain : its number, from 1 on.  score : of the part.  pairs : bases that are aligned in it.  strand, query : as in
    `Alignment`.  t, q : first base and the one after the last on both sequences, the query's on its forward strand.
    gaps : of the chain within it, in the order of the target.
    """

    chain: int
    score: int
    pairs: int
    query: int
    strand: int
    t: tuple[int, int]
    q: tuple[int, int]
    gaps: list[Gap]


class Gap(NamedTuple):
    """A gap of a fill, with the fills within it; t, q : as in Fill, without bases on one side at most."""

    t: tuple[int, int]
    q: tuple[int, int]
    fills: list[Fill]
