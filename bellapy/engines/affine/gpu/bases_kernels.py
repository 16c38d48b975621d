"""Where the bases that a lane's rows meet are equal, from words of 32 bases (words.py).

What a lane reads before or after its sequences does not matter (step_kernels.py); words outside the array are read as the
first or the last one.
"""

from __future__ import annotations

from bellapy.compute.gpu.ops import I32, LOW_HALVES, U32, U64, inlined, permute
from bellapy.engines.affine.words import BASES
from bellapy.engines.registers.window import EVERY_BIT, PAIRS

SHORT = (BASES - PAIRS) // 2  # registers of a lane whose rows meet no more bases in a chunk than stand in a word


@inlined
def _word(words, at):
    """Word `at` of `words`, uint64, or the nearest one."""
    return words[U32(max(I32(0), min(I32(at), I32(words.shape[0] - 1))))]


@inlined
def window_of(words, place, begin):
    """32 bases from base `begin`, which may lie outside, of the sequence at word `place`: planes of low and high bits.

    `words`: uint64.
    """
    word, shift = I32(place + (begin >> 5)), U64(begin & 31)
    one, two = _word(words, word), _word(words, I32(word + 1))
    low = U32(((two << U64(32)) | U64(U32(one))) >> shift)
    high = U32((U64(U32(two >> U64(32))) << U64(32) | (one >> U64(32))) >> shift)
    return low, high


@inlined
def _both(plane, low, high):
    """Sixteen bits of a plane, uint32 or uint64, from bit `low` on in the low half, from bit `high` on in the high half."""
    return permute(U32(plane >> U32(low)), U32(plane >> U32(high)), LOW_HALVES)


@inlined
def _compare(query, target, first, registers, bits):
    """For every row of a lane, where its bases are equal.

    `query`, `target`: planes of low and high bits; `first`: bit of the query's planes with the base of the first row;
    `registers`: of the lane; `bits`: (registers,) uint32, overwritten, as in Stacks.
    """
    for j in range(registers):
        bits[j] = _both(query[0], first - j, first - registers - j) ^ _both(target[0], j, registers + j)
    for j in range(registers):
        high = _both(query[1], first - j, first - registers - j) ^ _both(target[1], j, registers + j)
        bits[j] = U32(U32(bits[j] | high) ^ EVERY_BIT)


@inlined
def compare_bases(words, query, target, pairs, row, registers, stacks):
    """For a lane's rows and the next PAIRS pairs of anti-diagonals: where bases are equal.

    Parameters
    ----------
    words : uint64.
    query, target : first words of the sequences.
    pairs : of anti-diagonals that were computed before.
    row : the lane's first row, less the centre.
    registers : of the lane, half its rows.
    stacks : Stacks, whose bits are overwritten.
    """
    rows = 2 * registers
    query_at, target_at = I32(pairs - row - rows), I32(pairs + row)
    q_low, q_high = window_of(words, query, query_at)
    t_low, t_high = window_of(words, target, target_at)
    if registers > SHORT:
        q_more, t_more = window_of(words, query, I32(query_at + BASES)), window_of(words, target, I32(target_at + BASES))
        planes = (_longer(q_low, q_more[0]), _longer(q_high, q_more[1]))
        others = (_longer(t_low, t_more[0]), _longer(t_high, t_more[1]))
        _compare(planes, others, rows - 1, registers, stacks.odd_bits)
        _compare(planes, others, rows, registers, stacks.even_bits)
    else:
        _compare((q_low, q_high), (t_low, t_high), rows - 1, registers, stacks.odd_bits)
        _compare((q_low, q_high), (t_low, t_high), rows, registers, stacks.even_bits)


@inlined
def _longer(low, high):
    """64 bits of a plane."""
    return U64(high) << U64(32) | U64(low)
