"""Paths as text: CIGAR, cs, ds, MD, and the aligned bases of queries; one entry for every path, end to end.

All run along the target's forward strand.  cs is minimap2's short form (`:6-ata:10+gtc*at`, target before query in `*`),
or the long one (`=ACGTAC-ata=`); MD is SAM's.  Unknown bases match nothing and are written as N.  ds is cs in which brackets
tell how far a gap could be moved: `-[at]ac[g]` by two bases to the right or one to the left; all bases are in brackets where
it could be moved by its length or more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_entry, njit_inner
from bellapy.compute.runs import PAIR, QUERY_ALONE, TARGET_ALONE, length_of, operation_of
from bellapy.engines.join import places
from bellapy.io import codes
from bellapy.io.table_text import NameTable, write_digits
from bellapy.records import Overlaps, Paths, ReadSet
from bellapy.records.bases import UNKNOWN

MAX_DIGITS = 11
OPERATIONS, UPPER, LOWER = (np.frombuffer(text.encode(), np.uint8) for text in (codes.OPERATIONS, "ACGTN", "acgtn"))
EQUAL, DIFFERENT, COLON, STAR, PLUS, MINUS, CARET, HARD_CLIP = (np.uint8(ord(letter)) for letter in "=X:*+-^H")
OPEN, CLOSE = (np.uint8(ord(letter)) for letter in "[]")
BRACKETS = 4  # of a gap in ds
NOWHERE = (1 << 62, 0), (1 << 62, 0)  # spans that no gap could be moved within


class Drawn(NamedTuple):
    """Paths and the bases they run over.

    query, target : (any,) uint8, base codes of all queries and of all targets.
    where : (n, 3) int64, where each path begins in both, and 3 where the query's codes are to be complemented, else 0.
    runs : uint32, length << 4 | operation; path i has runs[begins[i] : ends[i]], (n,) int64 both.
    n_errors, n_gap_bases : mismatches and gaps, and bases in gaps, of all paths together.
    """

    query: np.ndarray
    target: np.ndarray
    where: np.ndarray
    runs: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    n_errors: int
    n_gap_bases: int

    @property
    def n_runs(self) -> int:
        return int((self.ends - self.begins).sum())

    @property
    def n_run_bases(self) -> int:
        """Columns of all paths together, or more."""
        return int((self.runs >> np.uint32(4)).sum(dtype=np.int64))


def cigars(paths: Paths, clips: np.ndarray | None = None) -> NameTable:
    """CIGAR strings.

    clips : (n, 2) int64, bases clipped off before and after each path, written as H where there are any.
    """
    clips = np.zeros((len(paths), 2), np.int64) if clips is None else clips
    room = (len(paths.runs) + 2 * len(paths)) * (MAX_DIGITS + 1)
    return _fill(room, len(paths), _write_cigars, paths.runs, paths.offsets[:-1], paths.offsets[1:], clips)


def cigars_of(drawn: Drawn) -> NameTable:
    """CIGAR strings without clips."""
    n = len(drawn.where)
    room, clips = drawn.n_runs * (MAX_DIGITS + 1), np.zeros((n, 2), np.int64)
    return _fill(room, n, _write_cigars, drawn.runs, drawn.begins, drawn.ends, clips)


def compared_cigars(drawn: Drawn) -> NameTable:
    """CIGAR strings with = and X in the place of M."""
    n = len(drawn.where)
    return _fill((drawn.n_runs + 2 * (drawn.n_errors + n)) * (MAX_DIGITS + 1), n, _write_compared, drawn)


def differences(drawn: Drawn, long: bool = False, movable: bool = False) -> NameTable:
    """cs strings; long : with equal bases spelled.  movable : ds strings, with brackets where gaps could be moved."""
    more = (drawn.n_run_bases if long else 0) + (BRACKETS * drawn.n_errors if movable else 0)
    return _compare(drawn, more, _write_differences, long, movable)


def mismatches(drawn: Drawn) -> NameTable:
    """MD strings."""
    return _compare(drawn, 0, _write_mismatches)


def draw(reads: ReadSet, overlaps: Overlaps, paths: Paths) -> Drawn:
    """The paths of overlaps, with the bases of their reads."""
    codes, errors = reads.both_ways, paths.n_mismatches.sum(dtype=np.int64) + paths.n_gaps.sum(dtype=np.int64)
    return Drawn(
        codes, codes, places(reads, overlaps), paths.runs, paths.offsets[:-1], paths.offsets[1:], int(errors),
        int(paths.n_gap_bases.sum(dtype=np.int64)),
    )  # fmt: skip


def aligned_bases(reads: ReadSet, overlaps: Overlaps) -> NameTable:
    """The query's bases of every overlap as the target's forward strand has them."""
    offsets = np.zeros(len(overlaps) + 1, np.int64)
    np.cumsum(overlaps.query_end - overlaps.query_start, out=offsets[1:])
    text = np.empty(offsets[-1], np.uint8)
    _write_bases(reads.both_ways, places(reads, overlaps), text, offsets)
    return NameTable(text[: offsets[-1]], offsets)


def _compare(drawn: Drawn, more: int, write: Callable[..., None], *how: object) -> NameTable:
    """What a kernel writes of all differences; more : bytes that it needs beside these.  how : its other arguments."""
    n = len(drawn.where)
    return _fill((drawn.n_errors + n) * (MAX_DIGITS + 4) + drawn.n_gap_bases + more, n, write, drawn, *how)


def _fill(room: int, n: int, write: Callable[..., None], *arguments: object) -> NameTable:
    """What a kernel writes of n paths, with `room` bytes for it."""
    text, offsets = np.empty(room, np.uint8), np.zeros(n + 1, np.int64)
    write(*arguments, text, offsets)
    return NameTable(text[: offsets[-1]], offsets)


@njit_inner
def _write_run(out, at, size, letter):
    """Write a number, size, and a letter (uint8) to out, uint8, from `at` on; return where they end."""
    at = write_digits(out, at, size, 1)
    out[at] = letter
    return at + 1


@njit_entry
def _write_cigars(runs, begins, ends, clips, out, offsets):
    """Write a CIGAR for each path; runs, begins, ends : as in Drawn.  clips : as in `cigars`.

    out : uint8, the text.  offsets : (n + 1,) int64, filled: where each entry begins in it, and the last one ends.
    """
    at = np.int64(0)
    for i in range(len(clips)):
        if clips[i, 0] > 0:
            at = _write_run(out, at, clips[i, 0], HARD_CLIP)
        for j in range(begins[i], ends[i]):
            at = _write_run(out, at, length_of(runs[j]), OPERATIONS[operation_of(runs[j])])
        if clips[i, 1] > 0:
            at = _write_run(out, at, clips[i, 1], HARD_CLIP)
        offsets[i + 1] = at


@njit_inner
def _letter(code, flip, letters):
    """The letter of a base code (uint8), complemented where flip is 3; letters : UPPER or LOWER."""
    return letters[UNKNOWN if code >= UNKNOWN else code ^ flip]


@njit_inner
def _is_match(drawn, query, target, flip):
    """Whether the bases at query and target, int64, are equal.  drawn : Drawn.  flip : 3 or 0, as in Drawn.where."""
    return (drawn.query[query] ^ flip) == drawn.target[target] and drawn.target[target] < UNKNOWN


@njit_entry
def _write_bases(codes, where, out, offsets):
    """Write bases; codes : uint8.  where : as in Drawn.  out : uint8, the text.  offsets : (n + 1,) int64, its entries."""
    for i in range(len(where)):
        query, flip = where[i, 0], where[i, 2]
        for j in range(offsets[i + 1] - offsets[i]):
            out[offsets[i] + j] = _letter(codes[query + j], flip, UPPER)


@njit_entry
def _write_compared(drawn, out, offsets):
    """Write a CIGAR with = and X for each path.  drawn : Drawn.  out, offsets : as in `_write_cigars`."""
    at = np.int64(0)
    for i in range(len(drawn.where)):
        query, target, flip = drawn.where[i]
        for j in range(drawn.begins[i], drawn.ends[i]):
            op, size = operation_of(drawn.runs[j]), length_of(drawn.runs[j])
            if op == PAIR:
                begin, equal = 0, _is_match(drawn, query, target, flip)
                for b in range(1, size + 1):
                    if b == size or _is_match(drawn, query + b, target + b, flip) != equal:
                        at = _write_run(out, at, b - begin, EQUAL if equal else DIFFERENT)
                        begin, equal = b, not equal
            else:
                at = _write_run(out, at, size, OPERATIONS[op])
            query += size if op != TARGET_ALONE else 0
            target += size if op != QUERY_ALONE else 0
        offsets[i + 1] = at


@njit_entry
def _write_differences(drawn, spelled, movable, out, offsets):
    """Write a cs string for each path.  drawn : Drawn.  spelled : as in `_write_same`.

    movable : whether brackets tell how far gaps could be moved, as in ds.  out, offsets : as in `_write_cigars`.
    """
    at = np.int64(0)
    for i in range(len(drawn.where)):
        query, target, flip = drawn.where[i]
        on_query, on_target = _spans(drawn.runs, drawn.begins[i], drawn.ends[i], query, target) if movable else NOWHERE
        for j in range(drawn.begins[i], drawn.ends[i]):
            op, size = operation_of(drawn.runs[j]), length_of(drawn.runs[j])
            if op == PAIR:
                same = np.int64(0)
                for _ in range(size):
                    if _is_match(drawn, query, target, flip):
                        same += 1
                    else:
                        at = _write_same(out, at, drawn.target, target, same, spelled)
                        same = np.int64(0)
                        out[at], out[at + 1] = STAR, _letter(drawn.target[target], 0, LOWER)
                        out[at + 2] = _letter(drawn.query[query], flip, LOWER)
                        at += 3
                    query += 1
                    target += 1
                at = _write_same(out, at, drawn.target, target, same, spelled)
            elif op == QUERY_ALONE:
                at = _write_gap(out, at, PLUS, drawn.query, query, size, flip, on_query)
                query += size
            else:
                at = _write_gap(out, at, MINUS, drawn.target, target, size, 0, on_target)
                target += size
        offsets[i + 1] = at


@njit_inner
def _spans(runs, begin, end, query, target):
    """Where a path runs on both sequences, pairs of int64; runs[begin:end] are its own.  query, target : its beginning."""
    query_end, target_end = query, target
    for j in range(begin, end):
        op, size = operation_of(runs[j]), length_of(runs[j])
        query_end += size if op != TARGET_ALONE else 0
        target_end += size if op != QUERY_ALONE else 0
    return (query, query_end), (target, target_end)


@njit_inner
def _write_gap(out, at, mark, codes, begin, size, flip, span):
    """Write a gap to out, uint8, from `at` on, with brackets where it could be moved; return where it ends.

    mark, codes, begin, size, flip : as in `_write_marked`.  span : where the path runs on the codes, a pair of int64.
    """
    end, right, left = begin + size, 0, 0
    while right < size and end + right < span[1] and codes[begin + right] == codes[end + right]:
        right += 1
    while left < size and begin - left > span[0] and codes[begin - left - 1] == codes[end - left - 1]:
        left += 1
    if right + left >= size:
        right, left = size, 0
    out[at] = mark
    at = _write_bracketed(out, at + 1, codes, begin, right, flip)
    at = _write_letters(out, at, codes, begin + right, size - right - left, flip, LOWER)
    return _write_bracketed(out, at, codes, end - left, left, flip)


@njit_inner
def _write_bracketed(out, at, codes, begin, size, flip):
    """Write bases in brackets, or nothing for 0 of them; arguments and result as in `_write_letters`."""
    if size == 0:
        return at
    out[at] = OPEN
    at = _write_letters(out, at + 1, codes, begin, size, flip, LOWER)
    out[at] = CLOSE
    return at + 1


@njit_inner
def _write_same(out, at, codes, end, n, spelled):
    """Write that n bases are equal to out, uint8, from `at` on, or nothing for 0; return where it ends.

    codes : uint8, of which these are the last ones before `end`.  spelled : whether they are written, or their number.
    """
    if n > 0 and spelled:
        at = _write_marked(out, at, EQUAL, codes, end - n, n, 0, UPPER)
    elif n > 0:
        out[at] = COLON
        at = write_digits(out, at + 1, n, 1)
    return at


@njit_inner
def _write_marked(out, at, mark, codes, begin, size, flip, letters):
    """Write a mark, uint8, and bases to out, uint8, from `at` on; the others and the result as in `_write_letters`."""
    out[at] = mark
    return _write_letters(out, at + 1, codes, begin, size, flip, letters)


@njit_inner
def _write_letters(out, at, codes, begin, size, flip, letters):
    """Write bases to out, uint8, from `at` on; return where they end.

    codes : uint8; the bases are those from begin to begin + size.  flip, letters : as in `_letter`.
    """
    for i in range(size):
        out[at] = _letter(codes[begin + i], flip, letters)
        at += 1
    return at


@njit_entry
def _write_mismatches(drawn, out, offsets):
    """Write an MD string for each path.  drawn : Drawn.  out, offsets : as in `_write_cigars`."""
    at = np.int64(0)
    for i in range(len(drawn.where)):
        query, target, flip = drawn.where[i]
        same = np.int64(0)
        for j in range(drawn.begins[i], drawn.ends[i]):
            op, size = operation_of(drawn.runs[j]), length_of(drawn.runs[j])
            if op == PAIR:
                for _ in range(size):
                    if _is_match(drawn, query, target, flip):
                        same += 1
                    else:
                        at = _write_run(out, at, same, _letter(drawn.target[target], 0, UPPER))
                        same = np.int64(0)
                    query += 1
                    target += 1
            elif op == TARGET_ALONE:
                at = write_digits(out, at, same, 1)
                same = np.int64(0)
                at = _write_marked(out, at, CARET, drawn.target, target, size, 0, UPPER)
                target += size
            else:
                query += size
        at = write_digits(out, at, same, 1)
        offsets[i + 1] = at
