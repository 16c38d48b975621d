"""What a stopped run goes on with: how far the alignment of two sequences is."""

from __future__ import annotations

from time import monotonic
from typing import NamedTuple

import numpy as np

from bellapy.io.workdir import Workdir

SAVE_S = 60.0
"""How often the alignments of two sequences are saved before all are found."""


class Part(NamedTuple):
    """An alignment: score, places of the first pair, runs as in `Alignment`.

    fall : runs that were cut out of the path before it, none at the beginning of the path.
    """

    score: int
    target: int
    query: int
    runs: np.ndarray
    fall: np.ndarray = np.zeros((0, 2), np.int64)


class Progress(NamedTuple):
    """How far the alignment of two sequences is.

    parts : found so far, n_first of them in the first round, -1: it is not over.  at : the next turn of the round.
    n_extended, n_left_out, n_cells : anchors that were extended and that were left out in repeats, cells computed.
    waits : (n,) bool, anchors of the round that wait for their second turn.
    """

    parts: list[Part]
    n_first: int = -1
    at: int = 0
    n_extended: int = 0
    n_left_out: int = 0
    n_cells: int = 0
    waits: np.ndarray = np.zeros(0, np.bool_)


class Keeper:
    """Keeps the progress of two sequences in a folder; work None: nowhere."""

    def __init__(self, work: Workdir | None, name: str):
        self.work, self.name, self.saved = work, name, monotonic()

    def load(self) -> Progress | None:
        """What was saved last, None for nothing."""
        arrays = self.work.load(self.name) if self.work else None
        if arrays is None:
            return None
        runs, heads = arrays["runs"], arrays["heads"].tolist()
        parts = [
            Part(score, target, query, runs[begin:middle], runs[middle:end])
            for score, target, query, begin, middle, end in heads
        ]
        return Progress(parts, *arrays["numbers"].tolist())._replace(waits=arrays["waits"])

    def is_due(self) -> bool:
        return self.work is not None and monotonic() - self.saved > SAVE_S

    def save(self, progress: Progress) -> None:
        if self.work is None:
            return
        runs = [some for part in progress.parts for some in (part.runs, part.fall)]
        ends, none = np.cumsum([0, *map(len, runs)]).tolist(), np.zeros((0, 2), np.int64)
        heads = [(*part[:3], *ends[2 * x : 2 * x + 3]) for x, part in enumerate(progress.parts)]
        self.work.save(
            self.name,
            {
                "heads": np.array(heads, np.int64).reshape(-1, 6), "runs": np.concatenate([none, *runs]),
                "numbers": np.array(progress[1:-1], np.int64), "waits": progress.waits,
            },
        )  # fmt: skip
        self.saved = monotonic()


NOWHERE = Keeper(None, "")
