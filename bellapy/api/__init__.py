"""The jobs as functions: files or sequences in, records out.

Nothing here ends the process, reads its command line, handles signals or changes what the process shares; functions may be
called any number of times, by several threads at once.  Errors are those of `bellapy.errors`.  Messages go to the logger
`bellapy`, which stays as the caller has it.  The command line calls the same modules.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bellapy.api.assembling import Assembly, assemble
    from bellapy.api.extending import extend
    from bellapy.api.mapping import Aligner, Mapping, map
    from bellapy.api.matrices import candidates, count
    from bellapy.api.overlapping import overlap
    from bellapy.api.tables import ExtensionTable, Overlap, OverlapTable

__all__ = [
    "Aligner",
    "Assembly",
    "ExtensionTable",
    "Mapping",
    "Overlap",
    "OverlapTable",
    "assemble",
    "candidates",
    "count",
    "extend",
    "map",
    "overlap",
]
MODULES = {
    "assembling": ("Assembly", "assemble"), "extending": ("extend",), "mapping": ("Aligner", "Mapping", "map"),
    "matrices": ("candidates", "count"), "overlapping": ("overlap",),
    "tables": ("ExtensionTable", "Overlap", "OverlapTable"),
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
