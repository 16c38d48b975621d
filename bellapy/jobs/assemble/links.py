"""Links between contigs: where the end of one overlaps the beginning of another.

The graph tells of them where overlaps of reads go on.  Others are found in the contigs: those which end in the same repeat
share what they have of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bellapy.compute.resources import Resources
from bellapy.engines.affine.align import make_align
from bellapy.engines.affine.batch_cpu import Effort
from bellapy.engines.affine.pieces import Pieces
from bellapy.engines.affine.rule import GLOBAL, ordered
from bellapy.io.cigar_text import cigar_texts
from bellapy.io.gfa import Link
from bellapy.jobs.assemble.contigs import Contig
from bellapy.jobs.assemble.graph import Graph
from bellapy.jobs.assemble.words import WORD
from bellapy.params import AffineScoring
from bellapy.records.bases import reversed_codes

End = tuple[int, bool]
"""A contig, and whether it is turned: the end that its bases then run to."""
Way = tuple[int, bool, int, bool]
"""The end that a link leaves, and the contig that it leads into, with whether that is turned."""
REACH = 40_000  # bases of a contig's end that are looked at
PROBED, HITS = 300, 50  # bases of an end whose words are looked for in other ends, and how many of them have to be found
WOBBLE = 20  # bases by which these may tell different lengths of an overlap
ALIKE = 0.9  # share of a perfect score that an overlap has which only the contigs show
BAND = 500  # diagonals of its alignment


def find_links(contigs: Sequence[Contig], graph: Graph) -> list[Link]:
    """All links, each once: in the direction in which fewer contigs are turned."""
    ends = [(i, is_turned) for i, one in enumerate(contigs) if not one.circular for is_turned in (False, True)]
    outward = {end: _outward(contigs[end[0]].codes, end[1]) for end in ends}
    shown = _of_graph(contigs, graph)
    bases = {**shown, **_of_ends(outward, shown)}
    ways = sorted(bases)
    cigars, shares = _align(
        [(outward[w[:2]][-bases[w] :], reversed_codes(outward[w[2], not w[3]])[: bases[w]]) for w in ways]
    )
    some = zip(ways, cigars, shares.tolist(), strict=True)
    return [Link(*way, cigar) for way, cigar, share in some if way in shown or share >= ALIKE]


def _outward(codes: np.ndarray, is_turned: bool) -> np.ndarray:
    """What a contig ends with in one of its directions."""
    return reversed_codes(codes[:REACH]) if is_turned else codes[-REACH:]


def _standard(way: Way) -> Way:
    """The same link in the direction in which fewer contigs are turned."""
    back = way[2], not way[3], way[0], not way[1]
    return min(way, back, key=lambda one: (one[1] + one[3], one))


def _of_graph(contigs: Sequence[Contig], graph: Graph) -> dict[Way, int]:
    """Links of which the graph tells, with the bases of their overlaps."""
    begins: dict[int, tuple[int, bool]] = {}
    for number, one in enumerate(contigs):
        if not one.circular:
            begins[one.reads[0]], begins[one.reads[-1] ^ 1] = (number, False), (number, True)
    found: dict[Way, int] = {}
    for number, is_turned in begins.values():
        end = contigs[number].reads[0] ^ 1 if is_turned else contigs[number].reads[-1]
        for arc in range(graph.first[end], graph.first[end + 1]):
            target = int(graph.arcs.target[arc])
            if target in begins:
                aligned = int(graph.arcs.overlap[arc]) - graph.unaligned(end) - graph.unaligned(target ^ 1)
                found[_standard((number, is_turned, *begins[target]))] = aligned
    return found


def _numbers(codes: np.ndarray) -> np.ndarray:
    """A number for the word at every place, (n,) uint64."""
    n = max(0, len(codes) - WORD + 1)
    numbers = np.zeros(n, np.uint64)
    for i in range(WORD):
        numbers = numbers << np.uint64(2) | codes[i : i + n].astype(np.uint64) & np.uint64(3)
    return numbers


def _of_ends(outward: dict[End, np.ndarray], shown: dict[Way, int]) -> dict[Way, int]:
    """Pairs of ends of which the last words of one stand in the other, with the bases of their overlap.

    Where there may be several, in tandem arrays, it is the one that the graph tells of, or the longest one.

    outward : of all ends.  shown : overlaps of which the graph tells.
    """
    inward = [_numbers(reversed_codes(codes)) for codes in outward.values()]  # from an end into its contig
    sizes = [len(numbers) for numbers in inward]
    words = np.concatenate([*inward, np.zeros(0, np.uint64)])
    owner = np.repeat(np.arange(len(sizes)), sizes)
    place = np.concatenate([*(np.arange(n) for n in sizes), np.zeros(0, np.int64)])
    order = np.argsort(words, kind="stable")
    ranked, ends = words[order], list(outward)
    found: dict[Way, int] = {}
    for end, codes in outward.items():
        last = _numbers(codes[-PROBED:])
        low, high = np.searchsorted(ranked, last), np.searchsorted(ranked, last, side="right")
        rows = order[np.concatenate([np.arange(a, b) for a, b in zip(low, high, strict=True)])]
        bases = place[rows] + np.repeat(np.arange(len(last), 0, -1) + WORD - 1, high - low)
        for other in np.unique(owner[rows]).tolist():
            told = np.sort(bases[owner[rows] == other])
            votes = np.searchsorted(told, told + WOBBLE, side="right") - np.arange(len(told))
            number, is_turned = ends[other]
            way = _standard((*end, number, not is_turned))
            shorter = min(len(codes), len(outward[ends[other]]))
            told = told[(votes >= HITS) & (told < shorter)]  # the whole of one in the other is no link
            if len(told):
                at = np.abs(told - shown[way]).argmin() if way in shown else -1
                found[way] = max(found.get(way, 0), int(told[at]))
    return found


def _align(pairs: list[tuple[np.ndarray, np.ndarray]]) -> tuple[list[str], np.ndarray]:
    """CIGARs of pairs of overlaps' bases, and their scores as shares of perfect ones, (n,) float64."""
    if not pairs:
        return [], np.zeros(0)
    sides = []
    for sequences in zip(*pairs, strict=True):
        lengths = np.array([len(one) for one in sequences], np.int64)
        sides.append((np.cumsum(lengths) - lengths, lengths, np.concatenate(sequences)))
    (query_at, query_length, query), (target_at, target_length, target) = sides
    same, scoring = np.ones(len(pairs), np.int64), ordered(AffineScoring())
    pieces = Pieces(query_at, query_length, target_at, target_length, same, GLOBAL * same)
    solved = make_align(scoring, True, Resources())(query, target, pieces, Effort(diagonals=BAND))
    perfect = scoring.match * np.maximum(query_length, target_length)
    return [text.decode() for text in cigar_texts(solved).to_list()], solved.score / np.maximum(1, perfect)
