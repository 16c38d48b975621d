"""Defaults and ranges of `bellapy wga`; the scores and thresholds are LASTZ's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bellapy.errors import ParameterError
from bellapy.params import Range


class GapScores(NamedTuple):
    """matrix : (5, 5) int32, by code of the target's base, then of the query's; the last of each stands for unknown bases.

    A gap of g bases costs open + g * extend.
    """

    matrix: np.ndarray
    open: int
    extend: int


HOXD70 = np.array(
    [
        [91, -114, -31, -123, -100],
        [-114, 100, -125, -31, -100],
        [-31, -125, 100, -114, -100],
        [-123, -31, -114, 91, -100],
        [-100, -100, -100, -100, -100],
    ],
    np.int32,
)
"""F. Chiaromonte, V. B. Yap, W. Miller: Scoring pairwise genomic sequence alignments, Pac Symp Biocomput 2002."""

DEFAULT_SCORES = GapScores(HOXD70, 400, 30)
XDROP_MATCHES = 10  # xdrop is the score of so many A
YDROP_GAP = 300  # ydrop is the cost of a gap of so many bases

WGA_RANGES = {
    "ydrop": Range(1, 100_000_000),
    "hspthresh": Range(1, 1_000_000),
    "gappedthresh": Range(1, 100_000_000),
    "step": Range(1, 1000),
    "max_copies": Range(1, 100_000),
    "identity": Range(0.0, 1.0),
    "threads": Range(1, 4096),
}


@dataclass(frozen=True)
class WgaParams:
    """What a whole-genome alignment is (jobs/wga/).

    scores : of pairs and gaps.  xdrop, ydrop : falls that end an ungapped and a gapped extension.
    hspthresh, gappedthresh : least scores of an HSP and of an alignment.
    seed : the pattern (seeding/spaced.py).  transition : whether one base of a seed may differ by a transition.
    step : every so many-th word of the target is indexed.  max_copies : a word with more places in the target is left out.
    sensitive : every seed is extended with gaps.  unmask : words of lower-case bases are seeds too.
    itself : the query is the target.
    all_copies : keep alignments whose sequence has a better one on both sides.  cut : cut alignments where homology ends.
    one_to_one : every base in one alignment at most.  identity : least share of equal bases in pairs of bases.
    """

    scores: GapScores = DEFAULT_SCORES
    xdrop: int = 910
    ydrop: int = 9400
    hspthresh: int = 3000
    gappedthresh: int = 3000
    seed: str = "12of19"
    transition: bool = True
    step: int = 1
    max_copies: int = 1000
    sensitive: bool = False
    unmask: bool = False
    itself: bool = False
    all_copies: bool = False
    cut: bool = True
    one_to_one: bool = False
    identity: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """For the report."""
        shown = {name: value for name, value in vars(self).items() if name != "scores"}
        scores = self.scores
        return {**shown, "matrix": scores.matrix.tolist(), "gap_open": scores.open, "gap_extend": scores.extend}


def make_wga_params(scores: GapScores = DEFAULT_SCORES, **options: Any) -> WgaParams:
    """Parameters by name; an option that is None follows from the scores, or stays at its default.

    Raises
    ------
    ParameterError : a value out of range, or options that contradict each other.
    """
    given = {name: value for name, value in options.items() if value is not None}
    for name, value in given.items():
        if name in WGA_RANGES and not WGA_RANGES[name].low <= value <= WGA_RANGES[name].high:
            low, high = WGA_RANGES[name]
            raise ParameterError(f"--{name.replace('_', '-')} {value}: must be from {low:g} to {high:g}")
    given.pop("threads", None)
    if given.get("one_to_one") and given.get("all_copies"):
        raise ParameterError("--one-to-one and --all-copies: choose one of them")
    given.setdefault("xdrop", XDROP_MATCHES * int(scores.matrix[0, 0]))
    given.setdefault("ydrop", scores.open + YDROP_GAP * scores.extend)
    if "hspthresh" in given:
        given.setdefault("gappedthresh", given["hspthresh"])
    return WgaParams(scores=scores, **given)
