"""Two genomes while they are aligned: their sequences, anchors, and what is known of the alignment so far."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_inner
from bellapy.engines.ydrop.walls import add_wall, no_walls
from bellapy.jobs.wga.kept import Part, Progress
from bellapy.records.genomes import PAIR, QUERY_ALONE, TARGET_ALONE, Alignment, Genome
from bellapy.seeding.sampling import MIXER


class Sequences(NamedTuple):
    """All sequences of two genomes; the query's other strand stands behind the one of its file.

    target, query : (n,) uint8 codes.  t_starts, t_ends, q_starts, q_ends : (n_sequences,) int64, places in these, ascending.
    """

    target: np.ndarray
    query: np.ndarray
    t_starts: np.ndarray
    t_ends: np.ndarray
    q_starts: np.ndarray
    q_ends: np.ndarray

    def owners(self, t: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The target and the query sequence that hold each place, (n,) int64 each."""
        return np.searchsorted(self.t_starts, t, "right") - 1, np.searchsorted(self.q_starts, q, "right") - 1

    def pairs(self, t: np.ndarray, q: np.ndarray) -> np.ndarray:
        """A number for each two sequences, (n,) int64."""
        t_owner, q_owner = self.owners(t, q)
        return t_owner * len(self.q_starts) + q_owner

    def edges(self, t: np.ndarray, q: np.ndarray) -> np.ndarray:
        """Begin and end of the target sequence, then of the query sequence, (n, 4) int64."""
        t_owner, q_owner = self.owners(t, q)
        return np.stack(
            (self.t_starts[t_owner], self.t_ends[t_owner], self.q_starts[q_owner], self.q_ends[q_owner]), axis=1
        )  # fmt: skip

    def alignments(self, parts: list[Part]) -> list[Alignment]:
        """Alignments by the numbers of sequences and the places on these."""
        at = np.array([(part.target, part.query) for part in parts], np.int64).reshape(-1, 2)
        t, q = self.owners(*at.T)
        at, n = at - np.stack((self.t_starts[t], self.q_starts[q]), axis=1), len(self.q_starts) // 2
        numbers, strands = np.where(q < n, q, 2 * n - 1 - q), np.where(q < n, 1, -1)
        places = np.column_stack((t, numbers, strands, at)).tolist()
        return [
            Alignment(part.score, target, query, strand, t_at, q_at, part.runs)
            for part, (target, query, strand, t_at, q_at) in zip(parts, places, strict=True)
        ]


def sequences_of(target: Genome, strands: dict[int, Genome]) -> Sequences:
    """strands : the query by 1, its reverse complement by -1."""
    forward, reverse = strands[1], strands[-1]
    q_starts = np.concatenate((forward.starts, len(forward.codes) + reverse.starts[::-1]))
    q_ends = q_starts + np.concatenate((forward.lengths, reverse.lengths[::-1]))
    codes = np.concatenate((forward.codes, reverse.codes))
    return Sequences(target.codes, codes, target.starts, target.starts + target.lengths, q_starts, q_ends)


LENGTH_BITS, BAND_BITS = 20, 11
"""Of sums and of differences of both places: anchors that agree in those above are likely to lie on one path."""


class Anchors(NamedTuple):
    """target, query : (n,) int64 places in `Sequences`.  score : (n,) int64, of the HSP.

    support : (n,) int64, by which anchors are taken: what speaks for each (support.py), or the score.
    limits : (n, 4) int64, target places between which an extension stays, then query places; within the sequences.
    path : (n,) int64, anchors with the same number are likely to lie on one path: by their limits, below 0 where there are
    none but the sequences' edges, and only places tell.
    """

    target: np.ndarray
    query: np.ndarray
    score: np.ndarray
    support: np.ndarray
    limits: np.ndarray
    path: np.ndarray

    def take(self, rows: np.ndarray) -> Anchors:
        return Anchors(*(column[rows] for column in self))

    def ordered(self, some: np.ndarray) -> Anchors:
        """Some of them, (n,) bool, by falling support, then by falling score, then by target place, then by query place."""
        rows = np.flatnonzero(some)
        place = self.target[rows] << 32 | self.query[rows]  # HSPs come in nearly this order, so it is sorted fast
        return self.take(rows[np.lexsort((place, -self.score[rows], -self.support[rows]))])


