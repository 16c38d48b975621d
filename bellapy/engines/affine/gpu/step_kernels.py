"""The affine rule in registers of a GPU: a band of diagonals in the lanes of a warp, two cells in each word.

Rows are those of lanes.py: row w holds diagonal 2 (w - centre) on even anti-diagonals and one more on odd ones, so that
nothing moves.  They stand in lanes as registers/window.py says.

Halves are 2^`scale` times a score above a base, with the drift of lanes.py.  All cells of the table that can be reached lie
within `_spread` of the best one, so 16 bits hold them exactly.  Cells outside the table begin at `floor`.  That is so low
that none of them is ever as good as one inside, even if all bases there were equal: they need no tests.  Nothing reads the
cells past the table's end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import cuda

from bellapy.compute.gpu.ops import BOTH, I32, U32, U64, WARP, ballot, inlined, permute, shuffle
from bellapy.engines.affine.gpu.ends_kernels import watch_diagonal
from bellapy.engines.registers.window import (
    BEFORE,
    BEFORE_AT_END,
    CHUNK,
    HALF,
    NEXT,
    NEXT_AT_END,
    ONE,
    PAIRS,
    larger,
    larger_sum,
)
from bellapy.params import AffineScoring

SCALES = 3, 1, 0
"""Scores are multiplied by 2 to the power of one of these.  So many pairs of anti-diagonals more pass between two shifts of
the words that say where bases are equal."""
MOST = 0x7FFF  # as registers/window.py has it: at the end of a band a half is made 0 by its top bit
TURN = 256  # the base rises by multiples of this: low bytes of scores can be compared
SHUFFLES = WARP.bit_length() - 1  # until all lanes of a warp know what each has
BYTES = U32(0x7531)  # selector of `permute`: the upper byte of all halves


class Kind(NamedTuple):
    """What a kernel is made for; constant while it is compiled.

    registers : of a lane, for each state of a parity; even.
    two : gaps have two pieces.
    traced : the low bytes of scores are kept.
    ends : the best cell is looked for, of extensions.
    scale : one of SCALES.
    packed : the device has instructions for packed maxima (compute capability 9.0 and more).
    """

    registers: int
    two: bool
    traced: bool
    ends: bool
    scale: int
    packed: bool


class Packed(NamedTuple):
    """Scores with the drift as kernels want them, times the scale.  In both halves but `step` and `top`.

    step : what equal bases score above unequal ones.  unequal : what these score.
    open1, open2 : what is added: less than 0, made for `Kind.packed`.
    extend1 : without the drift; what is taken away.
    one : 1, which the compiler does not know: a product and sum in place of a sum leaves the pipe of the maxima free.
    floor : of cells outside the table.  top : the best cell at the start.
    """

    step: np.uint32
    unequal: np.uint32
    open1: np.uint32
    extend1: np.uint32
    open2: np.uint32
    one: np.uint32
    floor: np.uint32
    top: np.uint32


class Stacks(NamedTuple):
    """A lane's cells, all (registers,) uint32.

    even, odd : H of the last two anti-diagonals.  e1, f1, e2, f2 : for the next one.
    even_bits, odd_bits : where bases are equal, as in registers/window.py.
    """

    even: np.ndarray
    odd: np.ndarray
    e1: np.ndarray
    f1: np.ndarray
    e2: np.ndarray
    f2: np.ndarray
    even_bits: np.ndarray
    odd_bits: np.ndarray


class Gaps(NamedTuple):
    """The best scores of gaps that end in the cells of a register, as in Stacks, uint32."""

    e1: np.uint32
    f1: np.uint32
    e2: np.uint32
    f2: np.uint32


class Phase(NamedTuple):
    """Where a lane stands between two shifts of the bits.

    mask : the bit of this pair of anti-diagonals in both halves.
    step : what equal bases score more, such that times that bit it stands in its half.
    """

    mask: np.uint32
    step: np.uint32


class Room(NamedTuple):
    """Where a lane writes scores: `lanes` words for each two registers of an anti-diagonal.

    at : of the next anti-diagonal, for this lane.  lanes : whose scores are kept, of a warp.  keeps : of this lane.
    """

    at: np.int64
    lanes: np.int32
    keeps: bool


def _rise(scoring: AffineScoring) -> int:
    """By how much a score with its drift can rise in a pair of anti-diagonals."""
    return scoring.match + 2 * scoring.extend2


def _spread(scoring: AffineScoring, rows: int) -> int:
    """How far a cell of a band can lie below the best one of its anti-diagonal."""
    return scoring.match * rows + scoring.open2 + 2 * rows * scoring.extend2


def _levels(scoring: AffineScoring, rows: int) -> tuple[int, int, int]:
    """Floor, score of the best cell at the start, and the highest score that is ever reached; before the scale."""
    floor = 3 * scoring.open2 + scoring.open1 + scoring.extend1 - scoring.mismatch  # gaps from a band's ends begin at 0
    outside = (2 * rows + CHUNK) * _rise(scoring) // 2  # what cells outside can gain while they are in the band
    top = floor + outside + _rise(scoring) + scoring.open2 + _spread(scoring, rows) + 1
    return floor, top, top + TURN + (PAIRS + 2) * _rise(scoring)


def scale_for(scoring: AffineScoring, rows: int) -> int:
    """The largest of SCALES with which all scores of a band stay within a half; -1: none.

    Scores of neighbours have to be known from their low bytes, too (walk_kernels.py).
    """
    first_base = max(scoring.open1 + scoring.extend1, scoring.open2 + scoring.extend2)
    if scoring.match + 2 * first_base >= TURN or scoring.match - scoring.mismatch >= TURN:
        return -1
    return next((scale for scale in SCALES if _levels(scoring, rows)[2] << scale <= MOST), -1)


def pack_scoring(scoring: AffineScoring, rows: int, kind: Kind) -> Packed:
    """The kernel's numbers for bands of so many rows."""
    floor, top, _ = _levels(scoring, rows)
    drift, scale = scoring.extend2, 1 << kind.scale

    def added(n: int) -> np.uint32:
        word = (n * scale & 0xFFFF) * BOTH if kind.packed else n * scale * BOTH
        return U32(word & 0xFFFFFFFF)

    return Packed(
        U32(scale * (scoring.match - scoring.mismatch)), added(scoring.mismatch + 2 * drift), added(-scoring.open1),
        U32(scale * (scoring.extend1 - drift) * BOTH), added(-scoring.open2), U32(1),
        U32(scale * floor * BOTH), U32(scale * top),
    )  # fmt: skip


