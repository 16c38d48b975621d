"""An alignment as PAF, SAM, text side by side, or one line with its score.

Paths run along the target's forward strand.  `M` is a pair of bases, equal or not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import numpy as np

from bellapy.compute.runs import PAIR, QUERY_ALONE, TARGET_ALONE
from bellapy.engines.exact.align import Alignment, Reached
from bellapy.engines.exact.path import unpacked
from bellapy.io.codes import OPERATIONS, REVERSE, SIGN, UNKNOWN_QUALITY, UNMAPPED
from bellapy.io.maf import n_matches
from bellapy.io.outputs import ending_of, open_output
from bellapy.params import ExactParams
from bellapy.records.bases import LETTERS, UNKNOWN, reversed_codes
from bellapy.report.run_report import RunReport

FORMATS = "paf", "sam", "txt"
COLUMNS = 60  # of a block of text


class Pair(NamedTuple):
    """The two records; codes as in records/bases.py."""

    query_name: str
    query: np.ndarray
    target_name: str
    target: np.ndarray

    def oriented(self, strand: int) -> np.ndarray:
        """The query's codes on a strand."""
        if strand > 0:
            return self.query
        return reversed_codes(self.query)


class Counts(NamedTuple):
    """What a path holds."""

    matches: int
    mismatches: int
    gap_bases: int
    gaps: int

    @property
    def columns(self) -> int:
        return self.matches + self.mismatches + self.gap_bases

    @property
    def divergence(self) -> float:
        """Mismatches and gaps in all columns, a gap of any length counted once."""
        events = self.mismatches + self.gaps
        return events / max(1, self.matches + events)


def steps(alignment: Alignment) -> Iterator[tuple[int, int, int, int]]:
    """(operation, bases, query position, target position) of every run; positions on the strand that was aligned."""
    i, j = alignment.query_start, alignment.target_start
    for operation, size in unpacked(alignment.runs).tolist():
        yield operation, size, i, j
        i += size if operation != TARGET_ALONE else 0
        j += size if operation != QUERY_ALONE else 0