def paths_of(t: np.ndarray, q: np.ndarray, limits: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """`path` of anchors, a hash of their limits or places."""
    near = t + q >> LENGTH_BITS, q - t >> BAND_BITS, -1, -1
    limited, number = (limits != edges).any(axis=1), np.zeros(len(t), np.uint64)
    for limit, place in zip(limits.T, near, strict=True):
        number = (number ^ np.where(limited, limit, place).astype(np.uint64)) * MIXER
        number ^= number >> np.uint64(32)
    number = (number >> np.uint64(1)).astype(np.int64)
    return np.where(limited, number, ~number)


def ends_of(part: Part) -> list[tuple[int, int]]:
    """Target and query places of both ends."""
    return [(part.target, part.query), _end(part.target, part.query, part.runs)]


@njit
def _end(t, q, runs):
    """The places behind a path that begins at t and q."""
    for x in range(len(runs)):
        t += runs[x, 1] if runs[x, 0] != QUERY_ALONE else 0
        q += runs[x, 1] if runs[x, 0] != TARGET_ALONE else 0
    return t, q


class Spanned(NamedTuple):
    """Bases that alignments span, (n,) bool each; no bases at all where anchors are not left out.

    target : of `Sequences`.  query : of its forward half; a base of the other half is the one as far from the end.
    """

    target: np.ndarray
    query: np.ndarray

    def add(self, part: Part) -> None:
        t, t_end, q, q_end = self._edges(part)
        self.target[t:t_end] = True
        self.query[q:q_end] = True

    def _edges(self, part: Part) -> tuple[int, int, int, int]:
        """Begin and end of what lies between the ends of an alignment, on both genomes."""
        (t, q), (t_end, q_end) = ends_of(part)
        if q >= len(self.query):
            q, q_end = 2 * len(self.query) - q_end, 2 * len(self.query) - q
        return t, t_end, q, q_end

    def meets(self, part: Part) -> bool:
        """Whether a base of those between the ends of an alignment is spanned, on either genome."""
        t, t_end, q, q_end = self._edges(part)
        return bool(self.target[t:t_end].any() or self.query[q:q_end].any())


@njit
def stretch_around(part_at, runs, anchor, spanned, least):
    """What of a path lies around an anchor between pairs that are spanned on `least` of both genomes: target and query place
    of the first pair, and the runs, (n, 2) int64, none where no pair is left.

    part_at : target and query place of the path's first pair.  runs : (m, 2) int64.  anchor : its target place.
    spanned : Spanned.
    """
    low, high, n, half = 0, np.int64(1) << 60, 0, len(spanned.query)
    t, q = part_at
    for x in range(len(runs)):
        operation, size = runs[x, 0], runs[x, 1]
        for k in range(size if operation == PAIR and n < high else 0):
            q_at = q + k if q + k < half else 2 * half - 1 - q - k
            if np.int64(spanned.target[t + k]) + np.int64(spanned.query[q_at]) >= least:
                if t + k >= anchor:
                    high = n + k
                    break
                low = n + k + 1
        n += size if operation == PAIR else 0
        t += size if operation != QUERY_ALONE else 0
        q += size if operation != TARGET_ALONE else 0
    left = np.empty((len(runs), 2), np.int64)
    first_t, first_q, n_left = _pairs_between(part_at, runs, low, min(high, n), left)
    return first_t, first_q, left[:n_left].copy()


@njit_inner
def _pairs_between(part_at, runs, low, high, left):
    """The runs of pairs low to high of a path, into `left`; the target and query place of the first one, and how many runs.

    Of two gaps between pairs query alone comes first.
    """
    n_left = n = 0
    t, q = part_at
    first_t, first_q, t_gap, q_gap = t, q, np.int64(0), np.int64(0)
    for x in range(len(runs)):
        operation, size = runs[x, 0], runs[x, 1]
        if operation == PAIR:
            begin, end = max(low, n), min(high, n + size)
            if begin < end:
                if n_left == 0:
                    first_t, first_q = t + begin - n, q + begin - n
                    t_gap = q_gap = 0
                for alone, gap in ((QUERY_ALONE, q_gap), (TARGET_ALONE, t_gap)):
                    if gap:
                        left[n_left, 0], left[n_left, 1] = alone, gap
                        n_left += 1
                if n_left and left[n_left - 1, 0] == PAIR:
                    left[n_left - 1, 1] += end - begin
                else:
                    left[n_left, 0], left[n_left, 1] = PAIR, end - begin
                    n_left += 1
                t_gap = q_gap = 0
            n += size
        else:
            q_gap += size if operation == QUERY_ALONE else 0
            t_gap += size if operation == TARGET_ALONE else 0
        t += size if operation != QUERY_ALONE else 0
        q += size if operation != TARGET_ALONE else 0
    return first_t, first_q, n_left


class Scene:
    """Two genomes while they are aligned: walls, what is spanned, and how far the alignment is."""

    def __init__(self, sequences: Sequences, *, same: bool, leave_out: bool, trims: bool = False):
        """same : the query is the target, and the alignment of each sequence with itself is a wall from the beginning.

        leave_out : whether anchors are left out where alignments span both genomes.  trims : whether alignments are, too.
        """
        self.trims = trims
        target, query = sequences.target, sequences.query
        self.sequences, self.parts, self.n_first = sequences, list[Part](), -1
        self.walls = no_walls(len(target) + len(query))
        if same:
            for start, end in zip(sequences.t_starts.tolist(), sequences.t_ends.tolist(), strict=True):
                self.walls = add_wall(self.walls, start, start, np.array([(PAIR, end - start)], np.int64))
        sizes = (len(target), len(query) // 2) if leave_out else (0, 0)
        self.spanned = Spanned(*(np.zeros(size, np.bool_) for size in sizes))
        self.n_extended = self.n_left_out = self.n_cells = 0
        self.waits = np.zeros(0, np.bool_)

    def go_on(self, progress: Progress) -> None:
        """Take over how far a stopped run was; its first alignments are those that are here."""
        for part in progress.parts[len(self.parts) :]:
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
