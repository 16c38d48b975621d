"""Parameters of `bellapy exact`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from bellapy.params.fields import ALIGNMENT, About, checked

MODES = ("local", "global", "semiglobal")
STRANDS = ("both", "forward", "reverse")
GPU_CELLS = 1 << 33
"""Fewer cells are computed by a CPU before a GPU is ready."""


@dataclass(frozen=True)
class ExactParams:
    """What an optimal alignment of two sequences is (engines/exact/); the scores are those of CUDAlign and MASA."""

    mode: Annotated[
        str,
        About(
            "Align the best part of both, both from end to end, or so that gaps at the ends of either cost nothing",
            choices=MODES,
            panel=ALIGNMENT,
        ),  # fmt: skip
    ] = "local"
    strand: Annotated[str, About("Strands of A to align with B", choices=STRANDS, panel=ALIGNMENT)] = "both"
    match: Annotated[int, About("Score of a match", 1, 100, panel=ALIGNMENT, source="CUDAlign")] = 1
    mismatch: Annotated[int, About("Score of a mismatch", -100, -1, panel=ALIGNMENT, source="CUDAlign")] = -3
    gap_open: Annotated[
        int,
        About(
            "Cost of opening a gap: one of g bases costs open + g x extend, as in minimap2, BWA, WFA and BLAST. In CUDAlign "
            "and parasail the first base of a gap costs both at once: 3 and 2 here are 5 and 2 there",
            0,
            10_000,
            panel=ALIGNMENT,
            source="CUDAlign",
        ),  # fmt: skip
    ] = 3
    gap_extend: Annotated[
        int, About("Cost of every base of a gap, the first one too", 1, 1000, panel=ALIGNMENT, source="CUDAlign")
    ] = 2


def make_exact_params(values: Mapping[str, Any]) -> ExactParams:
    """Parameters by name; a value that is missing or None is left at its default."""
    return ExactParams(**checked(values, ExactParams))
