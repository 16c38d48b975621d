"""The tag graph of piles on a GPU, a warp for each template.

Lanes count reads of some columns in shared memory, then go through these columns side by side: a lane has a node before.
Source of the rule: graph.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import cuda

from bellapy.compute.gpu.ops import I32, U32, WARP, inlined, largest, sync_warp
from bellapy.engines.tags.graph import SLOTS, START, trace
from bellapy.engines.tags.links import LETTERS, LOWEST, REACHED, ROW_BITS, UNIT, WIDTH
from bellapy.engines.tags.symbols import GAP, INSERTED

COLUMNS = 32  # counted at a time
LINKS, INSERTS = COLUMNS * LETTERS * WIDTH // 2, COLUMNS * SLOTS * GAP * LETTERS // 2  # words of two counts
NO_PATH = I32(LOWEST << ROW_BITS)
SIGN = U32(1 << 31)


class Cursors(NamedTuple):
    """How far each row has been counted: next symbol (int64), last column (int32), last node or -1 (int32)."""

    at: np.ndarray
    column: np.ndarray
    node: np.ndarray


class Tile(NamedTuple):
    """What reads show in COLUMNS columns, in shared memory.

    links, inserted : uint32, two counts in a word, as `Block` has them.  cover, others, top : int32, for each column.
    scores : (2, WIDTH) int32, of the nodes of two columns.
    """

    links: np.ndarray
    inserted: np.ndarray
    cover: np.ndarray
    others: np.ndarray
    top: np.ndarray
    scores: np.ndarray


class Search(NamedTuple):
    """What a search leaves.

    back : (n_columns, WIDTH) uint8.  others : (n_columns,) int32.
    codes, raw, slots : uint8, of template t from SLOTS * offsets[t] on, backwards.
    begins : int64, of template t from offsets[t] + t on.  sizes : (n_templates,) int64.
    """

    back: np.ndarray
    others: np.ndarray
    codes: np.ndarray
    raw: np.ndarray
    slots: np.ndarray
    begins: np.ndarray
    sizes: np.ndarray


@inlined
def _largest(value):
    """The largest of all lanes' numbers, which have signs."""
    return I32(largest(U32(value) ^ SIGN) ^ SIGN)


@inlined
def _add(words, place):
    cuda.atomic.add(words, place >> 1, U32(1) << U32(16 * (place & 1)))


@inlined
def _count_at(words, place):
    return I32((words[place >> 1] >> U32(16 * (place & 1))) & U32(0xFFFF))


@inlined
def _clear(tile, lane):
    for k in range(lane, LINKS, WARP):
        tile.links[k] = 0
    for k in range(lane, INSERTS, WARP):
        tile.inserted[k] = 0
    for k in range(lane, COLUMNS, WARP):
        tile.cover[k] = tile.others[k] = tile.top[k] = 0


@inlined
def _count_row(rows, i, beside, first, n_columns, cursors, tile):
    """Count what row i shows in n_columns columns from `first` on.  beside : 0 for the template, 1 for others."""
    at, end = cursors.at[i], rows.ends[i]
    row, node = I32(cursors.column[i] - first), I32(cursors.node[i])
    if rows.starts[i] >= first + n_columns:
        end = at
    while at < end:
        symbol = I32(rows.symbols[at])
        if symbol < INSERTED:
            if row + 1 >= n_columns:
                break
            row += I32(1)
            cuda.atomic.add(tile.others, row, beside)
            if symbol > GAP:
                node = I32(-1)
            else:
                if node >= 0:
                    _add(tile.links, (row * LETTERS + symbol) * WIDTH + node)
                cuda.atomic.add(tile.cover, row, 1)
                node = symbol
        elif node >= 0 and symbol - INSERTED < GAP:
            slot = node // I32(LETTERS) + I32(1)
            if slot < SLOTS:
                cuda.atomic.max(tile.top, row, slot)
                letter, before = symbol - I32(INSERTED), node - (slot - I32(1)) * I32(LETTERS)
                _add(tile.inserted, ((row * SLOTS + slot) * GAP + letter) * LETTERS + before)
                node = slot * I32(LETTERS) + letter
        at += 1
    cursors.at[i], cursors.column[i], cursors.node[i] = at, first + row, node


