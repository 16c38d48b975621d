"""The linear rule in registers of a GPU: the step that both kernels take, for scores alone and for paths.

With even row d at column i + d of anti-diagonal 2 i, the next two are

    odd[d]  = max(even[d], even[d + 1], odd[d] + match or mismatch)        at column i + d + 1
    even[d] = max(odd[d - 1], odd[d], even[d] + match or mismatch)         at column i + d + 1

where scores are counted with a drift of one gap for each anti-diagonal, so that gaps cost nothing.  A mismatch counts at
least as much as two gaps: where that raises it, the two gaps give the same.

Halves (registers/window.py) are 0 (dead) or SCALE times a score above a base that is chosen anew for each chunk, below
2^15.  The four low bits are free: when the highest cell is sought they hold the register's number, so that of equal scores
the first row wins.  A cell is alive if adding `floor` (2^15 less the score it has to reach) sets its top bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.gpu.ops import BOTH, I32, U32, ballot, inlined, permute, shuffle
from bellapy.engines.registers.window import (
    BEFORE,
    BEFORE_AT_END,
    CHUNK,
    EVERY_BIT,
    HALF,
    NEXT,
    NEXT_AT_END,
    ONE,
    PAIRS,
    larger,
    larger_sum,
    trim,
)
from bellapy.params import Scoring

SCALE = 16  # the most registers of a lane, too: the four low bits number them
TOP = 0x8000
TOPS = U32(TOP * BOTH)
SIGNS = U32(0xBB99)  # selector of `permute`: each half's top bit in all its bits


class Packed(NamedTuple):
    """A Scoring as the kernels want it; halves of words, times SCALE."""

    step: np.uint32  # what a match scores above a mismatch; one half
    mismatch: np.uint32  # a mismatch, drift included
    drift: np.uint32  # by how much the least live score rises each anti-diagonal
    rise: np.uint32  # and by how much more where the best score rises by one match
    best: np.uint32  # `floor` plus the best score, and tags
    floor: np.uint32  # at the start of a chunk
    origin: np.uint32  # the first cell at the start of the first chunk; one half
    border: np.uint32  # value of `floor` at which border cells reach it; 0: never
    tilt: np.int32  # these two as in Scoring
    fall: np.int32


class Phase(NamedTuple):
    """Where a lane stands within a chunk.

    mask : the bit of this pair of anti-diagonals in both halves of the words of bases.
    step : what a match scores, such that times that bit it stands in its half.
    left : how many bits such a word is shifted until that bit is the top one of its half.
    floor : see above.
    """

    mask: np.uint32
    step: np.uint32
    left: int
    floor: np.uint32


class Rise(NamedTuple):
    """When the best score rose last in a chunk.

    time : anti-diagonal of the chunk, int32; -1: it did not.
    winners : lanes of the warp that have that cell, as bits, uint32.
    top : this lane's highest cells, tagged, uint32.
    """

    time: np.int32
    winners: np.uint32
    top: np.uint32


class Chunk(NamedTuple):
    """What a chunk leaves besides its cells: `floor`; the Rise; whether cells at the two ends of the window ever lived."""

    floor: np.uint32
    rise: Rise
    low_end: np.uint32
    high_end: np.uint32


class Notes(NamedTuple):
    """Bits that are kept of every cell; all (registers,) uint32, a bit for each pair of anti-diagonals.

    Whether a pair is a best last step; whether a query base alone is no worse than a target base alone.
    """

    even_pairs: np.ndarray
    odd_pairs: np.ndarray
    even_inserts: np.ndarray
    odd_inserts: np.ndarray


def _units(scoring: Scoring) -> tuple[int, int, int]:
    """Drift of an anti-diagonal, score of a match and of a mismatch with the drift of two."""
    drift = -scoring.gap
    return drift, scoring.match + 2 * drift, max(scoring.mismatch, 2 * scoring.gap) + 2 * drift


def level_of_best(scoring: Scoring) -> int:
    """Where the highest score stands at the start of a chunk, before SCALE.

    The lowest live one, of the first anti-diagonal to come, is dead still if a match takes it there; live cells of the
    chunk before are above 0.
    """
    drift, match, _ = _units(scoring)
    return match + 1 + scoring.xdrop - drift


def pack_scoring(scoring: Scoring) -> Packed:
    """The kernels' numbers.  `fits` says whether they stay within 16 bits."""
    drift, match, mismatch = _units(scoring)
    lowest, origin = match + 1, SCALE * level_of_best(scoring)
    floor = TOP - SCALE * lowest
    return Packed(
        U32(SCALE * (match - mismatch)), U32(SCALE * mismatch * BOTH), U32(SCALE * drift * BOTH),
        U32(SCALE * scoring.match * BOTH), U32((TOP + SCALE * scoring.xdrop + SCALE - 1) * BOTH), U32(floor * BOTH),
        U32(origin), U32(0 if drift >= scoring.xdrop else (TOP - origin) * BOTH),
        I32(scoring.tilt), I32(scoring.fall),
    )  # fmt: skip


