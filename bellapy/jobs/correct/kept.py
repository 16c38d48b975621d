"""What a job with a folder keeps: its overlaps, and the corrected reads of every range."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from bellapy.io.workdir import Workdir
from bellapy.jobs.correct.template import Corrected
from bellapy.params import Scoring
from bellapy.records import Overlaps

Arrays = Mapping[str, np.ndarray]
NUMBERS = "n_reads", "n_foreign", "n_deep", "support", "n_bridges"  # of a corrected read; float64 holds them all
PER_BASE = "codes", "raw", "begins", "margins"


def pack(reads: Iterable[Corrected]) -> dict[str, np.ndarray]:
    """Corrected reads as arrays: the columns of all reads end to end, with their sizes."""
    held = list(reads)
    arrays = {name: np.concatenate([getattr(found, name) for found in held] or [[]]) for name in PER_BASE}
    arrays["sizes"] = np.array([[len(getattr(found, name)) for name in PER_BASE] for found in held], np.int64)
    arrays["numbers"] = np.array([[getattr(found, name) for name in NUMBERS] for found in held])
    return arrays


def unpack(arrays: Arrays) -> Iterator[Corrected]:
    """The reads that were packed."""
    ends = np.cumsum(arrays["sizes"], axis=0)
    for size, end, numbers in zip(arrays["sizes"], ends, arrays["numbers"], strict=True):
        columns: dict[str, Any] = {name: arrays[name][end[i] - size[i] : end[i]] for i, name in enumerate(PER_BASE)}
        values: dict[str, Any] = {
            name: float(n) if name == "support" else int(n) for name, n in zip(NUMBERS, numbers, strict=True)
        }
        yield Corrected(**columns, **values)


def keep_overlaps(
    work: Workdir, find: Callable[[], tuple[Overlaps, tuple[Scoring, ...]]]
) -> tuple[Overlaps, tuple[Scoring, ...]]:
    """Overlaps of the reads as given, and the scores of their alignments, found once."""

    def make() -> Arrays:
        overlaps, steps = find()
        return {"steps": np.array(steps, np.int64), **{f.name: getattr(overlaps, f.name) for f in fields(Overlaps)}}

    arrays = work.once("given-overlaps", make)
    steps = tuple(Scoring(*map(int, step)) for step in arrays["steps"])
    return Overlaps(**{f.name: arrays[f.name] for f in fields(Overlaps)}), steps
