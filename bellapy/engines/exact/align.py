"""One pair of sequences -> its optimal alignment: lower and upper bounds, the sweeps forward and backward, the path."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bellapy.compute.jit import njit
from bellapy.compute.runs import PAIR, QUERY_ALONE, length_of, operation_of
from bellapy.engines.exact.band import BandSweep
from bellapy.engines.exact.bounds import (
    BLOCK,
    Gains,
    Region,
    ahead_bounds,
    behind_bounds,
    bound_region,
    narrowed,
    tightened,
    upper_bound,
    whole_gains,
)  # fmt: skip
from bellapy.engines.exact.cpu import NO_BOUNDS, Sweep, Task, end_borders, free_borders
from bellapy.engines.exact.guess import Guess, guess_best, lower_bound
from bellapy.engines.exact.heights import Heights, block_shape
from bellapy.engines.exact.narrow import FindGpus, find_none
from bellapy.engines.exact.path import LONGEST
from bellapy.engines.exact.rule import NONE, Scores, as_target
from bellapy.engines.exact.sweeps import Sweeper, Wanted
from bellapy.engines.exact.trace import Cell, Rooms, Space, trace_path
from bellapy.engines.exact.waves import Solved, solve
from bellapy.errors import ParameterError
from bellapy.records.bases import UNKNOWN

ALONE = Sweeper()
LARGEST = (1 << 29) - 1  # of what a score may become


class Alignment(NamedTuple):
    """An optimal alignment; positions count from 0 on both sequences as given to the engine, ends exclusive.

    runs : (n,) uint32, in the codec of compute/runs.py, from the start.
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


class _Pair(NamedTuple):
    """What the functions below need."""

    query: np.ndarray
    target: np.ndarray
    scores: Scores
    mode: str