def fits(scoring: Scoring) -> bool:
    """Whether a chunk of matches keeps all scores below 2^15."""
    drift, match, _ = _units(scoring)
    return SCALE * (match + scoring.xdrop + (CHUNK + 2) * drift + (PAIRS + 2) * scoring.match) < TOP


@inlined
def _appended(bits, word):
    """`bits`, each half a bit on, with the top bits of the halves of `word`."""
    return U32(U32(bits >> ONE) & (TOPS ^ EVERY_BIT) | word & TOPS)


@inlined
def _step(new, j, one, two, bits, phase, rule, kind, pairs, top):
    """A register of the next anti-diagonal.

    Parameters
    ----------
    new : (registers,) uint32, cells; number `j` is renewed.
    j : which register.
    one, two : its two neighbours on the anti-diagonal before.
    bits : where bases are equal, as in Stacks.
    phase, rule, kind : Phase, Packed, Kind.
    pairs : of Notes; if bits are kept, one is appended to number `j`.
    top : the highest cells so far.

    Returns
    -------
    The highest cells, tagged by register unless bits are kept.
    """
    gapped = larger(one, two, kind.packed)
    paired = U32(U32(bits & phase.mask) * phase.step + new[j])
    if kind.traced:
        better = U32(U32(U32(paired + rule.mismatch) + TOPS) - gapped)
        if kind.dear:
            better &= U32(bits << U32(phase.left))
        pairs[j] = _appended(pairs[j], better)
    value = larger_sum(paired, rule.mismatch, gapped, kind.packed)
    above = U32(value + phase.floor)
    new[j] = value & permute(above, U32(0), SIGNS)
    if kind.traced:
        return larger(above, top, kind.packed)
    return larger_sum(above, U32((SCALE - 1 - j) * BOTH), top, kind.packed)


@inlined
def _odd_diagonal(stacks, edge, phase, rule, kind, notes):
    """An odd anti-diagonal of this lane; returns its highest cells.

    `stacks`: Stacks, changed; `edge`: the register of the next lane that is neighbour of the last one here; `phase`, `rule`,
    `kind`: Phase, Packed, Kind; `notes`: Notes, appended to if bits are kept.
    """
    even, odd, last = stacks.even, stacks.odd, kind.registers - 1
    if kind.traced:
        for j in range(kind.registers):
            beside = even[j + 1] if j < last else edge
            notes.odd_inserts[j] = _appended(notes.odd_inserts[j], U32(U32(even[j] + TOPS) - beside))
    top = rule.best
    for j in range(kind.registers):
        beside = even[j + 1] if j < last else edge
        top = _step(odd, j, even[j], beside, stacks.odd_bits[j], phase, rule, kind, notes.odd_pairs, top)
    return top


@inlined
def _even_diagonal(stacks, edge, phase, rule, kind, notes):
    """The same for an even one; `edge` is the register of the lane before that is neighbour of the first one here.

    `stacks`, `phase`, `rule`, `kind`, `notes`: as above.
    """
    even, odd = stacks.even, stacks.odd
    if kind.traced:
        for j in range(kind.registers):
            beside = odd[j - 1] if j > 0 else edge
            notes.even_inserts[j] = _appended(notes.even_inserts[j], U32(U32(beside + TOPS) - odd[j]))
    top = rule.best
    for j in range(kind.registers):
        beside = odd[j - 1] if j > 0 else edge
        top = _step(even, j, odd[j], beside, stacks.even_bits[j], phase, rule, kind, notes.even_pairs, top)
    return top


