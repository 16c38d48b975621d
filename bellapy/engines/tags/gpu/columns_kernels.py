"""What the reads of many piles show in each column, on a GPU: a thread for each row counts, one for each template decides.

Source of the rules: columns.py and judge.py.
"""

from __future__ import annotations

import numpy as np
from numba import cuda

from bellapy.engines.tags.columns import LETTERS, choose_columns, find_kind
from bellapy.engines.tags.graph import Consensus
from bellapy.engines.tags.judge import N_SEEN, decide, see_template
from bellapy.engines.tags.symbols import GAP, INSERTED, UNKNOWN_BASE


def count_letters(rows, offsets, counts, own):
    """Count letters of each column, and note what templates show.

    rows : Rows.  offsets : of the templates.  counts : (n_columns * LETTERS,) int32 of zeros.
    own : (n_columns,) uint8 of UNKNOWN_BASE.
    """
    i = cuda.grid(1)
    if i >= rows.begins.shape[0]:
        return
    t = rows.owners[i]
    column, is_template = offsets[t] + rows.starts[i], i == rows.firsts[t]
    for k in range(rows.begins[i], rows.ends[i]):
        symbol = rows.symbols[k]
        if symbol < INSERTED:
            if is_template:
                own[column] = symbol
            elif symbol <= GAP:
                cuda.atomic.add(counts, column * LETTERS + symbol, 1)
            column += 1


def choose_telling(offsets, counts, own, telling, first, second):
    """The columns that tell copies apart, a block of one thread for each template.

    own : of `count_letters`.  telling : Telling.  first, second : (n_columns,) int8.
    """
    at, end = offsets[cuda.blockIdx.x], offsets[cuda.blockIdx.x + 1]
    choose_columns(counts[at * LETTERS : end * LETTERS], own[at:end], telling, first[at:end], second[at:end])


def compare_rows(rows, templates, own, first, second, telling, found):
    """Fill in how rows differ from their templates.

    own, first, second : of the columns, see `tell_apart`.  telling : Telling.
    found : (n_rows, 5) int32, overwritten: the kind of a row, see `tell_apart`, and its `Differences`.
    """
    i = cuda.grid(1)
    if i >= rows.begins.shape[0]:
        return
    column = templates.offsets[rows.owners[i]] + rows.starts[i]
    n_for = n_against = columns = matches = gaps = inserted = 0
    for k in range(rows.begins[i], rows.ends[i]):
        symbol = rows.symbols[k]
        if symbol < INSERTED:
            code, one, other, mine = templates.codes[column], first[column], second[column], own[column]
            columns += 1
            matches += code < GAP and symbol == code
            gaps += symbol == GAP
            if one >= 0 and (symbol == one or symbol == other) and (mine == one or mine == other):
                n_for += symbol == mine
                n_against += symbol != mine
            column += 1
        else:
            inserted += 1
    found[i, 0] = find_kind(n_for, n_against, telling)
    found[i, 1], found[i, 2], found[i, 3], found[i, 4] = columns, matches, gaps, inserted


def see_rows(rows, offsets, seen):
    """Count what all rows but templates show in each column and behind it; seen : (n_columns * N_SEEN,) int32 of zeros."""
    i = cuda.grid(1)
    if i >= rows.begins.shape[0] or i == rows.firsts[rows.owners[i]]:
        return
    at, inside = (offsets[rows.owners[i]] + rows.starts[i]) * N_SEEN, False
    for k in range(rows.begins[i], rows.ends[i]):
        symbol = np.int64(rows.symbols[k])
        if symbol < INSERTED:
            if k > rows.begins[i]:
                cuda.atomic.add(seen, at + N_SEEN - 1, 1)
                at += N_SEEN
            cuda.atomic.add(seen, at + symbol, 1)
            inside = True
        elif inside:
            inside = False
            if symbol < INSERTED + GAP:
                cuda.atomic.add(seen, at + UNKNOWN_BASE + 1 - INSERTED + symbol, 1)


def judge_templates(rows, templates, odds, least, seen, runs, found, sizes):
    """Judge every template's consensus, a block of one thread for each.

    rows : Rows.  seen : from `see_rows`; what templates show is added.
    runs : int64, and found.begins, of template t from offsets[t] + t on, overwritten.
    found : Consensus, the others of template t from 2 * offsets[t] on.  sizes : (n_templates,) int64, overwritten.
    """
    t = cuda.blockIdx.x
    at, end = templates.offsets[t], templates.offsets[t + 1]
    room, room_end = 2 * at, 2 * end
    its = Consensus(
        found.codes[room:room_end], found.raw[room:room_end], found.slots[room:room_end], found.begins[at + t : end + t + 1]
    )
    own, first = seen[at * N_SEEN : end * N_SEEN], rows.firsts[t]
    see_template(rows.symbols, rows.begins[first], rows.ends[first], rows.starts[first], end - at, own)
    sizes[t] = decide(templates.codes[at:end], odds, least, own, runs[at + t : end + t + 1], its)


def bring_together(room, room_of, backwards, offsets, new_offsets, out):
    """Copy what was written of each template to where it stands beside the others, a block for each.

    room : uint8, of template t from room_of * offsets[t] on.  out : uint8, of template t from new_offsets[t] on.
    """
    t = cuda.blockIdx.x
    at, begin = room_of * offsets[t], new_offsets[t]
    n = new_offsets[t + 1] - begin
    for k in range(cuda.threadIdx.x, n, cuda.blockDim.x):
        out[begin + k] = room[at + (n - 1 - k if backwards else k)]


def compose(raw_offsets, offsets, begins, whole):
    """Follow every raw base's place to the newest consensus, a block for each template.

    begins : int64, of the newest; of template t from offsets[t] + t on.  whole : int64, from raw_offsets[t] + t on.
    """
    t = cuda.blockIdx.x
    for k in range(raw_offsets[t] + t + cuda.threadIdx.x, raw_offsets[t + 1] + t + 1, cuda.blockDim.x):
        whole[k] = begins[offsets[t] + t + whole[k]]
