"""How well each read of a pile shows the template, window by window, and which of its bases stands in a column.

Both are told by the paths of overlaps, before anything is corrected.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_entry, njit_inner
from bellapy.compute.runs import PAIR
from bellapy.engines.tags.symbols import Sources, along_template

WINDOW = 32  # columns
NOWHERE = -1
UNIT = 1 << 12  # shares are integers in these units
U = np.uint64


@njit_inner
def _count_equal(codes, template, sources, runs, i, equal, total):
    """Write the equal pairs of path i, and all its columns and bases between them, for each window that it crosses."""
    base, column, flip, w = sources.bases[i], sources.starts[i], np.uint8(sources.flips[i]), 0
    edge, whole, n_equal, n_all = (column // WINDOW + 1) * WINDOW, column % WINDOW == 0, 0, 0
    (at, step, inserted), n_runs = along_template(sources, i), sources.ends[i] - sources.begins[i]
    for j in range(n_runs):
        run = np.int64(runs[U(at + j * step)])
        size, operation = run >> 2, run & 3
        if operation == inserted:
            base, n_all, size = base + size, n_all + size, 0
        while size > 0:
            n = min(size, edge - column)
            if operation == PAIR:
                for k in range(U(n)):
                    n_equal += (codes[U(base) + k] ^ flip) == template[U(column) + k]
                base += n
            column, n_all, size = column + n, n_all + n, size - n
            if column == edge:
                if whole:
                    equal[w], total[w] = n_equal, n_all
                    w += 1
                edge, whole, n_equal, n_all = edge + WINDOW, True, 0, 0


class Support(NamedTuple):
    """Which windows too few reads support, and which of them are a stretch.

    least, telling : reads that support a window at least, and as a share of those whose paths cross it.
    unrelated, usual, well : share of a path through bases at random that is equal; quantile of the shares of a read that is
    usual; how far from one to the other a path shows a window well.
    beside : bases that a stretch has on either side.  apart : bases between two; with fewer they are one.  longest : of one.
    """

    least: int
    telling: float
    unrelated: float
    usual: float
    well: float
    beside: int
    apart: int
    longest: int


@njit_inner
def _windows_of(sources, i, end):
    """The first window that path i crosses from edge to edge, and how many there are; end : the column behind the path."""
    first = -(-sources.starts[i] // WINDOW)
    return first, max(end // WINDOW - first, np.int64(0))


@njit_inner
def _write_shares(codes, template, sources, runs, i, end, equal, total, shares, at):
    """Write the shares of the windows of path i to shares[at:], with the windows on both sides that the path crosses.

    end : the column behind the path.  equal, total : int64, overwritten.
    """
    _count_equal(codes, template, sources, runs, i, equal, total)
    _, n = _windows_of(sources, i, end)
    for w in range(n):
        n_equal = n_all = np.int64(0)
        for near in range(max(0, w - 1), min(n, w + 2)):
            n_equal += equal[near]
            n_all += total[near]
        shares[at + w] = n_equal * UNIT // n_all


@njit_inner
def _least_share(shares, n, levels, rule):
    """The share with which a path shows a window well; levels : (UNIT + 1,) int64, overwritten."""
    levels[:] = 0
    for x in range(n):
        levels[shares[x]] += 1
    usual, before = 0, levels[0]
    while before <= rule.usual * (n - 1):
        usual += 1
        before += levels[usual]
    return rule.unrelated * UNIT + rule.well * (usual - rule.unrelated * UNIT)


@njit_inner
def _add_stretches(read, length, support, covered, rule, found, n):
    """Write the stretches of a read to found[n:], and return where they end."""
    first = n
    for w in range(length // WINDOW):
        if support[w] >= max(rule.least, rule.telling * covered[w]):
            continue
        start = w * WINDOW
        if n == first or start - found[n - 1, 2] >= rule.apart:
            found[n, 0], found[n, 1] = read, start
            n += 1
        found[n - 1, 2] = start + WINDOW
    kept = first
    for x in range(first, n):
        start, end = found[x, 1], found[x, 2]
        if start >= rule.beside and end <= length - rule.beside and end - start <= rule.longest:
            found[kept, 0], found[kept, 1], found[kept, 2] = read, start, end
            kept += 1
    return kept


@njit
def find_stretches(templates, firsts, lengths, codes, sources, runs, ends, offsets, rule):
    """Stretches of templates that too few reads support: (n, 3) int64, which template, start and end, in ascending order.

    A read supports a window that its path crosses and shows well: equal pairs of all columns, and of bases that stand
    between them, in this window and those on both sides.

    Parameters
    ----------
    templates : uint8 codes.  firsts, lengths : (n,) int64, where those of each template begin, and how many they are.
    codes, sources, runs : as of `make_pile`; the sources of all, those of template r from offsets[r] to offsets[r + 1].
    ends : (n_sources,) int64, columns of the template behind the paths.
    rule : Support.
    """
    longest, n_rows, n_shares = np.int64(0), np.int64(0), np.int64(0)
    for r in range(len(firsts)):
        n_here = np.int64(0)
        for i in range(offsets[r], offsets[r + 1]):
            n_here += _windows_of(sources, i, ends[i])[1]
        longest, n_shares = max(longest, lengths[r] // WINDOW), max(n_shares, n_here)
        n_rows += lengths[r] // WINDOW // 2 + 1
    found, n = np.empty((n_rows, 3), np.int64), np.int64(0)
    shares, levels = np.empty(n_shares, np.int64), np.empty(UNIT + 1, np.int64)
    support, covered = np.empty(longest, np.int64), np.empty(longest, np.int64)
    equal, total = np.empty(longest, np.int64), np.empty(longest, np.int64)
    for r in range(len(firsts)):
        template, at = templates[firsts[r] : firsts[r] + lengths[r]], np.int64(0)
        for i in range(offsets[r], offsets[r + 1]):
            _write_shares(codes, template, sources, runs, i, ends[i], equal, total, shares, at)
            at += _windows_of(sources, i, ends[i])[1]
        if at == 0:
            continue
        enough, at = _least_share(shares, at, levels, rule), np.int64(0)
        support[:], covered[:] = 0, 0
        for i in range(offsets[r], offsets[r + 1]):
            first, n_windows = _windows_of(sources, i, ends[i])
            for w in range(first, first + n_windows):
                support[w] += shares[at] >= enough
                covered[w] += 1
                at += 1
        n = _add_stretches(r, lengths[r], support, covered, rule, found, n)
    return found[:n].copy()


@njit_entry
def _find_bases(sources, runs, columns, found):
    for i in range(len(sources.bases)):
        base, column, w = sources.bases[i], sources.starts[i], 0
        (at, step, inserted), n_runs = along_template(sources, i), sources.ends[i] - sources.begins[i]
        while w < len(columns) and columns[w] < column:
            w += 1
        for j in range(n_runs):
            if w == len(columns):
                break
            run = np.int64(runs[U(at + j * step)])
            size, operation = run >> 2, run & 3
            if operation == inserted:
                base += size
                continue
            while w < len(columns) and columns[w] < column + size:
                found[i, w] = base + (columns[w] - column if operation == PAIR else 0)
                w += 1
            column += size
            base += size if operation == PAIR else 0


def find_bases(sources: Sources, runs: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Which base of each read stands in some columns, or is the next one there, (n_reads, n_columns) int64.

    columns : (n_columns,) int64, ascending.  Bases are numbered as in `make_pile`'s codes; NOWHERE: the path is elsewhere.
    """
    found = np.full((len(sources.bases), len(columns)), NOWHERE, np.int64)
    _find_bases(sources, runs, columns, found)
    return found
