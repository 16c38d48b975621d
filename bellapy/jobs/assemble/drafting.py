"""Overlaps -> contigs that go on only where it is sure: the layout, made again where contigs turn out to join too much."""

from __future__ import annotations

from collections.abc import Sequence

from bellapy.jobs.assemble.anchors import find_unsure
from bellapy.jobs.assemble.contigs import Chosen, Contig, choose_contigs, rejoin
from bellapy.jobs.assemble.layout import Layout, lay_out
from bellapy.params.assemble import AssembleParams
from bellapy.records import Overlaps, ReadSet
from bellapy.report.log import logger


class Drafter:
    """Makes contigs of reads.

    reads, overlaps, exact, depth, tail : as in `lay_out`.  layout : that contigs were made of last.
    """

    layout: Layout

    def __init__(
        self, reads: ReadSet, overlaps: Overlaps, params: AssembleParams, *, exact: bool, depth: float, tail: int,
        threads: int = 1,
    ):  # fmt: skip
        self._reads, self._overlaps, self._params, self._threads = reads, overlaps, params, threads
        self._exact, self._depth, self._tail = exact, depth, tail
        self._lines: set[int] = set()  # reads that seem to go round, but do not
        self._lay_out()

    def _lay_out(self) -> None:
        self.layout = lay_out(
            self._reads, self._overlaps, self._params, exact=self._exact, depth=self._depth,
            tail=self._tail, lines=self._lines, threads=self._threads,
        )  # fmt: skip

    def draft(self) -> Chosen:
        """The contigs that are sure, as far as they tell themselves."""
        while True:
            chosen = choose_contigs(self._reads, self.layout, self._params)
            if not self.ends_more(chosen.contigs):
                return chosen

    def ends_more(self, contigs: Sequence[Contig]) -> bool:
        """Whether contigs, which may be polished, show joints that are not sure; the next draft has none of these."""
        joined = rejoin(contigs, self.layout.graph, self.layout.left)
        arcs, lines = find_unsure(joined, self.layout.graph, self.layout.limit, self._threads)
        arcs &= ~self.layout.left
        if lines:
            self._lines |= set(lines)
            self._lay_out()
        elif arcs.any():
            self.layout = self.layout.ended_at(arcs)
        else:
            return False
        logger.info("%d overlaps within repeats join no contigs; %d reads that repeat themselves are no circles",
                    arcs.sum() // 2, len(self._lines))  # fmt: skip
        return True
