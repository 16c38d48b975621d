"""Parameters of `bellapy assemble` and `bellapy polish`; numbers without a source were chosen by measurement."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from bellapy.params.correct import CorrectParams, make_correct_params
from bellapy.params.fields import ALIGNMENT, FILTER, LARGEST, OUTPUT, SEEDING, About, check, checked, fields_of, given_values

MIN_DEPTH = 3  # other reads that support a read, as in miniasm
LIKE, EACH = 0.01, 8  # errors of overlaps up to which one other read is enough for so many that lie over a base
STEPS = 3  # times what lies between the ends of two reads as a rule: one end in twenty of a chromosome lies farther out
TRUSTED_OVERLAP = 1000  # bases of an overlap that joins reads
MOST_ROUNDS, SETTLED = 3, 0.00002  # of polishing, and share of changed bases from which on a further round does not pay
ROUNDS = About(
    "How often contigs are polished by the reads", 0, 10, unset="until fewer than 1 base of 50,000 changes, at most 3 times",
    panel=ALIGNMENT, common=True,
)  # fmt: skip


@dataclass(frozen=True)
class AssembleParams:
    """How reads become contigs (jobs/assemble/)."""

    min_depth: Annotated[
        int | None,
        About(
            "Other reads that a part of a read needs to be used", 1, 1000,
            unset="3; 2 under 24X and 1 under 16X where overlaps have up to 1 % errors", panel=FILTER, common=True,
        ),
    ] = None  # fmt: skip
    min_reads: Annotated[int, About("Reads that a contig is made of at least", 1, LARGEST, panel=FILTER, common=True)] = 4
    min_contig: Annotated[int, About("Leave out shorter contigs", 0, LARGEST, unit="bases", panel=OUTPUT, common=True)] = (
        1000
    )
    min_overlap: Annotated[
        int, About("Shortest overlap that joins reads", 100, LARGEST, unit="bases", panel=SEEDING, common=True)
    ] = TRUSTED_OVERLAP
    haplotypes: Annotated[
        int, About("How many haplotypes are assembled apart, where they differ", 1, 16, panel=FILTER, common=True)
    ] = 1
    fast: Annotated[bool, About("Do not correct reads before they are joined", panel=SEEDING, common=True)] = False
    rounds: Annotated[int | None, ROUNDS] = None

    def min_depth_at(self, errors: float, depth: float) -> int:
        """Other reads that a part of a read needs to be used.

        errors : share of the columns of overlaps.  depth : others that lie over a base as a rule.
        """
        of_like = int(min(max(1, depth / EACH), MIN_DEPTH))
        return self.min_depth or (of_like if errors <= LIKE else MIN_DEPTH)

    def tail_at(self, errors: float, depth: float, length: float) -> int:
        """Bases at the end of a read that no other covers and that are used, as reads may be few; 0: all need `min_depth`.

        errors : share of the columns of overlaps, before correction.  depth : others that lie over a base as a rule.
        length : bases of a read as a rule.
        """
        return int(STEPS * length / max(1, depth)) if self.min_depth is None and errors <= LIKE else 0


@dataclass(frozen=True)
class PolishParams:
    """How contigs are polished (jobs/correct/contigs.py); the rest is as in CorrectParams."""

    rounds: Annotated[int | None, ROUNDS] = None


class AssembleWriting(NamedTuple):
    """What `assemble` writes beside its output."""

    gfa: Annotated[
        str | None,
        About("Write the graph to this file, as GFA 1.2", panel=OUTPUT, flags=("--gfa",), metavar="FILE", common=True),
    ] = None
    read_table: Annotated[
        str | None,
        About(
            "Write what became of every read to this file, as a table with tabs", panel=OUTPUT, flags=("--read-table",),
            metavar="FILE", common=True,
        ),
    ] = None  # fmt: skip


def make_assemble_params(values: Mapping[str, Any]) -> AssembleParams:
    """Parameters by name; a value that is missing or None is left at its default.

    Raises
    ------
    ParameterError : a value out of range.
    """
    return AssembleParams(**checked(values, AssembleParams))


POLISHING = {name: fields_of(CorrectParams)[name] for name in ("min_support", "max_depth", "no_phase")}
"""Options of `correct` that rule what reads change in contigs, too."""


def make_polish_params(values: Mapping[str, Any]) -> tuple[CorrectParams, int | None]:
    """How reads correct contigs, and how often, by name; a value that is missing or None is left at its default.

    Raises
    ------
    ParameterError : a value out of range.
    """
    rounds = values.get("rounds")
    check(given_values(values, ["rounds"]), fields_of(PolishParams))
    return make_correct_params(given_values(values, POLISHING)), rounds
