"""Paths as text: CIGAR, MD and cs, one entry for every alignment, end to end."""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit, njit_inner
from bellapy.engines.affine.rule import PAIR, QUERY_ALONE
from bellapy.io.table_text import write_digits
from bellapy.records.bases import UNKNOWN

OPERATIONS = np.frombuffer(b"MID", np.uint8)
EQUAL, DIFFERENT = (np.uint8(ord(letter)) for letter in "=X")
UPPER, LOWER = np.frombuffer(b"ACGTN", np.uint8), np.frombuffer(b"acgtn", np.uint8)
COLON, STAR, PLUS, MINUS, CARET = (np.uint8(ord(letter)) for letter in ":*+-^")
MAX_DIGITS = 11
COMPLEMENT = bytes.maketrans(b"ACGTUMRWSYKVHDBNacgtumrwsykvhdbn", b"TGCAAKYWSRMBDHVNtgcaakywsrmbdhvn")
"""Of every letter that SAM knows."""


@njit_inner
def _is_match(a, b):
    return a == b and a < UNKNOWN


@njit_inner
def _letter(code, letters):
    return letters[min(code, UNKNOWN)]


@njit_inner
def _run(out, at, size, letter):
    at = write_digits(out, at, size, 1)
    out[at] = letter
    return at + 1


@njit
def write_cigars(paths, query, target, rows, eqx):
    """CIGARs of some alignments; with `eqx`, = and X instead of M.

    Returns the text, uint8, and offsets (len(rows) + 1,) int64.
    """
    room = 0
    for row in rows:
        room += paths.count[row] + (2 * (paths.n_mismatches[row] + 1) if eqx else 0)
    out, offsets, at = np.empty(room * MAX_DIGITS + 1, np.uint8), np.zeros(len(rows) + 1, np.int64), np.int64(0)
    for x in range(len(rows)):
        q, t, first = paths.q_start[rows[x]], paths.t_start[rows[x]], paths.first[rows[x]]
        for y in range(first, first + paths.count[rows[x]]):
            operation, size = paths.runs[y] & np.uint32(15), np.int64(paths.runs[y] >> np.uint32(4))
            if eqx and operation == PAIR:
                begin = 0
                for b in range(1, size + 1):
                    equal = _is_match(query[q + begin], target[t + begin])
                    if b == size or _is_match(query[q + b], target[t + b]) != equal:
                        at = _run(out, at, b - begin, EQUAL if equal else DIFFERENT)
                        begin = b
            else:
                at = _run(out, at, size, OPERATIONS[operation])
            q += size if operation <= QUERY_ALONE else 0
            t += size if operation != QUERY_ALONE else 0
        offsets[x + 1] = at
    return out[:at], offsets


@njit
def write_mismatches(paths, query, target, rows):
    """MD strings, as SAM defines them."""
    room = 0
    for row in rows:
        room += (paths.n_mismatches[row] + paths.n_gaps[row] + 1) * (MAX_DIGITS + 2) + paths.n_gap_bases[row]
    out, offsets, at = np.empty(room + 1, np.uint8), np.zeros(len(rows) + 1, np.int64), np.int64(0)
    for x in range(len(rows)):
        q, t, first, same = paths.q_start[rows[x]], paths.t_start[rows[x]], paths.first[rows[x]], np.int64(0)
        for y in range(first, first + paths.count[rows[x]]):
            operation, size = paths.runs[y] & np.uint32(15), np.int64(paths.runs[y] >> np.uint32(4))
            if operation == PAIR:
                for b in range(size):
                    if _is_match(query[q + b], target[t + b]):
                        same += 1
                    else:
                        at = _run(out, at, same, _letter(target[t + b], UPPER))
                        same = np.int64(0)
                q, t = q + size, t + size
            elif operation == QUERY_ALONE:
                q += size
            else:
                at = _run(out, at, same, CARET)
                same = np.int64(0)
                for b in range(size):
                    out[at + b] = _letter(target[t + b], UPPER)
                at, t = at + size, t + size
        at = write_digits(out, at, same, 1)
        offsets[x + 1] = at
    return out[:at], offsets


@njit
def write_differences(paths, query, target, rows):
    """cs strings in their short form."""
    room = 0
    for row in rows:
        room += (paths.n_mismatches[row] + paths.n_gaps[row] + 1) * (MAX_DIGITS + 4) + paths.n_gap_bases[row]
    out, offsets, at = np.empty(room + 1, np.uint8), np.zeros(len(rows) + 1, np.int64), np.int64(0)
    for x in range(len(rows)):
        q, t, first = paths.q_start[rows[x]], paths.t_start[rows[x]], paths.first[rows[x]]
        for y in range(first, first + paths.count[rows[x]]):
            operation, size = paths.runs[y] & np.uint32(15), np.int64(paths.runs[y] >> np.uint32(4))
            if operation == PAIR:
                same = np.int64(0)
                for b in range(size + 1):
                    if b < size and _is_match(query[q + b], target[t + b]):
                        same += 1
                        continue
                    if same > 0:
                        out[at] = COLON
                        at = write_digits(out, at + 1, same, 1)
                        same = np.int64(0)
                    if b < size:
                        out[at], out[at + 1] = STAR, _letter(target[t + b], LOWER)
                        out[at + 2] = _letter(query[q + b], LOWER)
                        at += 3
                q, t = q + size, t + size
            else:
                out[at] = PLUS if operation == QUERY_ALONE else MINUS
                for b in range(size):
                    out[at + 1 + b] = _letter(query[q + b] if operation == QUERY_ALONE else target[t + b], LOWER)
                at += 1 + size
                q += size if operation == QUERY_ALONE else 0
                t += size if operation != QUERY_ALONE else 0
        offsets[x + 1] = at
    return out[:at], offsets


def pieces_of(text: np.ndarray, offsets: np.ndarray) -> list[bytes]:
    """The entries of such a text."""
    whole, ends = text.tobytes(), offsets.tolist()
    return [whole[a:b] for a, b in zip(ends[:-1], ends[1:], strict=True)]


def pack_both_ways(sequences: list[bytes], encode: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes of all sequences, each followed by its reverse complement; where each begins; their lengths, (n,) int64.

    encode : sequence.ENCODE.
    """
    lengths = np.array([len(sequence) for sequence in sequences], np.int64)
    ends = np.cumsum(2 * lengths)
    codes = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    _fill(np.frombuffer(b"".join(sequences), np.uint8), lengths, encode, codes)
    return codes, ends - 2 * lengths, lengths


@njit
def _fill(letters, lengths, encode, codes):
    at = source = 0
    for length in lengths:
        for b in range(length):
            code = encode[letters[source + b]]
            codes[at + b] = code
            codes[at + 2 * length - 1 - b] = code ^ 3 if code < UNKNOWN else code
        at, source = at + 2 * length, source + length
