"""Parts of one path joined again, where what was cut out between them has no other alignment.

Where homology ends, at the breakpoints of an inversion or a translocation, what lies between two parts of a path belongs
elsewhere.  It has an alignment of its own there, on the target or on the query.  Where it has none on either, the sequence
between the two parts has diverged, and the path through it is the only one.
"""

from __future__ import annotations

import numpy as np

from bellapy.jobs.wga.extending import joined
from bellapy.jobs.wga.select import Taken, share_of
from bellapy.params.wga import GapScores
from bellapy.records.bases import UNKNOWN
from bellapy.records.genomes import PAIR, Alignment, Genome

FREE = 0.1
"""Share of a stretch that other alignments may span, on either genome."""


def rejoin(
    kept: list[Alignment], falls: list[Alignment], target: Genome, query: Genome, scores: GapScores
) -> list[Alignment]:
    """Alignments in any order; falls : what was cut out, each ends where the part behind it begins."""
    taken, strands = Taken(target, query), {1: query, -1: query.reverse()}
    for found in kept:
        for span in taken.spans(found):
            span[:] = True
    ends = {_place(found, found.t_end, found.q_end): x for x, found in enumerate(kept)}
    starts = {_place(found, found.t_start, found.q_start): x for x, found in enumerate(kept)}
    after: dict[int, tuple[Alignment, int]] = {}
    for fall in falls:
        before, behind = (
            ends.get(_place(fall, fall.t_start, fall.q_start)), starts.get(_place(fall, fall.t_end, fall.q_end))
        )  # fmt: skip
        is_free = all(share_of(span) < FREE for span in taken.spans(fall))
        if before is not None and behind is not None and is_free:
            after[before] = fall, behind
    seconds, result = {behind for _, behind in after.values()}, []
    for x, found in enumerate(kept):
        if x in seconds:
            continue
        while x in after:
            fall, x = after[x]
            score = found.score + path_score(target, strands[fall.strand], fall, scores) + kept[x].score
            found = found._replace(score=score, runs=joined(joined(found.runs, fall.runs), kept[x].runs))
        result.append(found)
    return result


def _place(found: Alignment, t: int, q: int) -> tuple[int, int, int, int, int]:
    return found.target, found.query, found.strand, t, q


def path_score(target: Genome, query: Genome, path: Alignment, scores: GapScores) -> int:
    """The score of all columns of a path.  query : the strand that is aligned."""
    t, q = path.pairs()
    a, b = target.sequence(path.target)[t], query.sequence(path.query)[q]
    gaps = path.runs[path.runs[:, 0] != PAIR, 1]
    pairs = scores.matrix[np.minimum(a, UNKNOWN), np.minimum(b, UNKNOWN)].sum()
    return int(pairs) - len(gaps) * scores.open - int(gaps.sum()) * scores.extend
