"""Contigs and the links between them, as FASTA and GFA 1.2."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from bellapy.records.bases import LETTERS

CLOSED = b"0M"  # CIGAR of a circle's link to itself


class Segment(NamedTuple):
    """A contig.  codes : (n,) uint8.  depth : reads on a base; copies : the same as a multiple of the longest contig's."""

    name: str
    codes: np.ndarray
    circular: bool
    depth: float
    copies: float


class Link(NamedTuple):
    """The end of one contig overlaps the beginning of another.

    source, target : numbers of contigs.  source_turned, target_turned : whether they are reverse complements.
    cigar : of the overlap; *: it is not known.
    """

    source: int
    source_turned: bool
    target: int
    target_turned: bool
    cigar: str


def format_fasta(segments: Sequence[Segment]) -> Iterator[bytes]:
    """A record for each contig; its header says what Unicycler's does."""
    for one in segments:
        about = f"{one.name} length={len(one.codes)} circular={str(one.circular).lower()} depth={one.copies:.2f}x"
        yield b">%s\n%s\n" % (about.encode(), LETTERS[one.codes].tobytes())


def format_gfa(segments: Sequence[Segment], links: Sequence[Link]) -> Iterator[bytes]:
    """Segments with their length (LN) and depth (dp, and KC, from which Bandage computes it), then links."""
    yield b"H\tVN:Z:1.2\n"
    for one in segments:
        n = len(one.codes)
        tags = b"LN:i:%d\tdp:f:%.2f\tKC:i:%d" % (n, one.depth, round(one.depth * n))
        yield b"S\t%s\t%s\t%s\n" % (one.name.encode(), LETTERS[one.codes].tobytes(), tags)
    for one in segments:
        if one.circular:
            yield b"L\t%s\t+\t%s\t+\t%s\n" % (one.name.encode(), one.name.encode(), CLOSED)
    for link in links:
        source, target = segments[link.source].name, segments[link.target].name
        ends = b"+-"[link.source_turned], b"+-"[link.target_turned]
        yield b"L\t%s\t%c\t%s\t%c\t%s\n" % (source.encode(), ends[0], target.encode(), ends[1], link.cigar.encode())
