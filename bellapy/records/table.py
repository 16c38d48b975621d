"""Columns of records: read-only, of the type and in the range that kernels count on."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

INT32_MAX = 2**31 - 1


CHECKED = 1 << 20  # values at a time, so that temporary arrays stay small


def freeze(record, dtypes: dict[str, type]) -> None:
    """Check dtype and C order of each named array, in constant time, and make it read-only."""
    for name, dtype in dtypes.items():
        array = getattr(record, name)
        if not isinstance(array, np.ndarray) or array.dtype != dtype or not array.flags.c_contiguous:
            got = getattr(array, "dtype", type(array).__name__)
            raise TypeError(f"{type(record).__name__}.{name}: expected contiguous {np.dtype(dtype)}, got {got}")
        array.flags.writeable = False


def frozen(array: np.ndarray) -> np.ndarray:
    """A read-only view, as the arrays of a ReadSet are: to Numba arrays that can be written to are another type."""
    view = array.view()
    view.flags.writeable = False
    return view


def check_columns(record, n: int, *scalars: str) -> None:
    """Raise ValueError unless every field but `scalars` is (n,)."""
    for f in fields(record):
        if f.name not in scalars and getattr(record, f.name).shape != (n,):
            raise ValueError(f"{f.name}: {getattr(record, f.name).shape} instead of ({n},)")


def check_range(name: str, values, low, high) -> None:
    """Raise ValueError unless low <= values <= high everywhere; each an array or a number."""
    for at in range(0, np.size(values), CHECKED):
        piece = slice(at, at + CHECKED)
        value, least, most = (x[piece] if np.ndim(x) else x for x in (values, low, high))
        if not np.all((least <= value) & (value <= most)):  # written this way, NaN fails
            raise ValueError(f"{name}: out of range")
