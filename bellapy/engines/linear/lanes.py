"""X-drop extension of many flanks side by side in vector lanes: the same integers as rule.py, in windows of any width.

Cells of a lane live in two stacks of `height` rows, `even` and `odd` anti-diagonals.  A row is one diagonal of the
alignment matrix.  With even[w] at column c + w of an anti-diagonal, the next two are

    odd[w]  = max(even[w], even[w + 1], odd[w] + match or mismatch)        at column c + w + 1
    even[w] = max(odd[w - 1], odd[w], even[w] + match or mismatch)         at column c + w + 1

in place: nothing moves inside a chunk of 64 or 32 anti-diagonals. Scores drift up there by what a gap costs for every anti-
diagonal, so that gaps are free and a match or mismatch has the cost of two gaps on top. Between chunks scores are taken
relative to the best one again, a lane whose live cells near an end of its window is moved by whole rows, a finished lane
takes the next flank, and one whose live cells may have left the window is given up and reported, for wider windows.

The rows of a tile are its phases; each keeps the best cell of its own rows, and after every anti-diagonal they agree on the
best of the lane.  Only rows that can come to life within the chunk are computed.

extend_lanes.py wants the best cell of every lane, trace_lanes.py two bits of each cell: both go through `compute_chunk`, and
`_step` is the rule for both.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_inner, njit_vector, prefetch
from bellapy.engines.lanes.bases import Bases, as_target, load_bases, read_word, spread, word_within
from bellapy.engines.lanes.shape import TILE, U_TILE, Shape, U, aligned, copy_cells, move
from bellapy.engines.linear.rule import flank_at
from bellapy.engines.linear.sizes import CellScores
from bellapy.params import Scoring

AHEAD = 64  # bases: a cache line
OCTET = 8  # steps of two anti-diagonals, whose bits share a byte
PAIRED, INSERTED = range(2)

FLANK, QUERY_AT, TARGET_AT, QUERY_OFFSET, TARGET_OFFSET, SCORE, COLUMN, TARGET_ROW, AGE, LOW, HIGH, TIME, ROW = range(13)
QUERY_END, TARGET_END, FLIP, HIGHEST, END_SCORE, END_COLUMN, END_ROW = range(13, 20)
N_NOW = 20
"""Where every lane stands: rows of `now`, (N_NOW, TILE) int64.

