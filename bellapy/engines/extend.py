"""Stage 7: anchors -> alignments, by X-drop extension of both flanks of every anchor.

`BACKENDS` names what can do it; all give the same integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from bellapy.compute.columns import join_rows
from bellapy.compute.gpu.devices import known_gpus
from bellapy.compute.resources import Resources
from bellapy.compute.threads import map_in_order, map_threads
from bellapy.engines.ends import End, Ends
from bellapy.engines.flanks import Flanks, join_flanks, list_further, make_flanks
from bellapy.engines.linear import extend_cpu
from bellapy.params import Scoring
from bellapy.records import Anchors, Extensions, ReadSet
from bellapy.records.table import frozen

Backend = Callable[[np.ndarray, Flanks, Scoring, End, Resources], Ends]


def _cpu() -> Backend:
    return extend_cpu.extend_flanks


def _cuda() -> Backend:
    known_gpus()
    from bellapy.engines.linear.gpu.extend import extend_flanks

    return extend_flanks


BACKENDS: dict[str, Callable[[], Backend]] = {"cpu": _cpu, "cuda": _cuda}

NEAR = 50
"""Bases: an extension that ends so close to the end of a flank needs no second step."""

LEAST_FOUND = 20
"""Bases, of the mean of both reads: where the first step finds fewer on both sides of an anchor, there is no homology to go
on with, and no second step is taken."""

BATCH_SEEDS = 1 << 18
GPU_BATCHES = 3  # at a time: what the CPU does for some goes on while GPUs have others
GPU_BATCH_SEEDS = 3 << 16  # for each GPU: all share a batch, and the last kernels of it leave them half empty
SEED_BYTES = 400  # of a batch, for each anchor: flanks, results, and what is between


def load(scoring: Scoring, device: str = "cpu") -> None:
    """Load, the first time compile, what extensions with these scores need: a thread can do it while others work."""
    codes = frozen(np.zeros(16, np.uint8))
    at, length = np.zeros(1, np.int64), np.full(1, 8, np.int64)
    flank = Flanks(at, length, length, length, np.zeros(1, np.uint8))
    extend(codes, flank, scoring, End.BEST, Resources(device=device))


def extend(codes: np.ndarray, flanks: Flanks, scoring: Scoring, end: End, resources: Resources) -> Ends:
    """Extend every flank; row i of the result belongs to flank i.

    Parameters
    ----------
    codes : uint8, `ReadSet.both_ways`.
    """
    return BACKENDS[resources.device]()(codes, flanks, scoring, end, resources)


def extend_anchors(
    reads: ReadSet, anchors: Anchors, steps: Sequence[Scoring], end: End = End.BEST, resources: Resources | None = None
) -> Extensions:
    """Extend every anchor in both directions; row i of the result belongs to anchor i.

    Parameters
    ----------
    steps : scores and limits of the first step and, if there is a second one, of that: it goes on where the first one ended
        more than NEAR bases before the ends of both sequences, and found LEAST_FOUND bases around the anchor.
    resources : one thread of the CPU by default.  Its budget may make batches smaller.
    """
    resources = resources or Resources()
    at_once = 1 if resources.device == "cpu" else min(GPU_BATCHES, resources.threads)
    batches = _batches(len(anchors), at_once, resources)
    parts: list[Extensions] = []

    def begin(rows: slice) -> _Begun:
        batch = anchors.take(rows)
        flanks = make_flanks(reads, batch)
        ends = extend(reads.both_ways, flanks, steps[0], end, resources)
        return _Begun(batch, flanks, ends, ends.bases)

    def begun() -> Iterator[_Begun]:
        done = 0
        for its in map_in_order(begin, batches, at_once):
            yield its
            done += len(its.anchors)
            if resources.progress:
                resources.progress(done)

    for some in _in_groups(begun(), together=resources.device != "cpu" and resources.budget.limit is None):
        for step in steps[1:]:
            _go_on(reads.both_ways, some, step, end, resources)
        threads = resources.threads if at_once > 1 else 1
        parts += map_threads(lambda its: join_flanks(its.anchors, its.ends, its.turns, steps[0].match), some, threads)
    return join_rows(parts, resources.threads)


class _Begun(NamedTuple):
    """A batch whose first step is done; turns : (n, 2) int64, where that ended."""

    anchors: Anchors
    flanks: Flanks
    ends: Ends
    turns: np.ndarray


def _in_groups(batches: Iterator[_Begun], *, together: bool) -> Iterator[list[_Begun]]:
    """Batches that go on together.

    On a GPU a further step, of few flanks, takes about as long as its longest one does alone: there should be one for all.
    """
    if together:
        yield list(batches)
    else:
        yield from ([its] for its in batches)


def _batches(n: int, at_once: int, resources: Resources) -> Iterator[slice]:
    """Rows of n anchors in batches that there is room for, if so many are extended at a time; at least one."""
    at, most = 0, BATCH_SEEDS if at_once == 1 else GPU_BATCH_SEEDS * len(known_gpus())
    while at < max(1, n):
        size = resources.budget.items("the extension", SEED_BYTES * at_once, least=1, most=most)
        yield slice(at, min(at + size, n))
        at += size


def _go_on(codes: np.ndarray, batches: Sequence[_Begun], step: Scoring, end: End, resources: Resources) -> None:
    """Take a further step with the flanks that ended far from the ends of both sequences; add it to their ends."""
    threads = resources.threads if len(batches) > 1 else 1
    shorts = map_threads(lambda its: list_further(its.flanks, its.turns, NEAR, 2 * LEAST_FOUND), batches, threads)
    pairs = zip(batches, shorts, strict=True)
    flanks = map_threads(lambda pair: pair[0].flanks.beyond(pair[1], pair[0].turns), pairs, threads)
    columns = zip(*(some.columns for some in flanks), strict=True)
    whole = flanks[0] if len(flanks) == 1 else Flanks(*map(np.concatenate, columns))
    table, at = extend(codes, whole, step, end, resources).table, 0
    for its, short in zip(batches, shorts, strict=True):
        its.ends.table[short] += table[at : at + len(short)]
        at += len(short)
