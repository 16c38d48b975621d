"""Piles of many templates on a GPU, from paths to the judged consensus; only the consensus comes back.

Reads, paths and symbols stay on the device.  The steps are those by which a single pile is done on the CPU.  After each
one, the sizes of what it wrote are fetched, so that the next one has the room that it needs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from bellapy.compute.gpu.ops import SIMULATED, WARP, driver, fill_bytes
from bellapy.compute.gpu.pool import WORKERS, Device, Worker, is_out_of_memory, pool
from bellapy.compute.gpu.transfers import fetched, sent
from bellapy.compute.threads import even_ranges
from bellapy.engines.tags.changes import Corrections, count_changes
from bellapy.engines.tags.columns import LETTERS, Choice, Differences, Look
from bellapy.engines.tags.gpu import columns_kernels, rows_kernels
from bellapy.engines.tags.gpu.graph_kernels import Cursors, Search, search_templates
from bellapy.engines.tags.gpu.records import Found, Given, Rule
from bellapy.engines.tags.gpu.rows_kernels import Room, Rows, Steps, Templates
from bellapy.engines.tags.graph import SLOTS, Consensus
from bellapy.engines.tags.judge import N_SEEN, Odds
from bellapy.engines.tags.links import WIDTH
from bellapy.engines.tags.marks import WORD
from bellapy.engines.tags.realign import MOST_ROWS, MOST_WIDTH, TOO_SMALL
from bellapy.engines.tags.symbols import UNKNOWN_BASE, Sources
from bellapy.report.run_report import Devices

BLOCK = WARP if SIMULATED else 64  # threads that have a row each
RESIDENT = 448  # threads of a processor that realign
CELLS = 1 << 15  # scores of such a thread; where a rectangle has more, the row is done again with room for all
ALL_CELLS = MOST_ROWS * MOST_WIDTH
AGAIN = 512  # rows that are done again at a time: so few that each has a warp to itself
LETTER_ROOMS = "letters", "raw", "slots"  # of a consensus that kernels write
SHARE = 2 * WORKERS  # of the free memory: how many times less a part takes


class Piles:
    """Does piles on one GPU, one batch after the other; the reads stay there."""

    def __init__(self, device: Device, reads: Any):
        self._device, self._reads = device, reads
        with driver.gpus[device.gpu.index]:
            self._worker = Worker(device, driver.stream(), driver.stream())

    def correct(self, given: Given, rule: Rule) -> Iterator[Found]:
        """The consensus of every template.

        Raises
        ------
        MemoryError, or an error of the driver : there is no room for one of them alone.
        """
        with driver.gpus[self._device.gpu.index]:
            n = len(given.members)
            parts = -(-given.bytes * SHARE // max(1, self._device.gpu.free))
            for begin, end in even_ranges(n, max(1, min(n, parts))):
                yield from self._fit(given.take(begin, end), rule)

    def _fit(self, given: Given, rule: Rule) -> list[Found]:
        """All at a time; what does not fit in halves."""
        began, n = time.perf_counter(), len(given.members)
        try:
            found = self._all(given, rule)
            self._device.note(piles=n, pile_s=time.perf_counter() - began)
            return found
        except Exception as error:
            if not is_out_of_memory(error) or n == 1:
                raise
        self._worker.stream.synchronize()
        self._worker.rooms.clear()
        return [*self._fit(given.take(0, n // 2), rule), *self._fit(given.take(n // 2, n), rule)]

    def _all(self, given: Given, rule: Rule) -> list[Found]:
        """All, and then those anew whose consensus was that of another copy, with the rows that stay."""
        batch = _Batch(self._worker, self._reads, given, rule)
        found, choice = batch.found(), batch.choice
        if choice and choice.anew.any():
            again = np.flatnonzero(choice.anew)
            part = _Batch(self._worker, self._reads, given.only(again, choice.kept), rule._replace(choose=None))
            for i, one in zip(again.tolist(), part.found(), strict=True):
                found[i] = one._replace(own=found[i].own, n_foreign=found[i].n_foreign, n_deep=found[i].n_deep)
        return found


@dataclass
class _Step:
    """A consensus on the device: where its bases are, and for each base of the last one where it begins."""

    templates: Templates
    begins: Any


class _Batch:
    """Templates whose piles are on the device at a time."""

    def __init__(self, worker: Worker, reads: Any, given: Given, rule: Rule):
        self._worker, self._rule, self._n = worker, rule, len(given.members)
        self._offsets, self._given = given.offsets, given
        self._templates = Templates(self._send("raw codes", given.codes), self._send("raw offsets", given.offsets))
        self._raw = self._templates
        self._turn = 0
        self.choice: Choice | None = None
        self._write(reads, given)

    def _room(self, name: str, n: int, dtype: np.typing.DTypeLike, *shape: int) -> Any:
        return self._worker.rooms.of(name, max(1, n), *shape, dtype=dtype)

    def _zeros(self, name: str, n: int, dtype: np.typing.DTypeLike, byte: int = 0) -> Any:
        there = self._room(name, n, dtype)
        fill_bytes(there, byte, self._worker.stream)
        return there

    def _send(self, name: str, here: np.ndarray) -> Any:
        return sent(self._worker, name, here if len(here) else np.zeros(1, here.dtype))

    def _fetch(self, name: str, there: Any) -> np.ndarray:
        pinned = fetched(self._worker, name, there)
        self._worker.stream.synchronize()
        return pinned.copy()

    def _launch(self, kernel: Callable, n: int, threads: int, *arguments: Any) -> None:
        """Start a kernel with so many blocks."""
        if n:
            self._worker.launch(kernel, n, threads, *arguments)

    def _by_row(self, kernel: Callable, *arguments: Any) -> None:
        self._launch(kernel, -(-len(self._sizes) // BLOCK), BLOCK, *arguments)

    def _write(self, reads: Any, given: Given) -> None:
        """The rows of all piles, as paths tell."""
        self._firsts = np.concatenate(([0], np.cumsum(given.members + 1)))
        n_rows, first_rows = int(self._firsts[-1]), self._firsts[:-1]
        owners = np.repeat(np.arange(self._n, dtype=np.int32), given.members + 1)
        sizes, self._starts = np.empty(n_rows, np.int64), np.zeros(n_rows, np.int64)
        others = np.ones(n_rows, bool)
        others[first_rows] = False
        sizes[first_rows], sizes[others] = np.diff(given.offsets), given.sources.columns
        self._starts[others] = given.sources.starts
        ends = np.cumsum(sizes)
        self._sizes = sizes
        self._rows = Rows(
            self._room("symbols 0", int(ends[-1]), np.uint8), self._send("begins 0", ends - sizes),
            self._send("ends 0", ends), self._send("starts 0", self._starts), self._send("owners", owners),
            self._send("firsts", self._firsts),
        )  # fmt: skip
        there = Sources(*(self._send(f"source {name}", column) for name, column in given.sources._asdict().items()))
        runs = self._send("runs", given.runs)
        self._by_row(rows_kernels.write_rows, self._order(), reads, runs, there, self._templates, self._rows)

    def _order(self) -> Any:
        """The rows, those with the most symbols first, so that threads beside each other have as much to do."""
        return self._send("order", np.argsort(-self._sizes, kind="stable"))

    def found(self) -> list[Found]:
        """The consensus of every template."""
        rule, whole = self._rule, None
        step = self._search(0)
        for turn in range(1, rule.rounds + rule.judged):
            self._realign(step, turn == 1)
            if turn == 1:
                if rule.choose:
                    self._choose(rule.choose)
                whole = self._copy("whole", step.begins)
            step = self._search(1) if turn < rule.rounds else self._judge()
            self._launch(
                columns_kernels.compose, self._n, BLOCK, self._raw.offsets, self._templates.offsets, step.begins, whole
            )
        return self._bring(step, whole)

    def _copy(self, name: str, there: Any) -> Any:
        """A copy on the device."""
        copy = self._room(name, there.size, there.dtype)
        copy.copy_to_device(there, stream=self._worker.stream)
        return copy

    def _search(self, voters: int) -> _Step:
        """The best path through the tag graph of every pile.  voters : 1 if templates do not count, else 0."""
        n, n_rows, room = int(self._offsets[-1]), len(self._sizes), self._room
        cursors = Cursors(room("at", n_rows, np.int64), room("column", n_rows, np.int32), room("node", n_rows, np.int32))
        letters, raw, slots = (room(name, SLOTS * n, np.uint8) for name in LETTER_ROOMS)
        found = Search(
            room("back", n, np.uint8, WIDTH), room("others", n, np.int32), letters, raw, slots,
            room("begins of bases", n + self._n, np.int64), room("sizes", self._n, np.int64),
        )  # fmt: skip
        self._launch(
            search_templates, self._n, WARP, self._rows, self._templates, self._rule.terms, self._rule.least, voters,
            cursors, found,
        )  # fmt: skip
        return self._gather(found.codes, SLOTS, True, found.begins, found.sizes)

    def _gather(self, letters: Any, room_of: int, backwards: bool, begins: Any, sizes: Any) -> _Step:
        """A consensus without gaps between templates."""
        self._turn += 1
        offsets = np.concatenate(([0], np.cumsum(self._fetch("sizes", sizes)[: self._n])))
        there = self._send(f"offsets {self._turn % 2}", offsets)
        codes = self._room(f"codes {self._turn % 2}", int(offsets[-1]), np.uint8)
        self._launch(
            columns_kernels.bring_together, self._n, BLOCK, letters, room_of, backwards, self._templates.offsets, there,
            codes,
        )  # fmt: skip
        self._new_offsets = offsets
        return _Step(Templates(codes, there), begins)

    def _realign(self, step: _Step, all_new: bool) -> None:
        """The rows on a new consensus, which takes the place of the template."""
        n_old, n_new, n_rows = int(self._offsets[-1]) + self._n, int(self._new_offsets[-1]) + self._n, len(self._sizes)
        steps = Steps(
            self._templates, step.templates, step.begins, self._room("changes", n_new, np.int64),
            self._room("next", n_old, np.int64),
        )  # fmt: skip
        self._launch(rows_kernels.mark_templates, self._n, 1, steps, all_new)
        columns = self._room("n columns", n_rows, np.int64)
        self._by_row(rows_kernels.count_new_columns, self._rows, self._templates.offsets, step.begins, columns)
        n_columns = self._fetch("n columns", columns)[:n_rows]
        ends, side = np.cumsum(self._sizes + n_columns), self._turn % 2
        begins = ends - self._sizes - n_columns
        fresh = self._rows._replace(
            symbols=self._room(f"symbols {side}", int(ends[-1]), np.uint8), begins=self._send(f"begins {side}", begins),
            ends=self._room(f"ends {side}", n_rows, np.int64), starts=self._room(f"starts {side}", n_rows, np.int64),
        )  # fmt: skip
        self._run_realigner(steps, n_columns, fresh)
        self._rows, self._begins = fresh, begins
        self._sizes = self._fetch("ends", fresh.ends)[:n_rows] - begins
        self._starts = self._fetch("starts", fresh.starts)[:n_rows]
        self._templates, self._offsets = step.templates, self._new_offsets

    def _run_realigner(self, steps: Steps, n_columns: np.ndarray, fresh: Rows) -> None:
        """Realign all rows; those whose scores do not fit, again with room for all."""
        n_rows = len(self._sizes)
        sizes = self._sizes, n_columns + 1, rows_kernels.KINDS * (n_columns // WORD + 1)
        bases_at, columns_at, marks_at = (np.concatenate(([0], np.cumsum(size))) for size in sizes)
        room = Room(
            self._room("bases", int(bases_at[-1]), np.uint8), self._room("mates", int(columns_at[-1]), np.int32),
            self._room("laid out", int(columns_at[-1]), np.uint8), self._room("marks", int(marks_at[-1]), np.uint64),
            self._send("bases at", bases_at), self._send("columns at", columns_at), self._send("marks at", marks_at),
            self._room("scores", 1, np.int16),
        )  # fmt: skip
        resident = BLOCK if SIMULATED else self._worker.device.processors * RESIDENT
        blocks = -(-min(resident, n_rows) // BLOCK)
        self._realign_some(self._order(), (blocks, BLOCK), CELLS, steps, room, fresh)
        left = np.flatnonzero(self._fetch("ends", fresh.ends)[:n_rows] == TOO_SMALL)
        if len(left):
            self._realign_some(self._send("order", left), (min(AGAIN, len(left)), 1), ALL_CELLS, steps, room, fresh)

    def _realign_some(
        self, order: Any, shape: tuple[int, int], cells: int, steps: Steps, room: Room, fresh: Rows
    ) -> None:  # fmt: skip
        """Realign the rows of an order.  shape : blocks, and threads of each; cells : scores of a thread."""
        blocks, threads = shape
        room = room._replace(scores=self._room("scores", blocks * threads * cells, np.int16))
        count = self._zeros("count", 1, np.int32)
        self._launch(rows_kernels.realign_rows, blocks, threads, order, count, self._rows, steps, room, cells, fresh)

    def _choose(self, choose: Callable[[Look], Choice]) -> None:
        """Leave out rows of other copies, and those that are too many."""
        compared = None

        def kinds(kept: np.ndarray) -> np.ndarray:
            nonlocal compared
            self._keep(kept)
            compared = self._compare()
            return compared[0].astype(np.uint8)

        def differences() -> Differences:
            nonlocal compared
            compared = self._compare() if compared is None else compared
            return Differences(*(column.astype(np.int64) for column in compared[1:]))

        look = Look(self._firsts, np.diff(self._offsets), self._starts, self._sizes, kinds, differences)
        self.choice = choose(look)
        kept = self.choice.kept & ~np.repeat(self.choice.anew, np.diff(self._firsts))  # what is done anew is not done here
        kept[self._firsts[:-1]] = True
        self._keep(kept)

    def _keep(self, kept: np.ndarray) -> None:
        """Leave out all rows but these."""
        self._sizes = np.where(kept, self._sizes, 0)
        self._rows = self._rows._replace(ends=self._send("ends of kept", self._begins + self._sizes))

    def _compare(self) -> np.ndarray:
        """What `compare_rows` finds, a line for each of its columns."""
        n, n_rows = int(self._offsets[-1]), len(self._sizes)
        counts, own = self._zeros("counts", n * LETTERS, np.int32), self._zeros("own", n, np.uint8, UNKNOWN_BASE)
        first, second = (self._room(name, n, np.int8) for name in ("first", "second"))
        self._by_row(columns_kernels.count_letters, self._rows, self._templates.offsets, counts, own)
        telling = (self._templates.offsets, counts, own, self._rule.telling, first, second)
        self._launch(columns_kernels.choose_telling, self._n, 1, *telling)
        seen = self._room("compared", n_rows, np.int32, 5)
        self._by_row(columns_kernels.compare_rows, self._rows, self._templates, own, first, second, self._rule.telling, seen)
        return np.ascontiguousarray(self._fetch("compared", seen)[:n_rows].T)

    def _judge(self) -> _Step:
        """The consensus judged base by base."""
        n = int(self._offsets[-1])
        seen = self._zeros("seen", n * N_SEEN, np.int32)
        self._by_row(columns_kernels.see_rows, self._rows, self._templates.offsets, seen)
        letters, raw, slots = (self._room(name, 2 * n, np.uint8) for name in LETTER_ROOMS)
        found = Consensus(letters, raw, slots, self._room("begins of bases", n + self._n, np.int64))
        sizes, runs = self._room("sizes", self._n, np.int64), self._room("run", n + self._n, np.int64)
        odds = Odds(*(self._send(f"odds {name}", column) for name, column in self._rule.odds._asdict().items()))
        self._launch(
            columns_kernels.judge_templates, self._n, 1, self._rows, self._templates, odds, self._rule.least, seen, runs,
            found, sizes,
        )  # fmt: skip
        self._judged = found
        return self._gather(found.codes, 2, False, found.begins, sizes)

    def _bring(self, step: _Step, whole: Any) -> list[Found]:
        """What was found, of each template."""
        raw = self._room("packed raw", int(self._new_offsets[-1]), np.uint8)
        self._launch(
            columns_kernels.bring_together, self._n, BLOCK, self._judged.raw, 2, False, self._templates.offsets,
            step.templates.offsets, raw,
        )  # fmt: skip
        codes, unchanged = self._fetch("codes", step.templates.codes), self._fetch("raw", raw).view(bool)
        begins, ends, offsets = self._fetch("whole", whole), self._new_offsets, self._given.offsets
        changes = count_changes(Corrections(self._given.codes, offsets, codes, unchanged, ends, begins))
        n_symbols = np.add.reduceat(self._sizes, self._firsts[:-1]) - self._sizes[self._firsts[:-1]]
        own, nothing = np.ones(len(self._sizes), bool), np.zeros(self._n, np.int64)
        left_out = (nothing, nothing)
        if self.choice:
            own, left_out = self.choice.own, (self.choice.n_foreign, self.choice.n_deep)
        rows = [own[first + 1 : end] for first, end in pairwise(self._firsts.tolist())]
        numbers = (n_symbols.tolist(), rows, *(column.tolist() for column in left_out))
        bases, places = pairwise(ends.tolist()), pairwise((offsets + np.arange(self._n + 1)).tolist())
        return [
            Found(codes[at:end], unchanged[at:end], begins[first:last], *rest)
            for (at, end), (first, last), *rest in zip(bases, places, changes, *numbers, strict=True)
        ]


def make_piles(both_ways: np.ndarray, devices: Devices) -> list[Piles]:
    """WORKERS of them for every usable GPU: while the last rows of one batch are done, the other one has work.

    both_ways : `ReadSet.both_ways`, sent to every GPU.  devices : where what is done is noted.
    """
    found = []
    for device in pool().devices:
        with driver.gpus[device.gpu.index]:
            reads = driver.to_device(both_ways if len(both_ways) else np.zeros(1, np.uint8))
        device.work_of = devices
        found.append([Piles(device, reads) for _ in range(WORKERS)])
    return [piles for turn in zip(*found, strict=True) for piles in turn]
