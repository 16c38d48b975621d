"""Stage 7: overlaps -> text: PAF, or BELLA's own 12 columns.

PAF columns 10 and 11 (matching bases, alignment length) are estimates as long as no base-level path is made.  Tags: `tp:A:S`
(as all-vs-all mappers write), `cm:i` shared k-mers on the seed's diagonal, `AS:i` score, `dv:f` share of errors.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bellapy.records import Overlaps, ReadSet

CHUNK = 1 << 14
UNKNOWN_QUALITY = 255
FORMATS = ("paf", "bella")


def format_overlaps(reads: ReadSet, overlaps: Overlaps, overlap_format: str = "paf") -> Iterator[bytes]:
    """Lines of the overlaps, in their order, many at a time."""
    write = {"paf": _paf_lines, "bella": _bella_lines}[overlap_format]
    names = np.array(reads.names, object)
    for at in range(0, len(overlaps), CHUNK):
        rows = slice(at, at + CHUNK)
        query, target = overlaps.query_id[rows], overlaps.target_id[rows]
        table = {
            name: getattr(overlaps, name)[rows]
            for name in (
                "query_start", "query_end", "target_start", "target_end", "score", "n_support", "n_matches", "n_columns"
            )
        }  # fmt: skip
        table["query_length"], table["target_length"] = reads.lengths[query], reads.lengths[target]
        yield write(names[query].tolist(), names[target].tolist(), overlaps.strand[rows] > 0, table)


def _rows(table: dict[str, np.ndarray], names: tuple[str, ...]) -> Iterator[tuple]:
    return zip(*(table[name].tolist() for name in names), strict=True)


def _paf_lines(queries: list, targets: list, same: np.ndarray, table: dict[str, np.ndarray]) -> bytes:
    divergence = 1 - table["n_matches"] / np.maximum(table["n_columns"], 1)
    numbers = _rows(
        table,
        ("query_length", "query_start", "query_end", "target_length", "target_start", "target_end", "n_matches", "n_columns",
         "n_support", "score"),
    )  # fmt: skip
    lines = [
        f"{q}\t{ql}\t{qs}\t{qe}\t{strand}\t{t}\t{tl}\t{ts}\t{te}\t{matches}\t{columns}\t{UNKNOWN_QUALITY}"
        f"\ttp:A:S\tcm:i:{support}\tAS:i:{score}\tdv:f:{dv:.4f}\n"
        for q, t, strand, dv, (ql, qs, qe, tl, ts, te, matches, columns, support, score) in zip(
            queries, targets, np.where(same, "+", "-").tolist(), divergence.tolist(), numbers, strict=True
        )
    ]
    return "".join(lines).encode()


def _bella_lines(queries: list, targets: list, same: np.ndarray, table: dict[str, np.ndarray]) -> bytes:
    """query, target, shared k-mers, score, overlap estimate, n or c, then start, end and length on query and target.

    As in BELLA, the target's coordinates are those of its reverse complement on lines with c.
    """
    length, start, end = table["target_length"], table["target_start"], table["target_end"]
    table = {**table, "target_start": np.where(same, start, length - end), "target_end": np.where(same, end, length - start)}
    numbers = _rows(
        table,
        ("n_support", "score", "n_columns", "query_start", "query_end", "query_length", "target_start", "target_end",
         "target_length"),
    )  # fmt: skip
    lines = [
        f"{q}\t{t}\t{support}\t{score}\t{columns}\t{strand}\t{qs}\t{qe}\t{ql}\t{ts}\t{te}\t{tl}\n"
        for q, t, strand, (support, score, columns, qs, qe, ql, ts, te, tl) in zip(
            queries, targets, np.where(same, "n", "c").tolist(), numbers, strict=True
        )
    ]
    return "".join(lines).encode()


