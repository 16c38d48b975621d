"""A job cut into rounds of tasks, and what all tasks of a round tell together.

A task is a function of records that rounds before its own left (store.py), and makes one.  What is learnt from all tasks of
a round is made once, between rounds.  In memory there is one task in each round; in a folder (`--workdir`) there are many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from bellapy.compute.resources import Resources
from bellapy.jobs.overlap.depth import LEAST_PIECES
from bellapy.jobs.overlap.store import Kind, Result, Store
from bellapy.params import Params
from bellapy.params.overlap import SHORT_READS, SHORTEST_OVERLAP
from bellapy.records import Estimate, Overlaps, ReadSet, Seeds
from bellapy.records.bases import PAD, UNKNOWN
from bellapy.report.run_report import RunReport

SomeSeeds = TypeVar("SomeSeeds", Seeds, Overlaps)
PARTS, TILES = "parts", "tiles"
ESTIMATE = Result("estimate", Estimate)
"""What the reads say about themselves."""


class Plan(NamedTuple):
    """How a job is cut.  Reads lie in blocks, k-mers in parts; a tile is a block of queries and a later or equal one of
    targets.

    first_reads : (n_blocks + 1,) int64, the first read of every block, and the number of reads.
    n_parts : of the k-mers.
    n_query_blocks : the first so many blocks hold queries, the others their targets; None: every read is both.
    """

    first_reads: np.ndarray
    n_parts: int
    n_query_blocks: int | None = None

    @classmethod
    def whole(cls, n_reads: int, n_queries: int | None = None) -> Plan:
        """One tile, one part; n_queries : the first so many reads are queries, the others targets."""
        if n_queries is None:
            return cls(np.array([0, n_reads]), 1)
        return cls(np.array([0, n_queries, n_reads]), 1, 1)

    @property
    def n_blocks(self) -> int:
        return len(self.first_reads) - 1

    @property
    def tiles(self) -> list[tuple[int, int]]:
        """The block of queries and that of targets of every tile."""
        n, n_queries = self.n_blocks, self.n_query_blocks
        if n_queries is not None:
            return [(i, j) for i in range(n_queries) for j in range(n_queries, n)]
        return [(i, j) for i in range(n) for j in range(i, n)]

    def reads_of(self, tile: int) -> np.ndarray:
        """The reads of a tile, (n,) int64: those of its first block, then those of its second one."""
        i, j = self.tiles[tile]
        first = self.first_reads
        return np.concatenate([np.arange(first[b], first[b + 1]) for b in ((i,) if i == j else (i, j))])


class Reads(Protocol):
    """Where reads come from, in canonical order."""

    lengths: np.ndarray
    """(n_reads,) int32."""

    def all(self) -> ReadSet:
        """All of them, of which not all bases should be looked at both ways."""

    def of(self, ids: np.ndarray) -> ReadSet:
        """Some reads, given by their ids in ascending order, or all."""


class HeldReads:
    """Reads in memory."""

    def __init__(self, reads: ReadSet):
        self.lengths, self._reads = reads.lengths, reads

    def all(self) -> ReadSet:
        """All of them."""
        return self._reads

    def of(self, ids: np.ndarray) -> ReadSet:
        """All of them: they are here."""
        return self._reads


def n50(lengths: np.ndarray) -> int:
    """Reads of this length and longer hold half of all bases."""
    longest_first = np.sort(lengths)[::-1]
    reached = np.cumsum(longest_first, dtype=np.int64)
    return int(longest_first[np.searchsorted(reached, reached[-1] / 2)]) if len(lengths) else 0


def choose_min_overlap(lengths: np.ndarray) -> int:
    """The shortest overlap, in bases: SHORTEST_OVERLAP, or a share of the N50 where that is less.

    Reads of a kilobase share more than SHORTEST_OVERLAP bases with few others.
    """
    return max(1, min(SHORTEST_OVERLAP, n50(lengths) // SHORT_READS))


def with_min_overlap(params: Params, lengths: np.ndarray) -> Params:
    """The parameters with the shortest overlap, given or chosen; lengths : (n_reads,) int32, of all reads."""
    least = params.filter.min_overlap or choose_min_overlap(lengths)
    return replace(params, seeds=params.seeds._replace(min_overlap=least), filter=replace(params.filter, min_overlap=least))


@dataclass
class Work:
    """A job: parameters, reads, how it is cut, results, and where it tells what it did.

    n_queries : the first so many reads are queries, the others their targets; None: every read is both.
    copies : k-mers that the genome has up to so many times link reads.
    """

    params: Params
    reads: Reads
    plan: Plan
    store: Store
    report: RunReport = field(default_factory=RunReport)
    n_queries: int | None = None
    copies: int = 1

    @property
    def is_whole(self) -> bool:
        """Whether there is one tile, of all reads with each other."""
        return self.plan.n_blocks == 1

    @cached_property
    def resources(self) -> Resources:
        """What engines may use."""
        return Resources.of(self.params.run, self.report.devices)

    @cached_property
    def rules(self) -> Params:
        """The parameters with the shortest overlap that suits the reads."""
        return with_min_overlap(self.params, self.reads.lengths)

    @property
    def sampled(self) -> slice:
        """The reads along which depth is measured: all, or the queries or targets alone, whichever have fewer bases.

        All overlaps lie on these, while much of the others may lie elsewhere.  Where these are few, the others have to do.
        """
        if self.n_queries is None:
            return slice(None)
        sets = slice(0, self.n_queries), slice(self.n_queries, None)
        enough = [some for some in sets if len(self.reads.lengths[some]) >= 2 * LEAST_PIECES]
        return min(enough or sets, key=lambda some: int(self.reads.lengths[some].sum(dtype=np.int64)))

    @property
    def estimate(self) -> Estimate:
        """What the reads say about themselves."""
        return self.store.get(ESTIMATE)

    def n_tasks(self, over: str) -> int:
        """How many tasks a round has; over : as in Result."""
        return self.plan.n_parts if over == PARTS else len(self.plan.tiles)

    def ids(self, tile: int) -> np.ndarray:
        """The reads of a tile among all, (n,) int64."""
        return self.plan.reads_of(tile)

    def lengths(self, tile: int) -> np.ndarray:
        """Their lengths, (n,) int32."""
        return self.reads.lengths if self.is_whole else self.reads.lengths[self.ids(tile)]

    def without_bases(self, tile: int) -> ReadSet:
        """The reads of a tile, of which only the lengths are known."""
        if self.is_whole:
            return self.reads.all()
        lengths = self.lengths(tile)
        return ReadSet(("",) * len(lengths), np.full(PAD, UNKNOWN, np.uint8), np.zeros(len(lengths), np.int64), lengths)

    def get(self, result: Result[Kind], task: int | None = None) -> Kind:
        """A record that a task left, or that was learnt from all."""
        return self.store.get(result, task)

    def pop(self, result: Result[Kind], task: int | None = None) -> Kind:
        """The same, which nobody needs afterwards."""
        return self.store.pop(result, task)

    def arrays(self, result: Result, *names: str) -> Iterator[list[np.ndarray]]:
        """Some arrays of what all tasks left, one task after the other."""
        return (self.store.arrays(result, names, task) for task in range(self.n_tasks(result.over)))

    def joined(self, result: Result, *names: str) -> list[np.ndarray]:
        """Some arrays of all tasks, end to end."""
        columns = zip(*self.arrays(result, *names), strict=True)
        return [parts[0] if len(parts) == 1 else np.concatenate(parts) for parts in columns]

    def summed(self, result: Result, *names: str) -> list[np.ndarray]:
        """Sums over all tiles of arrays with a value for each read."""
        totals = [np.zeros(len(self.reads.lengths), np.int64) for _ in names]
        for tile, values in enumerate(self.arrays(result, *names)):
            for total, value in zip(totals, values, strict=True):
                total[self.ids(tile)] += value
        return totals

    def total(self, result: Result, name: str) -> int:
        """The sum of a number that every task tells."""
        return sum(self.store.told(result, task)[name] for task in range(self.n_tasks(result.over)))

    def dropped(self, result: Result) -> dict[str, int]:
        """What all tasks dropped, by reason."""
        total: dict[str, int] = {}
        for task in range(self.n_tasks(result.over)):
            for reason, n in self.store.told(result, task)["dropped"].items():
                total[reason] = total.get(reason, 0) + n
        return total


def with_ids(seeds: SomeSeeds, ids: np.ndarray) -> SomeSeeds:
    """Seeds or overlaps with other ids of reads; ids : (n_reads,), the new one of each."""
    ids = ids.astype(np.int32)
    return replace(seeds, query_id=ids[seeds.query_id], target_id=ids[seeds.target_id])


@dataclass(frozen=True)
class Round(Generic[Kind]):
    """Tasks that do not need each other.

    result : what each leaves.  task : makes the record of one of them.
    spends : what nobody needs when this round is done.
    """

    result: Result[Kind]
    task: Callable[[Work, int], Kind]
    spends: Sequence[Result] = ()

    @property
    def name(self) -> str:
        """As in plans, and of files."""
        return self.result.name

    def do(self, work: Work, index: int) -> None:
        """Do one task, and keep what it leaves."""
        work.store.put(self.result, self.task(work, index), index)


@dataclass(frozen=True)
class Learn(Generic[Kind]):
    """What is made of what all tasks of the rounds before left, and known to all that follow."""

    result: Result[Kind]
    make: Callable[[Work], Kind]

    def do(self, work: Work) -> None:
        """Make it, unless it is there."""
        if not work.store.has(self.result):
            work.store.once(self.result, lambda: self.make(work))


Flow = Sequence[Round | Learn]
"""Rounds in order, and what is learnt between them."""
Launch = Callable[[Work, Round], None]
"""Does all tasks of a round."""


def launch_here(work: Work, its_round: Round) -> None:
    """Do all tasks in this process, one after the other."""
    for index in range(work.n_tasks(its_round.result.over)):
        its_round.do(work, index)
