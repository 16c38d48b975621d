"""Paths as text: CIGAR, cs, MD, and the aligned bases of queries; one entry for every path, end to end.

All run along the target's forward strand.  cs is minimap2's short form (`:6-ata:10+gtc*at`, target before query in `*`); MD
is SAM's.  Unknown bases match nothing and are written as N.
"""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit_entry, njit_inner
from bellapy.engines.flank_paths import PAIR, QUERY_ALONE, TARGET_ALONE
from bellapy.engines.join import is_match, places
from bellapy.io.table_text import NameTable, write_digits
from bellapy.records import Overlaps, Paths, ReadSet
from bellapy.records.bases import UNKNOWN

MAX_DIGITS = 10
OPERATIONS, UPPER, LOWER = (np.frombuffer(text, np.uint8) for text in (b"MID", b"ACGTN", b"acgtn"))
COLON, STAR, PLUS, MINUS, CARET, HARD_CLIP = (np.uint8(ord(letter)) for letter in ":*+-^H")


def cigars(paths: Paths, clips: np.ndarray | None = None) -> NameTable:
    """CIGAR strings.

    clips : (n, 2) int64, bases clipped off before and after each path, written as H where there are any.
    """
    clips = np.zeros((len(paths), 2), np.int64) if clips is None else clips
    text = np.empty((len(paths.runs) + 2 * len(paths)) * (MAX_DIGITS + 1), np.uint8)
    offsets = np.zeros(len(paths) + 1, np.int64)
    _write_cigars(paths.runs, paths.offsets, clips, text, offsets)
    return _table(text, offsets)


def differences(reads: ReadSet, overlaps: Overlaps, paths: Paths) -> NameTable:
    """cs strings."""
    return _compare(reads, overlaps, paths, _write_differences)


def mismatches(reads: ReadSet, overlaps: Overlaps, paths: Paths) -> NameTable:
    """MD strings."""
    return _compare(reads, overlaps, paths, _write_mismatches)


def aligned_bases(reads: ReadSet, overlaps: Overlaps) -> NameTable:
    """The query's bases of every overlap as the target's forward strand has them."""
    offsets = np.zeros(len(overlaps) + 1, np.int64)
    np.cumsum(overlaps.query_end - overlaps.query_start, out=offsets[1:])
    text = np.empty(offsets[-1], np.uint8)
    _write_bases(reads.both_ways, places(reads, overlaps), text, offsets)
    return _table(text, offsets)


def _compare(reads, overlaps, paths, write) -> NameTable:
    errors = paths.n_mismatches.sum(dtype=np.int64) + paths.n_gaps.sum(dtype=np.int64)
    room = (errors + len(paths)) * (MAX_DIGITS + 4) + paths.n_gap_bases.sum(dtype=np.int64)
    text, offsets = np.empty(room, np.uint8), np.zeros(len(paths) + 1, np.int64)
    write(reads.both_ways, places(reads, overlaps), paths.runs, paths.offsets, text, offsets)
    return _table(text, offsets)


def _table(text: np.ndarray, offsets: np.ndarray) -> NameTable:
    return NameTable(text[: offsets[-1]], offsets)


@njit_inner
def _write_clip(out, at, size):
    if size > 0:
        at = write_digits(out, at, size, 1)
        out[at] = HARD_CLIP
        at += 1
    return at


@njit_entry
def _write_cigars(runs, offsets, clips, out, out_offsets):
    at = np.int64(0)
    for i in range(len(clips)):
        at = _write_clip(out, at, clips[i, 0])
        for j in range(offsets[i], offsets[i + 1]):
            at = write_digits(out, at, np.int64(runs[j]) >> 4, 1)
            out[at] = OPERATIONS[runs[j] & 15]
            at += 1
        at = _write_clip(out, at, clips[i, 1])
        out_offsets[i + 1] = at


@njit_inner
def _letter(code, flip, letters):
    return letters[UNKNOWN if code >= UNKNOWN else code ^ flip]


@njit_entry
def _write_bases(codes, where, out, offsets):
    for i in range(len(where)):
        query, flip = where[i, 0], where[i, 2]
        for j in range(offsets[i + 1] - offsets[i]):
            out[offsets[i] + j] = _letter(codes[query + j], flip, UPPER)


@njit_entry
def _write_differences(codes, where, runs, offsets, out, out_offsets):
    at = np.int64(0)
    for i in range(len(where)):
        query, target, flip = where[i]
        for j in range(offsets[i], offsets[i + 1]):
            op, size = np.int64(runs[j]) & 15, np.int64(runs[j]) >> 4
            if op == PAIR:
                same = np.int64(0)
                for _ in range(size):
                    if is_match(codes, query, target, flip):
                        same += 1
                    else:
                        at = _write_same(out, at, same)
                        same = np.int64(0)
                        out[at], out[at + 1] = STAR, _letter(codes[target], 0, LOWER)
                        out[at + 2] = _letter(codes[query], flip, LOWER)
                        at += 3
                    query += 1
                    target += 1
                at = _write_same(out, at, same)
            elif op == QUERY_ALONE:
                at = _write_gap(out, at, PLUS, codes, query, size, flip, LOWER)
                query += size
            else:
                at = _write_gap(out, at, MINUS, codes, target, size, 0, LOWER)
                target += size
        out_offsets[i + 1] = at


@njit_inner
def _write_same(out, at, n):
    if n > 0:
        out[at] = COLON
        at = write_digits(out, at + 1, n, 1)
    return at


@njit_inner
def _write_gap(out, at, mark, codes, begin, size, flip, letters):
    out[at] = mark
    at += 1
    for i in range(size):
        out[at] = _letter(codes[begin + i], flip, letters)
        at += 1
    return at


@njit_entry
def _write_mismatches(codes, where, runs, offsets, out, out_offsets):
    at = np.int64(0)
    for i in range(len(where)):
        query, target, flip = where[i]
        same = np.int64(0)
        for j in range(offsets[i], offsets[i + 1]):
            op, size = np.int64(runs[j]) & 15, np.int64(runs[j]) >> 4
            if op == PAIR:
                for _ in range(size):
                    if is_match(codes, query, target, flip):
                        same += 1
                    else:
                        at = write_digits(out, at, same, 1)
                        same = np.int64(0)
                        out[at] = _letter(codes[target], 0, UPPER)
                        at += 1
                    query += 1
                    target += 1
            elif op == TARGET_ALONE:
                at = write_digits(out, at, same, 1)
                same = np.int64(0)
                at = _write_gap(out, at, CARET, codes, target, size, 0, UPPER)
                target += size
            else:
                query += size
        at = write_digits(out, at, same, 1)
        out_offsets[i + 1] = at