@inlined
def _rise_of_group(top, rule, kind, seat, improved):
    """In which lanes of the group the best score rose to where it is now, and by how much.

    `top`: this lane's highest cells; `rule`, `kind`, `seat`: Packed, Kind, Seat; `improved`: whether they rose here.
    """
    votes = ballot(improved)
    if kind.unit:
        mine = U32(votes & seat.members)
        return mine, rule.rise if mine else U32(0)
    rise, mine = U32(0), U32(0)
    if votes:
        own = U32(max(U32(top & HALF), U32(top >> U32(16))) >> U32(4))  # without the tag
        most = own
        for i in range(5):
            if 1 << i < kind.group:
                most = max(most, U32(shuffle(I32(most), seat.lane ^ (1 << i))))
        mine = U32(ballot(improved and own == most) & seat.members)
        rise = U32(U32(most - U32(U32(rule.best & HALF) >> U32(4))) * U32(SCALE * BOTH))
    return mine, rise


@inlined
def _settle(top, last, t, floor, rule, kind, seat):
    """Let the floor follow; where the best score rose, remember the anti-diagonal, the lanes and their cells.

    Parameters
    ----------
    top : this lane's highest cells of anti-diagonal `t` of the chunk.
    last : Rise so far.
    t, floor : see above.
    rule, kind, seat : Packed, Kind, Seat.

    Returns
    -------
    The floor of the next anti-diagonal; the Rise.
    """
    improved = top != rule.best
    mine, rise = _rise_of_group(top, rule, kind, seat, improved)
    time, winners = (t, mine) if mine else (last.time, last.winners)
    return U32(floor - rule.drift - rise), Rise(time, winners, top if improved else last.top)


@inlined
def compute_chunk(stacks, notes, seat, first, row, pairs, border, rule, kind):
    """CHUNK anti-diagonals of a window.

    Parameters
    ----------
    stacks : Stacks, whose cells are renewed, and bits used up.
    notes : Notes, appended to if bits are kept.
    seat : Seat.
    first : place of the window's first lane.
    row : this lane's first row.
    pairs : of anti-diagonals that were computed before.
    border : the floor at which cells of column 0 and row 0 reach it, 0: never.
    rule, kind : Packed, Kind.

    Returns
    -------
    Chunk.
    """
    even, odd, R = stacks.even, stacks.odd, kind.registers
    at_first, at_last = seat.place == first, seat.place == (first + kind.group - 1 & kind.group - 1)
    to_next, to_before = (NEXT_AT_END if at_last else NEXT), (BEFORE_AT_END if at_first else BEFORE)
    low_end, high_end = even[0], U32(0)
    floor, rise, t = rule.floor, Rise(I32(-1), U32(0), U32(0)), I32(0)
    for _ in range(PAIRS // 4):
        mask, step, left = U32(BOTH), rule.step, 15
        for _ in range(4):
            p = I32(pairs + (t >> 1))
            edge = permute(even[0], U32(shuffle(I32(even[0]), seat.after)), to_next)
            top = _odd_diagonal(stacks, edge, Phase(mask, step, left, floor), rule, kind, notes)
            if floor == border:
                trim(odd, R, row, I32(-p), I32(p - 1))
            high_end = U32(high_end | odd[R - 1])
            floor, rise = _settle(top, rise, t, floor, rule, kind, seat)

            edge = permute(odd[R - 1], U32(shuffle(I32(odd[R - 1]), seat.before)), to_before)
            top = _even_diagonal(stacks, edge, Phase(mask, step, left, floor), rule, kind, notes)
            if floor == border:
                trim(even, R, row, I32(-p), p)
            low_end = U32(low_end | even[0])
            floor, rise = _settle(top, rise, I32(t + 1), floor, rule, kind, seat)
            t = I32(t + 2)
            mask, step, left = U32(mask << ONE), U32(step >> ONE), left - 1
        for j in range(R):
            stacks.odd_bits[j] >>= U32(4)
            stacks.even_bits[j] >>= U32(4)
    return Chunk(floor, rise, low_end if at_first else U32(0), high_end if at_last else U32(0))


@inlined
def has_left(chunk):
    """Whether a cell lived at an end of the window, beyond which others may have lived; `chunk`: Chunk."""
    return (chunk.low_end & HALF) != 0 or chunk.high_end >> U32(16) != 0


@inlined
def follow_border(border, shift, rule):
    """The floor at which border cells reach it, `border`, seen from the next chunk, whose scores are less by `shift`.

    `rule`: Packed.
    """
    border = U32(border + shift) if border else U32(0)
    return U32(0) if U32(border & HALF) > U32(rule.floor & HALF) else border
