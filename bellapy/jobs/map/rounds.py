"""Mapping to an index that does not fit memory: in rounds of many reads, for each of which it is gone through in parts.

A part is a range of hashes, so that each part knows the minimizers of the whole reference: anchors, and what comes of them,
are those of an index in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeVar

import numpy as np

from bellapy.compute.memory import Budget, let_go_of_pages
from bellapy.compute.threads import map_in_order, map_threads
from bellapy.io.fastx import Records
from bellapy.jobs.map.batches import BATCH_BASES, grouped
from bellapy.jobs.map.pipeline import Mapped, Mapper
from bellapy.seeding.anchors import Found, choose_seeds, collect_anchors, find_in_reads, look_up
from bellapy.seeding.index import Lookup

Shown = TypeVar("Shown")
Range = tuple[np.uint64, np.uint64]

BASE_BYTES = 32  # of a round's reads: bases, minimizers, anchors
LEAST_PART = 16 << 20  # bytes of an index that are looked at together


def map_in_rounds(
    mapper: Mapper, stream: Iterable[Records], show: Callable[[list[Mapped]], Shown], threads: int, budget: Budget
) -> Iterator[Shown]:
    """What `show` makes of all reads, in their order.

    Raises
    ------
    MemoryLimitError : there is no room for a small round.
    """
    index = mapper.index
    for array in (index.codes, index.lookup.words, index.lookup.starts):
        let_go_of_pages(array)
    for some in _rounds(stream, budget):
        one = _Round(mapper, some, threads)
        one.find_anchors(budget)
        yield from one.map_parts(show)
        del one
        let_go_of_pages(index.codes)


class _Round:
    """Reads that are mapped together, in parts of about a batch."""

    def __init__(self, mapper: Mapper, batches: list[Records], threads: int):
        self._parts = [part for records in batches for part in mapper.fitting(records)]
        self._mapper, self._threads = mapper, threads
        self._reads = map_threads(mapper.pack, self._parts, threads)
        self._anchors: list[list[np.ndarray]] = [[] for _ in self._parts]

    def find_anchors(self, budget: Budget) -> None:
        """Find the anchors of all parts; minimizers that repeats share are chosen when all are looked up."""
        index, reads, rows = self._mapper.index, self._reads, range(len(self._parts))
        lookup, k = index.lookup, index.k

        def find(x: int) -> Found:
            return find_in_reads(reads[x].codes, reads[x].at, reads[x].lengths, k, index.window)

        found = map_threads(find, rows, self._threads)
        ranges = _ranges(lookup, k, budget)

        def look(x: int, low: np.uint64, high: np.uint64) -> None:
            look_up(lookup, found[x], low, high)

        self._for_parts(look, ranges)

        def choose(x: int) -> None:
            reads[x].repeated[:] = choose_seeds(found[x], reads[x].lengths, k, lookup.cutoff)

        def collect(x: int, low: np.uint64, high: np.uint64) -> None:
            some = collect_anchors(lookup, found[x], reads[x].lengths, k, reads[x].layout, low, high)
            self._anchors[x].append(some)

        map_threads(choose, rows, self._threads)
        self._for_parts(collect, ranges)

    def map_parts(self, show: Callable[[list[Mapped]], Shown]) -> Iterator[Shown]:
        """What `show` makes of each part, in their order; the anchors are used up."""

        def map_part(x: int) -> Shown:
            anchors = np.concatenate(self._anchors[x])
            self._anchors[x].clear()
            return show([self._mapper.map_anchored(self._parts[x], self._reads[x], anchors)])

        yield from map_in_order(map_part, range(len(self._parts)), self._threads)

    def _for_parts(self, use: Callable[..., object], ranges: list[Range]) -> None:
        """Call `use` for all parts of reads with one range of hashes after the other."""
        lookup = self._mapper.index.lookup
        for low, high in ranges:
            map_threads(partial(use, low=low, high=high), range(len(self._parts)), self._threads)
            let_go_of_pages(lookup.words)
            let_go_of_pages(lookup.starts)


def _rounds(stream: Iterable[Records], budget: Budget) -> Iterator[list[Records]]:
    """Batches in groups that fit a third of what is left of the budget."""
    return grouped(stream, lambda: budget.items("a round of reads", 3 * BASE_BYTES, least=BATCH_BASES, most=1 << 30))


def _ranges(lookup: Lookup, k: int, budget: Budget) -> list[Range]:
    """Ranges of hashes whose words take at most half of what is left of the budget."""
    held = max(LEAST_PART, budget.items("a part of the index", 2, least=0, most=lookup.words.nbytes))
    n = max(1, -(-lookup.words.nbytes // held))
    edges = [(1 << 2 * k) * part // n for part in range(n + 1)]
    return [(np.uint64(low), np.uint64(high - 1)) for low, high in zip(edges[:-1], edges[1:], strict=True)]
