"""Records of columns: some rows, several end to end, and where rows change; by threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import TypeVar

import numpy as np

from bellapy.compute.jit import njit_vector_entry
from bellapy.compute.threads import map_threads
from bellapy.records import Extensions, Seeds

Record = TypeVar("Record", Seeds, Extensions)
U = np.uint64
U1 = U(1)


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
