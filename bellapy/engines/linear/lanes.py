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

from bellapy.compute.jit import njit_inner, njit_part, njit_vector
from bellapy.engines.lanes.bases import Bases
from bellapy.engines.lanes.shape import TILE, U_TILE, Shape, U, aligned, copy_cells
from bellapy.engines.linear.lane_state import QUERY_OFFSET, fetch, find_edges, join_phases, live_tiles

OCTET = 8  # steps of two anti-diagonals, whose bits share a byte
PAIRED, INSERTED = range(2)


class Bits(NamedTuple):
    """What is kept of cells, to go back through them (trace_lanes.py).

    planes : (octets, 2, 2, n_cells) uint8, by octet of steps, parity of the anti-diagonal, PAIRED or INSERTED, cell; the
        first step of an octet in the highest bit.
    columns : (octets, TILE) int64, column of row 0 at the beginning of each octet.
    """

    planes: np.ndarray
    columns: np.ndarray


def make_bases(shape: Shape) -> tuple[Bases, Bases]:
    """Room for the bases of this chunk and the next."""
    n = (shape.height + shape.half) * shape.lanes
    rows = aligned(4 * n, np.uint8).reshape(4, n)
    return Bases(rows[0], rows[2]), Bases(rows[1], rows[3])


@njit_inner
def _bits_of(bits, octet, parity):
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
        at, own = tile * U_TILE, cell(tile)
        for e in range(U_TILE):
            a, b, s = even[at + e], odd[at + e], shift[e]
            live, low, high = max(a, b) > dead, first[e], last[e]
            first[e] = min(low, own) if live else low
            last[e] = own if live else high
            even[at + e] = cell(a - s) if a > dead else dead
            odd[at + e] = cell(b - s) if b > dead else dead


@njit_vector
def _any_lives(even, odd, tile, dead):
    """Whether any cell of a tile lives.  `even`, `odd`: the stacks.  `tile`: its number.  `dead`: a dead cell."""
    at, lives = U(tile) * U_TILE, False
    for e in range(U_TILE):
        lives |= max(even[at + e], odd[at + e]) > dead
    return lives


@njit_inner
def _make_room(even, odd, tiles, n_tiles, dead):
    """Tiles that hold every cell that can live after two more anti-diagonals: one more at an end where any lives.

    `even`, `odd`, `dead`: as in `_any_lives`.  `tiles`: first tile, and end of those that hold every live cell.
    `n_tiles`: how many there are.
    """
    first, end = tiles
    if first > 0 and _any_lives(even, odd, first, dead):
        first -= 1
    if 0 < end < n_tiles and _any_lives(even, odd, end - 1, dead):
        end += 1
    return first, end


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
    edges : (n, 5) int64 of `find_edges`.
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


@njit_part
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
    edges = group.edges[: find_edges(task, group, walls)]
    fetch(task, now, group.words, bases)
    tiles = live_tiles(shape, now)
    even, odd, before_odd = group.even, group.odd[TILE:], group.odd[TILE - lanes :]
    best.score[:] = scores.top
    group.update[:] = -1
    group.ends[:] = scores.dead
    for p in range(half):
        if bits is not None and p % OCTET == 0:
            for l in range(lanes):
                bits.columns[p // OCTET, l] = now[QUERY_OFFSET, l] + p
        tiles = _make_room(even, odd, tiles, n_cells // TILE, scores.dead)
        query, target = bases.query[p * lanes :], bases.target[(half - p) * lanes :]
        _step(odd, even, query, target, tiles, lanes, best, scores, _bits_of(bits, p // OCTET, 0))
        _agree(best.score, best.was, group.update, group.twice, lanes, 2 * p)
        _put_borders(odd, shape, edges, walls, p, np.int64(0), best.drop, scores.dead)
        target = bases.target[(half - p - 1) * lanes :]
        _step(even, before_odd, query, target, tiles, lanes, best, scores, _bits_of(bits, p // OCTET, 1))
        _agree(best.score, best.was, group.update, group.twice, lanes, 2 * p + 1)
        _put_borders(even, shape, edges, walls, p, np.int64(1), best.drop, scores.dead)
        _watch_ends(even, odd[n_cells - lanes :], lanes, group.ends)
    _survey(even, odd, tiles, n_cells // TILE, scores, best.score, group.shift, group.first, group.last)
    copy_cells(spare.query, bases.query[half * lanes :], n_cells)
    copy_cells(spare.target[half * lanes :], bases.target, n_cells)
    join_phases(group.update, best.row, group.first, group.last, shape, now)
