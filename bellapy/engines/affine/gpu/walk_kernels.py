"""The path of a pair on a GPU, found from the low bytes of the scores that its band has kept: the rule of trace.py.

Where two bases are equal their pair always explains the score: without them, no path gains more than a match.  So a run of
equal bases needs no scores at all.  Scores of cells beside each other differ by less than TURN, so that the byte of one says
what the next one is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import cuda

from bellapy.compute import runs as codec
from bellapy.compute.gpu.ops import I32, U32, U64, WARP, ballot, inlined, on_device, shuffle
from bellapy.compute.runs import PAIR, QUERY_ALONE, TARGET_ALONE
from bellapy.engines.affine import rule as affine_rule
from bellapy.engines.affine.gpu.bases_kernels import BASES, window_of
from bellapy.engines.affine.gpu.step_kernels import TURN
from bellapy.engines.registers.window import CHUNK
from bellapy.params import AffineScoring

NO_PATH = -1  # too few scores were kept
MISSING = -1  # a score that was not kept, or a gap that it may explain


class Band(NamedTuple):
    """A pair and its kept scores.

    words : uint64, the bases.  query, target : first words of the sequences.  pad : bases before each of them.
    kept : uint32; for each chunk, `lanes` words of which the first says which lane's scores are the first ones kept, then
        those of its anti-diagonals (step_kernels.py).  at : where the first chunk stands.  lanes : whose scores are kept.
    centre : row of diagonal 0.
    """

    words: np.ndarray
    query: np.int32
    target: np.int32
    pad: np.int32
    kept: np.ndarray
    at: np.int64
    lanes: np.int32
    centre: np.int32


def chunk_words(registers, lanes):
    """Words that a chunk of kept scores takes; `registers`: of a lane; `lanes`: whose scores are kept."""
    return (1 + CHUNK * (registers // 2)) * lanes


pack_run, gap_cost, words_of_chunk = map(on_device, (codec.pack_run, affine_rule.gap_cost, chunk_words))


def direct_size(scoring: AffineScoring) -> int:
    """Up to which length of a gap the scores of its two ends differ by less than TURN, less what the gap costs."""
    first = min(scoring.open1 + scoring.extend1, scoring.open2 + scoring.extend2)
    size = 0
    while (size + 1) * (scoring.match + first + scoring.extend1) + scoring.open1 < TURN:
        size += 1
    return size


@inlined
def _low_byte(band, i, j, registers):
    """The low byte of the score of cell (i, j) of `band`, a Band, or MISSING; `registers`: of a lane."""
    row = I32((j - i >> 1) + band.centre)
    lane, u = row // I32(2 * registers), row % I32(2 * registers)
    half = I32(1 if u >= registers else 0)
    register = I32(u - half * registers)
    before = I32(i + j + 2 * band.pad - 1)  # anti-diagonals
    chunk = band.at + np.int64(before // CHUNK) * words_of_chunk(registers, band.lanes)
    word = 1 + (before % CHUNK) * (registers // 2) + (register >> 1)
    found = U32(band.kept[U64(chunk + word * band.lanes + (lane & (band.lanes - 1)))])
    first = I32(band.kept[U64(chunk)])
    byte = I32(U32(found >> U32(8 * (2 * (register & 1) + half))) & U32(TURN - 1))
    return byte if first <= lane and lane < first + band.lanes else I32(MISSING)


@inlined
def _equal_bases(band, i, j, lane):
    """How many bases are equal, one after the other, back from the cell (i, j): each lane looks at 32 of them.

    `band`: Band; `lane`: of the warp.
    """
    most, n = min(i, j), I32(0)
    while n < most:
        back = I32(band.pad - n - BASES * (lane + 1))
        q_low, q_high = window_of(band.words, band.query, I32(i + back))
        t_low, t_high = window_of(band.words, band.target, I32(j + back))
        unlike = U32((q_low ^ t_low) | (q_high ^ t_high))
        votes = U32(ballot(unlike != 0))
        if votes:
            first = I32(cuda.ffs(I32(votes))) - 1
            n = I32(n + BASES * first + shuffle(I32(cuda.clz(I32(unlike))), I32(first)))
            break
        n = I32(n + BASES * WARP)
    return min(n, most)


@inlined
def _explain_short_gap(band, i, j, score, scoring, direct, lane, registers):
    """The same as `_explain_gap` for gaps of up to half as many bases as a warp has lanes: each lane tries one.

    `lane`: of the warp, in the order of preference; `direct`: up to this length a low byte tells whether a gap explains the
    score; the others as there.
    """
    size, on_target = I32((lane >> 1) + 1), lane & 1 == 0
    row = I32((j - i >> 1) + band.centre)
    if on_target:
        there = size <= j and row - ((size + 1 - (j - i & 1)) >> 1) >= 0
    else:
        there = size <= i and row + ((size + (j - i & 1)) >> 1) < 2 * registers * WARP
    explains, missing = False, False
    if there and size <= direct:
        other = _low_byte(band, i if on_target else I32(i - size), I32(j - size) if on_target else j, registers)
        cost = I32(gap_cost(size, scoring) - scoring.extend2 * size)
        missing = other == MISSING
        explains = missing or (other - cost - score) & (TURN - 1) == 0
    votes = U32(ballot(explains))
    unknown = U32(ballot(missing))
    if votes:
        best = I32(cuda.ffs(I32(votes))) - 1
        size = I32(MISSING) if U32(unknown >> U32(best)) & U32(1) else I32((best >> 1) + 1)
        return I32(TARGET_ALONE if best & 1 == 0 else QUERY_ALONE), size
    return I32(PAIR), I32(0)


@inlined
def _difference(one, other, least):
    """`one` - `other`, of which low bytes are given, if it is not below `least`."""
    return I32(((one - other - least) & (TURN - 1)) + least)


@inlined
def _explain_gap(band, i, j, score, scoring, registers):
    """The shortest gap that explains the cell (i, j): its operation and length; MISSING if that is not known.

    `band`: Band; `score`: its low byte; `scoring`: AffineScoring; `registers`: of a lane.
    """
    drift, rows = scoring.extend2, 2 * registers * WARP
    least = I32(drift - gap_cost(1, scoring))  # difference of a cell and the one before it
    on_target, on_query = score, score  # bytes of the last cells
    fall_target, fall_query = I32(0), I32(0)  # by how much they are below the first one
    row = I32((j - i >> 1) + band.centre)
    size, most = I32(1), max(i, j)
    while size <= most:
        cost = I32(gap_cost(size, scoring) - drift * size)
        if size <= j and row - ((size + 1 - (j - i & 1)) >> 1) >= 0:
            byte = _low_byte(band, i, I32(j - size), registers)
            if byte == MISSING:
                break
            fall_target = I32(fall_target + _difference(on_target, byte, least))
            on_target = byte
            if fall_target == -cost:
                return I32(TARGET_ALONE), size
        if size <= i and row + ((size + (j - i & 1)) >> 1) < rows:
            byte = _low_byte(band, I32(i - size), j, registers)
            if byte == MISSING:
                break
            fall_query = I32(fall_query + _difference(on_query, byte, least))
            on_query = byte
            if fall_query == -cost:
                return I32(QUERY_ALONE), size
        size = I32(size + 1)
    return I32(PAIR), I32(MISSING)


@inlined
def walk_back(band, i, j, scoring, direct, lane, registers, runs, at):
    """Write the path from (0, 0) to (i, j), from its end; return how many runs it has, or NO_PATH.

    All lanes of a warp do it together.

    Parameters
    ----------
    band : Band.
    scoring, direct : AffineScoring, and what `direct_size` says of it.
    lane : of the warp.
    registers : of a lane.
    runs, at : uint32 (compute/runs.py), and where the path begins.
    """
    begin, last, length = at, I32(PAIR), I32(0)
    while i > 0 or j > 0:
        operation, size = I32(PAIR), _equal_bases(band, i, j, lane)
        if size == 0:
            score, paired, known = _low_byte(band, i, j, registers), False, True
            if i > 0 and j > 0:
                other = _low_byte(band, I32(i - 1), I32(j - 1), registers)
                known = other != MISSING
                paired = (score - other - scoring.mismatch - 2 * scoring.extend2) & (TURN - 1) == 0
            operation, size = _explain_short_gap(band, i, j, score, scoring, direct, lane, registers)
            if paired:
                operation, size = I32(PAIR), I32(1)
            elif size == 0:
                operation, size = _explain_gap(band, i, j, score, scoring, registers)
            if not known or score == MISSING or size == MISSING:
                return I32(NO_PATH)
        if operation != last and length > 0:
            if lane == 0:
                runs[U64(at)] = U32(pack_run(last, length))
            at, length = at + 1, I32(0)
        last, length = operation, I32(length + size)
        if operation != TARGET_ALONE:
            i = I32(i - size)
        if operation != QUERY_ALONE:
            j = I32(j - size)
    if length > 0:
        if lane == 0:
            runs[U64(at)] = U32(pack_run(last, length))
        at += 1
    return I32(at - begin)