@inlined
def _step(stacks, h, j, gaps, bits, phase, rule, kind):
    """Register j of the next anti-diagonal.

    Parameters
    ----------
    stacks : Stacks; E and F are renewed.
    h : H of two anti-diagonals ago, renewed.
    j : which register.
    gaps : Gaps that end in these cells.
    bits : where bases are equal.
    phase, rule, kind : Phase, Packed, Kind.
    """
    score = U32(U32(bits & phase.mask) * phase.step + h[j])
    score = larger_sum(score, rule.unequal, gaps.e2, kind.packed)
    if kind.two:
        score = larger(larger(score, gaps.f2, kind.packed), larger(gaps.e1, gaps.f1, kind.packed), kind.packed)
        stacks.e1[j] = U32(larger_sum(score, rule.open1, gaps.e1, kind.packed) * rule.one - rule.extend1)
        stacks.f1[j] = U32(larger_sum(score, rule.open1, gaps.f1, kind.packed) * rule.one - rule.extend1)
    else:
        score = larger(score, gaps.f2, kind.packed)
    h[j] = score
    stacks.e2[j] = larger_sum(score, rule.open2, gaps.e2, kind.packed)
    stacks.f2[j] = larger_sum(score, rule.open2, gaps.f2, kind.packed)


@inlined
def _odd_diagonal(stacks, after, to_next, phase, rule, kind):
    """An odd anti-diagonal of this lane: gaps of the query come from the row above.

    `stacks`: Stacks, changed; `after`, `to_next`: the next lane, selector of its words; `phase`, `rule`, `kind`: Phase,
    Packed, Kind.
    """
    last, e1, f1, e2, f2 = kind.registers - 1, stacks.e1, stacks.f1, stacks.e2, stacks.f2
    edge1 = permute(f1[0], U32(shuffle(I32(f1[0]), after)), to_next) if kind.two else U32(0)
    edge2 = permute(f2[0], U32(shuffle(I32(f2[0]), after)), to_next)
    for j in range(kind.registers):
        above1, above2 = (f1[j + 1], f2[j + 1]) if j < last else (edge1, edge2)
        _step(stacks, stacks.odd, j, Gaps(e1[j], above1, e2[j], above2), stacks.odd_bits[j], phase, rule, kind)


@inlined
def _even_diagonal(stacks, before, to_before, phase, rule, kind):
    """An even one: gaps of the target come from the row below.

    `before`, `to_before`: the lane before, selector of its words; `stacks`, `phase`, `rule`, `kind`: as above.
    """
    last, e1, f1, e2, f2 = kind.registers - 1, stacks.e1, stacks.f1, stacks.e2, stacks.f2
    edge1 = permute(e1[last], U32(shuffle(I32(e1[last]), before)), to_before) if kind.two else U32(0)
    edge2 = permute(e2[last], U32(shuffle(I32(e2[last]), before)), to_before)
    for i in range(kind.registers):
        j = last - i
        below1, below2 = (e1[j - 1], e2[j - 1]) if j > 0 else (edge1, edge2)
        _step(stacks, stacks.even, j, Gaps(below1, f1[j], below2, f2[j]), stacks.even_bits[j], phase, rule, kind)


