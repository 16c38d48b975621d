"""Which alignments are kept, best ones first.

Copies: where the sequence of an alignment has a better one on both genomes, over a quarter of it at least, it joins copies
of a repeat or members of a gene family that are not each other's counterparts.  A copy that has no counterpart of its own
keeps its best alignment, since that one lies alone on one of the genomes.  A counterpart that has diverged is often aligned
in part.  So its copies are told by a quarter already.
"""

from __future__ import annotations

import numpy as np

from bellapy.jobs.wga import cut
from bellapy.params.wga import WgaParams
from bellapy.records.genomes import PAIR, QUERY_ALONE, TARGET_ALONE, Alignment, Genome

COVERED = 0.25


class Taken:
    """Bases of both genomes that better alignments hold."""

    def __init__(self, target: Genome, query: Genome):
        self.target, self.query = target, query
        self.t, self.q = np.zeros(len(target.codes), np.bool_), np.zeros(len(query.codes), np.bool_)

    def spans(self, found: Alignment) -> tuple[np.ndarray, np.ndarray]:
        """Views of the bases between the ends of an alignment."""
        t_at, q_at = int(self.target.starts[found.target]), int(self.query.starts[found.query])
        begin, end = found.forward(int(self.query.lengths[found.query]))
        return self.t[t_at + found.t_start : t_at + found.t_end], self.q[q_at + begin : q_at + end]

    def places(self, found: Alignment) -> tuple[np.ndarray, np.ndarray]:
        """Places of all pairs of bases, on forward strands."""
        t, q = found.pairs()
        if found.strand < 0:
            q = int(self.query.lengths[found.query]) - 1 - q
        return t + self.target.starts[found.target], q + self.query.starts[found.query]


def share_of(span: np.ndarray) -> float:
    """How much of a stretch, (n,) bool, is taken; 0 of none."""
    return np.count_nonzero(span) / max(1, len(span))


def best_first(alignments: list[Alignment]) -> list[Alignment]:
    return sorted(alignments, key=lambda found: (-found.score, *found.order()))


def drop_copies(alignments: list[Alignment], target: Genome, query: Genome) -> list[Alignment]:
    """Without those whose sequence has better alignments on both genomes."""
    taken, kept = Taken(target, query), []
    for found in best_first(alignments):
        spans = taken.spans(found)
        if min(share_of(span) for span in spans) < COVERED:
            kept.append(found)
            for span in spans:
                span[:] = True
    return kept


def one_to_one(alignments: list[Alignment], target: Genome, query: Genome, params: WgaParams) -> list[Alignment]:
    """Every base in one alignment at most: of a worse one those parts stay that are alone and score enough."""
    taken, kept, strands = Taken(target, query), [], {1: query, -1: query.reverse()}
    for found in best_first(alignments):
        t, q = taken.places(found)
        free = ~(taken.t[t] | taken.q[q])
        if free.all():
            parts = [found]
        else:
            sequences = target.sequence(found.target), strands[found.strand].sequence(found.query)
            parts = [part for some in stretches(found, free) for part in scored(some, sequences, params)]
        for part in parts:
            t, q = taken.places(part)
            taken.t[t] = taken.q[q] = True
        kept += parts
    return kept


def stretches(found: Alignment, free: np.ndarray) -> list[Alignment]:
    """The parts of an alignment between pairs that are not free."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], free, [False])).astype(np.int8)))
    t, q = found.pairs()
    return [
        found._replace(t_start=int(t[a]), q_start=int(q[a]), runs=_runs(t[a:b], q[a:b])) for a, b in edges.reshape(-1, 2)
    ]


def _runs(t: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The runs of a path from the positions of its pairs."""
    runs, begin = [], 0
    breaks = np.flatnonzero((np.diff(t) > 1) | (np.diff(q) > 1)) + 1
    for at in [*breaks.tolist(), len(t)]:
        runs.append((PAIR, at - begin))
        if at < len(t):
            gaps = (QUERY_ALONE, int(q[at] - q[at - 1]) - 1), (TARGET_ALONE, int(t[at] - t[at - 1]) - 1)
            runs += [gap for gap in gaps if gap[1]]
        begin = at
    return np.array(runs, np.int64).reshape(-1, 2)


def scored(some: Alignment, sequences: tuple[np.ndarray, np.ndarray], params: WgaParams) -> list[Alignment]:
    """The parts of an alignment that score enough; sequences : codes of target and query."""
    scores, least = params.scores, params.gappedthresh
    costs = (scores.matrix, scores.open, scores.extend)
    parts = cut.find_parts(*sequences, some.t_start, some.q_start, some.runs, costs, params.cut_drop, least)
    return [
        some._replace(
            score=int(part[cut.SCORE]), t_start=int(part[cut.TARGET]), q_start=int(part[cut.QUERY]),
            runs=cut.runs_of_part(some.runs, part),
        )
        for part in parts
    ]  # fmt: skip
