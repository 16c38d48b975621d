"""Stage 10: overlaps -> text: PAF, or BELLA's own 12 columns.

PAF columns 10 and 11 (matching bases, alignment length) are estimates where no base-level path is made; `dv:f` is the error
share they imply.  With a path they are exact, `NM:i` counts mismatches and gap bases, `de:f` is the share of mismatches and
gaps, a gap of any length counted once, and `cg:Z` and `cs:Z` show the path.  Other tags: `tp:A:S` (as all-vs-all mappers
write), `cm:i` shared k-mers on the seed's diagonal, `AS:i` score.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bellapy.compute.threads import map_in_order
from bellapy.io.codes import UNKNOWN_QUALITY
from bellapy.io.path_text import cigars, differences, draw
from bellapy.io.table_text import LETTER, NAME, NUMBER, SHARE, TEXT, NameTable, format_rows
from bellapy.records import Overlaps, Paths, ReadSet, join_overlaps

CHUNK = 1 << 14  # lines
FORMATS = ("paf", "bella")
"""What `bellapy evaluate` reads and `format_overlaps` writes."""


def format_overlaps(
    reads: ReadSet, overlaps: Overlaps, overlap_format: str = "paf", threads: int = 1, both_directions: bool = False
) -> Iterator[bytes]:
    """Lines of the overlaps, in their order, many at a time; each of the threads makes some.

    both_directions : every overlap has two lines, of which the second one is seen from the target.
    """
    columns = {"paf": _paf_columns, "bella": _bella_columns}[overlap_format]
    names = NameTable.of(reads.names)

    def lines(at: int) -> bytes:
        some = overlaps.take(slice(at, at + CHUNK))
        return format_rows(columns(reads, _both(some) if both_directions else some, slice(None)), names)

    return map_in_order(lines, range(0, len(overlaps), CHUNK), threads)


def _both(overlaps: Overlaps) -> Overlaps:
    """Every overlap, and behind it the same with query and target in each other's place."""
    turned = replace(
        overlaps, query_id=overlaps.target_id, query_start=overlaps.target_start, query_end=overlaps.target_end,
        target_id=overlaps.query_id, target_start=overlaps.query_start, target_end=overlaps.query_end,
    )  # fmt: skip
    return join_overlaps([overlaps, turned]).take(np.arange(2 * len(overlaps)).reshape(2, -1).T.ravel())


def format_with_paths(
    reads: ReadSet, overlaps: Overlaps, paths: Paths, cigar: bool, cs: bool, names: NameTable
) -> bytes:  # fmt: skip
    """PAF lines of overlaps that have paths.

    cigar, cs : whether to show the paths in `cg:Z`, in `cs:Z`.
    names : of all reads.
    """
    known = _paf_columns(reads, overlaps, slice(None))[:-1]  # dv, an estimate, gives way to de
    return format_rows(known + path_columns(reads, overlaps, paths, cigar, cs), names)


def path_columns(reads: ReadSet, overlaps: Overlaps, paths: Paths, cigar: bool, cs: bool) -> list:
    """Columns for `format_rows` of the tags that tell of paths."""
    columns = [
        (NUMBER, "NM:i:", paths.n_mismatches + paths.n_gap_bases),
        (SHARE, "de:f:", gap_compressed_divergence(paths)),
    ]
    if cigar:
        columns.append((TEXT, "cg:Z:", cigars(paths)))
    if cs:
        columns.append((TEXT, "cs:Z:", differences(draw(reads, overlaps, paths))))
    return columns


def gap_compressed_divergence(paths: Paths) -> np.ndarray:
    """Ten thousandths of mismatches and gaps among these and matches, a gap of any length counted once (minimap2's `de`)."""
    events = paths.n_mismatches + paths.n_gaps
    return np.rint(10_000 * (events / np.maximum(paths.n_matches + events, 1)))


def _paf_columns(reads: ReadSet, overlaps: Overlaps, rows: slice) -> list:
    query, target = overlaps.query_id[rows], overlaps.target_id[rows]
    matches, length = overlaps.n_matches[rows], overlaps.n_columns[rows]
    divergence = np.rint(10_000 * (1 - matches / np.maximum(length, 1)))
    return [
        (NAME, "", query),
        (NUMBER, "", reads.lengths[query]),
        (NUMBER, "", overlaps.query_start[rows]),
        (NUMBER, "", overlaps.query_end[rows]),
        (LETTER, "", np.where(overlaps.strand[rows] > 0, ord("+"), ord("-"))),
        (NAME, "", target),
        (NUMBER, "", reads.lengths[target]),
        (NUMBER, "", overlaps.target_start[rows]),
        (NUMBER, "", overlaps.target_end[rows]),
        (NUMBER, "", matches),
        (NUMBER, "", length),
        (NUMBER, "", np.full(len(query), UNKNOWN_QUALITY)),
        (LETTER, "tp:A:", np.full(len(query), ord("S"))),
        (NUMBER, "cm:i:", overlaps.n_support[rows]),
        (NUMBER, "AS:i:", overlaps.score[rows]),
        (SHARE, "dv:f:", divergence),
    ]


def _bella_columns(reads: ReadSet, overlaps: Overlaps, rows: slice) -> list:
    """query, target, shared k-mers, score, overlap estimate, n or c, then start, end and length on query and target.

    As in BELLA, the target's coordinates are those of its reverse complement on lines with c.
    """
    query, target = overlaps.query_id[rows], overlaps.target_id[rows]
    same, length = overlaps.strand[rows] > 0, reads.lengths[target]
    start, end = overlaps.target_start[rows], overlaps.target_end[rows]
    return [
        (NAME, "", query),
        (NAME, "", target),
        (NUMBER, "", overlaps.n_support[rows]),
        (NUMBER, "", overlaps.score[rows]),
        (NUMBER, "", overlaps.n_columns[rows]),
        (LETTER, "", np.where(same, ord("n"), ord("c"))),
        (NUMBER, "", overlaps.query_start[rows]),
        (NUMBER, "", overlaps.query_end[rows]),
        (NUMBER, "", reads.lengths[query]),
        (NUMBER, "", np.where(same, start, length - end)),
        (NUMBER, "", np.where(same, end, length - start)),
        (NUMBER, "", length),
    ]
