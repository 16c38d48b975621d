"""One pair of sequences -> its optimal alignment: lower and upper bounds, the sweeps forward and backward, the path."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from bellapy.compute.jit import njit
from bellapy.engines.exact.bounds import (
    Gains,
    Region,
    ahead_bounds,
    behind_bounds,
    bound_region,
    narrowed,
)  # fmt: skip
from bellapy.engines.exact.band import EVERY as EVERY_LINE, BandSweep, is_connected
from bellapy.engines.exact.lines import ROWS
from bellapy.engines.exact.cpu import Borders, Sweep, Task, end_borders, free_borders
from bellapy.engines.exact.guess import lower_bound
from bellapy.engines.exact.rule import NONE, Scores, as_target
from bellapy.engines.exact.trace import PAIR, QUERY_ALONE, Cell, Space, trace_path
from bellapy.errors import ParameterError
from bellapy.records.bases import UNKNOWN

SIZES = 32, 64, 128
"""Sizes of tiles; the larger ones where enough of them lie on a wavefront."""

EVERY = 512  # rows between special rows, as long as memory allows
LARGEST = (1 << 29) - 1  # of what a score may become
SAVE_SECONDS = 20.0
SHOW_SECONDS = 0.5


class Alignment(NamedTuple):
    """An optimal alignment; positions count from 0 on both sequences as given to the engine, ends exclusive.

    runs : (n, 2) int64, operations (trace.PAIR and so on) and bases, from the start.
    """

    score: int
    query_start: int
    query_end: int
    target_start: int
    target_end: int
    runs: np.ndarray


class Reached(NamedTuple):
    """The best score, and where it is reached: what is known of an optimal alignment if no path was asked for."""

    score: int
    query_end: int
    target_end: int


class Work(NamedTuple):
    """What an alignment took.

    lower : score known before the first sweep.  upper : the bound on any score.  forward, backward : cells computed by the
    sweeps.  reach : (n_tile_rows, 2) int32 tiles computed by the first sweep; size : rows of a tile; from_end : whether they
    count from the sequences' ends.
    """

    lower: int
    upper: int
    forward: int
    backward: int
    reach: np.ndarray
    size: int
    from_end: bool


class Journal(Protocol):
    """Where a long run keeps what it has done."""

    def load(self, name: str) -> dict | None: ...

    def save(self, name: str, state: dict) -> None: ...


Watch = Callable[[str, float], None]


class _Run(NamedTuple):
    """What the functions below need."""

    query: np.ndarray
    target: np.ndarray
    scores: Scores
    mode: str
    threads: int
    budget: int
    journal: Journal | None
    watch: Watch

    def sweep(self, name: str, task: Task, is_narrow: bool) -> Sweep | BandSweep:
        """A finished sweep; one that was begun before goes on where it was."""
        sweep: Sweep | BandSweep
        if is_narrow:
            name, sweep = f"{name}_lines", BandSweep(task, self.budget, self.mode == "semiglobal")
        else:
            sweep = Sweep(task, self.budget)
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


def align_one(
    query: np.ndarray, target: np.ndarray, scores: Scores, mode: str, *, beat: int | None = None, with_path: bool = True,
    threads: int = 1, budget: int = 1 << 28, journal: Journal | None = None, watch: Watch = lambda name, share: None,
) -> tuple[Alignment | Reached | None, Work]:  # fmt: skip
    """The optimal alignment of two sequences.

    Parameters
    ----------
    query, target : (n,), (m,) uint8 codes as in records/bases.py, neither empty.
    mode : local, global, or semiglobal (gaps at the ends of either sequence cost nothing).
    beat : only a higher score is wanted.
    budget : bytes that special rows may take.
    watch : is told the stage and the share of it that is done.

    Returns
    -------
    The alignment, or what it reaches if not `with_path`; None if there is none that scores above 0 (local and semiglobal) or
    above `beat`; the work it took.

    Raises
    ------
    ParameterError : the scores of so long sequences might not fit.
    """
    target = as_target(target)
    n, m = len(query), len(target)
    if max(scores.match, scores.gap_extend) * (n + m) + 2 * scores.gap_open > LARGEST:
        raise ParameterError("scores too large for sequences of this length; choose smaller --match, --gap-open and so on")
    run = _Run(query, target, scores, mode, threads, budget, journal, watch)
    least = 1 if mode != "global" else None
    known = lower_bound(query, target, scores, mode)
    if beat is not None:
        known, least = max(known, beat + 1), beat + 1
    watch("bounds", 0.0)
    region = bound_region(query, target, scores, mode, known)
    upper = _upper(region)
    if upper < known:
        return None, Work(known, upper, 0, 0, np.zeros((0, 2), np.int32), SIZES[0], False)
    if mode == "global":
        alignment, sweep = _align_back(run, region, (n, m), None, least, with_path)
        return alignment, Work(known, upper, 0, sweep.n_cells, sweep.reach, sweep.task.size, True)
    borders, local = _borders(scores, n, m, mode), mode == "local"
    bounds = ahead_bounds(region, ROWS)
    is_narrow = _is_narrow(region, bounds, n, m)
    size = ROWS if is_narrow else _tile_size(region, n, m)
    task = Task(query, target, scores, borders, ahead_bounds(region, size), known, local, local, size)
    sweep = run.sweep("forward", task, is_narrow)
    score, row, column = (int(x) for x in sweep.best) if local else _border_end(sweep, n)
    work = Work(known, upper, sweep.n_cells, 0, sweep.reach, size, False)
    if row < 0 or score < known:
        return None, work
    if not with_path:
        return Reached(score, row, column), work
    if score > known:
        region = bound_region(query, target, scores, mode, score)
    region = region._replace(corridor=narrowed(region.corridor, sweep.reach, size))
    del sweep, task
    alignment, back = _align_back(run, region, (row, column), score, None, True)
    return alignment, work._replace(backward=back.n_cells)


def _align_back(
    run: _Run, region: Region, end: tuple[int, int], score: int | None, least: int | None, with_path: bool
) -> tuple[Alignment | Reached | None, Sweep]:
    """Sweep back from where an alignment ends, and trace the path.

    score : the alignment's if it is known.  least : a lower one is of no interest.
    """
    query, target, scores, mode = run.query, run.target, run.scores, run.mode
    n, m = end
    back_query, back_target = query[:n][::-1].copy(), target[:m][::-1].copy()
    local = mode == "local"
    bounds = behind_bounds(region, n, m, ROWS, score if local else None)
    is_narrow = _is_narrow(region, bounds, n, m)
    size = ROWS if is_narrow else _tile_size(region, n, m)
    bounds = behind_bounds(region, n, m, size, score if local else None)
    borders, every = end_borders(scores, n, m), (EVERY_LINE if is_narrow else EVERY) if with_path else 0
    task = Task(back_query, back_target, scores, borders, bounds, region.known, False, local, size, every)
    sweep = run.sweep("backward", task, is_narrow)
    if local:
        found, row, column = (int(x) for x in sweep.best)
    elif mode == "global":
        found, row, column = int(sweep.last_row[-1]), n, m
    else:
        found, row, column = _border_end(sweep, n, score)
    if found < region.known or least is not None and found < least:
        return None, sweep
    if score is not None and found != score or row < 0:
        raise AssertionError(f"forth {score}, back {found}")
    if not with_path:
        return Reached(found, n, m), sweep
    rows, columns = (Gains(-g.end[k::-1], -g.start[k::-1]) for g, k in ((region.rows, n), (region.columns, m)))
    space = Space(back_query, back_target, rows, columns, scores)
    if is_narrow:
        runs = sweep.trace(row, column, found, lambda share: run.watch("path", share))
    else:
        runs = trace_path(space, sweep, Cell(row, column, False, found), lambda share: run.watch("path", share))
    counted = rescore(query, target, n - row, m - column, runs, scores)
    if counted != (found, n, m):
        raise AssertionError(f"the path has {counted}, not {(found, n, m)}")
    return Alignment(found, n - row, n, m - column, m, runs), sweep


def _borders(scores: Scores, n: int, m: int, mode: str) -> Borders:
    """The matrix's borders from the sequences' starts on."""
    return (end_borders if mode == "global" else free_borders)(scores, n, m)


def _upper(region: Region) -> int:
    """The most that any alignment can score."""
    both = (gains.ahead(region.to_end) for gains in (region.rows, region.columns))
    return int(min(ahead[0] if region.from_start else ahead.max() for ahead in both))


NARROW = 1 << 16


def _is_narrow(region: Region, bounds, n: int, m: int) -> bool:
    area = int(np.maximum(0, bounds.last - bounds.first + 1).sum()) * ROWS
    return area <= NARROW * (n + m) and is_connected(bounds.first, bounds.last)


def _tile_size(region: Region, n: int, m: int) -> int:
    """The largest size with at least 64 tiles on a wavefront of the corridor."""
    first, last = region.corridor.first, np.minimum(region.corridor.last, m)
    area = int(np.maximum(0, last - first)[: n // 32 + 1].sum()) * 32
    fitting = [size for size in SIZES if area >= 64 * size * (n + m)]
    return max(fitting, default=SIZES[0])


def _border_end(sweep: Sweep, n: int, score: int | None = None) -> tuple[int, int, int]:
    """Score, row and column of the best cell of the last column and row (or of one with `score`), the first in row order."""
    column, row = sweep.last_column[:n], sweep.last_row
    best = max(int(column.max(initial=NONE)), int(row.max())) if score is None else score
    at = np.flatnonzero(column == best)
    if len(at):
        return best, int(at[0]), len(row) - 1
    at = np.flatnonzero(row == best)
    return (best, n, int(at[0])) if len(at) else (best, -1, -1)


@njit
def rescore(query, target, i, j, runs, scores):
    """Score of a path from (i, j), and where it ends.

    query, target : (any,) uint8 codes.  runs : (n, 2) int64, operations and bases.  scores : Scores.
    """
    score = 0
    for k in range(len(runs)):
        operation, size = runs[k, 0], runs[k, 1]
        if operation == PAIR:
            for x in range(size):
                same = query[i + x] == target[j + x] and query[i + x] < UNKNOWN
                score += scores.match if same else scores.mismatch
            i += size
            j += size
        else:
            score -= scores.gap_open + scores.gap_extend * size
            if operation == QUERY_ALONE:
                i += size
            else:
                j += size
    return score, i, j