def align_one(
    query: np.ndarray, target: np.ndarray, scores: Scores, mode: str, *, beat: int | None = None, with_path: bool = True,
    sweeper: Sweeper = ALONE, region: Region | None = None,
) -> tuple[Alignment | Reached | None, Work]:  # fmt: skip
    """The optimal alignment of two sequences.

    Parameters
    ----------
    query, target : (n,), (m,) uint8 codes as in records/bases.py, neither empty.
    mode : local, global, or semiglobal (gaps at the ends of either sequence cost nothing).
    beat : only a higher score is wanted.
    sweeper : threads, memory and devices to use; one thread by default.
    region : what `bound_above` has told of this pair, for a score that is no higher than `beat`.

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
    if max(scores.match, scores.gap_extend) * (n + m) + 2 * scores.gap_open > LARGEST or max(n, m) > LONGEST:
        raise ParameterError("scores too large for sequences of this length; choose smaller --match, --gap-open and so on")
    pair = _Pair(query, target, scores, mode)
    if mode == "global" and (solved := solve(query[::-1].copy(), target[::-1].copy(), scores)):
        return _take_solved(pair, solved, beat, with_path)
    least = 1 if mode != "global" else None
    if beat is not None:
        least = beat + 1
    sweeper.watch("bounds", 0.0)
    region, end = _bound(pair, sweeper) if beat is None else (_bound_better(pair, sweeper, beat, region), None)
    known, upper = region.known, upper_bound(region)
    if upper < known:
        return None, Work(known, upper, 0, 0, np.zeros((0, 2), np.int32), BLOCK, False)
    if mode == "global":
        sweep = sweeper.sweep("backward", _back_from(pair, region, (n, m), sweeper.threads, with_path))
        alignment = _align_back(pair, sweeper, region, sweep, None, least, with_path)
        return alignment, Work(known, upper, 0, sweep.n_cells, sweep.reach, sweep.task.size, True)
    return _align_both_ways(pair, sweeper, region, upper, with_path, end)


def _align_both_ways(
    pair: _Pair, sweeper: Sweeper, region: Region, upper: int, with_path: bool, likely: tuple[int, int] | None
) -> tuple[Alignment | Reached | None, Work]:
    """The best alignment that begins and ends anywhere.

    upper : `upper_bound` of the region.  likely : where it most likely ends.
    """
    early = partial(_back_from, pair, region, likely, sweeper.threads) if likely and with_path else None
    sweep, back = sweeper.sweep_both(_forth(pair, region, sweeper.threads), early)
    score, row, column = (int(x) for x in sweep.best) if pair.mode == "local" else _border_end(sweep, len(pair.query))
    work = Work(region.known, upper, sweep.n_cells, 0, sweep.reach, sweep.task.size, False)
    if row < 0 or score < region.known:
        return None, work
    if not with_path:
        return Reached(score, row, column), work
    wasted = 0
    if back is None or (row, column) != likely:
        wasted, back = back.n_cells if back else 0, None  # lets go of what GPUs hold for it
        region, behind = _narrowed(pair, sweeper, region, score, sweep), sweep.marks
        del sweep
        wanted = _back_from(pair, region, (row, column), sweeper.threads, score=score, behind=behind)
        back = sweeper.sweep("backward", wanted)
    return _align_back(pair, sweeper, region, back, score), work._replace(backward=back.n_cells + wasted)


def _narrowed(pair: _Pair, sweeper: Sweeper, region: Region, score: int, sweep: Any) -> Region:
    """Bounds for the score that the sweep forth has found, where it has been."""
    if score > region.known:  # words in what is left would take longer than they save
        region = tightened(region, score, sweeper.threads)
    return region._replace(corridor=narrowed(region.corridor, sweep.reach, sweep.task.size))


def bound_above(
    query: np.ndarray, target: np.ndarray, scores: Scores, mode: str, beat: int, threads: int = 1,
    find_gpus: FindGpus = find_none,
) -> Region:  # fmt: skip
    """Bounds on all alignments of two sequences that score more than `beat`; the rest as of `bound_region`."""
    return bound_region(query, as_target(target), scores, mode, beat + 1, threads, find_gpus=find_gpus)


def _bound(pair: _Pair, sweeper: Sweeper) -> tuple[Region, tuple[int, int] | None]:
    """Bounds on all alignments that score as much as one that is there; where that one ends, if this is known."""
    guess, first = _begin_bounds(pair, sweeper.threads)
    stretches = guess.unmatched, guess.across
    return bound_region(*pair, guess.score, sweeper.threads, first, sweeper.find_devices, *stretches), guess.end


def _bound_better(pair: _Pair, sweeper: Sweeper, beat: int, early: Region | None) -> Region:
    """Bounds on all alignments that score more than `beat`; early : those for a score no higher, if they are there.

    Few second strands have such an alignment: it is looked for only where bounds allow it.
    """
    threads, find_gpus = sweeper.threads, sweeper.find_devices
    if early is not None and (early.known > beat or upper_bound(early) < early.known):
        region = early._replace(known=beat + 1)
    else:
        region = bound_above(*pair, beat, threads, find_gpus)
    if upper_bound(region) > beat and (known := lower_bound(*pair, threads)) > beat + 1:
        region = bound_region(*pair, known, threads, find_gpus=find_gpus)
    return region


def _begin_bounds(pair: _Pair, threads: int) -> tuple[Guess, list[Gains] | None]:
    """An alignment that is there; and the first upper bounds, where there are threads to make them meanwhile."""
    query, target, scores, mode = pair
    if mode == "global" or threads < 4:
        return guess_best(query, target, scores, mode, threads), None
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(whole_gains, query, target, scores, threads)
        guess = guess_best(query, target, scores, mode, threads)
    return guess, coming.result()


def _take_solved(pair: _Pair, solved: Solved, beat: int | None, with_path: bool) -> tuple[Alignment | Reached | None, Work]:
    """A global alignment that waves have found."""
    n, m, score = len(pair.query), len(pair.target), solved.score
    work = Work(score, score, 0, solved.n_cells, np.zeros((0, 2), np.int32), BLOCK, True)
    if beat is not None and score <= beat:
        return None, work
    if not with_path:
        return Reached(score, n, m), work
    _check_path(pair, 0, 0, solved.runs, (score, n, m))
    return Alignment(score, 0, n, 0, m, solved.runs), work


def _check_path(pair: _Pair, row: int, column: int, runs: np.ndarray, expected: tuple[int, int, int]) -> None:
    """Score a path once more, base by base."""
    counted = rescore(pair.query, pair.target, row, column, runs, pair.scores)
    if counted != expected:
        raise AssertionError(f"the path has {counted}, not {expected}")


def _forth(pair: _Pair, region: Region, threads: int) -> Wanted:
    """A sweep from the sequences' starts, to find where the best alignment ends."""
    query, target, scores, mode = pair
    n, m, local = len(query), len(target), mode == "local"
    task = Task(
        query, target, scores, free_borders(scores, n, m), NO_BOUNDS, region.known, local, local, 0, marks=block_shape(n, m)
    )
    return Wanted(task, lambda size: ahead_bounds(region, size, scores, threads), mode == "semiglobal")


