"""Stage 7: seeds -> alignments, by X-drop extension of both flanks of every seed.

`BACKENDS` names what can do it; all give the same integers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import cache

import numpy as np

from bellapy.compute.memory import UNLIMITED, Budget
from bellapy.engines.flanks import Flanks, join_flanks, make_flanks
from bellapy.params import Scoring
from bellapy.records import Extensions, ReadSet, Seeds

Backend = Callable[[np.ndarray, Flanks, Scoring, bool, int], np.ndarray]


def _cpu() -> Backend:
    from bellapy.engines.linear.extend_cpu import extend_flanks

    return extend_flanks


@cache  # found once: later, memory that this program itself holds would seem taken by others
def _cuda() -> Backend:
    from bellapy.compute.gpu.devices import find_gpus

    find_gpus()
    from bellapy.engines.linear.extend_cuda import extend_flanks

    return extend_flanks


BACKENDS: dict[str, Callable[[], Backend]] = {"cpu": _cpu, "cuda": _cuda}

NEAR = 50
"""Bases: an extension that ends so close to the end of a flank needs no second step."""

BATCH_SEEDS = 1 << 18
SEED_BYTES = 400  # of a batch, for each seed: flanks, results, and what is between


def load(scoring: Scoring, device: str = "cpu") -> None:
    """Load, the first time compile, what extensions with these scores need: a thread can do it while others work."""
    codes = np.zeros(16, np.uint8)
    codes.flags.writeable = False
    flank = Flanks(*np.array([[0], [8], [8], [8]]), np.zeros(1, np.uint8))
    BACKENDS[device]()(codes, flank, scoring, False, 1)


def device_usage(device: str) -> list[dict]:
    """For the report: what every GPU has done since the program started."""
    if device == "cpu":
        return []
    from bellapy.compute.gpu.pool import usage

    return usage()


def extend_seeds(
    reads: ReadSet, seeds: Seeds, steps: Sequence[Scoring], *, longest: bool = False, threads: int = 1, device: str = "cpu",
    budget: Budget = UNLIMITED, progress: Callable[[int], None] | None = None,
) -> Extensions:  # fmt: skip
    """Extend every seed in both directions; row i of the result belongs to seed i.

    Parameters
    ----------
    steps : scores and limits of the first step and, if there is a second one, of that: it goes on where the first one ended
        more than NEAR bases before the ends of both sequences.
    longest : report where the extension ended, as SeqAn does, instead of its best end.
    budget : may make batches smaller.
    progress : called with the number of seeds done.
    """
    extend, codes = BACKENDS[device](), reads.both_ways
    parts, at = [], 0
    while at < max(1, len(seeds)):
        size = budget.items("the extension", SEED_BYTES, least=1, most=BATCH_SEEDS)
        batch = seeds.take(slice(at, at + size))
        flanks = make_flanks(reads, batch)
        results, turns = _extend_in_steps(extend, codes, flanks, steps, longest, threads)
        parts.append(join_flanks(batch, results, turns, steps[0].match))
        at += size
        if progress:
            progress(min(at, len(seeds)))
    return join_extensions(parts)


def _extend_in_steps(extend, codes, flanks: Flanks, steps, longest: bool, threads: int) -> tuple[np.ndarray, np.ndarray]:
    """Results of all steps together, (n, 3) int64, and where the first one ended, (n, 2) int64."""
    results = extend(codes, flanks, steps[0], longest, threads)
    turns = results[:, 1:].copy()
    for step in steps[1:]:
        left = np.minimum(flanks.query_length - turns[:, 0], flanks.target_length - turns[:, 1])
        short = np.flatnonzero(left > NEAR)
        results[short] += extend(codes, flanks.beyond(short, turns), step, longest, threads)
    return results, turns


def join_extensions(parts: list[Extensions]) -> Extensions:
    """Extensions of consecutive seeds as one record."""
    return Extensions(*(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(Extensions)))
