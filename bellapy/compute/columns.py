"""Records of columns: some rows, several end to end, where rows change, and what is computed of each; by threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import TypeVar

import numpy as np

from bellapy.compute.jit import njit_vector_entry
from bellapy.compute.threads import even_ranges, map_threads, shared_by
from bellapy.records import Extensions, Seeds

Record = TypeVar("Record", Seeds, Extensions)
U = np.uint64
U1 = U(1)
AT_ONCE = 1 << 16
"""Rows that a thread computes at a time: temporary arrays of so many stay in its cache, and their memory is used again."""


def _with_columns(record: Record, make: Callable[[str], np.ndarray], threads: int) -> Record:
    """The record with arrays made anew, by name; its other fields are the same for all rows."""
    names = [f.name for f in fields(record) if isinstance(getattr(record, f.name), np.ndarray)]
    columns: dict = dict(zip(names, map_threads(make, names, threads), strict=True))
    return replace(record, **columns)


def take_rows(record: Record, rows: np.ndarray, threads: int) -> Record:
    """The given rows, indices or mask."""
    return _with_columns(record, lambda name: getattr(record, name)[rows], threads)


def join_rows(parts: Sequence[Record], threads: int = 1) -> Record:
    """Records end to end as one; at least one part."""
    some = [part for part in parts if len(part)] or parts[:1]
    if len(some) == 1:
        return some[0]
    return _with_columns(some[0], lambda name: np.concatenate([getattr(part, name) for part in some]), threads)


def begins_of_runs(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Mask of the rows of three columns that differ from the row before, the first one included."""
    begins = np.empty(len(a), bool)
    _mark_begins(a, b, c, begins)
    return begins


@njit_vector_entry
def _mark_begins(a, b, c, begins):
    """begins[i] = whether row i of a, b and c, (n,) each, differs from the row before; begins : (n,) bool."""
    begins[:1] = True
    for i in range(U1, U(len(begins))):
        before = i - U1
        begins[i] = (a[i] != a[before]) | (b[i] != b[before]) | (c[i] != c[before])


def make_rows(make: Callable[[slice], np.ndarray], n: int, dtype: np.typing.DTypeLike, threads: int = 1) -> np.ndarray:
    """The values of n rows, (n,); make : gives those of some rows."""
    values = np.empty(n, dtype)

    def fill(rows: slice) -> None:
        values[rows] = make(rows)

    map_threads(fill, _pieces(n, threads), threads)
    return values


def join_made(make: Callable[[slice], np.ndarray], n: int, threads: int = 1) -> np.ndarray:
    """What `make` gives of some of n rows, end to end: any number of values."""
    return join_arrays(map_threads(make, _pieces(n, threads) or [slice(0, 0)], threads), threads)


def choose_rows(column: np.ndarray, chosen: np.ndarray, threads: int = 1) -> np.ndarray:
    """The values of a column, (n,), in the rows of a mask."""
    return join_made(lambda rows: column[rows][chosen[rows]], len(column), threads)


def _pieces(n: int, threads: int) -> list[slice]:
    return [slice(*part) for part in even_ranges(n, max(threads, -(-n // AT_ONCE)))]


def join_arrays(parts: Sequence[np.ndarray], threads: int = 1) -> np.ndarray:
    """Arrays of one type end to end; at least one."""
    ends = np.cumsum([len(part) for part in parts]).tolist()
    whole = np.empty(ends[-1], parts[0].dtype)

    def copy(i: int) -> None:
        whole[ends[i] - len(parts[i]) : ends[i]] = parts[i]

    map_threads(copy, range(len(parts)), threads)
    return whole


def list_rows(write: Callable[..., int], n: int, threads: int, *columns: np.ndarray) -> np.ndarray:
    """Some of n rows, in order, (any,) int64.

    write : gets the begin and end of some rows, and room for as many numbers; writes its own, and returns how many.
    columns : between rows that are alike in all of these nothing is cut.
    """

    def list_part(part: tuple[int, int]) -> np.ndarray:
        room = np.empty(part[1] - part[0], np.int64)
        return room[: write(*part, room)].copy()

    return join_arrays([np.zeros(0, np.int64), *map_threads(list_part, whole_runs(n, threads, *columns), threads)], threads)


def whole_runs(n: int, parts: int, *columns: np.ndarray) -> list[tuple[int, int]]:
    """Cut range(n) into at most `parts` pieces of about equal length, never between rows that are alike in all columns."""
    edges = [n]
    for begin, _ in reversed(even_ranges(n, parts)):
        while 0 < begin < n and all(column[begin] == column[begin - 1] for column in columns):
            begin -= 1
        edges.append(begin)
    edges.reverse()
    return [(begin, end) for begin, end in zip(edges[:-1], edges[1:], strict=True) if begin < end]


def share_runs(do: Callable[[slice, slice], object], edges: np.ndarray, threads: int) -> None:
    """Call a function with some runs of rows, and with the rows of these, for all runs.

    edges : (n_runs + 1,) int64, where runs begin, and the end of the last one.
    """

    def do_part(part: tuple[int, int]) -> None:
        begin, end = part
        do(slice(begin, end), slice(int(edges[begin]), int(edges[end])))

    shared_by(threads)(do_part, len(edges) - 1)


def sum_runs(make: Callable[[slice], np.ndarray], edges: np.ndarray, threads: int) -> np.ndarray:
    """Sums over runs of rows, (n_runs,) int64; make : gives the values of some rows.  edges : of `share_runs`, ascending."""
    sums = np.empty(len(edges) - 1, np.int64)

    def add(runs: slice, rows: slice) -> None:
        sums[runs] = np.add.reduceat(make(rows), edges[runs] - rows.start, dtype=np.int64)

    share_runs(add, edges, threads)
    return sums