FLANK: which flank it extends, -1 if idle.  QUERY_AT, TARGET_AT: where its windows of bases begin in the reads;
QUERY_OFFSET, TARGET_OFFSET: the same relative to the flank.  SCORE, COLUMN, TARGET_ROW: the best cell.  AGE: chunks since
its start.  LOW, HIGH: outermost live rows.  TIME, ROW: anti-diagonal of the chunk and row where the best cell rose last; -1
if it did not.  QUERY_END, TARGET_END: where the flank's bases end in the reads.  FLIP: 3 to complement the target, or 0.
HIGHEST: best tilted score; END_SCORE, END_COLUMN, END_ROW: the cell that has it."""


class Task(NamedTuple):
    """What is the same for all lanes all the time.

    codes : uint8 as `ReadSet.both_ways`.
    flanks : (n, 5) int64 as `Flanks.table`.
    shape : of the windows.
    scoring : checked by the caller.
    scores : the same in the cells' type.
    longest : which result is wanted (rule.py); unknown bases match each other then.
    """

    codes: np.ndarray
    flanks: np.ndarray
    shape: Shape
    scoring: Scoring
    scores: CellScores
    longest: bool


class Best(NamedTuple):
    """The best cell of each phase of each lane; all (TILE,) in the cells' type.

    score : its score.  was : that before the anti-diagonal, drifted.  row : its row, by tile.
    drop : what a live cell has to reach.
    """

    score: np.ndarray
    was: np.ndarray
    row: np.ndarray
    drop: np.ndarray


class Lanes(NamedTuple):
    """The state of all lanes, and room for a chunk.

    even, odd : cells, row by row, and TILE more after them; `odd` has TILE before them too.
    now : (N_NOW, TILE) int64.
    best : Best.
    update : anti-diagonal of the chunk in which a phase reached its best score, or -1.
    ends : the highest cells of the outermost rows.
    shift : what is taken away from scores after a chunk.
    first, last : outermost tiles with a live cell.
    twice : (3 * TILE,), scratch of `_agree`.  Those before it: (TILE,); all in the cells' type.
    words : (half / 4, TILE) uint64, bases as they come.
    edges : (TILE, 5) int64, lanes near the border of the matrix (`_find_edges`).
    """

    even: np.ndarray
    odd: np.ndarray
    now: np.ndarray
    best: Best
    update: np.ndarray
    ends: np.ndarray
    shift: np.ndarray
    first: np.ndarray
    last: np.ndarray
    twice: np.ndarray
    words: np.ndarray
    edges: np.ndarray


class Bits(NamedTuple):
    """What is kept of cells, to go back through them (trace_lanes.py).

    planes : (octets, 2, 2, n_cells) uint8, by octet of steps, parity of the anti-diagonal, PAIRED or INSERTED, cell; the
        first step of an octet in the highest bit.
    columns : (octets, TILE) int64, column of row 0 at the beginning of each octet.
    """

    planes: np.ndarray
    columns: np.ndarray


def make_lanes(shape: Shape, dtype: np.dtype) -> Lanes:
    """All lanes idle, all cells dead once `clear_lanes` has been called."""
    n_cells = shape.height * shape.lanes
    lines = aligned(12 * TILE, dtype).reshape(12, TILE)
    even, odd, now = aligned(n_cells + TILE, dtype), aligned(n_cells + 2 * TILE, dtype), np.zeros((N_NOW, TILE), np.int64)
    words, edges = np.zeros((shape.half // 4, TILE), np.uint64), np.empty((TILE, 5), np.int64)
    return Lanes(even, odd, now, Best(*lines[:4]), *lines[4:9], lines[9:].reshape(3 * TILE), words, edges)


def make_bases(shape: Shape) -> tuple[Bases, Bases]:
    """Room for the bases of this chunk and the next."""
    n = (shape.height + shape.half) * shape.lanes
    rows = aligned(4 * n, np.uint8).reshape(4, n)
    return Bases(rows[0], rows[2]), Bases(rows[1], rows[3])


@njit_inner
def clear_lanes(group, dead):
    """Make all lanes of a `group` of Lanes idle, all cells `dead`."""
    group.even[:] = dead
    group.odd[:] = dead
    group.now[:] = 0
    group.now[FLANK] = -1


@njit_inner
def bits_of(bits, octet, parity):
    """Where the two bits of the cells of an anti-diagonal go, by its `octet` and `parity`; None if `bits` is."""
    if bits is None:
        return None
    return bits.planes[octet, parity, PAIRED], bits.planes[octet, parity, INSERTED]


@njit_vector
def _step(new, old, query, target, tiles, lanes, best, scores, bits):
    """One anti-diagonal of all lanes.

    Parameters
    ----------
    new : cells of the anti-diagonal but one before, by row and lane; replaced by those of this one.
    old : cells of the one before, from the neighbour in the same column on; the other one is `lanes` cells further.
    query, target : codes by row and lane, uint8.
    tiles : first tile, and end of those that are computed.
    lanes : their number.
    best : Best; renewed.
    scores : CellScores.
    bits : None to note the row of the best cell; or two (n_cells,) uint8, to each of which a bit is appended instead.
    """
    cell = new.dtype.type
    for e in range(U_TILE):
        drifted = cell(best.score[e] + scores.drift)
        best.score[e] = best.was[e] = drifted
        best.drop[e] = cell(drifted - scores.xdrop)
    for tile in range(U(tiles[0]), U(tiles[1])):
        at = tile * U_TILE
        for e in range(U_TILE):
            after_query, after_target = old[at + e], old[at + U(lanes) + e]
            gapped = max(after_query, after_target)
            paired = cell(new[at + e] + (scores.equal if query[at + e] == target[at + e] else scores.unequal))
            value = max(gapped, paired)
            highest = best.score[e]
            if bits is None:
                its_row = best.row[e]  # read before the choice: AVX2 has no masked loads of bytes
                best.row[e] = cell(tile) if value > highest else its_row
            else:
                pairs, inserts = bits
                pairs[at + e] = np.uint8(pairs[at + e] + pairs[at + e] + (paired >= gapped))
                inserts[at + e] = np.uint8(inserts[at + e] + inserts[at + e] + (after_query >= after_target))
            best.score[e] = max(value, highest)
            new[at + e] = value if value >= best.drop[e] else scores.dead


@njit_vector
def _agree(score, was, update, twice, lanes, t):
    """Give all phases of a lane its best score.

    Parameters
    ----------
    score, was, update, twice : of Best and Lanes; `score` and `update` are renewed, `twice` is overwritten.
    lanes : their number.
    t : the anti-diagonal of the chunk.
    """
    cell = score.dtype.type
    mine = twice[U_TILE + U_TILE :]
    for e in range(U_TILE):
        mine[e] = score[e]
    apart = U(lanes)
    while apart < U_TILE:
        for e in range(U_TILE):
            twice[e] = twice[U_TILE + e] = score[e]
        for e in range(U_TILE):
            score[e] = max(twice[e], twice[e + apart])
        apart += apart
    for e in range(U_TILE):
        before, its_time = update[e], cell(t) if mine[e] == score[e] else cell(-1)
        update[e] = its_time if score[e] > was[e] else before


@njit_vector
def _survey(even, odd, tiles, n_tiles, scores, best, shift, first, last):
    """Take scores relative to the best again, and find the outermost tiles with a live cell.

    Parameters
    ----------
    even, odd : cells; changed.
    tiles, n_tiles : first tile and end of those that were computed; how many there are.
    scores : CellScores.
    best : (TILE,), best scores; set to the top.
    shift : (TILE,), overwritten by what is taken away, the drift of the chunk included.
    first, last : (TILE,), overwritten; n_tiles and -1 where no cell lives.
    """
    cell, dead = even.dtype.type, scores.dead
    for e in range(U_TILE):
        shift[e] = cell(best[e] - scores.top)
        best[e] = scores.top
        first[e] = cell(n_tiles)
        last[e] = cell(-1)
    for tile in range(U(tiles[0]), U(tiles[1])):
        at = tile * U_TILE
        for e in range(U_TILE):
            a, b, s = even[at + e], odd[at + e], shift[e]
            live = max(a, b) > dead
            first[e] = min(first[e], cell(tile) if live else cell(n_tiles))
            last[e] = max(last[e], cell(tile) if live else cell(-1))
            even[at + e] = cell(a - s) if a > dead else dead
            odd[at + e] = cell(b - s) if b > dead else dead


@njit_vector
def _watch_ends(low, high, lanes, ends):
    """Remember in `ends`, (TILE,), whether the outermost rows of each of the `lanes`, `low` and `high`, were ever alive."""
    for l in range(U(lanes)):
        ends[l] = max(ends[l], max(low[l], high[l]))


@njit_inner
def _put_borders(rows, shape, edges, walls, p, parity, drop, dead):
    """Border cells and walls of the lanes that reach them.

    Cells of column 0 and row 0 die on equality too, after the first anti-diagonal.  Of the *longest* result, nothing lives
    in the row and the column past the last.

    Parameters
    ----------
    rows : cells of the anti-diagonal; changed.
    shape : Shape.
    edges : (n, 5) int64 of `_find_edges`.
    walls : whether there are walls.
    p, parity : number and parity of the anti-diagonal, 0 or 1, in the chunk.
    drop : (TILE,), what live cells have to reach.
    dead : a dead cell.
    """
    lanes, height = shape.lanes, shape.height
    for i in range(len(edges)):
        l, left, top, query_length, target_length = edges[i]
        left, top = left - p - 1, top + p + parity
        if top - left > 1:
            for w in (left, top):
                if 0 <= w < height and rows[w * lanes + l] == drop[l]:
                    rows[w * lanes + l] = dead
        if walls:
            for w in (left + query_length + 1, top - target_length - 1):
                if 0 <= w < height:
                    rows[w * lanes + l] = dead


@njit_inner
def place(task, group, bases, taken):
    """Start idle lanes, move those whose live cells are near an end of the window.

    Parameters
    ----------
    task, group, bases : Task, Lanes, Bases; the last two are changed.
    taken : how many flanks were taken before.

    Returns
    -------
    How many are taken now.
    """
    lanes, height, margin, _ = task.shape
    now, middle = group.now, height // 2
    for l in range(lanes):
        i = now[FLANK, l]
        if i < 0:
            if taken == len(task.flanks):
                continue
            i = taken
            taken += 1
            _start(group, flank_at(task.flanks, i), i, l, task.shape, task.scores.top)
        else:
            low, high = now[LOW, l], now[HIGH, l]
            by = (low + high + 1) // 2 - middle
            if min(low, height - 1 - high) >= margin or by == 0:
                continue
            move(group.even, task.shape, l, by, task.scores.dead)
            move(group.odd[TILE:], task.shape, l, by, task.scores.dead)
            now[QUERY_AT, l] += by
            now[TARGET_AT, l] -= by
            now[LOW, l], now[HIGH, l] = low - by, high - by
        flank = flank_at(task.flanks, i)
        now[QUERY_OFFSET, l], now[TARGET_OFFSET, l] = now[QUERY_AT, l] - flank[0], now[TARGET_AT, l] - flank[2]
        load_window(task, group, bases, l)
    return taken


@njit_inner
def _start(group, flank, i, l, shape, top):
    """Put a lane at the start of a flank.

    Parameters
    ----------
    group : Lanes; changed.
    flank, i : the flank, a row of `Flanks.table`, and its number.
    l : the lane, of windows of this `shape`.
    top : score of its first cell.
    """
    now, middle = group.now, shape.height // 2
    now[FLANK, l] = i
    now[SCORE, l] = now[COLUMN, l] = now[TARGET_ROW, l] = now[AGE, l] = 0
    now[HIGHEST, l] = now[END_SCORE, l] = now[END_COLUMN, l] = now[END_ROW, l] = 0
    now[QUERY_AT, l], now[TARGET_AT, l] = flank[0] - middle, flank[2] + middle - shape.height
    now[QUERY_END, l], now[TARGET_END, l], now[FLIP, l] = flank[0] + flank[1], flank[2] + flank[3], flank[4]
    now[LOW, l] = now[HIGH, l] = middle
    group.even[middle * shape.lanes + l] = top


@njit_inner
def load_window(task, group, bases, l):
    """Read all bases of the window of lane `l`; `task`, `group`, `bases`: Task, Lanes, and Bases, which are overwritten."""
    flank = flank_at(task.flanks, group.now[FLANK, l])
    at = group.now[QUERY_AT, l], group.now[TARGET_AT, l]
    load_bases(task.codes, flank, l, task.shape, at, 0 if task.longest else 1, bases)


@njit_inner
def retire(task, group, l):
    """Make lane `l` idle and its cells dead; `task`, `group`: Task, and Lanes, which are changed."""
    group.now[FLANK, l] = -1
    move(group.even, task.shape, l, task.shape.height, task.scores.dead)
    move(group.odd[TILE:], task.shape, l, task.shape.height, task.scores.dead)


@njit_inner
def go_on(now, l, half):
    """Let the windows of lane `l` go on by `half` bases; `now` is that of Lanes."""
    now[QUERY_AT, l] += half
    now[TARGET_AT, l] += half
    now[QUERY_OFFSET, l] += half
    now[TARGET_OFFSET, l] += half


@njit_inner
def _find_edges(task, group, walls):
    """Find the lanes that meet column 0, row 0 or, if there are any, the `walls` within the next chunk.

    `task`, `group`: Task, and Lanes, whose `edges` are overwritten: lane, rows of column 0 and row 0, lengths.  Returns how
    many there are.
    """
    lanes, height, _, half = task.shape
    now, reach, n = group.now, task.scoring.xdrop // -task.scoring.gap, 0
    for l in range(lanes):
        i = now[FLANK, l]
        if i < 0:
            continue
        query_offset, target_offset = now[QUERY_OFFSET, l], now[TARGET_OFFSET, l]
        query_length, target_length = task.flanks[i, 1], task.flanks[i, 3]
        edge = query_offset + target_offset + height <= reach
        if walls:
            ahead = height + half
            edge |= query_offset + ahead >= query_length or target_offset + ahead >= target_length
        if edge:
            group.edges[n] = l, -query_offset, target_offset + height, query_length, target_length
            n += 1
    return n


@njit_inner
def _fetch(task, now, words, bases):
    """Append the next `half` bases of every lane to its windows.

    Parameters
    ----------
    task : Task.
    now, words : of Lanes; `words` is overwritten.
    bases : Bases; renewed.
    """
    codes, apart = task.codes, 0 if task.longest else 1
    lanes, height, _, half = task.shape
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
                x = word_within(codes, q + 8 * j, now[QUERY_END, l])
                y = word_within(codes, t + 8 * j, now[TARGET_END, l])
            words[2 * j, l], words[2 * j + 1, l] = x, as_target(y, flip, apart)
    for j in range(half // 8):
        spread(words[2 * j], bases.query, height + 8 * j, 1, lanes)
        spread(words[2 * j + 1], bases.target, half - 1 - 8 * j, -1, lanes)


@njit_inner
def _live_tiles(shape, now):
    """Tiles that hold every cell that can live within the next chunk: the first, and the end.

    `shape`: Shape; `now`: that of Lanes.
    """
    lanes, height, _, half = shape
    low, high = height, -1
    for l in range(lanes):
        if now[FLANK, l] >= 0:
            low, high = min(low, now[LOW, l]), max(high, now[HIGH, l])
    phases = TILE // lanes
    return max(0, low - half) // phases, min(height, high + half + phases) // phases


@njit_vector
def _join_phases(update, row, first, last, shape, now):
    """What the phases of every lane found: its outermost live rows (height and -1: none), the place of its best cell.

    `update`, `row`, `first`, `last`, `now`: those of Lanes; LOW, HIGH, TIME and ROW are overwritten.  `shape`: Shape.
    """
    lanes, height = U(shape.lanes), shape.height
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
def compute_chunk(task, group, bases, spare, bits):
    """The next anti-diagonals of all lanes, twice `half`, after `place`.

    Parameters
    ----------
    task, group : Task, Lanes; the latter is renewed.
    bases, spare : Bases of this chunk, and room for those of the next, which is filled as far as they are known.
    bits : Bits of the chunk, to be kept; or None, to find the best cells.
    """
    shape, scores, best, now = task.shape, task.scores, group.best, group.now
    lanes, height, _, half = shape
    n_cells, walls = height * lanes, bits is None and task.longest
    edges = group.edges[: _find_edges(task, group, walls)]
    _fetch(task, now, group.words, bases)
    tiles = _live_tiles(shape, now)
    even, odd, before_odd = group.even, group.odd[TILE:], group.odd[TILE - lanes :]
    best.score[:] = scores.top
    group.update[:] = -1
    group.ends[:] = scores.dead
    for p in range(half):
        if bits is not None and p % OCTET == 0:
            for l in range(lanes):
                bits.columns[p // OCTET, l] = now[QUERY_OFFSET, l] + p
        query, target = bases.query[p * lanes :], bases.target[(half - p) * lanes :]
        _step(odd, even, query, target, tiles, lanes, best, scores, bits_of(bits, p // OCTET, 0))
        _agree(best.score, best.was, group.update, group.twice, lanes, 2 * p)
        _put_borders(odd, shape, edges, walls, p, 0, best.drop, scores.dead)
        target = bases.target[(half - p - 1) * lanes :]
        _step(even, before_odd, query, target, tiles, lanes, best, scores, bits_of(bits, p // OCTET, 1))
        _agree(best.score, best.was, group.update, group.twice, lanes, 2 * p + 1)
        _put_borders(even, shape, edges, walls, p, 1, best.drop, scores.dead)
        _watch_ends(even, odd[n_cells - lanes :], lanes, group.ends)
    _survey(even, odd, tiles, n_cells // TILE, scores, best.score, group.shift, group.first, group.last)
    copy_cells(spare.query, bases.query[half * lanes :], n_cells)
    copy_cells(spare.target[half * lanes :], bases.target, n_cells)
    _join_phases(group.update, best.row, group.first, group.last, shape, now)
