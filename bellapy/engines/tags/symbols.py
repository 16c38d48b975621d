"""A pile: the reads that are aligned to one template, one symbol for every column of every path.

A symbol below INSERTED stands in the next column of the template: the code of a base, GAP, or UNKNOWN_BASE.  INSERTED plus
the code of a base stands between two columns.  So symbols hold the aligned bases as well as the path, and what comes after
needs the reads no more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_entry, njit_inner, njit_part
from bellapy.compute.runs import PAIR, QUERY_ALONE, TARGET_ALONE
from bellapy.engines.lanes.bases import EVERY_BYTE, read_word
from bellapy.engines.tags.marks import WORD, bytes_from, lowest_bit
from bellapy.records import Paths

GAP = 4
UNKNOWN_BASE = 5
INSERTED = 8
MOST = 63  # columns of a short run
STEP = 16  # symbols that are written at a time
U = np.uint64


class Pile(NamedTuple):
    """The reads aligned to a template; the first one is the template itself.

    symbols : (n_symbols,) uint8.  Every path begins and ends with a column in which its read has a base.
    offsets : (n + 1,) int64; the symbols of read i are symbols[offsets[i] : offsets[i + 1]].
    starts : (n,) int64, the template's column of its first symbol.
    """

    symbols: np.ndarray
    offsets: np.ndarray
    starts: np.ndarray

    def __len__(self) -> int:
        return len(self.starts)

    def take(self, kept: np.ndarray) -> Pile:
        """The reads that a mask, (n,) bool, keeps."""
        if kept.all():
            return self
        spans = [self.symbols[self.offsets[i] : self.offsets[i + 1]] for i in np.flatnonzero(kept)]
        offsets = np.cumsum([0] + [len(span) for span in spans])
        return Pile(np.concatenate(spans or [self.symbols[:0]]), offsets, self.starts[kept])


class Sources(NamedTuple):
    """Where the symbols of a pile come from; arrays with an entry for each read but the template, int64 but for the last.

    bases : index in `codes` of the first aligned base; they are read in increasing order.
    flips : 3 if the bases are to be complemented, else 0.
    starts : first column of the template.
    begins, ends : the path's short runs, runs[begin:end].
    columns : of the path.
    as_query : bool, whether the template is the query of its path: the two gaps then change their parts.
    backwards : bool, whether the path is to be read from its end.
    """

    bases: np.ndarray
    flips: np.ndarray
    starts: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    columns: np.ndarray
    as_query: np.ndarray
    backwards: np.ndarray

    def part(self, some: slice | np.ndarray) -> Sources:
        """Those of some reads; a mask of them, or their rows."""
        return Sources(*(column[some] for column in self))


@njit_inner
def symbol_of(code, flip):
    """The symbol of a base that stands in a column."""
    return np.uint8(code ^ flip) if code < 4 else np.uint8(UNKNOWN_BASE)


@njit_inner
def _move_gap(symbols, begin, first, after, template, column):
    """Move the gap symbols[first:after] left, whose last column is the one before `column`."""
    size = after - first
    while first - 1 > begin:
        before = symbols[first - 1]
        if before == GAP:  # another gap: they go on as one
            first, size = first - 1, size + 1
        elif before >= INSERTED or template[column - size - 1] != template[column - 1]:
            break
        else:
            symbols[after - 1], symbols[first - 1] = before, np.uint8(GAP)
            first, after, column = first - 1, after - 1, column - 1


@njit_inner
def _move_inserted(symbols, begin, first, after):
    """Move the inserted bases symbols[first:after] left."""
    while first - 1 > begin:
        before = symbols[first - 1]
        if before >= INSERTED:
            first -= 1
        elif before == GAP or before != symbols[after - 1] - INSERTED:
            break
        else:
            symbols[first - 1] = before + np.uint8(INSERTED)
            symbols[after - 1] -= np.uint8(INSERTED)
            first, after = first - 1, after - 1


@njit_inner
def _move_left(symbols, begin, first, after, template, column):
    """Move the gap symbols[first:after], of either kind, left; `column` is the one after it."""
    if symbols[first] == GAP:
        _move_gap(symbols, begin, first, after, template, column)
    else:
        _move_inserted(symbols, begin, first, after)


@njit_part
def _next_gap(symbols, k, end, in_vectors):
    """The next symbol, from symbols[k] on, that is not a known base in a column; `end` if there is none before."""
    if in_vectors is None:
        while k < end and symbols[k] < GAP:
            k += 1
        return k
    while k < end:
        others = bytes_from(symbols, k, GAP)
        if others:
            return min(end, k + lowest_bit(others))
        k += WORD
    return end


@njit_inner
def shift_left(symbols, begin, first, end, template, column, in_vectors):
    """Move the gaps of a path, symbols[begin:end], from symbols[first] on, as far left as they go, in place.

    A gap moves across a column with two bases where the base before the gap equals its last base: columns stay equal or
    unequal.  Gaps of one kind that meet become one.  A gap does not cross one of the other kind, nor the first column.

    template : (n,) uint8 codes.  column : of symbols[first].
    in_vectors : None for code without vectors; else symbols has WORD entries more behind.
    """
    k = first
    while k < end:
        gap = _next_gap(symbols, k, end, in_vectors)
        column, k = column + gap - k, gap
        if k == end:
            break
        symbol = symbols[k]
        k += 1
        if symbol == GAP:
            while k < end and symbols[k] == GAP:
                k += 1
            column += k - gap
            _move_gap(symbols, begin, gap, k, template, column)
        elif symbol < INSERTED:
            column += 1
        else:
            while k < end and symbols[k] >= INSERTED:
                k += 1
            _move_inserted(symbols, begin, gap, k)


@njit_part
def _write_some(codes, base, flip, kept, added, out, at):
    """Write STEP symbols: those of bases, with `added`, or this alone where `kept` is 0.

    flip, kept, added : uint64 with a byte for each of eight symbols.
    """
    for first in range(0, STEP, 8):
        word = read_word(codes, base + first)
        unknown = word >> U(2) & EVERY_BYTE
        word = ((word ^ flip) & ~(unknown << U(1)) | unknown) & kept | added
        for i in range(8):
            out[U(at + first + i)] = np.uint8(word >> U(8 * i) & U(255))  # LLVM makes this one store


@njit_inner
def along_template(sources, i):
    """The first run of path i along the template, the step to the next one, and the operation of bases between columns."""
    backwards = sources.backwards[i]
    first = sources.ends[i] - 1 if backwards else sources.begins[i]
    return first, -1 if backwards else 1, TARGET_ALONE if sources.as_query[i] else QUERY_ALONE


@njit_inner
def write_path(codes, runs, sources, i, template, out, at, last):
    """Write the symbols of path i, gaps as far left as they go, to out[at:last].

    A run is written STEP symbols at a time where there is room for them; the next run takes the place of those too many.
    """
    begin, before, gap = at, PAIR, at
    base, flip, column = sources.bases[i], sources.flips[i], sources.starts[i]
    first, step, inserting = along_template(sources, i)
    for j in range(sources.ends[i] - sources.begins[i]):
        run = np.int64(runs[first + j * step])
        size, operation = run >> 2, run & 3
        if operation != before:
            if before != PAIR:
                _move_left(out, begin, gap, at, template, column)
            before, gap = operation, at
        inserted = operation == inserting
        shows = (operation == PAIR) | inserted
        added = INSERTED if inserted else 0 if shows else GAP
        every_kept, every_added = ~U(0) if shows else U(0), EVERY_BYTE * U(added)
        for k in range(0, size, STEP):
            if at + k + STEP <= last:
                _write_some(codes, base + k, EVERY_BYTE * U(flip), every_kept, every_added, out, at + k)
            else:
                for c in range(k, size):
                    out[at + c] = symbol_of(codes[base + c], flip) + added if shows else GAP
                break
        base += size if shows else 0
        column += 0 if inserted else size
        at += size
    if before != PAIR:
        _move_left(out, begin, gap, at, template, column)


@njit_entry
def _write_all(codes, template, sources, runs, symbols, offsets):
    for i in range(len(template)):
        symbols[i] = symbol_of(template[i], 0)
    offsets[1] = len(template)
    for i in range(len(sources.bases)):
        offsets[i + 2] = offsets[i + 1] + sources.columns[i]
        write_path(codes, runs, sources, i, template, symbols, offsets[i + 1], offsets[i + 2])


def make_pile(codes: np.ndarray, template: np.ndarray, sources: Sources, runs: np.ndarray) -> Pile:
    """The pile of a template, gaps as far left as they go.

    Parameters
    ----------
    codes : `ReadSet.both_ways`.
    template : (n,) uint8, its codes.
    runs : uint8, short runs of all paths.  Every path begins and ends with a pair.
    """
    n = len(sources.bases)
    symbols, offsets = np.empty(len(template) + int(sources.columns.sum()), np.uint8), np.zeros(n + 2, np.int64)
    _write_all(codes, template, sources, runs, symbols, offsets)
    return Pile(symbols, offsets, np.concatenate(([0], sources.starts)))


@njit_entry
def _count_short(runs, offsets, out_offsets):
    for i in range(len(offsets) - 1):
        n = out_offsets[i]
        for j in range(offsets[i], offsets[i + 1]):
            n += ((np.int64(runs[j]) >> 4) + MOST - 1) // MOST
        out_offsets[i + 1] = n


@njit_entry
def _shorten(runs, out):
    at = 0
    for j in range(len(runs)):
        size, operation = np.int64(runs[j]) >> 4, np.int64(runs[j]) & 15
        while size > 0:
            out[at] = min(size, MOST) << 2 | operation
            size -= MOST
            at += 1


def shorten(paths: Paths) -> tuple[np.ndarray, np.ndarray]:
    """The runs of paths in one byte each, length << 2 | operation, uint8, and their offsets as `Paths` has them, int64.

    Runs longer than MOST columns become several.
    """
    offsets = np.zeros(len(paths) + 1, np.int64)
    _count_short(paths.runs, paths.offsets, offsets)
    runs = np.empty(offsets[-1], np.uint8)
    _shorten(paths.runs[paths.offsets[0] : paths.offsets[-1]], runs)
    return runs, offsets


@njit_entry
def _write_rows(rows, columns, absent, symbols, offsets, starts):
    at = np.int64(0)
    for i in range(len(rows)):
        first, end, k = len(columns), 0, 0
        for j in range(len(columns)):
            if rows[i, columns[j]] != absent:
                first, end = min(first, j), j + 1
        for column in range(columns[first] if end else 0, columns[end - 1] + 1 if end else 0):
            while k < len(columns) and columns[k] < column:
                k += 1
            beside, letter = columns[k] != column, rows[i, column]
            if letter != absent:
                symbols[at] = symbol_of(letter, 0) + np.uint8(INSERTED if beside else 0)
                at += 1
            elif not beside:
                symbols[at] = GAP
                at += 1
        starts[i], offsets[i + 1] = first, at


def pile_of_rows(rows: np.ndarray, columns: np.ndarray, absent: int) -> Pile:
    """The pile of sequences that are laid out in columns; the first row is the template's.

    Parameters
    ----------
    rows : (n, n_columns) uint8 codes, and `absent` where a sequence has no base.
    columns : (n_template,) int64, ascending: those of the template.
    """
    symbols, offsets, starts = (
        np.empty(rows.size, np.uint8),
        np.zeros(len(rows) + 1, np.int64),
        np.empty(len(rows), np.int64),
    )
    _write_rows(rows, columns, absent, symbols, offsets, starts)
    return Pile(symbols[: offsets[-1]].copy(), offsets, starts)
