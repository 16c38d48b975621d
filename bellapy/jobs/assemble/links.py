"""Links between contigs: where the graph goes on from the end of one at the beginning of another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bellapy.io.gfa import Link
from bellapy.jobs.assemble.contigs import Contig, turned
from bellapy.jobs.assemble.graph import Graph

SLACK = 200  # bases by which polishing may have changed the length of an overlap


def find_links(contigs: Sequence[Contig], graph: Graph) -> list[Link]:
    """All links, each once."""
    begins: dict[int, tuple[int, bool]] = {}
    for number, one in enumerate(contigs):
        if not one.circular:
            begins[one.reads[0]], begins[one.reads[-1] ^ 1] = (number, False), (number, True)
    links = []
    for number, one in enumerate(contigs):
        for is_turned, end in ((False, one.reads[-1]), (True, one.reads[0] ^ 1)) if not one.circular else ():
            for arc in range(graph.first[end], graph.first[end + 1]):
                found = begins.get(int(graph.arcs.target[arc]))
                if found is None or (*found,) < (number, not is_turned):  # its complement tells the same
                    continue
                cigar = _cigar(_way(contigs[number], is_turned), _way(contigs[found[0]], found[1]), graph.arcs.overlap[arc])
                links.append(Link(number, is_turned, *found, cigar))
    return sorted(links)


def _way(contig: Contig, is_turned: bool) -> np.ndarray:
    return turned(contig.codes) if is_turned else contig.codes


def _cigar(source: np.ndarray, target: np.ndarray, overlap: int) -> str:
    """The CIGAR of the overlap of two contigs, if both have the same bases there."""
    for off in range(SLACK + 1):
        for n in {int(overlap) - off, int(overlap) + off}:
            if 0 < n <= min(len(source), len(target)) and np.array_equal(source[-n:], target[:n]):
                return f"{n}M"
    return "*"
