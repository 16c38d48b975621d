"""X-drop extension of many flanks side by side in vector lanes: the same integers as rule.py, in windows of any width.

Cells of a lane live in two stacks of `height` rows, `even` and `odd` anti-diagonals.  A row is one diagonal of the
alignment matrix.  With even[w] at column c + w of an anti-diagonal, the next two are

    odd[w]  = max(even[w], even[w + 1], odd[w] + match or mismatch)        at column c + w + 1
    even[w] = max(odd[w - 1], odd[w], even[w] + match or mismatch)         at column c + w + 1

in place: nothing moves inside a chunk of 64 or 32 anti-diagonals. Scores drift up there by what a gap costs for every anti-
diagonal, so that gaps are free and a match or mismatch has the cost of two gaps on top. Between chunks scores are taken
relative to the best one again, a lane whose live cells near an end of its window is moved by whole rows, a finished lane
takes the next flank, and one whose live cells may have left the window is given up and reported, for a class with more rows.

Row w of lane l is cell w * lanes + l, so that plain loops over tiles of TILE cells become vector code for any number of
lanes: 64 lanes with one row a tile serve narrow windows, 8 with eight or 1 with 64 serve wide ones.  The rows of a tile are
its phases; each keeps the best cell of its own rows, and after every anti-diagonal they agree on the best of the lane.
Only rows that can come to life within the chunk are computed.

Cells are bytes, or 16 bits for large X. At the start of a chunk the best score of a lane is `top`, chosen so that a chunk of
matches, with the drift, stays within the type. A live cell is at least top - xdrop; a dead one is the type's `dead`, put
back at every step, so that it neither wraps around nor comes to life. `fits` states the bounds.

For the *longest* result the walls past the last row and the last column are dead too, and the state of two chunks is kept:
when a lane ends, rule.py replays its last anti-diagonals and finds where.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_entry, njit_inner, njit_vector, prefetch
from bellapy.engines.linear.rule import DEAD, GUARD, STRIDE, extend_flank, flank_at, has_fallen, resume, take_tilted
from bellapy.params import Scoring

U, U8 = np.uint64, np.uint8
TILE = 64
HALVES = 32, 16  # of a chunk, two anti-diagonals each: the longer where scores leave room for it
AHEAD = 64  # bases: a cache line
U_TILE, U_EIGHT = U(TILE), U(8)
EVERY_BYTE = U(0x0101010101010101)
SLACK = 20  # rows beyond what X-drop admits at a time: they cost little and save narrow lanes from being moved or given up
BEYOND_QUERY, BEYOND_TARGET = U8(6), U8(7)
"""Codes of bases past the ends of a flank: they match nothing, not even each other.  A target's base is complemented by
exclusive or with 3; unknown ones are 4 then, or 5 where unknown bases must not match."""


class CellType(NamedTuple):
    """What cells are made of.

    dead : a dead cell's value.
    highest : what a cell can hold.
    wide : lanes and rows of wide windows; rows are numbered by tile, in this type.
    """

    name: str
    dead: int
    highest: int
    wide: tuple[tuple[int, int], ...]


BYTE = CellType("int8", -112, 127, ((32, 248), (8, 992), (1, 7936)))
SHORT = CellType("int16", -32_000, 32_767, ((8, 2048), (1, 65_536)))
MARGIN = 6  # of narrow windows: fewer flanks outgrow them than with a smaller one, and few lanes are moved
MAX_NARROW = 124  # rows of 64 lanes


class Class(NamedTuple):
    """Windows of one size.

    lanes : flanks side by side; divides TILE.
    height : rows of the window, a multiple of TILE // lanes.
    margin : rows between a window's end and its live cells below which it is moved.
    half : bases of a query or target that a chunk of twice as many anti-diagonals goes on.
    """

    lanes: int
    height: int
    margin: int
    half: int


def top_score(scoring: Scoring, cell: CellType, half: int) -> int:
    """Score that a lane's best cell has at the start of a chunk: `half` matches and twice as many drifts later it fits."""
    return cell.highest - half * scoring.match + 2 * half * scoring.gap


