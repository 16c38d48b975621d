"""A job cut into rounds of tasks, and the results that tasks leave for each other.

A task is a function of results of rounds before its own, and makes one result.  What is learnt from all tasks of a round is
made once, by whoever needs it first.  Results are kept in memory, where there is one task in each round, or in a folder
(`--workdir`), through which any number of processes work together.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from bellapy.compute.resources import Resources
from bellapy.errors import InputError
from bellapy.io.workdir import Workdir
from bellapy.jobs.overlap.estimate import with_min_overlap
from bellapy.jobs.overlap.geometry import Geometry
from bellapy.jobs.overlap.measured import LEAST_PIECES
from bellapy.params import Params
from bellapy.records import Estimate, Extensions, Overlaps, ReadSet, Seeds
from bellapy.records.kmers import Held
from bellapy.report.run_report import RunReport

Result = dict[str, Any]
"""Arrays, records of arrays, lists of either that are meant end to end, what devices hold, and what JSON holds, by name."""

RECORDS: dict[str, type] = {kind.__name__: kind for kind in (Seeds, Extensions, Overlaps, Geometry)}
SomeSeeds = TypeVar("SomeSeeds", Seeds, Overlaps)
ABOUT = "about"
DONE = "done_"
"""Before the name of a round: the result that keeps what its tasks told, when all are done."""


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


class Store(Protocol):
    """Results by name."""

    def get(self, name: str) -> Result:
        """A result, which has to be there."""

    def some(self, name: str, keys: Sequence[str]) -> list[np.ndarray]:
        """Some arrays of a result."""

    def pick(self, name: str, key: str) -> Any:
        """One array or record of a result."""

    def pop(self, name: str) -> Result:
        """A result that nobody needs after this task."""

    def put(self, name: str, result: Result) -> None:
        """Keep a result."""

    def get_or_make(self, name: str, make: Callable[[], Result]) -> Result:
        """A result; if there is none, what `make` makes, which is kept."""

    def metadata(self, name: str) -> Result:
        """What a result holds besides arrays."""


class MemoryStore:
    """Results in memory: those that are taken make room."""

    def __init__(self) -> None:
        self._results: dict[str, Result] = {}
        self._metadata: dict[str, Result] = {}

    def get(self, name: str) -> Result:
        """A result."""
        return self._results[name]

    def some(self, name: str, keys: Sequence[str]) -> list[np.ndarray]:
        """Some arrays of a result."""
        return [self._results[name][key] for key in keys]

    def pick(self, name: str, key: str) -> Any:
        """One array or record of a result."""
        return self._results[name][key]

    def pop(self, name: str) -> Result:
        """A result, which is forgotten."""
        return self._results.pop(name)

    def put(self, name: str, result: Result) -> None:
        """Keep a result."""
        self._results[name] = result
        self._metadata[name] = {key: value for key, value in result.items() if _is_metadata(value)}

    def get_or_make(self, name: str, make: Callable[[], Result]) -> Result:
        """A result that is made the first time."""
        if name not in self._results:
            self.put(name, make())
        return self._results[name]

    def metadata(self, name: str) -> Result:
        """What a result holds besides arrays, also after it was taken."""
        return self._metadata[name]


class FolderStore:
    """Results in files."""

    def __init__(self, folder: Workdir):
        self.folder = folder
        self._known: dict[str, Result] = {}

    def get(self, name: str) -> Result:
        """A result; InputError where it is not there."""
        return from_arrays(self._load(name))

    pop = get

    def some(self, name: str, keys: Sequence[str]) -> list[np.ndarray]:
        """Some arrays of a result, without the others."""
        arrays = self._load(name, keys)
        return [arrays[key] for key in keys]

    def pick(self, name: str, key: str) -> Any:
        """One array or record of a result, without the others."""
        about = json.loads(self._load(name, [ABOUT])[ABOUT].tobytes())
        kinds = {key: about["kinds"][key]}
        arrays = self._load(name, columns_of(key, kinds[key][0]))
        return from_arrays({ABOUT: _as_bytes({"kinds": kinds, "told": {}}), **arrays})[key]

    def _load(self, name: str, only: Sequence[str] = ()) -> dict[str, np.ndarray]:
        if (arrays := self.folder.load(name, only)) is None:
            raise InputError(self.folder.path_of(name), "is not there; run the tasks of the rounds before this one first")
        return arrays

    def put(self, name: str, result: Result) -> None:
        """Keep a result."""
        self.folder.save(name, to_arrays(result))

    def get_or_make(self, name: str, make: Callable[[], Result]) -> Result:
        """A result that is made the first time, in whatever process."""
        if name not in self._known:
            self._known[name] = from_arrays(self.folder.once(name, lambda: to_arrays(make())))
        return self._known[name]

    def metadata(self, name: str) -> Result:
        """What a result holds besides arrays, also after it was removed with all of its round."""
        its_round, index = name.rsplit(".", 1)
        done = f"{DONE}{its_round}"
        if done not in self._known and self.folder.has(done):
            self._known[done] = self.get(done)
        if done in self._known:
            return self._known[done]["tasks"][int(index)]
        return json.loads(self._load(name, [ABOUT])[ABOUT].tobytes())["told"]


def _is_metadata(value: Any) -> bool:
    some = value[0] if isinstance(value, list) and value else value
    return not isinstance(some, (np.ndarray, Held, *RECORDS.values()))


def to_arrays(result: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """A result as arrays by name; lists become one array, or one record."""
    arrays, kinds, told = {}, {}, {}
    for name, value in result.items():
        if _is_metadata(value):
            told[name] = value
            continue
        parts = value if isinstance(value, list) else [value]
        record = RECORDS.get(type(parts[0]).__name__)
        kind = record.__name__ if record else ""
        kinds[name] = [kind, isinstance(value, list)]
        for column in columns_of(name, kind):
            key = column[len(name) + 1 :]
            pieces = [np.asarray(getattr(part, key) if key else part) for part in parts]
            arrays[column] = pieces[0] if len(pieces) == 1 or not pieces[0].ndim else np.concatenate(pieces)
    return {ABOUT: _as_bytes({"kinds": kinds, "told": told}), **arrays}


def columns_of(name: str, record: str) -> list[str]:
    """The names of the arrays that hold a value; record : the name of its kind of record, "" for an array."""
    return [f"{name}.{f.name}" for f in fields(RECORDS[record])] if record else [name]


def _as_bytes(told: Any) -> np.ndarray:
    return np.frombuffer(json.dumps(told).encode(), np.uint8)


def from_arrays(arrays: Mapping[str, np.ndarray]) -> Result:
    """The inverse of `to_arrays`, but that every list has one item."""
    about = json.loads(arrays[ABOUT].tobytes())
    result: Result = dict(about["told"])
    for name, (record, is_list) in about["kinds"].items():
        value: Any = arrays.get(name)
        if record:
            columns = {f.name: arrays[f"{name}.{f.name}"] for f in fields(RECORDS[record])}
            value = RECORDS[record](**{key: x if x.ndim else x.item() for key, x in columns.items()})
        result[name] = [value] if is_list else value
    return result


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

    @cached_property
    def settings(self) -> Result:
        """What was learnt before counting, and chosen by it."""
        return self.store.get("settings")

    @cached_property
    def estimate(self) -> Estimate:
        """What the reads say about themselves."""
        return Estimate(**self.settings["estimate"])

    def n_tasks(self, over: str) -> int:
        """How many tasks a round has; over : "parts" or "tiles"."""
        return self.plan.n_parts if over == "parts" else len(self.plan.tiles)

    def ids(self, tile: int) -> np.ndarray:
        """The reads of a tile among all, (n,) int64."""
        return self.plan.reads_of(tile)

    def lengths(self, tile: int) -> np.ndarray:
        """Their lengths, (n,) int32."""
        return self.reads.lengths if self.is_whole else self.reads.lengths[self.ids(tile)]

    def arrays(self, name: str, *keys: str, over: str = "tiles") -> Iterator[list[np.ndarray]]:
        """Some arrays of the results of all tasks of a round, one task after the other."""
        return (self.store.some(f"{name}.{index}", keys) for index in range(self.n_tasks(over)))

    def joined(self, name: str, *keys: str) -> list[np.ndarray]:
        """Some arrays of all tiles, end to end."""
        columns = zip(*self.arrays(name, *keys), strict=True)
        return [parts[0] if len(parts) == 1 else np.concatenate(parts) for parts in columns]

    def summed(self, name: str, *keys: str) -> list[np.ndarray]:
        """Sums over all tiles of arrays with a value for each read."""
        totals = [np.zeros(len(self.reads.lengths), np.int64) for _ in keys]
        for tile, values in enumerate(self.arrays(name, *keys)):
            for total, value in zip(totals, values, strict=True):
                total[self.ids(tile)] += value
        return totals

    def total(self, name: str, key: str, over: str = "tiles") -> int:
        """The sum of a number that every task of a round tells."""
        return sum(self.store.metadata(f"{name}.{index}")["numbers"][key] for index in range(self.n_tasks(over)))

    def dropped(self, name: str) -> dict[str, int]:
        """What the tasks of a round dropped, by reason."""
        total: dict[str, int] = {}
        for index in range(self.n_tasks("tiles")):
            for reason, n in self.store.metadata(f"{name}.{index}")["dropped"].items():
                total[reason] = total.get(reason, 0) + n
        return total


def with_ids(seeds: SomeSeeds, ids: np.ndarray) -> SomeSeeds:
    """Seeds or overlaps with other ids of reads; ids : (n_reads,), the new one of each."""
    ids = ids.astype(np.int32)
    return replace(seeds, query_id=ids[seeds.query_id], target_id=ids[seeds.target_id])


class Round(NamedTuple):
    """Tasks that do not need each other.

    over : "parts" or "tiles".  task : makes the result of one of them.
    spends : rounds whose results nobody needs when this round is done.
    """

    name: str
    over: str
    task: Callable[[Work, int], Result]
    spends: Sequence[str] = ()


Launch = Callable[[Work, Round], None]
"""Does all tasks of a round."""


def do_one(work: Work, its_round: Round, index: int) -> None:
    """Do one task, and keep its result."""
    work.store.put(f"{its_round.name}.{index}", its_round.task(work, index))


def launch_here(work: Work, its_round: Round) -> None:
    """Do all tasks in this process, one after the other."""
    for index in range(work.n_tasks(its_round.over)):
        do_one(work, its_round, index)
