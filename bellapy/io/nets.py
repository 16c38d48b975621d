"""Nets as text, as chainNet writes them.

Source: the UCSC Genome Browser's description of the net format.
"""

from __future__ import annotations

from collections.abc import Iterator

from bellapy.io.codes import SIGN
from bellapy.records.genomes import Fill, Genome


def format_nets(nets: list[list[Fill]], target: Genome, query: Genome) -> Iterator[bytes]:
    """The text of a net file, sequence by sequence; those without a fill are left out."""
    for name, length, fills in zip(target.names, target.lengths.tolist(), nets, strict=True):
        if fills:
            lines = [f"net {name} {length}", *_lines(fills, query, 1)]
            yield ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape")


def _lines(fills: list[Fill], query: Genome, depth: int) -> Iterator[str]:
    for fill in fills:
        where = f"{query.names[fill.query]} {SIGN[fill.strand]}"
        head = f"{fill.t[0]} {fill.t[1] - fill.t[0]} {where} {fill.q[0]} {fill.q[1] - fill.q[0]}"
        yield f"{' ' * depth}fill {head} id {fill.chain} score {fill.score} ali {fill.pairs}"
        for gap in fill.gaps:
            yield f"{' ' * depth} gap {gap.t[0]} {gap.t[1] - gap.t[0]} {where} {gap.q[0]} {gap.q[1] - gap.q[0]}"
            yield from _lines(gap.fills, query, depth + 2)