def fits(scoring: Scoring, cell: CellType, half: int) -> bool:
    """Whether live and dead cells of this type stay apart, and neither they nor the rise of a chunk wrap around."""
    equal, unequal = scoring.match - 2 * scoring.gap, scoring.mismatch - 2 * scoring.gap
    room = cell.dead - np.iinfo(cell.name).min
    top = top_score(scoring, cell, half)
    return top >= 0 and -unequal <= room and top - scoring.xdrop > cell.dead + equal


def narrow_height(scoring: Scoring) -> int:
    """Rows that true overlaps stay within: X-drop admits about X / gap diagonals of one parity."""
    return (scoring.xdrop // -scoring.gap + SLACK + 3) // 4 * 4


def classes(scoring: Scoring, cell: CellType) -> list[Class]:
    """Window sizes to try one after the other with such cells."""
    half = next((half for half in HALVES if fits(scoring, cell, half)), None)
    if half is None:
        return []
    narrow = narrow_height(scoring)
    sizes = [Class(TILE, height, MARGIN, half) for height in (narrow, 2 * narrow) if height <= MAX_NARROW]
    return sizes + [Class(lanes, height, half + 1, half) for lanes, height in cell.wide if height >= narrow]


@njit_vector
def begin_step(best, was, drop, drift, xdrop):
    """Let the best scores drift by one anti-diagonal; `drop` receives what a live cell has to reach."""
    cell = best.dtype.type
    for e in range(U_TILE):
        drifted = cell(best[e] + drift)
        best[e] = was[e] = drifted
        drop[e] = cell(drifted - xdrop)


@njit_vector
def _step(new, new_at, old, old_at, query, query_at, target, target_at, tiles, lanes, best, was, row, drop, scores):
    """One anti-diagonal of all lanes, cells of `tiles` only; `was` receives the best scores before it, drifted."""
    equal, unequal, drift, xdrop, dead = scores
    cell = new.dtype.type
    begin_step(best, was, drop, drift, xdrop)
    for tile in range(U(tiles[0]), U(tiles[1])):
        at = tile * U_TILE
        n, o, q, r = U(new_at) + at, U(old_at) + at, U(query_at) + at, U(target_at) + at
        for e in range(U_TILE):
            gapped = max(old[o + e], old[o + U(lanes) + e])
            paired = cell(new[n + e] + (equal if query[q + e] == target[r + e] else unequal))
            value = max(gapped, paired)
            highest, its_row = best[e], row[e]  # read before the choice: AVX2 has no masked loads of bytes
            row[e] = cell(tile) if value > highest else its_row
            best[e] = max(value, highest)
            new[n + e] = value if value >= drop[e] else dead


@njit_vector
def agree(best, was, update, twice, lanes, t):
    """Give all phases of a lane its best score; update: anti-diagonal of the chunk in which a phase reached it, or -1."""
    cell = best.dtype.type
    mine = twice[U_TILE + U_TILE :]
    for e in range(U_TILE):
        mine[e] = best[e]
    apart = U(lanes)
    while apart < U_TILE:
        for e in range(U_TILE):
            twice[e] = twice[U_TILE + e] = best[e]
        for e in range(U_TILE):
            best[e] = max(twice[e], twice[e + apart])
        apart += apart
    for e in range(U_TILE):
        before, its_time = update[e], cell(t) if mine[e] == best[e] else cell(-1)
        update[e] = its_time if best[e] > was[e] else before


@njit_vector
def survey(even, odd, odd_at, tiles, n_tiles, top, dead, best, shift, first, last):
    """Take scores relative to the best again; first, last: outermost tiles with a live cell (n_tiles and -1: none).

    shift : what is taken away, the drift of the chunk included.
    """
    cell = even.dtype.type
    for e in range(U_TILE):
        shift[e] = cell(best[e] - top)
        best[e] = top
        first[e] = cell(n_tiles)
        last[e] = cell(-1)
    for tile in range(U(tiles[0]), U(tiles[1])):
        n, o = tile * U_TILE, U(odd_at) + tile * U_TILE
        for e in range(U_TILE):
            a, b, s = even[n + e], odd[o + e], shift[e]
            live = max(a, b) > dead
            first[e] = min(first[e], cell(tile) if live else cell(n_tiles))
            last[e] = max(last[e], cell(tile) if live else cell(-1))
            even[n + e] = cell(a - s) if a > dead else dead
            odd[o + e] = cell(b - s) if b > dead else dead


@njit_vector
def watch_ends(even, odd, odd_last, lanes, ends):
    """Remember whether the outermost rows were ever alive."""
    for l in range(U(lanes)):
        ends[l] = max(ends[l], max(even[l], odd[U(odd_last) + l]))


@njit_vector
def _spread(word, rows, row, step, lanes):
    """Write the eight bases that each lane holds in a word to eight rows, one after the other in steps of `step`."""
    for i in range(U_EIGHT):
        at = U(row + i * step) * U(lanes)
        for l in range(U(lanes)):
            rows[at + l] = U8(word[l] >> (i * U_EIGHT))


@njit_vector
def copy_cells(to, to_at, source, source_at, n):
    for i in range(U(n)):
        to[U(to_at) + i] = source[U(source_at) + i]


@njit_inner
def read_word(codes, p):
    """Codes p .. p + 7 in one word."""
    x = U(codes[U(p)])
    for i in range(1, 8):
        x |= U(codes[U(p) + U(i)]) << U(8 * i)  # LLVM makes this one load
    return x


@njit_inner
def _word_at_end(codes, p, end):
    """The same with codes from `end` on, or before 0, as BEYOND_QUERY."""
    if p >= end:
        return EVERY_BYTE * U(BEYOND_QUERY)
    x = U(0)
    for i in range(8):
        x |= U(codes[p + i] if 0 <= p + i < end else BEYOND_QUERY) << U(8 * i)
    return x


@njit_inner
def _word_within(codes, p, end):
    return read_word(codes, p) if 0 <= p and p + 8 <= end else _word_at_end(codes, p, end)


@njit_inner
def _as_target(x, flip, apart):
    """Complement known bases if flip is 3; unknown ones become 4 + apart; bases beyond the flank BEYOND_TARGET."""
    beyond = (x >> U(1)) & (x >> U(2)) & EVERY_BYTE
    unknown = ((x >> U(2)) & EVERY_BYTE) ^ beyond
    known = EVERY_BYTE ^ beyond ^ unknown
    return (x ^ (known * U(flip))) + unknown * U(apart) + beyond


@njit_inner
def load_bases(codes, flank, l, size, query_at, target_at, apart, query, target):
    """All bases of one lane's window, after a start or a move: the query's run down the rows, the target's up."""
    query_begin, query_length, target_begin, target_length, flip = flank
    lanes, height, _, half = size
    n_rows = height + half
    for j in range(0, height, 8):
        x = _word_within(codes, query_at + j, query_begin + query_length)
        y = _as_target(_word_within(codes, target_at + j, target_begin + target_length), flip, apart)
        for i in range(min(8, height - j)):
            query[(j + i) * lanes + l] = U8(x >> U(8 * i))
            target[(n_rows - 1 - j - i) * lanes + l] = U8(y >> U(8 * i))


@njit_inner
def move(rows, at, lanes, height, l, by, dead):
    """Move one lane's window by `by` rows; cells that enter it are dead.  by >= height empties it."""
    for j in range(height):
        w = j if by > 0 else height - 1 - j
        alive = 0 <= w + by < height
        rows[at + w * lanes + l] = rows[at + (w + by) * lanes + l] if alive else dead


@njit_inner
def put_borders(rows, at, lanes, height, edges, n_edges, walls, p, parity, drop, dead):
    """Border cells and walls of the lanes that reach them.

    Cells of column 0 and row 0 die on equality too, after the first anti-diagonal.  Of the *longest* result, nothing lives
    in the row and the column past the last.
    """
    for i in range(n_edges):
        l, left, top, query_length, target_length = edges[i]
        left, top = left - p - 1, top + p + parity
        if top - left > 1:
            for w in (left, top):
                if 0 <= w < height and rows[at + w * lanes + l] == drop[l]:
                    rows[at + w * lanes + l] = dead
        if walls:
            for w in (left + query_length + 1, top - target_length - 1):
                if 0 <= w < height:
                    rows[at + w * lanes + l] = dead


FLANK, QUERY_AT, TARGET_AT, QUERY_OFFSET, TARGET_OFFSET, SCORE, COLUMN, TARGET_ROW, AGE, LOW, HIGH, TIME, ROW = range(13)
QUERY_END, TARGET_END, FLIP, HIGHEST, END_SCORE, END_COLUMN, END_ROW = range(13, 20)
N_NOW = 20
"""Where every lane stands: rows of `now`, (N_NOW, TILE) int64.

FLANK: which flank it extends, -1 if idle.  QUERY_AT, TARGET_AT: where its windows of bases begin in the reads;
QUERY_OFFSET, TARGET_OFFSET: the same relative to the flank.  SCORE, COLUMN, TARGET_ROW: the best cell.  AGE: chunks since
its start.  LOW, HIGH: outermost live rows.  TIME, ROW: anti-diagonal of the chunk and row where the best cell rose last; -1
if it did not.  QUERY_END, TARGET_END: where the flank's bases end in the reads.  FLIP: 3 to complement the target, or 0.
HIGHEST: best tilted score; END_SCORE, END_COLUMN, END_ROW: the cell that has it."""


class Saved(NamedTuple):
    """State of all lanes at the start of a chunk, for *longest*."""

    even: np.ndarray
    odd: np.ndarray
    query_offset: np.ndarray
    target_offset: np.ndarray
    score: np.ndarray


def scores_of(scoring: Scoring, cell: CellType, size: Class) -> np.ndarray:
    """(6,) in the cells' type: what a match and a mismatch add beyond two gaps, drift, X, a dead cell, the top score.

    X may wrap around: what it is taken from wraps back.
    """
    match, mismatch, gap, xdrop, _, _ = scoring
    gaps, top = 2 * gap, top_score(scoring, cell, size.half)
    return np.array([match - gaps, mismatch - gaps, -gap, xdrop, cell.dead, top]).astype(cell.name)


@njit_inner
def place(codes, flanks, taken, size, now, stacks, best, apart, cell_scores):
    """Start idle lanes, move those whose live cells are near an end of the window; return how many flanks are taken."""
    lanes, height, margin, _ = size
    even, odd, query, target = stacks
    dead, top = cell_scores[4], cell_scores[5]
    middle = height // 2
    for l in range(lanes):
        i = now[FLANK, l]
        if i < 0:
            if taken == len(flanks):
                continue
            i = now[FLANK, l] = taken
            taken += 1
            flank = flank_at(flanks, i)
            now[SCORE, l] = now[COLUMN, l] = now[TARGET_ROW, l] = now[AGE, l] = 0
            now[HIGHEST, l] = now[END_SCORE, l] = now[END_COLUMN, l] = now[END_ROW, l] = 0
            now[QUERY_AT, l], now[TARGET_AT, l] = flank[0] - middle, flank[2] + middle - height
            now[QUERY_END, l], now[TARGET_END, l], now[FLIP, l] = flank[0] + flank[1], flank[2] + flank[3], flank[4]
            even[middle * lanes + l] = top
            for e in range(l, TILE, lanes):
                best[e] = top
            now[LOW, l] = now[HIGH, l] = middle
        else:
            low, high = now[LOW, l], now[HIGH, l]
            by = (low + high + 1) // 2 - middle
            if min(low, height - 1 - high) >= margin or by == 0:
                continue
            flank = flank_at(flanks, i)
            move(even, 0, lanes, height, l, by, dead)
            move(odd, TILE, lanes, height, l, by, dead)
            now[QUERY_AT, l] += by
            now[TARGET_AT, l] -= by
            now[LOW, l], now[HIGH, l] = low - by, high - by
        now[QUERY_OFFSET, l], now[TARGET_OFFSET, l] = now[QUERY_AT, l] - flank[0], now[TARGET_AT, l] - flank[2]
        load_bases(codes, flank, l, size, now[QUERY_AT, l], now[TARGET_AT, l], apart, query, target)
    return taken


@njit_inner
def find_edges(flanks, size, now, reach, walls, edges):
    """Lanes that meet column 0, row 0 or the walls within the next chunk: lane, rows of column 0 and row 0, lengths."""
    lanes, height, _, half = size
    n = 0
    for l in range(lanes):
        i = now[FLANK, l]
        query_offset, target_offset = now[QUERY_OFFSET, l], now[TARGET_OFFSET, l]
        if i < 0:
            continue
        query_length, target_length = flanks[i, 1], flanks[i, 3]
        edge = query_offset + target_offset + height <= reach
        if walls:
            ahead = height + half
            edge |= query_offset + ahead >= query_length or target_offset + ahead >= target_length
        if edge:
            edges[n] = l, -query_offset, target_offset + height, query_length, target_length
            n += 1
    return n


@njit_inner
def fetch(codes, size, now, apart, words, query, target):
    """Append the next `half` bases of every lane to its windows."""
    lanes, height, _, half = size
    for l in range(lanes):
        if now[FLANK, l] < 0:
            continue
        q, t, flip = now[QUERY_AT, l] + height, now[TARGET_AT, l] + height, now[FLIP, l]
        prefetch(codes, q + AHEAD)
        prefetch(codes, t + AHEAD)
        inside = q + half <= now[QUERY_END, l] and t + half <= now[TARGET_END, l]
        for j in range(half // 8):
            if inside:
                x, y = read_word(codes, q + 8 * j), read_word(codes, t + 8 * j)
            else:
                x = _word_within(codes, q + 8 * j, now[QUERY_END, l])
                y = _word_within(codes, t + 8 * j, now[TARGET_END, l])
            words[2 * j, l], words[2 * j + 1, l] = x, _as_target(y, flip, apart)
    for j in range(half // 8):
        _spread(words[2 * j], query, height + 8 * j, 1, lanes)
        _spread(words[2 * j + 1], target, half - 1 - 8 * j, -1, lanes)


@njit_inner
def live_tiles(size, now):
    """Tiles that hold every cell that can live within the next chunk."""
    lanes, height, _, half = size
    low, high = height, -1
    for l in range(lanes):
        if now[FLANK, l] >= 0:
            low, high = min(low, now[LOW, l]), max(high, now[HIGH, l])
    phases = TILE // lanes
    return max(0, low - half) // phases, min(height, high + half + phases) // phases


@njit_vector
def join_phases(update, row, first, last, size, now):
    """What the phases of every lane found: its outermost live rows (height and -1: none), the place of its best cell."""
    lanes, height = U(size[0]), size[1]
    phases = U_TILE // lanes
    for l in range(lanes):
        now[LOW, l] = height
        now[HIGH, l] = now[TIME, l] = now[ROW, l] = -1
    for phase in range(phases):
        for l in range(lanes):
            e, step, own = phase * lanes + l, np.int64(phases), np.int64(phase)
            low, high, w = first[e] * step + own, last[e] * step + own, row[e] * step + own
            now[LOW, l] = min(now[LOW, l], low)
            now[HIGH, l] = max(now[HIGH, l], high if last[e] >= 0 else -1)
            time, its_row = now[TIME, l], now[ROW, l]
            sooner = update[e] >= 0 and (time < 0 or w < its_row)
            now[TIME, l] = update[e] if sooner else time
            now[ROW, l] = w if sooner else its_row


@njit_inner
def _has_ended(scoring, size, now, l):
    """Whether a lane is done after this chunk; its best cell is taken for the end where rule.py looks at it."""
    dead, k = now[HIGH, l] < 0, (now[AGE, l] + 1) * 2 * size.half
    if not dead and k % STRIDE:
        return False
    score, column, row = now[SCORE, l], now[COLUMN, l], now[TARGET_ROW, l]
    end = now[END_SCORE : END_ROW + 1, l]
    now[HIGHEST, l] = take_tilted(score, column, row, scoring.tilt, now[HIGHEST, l], end)
    return dead or has_fallen(score, k, scoring.tilt, scoring.fall, now[HIGHEST, l])


@njit_inner
def _collect(
    flanks, size, now, older, ends, shift, cell_scores, longest, codes, scoring, even, odd, cells, over, n_over, results
):
    """Note new best cells, take results of lanes that ended, give up lanes that outgrew their window."""
    lanes, height, margin, half = size
    dead, top = cell_scores[4], cell_scores[5]
    n_done = 0
    for l in range(lanes):
        i = now[FLANK, l]
        if i < 0:
            continue
        time = now[TIME, l]
        if time >= 0:
            now[SCORE, l] += shift[l] - 2 * half * cell_scores[2]
            now[COLUMN, l] = now[QUERY_OFFSET, l] + (time >> 1) + now[ROW, l] + 1
            now[TARGET_ROW, l] = now[QUERY_OFFSET, l] + now[TARGET_OFFSET, l] + height + 1 + time - now[COLUMN, l]
        low, high = now[LOW, l], now[HIGH, l]
        if ends[l] > dead or high - low > height - margin:  # a cell outside the window may have lived
            over[n_over] = i
            n_over += 1
        elif not _has_ended(scoring, size, now, l):
            now[QUERY_AT, l] += half
            now[TARGET_AT, l] += half
            now[QUERY_OFFSET, l] += half
            now[TARGET_OFFSET, l] += half
            now[AGE, l] += 1
            continue
        elif longest:
            _find_end(codes, flank_at(flanks, i), scoring, l, size, now[AGE, l], older, top, dead, cells, results[i])
        else:
            results[i, 0], results[i, 1], results[i, 2] = now[END_SCORE, l], now[END_COLUMN, l], now[END_ROW, l]
        now[FLANK, l] = -1
        n_done += 1
        move(even, 0, lanes, height, l, height, dead)
        move(odd, TILE, lanes, height, l, height, dead)
    return n_done, n_over


@njit_inner
def _find_end(codes, flank, scoring, l, size, age, saved, top, dead, cells, out):
    """The *longest* result of a lane whose cells have all died, from its state one chunk before the last."""
    if age < 2:
        extend_flank(codes, flank, scoring, True, cells, out)
        return
    lanes, height = size[0], size[1]
    query_offset, base = saved.query_offset[l], saved.score[l] - top
    k = query_offset + saved.target_offset[l] + height
    low, high = max(0, query_offset), min(query_offset + height, flank[1] + 1)
    cells[1:, max(0, low - 2) : high + 2] = DEAD
    for c in range(low, high):
        at = (c - query_offset) * lanes + l
        if saved.odd[TILE + at] > dead:
            cells[1, c] = base - scoring.gap + saved.odd[TILE + at]  # a drift behind
        if saved.even[at] > dead:
            cells[2, c] = base + saved.even[at]
    resume(codes, flank, scoring, cells, k, low, high, saved.score[l], out)


def extend_lanes(codes, flanks, size, scoring, longest, cell=BYTE):
    """Extend flanks; those whose window grew beyond `size.height` rows are left out.

    Parameters
    ----------
    codes : uint8 as `ReadSet.both_ways`.
    flanks : (n, 5) int64 as `Flanks.table`, none empty; longest first keeps all lanes busy to the end.
    size : Class.
    longest : the SeqAn-compatible end instead of the best one (rule.py).
    cell : CellType that holds such scores: fits(scoring, cell, size.half).

    Returns
    -------
    results : (n, 3) int64: score, query bases, target bases.
    over : (n_over,) int64, rows of the flanks left out.
    """
    n_cells, cell_scores = size.height * size.lanes, scores_of(scoring, cell, size)
    even, odd = aligned(n_cells + TILE, cell_scores.dtype), aligned(n_cells + 2 * TILE, cell_scores.dtype)
    even[:] = odd[:] = cell_scores[4]
    n_bases = n_cells + size.half * size.lanes
    bases = aligned(4 * n_bases, np.uint8).reshape(4, n_bases)
    state = aligned(12 * TILE, cell_scores.dtype).reshape(12, TILE)
    now = np.zeros((N_NOW, TILE), np.int64)
    now[FLANK] = -1
    saved = _room_for(even, odd, longest), _room_for(even, odd, longest)
    scratch = np.zeros((size.half // 4, TILE), np.uint64), np.empty((TILE, 5), np.int64)
    cells = np.empty((3, (flanks[:, 1].max(initial=0) if longest else 0) + GUARD), np.int64)
    results, over = np.zeros((len(flanks), 3), np.int64), np.empty(len(flanks), np.int64)
    n_over = _run(
        codes, flanks, size, scoring, longest, cell_scores, even, odd, bases, state, now, scratch, saved, cells, results,
        over,
    )  # fmt: skip
    return results, over[:n_over]


def aligned(n: int, dtype: np.dtype) -> np.ndarray:
    """n zeros on a 64-byte boundary, else every vector load touches two cache lines."""
    raw = np.zeros(n * np.dtype(dtype).itemsize + 64, np.uint8)
    skip = -raw.ctypes.data % 64
    return raw[skip : len(raw) - 64 + skip].view(dtype)


def _room_for(even: np.ndarray, odd: np.ndarray, longest: bool) -> Saved:
    n = 1 if longest else 0
    return Saved(np.empty(n * len(even), even.dtype), np.empty(n * len(odd), odd.dtype), *np.zeros((3, TILE), np.int64))


@njit_entry
def _run(
    codes, flanks, size, scoring, longest, cell_scores, even, odd, bases, state, now, scratch, saved, cells, results, over
):
    """Chunk after chunk until all flanks are done; return how many are left out."""
    lanes, height, _, half = size
    dead, top = cell_scores[4], cell_scores[5]
    scores = cell_scores[0], cell_scores[1], cell_scores[2], cell_scores[3], dead
    n_cells, slide = height * lanes, half * lanes
    query, old_query, target, old_target = bases[0], bases[1], bases[2], bases[3]
    best, row, update, drop, was, ends, shift, first, last = (
        state[0], state[1], state[2], state[3], state[4], state[5], state[6], state[7], state[8],
    )  # fmt: skip
    twice = state[9:12].reshape(3 * TILE)
    words, edges = scratch
    start, older = saved
    reach, apart = scoring.xdrop // -scoring.gap, 0 if longest else 1
    best[:] = top
    n_over = taken = active = np.int64(0)
    while True:
        before = taken
        taken = place(codes, flanks, taken, size, now, (even, odd, query, target), best, apart, cell_scores)
        active += taken - before
        if active == 0:
            return n_over
        n_edges = find_edges(flanks, size, now, reach, longest, edges)
        fetch(codes, size, now, apart, words, query, target)
        if longest:
            start, older = older, start
            _save(even, odd, now, start)
        tiles = live_tiles(size, now)
        update[:] = -1
        ends[:] = dead
        for p in range(half):
            q, t = p * lanes, (half - p) * lanes
            _step(odd, TILE, even, 0, query, q, target, t, tiles, lanes, best, was, row, drop, scores)
            agree(best, was, update, twice, lanes, 2 * p)
            put_borders(odd, TILE, lanes, height, edges, n_edges, longest, p, 0, drop, dead)
            _step(even, 0, odd, TILE - lanes, query, q, target, t - lanes, tiles, lanes, best, was, row, drop, scores)
            agree(best, was, update, twice, lanes, 2 * p + 1)
            put_borders(even, 0, lanes, height, edges, n_edges, longest, p, 1, drop, dead)
            watch_ends(even, odd, TILE + n_cells - lanes, lanes, ends)
        survey(even, odd, TILE, tiles, n_cells // TILE, top, dead, best, shift, first, last)
        query, old_query, target, old_target = old_query, query, old_target, target
        copy_cells(query, 0, old_query, slide, n_cells)
        copy_cells(target, slide, old_target, 0, n_cells)
        join_phases(update, row, first, last, size, now)
        n_done, n_over = _collect(
            flanks, size, now, older, ends, shift, cell_scores, longest, codes, scoring, even, odd, cells, over, n_over,
            results,
        )  # fmt: skip
        active -= n_done


@njit_inner
def _save(even, odd, now, start):
    """Keep the state of all lanes."""
    copy_cells(start.even, 0, even, 0, len(even))
    copy_cells(start.odd, 0, odd, 0, len(odd))
    for l in range(TILE):
        start.query_offset[l], start.target_offset[l] = now[QUERY_OFFSET, l], now[TARGET_OFFSET, l]
        start.score[l] = now[SCORE, l]
