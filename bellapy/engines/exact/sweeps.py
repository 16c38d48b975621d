"""Which sweep computes a matrix, and sweeps that go on where they were stopped.

Wide matrices are swept by tiles, on GPUs where this is worth it.  Narrow bands are swept line by line.  The scores that
matter are the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from bellapy.engines.exact.band import EVERY as EVERY_LINE
from bellapy.engines.exact.band import BandSweep, is_connected
from bellapy.engines.exact.cpu import Bounds, Sweep, Task
from bellapy.engines.exact.line_state import ROWS
from bellapy.engines.exact.narrow import find_none
from bellapy.params.exact import GPU_CELLS
from bellapy.report.log import logger
from bellapy.report.run_report import Devices

SIZES = 32, 64, 128
"""Sizes of tiles; the larger ones where enough of them lie on a wavefront."""

EVERY = 512  # rows between special rows, as long as memory allows
GPU_WIDTH, GPU_THREADS = 1 << 12, 4
"""Cells of a row, on average, for each of up to so many threads, of which lines take as long as a GPU: its strips of rows
wait for each other.  Wider lines are not shared by threads."""

OLD_GPU = "a GPU has no packed maxima (compute capability 9.0 and more have them): the CPU computes the matrix"

BOTH_THREADS = 4  # with so many, a sweep back along lines may begin before the one forth has ended,
BOTH_BASES = 1 << 26  # if the sequences have no more together: it takes up to 1.7 GB

NARROW = 1 << 18
"""Cells of a line, on average, for each thread but the first, beyond which tiles are faster: lines take one thread."""

NARROW_WHOLE = 1 << 12  # the same where whole scores may be needed
WHOLE_SHARE = 1 / 6  # of the cells that may lie on lines with whole scores
SAVE_SECONDS = 20.0
SHOW_SECONDS = 0.5


class Journal(Protocol):
    """Where a long run keeps what it has done."""

    def load(self, name: str) -> dict | None: ...

    def save(self, name: str, state: dict) -> None: ...


Watch = Callable[[str, float], None]
MakeBounds = Callable[[int], Bounds]
"""Bounds by tiles of a size."""


AnySweep = TypeVar("AnySweep", Sweep, BandSweep)


def _tell_nobody(stage: str, share: float) -> None:
    pass


def _do_nothing(known: int) -> None:
    pass


class Wanted(NamedTuple):
    """A sweep that is asked for.

    task : its bounds and size are chosen later; every : whether a path is to be traced.
    keep_ends : the last row and column are asked for.
    """

    task: Task
    make_bounds: MakeBounds
    keep_ends: bool = False

    def bounded(self) -> Task:
        """The task with bounds by ROWS rows."""
        task = self.task
        return task._replace(bounds=self.make_bounds(ROWS), size=ROWS, every=EVERY_LINE if task.every else 0)


MakeWanted = Callable[[], Wanted]


class Sweeper(NamedTuple):
    """What sweeps may use.

    budget : bytes for special rows.  journal : keeps their states.  watch : is told the stage and the share of it that is
    done.  find_devices : says where GPUs note what they do, or None: they are not used.  It is asked late, since GPUs take a
    while to start.  beside : is told the score that is known when GPUs begin to sweep, to begin other work for the CPU.
    """

    threads: int = 1
    budget: int = 1 << 28
    journal: Journal | None = None
    watch: Watch = _tell_nobody
    find_devices: Callable[[], Devices | None] = find_none
    beside: Callable[[int], object] = _do_nothing

    @property
    def devices(self) -> Devices | None:
        return self.find_devices()

    def sweep(self, name: str, wanted: Wanted) -> Any:
        """A finished sweep."""
        return self._sweep(name, wanted, wanted.bounded())

    def sweep_both(self, forth: Wanted, back: MakeWanted | None) -> tuple[Any, Any | None]:
        """A finished sweep forth; and one back, if both are done in less time together."""
        task = forth.bounded()
        if back and self._uses_gpus(task):
            return self._sweep_on_gpus("forward_gpu", task, back)
        if back and self._has_room(task) and is_narrow(task, self.threads, forth.keep_ends):
            return self._sweep_lines(task, forth.keep_ends, back)
        return self._sweep("forward", forth, task), None

    def _has_room(self, task: Task) -> bool:
        """Whether there are threads and memory for two sweeps at once, and no states are to be kept."""
        return self.threads >= BOTH_THREADS and not self.journal and len(task.query) + len(task.target) <= BOTH_BASES

    def _sweep(self, name: str, wanted: Wanted, task: Task) -> Any:
        """A finished sweep; task : the bounded one."""
        if self._uses_gpus(task):
            return self._sweep_on_gpus(f"{name}_gpu", task)[0]
        if is_narrow(task, self.threads, wanted.keep_ends):
            return self._finish(f"{name}_lines", BandSweep(task, self.budget, wanted.keep_ends))
        size = tile_size(task.bounds, len(task.query) + len(task.target))
        task = task._replace(bounds=wanted.make_bounds(size), size=size, every=EVERY if task.every else 0)
        return self._finish(name, Sweep(task, self.budget))

    def _sweep_lines(self, task: Task, keep_ends: bool, make_back: MakeWanted) -> tuple[BandSweep, BandSweep | None]:
        """A sweep forth line by line; and one back beside it, if its lines are short, too: few lines take all threads."""
        each = self._replace(threads=self.threads // 2)

        def sweep_back() -> BandSweep | None:
            wanted = make_back()
            its_task = wanted.bounded()
            if not is_narrow(its_task, each.threads, wanted.keep_ends):
                return None
            sweep = BandSweep(its_task, self.budget, wanted.keep_ends)
            sweep.run(each.threads)
            return sweep

        with ThreadPoolExecutor(1) as pool:
            coming = pool.submit(sweep_back)
            sweep = each._finish("forward_lines", BandSweep(task, self.budget, keep_ends))
            return sweep, coming.result()

    def _finish(self, name: str, sweep: AnySweep) -> AnySweep:
        """Finish a sweep; one that was begun before goes on where it was."""
        state = self.journal and self.journal.load(name)
        if state:
            sweep.restore(state)
        saved = time.monotonic()
        while not sweep.done:
            sweep.run(self.threads, SHOW_SECONDS)
            self.watch(name, sweep.share_done)
            if self.journal and (sweep.done or time.monotonic() - saved > SAVE_SECONDS):
                self.journal.save(name, sweep.state())
                saved = time.monotonic()
        return sweep

    def _uses_gpus(self, task: Task) -> bool:
        width = GPU_WIDTH * min(self.threads, GPU_THREADS)
        devices = self.devices
        if not devices or task.n_allowed < max(GPU_CELLS, width * len(task.query)):
            return False
        if _gpu().is_packed():
            return _gpu().fits(task.scores)
        if devices.is_new(OLD_GPU):
            logger.warning(OLD_GPU)
        return False

    def _sweep_on_gpus(self, name: str, task: Task, make_back: MakeWanted | None = None) -> tuple[Any, Any | None]:
        """Finished sweeps by GPUs, which are not asked on the way; one back, too, if another one leaves room for it.

        Rows that were kept on a GPU are not saved: such a sweep begins anew.
        """
        sweep = _gpu().GpuSweep(task, self.devices)
        self.watch(name, 0.0)
        journal = None if task.every else self.journal
        if journal and (state := journal.load(name)):
            sweep.restore(state)
            return sweep, None

        def meanwhile() -> Any | None:
            if task.every or make_back:
                self.beside(task.known)
            if make_back and sweep.leaves_room:
                return _gpu().GpuSweep(make_back().bounded(), self.devices, gpus=sweep.gpus[-1:], worker=-1)
            return None

        back = sweep.run(beside=meanwhile)
        if journal:
            journal.save(name, sweep.state())
        return sweep, back


def is_narrow(task: Task, threads: int, keep_ends: bool) -> bool:
    """Whether a matrix is swept faster line by line; its bounds go by ROWS rows."""
    first, last = task.bounds.first, task.bounds.last
    width = task.n_allowed / (len(task.query) + len(task.target))
    if width * (threads - 1) > NARROW or not is_connected(first, last):
        return False
    if task.floor:
        return width <= NARROW_WHOLE or _cells_where_begun(task) <= WHOLE_SHARE * task.n_allowed
    return not keep_ends or width <= NARROW_WHOLE


def _cells_where_begun(task: Task) -> int:
    """Cells, about, on the lines on which alignments may begin off the borders: where so much can still be gained."""
    row, column = (int(np.flatnonzero(x >= task.known)[-1:].sum()) for x in task.bounds[:2])
    if not min(row, column):
        return 0
    first, last = task.bounds.first.astype(np.int64), task.bounds.last.astype(np.int64)
    last = np.minimum(last, row + column - task.size * np.arange(len(last)))
    return int(np.maximum(0, last - first + 1).sum()) * task.size


def tile_size(bounds: Bounds, n_lines: int) -> int:
    """The largest size with at least 64 tiles on a wavefront of what bounds by ROWS rows leave."""
    area = int(np.maximum(0, bounds.last.astype(np.int64) - bounds.first + 1).sum()) * ROWS
    fitting = [size for size in SIZES if area >= 64 * size * n_lines]
    return max(fitting, default=SIZES[0])


def _gpu() -> ModuleType:
    """What sweeps on GPUs."""
    from bellapy.engines.exact.gpu import sweep

    return sweep
