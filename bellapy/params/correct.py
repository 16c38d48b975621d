"""Parameters of `bellapy correct` and `bellapy consensus`; numbers without a source were chosen by measurement."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

from bellapy.errors import ParameterError
from bellapy.params.fields import (
    ALIGNMENT,
    FILTER,
    LARGEST,
    OUTPUT,
    About,
    check,
    checked,
    fields_of,
    given_values,
    options_of,
)
from bellapy.params.overlap import FIELDS, KmerParams, Params, PresetParams, make_params

SHORTEST_USED = 500  # bases of an overlap; shorter than most that `overlap` reports, for the ends of reads
_MIN_OVERLAP = FIELDS["min_overlap"]
FINDING = {
    **options_of(PresetParams), **{name: fields_of(KmerParams)[name] for name in ("error_rate", "depth")},
    "min_overlap": replace(_MIN_OVERLAP, default=SHORTEST_USED, about=replace(_MIN_OVERLAP.about, unset="")),
}  # fmt: skip
"""Options of `overlap` that rule how the overlaps of `correct` are found."""
TAKEN = {
    f"min_read_{what}": replace(field, name=f"min_read_{what}")
    for what in ("length", "quality")
    for field in [FIELDS[f"min_{what}"]]
}
"""Those that rule which reads are taken: the option --min-length is about what is written."""


@dataclass(frozen=True)
class CorrectParams:
    """How reads are corrected (jobs/correct/)."""

    min_support: Annotated[
        int, About("Other reads that a place needs to be changed", 1, 1000, panel=FILTER, common=True, source="CONSENT")
    ] = 3
    max_depth: Annotated[int, About("Reads used in any place, the most alike first", 4, 1000, panel=FILTER, common=True)] = (
        60
    )
    rounds: Annotated[
        int | None,
        About("How often the consensus is found", 1, 10, unset="2, or 3 for noisy reads", panel=ALIGNMENT, common=True),
    ] = None
    no_phase: Annotated[
        bool, About("Use reads of other haplotypes and repeat copies too", panel=FILTER, flags=("--no-phase",), common=True)
    ] = False
    min_length: Annotated[
        int, About("Leave out shorter reads and pieces", 0, LARGEST, unit="bases", panel=OUTPUT, common=True)
    ] = 0
    trim: Annotated[bool, About("Cut ends with too little support", panel=OUTPUT, flags=("--trim",), common=True)] = False
    split: Annotated[
        bool,
        About("Cut out what has too little support; pieces are read:from-to", panel=OUTPUT, flags=("--split",), common=True),
    ] = False
    lowercase: Annotated[
        bool,
        About("Write bases with too little support in lower case", panel=OUTPUT, flags=("--lowercase",), common=True),
    ] = False


def make_correct_params(values: Mapping[str, Any]) -> CorrectParams:
    """Parameters by name; a value that is missing or None is left at its default.

    Raises
    ------
    ParameterError : a value out of range, or options that contradict each other.
    """
    given = checked(values, CorrectParams)
    if given.get("trim") and given.get("split"):
        raise ParameterError("--trim and --split: --split cuts the ends too; leave --trim out")
    return CorrectParams(**given)


def make_finding_params(values: Mapping[str, Any]) -> Params:
    """How overlaps are found, and which reads are taken; values : of FINDING and TAKEN by name.

    Raises
    ------
    ParameterError : a value out of range, or an unknown preset.
    """
    check(given_values(values, TAKEN), TAKEN)
    finding = {"min_overlap": SHORTEST_USED, **given_values(values, FIELDS.keys() & FINDING.keys())}
    taken = {name.replace("read_", ""): value for name, value in given_values(values, TAKEN).items()}
    return make_params(values.get("preset"), **finding, **taken)


class PoaScoring(NamedTuple):
    """Scores of partial-order alignment, with linear gap costs; an unknown base matches nothing."""

    match: Annotated[int, About("Score of a match", 1, 100, panel=ALIGNMENT, source="racon")] = 3
    mismatch: Annotated[int, About("Score of a mismatch", -100, -1, panel=ALIGNMENT, source="racon")] = -5
    gap: Annotated[int, About("Score of a gap, per base", -100, -1, panel=ALIGNMENT, source="racon")] = -4


class ConsensusWriting(NamedTuple):
    """What `consensus` writes."""

    msa: Annotated[bool, About("Write the sequences with gaps instead of the consensus", panel=OUTPUT, flags=("--msa",))] = (
        False
    )
