"""X-drop extension of many flanks side by side, one per vector lane: the *best* result of wavefront.py, in narrow windows.

Cells of a lane live in two stacks of `height` rows, `even` and `odd` anti-diagonals.  A row is one diagonal of the
alignment matrix, and row w of all LANES lanes is one run of bytes, so plain loops over lanes become vector code.  With
even[w] at column c + w of an anti-diagonal, the next two are

    odd[w]  = max(even[w], even[w + 1], odd[w] + match or mismatch less a gap) + gap        at column c + w + 1
    even[w] = max(odd[w - 1], odd[w], even[w] + match or mismatch less a gap) + gap         at column c + w + 1

in place: nothing moves inside a chunk of CHUNK anti-diagonals.  Between chunks scores are taken relative to the best one
again, a lane whose live cells near an end of its window is moved by whole rows, a finished lane takes the next flank, and
one whose live cells may have left the window is given up and reported, for a kernel with more rows.

Scores are bytes.  At the start of a chunk the best score of a lane is `top`, chosen so that a chunk of matches stays within
127.  A live cell is at least top - xdrop; a dead one is NEG, put back at every step, so that it neither wraps around nor
comes to life.  `fits` states the bounds.
"""

from __future__ import annotations

import numpy as np

from bellapy.jit import njit, njit_vector
from bellapy.params import Scoring
from bellapy.sequence import PAD

U, I8, U8 = np.uint64, np.int8, np.uint8
LANES = 64
CHUNK = 32
HALF = CHUNK // 2
U_LANES, U_HALF, U_EIGHT = U(LANES), U(HALF), U(8)
NEG = I8(-112)
MARGIN = 3  # rows between a window's end and its live cells before it is moved
MAX_HEIGHT = 124  # rows are numbered in bytes
EVERY_BYTE = U(0x0101010101010101)
SLACK = 24  # rows beyond what X-drop admits at a time: they cost little and save lanes from being moved or given up
MAX_REACH = MAX_HEIGHT - SLACK
"""A lane looks at most so many bases (X over the gap penalty) plus a window and a chunk past the end of a read."""
assert PAD >= MAX_REACH + MAX_HEIGHT + CHUNK


def top_score(scoring: Scoring) -> int:
    """Score that a lane's best cell has at the start of a chunk: HALF matches later, less a gap, it is still a byte."""
    return 127 - HALF * scoring.match + scoring.gap


def fits(scoring: Scoring) -> bool:
    """Whether these scores and this X stay within bytes, and the look past the ends of reads within their padding."""
    steepest = max(-scoring.mismatch, -scoring.gap)
    lowest_live = top_score(scoring) - scoring.xdrop
    return steepest <= 16 and lowest_live > NEG + scoring.match + steepest and narrow_height(scoring) <= MAX_HEIGHT


