"""Reads of many piles on a GPU, a thread for each: paths as symbols, and their alignment to a new consensus.

What a thread does is compiled from the same functions as the CPU's code.  So the integers are the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import cuda

from bellapy.engines.tags.draft import Draft, count_columns
from bellapy.engines.tags.realign import TOO_SMALL, Change, mark_all, mark_new, realign_read
from bellapy.engines.tags.symbols import symbol_of, write_path

KINDS = 4  # of marks


class Rows(NamedTuple):
    """The reads of many piles, those of a template one after the other, the template first.

    symbols : uint8; those of row i are symbols[begins[i] : ends[i]], both int64.  A row that was left out has none.
    starts : int64, the template's column of the first symbol.
    owners : int32, the template.
    firsts : (n_templates + 1,) int64, the first row of each template.
    """

    symbols: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    starts: np.ndarray
    owners: np.ndarray
    firsts: np.ndarray


class Templates(NamedTuple):
    """What the rows of each template are aligned to.

    codes : (n_columns,) uint8, of all templates end to end.
    offsets : (n_templates + 1,) int64; those of template t are codes[offsets[t] : offsets[t + 1]].
    """

    codes: np.ndarray
    offsets: np.ndarray


class Steps(NamedTuple):
    """How templates became their consensus: arrays of `Change`, those with an entry more from offsets[t] + t on."""

    old: Templates
    new: Templates
    begins: np.ndarray
    changes: np.ndarray
    next_change: np.ndarray


class Room(NamedTuple):
    """Where reads are laid out.

    bases : uint8, of row i from bases_at[i] on.  mates, letters : as `Draft` has them, of row i from columns_at[i] on.
    marks : uint64, the four kinds of row i one after the other, from marks_at[i] on.  These three are (n_rows + 1,) int64.
    scores : int16, the same number for each thread.
    """

    bases: np.ndarray
    mates: np.ndarray
    letters: np.ndarray
    marks: np.ndarray
    bases_at: np.ndarray
    columns_at: np.ndarray
    marks_at: np.ndarray
    scores: np.ndarray


def write_rows(order, codes, runs, sources, templates, rows):
    """Write the symbols of all rows, gaps as far left as they go.

    order : (n_rows,) int64, rows.  codes, runs, sources : as `make_pile` takes them, sources of all templates end to end.
    templates : Templates.  rows : Rows, their symbols overwritten.
    """
    k = cuda.grid(1)
    if k < order.shape[0]:
        i = order[k]
        t, at = rows.owners[i], rows.begins[i]
        template = templates.codes[templates.offsets[t] : templates.offsets[t + 1]]
        if i == rows.firsts[t]:
            for c in range(len(template)):
                rows.symbols[at + c] = symbol_of(template[c], 0)
        else:
            s = i - t - 1  # the templates themselves have no source
            write_path(codes, runs, sources, s, template, rows.symbols, at, rows.ends[i])


def mark_templates(steps, all_new):
    """Fill changes and next_change, a block of one thread for each template.  all_new : whether all is aligned again."""
    t = cuda.blockIdx.x
    change = _change(steps, t)
    if all_new:
        mark_all(change)
    else:
        mark_new(change)


@cuda.jit(device=True)
def _change(steps, t):
    old, end = steps.old.offsets[t], steps.old.offsets[t + 1]
    new, new_end = steps.new.offsets[t], steps.new.offsets[t + 1]
    return Change(
        steps.new.codes[new:new_end], steps.begins[old + t : end + t + 1], steps.changes[new + t : new_end + t + 1],
        steps.old.codes[old:end], steps.next_change[old + t : end + t + 1],
    )  # fmt: skip


def count_new_columns(rows, offsets, begins, n_columns):
    """Fill n_columns, (n_rows,) int64: columns of the consensus beside each row.  offsets : of the old templates."""
    i = cuda.grid(1)
    if i < rows.begins.shape[0]:
        t = rows.owners[i]
        first = offsets[t] + t + rows.starts[i]
        n_columns[i] = begins[first + count_columns(rows.symbols, rows.begins[i], rows.ends[i])] - begins[first]


def realign_rows(order, count, rows, steps, room, cells, found):
    """Realign rows in this order; each thread takes one after the other.

    count : (1,) int32, rows that were taken; 0.  cells : int16 of the scores of each thread.
    found : Rows; ends and starts are overwritten, an end TOO_SMALL says that the scores did not fit.
    """
    me = np.int64(cuda.grid(1))
    scores = room.scores[me * cells : (me + 1) * cells]
    while True:
        k = cuda.atomic.add(count, 0, 1)
        if k >= order.shape[0]:
            break
        i = order[k]
        here, end = room.columns_at[i], room.columns_at[i + 1]
        at = room.marks_at[i]
        n = (room.marks_at[i + 1] - at) // KINDS
        draft = Draft(
            room.bases[room.bases_at[i] : room.bases_at[i + 1]], room.mates[here:end], room.letters[here:end],
            room.marks[at : at + n], room.marks[at + n : at + 2 * n], room.marks[at + 2 * n : at + 3 * n],
            room.marks[at + 3 * n : at + KINDS * n],
        )  # fmt: skip
        written, start = realign_read(
            rows.symbols, rows.begins[i], rows.ends[i], rows.starts[i], _change(steps, rows.owners[i]), draft, scores,
            found.symbols, found.begins[i], None,
        )  # fmt: skip
        found.ends[i] = written
        if written != TOO_SMALL:
            found.starts[i] = start
