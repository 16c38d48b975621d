"""Contigs: the sequences of unitigs and circles, without those that stand in others, on a strand of their own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.jobs.assemble.layout import Layout, used_bases
from bellapy.records import ReadSet
from bellapy.records.bases import UNKNOWN

WORD = 31  # bases
SMALL = 60_000  # bases of a contig that may stand in another
INSIDE, CIRCLE_INSIDE = 0.5, 0.9  # of a contig's words in another, that a contig, or a circle, is left out for
MIXING = np.uint64(0x9E3779B97F4A7C15)


class Contig(NamedTuple):
    """A contig.

    codes : (n,) uint8.  circular : whether its first base follows the last one.
    reads : those that it was made of, in order, as vertices of the graph.
    """

    codes: np.ndarray
    circular: bool
    reads: tuple[int, ...]


def turned(codes: np.ndarray) -> np.ndarray:
    """The reverse complement."""
    back = codes[::-1]
    return np.where(back < UNKNOWN, 3 - back, back).astype(np.uint8)


def spell(reads: ReadSet, layout: Layout, min_reads: int) -> list[Contig]:
    """The contigs of a layout, the longest first.

    min_reads : that a contig is made of or that lie inside these, at least.
    """
    held = 1 + layout.n_inside
    contigs = []
    for unitig in layout.unitigs:
        if sum(int(held[v >> 1]) for v in unitig.path) >= min_reads:
            parts = [_bases(reads, layout, v)[:n] for v, n in zip(unitig.path, unitig.steps, strict=True)]
            contigs.append(Contig(np.concatenate(parts), unitig.circular, tuple(unitig.path)))
    for read, turn in layout.circles.items():
        if held[read] >= min_reads:
            contigs.append(Contig(_bases(reads, layout, 2 * read)[:turn], True, (2 * read,)))
    return sorted(contigs, key=lambda contig: (-len(contig.codes), contig.reads))


def _bases(reads: ReadSet, layout: Layout, vertex: int) -> np.ndarray:
    codes = used_bases(reads, layout.spans, vertex >> 1)
    return turned(codes) if vertex & 1 else codes


def words_of(codes: np.ndarray, circular: bool) -> np.ndarray:
    """A number for the word at every place, the same for its reverse complement, (n,) uint64; it mixes all bases."""
    if circular:
        codes = np.concatenate([codes, np.resize(codes, WORD - 1)])
    n = max(0, len(codes) - WORD + 1)
    forward, back = np.zeros(n, np.uint64), np.zeros(n, np.uint64)
    for i in range(WORD):
        code = codes[i : i + n].astype(np.uint64) & np.uint64(3)
        forward = forward << np.uint64(2) | code
        back |= (np.uint64(3) - code) << np.uint64(2 * i)
    words = np.minimum(forward, back)
    for _ in range(2):
        words = (words ^ words >> np.uint64(29)) * MIXING
    return words ^ words >> np.uint64(32)


def leave_out_inner(contigs: list[Contig]) -> list[Contig]:
    """Leave out small contigs most of whose words stand in a longer one: what is left over beside it."""
    kept: list[Contig] = []
    known: list[np.ndarray] = []
    for contig in contigs:
        words = np.unique(words_of(contig.codes, contig.circular))
        most = CIRCLE_INSIDE if contig.circular else INSIDE
        small = len(contig.codes) < SMALL
        if small and any(np.isin(words, other, assume_unique=True).sum() > most * len(words) for other in known):
            continue
        kept.append(contig)
        known.append(words)
    return kept


def settle(contig: Contig) -> Contig:
    """The contig on the strand, and if it is a circle from the place, that its smallest word tells."""
    words = words_of(contig.codes, contig.circular)
    if not len(words):
        return contig
    at = int(words.argmin())
    word = np.take(contig.codes, np.arange(at, at + WORD), mode="wrap")
    forward = tuple(word) <= tuple(turned(word))
    if not contig.circular:
        return contig if forward else contig._replace(codes=turned(contig.codes), reads=_turned_path(contig.reads))
    if forward:
        return contig._replace(codes=np.roll(contig.codes, -at))
    codes = np.roll(contig.codes, -(at + WORD))
    return contig._replace(codes=turned(codes), reads=_turned_path(contig.reads))


def _turned_path(reads: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(v ^ 1 for v in reads[::-1])