@inlined
def _score_column(tile, row, terms, turn, lane, back):
    """Scores of a column's nodes, in tile.scores[turn], from those of the column before; whether any path reaches it.

    back : (WIDTH,) uint8, overwritten.
    """
    cover, top, before = tile.cover[row], tile.top[row], 1 - turn
    for m in range(lane, WIDTH, WARP):
        tile.scores[turn, m] = LOWEST
    sync_warp()
    reached = False
    for letter in range(LETTERS):
        mine = NO_PATH
        for m in range(lane, WIDTH, WARP):
            count = _count_at(tile.links, (row * LETTERS + letter) * WIDTH + m)
            if count > 0:
                score = I32(tile.scores[before, m] + UNIT * count)
                mine = max(mine, I32(score << I32(ROW_BITS)) | I32(WIDTH - 1 - m))
        best = _largest(mine)
        if best > I32(REACHED << ROW_BITS):
            reached = True
            if lane == letter:
                tile.scores[turn, letter] = best >> I32(ROW_BITS)
                back[letter] = WIDTH - 1 - (best & (WIDTH - 1))
        if lane == letter and letter == GAP:
            tile.scores[turn, GAP] -= terms.gap * cover
    for slot in range(1, top + 1):
        sync_warp()
        if lane < GAP:
            node, first, best, source = slot * LETTERS + lane, (slot - 1) * LETTERS, LOWEST, 0
            for m in range(LETTERS):
                count = _count_at(tile.inserted, ((row * SLOTS + slot) * GAP + lane) * LETTERS + m)
                score = tile.scores[turn, first + m]
                value = I32(score + UNIT * count - terms.insertion * cover)
                if count > 0 and score > REACHED and value > best:
                    best, source = value, first + m
            tile.scores[turn, node] = best
            back[node] = source
    sync_warp()
    return reached


@inlined
def _settle(tile, turn, lane):
    """Take scores relative to the best one of a column; returns its node."""
    mine = NO_PATH
    for m in range(lane, WIDTH, WARP):
        mine = max(mine, I32(tile.scores[turn, m] << I32(ROW_BITS)) | I32(WIDTH - 1 - m))
    found = _largest(mine)
    top = found >> I32(ROW_BITS)
    for m in range(lane, WIDTH, WARP):
        score = tile.scores[turn, m]
        tile.scores[turn, m] = score - top if score > REACHED else LOWEST
    sync_warp()
    return I32(WIDTH - 1) - (found & I32(WIDTH - 1))


def search_templates(rows, templates, terms, least, voters, cursors, found):
    """The best path of every template, a block of one warp for each.

    rows, templates, cursors : Rows, Templates, Cursors; the last are overwritten.  terms : Terms.
    least : reads beside the template that a column needs to be changed.  voters : 1 if the template does not count, else 0.
    found : Search, overwritten.
    """
    links = cuda.shared.array(LINKS, np.uint32)
    inserted = cuda.shared.array(INSERTS, np.uint32)
    cover = cuda.shared.array(COLUMNS, np.int32)
    others_here = cuda.shared.array(COLUMNS, np.int32)
    top = cuda.shared.array(COLUMNS, np.int32)
    scores = cuda.shared.array((2, WIDTH), np.int32)
    tile = Tile(links, inserted, cover, others_here, top, scores)
    size = cuda.shared.array(1, np.int64)
    t, lane = cuda.blockIdx.x, I32(cuda.threadIdx.x)
    at, end, row_end = templates.offsets[t], templates.offsets[t + 1], rows.firsts[t + 1]
    n, others, back = end - at, found.others[at:end], found.back[at:end]
    for i in range(rows.firsts[t] + lane, row_end, WARP):
        cursors.at[i], cursors.column[i] = rows.begins[i], rows.starts[i] - 1
        cursors.node[i] = START if rows.starts[i] == 0 else -1
    for m in range(lane, WIDTH, WARP):
        tile.scores[0, m] = 0 if m == START else LOWEST
    best, turn = I32(START), I32(1)
    for first in range(0, n, COLUMNS):
        n_columns = min(I32(COLUMNS), I32(n - first))
        sync_warp()
        _clear(tile, lane)
        sync_warp()
        for i in range(rows.firsts[t] + voters + lane, row_end, WARP):
            _count_row(rows, i, I32(i > rows.firsts[t]), first, n_columns, cursors, tile)
        sync_warp()
        for row in range(n_columns):
            reached = _score_column(tile, row, terms, turn, lane, back[first + row])
            if lane == 0:
                others[first + row] = tile.others[row] if reached else 0
            if not reached:  # nothing is known: the template's own letter stays
                if lane < LETTERS:
                    tile.scores[turn, lane] = 0
                    back[first + row, lane] = best
                sync_warp()
            best = _settle(tile, turn, lane)
            turn = I32(I32(1) - turn)
    sync_warp()
    begins = found.begins[at + t : end + t + 1]
    if lane == 0:
        room, room_end = at * SLOTS, end * SLOTS
        size[0] = trace(
            templates.codes[at:end], back, others, least, np.int64(best), found.codes[room:room_end],
            found.raw[room:room_end], found.slots[room:room_end], begins,
        )  # fmt: skip
        begins[n] = 0
        found.sizes[t] = size[0]
    cuda.syncthreads()
    for column in range(lane, n + 1, WARP):
        begins[column] = size[0] - begins[column]
