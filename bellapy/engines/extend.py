"""Stage 7: anchors -> alignments, by X-drop extension of both flanks of every anchor.

`BACKENDS` names what can do it; all give the same integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields

import numpy as np

from bellapy.compute.resources import Resources
from bellapy.compute.threads import map_in_order, map_threads
from bellapy.engines.ends import End, Ends
from bellapy.engines.flanks import Flanks, join_flanks, make_flanks
from bellapy.params import Scoring
from bellapy.records import Anchors, Extensions, ReadSet

Backend = Callable[[np.ndarray, Flanks, Scoring, End, Resources], Ends]


def _cpu() -> Backend:
    from bellapy.engines.linear.extend_cpu import extend_flanks

    return extend_flanks


def _cuda() -> Backend:
    from bellapy.compute.gpu.devices import known_gpus

    known_gpus()
    from bellapy.engines.linear.extend_cuda import extend_flanks

    return extend_flanks


BACKENDS: dict[str, Callable[[], Backend]] = {"cpu": _cpu, "cuda": _cuda}

NEAR = 50
"""Bases: an extension that ends so close to the end of a flank needs no second step."""

LEAST_FOUND = 20
"""Bases, of the mean of both reads: where the first step finds fewer on both sides of an anchor, there is no homology to go
on with, and no second step is taken."""

BATCH_SEEDS = 1 << 18
GPU_BATCHES, GPU_BATCH_SEEDS = 3, 3 << 16  # at a time: what the CPU does for some goes on while a GPU has others
SEED_BYTES = 400  # of a batch, for each anchor: flanks, results, and what is between


def load(scoring: Scoring, device: str = "cpu") -> None:
    """Load, the first time compile, what extensions with these scores need: a thread can do it while others work."""
    codes = np.zeros(16, np.uint8)
    codes.flags.writeable = False
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

    def extend_batch(rows: slice) -> Extensions:
        batch = anchors.take(rows)
        ends, turns = _extend_in_steps(reads.both_ways, make_flanks(reads, batch), steps, end, resources)
        return join_flanks(batch, ends, turns, steps[0].match)

    at_once = 1 if resources.device == "cpu" else min(GPU_BATCHES, resources.threads)
    parts, done = [], 0
    for part in map_in_order(extend_batch, _batches(len(anchors), at_once, resources), at_once):
        parts.append(part)
        done += len(part)
        if resources.progress:
            resources.progress(done)
    return join_extensions(parts, resources.threads)


def _batches(n: int, at_once: int, resources: Resources) -> Iterator[slice]:
    """Rows of n anchors in batches that there is room for, if so many are extended at a time; at least one."""
    at, most = 0, BATCH_SEEDS if at_once == 1 else GPU_BATCH_SEEDS
    while at < max(1, n):
        size = resources.budget.items("the extension", SEED_BYTES * at_once, least=1, most=most)
        yield slice(at, min(at + size, n))
        at += size


def _extend_in_steps(
    codes: np.ndarray, flanks: Flanks, steps: Sequence[Scoring], end: End, resources: Resources
) -> tuple[Ends, np.ndarray]:
    """Where all steps together end, and the first one, (n, 2) int64; flanks : of anchors, as from `make_flanks`."""
    ends = extend(codes, flanks, steps[0], end, resources)
    turns = ends.bases
    for step in steps[1:]:
        left = np.minimum(flanks.query_length - turns[:, 0], flanks.target_length - turns[:, 1])
        found = turns.reshape(2, -1, 2).sum(axis=(0, 2)) >= 2 * LEAST_FOUND
        short = np.flatnonzero((left > NEAR) & np.tile(found, 2))
        ends.table[short] += extend(codes, flanks.beyond(short, turns), step, end, resources).table
    return ends, turns


def join_extensions(parts: list[Extensions], threads: int = 1) -> Extensions:
    """Extensions of consecutive anchors as one record."""
    names = [f.name for f in fields(Extensions)]
    return Extensions(*map_threads(lambda name: np.concatenate([getattr(part, name) for part in parts]), names, threads))
