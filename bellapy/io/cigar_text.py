"""CIGAR text of solved pieces, whose runs stand from the end of the path to its beginning."""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit_entry
from bellapy.compute.runs import length_of, operation_of
from bellapy.engines.affine.pieces import Solved
from bellapy.io import codes
from bellapy.io.table_text import NameTable, write_digits

OPERATIONS = np.frombuffer(codes.OPERATIONS.encode(), np.uint8)
MAX_DIGITS = 10


def cigar_texts(solved: Solved, *, backward: bool = False) -> NameTable:
    """One CIGAR string for every piece; a piece without a path has an empty one.

    backward : the pieces were aligned from right to left.
    """
    text = np.empty(int(solved.counts.sum()) * (MAX_DIGITS + 1), np.uint8)
    offsets = np.zeros(len(solved.counts) + 1, np.int64)
    _write(solved.runs, solved.starts, solved.counts, backward, text, offsets)
    return NameTable(text[: offsets[-1]], offsets)


@njit_entry
def _write(runs, starts, counts, backward, out, offsets):
    """Write CIGARs to out, uint8; offsets : (n + 1,) int64, filled.  runs, starts, counts : of Solved.

    backward : as in `cigar_texts`.
    """
    at = np.int64(0)
    for p in range(len(counts)):
        for x in range(counts[p]):
            run = runs[starts[p] + (x if backward else counts[p] - 1 - x)]
            at = write_digits(out, at, length_of(run), 1)
            out[at] = OPERATIONS[operation_of(run)]
            at += 1
        offsets[p + 1] = at