def narrow_height(scoring: Scoring) -> int:
    """Rows that true overlaps stay within: X-drop admits about X / gap diagonals of one parity."""
    return (scoring.xdrop // -scoring.gap + SLACK + 3) // 4 * 4


@njit_vector
def _step(new, new_at, old, old_at, query, query_at, target, target_at, height, best, row, update, drop, scores, t):
    """One anti-diagonal of all lanes: rows new_at .. of `new` from rows old_at .. of `old` and the bases."""
    equal, unequal, gap, xdrop = scores
    for l in range(U_LANES):
        drop[l] = I8(best[l] - xdrop)
    for w in range(U(height)):
        n, o = (U(new_at) + w) * U_LANES, (U(old_at) + w) * U_LANES
        q, r = (U(query_at) + w) * U_LANES, (U(target_at) - w) * U_LANES
        for l in range(U_LANES):
            gapped = max(old[o + l], old[o + U_LANES + l])
            paired = I8(new[n + l] + (equal if query[q + l] == target[r + l] else unequal))
            value = I8(max(gapped, paired) + gap)
            highest, at = best[l], row[l]  # read before the choice: AVX2 has no masked loads of bytes
            row[l] = I8(w) if value > highest else at
            best[l] = max(value, highest)
            new[n + l] = value if value >= drop[l] else NEG
    for l in range(U_LANES):
        before = update[l]
        update[l] = t if I8(best[l] - xdrop) > drop[l] else before


@njit_vector
def _survey(even, odd, height, top, best, shift, first, last):
    """Take scores relative to the best again; first, last: outermost rows with a live cell (height and -1: none)."""
    for l in range(U_LANES):
        shift[l] = I8(best[l] - top)
        best[l] = top
        first[l] = I8(height)
        last[l] = I8(-1)
    for w in range(U(height)):
        e, o = w * U_LANES, (w + U(1)) * U_LANES
        for l in range(U_LANES):
            a, b, s = even[e + l], odd[o + l], shift[l]
            live = max(a, b) > NEG
            first[l] = min(first[l], I8(w) if live else I8(height))
            last[l] = max(last[l], I8(w) if live else I8(-1))
            even[e + l] = I8(a - s) if a > NEG else NEG
            odd[o + l] = I8(b - s) if b > NEG else NEG


@njit_vector
def _watch_ends(even, odd, height, ends):
    """Remember whether the outermost rows were ever alive."""
    last = U(height) * U_LANES
    for l in range(U_LANES):
        ends[l] = max(ends[l], max(even[l], odd[last + l]))


@njit_vector
def _spread(word, rows, row):
    """Write the eight bases that each lane holds in a word to eight rows."""
    for i in range(U_EIGHT):
        at = (U(row) + i) * U_LANES
        for l in range(U_LANES):
            rows[at + l] = U8(word[l] >> (i * U_EIGHT))


@njit_vector
def _slide(rows, height):
    """Drop the HALF rows that a chunk has used up."""
    for i in range(U(height) * U_LANES):
        rows[i] = rows[i + U_HALF * U_LANES]


@njit
def _target_base(code, flip):
    """Complement and set unknown bases of targets apart from those of queries: unknown matches nothing."""
    return U8((code + (code >> U8(2))) ^ flip)


@njit
def _fetch(codes, at, flip, height, word, rows, is_target):
    """Append the next HALF bases of every lane to a stack of bases."""
    for j in range(0, HALF, 8):
        for l in range(LANES):
            p = U(at[l] + height + j)
            x = U(codes[p])
            for i in range(1, 8):
                x |= U(codes[p + U(i)]) << U(8 * i)  # LLVM makes this one load
            if is_target:
                x = (x + ((x >> U(2)) & EVERY_BYTE)) ^ (EVERY_BYTE * U(flip[l]))
            word[l] = x
        _spread(word, rows, height + j)


@njit
def _reload(codes, query, target, l, query_at, target_at, flip, height):
    """All bases of one lane, after a start or a move."""
    for w in range(height):
        query[w * LANES + l] = codes[query_at + w]
        target[w * LANES + l] = _target_base(codes[target_at + w], flip)


@njit
def _move(rows, first_row, height, l, by):
    """Move one lane's window by `by` rows; cells that enter it are dead.  by >= height empties it."""
    for j in range(height):
        w = j if by > 0 else height - 1 - j
        alive = 0 <= w + by < height
        rows[(first_row + w) * LANES + l] = rows[(first_row + w + by) * LANES + l] if alive else NEG


@njit
def _kill_borders(rows, first_row, height, young, n_young, query_offset, target_offset, p, parity, drop):
    """Cells of column 0 and row 0 die on equality too, after the first anti-diagonal; only young lanes reach them."""
    for y in range(n_young):
        l = young[y]
        left = -query_offset[l] - p - 1
        top = target_offset[l] + height + p + parity
        if top - left > 1:
            for w in (left, top):
                if 0 <= w < height and rows[(first_row + w) * LANES + l] == drop[l]:
                    rows[(first_row + w) * LANES + l] = NEG


@njit
def _aligned(n, fill, dtype_like):
    """n bytes on a 64-byte boundary, else every vector load touches two cache lines."""
    raw = np.full(n + 64, fill, dtype_like)
    skip = -raw.ctypes.data % 64
    return raw[skip : skip + n]


@njit
def extend_lanes(codes, query_start, target_start, complement, todo, height, scoring, top, results):
    """Extend the flanks `todo`; those whose window grew beyond `height` rows are left out.

    Parameters
    ----------
    codes : uint8 as `ReadSet.both_ways`.
    query_start, target_start : int64, where the flanks begin in it.  Their lengths are not needed: the padding after every
        read matches nothing.
    complement : uint8, whether the target's bases are complemented.
    todo : (n,) int64, rows of the arrays above; longest first keeps all lanes busy to the end.
    height : rows of the window, at most MAX_HEIGHT.
    top : top_score(scoring).
    results : (n_flanks, 3) int64; row i receives score, query bases, target bases of flank i.

    Returns
    -------
    (n_over,) int64, the flanks left out.
    """
    even, odd = _aligned((height + 1) * LANES, NEG, np.int8), _aligned((height + 2) * LANES, NEG, np.int8)
    query = _aligned((HALF + height) * LANES, U8(0), np.uint8)
    target = _aligned((HALF + height) * LANES, U8(0), np.uint8)
    state = _aligned(8 * LANES, I8(0), np.int8)
    best, row, update, drop, ends, shift, first, last = (
        state[0:64], state[64:128], state[128:192], state[192:256], state[256:320], state[320:384], state[384:448],
        state[448:512],
    )  # fmt: skip
    word = np.empty(LANES, np.uint64)
    flank, flip = np.full(LANES, -1, np.int64), np.zeros(LANES, np.uint8)
    query_at, target_at, query_offset, target_offset, score, column, target_row, young = np.zeros((8, LANES), np.int64)
    scores = (
        I8(scoring.match - scoring.gap), I8(scoring.mismatch - scoring.gap), I8(scoring.gap), I8(scoring.xdrop),
    )  # fmt: skip
    reach = scoring.xdrop // -scoring.gap
    middle, top8 = height // 2, I8(top)
    over = np.empty(len(todo), np.int64)
    n_over = taken = active = 0
    best[:] = top8
    last[:] = -1
    while True:
        n_young = 0
        for l in range(LANES):  # start, move, or leave alone
            i = flank[l]
            if i < 0:
                query_at[l] = target_at[l] = 0
                if taken == len(todo):
                    continue
                i = flank[l] = todo[taken]
                taken += 1
                active += 1
                score[l] = column[l] = target_row[l] = 0
                flip[l] = 3 * complement[i]
                query_at[l], target_at[l] = query_start[i] - middle, target_start[i] + middle - height
                _move(even, 0, height, l, height)
                _move(odd, 1, height, l, height)
                even[middle * LANES + l] = best[l] = top8
                _reload(codes, query, target, l, query_at[l], target_at[l], flip[l], height)
            elif min(first[l], height - 1 - last[l]) < MARGIN:
                by = (first[l] + last[l] + 1) // 2 - middle
                if by != 0:
                    _move(even, 0, height, l, by)
                    _move(odd, 1, height, l, by)
                    query_at[l] += by
                    target_at[l] -= by
                    _reload(codes, query, target, l, query_at[l], target_at[l], flip[l], height)
            query_offset[l], target_offset[l] = query_at[l] - query_start[i], target_at[l] - target_start[i]
            if query_offset[l] + target_offset[l] + height <= reach:
                young[n_young] = l
                n_young += 1
        if active == 0:
            break
        _fetch(codes, query_at, flip, height, word, query, False)
        _fetch(codes, target_at, flip, height, word, target, True)
        update[:] = -1
        ends[:] = NEG
        for p in range(HALF):
            _step(odd, 1, even, 0, query, p, target, p + height - 1, height, best, row, update, drop, scores, I8(2 * p))
            _kill_borders(odd, 1, height, young, n_young, query_offset, target_offset, p, 0, drop)
            _step(even, 0, odd, 0, query, p, target, p + height, height, best, row, update, drop, scores, I8(2 * p + 1))
            _kill_borders(even, 0, height, young, n_young, query_offset, target_offset, p, 1, drop)
            _watch_ends(even, odd, height, ends)
        _survey(even, odd, height, top8, best, shift, first, last)
        _slide(query, height)
        _slide(target, height)
        for l in range(LANES):
            i = flank[l]
            if i < 0:
                continue
            if update[l] >= 0:
                score[l] += shift[l]
                column[l] = query_offset[l] + (update[l] >> 1) + row[l] + 1
                target_row[l] = query_offset[l] + target_offset[l] + height + 1 + update[l] - column[l]
            query_at[l] += HALF
            target_at[l] += HALF
            if ends[l] > NEG or last[l] - first[l] > height - MARGIN:  # a cell outside the window may have lived
                over[n_over] = i
                n_over += 1
            elif last[l] < 0:
                results[i, 0], results[i, 1], results[i, 2] = score[l], column[l], target_row[l]
            else:
                continue
            flank[l] = -1
            active -= 1
            _move(even, 0, height, l, height)
            _move(odd, 1, height, l, height)
    return over[:n_over]
