"""Where extensions end: the steps they take and the tilt of their scores, chosen from the reads.

With scores 1, -1, -1 unrelated sequence gains score, though less than homology.  So with a large X an extension runs far
beyond the homology, and the highest score lies there.  With a small X it stops too early, in a stretch of many errors.

There are two remedies.  First, the end is the cell with the highest tilted score (engines/linear/rule.py). There every base
costs a little more than unrelated sequence gains, and less than homology gains.  Second, an extension takes two steps.  The
first has a small X. Only where it ends inside both reads, a second one goes on from there with a large X. So X need not be
chosen, and the second step costs time only where reads need it.
"""

from __future__ import annotations

import numpy as np

from bellapy.compute.resources import Resources
from bellapy.engines.ends import End
from bellapy.engines.extend import extend, extend_anchors
from bellapy.engines.flanks import Flanks
from bellapy.jobs.overlap.candidate_filter import SURE_SUPPORT
from bellapy.jobs.overlap.geometry import measure_geometry
from bellapy.params import TILT_UNIT, ExtensionParams, Scoring
from bellapy.records import ReadSet, Seeds
from bellapy.records.bases import PAD, UNKNOWN

Steps = tuple[Scoring, ...]

NEAR_X, FAR_X = 15, 130  # of the two steps, for a match score of 1
ALONE_X = 25  # of `best` and `longest`, which take one step
FALL_BEYOND_X = 2, 20  # an extension stops when its tilted score has fallen by 2 X + 20
TILT_SHARE = 0.3  # of the way from what unrelated sequence gains to what homology gains
PILOT_SEEDS = 2000
MIN_PILOT = 20  # sure alignments; with fewer, homology is taken to gain what it does with 15 % errors
USUAL_GAIN = 0.33  # per base of either read, for a match score of 1
UNRELATED_FLANKS, UNRELATED_BASES = 32, 2000


def first_scoring(given: ExtensionParams) -> Scoring:
    """Scores as given, with the X of the first step, or of the only one."""
    alone = ALONE_X if given.extension != "homology" else NEAR_X
    x = alone * given.match if given.xdrop is None else given.xdrop
    return Scoring(given.match, given.mismatch, given.gap, x)


def choose_steps(reads: ReadSet, seeds: Seeds, given: ExtensionParams, resources: Resources) -> Steps:
    """The steps of all extensions: their X, the tilt, and when they stop.

    A given X leaves one step; `best` and `longest` have no tilt.
    """
    first = first_scoring(given)
    if given.extension != "homology":
        return (first,)
    tilt = choose_tilt(reads, seeds, first, resources)
    further = [FAR_X * given.match] if given.xdrop is None else []
    return tuple(tilted(first, x, tilt) for x in (first.xdrop, *further))


def tilted(scoring: Scoring, x: int, tilt: int) -> Scoring:
    """A step with this X and tilt."""
    slope, room = FALL_BEYOND_X
    return scoring._replace(xdrop=x, tilt=tilt, fall=TILT_UNIT * (slope * x + room * scoring.match))


def choose_tilt(reads: ReadSet, seeds: Seeds, scoring: Scoring, resources: Resources) -> int:
    """The tilt for these reads, in parts of TILT_UNIT."""
    x = ALONE_X * scoring.match
    unrelated = unrelated_gain(scoring._replace(xdrop=FAR_X * scoring.match), resources)
    pilot = pilot_seeds(reads.lengths, seeds)
    related = USUAL_GAIN * scoring.match
    if len(pilot) >= MIN_PILOT:
        step = tilted(scoring, x, round(TILT_UNIT * (unrelated + TILT_SHARE * (related - unrelated))))
        extensions = extend_anchors(reads, pilot.anchors, (step,), End.BEST, resources)
        rate = extensions.score / np.maximum(measure_geometry(reads, pilot, extensions).implied, 1)
        related = float(np.median(rate)) / 2
    return max(0, round(TILT_UNIT * (unrelated + TILT_SHARE * max(0.0, related - unrelated))))


def pilot_seeds(lengths: np.ndarray, seeds: Seeds) -> Seeds:
    """Some well-supported seeds, chosen by the lengths of their reads: the order of the reads does not matter.

    lengths : (n_reads,) int32.
    """
    sure = np.flatnonzero((seeds.rank == 0) & (seeds.n_support >= SURE_SUPPORT))
    lengths = lengths.astype(np.uint64)
    query, target = lengths[seeds.query_id[sure]], lengths[seeds.target_id[sure]]
    mixed = (query * target + query + target) * np.uint64(0x9E3779B97F4A7C15)
    if len(sure) > PILOT_SEEDS:  # few are looked at, so not all are sorted
        some = np.flatnonzero(mixed <= np.partition(mixed, PILOT_SEEDS - 1)[PILOT_SEEDS - 1])
        sure, mixed = sure[some], mixed[some]
    return seeds.take(sure[np.argsort(mixed, kind="stable")[:PILOT_SEEDS]])


_known_gains: dict[Scoring, float] = {}


def unrelated_gain(scoring: Scoring, resources: Resources) -> float:
    """What the extension of unrelated sequence gains per base of either read; next to nothing where it dies.

    It follows from the scores alone, so it is found once.
    """
    if scoring not in _known_gains:
        _known_gains[scoring] = _unrelated_gain(scoring, resources)
    return _known_gains[scoring]


def _unrelated_gain(scoring: Scoring, resources: Resources) -> float:
    rng, n = np.random.default_rng(1), 2 * UNRELATED_FLANKS
    begins = PAD + np.arange(n) * (UNRELATED_BASES + PAD)
    codes = np.full(begins[-1] + UNRELATED_BASES + PAD, UNKNOWN, np.uint8)
    for begin in begins.tolist():
        codes[begin : begin + UNRELATED_BASES] = rng.integers(0, 4, UNRELATED_BASES)
    reads = ReadSet(tuple(map(str, range(n))), codes, begins, np.full(n, UNRELATED_BASES, np.int32))
    lengths = np.full(n // 2, UNRELATED_BASES, np.int64)
    flanks = Flanks(begins[0::2].copy(), lengths, begins[1::2].copy(), lengths.copy(), np.zeros(n // 2, np.uint8))
    found = extend(reads.both_ways, flanks, scoring, End.BEST, resources)
    return float(found.score.sum() / (n * UNRELATED_BASES))


def describe_steps(steps: Steps) -> str:
    """One line for the log."""
    x = ", then ".join(str(step.xdrop) for step in steps)
    ends = f"; ends are chosen with {steps[0].tilt / TILT_UNIT:.3f} off for each base" if steps[0].fall else ""
    return f"alignments were extended until the score fell by {x}{ends}"
