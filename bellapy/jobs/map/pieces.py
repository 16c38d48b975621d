"""How the alignment of a chain is cut into pieces: stretches between anchors, and the two ends, tile by tile."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import NamedTuple, TypeVar

import numpy as np

from bellapy.compute.jit import njit
from bellapy.engines.affine.pieces import Pieces, Solved
from bellapy.engines.affine.rule import EXTEND, GLOBAL, REACH
from bellapy.seeding.anchors import place_of, query_of

MIN_PIECE = 200  # bases of an inner piece, on read and reference
TILE = 1000  # query bases of an end that are aligned at a time
TILE_SLACK = 8  # the target of a tile is longer by this part of it
LEAST_SLACK = 48
LEAST_PROGRESS = TILE // 4
Result = TypeVar("Result")
Steps = Generator[Pieces, Solved, Result]
"""Work that asks for pieces to be aligned, gets their solutions, and goes on with these."""


class Strokes(NamedTuple):
    """Solved pieces of alignments, in any order; all columns (n,) int64 but `runs`.

    alignment : whose piece it is.  rank : its place along the reference.
    backward : 1 if it was aligned from right to left, so that its runs stand in the order of the reference.
    starts, counts : its runs in `runs`, uint32.
    """

    alignment: np.ndarray
    rank: np.ndarray
    backward: np.ndarray
    starts: np.ndarray
    counts: np.ndarray
    runs: np.ndarray


class Ends(NamedTuple):
    """What is still to be aligned at the ends of alignments; all columns (n,) int64.

    alignment; q_pos, t_pos : in the codes, the next base outwards (left) or the first one not yet aligned (right).
    q_left, t_left : bases from there to the end of read and of sequence.  step : 1 right, -1 left.
    """

    alignment: np.ndarray
    q_pos: np.ndarray
    t_pos: np.ndarray
    q_left: np.ndarray
    t_left: np.ndarray
    step: np.ndarray

    def take(self, rows: np.ndarray) -> Ends:
        return Ends(*(column[rows] for column in self))


@njit
def cut_chains(chains, anchors, kept, layout, k, read_at, lengths, starts, sequence_lengths):
    """Inner pieces and ends of the alignments of the chains `kept`.

    chains : Chains; anchors : uint64, theirs; layout : their Layout; k : bases of an anchor.  lengths : (n_reads,) int64.
    read_at : (n_reads,) int64, where each read begins in the reads' codes, followed by its reverse complement.
    starts, sequence_lengths : of the reference's sequences.

    Returns the columns of Pieces and the alignment of each (7, n), those of Ends (6, 2 n), and for each alignment the places
    where its inner part begins and ends, in the codes of reads and of the reference (4, n).
    """
    most = 0
    for x in kept:
        most += chains.n_anchors[x]
    inner, n = np.empty((7, most), np.int64), 0
    ends, spans = np.empty((6, 2 * len(kept)), np.int64), np.empty((4, len(kept)), np.int64)
    half = k // 2
    for a in range(len(kept)):
        x = kept[a]
        read, first, count = chains.read[x], chains.first[x], chains.n_anchors[x]
        at = read_at[read] + chains.strand[x] * lengths[read]
        q, t = query_of(anchors[first], layout) + half, place_of(anchors[first], layout) + half
        sequence = np.searchsorted(starts, t, side="right") - 1
        left, right = starts[sequence], starts[sequence] + sequence_lengths[sequence]
        spans[0, a], spans[2, a] = at + q, t
        ends[0, 2 * a], ends[1, 2 * a], ends[2, 2 * a] = a, at + q - 1, t - 1
        ends[3, 2 * a], ends[4, 2 * a], ends[5, 2 * a] = q, t - left, -1
        for y in range(first + 1, first + count):
            q_next, t_next = query_of(anchors[y], layout) + half, place_of(anchors[y], layout) + half
            if y == first + count - 1 or (q_next - q >= MIN_PIECE and t_next - t >= MIN_PIECE):
                inner[0, n], inner[1, n], inner[2, n], inner[3, n] = at + q, q_next - q, t, t_next - t
                inner[4, n], inner[5, n], inner[6, n] = 1, GLOBAL, a
                n += 1
                q, t = q_next, t_next
        spans[1, a], spans[3, a] = at + q, t
        ends[0, 2 * a + 1], ends[1, 2 * a + 1], ends[2, 2 * a + 1] = a, at + q, t
        ends[3, 2 * a + 1], ends[4, 2 * a + 1], ends[5, 2 * a + 1] = lengths[read] - q, right - t, 1
    return inner[:, :n].copy(), ends, spans


def do_steps(steps: Steps[Result], align: Callable[[Pieces], Solved]) -> Result:
    """What the steps return, with a function that aligns pieces."""
    try:
        pieces = next(steps)
        while True:
            pieces = steps.send(align(pieces))
    except StopIteration as end:
        return end.value


def align_chains(inner: np.ndarray, ends: np.ndarray, spans: np.ndarray) -> Steps[Strokes]:
    """Align everything that `cut_chains` gives; `spans` grows by what the ends reach.

    Returns the strokes of all alignments.
    """
    whose = inner[6]
    solved = yield Pieces(*inner[:6])
    rank = np.arange(len(whose))
    found = [(whose, rank, np.zeros_like(whose), solved)]
    tile, waiting = 1, Ends(*ends)
    while True:
        waiting = waiting.take(np.flatnonzero((waiting.q_left > 0) & (waiting.t_left > 0)))
        if not len(waiting.step):
            break
        q_len = np.minimum(waiting.q_left, TILE)
        t_len = np.minimum(waiting.t_left, q_len + q_len // TILE_SLACK + LEAST_SLACK)
        last = q_len == waiting.q_left
        mode = np.where(last, REACH, EXTEND)  # only the last tile of a read is offered the bonus
        solved = yield Pieces(waiting.q_pos, q_len, waiting.t_pos, t_len, waiting.step, mode)
        rank = np.where(waiting.step > 0, len(whose) + tile, -tile)
        found.append((waiting.alignment, rank, (waiting.step < 0).astype(np.int64), solved))
        tile += 1
        for step, rows in ((-1, (0, 2)), (1, (1, 3))):
            mine = waiting.step == step
            for row, used in zip(rows, (solved.q_used, solved.t_used), strict=True):
                spans[row, waiting.alignment[mine]] += step * used[mine]
        waiting = Ends(
            waiting.alignment, waiting.q_pos + waiting.step * solved.q_used, waiting.t_pos + waiting.step * solved.t_used,
            waiting.q_left - solved.q_used, waiting.t_left - solved.t_used, waiting.step,
        ).take(np.flatnonzero(~last & ~solved.dropped & (solved.q_used >= LEAST_PROGRESS)))  # fmt: skip
    return _join_strokes(found)


def _join_strokes(found: list) -> Strokes:
    """All strokes by alignment and rank."""
    shifts = np.cumsum([0] + [len(solved.runs) for *_, solved in found])
    columns = [np.concatenate([part[x] for part in found]) for x in range(3)]
    starts = np.concatenate([part[3].starts + shift for part, shift in zip(found, shifts[:-1], strict=True)])
    columns += [starts, np.concatenate([part[3].counts for part in found])]
    order = np.lexsort((columns[1], columns[0]))
    return Strokes._make([*(column[order] for column in columns), np.concatenate([solved.runs for *_, solved in found])])
