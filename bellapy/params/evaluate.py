"""Parameters of `bellapy evaluate`."""

from typing import Annotated, NamedTuple

from bellapy.params.fields import FILTER, INPUT, LARGEST, OUTPUT, About


class EvaluateParams(NamedTuple):
    """Which pairs count, and what is told of them."""

    overlap_format: Annotated[
        str,
        About(
            "Format; bella stands for the 12 columns of BELLA", choices=("paf", "bella"), panel=INPUT, flags=("--format",)
        ),
    ] = "paf"
    min_overlap: Annotated[int, About("Reference bases that a true pair shares", 1, LARGEST, panel=FILTER)] = 2000
    grey: Annotated[
        int,
        About(
            "Pairs that share from so many bases up to --min-overlap are left out of the figures", 0, LARGEST, panel=FILTER
        ),
    ] = 500
    min_span: Annotated[int, About("Leave out lines shorter than this on both reads", 0, LARGEST, panel=FILTER)] = 0
    end_to_end: Annotated[
        int | None,
        About(
            "Leave out lines with longer overhangs: bases unaligned on both reads at one end",
            0,
            LARGEST,
            unset="none",
            panel=FILTER,
        ),
    ] = None
    bins: Annotated[
        str | None, About("Recall by length of the true overlap too: borders such as 2000,5000", unset="none", panel=OUTPUT)
    ] = None
    false_pairs: Annotated[
        str | None, About("Write the false pairs to this file", panel=OUTPUT, flags=("--false-list",), metavar="FILE")
    ] = None
