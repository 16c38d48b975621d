"""Defaults and ranges of `bellapy correct`; numbers without a source were chosen by measurement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bellapy.errors import ParameterError
from bellapy.params import Range, check_values

CORRECT_RANGES: dict[str, Range] = {
    "min_support": Range(1, 1000),
    "max_depth": Range(4, 1000),
    "rounds": Range(1, 10),
    "min_length": Range(0, 2**31 - 1),
}


@dataclass(frozen=True)
class CorrectParams:
    """How reads are corrected (jobs/correct/)."""

    min_support: int = 3  # other reads that a column needs to be changed; CONSENT's default is 4 reads with the template
    max_depth: int = 60  # reads used in any place, the most alike first
    rounds: int | None = None  # 2; 3 for reads with more than 16 % errors
    phase: bool = True  # leave out reads of other haplotypes and copies
    min_length: int = 0  # shorter reads and pieces are not written
    trim: bool = False  # cut unsupported ends
    split: bool = False  # cut out unsupported stretches
    lowercase: bool = False  # write unsupported bases in lower case


def make_correct_params(**options: Any) -> CorrectParams:
    """Parameters by name; an option that is None is left at its default.

    Raises
    ------
    ParameterError : a value out of range, or options that contradict each other.
    """
    given = {name: value for name, value in options.items() if value is not None}
    check_values(given, CORRECT_RANGES)
    if given.get("trim") and given.get("split"):
        raise ParameterError("--trim and --split: --split cuts the ends too; leave --trim out")
    return CorrectParams(**given)
