"""Where lines of FASTA and FASTQ end, by compiled code, without Python's lock.

Lines are long.  So text is first looked at a STRIDE at a time, which vector units do, for whether any line ends there.
"""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit_entry, njit_inner, njit_vector
from bellapy.io.fastx_form import LINES, UPPER

LF, LESS = ord("\n"), ord(">")
NOWHERE = -1
STRIDE = 64  # bytes
FIRST_CUT = 2
LEFT, BEGINS, ENDS, N_SEEN = FIRST_CUT + LINES, FIRST_CUT + LINES + 1, FIRST_CUT + LINES + 2, FIRST_CUT + LINES + 3
"""Columns of what `look_at` tells, after the bytes and the lines: cuts, and the rest of `_Seen` of fastx_blocks.py."""

U = np.uint64
CAPITAL, FIRST, LETTERS = np.uint8(UPPER), np.uint8(ord("A")), np.uint8(25)
"""A letter's bits but for its case, the first letter, and those after it."""


@njit_vector
def _count(text, begin, end):
    """How many bytes of text[begin:end], uint8, are line ends."""
    n = U(0)
    for x in range(U(begin), U(end)):
        n += U(text[x] == LF)
    return np.int64(n)


@njit_entry
def count_lines(text):
    """How many lines end in text, (any,) uint8."""
    return _count(text, np.int64(0), len(text))


@njit_vector
def _count_others(text, begin, end):
    """How many bytes of text[begin:end], uint8, are neither letters nor line ends."""
    n = U(0)
    for x in range(U(begin), U(end)):
        n += U((np.uint8((text[x] & CAPITAL) - FIRST) > LETTERS) & (text[x] != LF))
    return np.int64(n)


@njit_entry
def are_letters(text, begins, ends):
    """Whether text[begins[i] : ends[i]], of (any,) uint8, holds nothing but letters and line ends; (n,) int64 both."""
    for i in range(len(begins)):
        if _count_others(text, begins[i], ends[i]):
            return False
    return True


@njit_entry
def list_lines(text, ends):
    """Write where lines of text, (any,) uint8, end to ends, (n,) int64, of as many as there are."""
    n = 0
    for at in range(0, len(text), STRIDE):
        end = min(at + STRIDE, len(text))
        if _count(text, at, end):
            for x in range(at, end):
                if text[x] == LF:
                    ends[n] = x
                    n += 1


@njit_inner
def _last_end(text, begin, end):
    """The last line end in text[begin:end], uint8, or NOWHERE."""
    for x in range(end - 1, begin - 1, -1):
        if text[x] == LF:
            return x
    return NOWHERE


@njit_inner
def _last_header(text, begin, end):
    """The last line end in text[begin:end], uint8, before a header of FASTA that begins there, or NOWHERE."""
    for x in range(end - 2, begin - 1, -1):
        if text[x] == LF and text[x + 1] == LESS:
            return x
    return NOWHERE


@njit_entry
def look_at(text, size, fastq, seen):
    """What the blocks of a text show of their lines: `_Seen` of fastx_blocks.py.

    text : (any,) uint8.  size : of a block, bytes.  fastq : bool.
    seen : (n_blocks, N_SEEN) int64, written; places count from the block's begin, and cuts that are not there are NOWHERE.
    """
    for b in range(len(seen)):
        begin = b * size
        end = min(begin + size, len(text))
        seen[b, 0], seen[b, 1] = end - begin, _count(text, begin, end)
        for i in range(FIRST_CUT, N_SEEN):
            seen[b, i] = NOWHERE
        if fastq:
            place = end
            for i in range(LINES):
                place = _last_end(text, begin, place)
                if place == NOWHERE:
                    break
                seen[b, FIRST_CUT + i] = place + 1 - begin
        else:
            cut = _last_header(text, begin, end) + 1
            if cut != NOWHERE + 1:
                seen[b, FIRST_CUT] = cut - begin
            seen[b, LEFT] = _count(text, max(cut, begin), end)
            seen[b, BEGINS], seen[b, ENDS] = text[begin] == LESS, text[end - 1] == LF
