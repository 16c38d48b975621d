"""Defaults and ranges of `bellapy wga`; the scores and thresholds are LASTZ's."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from bellapy.errors import ParameterError
from bellapy.params.fields import ALIGNMENT, FILTER, INPUT, LARGEST, SEEDING, About, check, fields_of, given_values


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
PRESETS = ("auto", "close", "distant", "lastz")
LONG_SEED = "11101001100101011011111"
"""Sixteen bases of 23 that agree: chance gives one hit in 4 G pairs of places."""
FEW_COPIES = 4
"""Places in the target that a word of the long seed may have."""
SAMPLED = 4
"""One word of the long seed in so many counts where genomes are close: nearly every hit lies in the HSP of another one."""

XDROP_MATCHES = 10  # xdrop is the score of so many A
YDROP_GAP = 300  # ydrop is the cost of a gap of so many bases
CLOSE_YDROP_GAP = 600  # likewise, in the pass of long seeds of close genomes


@dataclass(frozen=True)
class WgaParams:
    """What a whole-genome alignment is (jobs/wga/)."""

    scores: GapScores = DEFAULT_SCORES
    xdrop: int = 910
    close_ydrop: int = 18_400
    """What ends an extension of close genomes.  A path through a gap that ydrop bridges falls behind the path that goes on
    along another copy of a satellite, until that one pays for the same gap; it must not be given up before."""
    cut_drop: int = 4700
    """Fall of the score where an alignment is cut, 0 for never: half of ydrop."""
    itself: Annotated[
        bool, About("Align the target with itself, and tell each pair of places once", panel=INPUT, flags=("--self",))
    ] = False
    unmask: Annotated[bool, About("Take seeds from lower-case bases too", panel=INPUT)] = False
    preset: Annotated[
        str,
        About(
            "How far the genomes are apart; lastz takes LASTZ's seeds alone, auto does so for small or masked genomes",
            choices=PRESETS, panel=INPUT, common=True,
            aliases=(("asm5", "close"), ("asm10", "close"), ("asm20", "close"), ("full", "lastz")),
        ),
    ] = "auto"  # fmt: skip
    seed: Annotated[
        str, About("Pattern of a seed: 12of19, 14of22, a number of bases, or ones and zeros", panel=SEEDING, source="LASTZ")
    ] = "12of19"
    notransition: Annotated[bool, About("Want seeds that agree in every base that counts", panel=SEEDING)] = False
    step: Annotated[int, About("Take seeds from every so many-th base of the target", 1, 1000, panel=SEEDING)] = 1
    max_copies: Annotated[
        int, About("Leave out words that stand in more places of the target", 1, 100_000, panel=SEEDING)
    ] = 1000
    sensitive: Annotated[bool, About("Extend every seed with gaps, without an ungapped filter: slow", panel=SEEDING)] = False
    hspthresh: Annotated[int, About("Least score of an ungapped match", 1, 1_000_000, panel=ALIGNMENT, source="LASTZ")] = (
        3000
    )
    ydrop: Annotated[
        int,
        About(
            "End a gapped extension whose score falls so far", 1, LARGEST // 16, unset="a gap of 300 bases", panel=ALIGNMENT,
            source="LASTZ",
        ),
    ] = 9400  # fmt: skip
    gappedthresh: Annotated[
        int, About("Least score of an alignment", 1, LARGEST, unset="as --hspthresh", panel=ALIGNMENT, source="LASTZ")
    ] = 3000
    no_cut: Annotated[bool, About("Keep alignments whole that run through unrelated sequence", panel=FILTER)] = False
    all_copies: Annotated[bool, About("Keep alignments that have better ones on both genomes", panel=FILTER)] = False
    one_to_one: Annotated[bool, About("Let every base be in one alignment at most", panel=FILTER)] = False
    identity: Annotated[float, About("Least share of equal bases in the pairs of an alignment", 0.0, 1.0, panel=FILTER)] = (
        0.0
    )

    def to_dict(self) -> dict[str, Any]:
        """For the report."""
        shown = {name: value for name, value in vars(self).items() if name != "scores"}
        scores = self.scores
        return {**shown, "matrix": scores.matrix.tolist(), "gap_open": scores.open, "gap_extend": scores.extend}


def make_wga_params(values: Mapping[str, Any], scores: GapScores = DEFAULT_SCORES, **thresholds: int) -> WgaParams:
    """Parameters by name; a value that is missing or None follows from the scores, or stays at its default.

    thresholds : of a score file; options come before them.

    Raises
    ------
    ParameterError : a value out of range, or options that contradict each other.
    """
    known = fields_of(WgaParams)
    given = {**thresholds, **given_values(values, known)}
    check(given, known)
    if given.get("one_to_one") and given.get("all_copies"):
        raise ParameterError("--one-to-one and --all-copies: choose one of them")
    kept = [known[name].flags[-1] for name in ("all_copies", "sensitive", "itself") if given.get(name)]
    preset = given.get("preset")
    if preset in ("close", "distant") and kept:
        raise ParameterError(f"--preset {preset} and {kept[0]}: such presets leave copies out early; choose one of them")
    given.setdefault("xdrop", XDROP_MATCHES * int(scores.matrix[0, 0]))
    given.setdefault("close_ydrop", given.get("ydrop", scores.open + CLOSE_YDROP_GAP * scores.extend))
    given.setdefault("ydrop", scores.open + YDROP_GAP * scores.extend)
    given["cut_drop"] = 0 if given.get("no_cut") else given["ydrop"] // 2
    if "hspthresh" in given:
        given.setdefault("gappedthresh", given["hspthresh"])
    return WgaParams(scores=scores, **given)
