"""How well each read of a pile shows the template, window by window, and which of its bases stands in a column.

Both are told by the paths of overlaps, before anything is corrected.
"""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit_entry, njit_inner
from bellapy.compute.runs import PAIR
from bellapy.engines.tags.symbols import Sources, along_template

WINDOW = 32  # columns
NOWHERE = -1
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


@njit_entry
def _list_shares(codes, template, sources, runs, offsets, equal, total, shares):
    for i in range(len(sources.bases)):
        begin, end = offsets[i], offsets[i + 1]
        _count_equal(codes, template, sources, runs, i, equal[begin:end], total[begin:end])
        for w in range(begin, end):
            n_equal = n_all = 0
            for near in range(max(begin, w - 1), min(end, w + 2)):
                n_equal += equal[near]
                n_all += total[near]
            shares[w] = n_equal / n_all


def list_shares(
    codes: np.ndarray, template: np.ndarray, sources: Sources, runs: np.ndarray, ends: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """How much of each window is alike in each read: equal pairs of all columns, and of bases that stand between them.

    The windows on both sides count too, where the path crosses them.

    Parameters
    ----------
    codes, template, sources, runs : as of `make_pile`.
    ends : (n_reads,) int64, columns of the template behind the paths.

    Returns
    -------
    windows : (n,) int64, those that a path crosses from edge to edge, read by read; the first column of w is w * WINDOW.
    shares : (n,) float32, of 1.
    """
    first = -(-sources.starts // WINDOW)
    sizes = np.maximum(ends // WINDOW - first, 0)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    (equal, total), shares = np.empty((2, offsets[-1]), np.int32), np.empty(offsets[-1], np.float32)
    _list_shares(codes, template, sources, runs, offsets, equal, total, shares)
    return np.arange(offsets[-1]) + np.repeat(first - offsets[:-1], sizes), shares


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
