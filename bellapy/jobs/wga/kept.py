"""What a stopped run goes on with: how far the alignment of two sequences is."""

from __future__ import annotations

from time import monotonic
from typing import NamedTuple

import numpy as np

from bellapy.io.workdir import Workdir

SAVE_S = 60.0
"""How often the alignments of two sequences are saved before all are found."""


class Part(NamedTuple):
    """An alignment: score, places of the first pair, runs as in `Alignment`."""

    score: int
    target: int
    query: int
    runs: np.ndarray


class Progress(NamedTuple):
    """How far the alignment of two sequences is.

    parts : found so far, n_first of them in the first round, -1: it is not over.  at : the next anchor of the round.
    n_extended, n_left_out, n_cells : anchors that were extended and that were left out in repeats, cells computed.
    """

    parts: list[Part]
    n_first: int = -1
    at: int = 0
    n_extended: int = 0
    n_left_out: int = 0
    n_cells: int = 0


class Keeper:
    """Keeps the progress of two sequences in a folder; work None: nowhere."""

    def __init__(self, work: Workdir | None, name: str):
        self.work, self.name, self.saved = work, name, monotonic()

    def load(self) -> Progress:
        """What was saved last, or the beginning."""
        arrays = self.work.load(self.name) if self.work else None
        if arrays is None:
            return Progress([])
        runs, heads = arrays["runs"], arrays["heads"].tolist()
        parts = [Part(score, target, query, runs[begin:end]) for score, target, query, begin, end in heads]
        return Progress(parts, *arrays["numbers"].tolist())

    def is_due(self) -> bool:
        return self.work is not None and monotonic() - self.saved > SAVE_S

    def save(self, progress: Progress) -> None:
        if self.work is None:
            return
        ends = np.cumsum([0, *(len(part.runs) for part in progress.parts)])
        heads = [(*part[:3], ends[x], ends[x + 1]) for x, part in enumerate(progress.parts)]
        runs = [np.zeros((0, 2), np.int64), *(part.runs for part in progress.parts)]
        self.work.save(
            self.name,
            {
                "heads": np.array(heads, np.int64).reshape(-1, 5), "runs": np.concatenate(runs),
                "numbers": np.array(progress[1:], np.int64),
            },
        )  # fmt: skip
        self.saved = monotonic()


NOWHERE = Keeper(None, "")
