"""Records of columns, such as Seeds and Extensions: some rows, several end to end, and where rows change; by threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np

from bellapy.compute.jit import njit_vector_entry
from bellapy.compute.threads import map_threads

Record = TypeVar("Record", bound=Any)
U = np.uint64
U1 = U(1)


def _columns_of(record: Record) -> list[str]:
    """The names of its arrays; other fields are the same for all rows."""
    return [f.name for f in fields(record) if isinstance(getattr(record, f.name), np.ndarray)]


def take_rows(record: Record, rows: np.ndarray, threads: int) -> Record:
    """The given rows, indices or mask."""
    names = _columns_of(record)
    columns = map_threads(lambda name: getattr(record, name)[rows], names, threads)
    return replace(record, **dict(zip(names, columns, strict=True)))


def join_rows(parts: Sequence[Record], threads: int = 1) -> Record:
    """Records end to end as one; at least one part."""
    some = [part for part in parts if len(part)] or parts[:1]
    if len(some) == 1:
        return some[0]
    names = _columns_of(some[0])
    columns = map_threads(lambda name: np.concatenate([getattr(part, name) for part in some]), names, threads)
    return replace(some[0], **dict(zip(names, columns, strict=True)))


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
