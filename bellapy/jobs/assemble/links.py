"""Links between contigs: where the graph goes on from the end of one at the beginning of another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bellapy.io.gfa import Link
from bellapy.jobs.assemble.contigs import Contig, turned
from bellapy.jobs.assemble.graph import Graph

Way = tuple[int, bool, int, bool]
SLACK = 200  # bases by which polishing may have changed the length of an overlap


def find_links(contigs: Sequence[Contig], graph: Graph) -> list[Link]:
    """All links, each once: in the direction in which fewer contigs are turned."""
    begins: dict[int, tuple[int, bool]] = {}
    for number, one in enumerate(contigs):
        if not one.circular:
            begins[one.reads[0]], begins[one.reads[-1] ^ 1] = (number, False), (number, True)
    found: dict[Way, int] = {}
    for number, is_turned in begins.values():
        end = contigs[number].reads[0] ^ 1 if is_turned else contigs[number].reads[-1]
        for arc in range(graph.first[end], graph.first[end + 1]):
            other = begins.get(int(graph.arcs.target[arc]))
            if other is not None:
                way, back = (number, is_turned, *other), (other[0], not other[1], number, not is_turned)
                found[min(way, back, key=lambda w: (w[1] + w[3], w))] = int(graph.arcs.overlap[arc])
    return [Link(*way, _cigar(*_ends(contigs, way), found[way])) for way in sorted(found)]


def _ends(contigs: Sequence[Contig], way: Way) -> tuple[np.ndarray, np.ndarray]:
    """Both contigs of a link, in its directions."""
    return _way(contigs[way[0]], way[1]), _way(contigs[way[2]], way[3])


def _way(contig: Contig, is_turned: bool) -> np.ndarray:
    return turned(contig.codes) if is_turned else contig.codes


def _cigar(source: np.ndarray, target: np.ndarray, overlap: int) -> str:
    """The CIGAR of the overlap of two contigs, if both have the same bases there."""
    for off in range(SLACK + 1):
        for n in {int(overlap) - off, int(overlap) + off}:
            if 0 < n <= min(len(source), len(target)) and np.array_equal(source[-n:], target[:n]):
                return f"{n}M"
    return "*"
