"""What `assemble` and `polish` tell of their work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from bellapy.jobs.assemble.contigs import Contig
from bellapy.jobs.assemble.layout import Layout

FATES = "in_contigs", "contained", "without_support", "left_over", "spared", "too_deep"
IN_CONTIGS, CONTAINED, WITHOUT_SUPPORT, LEFT_OVER, SPARED, TOO_DEEP = range(len(FATES))


@dataclass(slots=True)
class Fates:
    """What became of the reads that the graph was made from.

    in_contigs : that contigs are made of.  contained : inside another read.  without_support : too few others cover any part
    of them (junk).  left_over : in no contig that is written.
    trimmed, joined : of all these, reads whose ends were cut, and reads cut to one of several stretches (chimeras).
    """

    in_contigs: int
    contained: int
    without_support: int
    left_over: int
    trimmed: int
    joined: int


@dataclass(slots=True)
class ContigLine:
    """A contig as the report has it."""

    name: str
    length: int
    circular: bool
    depth: float


@dataclass(slots=True)
class Details:
    """too_deep : reads of molecules with so many reads that the others do; they help to polish.
    spared : reads inside so many others that they are not looked at on their own; they help to correct.
    reads : what became of the others.  contigs : that are written.  links : between them.

    inner, short, shallow : contigs that are left out because they stand in others, because they are short, and because
    fewer reads lie on them than support each of their reads.
    corrected : what correction did to the reads.  polished : what each round of polishing did.
    """

    too_deep: int = 0
    spared: int = 0
    reads: Fates | None = None
    contigs: list[dict[str, Any]] = field(default_factory=list)
    links: int = 0
    inner: int = 0
    short: int = 0
    shallow: int = 0
    corrected: Any = None
    polished: list[dict[str, Any]] = field(default_factory=list)


class ReadTable(NamedTuple):
    """What became of every read, in the order of `names`.

    lengths : bases.  fate : (n,) int64, of FATES.  stretches : (n,) int64, supported stretches of the read, of which the
    longest one is used.  contig : (n,) int64, the contig that has most of its bases; -1: none.
    """

    names: Sequence[str]
    lengths: np.ndarray
    fate: np.ndarray
    stretches: np.ndarray
    contig: np.ndarray

    def among(self, names: Sequence[str], lengths: np.ndarray, kept: np.ndarray, contig: np.ndarray) -> ReadTable:
        """The table of all reads, of which a mask, (n,) bool, tells those that this one has; the others are too deep."""
        fate, stretches = np.full(len(kept), TOO_DEEP), np.zeros(len(kept), np.int64)
        fate[kept], stretches[kept] = self.fate, self.stretches
        return ReadTable(names, lengths, fate, stretches, contig)

    def lines(self, contigs: Sequence[str]) -> Iterator[bytes]:
        """As tab-separated text; contigs : their names."""
        yield b"read\tlength\tfate\tstretches\tcontig\n"
        columns = (column.tolist() for column in (self.lengths, self.fate, self.stretches, self.contig))
        for name, length, fate, stretches, contig in zip(self.names, *columns, strict=True):
            home = contigs[contig] if contig >= 0 else "*"
            text = f"{name}\t{length}\t{FATES[fate]}\t{stretches}\t{home}\n"
            yield text.encode(errors="surrogateescape")


def fates_of(layout: Layout, contigs: list[Contig]) -> np.ndarray:
    """What became of the reads of a layout, (n_reads,) int64, of FATES."""
    supported = layout.spans.lengths > 0
    fate = np.where(supported, np.where(layout.inside, CONTAINED, LEFT_OVER), WITHOUT_SUPPORT)
    for one in contigs:
        fate[[v >> 1 for v in one.reads]] = IN_CONTIGS
    return fate


def count_fates(fate: np.ndarray, trimmed: np.ndarray, joined: np.ndarray) -> Fates:
    """How many reads have which fate; (n_reads,) each, of reads without support the others do not count."""
    n = np.bincount(fate, minlength=len(FATES)).tolist()
    supported = fate != WITHOUT_SUPPORT
    return Fates(
        n[IN_CONTIGS], n[CONTAINED], n[WITHOUT_SUPPORT], n[LEFT_OVER], int((trimmed & supported).sum()),
        int((joined & supported).sum()),
    )  # fmt: skip
