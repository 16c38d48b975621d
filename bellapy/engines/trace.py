"""Stage 9, where asked for: overlaps -> their base-level paths.

The inspector is the score-only extension (extend.py), which finds where alignments end.  An executor computes the paths
of overlaps alone, and only up to these ends: `EXECUTORS` names them; all give the same runs.  join.py makes one path of an
overlap's flanks and seed, trim.py cuts bad ends, io/path_text.py writes CIGAR, cs and MD, on the CPU.

Paths take far more memory than overlaps.  So they are made, written and freed for some overlaps at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np

from bellapy.compute.memory import UNLIMITED, Budget
from bellapy.compute.resources import Resources
from bellapy.compute.threads import made_ahead, map_in_order
from bellapy.engines.ends import End
from bellapy.engines.flank_paths import FlankPaths
from bellapy.engines.flanks import Flanks, make_flanks
from bellapy.engines.join import flank_ends, join_paths
from bellapy.params import Scoring
from bellapy.records import Overlaps, Paths, ReadSet

Result = TypeVar("Result")
Executor = Callable[[np.ndarray, Flanks, np.ndarray, Scoring, End, Resources], FlankPaths]


def _cpu() -> Executor:
    from bellapy.engines.linear.trace_cpu import trace_flanks

    return trace_flanks


def _cuda() -> Executor:
    from bellapy.compute.gpu.devices import known_gpus

    known_gpus()
    from bellapy.engines.linear.trace_cuda import trace_flanks

    return trace_flanks


EXECUTORS: dict[str, Callable[[], Executor]] = {"cpu": _cpu, "cuda": _cuda}

BLOCK_BASES = 1 << 23  # of queries and targets, aligned, at a time for each thread
GPU_PIECES = 6  # of a turn for each thread: kernels with few flanks take as long as their longest one
BASE_BYTES = 16  # of runs, text and temporary arrays, for each of them


def trace(
    codes: np.ndarray, flanks: Flanks, ends: np.ndarray, scoring: Scoring, end: End, resources: Resources
) -> FlankPaths:
    """The path of every flank's extension.

    Parameters
    ----------
    codes : uint8, `ReadSet.both_ways`.
    ends : (n, 2) int64, query and target bases of the extension, as `Ends.bases`.
    """
    return EXECUTORS[resources.device]()(codes, flanks, ends, scoring, end, resources)


def trace_overlaps(
    reads: ReadSet, overlaps: Overlaps, steps: Sequence[Scoring], end: End = End.BEST, resources: Resources | None = None
) -> tuple[Overlaps, Paths]:
    """Paths of overlaps that `extend_anchors` gave with these steps; n_matches and n_columns become exact.

    resources : one thread of the CPU by default.
    """
    return _join(reads, overlaps, *_trace(reads, steps, end, resources or Resources(), overlaps))


def _trace(
    reads: ReadSet, steps: Sequence[Scoring], end: End, resources: Resources, overlaps: Overlaps
) -> tuple[FlankPaths, FlankPaths]:
    """Paths of the left flanks of all overlaps, then of the right ones: of the first step, and of the second one."""
    flanks, turns = make_flanks(reads, overlaps.anchors), overlaps.turns
    near = trace(reads.both_ways, flanks, turns, steps[0], end, resources)
    beyond, left = flanks.beyond(np.arange(len(flanks)), turns), flank_ends(overlaps) - turns
    return near, trace(reads.both_ways, beyond, left, steps[-1], end, resources)


def _join(reads: ReadSet, overlaps: Overlaps, near: FlankPaths, far: FlankPaths) -> tuple[Overlaps, Paths]:
    paths = join_paths(reads, overlaps, near, far)
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

    def joined(item: tuple[slice, FlankPaths, FlankPaths]) -> Result:
        piece, near, far = item
        return use(*_join(reads, overlaps.take(piece), near, far))

    traced = _traced_by_turns(partial(_trace, reads, steps, end, resources), overlaps, pieces, GPU_PIECES * threads)
    return map_in_order(joined, traced, threads)


def _traced_by_turns(
    traced: Callable[[Overlaps], tuple[FlankPaths, FlankPaths]], overlaps: Overlaps, pieces: list[slice], n: int
) -> Iterator[tuple[slice, FlankPaths, FlankPaths]]:
    """Each piece with the paths of its overlaps' flanks; `n` pieces are traced in a turn."""
    turns = [pieces[at : at + n] for at in range(0, len(pieces), n)]
    spans = [slice(turn[0].start, turn[-1].stop) for turn in turns]
    found = made_ahead(traced(overlaps.take(span)) for span in spans)
    for turn, span, (near, far) in zip(turns, spans, found, strict=True):
        for piece in turn:
            left = np.arange(piece.start - span.start, piece.stop - span.start)
            rows = np.concatenate([left, left + span.stop - span.start])
            yield piece, near.take(rows), far.take(rows)


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