def _back_from(
    pair: _Pair,
    region: Region,
    end: tuple[int, int],
    threads: int,
    with_path: bool = True,
    score: int | None = None,
    behind: Heights | None = None,
) -> Wanted:
    """A sweep back from where an alignment ends.

    score : the alignment's if it is known.  behind : scores of the sweep forth.
    """
    query, target, scores, mode = pair
    (n, m), local = end, mode == "local"
    back_query, back_target = query[:n][::-1].copy(), target[:m][::-1].copy()
    most = score if local else None
    task = Task(
        back_query, back_target, scores, end_borders(scores, n, m), NO_BOUNDS, region.known, False, local, 0, int(with_path)
    )
    return Wanted(task, lambda size: behind_bounds(region, n, m, size, most, scores, behind, threads), mode == "semiglobal")


def _align_back(
    pair: _Pair, sweeper: Sweeper, region: Region, sweep: Any, score: int | None, least: int | None = None,
    with_path: bool = True,
) -> Alignment | Reached | None:  # fmt: skip
    """The alignment that a finished sweep back has found; its path is traced.

    score : the alignment's if it is known.  least : a lower one is of no interest.
    """
    n, m = len(sweep.task.query), len(sweep.task.target)
    if pair.mode == "local":
        found, row, column = (int(x) for x in sweep.best)
    elif pair.mode == "global":
        found, row, column = int(sweep.last_row[-1]), n, m
    else:
        found, row, column = _border_end(sweep, n, score)
    if found < region.known or least is not None and found < least:
        return None
    if score is not None and found != score or row < 0:
        raise AssertionError(f"forth {score}, back {found}")
    if not with_path:
        return Reached(found, n, m)
    runs = _trace(sweep, Cell(row, column, False, found), sweeper)
    _check_path(pair, n - row, m - column, runs, (found, n, m))
    return Alignment(found, n - row, n, m - column, m, runs)


def _trace(sweep: Any, start: Cell, sweeper: Sweeper) -> np.ndarray:
    """The path from a cell to the corner of the backward matrix."""

    def watch(share: float) -> None:
        sweeper.watch("path", share)

    if isinstance(sweep, BandSweep):
        return sweep.trace(start.row, start.column, start.score, watch, sweeper.threads)
    query, target, scores = sweep.task.query, sweep.task.target, sweep.task.scores
    return trace_path(Space(query, target, scores, Rooms(scores)), sweep, start, watch, sweeper.threads)


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

    query, target : (any,) uint8 codes.  runs : (n,) uint32.  scores : Scores.
    """
    score = 0
    for k in range(len(runs)):
        operation, size = operation_of(runs[k]), length_of(runs[k])
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
