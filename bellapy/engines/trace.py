"""Stage 9, where asked for: overlaps -> their base-level paths.

The inspector is the score-only extension (extend.py), which finds where alignments end.  An executor computes the paths
of overlaps alone, and only up to these ends: `EXECUTORS` names them; all give the same runs.  join.py makes one path of an
overlap's flanks and seed, trim.py cuts bad ends, io/path_text.py writes CIGAR, cs and MD, on the CPU.

Paths take far more memory than overlaps.  So they are made, written and freed for some overlaps at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from bellapy.compute.gpu.devices import known_gpus
from bellapy.compute.memory import UNLIMITED, Budget
from bellapy.compute.resources import Resources
from bellapy.compute.threads import made_ahead, map_in_order
from bellapy.engines.ends import End
from bellapy.engines.flank_paths import SomePaths
from bellapy.engines.linear import trace_cpu
from bellapy.params import Scoring
from bellapy.records import Overlaps, Paths, ReadSet, join_paths

Result = TypeVar("Result")
Executor = Callable[[ReadSet, Overlaps, Sequence[Scoring], End, Resources], Sequence[SomePaths]]
"""Gives the paths of overlaps, in consecutive parts."""


def _cpu() -> Executor:
    return lambda *job: [trace_cpu.trace_overlaps(*job)]


def _cuda() -> Executor:
    known_gpus()
    from bellapy.engines.linear.gpu.trace import trace_overlaps

    return trace_overlaps


EXECUTORS: dict[str, Callable[[], Executor]] = {"cpu": _cpu, "cuda": _cuda}

BLOCK_BASES = 1 << 23  # of queries and targets, aligned, at a time for each thread
GPU_PIECES = 6  # of a turn for each thread: kernels with few flanks take as long as their longest one
BASE_BYTES = 16  # of runs, text and temporary arrays, for each of them


def trace_overlaps(
    reads: ReadSet, overlaps: Overlaps, steps: Sequence[Scoring], end: End = End.BEST, resources: Resources | None = None
) -> tuple[Overlaps, Paths]:
    """Paths of overlaps that `extend_anchors` gave with these steps; n_matches and n_columns become exact.

    resources : one thread of the CPU by default.
    """
    resources = resources or Resources()
    parts = EXECUTORS[resources.device]()(reads, overlaps, steps, end, resources)
    return _counted(overlaps, _some_of(parts, 0, len(overlaps)))


def _counted(overlaps: Overlaps, paths: Paths) -> tuple[Overlaps, Paths]:
    columns = paths.n_matches + paths.n_mismatches + paths.n_gap_bases
    return replace(overlaps, n_matches=paths.n_matches.copy(), n_columns=columns), paths


def map_paths(
    use: Callable[[Overlaps, Paths], Result], reads: ReadSet, overlaps: Overlaps, steps: Sequence[Scoring],
    end: End, resources: Resources,
) -> Iterator[Result]:  # fmt: skip
    """What `use` makes of the overlaps and their paths, piece by piece, in order.

    A thread for each piece makes the paths and uses them.  On GPUs the pieces of a turn are traced together, ahead of that.
    """
    threads = resources.threads
    pieces = blocks(overlaps, threads, resources.budget)
    if resources.device == "cpu":
        alone = replace(resources, threads=1)

        def on_cpu(piece: slice) -> Result:
            return use(*trace_overlaps(reads, overlaps.take(piece), steps, end, alone))

        return map_in_order(on_cpu, pieces, threads)
    trace = EXECUTORS[resources.device]()

    def traced(span: slice) -> Sequence[SomePaths]:
        return trace(reads, overlaps.take(span), steps, end, resources)

    def with_paths(item: tuple[slice, Sequence[SomePaths], int]) -> Result:
        piece, parts, first = item
        return use(*_counted(overlaps.take(piece), _some_of(parts, piece.start - first, piece.stop - first)))

    return map_in_order(with_paths, _traced_by_turns(traced, pieces, GPU_PIECES * threads), threads)


def _traced_by_turns(
    traced: Callable[[slice], Sequence[SomePaths]], pieces: list[slice], n: int
) -> Iterator[tuple[slice, Sequence[SomePaths], int]]:
    """Each piece with the paths of its turn and the first row of that; `n` pieces are traced in a turn."""
    turns = [pieces[at : at + n] for at in range(0, len(pieces), n)]
    spans = [slice(turn[0].start, turn[-1].stop) for turn in turns]
    for turn, span, parts in zip(turns, spans, made_ahead(map(traced, spans)), strict=True):
        for piece in turn:
            yield piece, parts, span.start


def _some_of(parts: Sequence[SomePaths], begin: int, end: int) -> Paths:
    """The paths of rows begin .. end - 1 of consecutive parts."""
    found, first = [], 0
    for part in parts:
        low, high = max(begin - first, 0), min(end - first, len(part))
        if low < high:
            found.append(part.part(low, high))
        first += len(part)
    return join_paths(found) if len(found) > 1 else found[0] if found else parts[0].part(0, 0)


def blocks(overlaps: Overlaps, threads: int = 1, budget: Budget = UNLIMITED) -> list[slice]:
    """Rows in order, in pieces of about BLOCK_BASES aligned bases, of both reads, fewer if the budget says so, or of one
    overlap; `threads` pieces are worked on at a time."""
    spans = overlaps.query_end - overlaps.query_start + overlaps.target_end - overlaps.target_start
    least = int(spans.max(initial=1))
    bases = budget.items("tracing paths", threads * BASE_BYTES, least=least, most=max(least, BLOCK_BASES))
    ends = np.cumsum(spans, dtype=np.int64)
    edges = [0]
    while edges[-1] < len(overlaps):
        done = ends[edges[-1] - 1] if edges[-1] else 0
        edges.append(max(edges[-1] + 1, int(np.searchsorted(ends, done + bases, side="right"))))
    return [slice(a, b) for a, b in zip(edges[:-1], edges[1:], strict=True)]
