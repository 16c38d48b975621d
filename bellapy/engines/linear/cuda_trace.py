"""Paths on a GPU: the register kernel of cuda_stack.py once more, which now keeps two bits of every cell, and the way
back through them, one thread for each flank.

A row of the stacks is a diagonal of the alignment matrix and belongs to one half of one register of one lane of the group,
always the same, since lanes change places by whole windows.  So a cell's bits are where its diagonal says: in a chunk's
words, one of 64 bits for each register, lane and parity of the anti-diagonal.  The low half says of both rows of the
register in which of the chunk's sixteen steps a pair was a best last step, the high half where a query base alone was no
worse than a target base alone.  A run of pairs is a run of ones.  The rule of ties is that of trace_lanes.py.

A cell that lives has the score it has in the extension, and its best predecessors live, whatever the widths of the windows.
A mismatch that costs more than two gaps counts as much as these here (cuda_stack.py); it is no step of a best path then.

Memory is bounded as on the CPU: chunks go in blocks.  The first turn computes all of them, keeps the state at the beginning
of each block but the first, and the bits of the last; each further turn computes the block before.  After each turn the way
back goes through what it has kept.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import cuda

from bellapy.compute.gpu.ops import I32, U32, U64, WARP, ballot, permute, shuffle
from bellapy.engines.flank_paths import PAIR, QUERY_ALONE, TARGET_ALONE
from bellapy.engines.linear.cuda_stack import (
    BEFORE,
    BEFORE_AT_END,
    BOTH,
    CHUNK,
    EVERY_BIT,
    HALF,
    NEXT,
    NEXT_AT_END,
    ONE,
    PAIRS,
    SIGNS,
    TOP,
    compare_bases,
    follow,
    follow_border,
    in_order,
    inlined,
    larger,
    larger_sum,
    renew,
    trim,
    watch_best,
)

LAST, COLUMN, BITS, STATES, RUNS = range(5)
PLAN = 5
"""What the kernels are told of a flank: last anti-diagonal and column of its end cell, where its bits (64-bit words), its
states (32-bit words) and its runs begin."""
TIME, AT_COLUMN, RUN, NEXT_RUN = range(4)
WAY = 4
"""Where the way back stands between two turns: anti-diagonal (the first is 0) and column, unfinished run, next place."""
TOPS = U32(TOP * BOTH)


def chunk_words(group: int, registers: int) -> int:
    """64-bit words of a chunk's bits."""
    return 2 * group * registers


def state_words(group: int, registers: int) -> int:
    """32-bit words of a state: cells, first row and first lane of the window, border."""
    return group * (2 * registers + 3)


@inlined
def _appended(bits, word):
    """Each half a bit on, with the top bits of a word's halves."""
    return U32(U32(bits >> ONE) & (TOPS ^ EVERY_BIT) | word & TOPS)


@inlined
def _note_gap(inserts, j, after_query, after_target):
    """Append whether the cell a query base before one of register j is at least the one a target base before."""
    inserts[j] = _appended(inserts[j], U32(U32(after_query + TOPS) - after_target))


@inlined
def _advance(new, j, one, two, bits, mask, step, left, rule, floor, tops, packed, dear, paired_bits):
    """Register j of the next anti-diagonal from two neighbours; appends whether a pair is a best step."""
    gapped = larger(one, two, packed)
    paired = U32(U32(bits & mask) * step + new[j])
    better = U32(U32(U32(paired + rule.mismatch) + TOPS) - gapped)
    if dear:
        better &= U32(bits << U32(left))
    paired_bits[j] = _appended(paired_bits[j], better)
    value = larger_sum(paired, rule.mismatch, gapped, packed)
    above = U32(value + floor)
    tops[0] = larger(above, tops[0], packed)
    new[j] = value & permute(above, U32(0), SIGNS)


