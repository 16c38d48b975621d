"""The job in a folder (`--workdir`): cut into tiles, each a function of files, done by any number of processes.

The process that begins the job reads the reads, makes the plan and hands out tasks, round by round.  Tasks are numbered
through all rounds, so that arrays of a batch system can do them as well (`bellapy run-tile`).  The last step puts the
overlaps in order and writes them.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from bellapy.compute.memory import PROGRAM, RESERVE, Budget, expect, resident
from bellapy.errors import InputError, ParameterError
from bellapy.io.workdir import Workdir, join_workdir, open_workdir
from bellapy.jobs.overlap.blocks import SETTINGS, Settings
from bellapy.jobs.overlap.canonical import given_overlaps
from bellapy.jobs.overlap.counting import needs_all_reads
from bellapy.jobs.overlap.filter import OVERLAPS, SELECTED, overlaps_of
from bellapy.jobs.overlap.pipeline import ESTIMATING, find_overlaps, flow_of, follow, for_paths, with_device
from bellapy.jobs.overlap.report import start_report
from bellapy.jobs.overlap.store import Done, FolderStore, Result, done
from bellapy.jobs.overlap.stored_reads import SomeOverlaps, StoredReads, even_blocks, store_reads
from bellapy.jobs.overlap.work import TILES, Flow, Plan, Round, Work, launch_here
from bellapy.params import ExtensionParams, FilterParams, KmerParams, Params, SeedParams, make_params
from bellapy.params.reads import ReadParams
from bellapy.params.run import RunParams
from bellapy.records import Estimate, Overlaps, join_overlaps
from bellapy.report.log import logger, quietly
from bellapy.report.run_report import RunReport
from bellapy.runs.launch import Here, Launcher

KIND = "overlap"
USUAL_MEMORY = 4 * 10**9  # of a process, where no bound is given
LEAST_ROOM = 16 << 20  # of a tile: smaller ones would be very many
PART_BYTES, FEW_PARTS = 1 << 28, 8  # words of k-mers of a part; every part goes through all reads once more
PART_ROOM = 1.1  # of what the words of a part take: scratch, the depth profile
BOTH_WAYS_BYTES = 2.95  # of a tile that is aligned, for each base of its blocks
PLACE_BYTES = 10  # of the matrix of a tile while it is joined, for each place of a k-mer
PAIR_BYTES = 300  # of a seed and its alignment
PATHS_BASES, PATHS_BYTES = 1 << 26, 4  # of reads while their paths are traced; in both directions, and as much for paths
CHANCE = 2  # places of k-mers for each that is correct: others match by chance
DISK_BYTES = 8  # for each base and k-mer that is counted: the reads, entries of the matrix, seeds
CPU_SECONDS = 2.5e-7  # for each base, of reads with 15 % errors; repeats take more, accurate reads less
TOLD_EVERY = 60  # seconds
WARM_BASES, WARM_READ, WARM_READS = 20_000, 3000, 100


@dataclass(frozen=True)
class Placed:
    """The overlaps of a tile as the input has the reads, by ranges of queries."""

    ranges: tuple[Overlaps, ...]


PLAN = Result("plan", Plan)
PLACED = Result("placed", Placed, TILES)


class Asked(NamedTuple):
    """What rules the results of a job, besides its input.

    paths : whether base-level paths will be made.  targets : whether the last file holds targets of the other reads.
    """

    params: Params
    skip_alignment: bool
    paths: bool
    targets: bool = False

    def to_json(self) -> dict[str, object]:
        """As the journal holds it: how the work is done does not matter."""
        params: dict[str, object] = self.params.to_dict()
        del params["run"]
        return {**params, "skip_alignment": self.skip_alignment, "paths": self.paths, "targets": self.targets}

    @classmethod
    def of(cls, options: Mapping[str, Any], run: RunParams) -> Asked:
        """The inverse."""
        groups = {
            "reads": ReadParams, "kmers": KmerParams, "seeds": SeedParams, "extension": ExtensionParams,
            "filter": FilterParams,
        }  # fmt: skip
        made = {name: group(**options[name]) for name, group in groups.items()}
        return cls(Params(**made, run=run), *(options[name] for name in cls._fields[1:]))

    @property
    def flow(self) -> Flow:
        """All rounds of the job, in order, and what is learnt between them."""
        return (*flow_of(self.skip_alignment), PLACING)

    @property
    def rounds(self) -> list[Round]:
        """The rounds alone."""
        return [step for step in self.flow if isinstance(step, Round)]


class FolderWork(Work):
    """A job in a folder."""

    asked: Asked
    folder: Workdir

    @classmethod
    def of(cls, folder: Workdir, asked: Asked, report: RunReport | None = None) -> FolderWork:
        """The job, of which reads, settings and plan are in the folder."""
        store, reads = FolderStore(folder), StoredReads(folder)
        plan = store.get(PLAN) if store.has(PLAN) else Plan.whole(0)
        report = report or start_report(RunReport())
        work = cls(for_paths(asked.params, asked.paths), reads, plan, store, report, reads.n_queries)
        work.asked, work.folder = asked, folder
        return work

    @cached_property
    def stored(self) -> StoredReads:
        """The reads."""
        assert isinstance(self.reads, StoredReads)
        return self.reads

    @property
    def n_bases(self) -> int:
        """Bases of all reads."""
        return int(self.reads.lengths.sum(dtype=np.int64))

    def first_tasks(self) -> list[tuple[Round, int, int]]:
        """All rounds, the number of their first task, and how many tasks they have."""
        found, first = [], 0
        for its_round in self.asked.rounds:
            n = self.n_tasks(its_round.result.over)
            found.append((its_round, first, n))
            first += n
        return found

    def do(self, number: int) -> None:
        """Do a task, unless it is done already, and before it learn what it has to know."""
        self.check_tasks(number)
        its_round, first = next((its, first) for its, first, n in self.first_tasks() if number < first + n)
        if self.store.has(its_round.result, number - first):
            return
        for step in self.asked.flow[: self.asked.flow.index(its_round)]:
            if not isinstance(step, Round):
                step.do(self)
        its_round.do(self, number - first)

    def check_tasks(self, first: int, count: int = 1) -> None:
        """Raise ParameterError unless there are all of `count` tasks, from `first` on."""
        if count < 1:
            raise ParameterError(f"--count {count}: must be 1 or more")
        _, last_first, n = self.first_tasks()[-1]
        wrong = first if first < 0 else first + count - 1
        if not 0 <= wrong < last_first + n:
            raise ParameterError(f"there is no task {wrong}; the last one is {last_first + n - 1}")


# ---------------------------------------------------------------- the plan


def begin(
    folder: Workdir, paths: Sequence[str], asked: Asked, report: RunReport, n_blocks: int | None,
    progress: Callable[[int, int], None] | None = None,
) -> FolderWork:  # fmt: skip
    """Read the reads, choose settings and plan, unless that was done."""
    store_reads(folder, paths, progress, asked.params.run.threads, asked.params.reads, targets=asked.targets)
    lengths = StoredReads(folder).lengths
    expect(resident(), len(lengths), int(lengths.sum(dtype=np.int64)), in_tiles=True)
    work = FolderWork.of(folder, asked, report)
    if not work.store.has(PLAN):
        follow(work, ESTIMATING, launch_here)
        known = work.estimate, work.get(SETTINGS)
        work.store.put(PLAN, choose_plan(work.reads.lengths, *known, asked.params, n_blocks, work.n_queries))
    work = FolderWork.of(folder, asked, report)
    if n_blocks not in (None, work.plan.n_blocks):
        why = "the folder was begun so, or there are too few reads"
        logger.info("the reads lie in %d blocks, not in %d: %s", work.plan.n_blocks, n_blocks, why)
    return work


def choose_plan(
    lengths: np.ndarray, estimate: Estimate, settings: Settings, params: Params, n_blocks: int | None = None,
    n_queries: int | None = None,
) -> Plan:  # fmt: skip
    """Blocks and parts with which a process holds no more than --max-memory, or USUAL_MEMORY.

    n_blocks : None: by memory.  n_queries : as in Work.
    """
    n_bases = int(lengths.sum(dtype=np.int64))
    room = max(LEAST_ROOM, (params.run.max_memory or USUAL_MEMORY) - PROGRAM - RESERVE)
    if n_blocks is None:
        n_blocks = 1 if n_queries is None else 2
        while n_blocks < len(lengths) and tile_bytes(lengths, estimate, settings, n_blocks) > room:
            n_blocks += 1
    first_reads, n_query_blocks = _cut(lengths, n_blocks, n_queries)
    words = 8 * n_bases // settings.one_in
    n_parts = max(min(FEW_PARTS, -(-words // PART_BYTES)), math.ceil(PART_ROOM * words / room), 1)
    return Plan(first_reads, 1 if needs_all_reads(params.kmers) else n_parts, n_query_blocks)


def _cut(lengths: np.ndarray, n_blocks: int, n_queries: int | None) -> tuple[np.ndarray, int | None]:
    """The columns first_reads and n_query_blocks of Plan, for about so many blocks of about equal bases."""
    if n_queries is None:
        first_reads = np.unique(even_blocks(lengths, max(1, n_blocks)))
        return first_reads if len(first_reads) > 1 else np.array([0, len(lengths)]), None
    share = lengths[:n_queries].sum(dtype=np.int64) / max(1, lengths.sum(dtype=np.int64))
    n_first = min(max(1, round(n_blocks * share)), max(1, n_blocks - 1))
    of_targets = n_queries + even_blocks(lengths[n_queries:], max(1, n_blocks - n_first))
    first_reads = np.unique(np.concatenate((even_blocks(lengths[:n_queries], n_first), of_targets)))
    return first_reads, int(np.searchsorted(first_reads, n_queries))


def tile_bytes(lengths: np.ndarray, estimate: Estimate, settings: Settings, n_blocks: int) -> float:
    """What a tile of so many blocks takes, beside the program."""
    share = min(1.0, 2.0 / n_blocks)
    right = (1 - (estimate.error_rate or 0)) ** settings.k
    places = min(1, CHANCE * right) / settings.one_in
    pairs = len(lengths) * (estimate.depth or 0) * share / n_blocks
    return max(BOTH_WAYS_BYTES, PLACE_BYTES * places) * share * int(lengths.sum(dtype=np.int64)) + PAIR_BYTES * pairs


def join(folder: str, run: RunParams) -> FolderWork:
    """A job that another process has begun; InputError where there is none, or it is not that far."""
    joined = join_workdir(folder, KIND)
    if not FolderStore(joined).has(PLAN):
        raise InputError(folder, "the job has no plan yet; run `bellapy plan` to the end first")
    return FolderWork.of(joined, Asked.of(joined.journal["options"], run))


# ---------------------------------------------------------------- rounds


def run_rounds(work: FolderWork, launcher: Launcher) -> None:
    """Do all tasks that are not done, and keep what they tell."""
    firsts = {its_round.name: (first, n) for its_round, first, n in work.first_tasks()}

    def launch(_: Work, its_round: Round) -> None:
        names = work.folder.names()
        if done(its_round.result).name in names:
            return
        first, n = firsts[its_round.name]
        todo = [first + index for index in range(n) if f"{its_round.name}.{index}" not in names]
        progress = _Progress(work, its_round, n, n - len(todo))
        for _number in launcher.run(todo):
            progress.advance()
        told = [dict(work.store.told(its_round.result, index)) for index in range(n)]
        work.store.put(done(its_round.result), Done(told))
        for spent in its_round.spends:  # what it tells is kept
            for index in range(work.n_tasks(spent.over)):
                work.folder.remove(spent.of(index))

    find_overlaps(work, launch, skip_alignment=work.asked.skip_alignment)
    launch(work, PLACING)


def missing(work: FolderWork) -> None:
    """Raise InputError unless all tasks are done."""
    names = work.folder.names()
    for its_round, first, n in work.first_tasks():
        left = [first + index for index in range(n) if f"{its_round.name}.{index}" not in names]
        if left and done(its_round.result).name not in names:
            which = f"task {left[0]} is" if len(left) == 1 else f"{len(left):,} tasks, of which {left[0]} is the first, are"
            problem = f"{which} not done yet (round {its_round.name}). Do all tasks with `bellapy run-tile`."
            raise InputError(work.folder.folder, problem)


def describe_plan(work: FolderWork) -> str:
    """What the plan is, for people and for scripts: a table of rounds behind lines of comments."""
    lengths, plan, n_bases = work.reads.lengths, work.plan, work.n_bases
    block = max(
        int(lengths[a:b].sum(dtype=np.int64)) for a, b in zip(plan.first_reads[:-1], plan.first_reads[1:], strict=True)
    )
    settings = work.get(SETTINGS)
    counted = n_bases / settings.one_in
    part = PART_ROOM * 8 * counted / plan.n_parts
    memory = PROGRAM + RESERVE + max(tile_bytes(lengths, work.estimate, settings, plan.n_blocks), part)
    disk = n_bases + DISK_BYTES * counted
    lines = [
        f"# reads: {len(lengths):,}, {n_bases:,} bases",
        f"# blocks of reads: {plan.n_blocks}, of up to {block:,} bases; tiles: {len(plan.tiles)}",
        f"# parts of k-mers: {plan.n_parts}",
        f"# memory of a process: about {memory / 1e6:,.0f} MB; disk: about {disk / 1e6:,.0f} MB",
        f"# work: about {n_bases * CPU_SECONDS / 3600 + 0.05:.1f} core hours",
        "# round\tfirst task\ttasks",
    ]
    lines += [f"{its_round.name}\t{first}\t{n}" for its_round, first, n in work.first_tasks()]
    return "\n".join(lines) + "\n"


class _Progress:
    """How far a round is, told once a minute."""

    def __init__(self, work: FolderWork, its_round: Round, n: int, n_done: int):
        self._name, self._n, self._done, self._before = its_round.name, n, n_done, n_done
        rounds = [r.name for r in work.asked.rounds]
        self._where = f"round {rounds.index(its_round.name) + 1} of {len(rounds)}"
        self._started = self._told = time.monotonic()

    def advance(self) -> None:
        """One more task is done."""
        self._done += 1
        now = time.monotonic()
        if now - self._told >= TOLD_EVERY:
            self._told = now
            left = (now - self._started) / (self._done - self._before) * (self._n - self._done)
            logger.info(
                "%s, %s: %d of %d tasks, about %.0f min left in it", self._where, self._name, self._done, self._n, left / 60
            )


# ---------------------------------------------------------------- in order


def place(work: Work, tile: int) -> Placed:
    """The overlaps of a tile as the input has the reads, by ranges of queries."""
    assert isinstance(work, FolderWork)
    overlaps = given_overlaps(overlaps_of(work, tile), work.reads.lengths, work.stored.order)
    borders = np.searchsorted(overlaps.query_id, _ranges(work))
    rows = zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True)
    return Placed(tuple(overlaps.take(slice(a, b)) for a, b in rows))


PLACING = Round(PLACED, place, spends=(OVERLAPS,))


def _ranges(work: Work) -> np.ndarray:
    """Where ranges of queries begin and end, in the order of the input."""
    return np.linspace(0, len(work.reads.lengths), work.plan.n_blocks + 1).astype(np.int64)


def placed(work: FolderWork) -> Iterator[Overlaps]:
    """All overlaps in order, some at a time."""
    for i in range(work.plan.n_blocks):
        parts = [work.get(PLACED.only(f"ranges.{i}", Overlaps), tile) for tile in range(len(work.plan.tiles))]
        found = join_overlaps(parts)
        yield found.take(
            np.lexsort((found.strand, found.target_id, found.query_id))
        )  # stable: those of a pair stay in order


def n_placed(work: FolderWork) -> int:
    """How many overlaps there are."""
    return work.get(SELECTED).n_overlaps


def placed_with_reads(work: FolderWork, budget: Budget) -> Iterator[SomeOverlaps]:
    """As `placed`, with the reads of the overlaps."""
    longest = int(work.reads.lengths.max(initial=1))
    for overlaps in placed(work):
        room = budget.items("paths, with the reads of some overlaps,", PATHS_BYTES, least=2 * longest, most=PATHS_BASES)
        yield from work.stored.with_reads(overlaps, max(room, 2 * longest), work.params.run.threads)


# ---------------------------------------------------------------- workers


@lru_cache(maxsize=1)
def _joined(folder: str) -> FolderWork:
    return join(folder, RunParams(threads=1, device="auto"))


def do_task(folder: str, number: int) -> None:
    """Do a task of a folder, in a process that may do others too."""
    _joined(folder).do(number)


def warm_up() -> None:
    """Load, the first time compile, what tasks need: a small job in tiles."""
    rng = np.random.default_rng(1)
    genome = rng.choice(np.frombuffer(b"ACGT", np.uint8), WARM_BASES).tobytes().decode()
    starts = rng.integers(0, WARM_BASES - WARM_READ, WARM_READS)
    params = with_device(make_params(threads=1))
    with tempfile.TemporaryDirectory(prefix="bellapy-") as place:
        path = f"{place}/reads.fa"
        with open(path, "w") as stream:
            stream.writelines(f">{i}\n{genome[start : start + WARM_READ]}\n" for i, start in enumerate(starts.tolist()))
        asked = Asked(params, skip_alignment=False, paths=False)
        with quietly(), open_workdir(f"{place}/work", KIND, asked.to_json(), [path]) as folder:
            work = begin(folder, [path], asked, start_report(RunReport()), 2)
            run_rounds(work, Here(work.do))
