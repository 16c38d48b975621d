"""The jobs as functions: files or sequences in, records out.

Nothing here ends the process, reads its command line, handles signals or changes what the process shares; functions may be
called any number of times, by several threads at once.  Errors are those of `bellapy.errors`.  Messages go to the logger
`bellapy`, which stays as the caller has it.  The command line calls the same modules.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bellapy.api.assembling import Assembly, assemble
    from bellapy.api.correcting import correct
    from bellapy.api.extending import extend
    from bellapy.api.genomes import AlignmentTable, wga
    from bellapy.api.mapping import Aligner, Mapping, map
    from bellapy.api.matrices import candidates, count
    from bellapy.api.optimum import ExactAlignment, exact
    from bellapy.api.overlapping import overlap
    from bellapy.api.pairing import PairTable, pairwise
    from bellapy.api.polishing import polish
    from bellapy.api.sequences import SequenceTable
    from bellapy.api.tables import ExtensionTable, Overlap, OverlapTable
    from bellapy.api.windowing import consensus

__all__ = [
    "Aligner",
    "AlignmentTable",
    "Assembly",
    "ExactAlignment",
    "ExtensionTable",
    "Mapping",
    "Overlap",
    "OverlapTable",
    "PairTable",
    "SequenceTable",
    "assemble",
    "candidates",
    "consensus",
    "correct",
    "count",
    "exact",
    "extend",
    "map",
    "overlap",
    "pairwise",
    "polish",
    "wga",
]
MODULES = {
    "assembling": ("Assembly", "assemble"), "correcting": ("correct",), "extending": ("extend",),
    "genomes": ("AlignmentTable", "wga"), "mapping": ("Aligner", "Mapping", "map"), "matrices": ("candidates", "count"),
    "optimum": ("ExactAlignment", "exact"), "overlapping": ("overlap",), "pairing": ("PairTable", "pairwise"),
    "polishing": ("polish",), "sequences": ("SequenceTable",), "tables": ("ExtensionTable", "Overlap", "OverlapTable"),
    "windowing": ("consensus",),
}  # fmt: skip


def __dir__() -> list[str]:
    """What there is, loaded or not."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """A function or class, whose module is loaded when it is asked for: a command needs few of them."""
    module = next((module for module, names in MODULES.items() if name in names), None)
    if module is None:
        raise AttributeError(f"module 'bellapy.api' has no attribute {name!r}")
    return getattr(import_module(f"bellapy.api.{module}"), name)
