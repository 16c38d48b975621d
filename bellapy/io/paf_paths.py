"""Overlaps with base-level paths from PAF, as this program, minimap2 and others write them: twelve columns and `cg:Z`."""

from __future__ import annotations

from dataclasses import fields
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_entry
from bellapy.errors import InputError
from bellapy.io.compressed import open_stream
from bellapy.records import Overlaps, ReadSet

TAG = b"cg:Z:"
MOST = 63  # columns of a short run
BAD_LETTER, BAD_NUMBER = -1, -2
HEAD = "a line of PAF has 12 columns or more"


class PathOverlaps(NamedTuple):
    """overlaps : in the order of the file.  The path of overlap i is runs[offsets[i] : offsets[i + 1]].

    runs : uint8, length << 2 | operation (0 a pair, 1 query alone, 2 target alone), in the order of the target.
    columns : (n,) int64, of each path.
    n_self, n_twice : lines left out: a read with itself; an overlap that is there already, in either direction.
    """

    overlaps: Overlaps
    runs: np.ndarray
    offsets: np.ndarray
    columns: np.ndarray
    n_self: int
    n_twice: int


@njit_entry
def _parse(text, out, totals):
    """Write the short runs of a CIGAR; returns their number, or what is wrong.  totals : (3,) bases of pairs, I and D."""
    n, size, digits = 0, 0, 0
    totals[:] = 0
    for letter in text:
        if 48 <= letter <= 57:
            size, digits = size * 10 + letter - 48, digits + 1
            if digits > 9:
                return BAD_NUMBER
            continue
        if letter == 77 or letter == 61 or letter == 88:  # M = X
            operation = 0
        elif letter == 73:
            operation = 1
        elif letter == 68:
            operation = 2
        else:
            return BAD_LETTER
        if digits == 0:
            return BAD_NUMBER
        totals[operation] += size
        if n + size // MOST + 1 > len(out):  # more than two reads can have
            return BAD_NUMBER
        while size > 0:
            out[n] = min(size, MOST) << 2 | operation
            size, n = size - MOST, n + 1
        size, digits = 0, 0
    return n if digits == 0 else BAD_NUMBER


def read_path_overlaps(path: str, reads: ReadSet) -> PathOverlaps:
    """Read the overlaps of these reads.

    Parameters
    ----------
    path : PAF, plain or gzip; "-" is standard input.

    Raises
    ------
    InputError : a line that is no PAF, has no path, or names a read or a place that is not there.
    """
    ids = {name.encode("utf-8", "surrogateescape"): i for i, name in enumerate(reads.names)}
    lengths = reads.lengths.tolist()
    room = np.empty(2 * int(reads.lengths.max(initial=0)) + 2, np.uint8)
    rows: list[tuple] = []
    paths: list[tuple[np.ndarray, int]] = []
    seen: set[tuple] = set()
    n_self = n_twice = 0
    with open_stream(path) as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            row, text = _split(path, number, line, ids, lengths)
            checked = _check_path(path, number, text, row, room)
            if row[0] == row[1]:
                n_self += 1
                continue
            if (key := _key(row)) in seen:
                n_twice += 1
                continue
            seen.add(key)
            paths.append(checked)
            rows.append(row)
    return _collect(rows, paths, n_self, n_twice)


def _key(row: tuple) -> tuple:
    """What the lines of an overlap in both directions share."""
    query, target, strand, *places = row[:7]
    return (query, target, strand, *places) if query < target else (target, query, strand, *places[2:], *places[:2])


