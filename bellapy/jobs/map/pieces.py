"""How the alignment of a chain is cut into pieces: stretches between anchors, and the two ends, tile by tile."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import NamedTuple, TypeVar

import numpy as np

from bellapy.compute.jit import njit, njit_inner
from bellapy.engines.affine.pieces import Pieces, Solved
from bellapy.engines.affine.rule import EXTEND, GLOBAL, REACH
from bellapy.seeding.anchors import place_of, query_of

MIN_PIECE = 200  # bases of an inner piece, on read and reference
OFF, WITHIN = 2, 500  # diagonals between an anchor that is astray and those on either side, in so many query bases
DRIFT = 2  # bases by which indels may move a word from the diagonal of anchors near by
LONGEST_GAP = 5000  # bases between anchors, on read and reference, that are aligned
LONGEST_PIECE = 2000  # query bases, from which on any anchor will do
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


@njit_inner
def _stands_near(codes, word, at, k):
    """Whether one half of the k bases from `word` on stands within DRIFT of `at` too, as copies of a unit may differ.

    codes : uint8, of the reference.
    """
    half = k // 2
    for to in range(max(0, at - DRIFT), min(at + DRIFT, len(codes) - k) + 1):
        for begin in (0, k - half):
            x = begin
            while x < begin + half and codes[word + x] == codes[to + x]:
                x += 1
            if x == begin + half and abs(to - word) >= OFF:
                return True
    return False


@njit_inner
def _is_astray(anchors, first, end, y, layout, codes, k):
    """Whether anchors before and behind anchor y lie on diagonals on the same side of its own, and its word stands near one
    of theirs: in a tandem repeat two gaps, there and back, may lead through anchors of other units, and the best path goes
    straight on.

    first, end : of the chain's anchors.  codes : uint8, of the reference.  k : bases of an anchor.
    """
    q, place = query_of(anchors[y], layout), place_of(anchors[y], layout)
    both, same = 3, False  # of lower and higher diagonals: 1 and 2
    for step in (-1, 1):
        x, here, before = y + step, 0, 0
        while first <= x < end and abs(query_of(anchors[x], layout) - q) <= WITHIN:
            off = place_of(anchors[x], layout) - query_of(anchors[x], layout) - place + q
            if abs(off) >= OFF and off != before:
                here |= 1 if off < 0 else 2
                same = same or _stands_near(codes, place, place + off, k)
            x, before = x + step, off
        both &= here
    return same and both > 0


@njit_inner
def _breaks_off(anchors, y, layout):
    """Whether an alignment ends at anchor y - 1, and another one begins at anchor y, as too much lies between them."""
    q_gap = query_of(anchors[y], layout) - query_of(anchors[y - 1], layout)
    return q_gap > LONGEST_GAP and place_of(anchors[y], layout) - place_of(anchors[y - 1], layout) > LONGEST_GAP


@njit_inner
def _begin_part(ends, spans, a, at, place, left):
    """Write the beginning of alignment a to `ends` and `spans`, as `cut_chains` returns them.

    at : where its read begins in the codes.  place : on the read and in the reference's codes.  left : bases before it.
    """
    spans[0, a], spans[2, a] = at + place[0], place[1]
    ends[0, 2 * a], ends[1, 2 * a], ends[2, 2 * a] = a, at + place[0] - 1, place[1] - 1
    ends[3, 2 * a], ends[4, 2 * a], ends[5, 2 * a] = left[0], left[1], -1


@njit_inner
def _end_part(ends, spans, a, at, place, left):
    """Write the end of alignment a.  left : bases behind it.  All else as in `_begin_part`."""
    spans[1, a], spans[3, a] = at + place[0], place[1]
    ends[0, 2 * a + 1], ends[1, 2 * a + 1], ends[2, 2 * a + 1] = a, at + place[0], place[1]
    ends[3, 2 * a + 1], ends[4, 2 * a + 1], ends[5, 2 * a + 1] = left[0], left[1], 1


@njit
def cut_chains(chains, anchors, kept, layout, k, read_at, lengths, starts, sequence_lengths, codes):
    """Inner pieces and ends of the alignments of the chains `kept`: one of each, or several where long gaps break it off.

    chains : Chains; anchors : uint64, theirs; layout : their Layout; k : bases of an anchor.  lengths : (n_reads,) int64.
    read_at : (n_reads,) int64, where each read begins in the reads' codes, followed by its reverse complement.
    starts, sequence_lengths : of the reference's sequences.  codes : uint8, of the reference.

    Returns the columns of Pieces and the alignment of each (7, n), those of Ends (6, 2 n), for each alignment the places
    where its inner part begins and ends, in the codes of reads and of the reference (4, n), and its chain (n,).
    """
    most, n_parts = 0, len(kept)
    for x in kept:
        most += chains.n_anchors[x]
        for y in range(chains.first[x] + 1, chains.first[x] + chains.n_anchors[x]):
            n_parts += _breaks_off(anchors, y, layout)
    inner, n = np.empty((7, most), np.int64), 0
    ends, spans, whose = np.empty((6, 2 * n_parts), np.int64), np.empty((4, n_parts), np.int64), np.empty(n_parts, np.int64)
    half, a = k // 2, 0
    for x in kept:
        read, first, end = chains.read[x], chains.first[x], chains.first[x] + chains.n_anchors[x]
        at = read_at[read] + chains.strand[x] * lengths[read]
        q, t = query_of(anchors[first], layout) + half, place_of(anchors[first], layout) + half
        sequence = np.searchsorted(starts, t, side="right") - 1
        t_left, t_right = t - starts[sequence], starts[sequence] + sequence_lengths[sequence]
        _begin_part(ends, spans, a, at, (q, t), (q, t_left))
        for y in range(first + 1, end):
            q_next, t_next = query_of(anchors[y], layout) + half, place_of(anchors[y], layout) + half
            is_last = y == end - 1 or _breaks_off(anchors, y + 1, layout)
            is_long = q_next - q >= MIN_PIECE and t_next - t >= MIN_PIECE
            if _breaks_off(anchors, y, layout):
                each = (q_next - q) // 2, (t_next - t) // 2  # so that they do not meet
                _end_part(ends, spans, a, at, (q, t), each)
                whose[a], a = x, a + 1
                _begin_part(ends, spans, a, at, (q_next, t_next), each)
                q, t = q_next, t_next
                continue
            if is_long and q_next - q < LONGEST_PIECE:
                is_long = not _is_astray(anchors, first, end, y, layout, codes, k)
            if is_long or is_last:
                inner[0, n], inner[1, n], inner[2, n], inner[3, n] = at + q, q_next - q, t, t_next - t
                inner[4, n], inner[5, n], inner[6, n] = 1, GLOBAL, a
                n += 1
                q, t = q_next, t_next
        _end_part(ends, spans, a, at, (q, t), (lengths[read] - q, t_right - t))
        whose[a], a = x, a + 1
    return inner[:, :n].copy(), ends, spans, whose


def do_steps(steps: Steps[Result], align: Callable[[Pieces], Solved]) -> Result:
    """What the steps return, with a function that aligns pieces."""
    try:
        pieces = next(steps)
        while True:
            pieces = steps.send(align(pieces))
    except StopIteration as end:
        return end.value


@njit
def _ends_with(left, keep):
    """Those of Ends for which `keep`, (n,) bool, holds and that have bases left on both sides."""
    rows, n = np.empty((6, len(keep)), np.int64), 0
    for x in range(len(keep)):
        if keep[x] and left.q_left[x] > 0 and left.t_left[x] > 0:
            rows[0, n], rows[1, n], rows[2, n] = left.alignment[x], left.q_pos[x], left.t_pos[x]
            rows[3, n], rows[4, n], rows[5, n] = left.q_left[x], left.t_left[x], left.step[x]
            n += 1
    return Ends(rows[0, :n], rows[1, :n], rows[2, :n], rows[3, :n], rows[4, :n], rows[5, :n])


def next_tiles(ends: Ends) -> Pieces:
    """The next tile of each end, outwards.

    Only the last tile of a read is offered the bonus.
    """
    q_len = np.minimum(ends.q_left, TILE)
    t_len = np.minimum(ends.t_left, q_len + q_len // TILE_SLACK + LEAST_SLACK)
    mode = np.where(q_len == ends.q_left, REACH, EXTEND)
    return Pieces(ends.q_pos, q_len, ends.t_pos, t_len, ends.step, mode)


@njit
def beyond_tiles(ends, tiles, solved, spans):
    """What is left of ends (Ends) beyond their tiles (Pieces), which are solved (Solved); Ends.

    spans : as of `cut_chains`; grows by what the tiles reach.
    """
    n = len(ends.step)
    keep, q_pos, t_pos = np.empty(n, np.bool_), np.empty(n, np.int64), np.empty(n, np.int64)
    for x in range(n):
        side = 1 if ends.step[x] > 0 else 0
        q_step, t_step = ends.step[x] * solved.q_used[x], ends.step[x] * solved.t_used[x]
        spans[side, ends.alignment[x]] += q_step
        spans[2 + side, ends.alignment[x]] += t_step
        q_pos[x], t_pos[x] = ends.q_pos[x] + q_step, ends.t_pos[x] + t_step
        keep[x] = tiles.mode[x] == EXTEND and not solved.dropped[x] and solved.q_used[x] >= LEAST_PROGRESS
    q_left, t_left = ends.q_left - solved.q_used, ends.t_left - solved.t_used
    return _ends_with(Ends(ends.alignment, q_pos, t_pos, q_left, t_left, ends.step), keep)


def align_chains(inner: np.ndarray, ends: np.ndarray, spans: np.ndarray) -> Steps[Strokes]:
    """Align everything that `cut_chains` gives; `spans` grows by what the ends reach.

    Returns the strokes of all alignments.
    """
    whose = inner[6]
    solved = yield Pieces(*inner[:6])
    found = [(whose, np.arange(len(whose)), np.zeros_like(whose), solved)]
    tile, waiting = 1, _ends_with(Ends(*ends), np.ones(ends.shape[1], np.bool_))
    while len(waiting.step):
        tiles = next_tiles(waiting)
        solved = yield tiles
        rank = np.where(waiting.step > 0, len(whose) + tile, -tile)
        found.append((waiting.alignment, rank, (waiting.step < 0).astype(np.int64), solved))
        waiting, tile = beyond_tiles(waiting, tiles, solved, spans), tile + 1
    return _join_strokes(found)


def _join_strokes(found: list) -> Strokes:
    """All strokes by alignment and rank."""
    shifts = np.cumsum([0] + [len(solved.runs) for *_, solved in found])
    columns = [np.concatenate([part[x] for part in found]) for x in range(3)]
    starts = np.concatenate([part[3].starts + shift for part, shift in zip(found, shifts[:-1], strict=True)])
    columns += [starts, np.concatenate([part[3].counts for part in found])]
    order = np.lexsort((columns[1], columns[0]))
    return Strokes._make([*(column[order] for column in columns), np.concatenate([solved.runs for *_, solved in found])])