def is_match(query: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Which pairs of bases match."""
    return (query == target) & (query < UNKNOWN)


def count_path(query: np.ndarray, target: np.ndarray, alignment: Alignment) -> Counts:
    """Matches, mismatches and gaps of a path."""
    runs = unpacked(alignment.runs)
    matches = n_matches(target, query, alignment.target_start, alignment.query_start, runs)
    is_pair, sizes = runs[:, 0] == PAIR, runs[:, 1]
    gap_bases = int(sizes[~is_pair].sum())
    return Counts(matches, int(sizes.sum()) - gap_bases - matches, gap_bases, int((~is_pair).sum()))


def cigar(alignment: Alignment) -> str:
    """The path as CIGAR."""
    return "".join(f"{size}{OPERATIONS[operation]}" for operation, size in unpacked(alignment.runs).tolist())


def letters(codes: np.ndarray) -> str:
    """Codes as text."""
    return LETTERS[np.minimum(codes, UNKNOWN)].tobytes().decode()


def write_alignment(
    path: str, pair: Pair, found: Alignment | Reached | None, strand: int, params: ExactParams, report: RunReport,
    score_only: bool,
) -> None:  # fmt: skip
    """Write the alignment, or what stands for none, in the format that the file's name asks for."""
    kind = "paf" if path == "-" else ending_of(path)
    with open_output(path) as stream:
        if isinstance(found, Reached):
            stream.write(score_line(pair, found, strand).encode())
        elif score_only or kind == "paf":
            if found:
                stream.write(paf_line(pair, found, strand).encode())
        elif kind == "sam":
            stream.write(sam_text(pair, found, strand, report.command, report.version).encode())
        else:
            write_text(stream, pair, found, strand, params)


def score_line(pair: Pair, found: Reached, strand: int) -> str:
    """Query, its length, the end on its aligned strand, strand, target, length and end likewise, score."""
    fields = (
        pair.query_name, len(pair.query), found.query_end, SIGN[strand], pair.target_name, len(pair.target),
        found.target_end, f"AS:i:{found.score}",
    )  # fmt: skip
    return "\t".join(map(str, fields)) + "\n"


def query_interval(pair: Pair, alignment: Alignment, strand: int) -> tuple[int, int]:
    """Start and end on the query's forward strand."""
    start, end = alignment.query_start, alignment.query_end
    return (start, end) if strand > 0 else (len(pair.query) - end, len(pair.query) - start)


def paf_line(pair: Pair, alignment: Alignment, strand: int) -> str:
    counts = count_path(pair.oriented(strand), pair.target, alignment)
    fields = (
        pair.query_name, len(pair.query), *query_interval(pair, alignment, strand), SIGN[strand],
        pair.target_name, len(pair.target), alignment.target_start, alignment.target_end,
        counts.matches, counts.columns, UNKNOWN_QUALITY, f"NM:i:{counts.mismatches + counts.gap_bases}",
        f"AS:i:{alignment.score}", f"de:f:{counts.divergence:.6f}", f"cg:Z:{cigar(alignment)}",
    )  # fmt: skip
    return "\t".join(map(str, fields)) + "\n"


def sam_text(pair: Pair, alignment: Alignment | None, strand: int, command: str, version: str) -> str:
    """A header with the target as reference, and the query's record, which is unmapped if there is no alignment."""
    header = (
        f"@HD\tVN:1.6\tSO:unsorted\n@SQ\tSN:{pair.target_name}\tLN:{len(pair.target)}\n"
        f"@PG\tID:bellapy\tPN:bellapy\tVN:{version}\tCL:{' '.join(command.split())}\n"
    )
    query = pair.oriented(strand)
    fields: tuple[str | int, ...]
    if not alignment:
        fields = (pair.query_name, UNMAPPED, "*", 0, 0, "*", "*", 0, 0, letters(pair.query), "*")
    else:
        counts = count_path(query, pair.target, alignment)
        clips = alignment.query_start, len(query) - alignment.query_end
        before, after = (f"{size}S" if size else "" for size in clips)
        fields = (
            pair.query_name, REVERSE if strand < 0 else 0, pair.target_name, alignment.target_start + 1, UNKNOWN_QUALITY,
            before + cigar(alignment) + after, "*", 0, 0, letters(query), "*",
            f"NM:i:{counts.mismatches + counts.gap_bases}", f"AS:i:{alignment.score}", f"de:f:{counts.divergence:.6f}",
            f"MD:Z:{md_text(query, pair.target, alignment)}",
        )  # fmt: skip
    return header + "\t".join(map(str, fields)) + "\n"


def md_text(query: np.ndarray, target: np.ndarray, alignment: Alignment) -> str:
    """SAM's MD: runs of matches, mismatched and deleted target bases."""
    parts, same = [], 0
    for operation, size, i, j in steps(alignment):
        if operation == TARGET_ALONE:
            parts.append(f"{same}^{letters(target[j : j + size])}")
            same = 0
        elif operation == PAIR:
            at = 0
            for wrong in np.flatnonzero(~is_match(query[i : i + size], target[j : j + size])).tolist():
                parts.append(f"{same + wrong - at}{letters(target[j + wrong : j + wrong + 1])}")
                same, at = 0, wrong + 1
            same += size - at
    return "".join(parts) + str(same)


def write_text(stream: BinaryIO, pair: Pair, alignment: Alignment | None, strand: int, params: ExactParams) -> None:
    """The alignment side by side: a head, then blocks of query, marks (| for a match) and target, with positions from 1.

    On the reverse strand the query's positions count down.
    """
    query = pair.oriented(strand)
    head = [
        f"# query   {pair.query_name}, {len(query)} bases, strand {SIGN[strand]}",
        f"# target  {pair.target_name}, {len(pair.target)} bases",
        f"# mode    {params.mode}; match {params.match}, mismatch {params.mismatch}, a gap of g bases "
        f"-({params.gap_open} + {params.gap_extend} g)",
    ]
    if not alignment:
        stream.write("\n".join([*head, "# no alignment scores above 0", ""]).encode())
        return
    counts = count_path(query, pair.target, alignment)
    start, end = query_interval(pair, alignment, strand)
    head += [
        f"# score   {alignment.score}",
        f"# query   {start + 1} to {end}, target {alignment.target_start + 1} to {alignment.target_end}",
        f"# {counts.matches} matches, {counts.mismatches} mismatches, {counts.gaps} gaps of {counts.gap_bases} bases",
    ]
    stream.write(("\n".join(head) + "\n").encode())
    for line in _blocks(pair, query, alignment, strand):
        stream.write(line)


def _blocks(pair: Pair, query: np.ndarray, alignment: Alignment, strand: int) -> Iterator[bytes]:
    top, bottom = _aligned_rows(query, pair.target, alignment)
    known = (top != ord("-")) & (top != ord("N"))
    marks = np.where((top == bottom) & known, ord("|"), ord(" ")).astype(np.uint8)
    i, j, wide = alignment.query_start, alignment.target_start, len(str(max(len(query), len(pair.target))))
    for at in range(0, len(top), COLUMNS):
        rows = [row[at : at + COLUMNS] for row in (top, marks, bottom)]
        i_end, j_end = i + int((rows[0] != ord("-")).sum()), j + int((rows[2] != ord("-")).sum())
        shown = (i + 1, i_end) if strand > 0 else (len(query) - i, len(query) - i_end + 1)
        yield (
            f"\n{shown[0]:>{wide}} {rows[0].tobytes().decode()} {shown[1]}\n"
            f"{'':>{wide}} {rows[1].tobytes().decode().rstrip()}\n"
            f"{j + 1:>{wide}} {rows[2].tobytes().decode()} {j_end}\n"
        ).encode()
        i, j = i_end, j_end


def _aligned_rows(query: np.ndarray, target: np.ndarray, alignment: Alignment) -> tuple[np.ndarray, np.ndarray]:
    """Letters of both sequences along the path, - in gaps."""
    operations, sizes = unpacked(alignment.runs).T
    column_operation = np.repeat(operations, sizes)
    rows = []
    for codes, start, end, alone in (
        (query, alignment.query_start, alignment.query_end, TARGET_ALONE),
        (target, alignment.target_start, alignment.target_end, QUERY_ALONE),
    ):
        row = np.full(len(column_operation), ord("-"), np.uint8)
        row[column_operation != alone] = LETTERS[np.minimum(codes[start:end], UNKNOWN)]
        rows.append(row)
    return rows[0], rows[1]