def _split(path: str, number: int, line: bytes, ids: dict[bytes, int], lengths: list[int]) -> tuple[tuple, bytes]:
    """Query, target, strand, query start and end, target start and end, matches; the CIGAR."""
    columns = line.rstrip(b"\r\n").split(b"\t")
    text = next((column[len(TAG) :] for column in columns[12:] if column.startswith(TAG)), None)
    if len(columns) < 12 or columns[4] not in (b"+", b"-"):
        raise InputError(path, f"{HEAD}, with + or - in the fifth", line=number)
    if text is None:
        raise InputError(path, "no path in cg:Z; write it with `bellapy overlap --cigar` or `minimap2 -c`", line=number)
    try:
        numbers = [int(columns[i]) for i in (1, 2, 3, 6, 7, 8, 9)]
    except ValueError:
        raise InputError(path, "a column that has to be a whole number is none", line=number) from None
    _check_read(path, number, columns[0], numbers[:3], ids, lengths)
    _check_read(path, number, columns[5], numbers[3:6], ids, lengths)
    strand = 1 if columns[4] == b"+" else -1
    return (ids[columns[0]], ids[columns[5]], strand, *numbers[1:3], *numbers[4:6], numbers[6]), text


def _check_read(
    path: str, number: int, name: bytes, numbers: list[int], ids: dict[bytes, int], lengths: list[int]
) -> None:  # fmt: skip
    """Raise InputError unless the read is there, has this length, and holds these places."""
    shown, (length, start, end) = name.decode(errors="backslashreplace"), numbers
    if name not in ids:
        raise InputError(path, f"the read {shown} is not among the reads; give the same reads", line=number)
    if length != lengths[ids[name]]:
        known = lengths[ids[name]]
        raise InputError(path, f"the read {shown} has {known} bases, not {length}; give the same reads", line=number)
    if not 0 <= start < end <= length:
        raise InputError(path, f"the places on {shown} are not in order, or outside the read", line=number)


def _check_path(path: str, number: int, text: bytes, row: tuple, room: np.ndarray) -> tuple[np.ndarray, int]:
    """Short runs and columns of a path that fits its line, and begins and ends with pairs."""
    n, columns = parse_path(path, number, text, (row[4] - row[3], row[6] - row[5]), room)
    if room[0] & 3 or room[n - 1] & 3:
        raise InputError(path, "the path begins or ends with a gap; cut it there", line=number)
    return room[:n].copy(), columns


def parse_path(path: str, number: int, text: bytes, spans: tuple[int, int], room: np.ndarray) -> tuple[int, int]:
    """Write the short runs of a CIGAR to room, uint8; returns their number, and that of columns.

    spans : bases of the query and of the target that it has to fit.  number : of the line.
    """
    totals = np.zeros(3, np.int64)
    n = _parse(np.frombuffer(text, np.uint8), room, totals)
    if n == BAD_LETTER:
        raise InputError(path, "cg:Z has operations other than M, =, X, I and D", line=number)
    pairs, inserted, deleted = totals.tolist()
    if n < 0 or (pairs + inserted, pairs + deleted) != spans:
        problem = "cg:Z does not fit the places on the reads; is the file whole, and made from these reads?"
        raise InputError(path, problem, line=number)
    return n, pairs + inserted + deleted


def _collect(rows: list[tuple], paths: list[tuple[np.ndarray, int]], n_self: int, n_twice: int) -> PathOverlaps:
    n = len(rows)
    table = np.array(rows, np.int64).reshape(n, 8).T
    columns = np.array([size for _, size in paths], np.int64)
    names = ("query_id", "target_id", "strand", "query_start", "query_end", "target_start", "target_end", "score")
    given = dict(zip(names, table, strict=True)) | {"n_matches": table[7], "n_columns": columns}
    kinds = {f.name: np.int8 if f.name == "strand" else np.int32 for f in fields(Overlaps)}
    overlaps = Overlaps(**{name: given.get(name, np.zeros(n)).astype(kind) for name, kind in kinds.items()})
    runs = np.concatenate([np.empty(0, np.uint8), *(path for path, _ in paths)])
    offsets = np.concatenate(([0], np.cumsum([len(path) for path, _ in paths], dtype=np.int64))).astype(np.int64)
    return PathOverlaps(overlaps, runs, offsets, columns, n_self, n_twice)
