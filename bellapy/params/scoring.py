"""Scores of alignments; NamedTuples, because both compilers accept them."""

from typing import Annotated, NamedTuple

from bellapy.errors import ParameterError
from bellapy.params.fields import ALIGNMENT, About, fields_of

Match = Annotated[int, About("Score of a match", 1, 100, panel=ALIGNMENT)]
Mismatch = Annotated[int, About("Score of a mismatch", -100, -1, panel=ALIGNMENT)]
Gap = Annotated[int, About("Score of a gap, per base", -100, -1, panel=ALIGNMENT)]
XDrop = Annotated[
    int, About("Stop where the score falls so far below the best", 0, 16_000, panel=ALIGNMENT, flags=("-x", "--xdrop"))
]

TILT_UNIT = 64
"""Tilted scores are whole numbers of such parts of a score."""


class Scoring(NamedTuple):
    """Linear-gap scores of the extension."""

    match: Match = 1
    mismatch: Mismatch = -1
    gap: Gap = -1
    xdrop: XDrop = 15  # a cell dies when its score falls so far below the best
    tilt: Annotated[int, About("Cost of a base of either read when the end is chosen", unit="parts of TILT_UNIT")] = 0
    fall: Annotated[
        int, About("Stop so far below the best tilted score, never where it is 0", unit="parts of TILT_UNIT")
    ] = 0


class AffineScoring(NamedTuple):
    """Scores with two-piece affine gap costs: a gap of n bases costs min(open1 + n extend1, open2 + n extend2)."""

    match: Annotated[int, About("Score of a match", 1, 100, panel=ALIGNMENT, source="minimap2, noisy reads")] = 2
    mismatch: Annotated[int, About("Score of a mismatch", -100, -1, panel=ALIGNMENT, source="minimap2, noisy reads")] = -4
    open1: Annotated[int, About("Cost of opening a short gap", 0, 10_000, source="minimap2", flags=("--gap-open",))] = 4
    extend1: Annotated[int, About("Cost of each base of it", 1, 1000, source="minimap2", flags=("--gap-extend",))] = 2
    open2: Annotated[int, About("Cost of opening a long gap", 0, 10_000, source="minimap2", flags=("--gap-open",))] = 24
    extend2: Annotated[int, About("Cost of each base of it", 1, 1000, source="minimap2", flags=("--gap-extend",))] = 1
    unknown: Annotated[int, About("Score of an unknown base against anything")] = -1


def affine_scoring(
    base: AffineScoring, match: int | None = None, mismatch: int | None = None, gap_open: str | None = None,
    gap_extend: str | None = None,
) -> AffineScoring:  # fmt: skip
    """Scores of a base with those of them replaced that are given.

    gap_open, gap_extend : "N" or "N,N" as options have them; one value for both means one piece.

    Raises
    ------
    ParameterError : a value out of range, or unequal numbers of values.
    """
    opens = [base.open1, base.open2] if gap_open is None else _numbers("--gap-open", gap_open)
    extends = [base.extend1, base.extend2] if gap_extend is None else _numbers("--gap-extend", gap_extend)
    if len(opens) != len(extends):
        raise ParameterError("--gap-open and --gap-extend: give as many values to one as to the other")
    made = base._replace(
        match=base.match if match is None else match, mismatch=base.mismatch if mismatch is None else mismatch,
        open1=opens[0], extend1=extends[0], open2=opens[-1], extend2=extends[-1],
    )  # fmt: skip
    for name, field in fields_of(AffineScoring).items():
        field.check(getattr(made, name))
    return made


def _numbers(option: str, text: str) -> list[int]:
    try:
        values = [abs(int(value)) for value in text.split(",")]
    except ValueError:
        raise ParameterError(f"{option} {text}: one or two whole numbers are needed, such as 4,24") from None
    if len(values) > 2:
        raise ParameterError(f"{option} {text}: at most two values")
    return values
