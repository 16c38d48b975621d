"""Entries of a KmerMatrix in compiled code; records/kmers.py says what their bits are."""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit_inner
from bellapy.records.kmers import FIRST, PLACE_BITS, REVERSE

U = np.uint64
_PLACE_BITS, _FIRST, _REVERSE = U(PLACE_BITS), U(FIRST), U(REVERSE)


@njit_inner
def pack_entry(place, first, reverse):
    """The entry of a k-mer at `place`; `first`, `reverse`: uint64, 0 or 1."""
    return U(place) << _PLACE_BITS | U(first) * _FIRST | U(reverse) * _REVERSE


@njit_inner
def place_of(entry):
    """The place in an `entry`, int64."""
    return np.int64(U(entry) >> _PLACE_BITS)


@njit_inner
def is_first(entry):
    """Whether an `entry` is the first one of its column."""
    return U(entry) & _FIRST != 0


@njit_inner
def reverse_of(entry):
    """1 where the read shows the reverse complement of the k-mer of an `entry`, else 0; uint64."""
    return U(entry) & _REVERSE


@njit_inner
def moved(entry, place):
    """An `entry` at another `place`."""
    return U(place) << _PLACE_BITS | U(entry) & (_FIRST | _REVERSE)
