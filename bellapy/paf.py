"""Stage 9: overlaps -> text: PAF, or BELLA's own 12 columns.

PAF columns 10 and 11 (matching bases, alignment length) are estimates as long as no base-level path is made; `dv:f` is the
error share they imply.  Other tags: `tp:A:S` (as all-vs-all mappers write), `cm:i` shared k-mers on the seed's diagonal,
`AS:i` score.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bellapy.records import Overlaps, ReadSet
from bellapy.table_text import LETTER, NAME, NUMBER, SHARE, NameTable, format_rows

CHUNK = 1 << 14  # lines
UNKNOWN_QUALITY = 255
FORMATS = ("paf", "bella")


def format_overlaps(reads: ReadSet, overlaps: Overlaps, overlap_format: str = "paf") -> Iterator[bytes]:
    """Lines of the overlaps, in their order, many at a time."""
    columns = {"paf": _paf_columns, "bella": _bella_columns}[overlap_format]
    names = NameTable.of(reads.names)
    for at in range(0, len(overlaps), CHUNK):
        yield format_rows(columns(reads, overlaps, slice(at, at + CHUNK)), names)


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
