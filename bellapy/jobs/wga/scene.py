"""Anchors of two sequences, and what is known of their alignment so far."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.engines.ydrop.walls import add_wall, no_walls
from bellapy.jobs.wga.kept import Part, Progress
from bellapy.records.genomes import PAIR, QUERY_ALONE, TARGET_ALONE


class Anchors(NamedTuple):
    """target, query : (n,) int64 places.  score : (n,) int64, of the HSP.

    support : (n,) int64, by which anchors are taken: what the chain of each scores (support.py), or the score.
    """

    target: np.ndarray
    query: np.ndarray
    score: np.ndarray
    support: np.ndarray

    def take(self, rows: np.ndarray) -> Anchors:
        return Anchors(*(column[rows] for column in self))

    def ordered(self) -> Anchors:
        """By falling support, then by falling score, then by target place, then by query place."""
        return self.take(np.lexsort((self.query, self.target, -self.score, -self.support)))


def ends_of(part: Part) -> list[tuple[int, int]]:
    """Target and query places of both ends."""
    operation, size = part.runs[:, 0], part.runs[:, 1]
    t_end = part.target + int(size[operation != QUERY_ALONE].sum())
    q_end = part.query + int(size[operation != TARGET_ALONE].sum())
    return [(part.target, part.query), (t_end, q_end)]


class Spanned(NamedTuple):
    """Bases of two sequences that alignments span, (n,) bool each; no bases at all where anchors are not left out."""

    target: np.ndarray
    query: np.ndarray

    def add(self, part: Part) -> None:
        begin, end = ends_of(part)
        self.target[begin[0] : end[0]] = True
        self.query[begin[1] : end[1]] = True


class Scene:
    """Two sequences while they are aligned: walls, what is spanned, and how far the alignment is."""

    def __init__(self, target: np.ndarray, query: np.ndarray, *, same: bool, leave_out: bool):
        self.target, self.query, self.parts, self.n_first = target, query, list[Part](), -1
        self.walls = no_walls(len(target) + len(query))
        if same:
            self.walls = add_wall(self.walls, 0, 0, np.array([(PAIR, len(target))], np.int64))
        self.spanned = Spanned(*(np.zeros(len(text) if leave_out else 0, np.bool_) for text in (target, query)))
        self.n_extended = self.n_left_out = self.n_cells = 0
        self.waits = np.zeros(0, np.bool_)

    def go_on(self, progress: Progress) -> None:
        """Take over what a stopped run has found."""
        for part in progress.parts:
            self.add(part)
        self.n_first, self.n_extended, self.n_left_out = progress.n_first, progress.n_extended, progress.n_left_out
        self.n_cells, self.waits = progress.n_cells, progress.waits

    def add(self, part: Part) -> None:
        self.parts.append(part)
        if len(self.spanned.target):
            self.spanned.add(part)
        self.walls = add_wall(self.walls, part.query, part.target, part.runs)

    def take(self, parts: list[Part], n_cells: int) -> None:
        """The alignments that an anchor leads to, and the cells that they took."""
        self.n_extended, self.n_cells = self.n_extended + 1, self.n_cells + n_cells
        for part in parts:
            self.add(part)

    def progress(self, at: int) -> Progress:
        """at : the next turn."""
        return Progress(self.parts, self.n_first, at, self.n_extended, self.n_left_out, self.n_cells, self.waits)