@inlined
def _keep(cells, kept, room, kind):
    """Write the low bytes of the scores of an anti-diagonal, if this lane's are kept.

    `cells`: (registers,) uint32; `kept`: uint32; `room`: Room; `kind`: Kind.
    """
    up = U32(8 - kind.scale)
    if room.keeps:
        for i in range(kind.registers // 2):
            kept[U64(room.at + i * room.lanes)] = permute(U32(cells[2 * i] << up), U32(cells[2 * i + 1] << up), BYTES)


@inlined
def compute_chunk(stacks, pairs, kept, room, watch, table, rule, kind):
    """CHUNK anti-diagonals of a band.

    Parameters
    ----------
    stacks : Stacks, whose cells are renewed, and bits used up.
    pairs : of anti-diagonals that were computed before.
    kept, room : uint32, gets scores if paths are wanted; Room.
    watch, table : Watch, Table.
    rule, kind : Packed, Kind.

    Returns
    -------
    Watch; as it was if ends are not looked for.
    """
    last, lane = WARP - 1, table.lane
    to_next, to_before = (NEXT_AT_END if lane == last else NEXT), (BEFORE_AT_END if lane == 0 else BEFORE)
    after, before = I32(lane + 1 & last), I32(lane - 1 & last)
    together = kind.scale + 1
    r, at = I32(2 * pairs), room.at
    of_diagonal = kind.registers // 2 * room.lanes
    for _ in range(PAIRS // together):
        mask, step = U32(BOTH), rule.step
        for _ in range(together):
            _odd_diagonal(stacks, after, to_next, Phase(mask, step), rule, kind)
            if kind.traced:
                _keep(stacks.odd, kept, Room(at, room.lanes, room.keeps), kind)
            if kind.ends:
                watch = watch_diagonal(watch, stacks.odd, I32(r + 1), table, kind.registers)
            _even_diagonal(stacks, before, to_before, Phase(mask, step), rule, kind)
            if kind.traced:
                _keep(stacks.even, kept, Room(at + of_diagonal, room.lanes, room.keeps), kind)
            if kind.ends:
                watch = watch_diagonal(watch, stacks.even, I32(r + 2), table, kind.registers)
            at, r = at + 2 * of_diagonal, I32(r + 2)
            mask, step = U32(mask << ONE), U32(step >> ONE)
        for j in range(kind.registers):
            stacks.odd_bits[j] >>= U32(together)
            stacks.even_bits[j] >>= U32(together)
    return watch


@inlined
def begin(stacks, row, centre, rule, kind):
    """The first anti-diagonal: the cell (0, 0) in row `centre`.

    `stacks`: Stacks, overwritten; `row`: this lane's first; `rule`, `kind`: Packed, Kind.
    """
    R = kind.registers
    for j in range(R):
        low = rule.top if row + j == centre else U32(rule.floor & HALF)
        high = rule.top if row + R + j == centre else U32(rule.floor & HALF)
        stacks.even[j], stacks.odd[j] = U32(low | high << U32(16)), rule.floor
        opened = larger_sum(stacks.even[j], rule.open1, U32(rule.floor + rule.extend1), kind.packed)
        stacks.e1[j] = stacks.f1[j] = U32(opened - rule.extend1)
        stacks.e2[j] = stacks.f2[j] = larger_sum(stacks.even[j], rule.open2, rule.floor, kind.packed)


@inlined
def _lower(cells, shift, rule, kind):
    """Take `shift` from both halves of `cells`, (registers,) uint32, but let none fall below the floor.

    `rule`, `kind`: Packed, Kind.
    """
    least = U32(shift + rule.floor)
    for j in range(kind.registers):
        cells[j] = U32(larger(cells[j], least, kind.packed) - shift)


@inlined
def rebase(stacks, lane, rule, kind):
    """Where the best score has risen by TURN, take that away from all.

    `stacks`: Stacks, after a chunk; `lane`: of the warp; `rule`, `kind`: Packed, Kind.

    Returns what was taken, before the scale, and the first lane that has the best score.
    """
    most = stacks.even[0]
    for j in range(1, kind.registers):
        most = larger(most, stacks.even[j], kind.packed)
    own = best = I32(max(U32(most & HALF), U32(most >> U32(16))))
    for i in range(SHUFFLES):
        best = max(best, shuffle(best, I32(lane ^ (1 << i))))
    turns = I32(best - I32(rule.top)) // (TURN << kind.scale) if best > I32(rule.top) else I32(0)
    first = I32(cuda.ffs(I32(ballot(own == best)))) - 1
    if turns <= 0:
        return I32(0), I32(first)
    shift = U32(U32(turns * (TURN << kind.scale)) * U32(BOTH))
    _lower(stacks.even, shift, rule, kind)
    _lower(stacks.odd, shift, rule, kind)
    if kind.two:
        _lower(stacks.e1, shift, rule, kind)
        _lower(stacks.f1, shift, rule, kind)
    _lower(stacks.e2, shift, rule, kind)
    _lower(stacks.f2, shift, rule, kind)
    return I32(turns * TURN), I32(first)
