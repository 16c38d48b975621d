"""What became of templates: bases that were replaced, put in and taken out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_entry, njit_vector
from bellapy.records.table import frozen


class Changes(NamedTuple):
    """Bases of a template that were replaced, put in and taken out, and bases of the new one that stayed as they were."""

    mismatches: int
    inserted: int
    deleted: int
    raw: int


class Corrections(NamedTuple):
    """Templates and what they became, end to end.

    templates : uint8 codes.  offsets : (n + 1,) int64, of each template.
    codes, raw : uint8 codes of what they became, and bool, bases that stayed.  ends : (n + 1,) int64, of these.
    begins : int64, the base with which each base of a template begins, and the number of bases: for all templates one more
        than they have bases.
    """

    templates: np.ndarray
    offsets: np.ndarray
    codes: np.ndarray
    raw: np.ndarray
    ends: np.ndarray
    begins: np.ndarray


@njit_vector
def _count(template, codes, raw, begins):
    """What became of a template: without branches, so that several bases are looked at at a time."""
    replaced = inserted = deleted = stayed = np.int64(0)
    last = len(codes) - 1
    if last < 0:
        return replaced, inserted, np.int64(len(template)), stayed
    for i in range(len(template)):
        begin, end = begins[i], begins[i + 1]
        replaced += (end > begin) & (codes[min(begin, last)] != template[i])
        inserted += max(end - begin - 1, 0)
        deleted += end == begin
    for i in range(len(raw)):
        stayed += raw[i]
    return replaced, inserted, deleted, stayed


@njit_entry
def _count_all(found, counts):
    for t in range(len(found.offsets) - 1):
        first, end, at, stop = found.offsets[t], found.offsets[t + 1], found.ends[t], found.ends[t + 1]
        template, begins = found.templates[first:end], found.begins[first + t : end + t + 1]
        counts[t, 0], counts[t, 1], counts[t, 2], counts[t, 3] = _count(
            template, found.codes[at:stop], found.raw[at:stop], begins
        )


def count_changes(found: Corrections) -> list[Changes]:
    """What became of each template."""
    counts = np.empty((len(found.offsets) - 1, len(Changes._fields)), np.int64)
    _count_all(found._replace(templates=frozen(found.templates), codes=frozen(found.codes)), counts)
    return list(map(Changes._make, counts.tolist()))