@cache
def make_tracer(group: int, registers: int, unit: bool, packed: bool, dear: bool):
    """The kernel that computes cells and keeps their bits, for groups of `group` lanes with 2 * `registers` rows each.

    Parameters
    ----------
    unit, packed : as in cuda_stack.make_kernel.
    dear : a mismatch costs more than two gaps.
    """
    R, ROWS, SPAN = registers, 2 * registers, 2 * registers * group
    WORDS = (ROWS + PAIRS + 31) // 32
    LAST_LANE = group - 1
    WINDOW = WORDS + 1
    FLANKS = WARP // group  # of a warp
    CHUNK_WORDS, STATE_WORDS = chunk_words(group, registers), state_words(group, registers)

    def trace_stacks(planes, n_bases, table, plan, n, rule, longest, block, turn, bits, states, failed):
        """Compute the flanks up to their ends, and keep the bits of one block of each.

        Parameters
        ----------
        planes, n_bases : compute/gpu/reads.py.
        table, plan : (n_flanks, 5) int64, rows of `Flanks.table`; (n_flanks, PLAN) int64.
        n : the first so many flanks are worked on, those that have more than `turn` blocks.
        rule : Packed.
        longest : unknown bases match each other.
        block : chunks of a block.
        turn : 0: from the start, bits of the last block; i: the block i before that.
        bits, states : uint64, uint32, where they are kept.
        failed : (n_flanks,) int32, set where live cells reached an end of the window.
        """
        even, odd = cuda.local.array(R, np.uint32), cuda.local.array(R, np.uint32)
        even_bits, odd_bits = cuda.local.array(R, np.uint32), cuda.local.array(R, np.uint32)
        even_pairs, odd_pairs = cuda.local.array(R, np.uint32), cuda.local.array(R, np.uint32)
        even_inserts, odd_inserts = cuda.local.array(R, np.uint32), cuda.local.array(R, np.uint32)
        tops = cuda.local.array(1, np.uint32)
        query_0, query_1, query_2 = (
            cuda.local.array(WINDOW, np.uint32), cuda.local.array(WINDOW, np.uint32), cuda.local.array(WINDOW, np.uint32)
        )  # fmt: skip
        target_0, target_1, target_2 = (
            cuda.local.array(WINDOW, np.uint32), cuda.local.array(WINDOW, np.uint32), cuda.local.array(WINDOW, np.uint32)
        )  # fmt: skip
        lane = I32(cuda.threadIdx.x & (WARP - 1))
        place = I32(lane & LAST_LANE)
        leader = I32(lane - place)
        members = U32(U32((1 << group) - 1) << U32(leader))
        after, before = I32(leader + (place + 1 & LAST_LANE)), I32(leader + (place - 1 & LAST_LANE))
        warp = (cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x) // WARP
        flank = warp * FLANKS + lane // group
        active = flank < n and failed[min(flank, n - 1)] == 0
        flank = min(flank, n - 1)
        query_at, target_at = table[flank, 0], table[flank, 2]
        n_query, n_target = I32(table[flank, 1]), I32(table[flank, 3])
        flip = EVERY_BIT if table[flank, 4] else U32(0)
        unlike = U32(0) if longest else EVERY_BIT
        n_chunks = (plan[flank, LAST] + CHUNK - 1) // CHUNK
        kept = ((n_chunks - 1) // block - turn) * block  # first chunk whose bits are kept
        chunk, end = np.int64(0), min(n_chunks, kept + block)
        row, first, border = I32((place - group // 2) * ROWS), I32(0), rule.border
        for j in range(R):
            even[j] = odd[j] = even_pairs[j] = odd_pairs[j] = even_inserts[j] = odd_inserts[j] = U32(0)
        if row == 0:
            even[0] = rule.origin
        if turn > 0 and kept > 0:
            chunk = kept
            at = plan[flank, STATES] + (chunk // block - 1) * STATE_WORDS + place
            for j in range(R):
                even[j], odd[j] = states[at + j * group], states[at + (R + j) * group]
            row, first = I32(states[at + ROWS * group]), I32(states[at + (ROWS + 1) * group])
            border = states[at + (ROWS + 2) * group]
        while ballot(active):
            if active and turn == 0 and chunk > 0 and chunk % block == 0:
                at = plan[flank, STATES] + (chunk // block - 1) * STATE_WORDS + place
                for j in range(R):
                    states[at + j * group], states[at + (R + j) * group] = even[j], odd[j]
                states[at + ROWS * group], states[at + (ROWS + 1) * group] = U32(row), U32(first)
                states[at + (ROWS + 2) * group] = border

            pairs = I32(chunk * PAIRS)
            compare_bases(
                planes, n_bases, query_at, n_query, target_at, n_target, flip, unlike, pairs, row, R, WORDS,
                query_0, query_1, query_2, target_0, target_1, target_2, odd_bits, even_bits,
            )  # fmt: skip

            at_first, at_last = place == first, place == (first + LAST_LANE & LAST_LANE)
            to_next, to_before = (NEXT_AT_END if at_last else NEXT), (BEFORE_AT_END if at_first else BEFORE)
            low_end, high_end = even[0], U32(0)
            floor, p = rule.floor, pairs
            for _ in range(PAIRS // 4):
                mask, step, left = U32(BOTH), rule.step, 15
                for _ in range(4):
                    tops[0] = rule.best
                    edge = permute(even[0], U32(shuffle(I32(even[0]), after)), to_next)
                    for j in range(R):
                        _note_gap(odd_inserts, j, even[j], even[j + 1] if j + 1 < R else edge)
                    for j in range(R):
                        beside = even[j + 1] if j + 1 < R else edge
                        _advance(
                            odd, j, even[j], beside, odd_bits[j], mask, step, left, rule, floor, tops, packed, dear,
                            odd_pairs,
                        )  # fmt: skip
                    if floor == border:
                        trim(odd, R, row, I32(-p), I32(p - 1))
                    high_end |= odd[R - 1]
                    _, _, rise = watch_best(tops, 1, rule, group, unit, members, lane)
                    floor = U32(floor - rule.drift - rise)

                    tops[0] = rule.best
                    edge = permute(odd[R - 1], U32(shuffle(I32(odd[R - 1]), before)), to_before)
                    for j in range(R):
                        _note_gap(even_inserts, j, odd[j - 1] if j > 0 else edge, odd[j])
                    for j in range(R):
                        beside = odd[j - 1] if j > 0 else edge
                        _advance(
                            even, j, odd[j], beside, even_bits[j], mask, step, left, rule, floor, tops, packed, dear,
                            even_pairs,
                        )  # fmt: skip
                    if floor == border:
                        trim(even, R, row, I32(-p), p)
                    low_end |= even[0]
                    _, _, rise = watch_best(tops, 1, rule, group, unit, members, lane)
                    floor = U32(floor - rule.drift - rise)
                    p = I32(p + 1)
                    mask, step, left = U32(mask << ONE), U32(step >> ONE), left - 1
                for j in range(R):
                    odd_bits[j] >>= U32(4)
                    even_bits[j] >>= U32(4)

            if active and chunk >= kept:
                at = plan[flank, BITS] + (chunk - kept) * CHUNK_WORDS + 2 * place
                for j in range(R):
                    bits[at + 2 * j * group] = U64(odd_inserts[j]) << U64(32) | U64(odd_pairs[j])
                    bits[at + 2 * j * group + 1] = U64(even_inserts[j]) << U64(32) | U64(even_pairs[j])
            left_window = (at_first and low_end & HALF) or (at_last and high_end >> U32(16))
            if ballot(left_window) & members and active:
                active = False
                failed[flank] = 1
            shift = U32(rule.floor - floor)
            border = follow_border(border, shift, rule)
            pairs = I32(pairs + PAIRS)
            alive = renew(even, odd, R, shift, row, I32(pairs - 1 - n_target), I32(n_query - pairs), packed)
            living = in_order(ballot(alive != 0), leader, first, group)
            if active:
                row, first = follow(living, row, first, place, group, SPAN)
            chunk += 1
            active = active and chunk < end

    return trace_stacks


@cache
def make_walker(group: int, registers: int):
    """The kernel that goes back through the bits, one thread for each flank."""
    R, ROWS, SPAN = registers, 2 * registers, 2 * registers * group
    MIDDLE = SPAN // 2
    CHUNK_WORDS = chunk_words(group, registers)

    def walk_back(plan, n, block, turn, bits, failed, ways, runs, counts):
        """Go back through the blocks of the turn and write the runs passed.

        Parameters
        ----------
        plan, n, block, turn, bits, failed : as above.
        ways : (n_flanks, WAY) int64, where each flank stands between two turns.
        runs : uint32, length << 4 | operation.
        counts : (n_flanks,) int32: how many runs the flank has, once its first block is passed.
        """
        flank = cuda.grid(1)
        if flank >= n or failed[flank]:
            return
        last = plan[flank, LAST]
        kept = (((last + CHUNK - 1) // CHUNK - 1) // block - turn) * block
        t, column, run, at = last - 1, plan[flank, COLUMN], np.int64(0), plan[flank, RUNS]
        if turn > 0:
            t, column, run, at = (
                ways[flank, TIME], ways[flank, AT_COLUMN], ways[flank, RUN], ways[flank, NEXT_RUN]
            )  # fmt: skip
        while t >= kept * CHUNK:
            p = t >> 1
            seat = I32(I32(column - p - 1 + MIDDLE) % I32(SPAN))  # of the diagonal in a ring of all rows
            holder, j = seat // I32(ROWS), seat % I32(ROWS)
            half = U64(16 if j >= R else 0)
            j = j - R if j >= R else j
            word = bits[plan[flank, BITS] + ((p >> 4) - kept) * CHUNK_WORDS + 2 * (j * group + holder) + (t & 1)]
            step = I32(p & 15)
            pairs = U32(word >> half) & HALF
            n_pairs = I32(cuda.clz(I32(U32(pairs << U32(31 - step)) ^ EVERY_BIT)))
            if n_pairs > 0:
                if run & 15 != PAIR:
                    runs[at] = U32(run)
                    at += 1
                    run = np.int64(0)
                run += np.int64(n_pairs) << 4
                column -= n_pairs
                t -= 2 * n_pairs
            if n_pairs <= step:
                inserted = I32(word >> (half + U64(32) + U64(step - n_pairs)) & U64(1))
                op = QUERY_ALONE if inserted else TARGET_ALONE
                if run & 15 != op:
                    if run > 0:
                        runs[at] = U32(run)
                        at += 1
                    run = np.int64(op)
                run += 16
                column -= inserted
                t -= 1
        if kept == 0:
            if run > 0:
                runs[at] = U32(run)
                at += 1
            counts[flank] = at - plan[flank, RUNS]
        else:
            ways[flank, TIME], ways[flank, AT_COLUMN], ways[flank, RUN], ways[flank, NEXT_RUN] = t, column, run, at

    return walk_back


def gather_runs(plan, counts, begins, runs, packed):
    """Copy the counts[i] runs of flank i to packed[begins[i]:], one warp for each flank."""
    lane, flank = cuda.threadIdx.x % WARP, cuda.grid(1) // WARP
    if flank < counts.shape[0]:
        for i in range(lane, counts[flank], WARP):
            packed[begins[flank] + i] = runs[plan[flank, RUNS] + i]
