"""Where a short sequence lies in a longer one, at the fewest edits.

Source: Myers 1999, a column of the table in one machine word.
"""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit_entry
from bellapy.records.bases import UNKNOWN

MOST_PATTERN = 64  # bases: bits of a word
U = np.uint64


@njit_entry
def find_infix(pattern, text, equal):
    """Edits of the best place of a pattern in a text, and the base of the text after it; the first of equals.

    pattern : (m,) uint8 codes, 1 to MOST_PATTERN.  text : (n,) uint8 codes.  An unknown base equals nothing.
    equal : (UNKNOWN + 1,) uint64, overwritten: where each base stands in the pattern.
    """
    m = len(pattern)
    equal[:] = U(0)
    for i in range(m):
        if pattern[i] != UNKNOWN:
            equal[pattern[i]] |= U(1) << U(i)
    last = U(1) << U(m - 1)
    up, down = ~U(0), U(0)  # where the column rises and falls by one
    edits, best, end = m, m, 0
    for j in range(len(text)):
        same = equal[text[j]]
        carried = (((same & up) + up) ^ up) | same
        right_up, right_down = down | ~(carried | up), up & carried
        if right_up & last:
            edits += 1
        elif right_down & last:
            edits -= 1
        if edits < best:
            best, end = edits, j + 1
        right_up, right_down = right_up << U(1), right_down << U(1)
        up, down = right_down | ~(same | down | right_up), right_up & (same | down)
    return best, end
