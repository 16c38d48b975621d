"""What `assemble` and `polish` tell of their work."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bellapy.jobs.assemble.contigs import Contig
from bellapy.jobs.assemble.layout import Layout


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
    """spared : reads inside so many others that they are not looked at on their own; they help to correct.
    reads : what became of the others.  contigs : that are written.  links : between them.

    inner, short : contigs that are left out because they stand in others, and because they are short.
    corrected : what correction did to the reads.  polished : what each round of polishing did.
    """

    spared: int = 0
    reads: Fates | None = None
    contigs: list[dict[str, Any]] = field(default_factory=list)
    links: int = 0
    inner: int = 0
    short: int = 0
    corrected: Any = None
    polished: list[dict[str, Any]] = field(default_factory=list)


def fates_of(layout: Layout, contigs: list[Contig], lengths: np.ndarray) -> Fates:
    """What became of all reads; lengths : (n_reads,) of the reads, uncut."""
    used = layout.spans.lengths
    written = np.zeros(len(lengths), bool)
    for one in contigs:
        written[[v >> 1 for v in one.reads]] = True
    supported = used > 0
    contained = supported & layout.inside & ~written
    return Fates(
        int(written.sum()), int(contained.sum()), int((~supported).sum()), int((supported & ~contained & ~written).sum()),
        int((supported & (used < lengths)).sum()), int((layout.spans.n_stretches > 1).sum()),
    )  # fmt: skip
