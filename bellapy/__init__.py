"""Jobs of long-read alignment on one engine for CPU and GPU.

From the bottom to the top: `errors`; `params`, every default; `records`, the arrays that flow between stages; `report`,
`compute`, what all programs need; `seeding`, k-mers and their places; `engines`, which align; `io`, files; `jobs`, each with
its `pipeline`; `api`, the jobs as functions; `cli`, the commands.  Nothing imports from above.
"""

from typing import TYPE_CHECKING, Any

from bellapy.version import __version__

if TYPE_CHECKING:
    from bellapy.api import (
        Aligner,
        assemble,
        candidates,
        consensus,
        correct,
        count,
        exact,
        extend,
        map,
        overlap,
        pairwise,
        polish,
        wga,
    )

__all__ = [
    "Aligner", "__version__", "assemble", "candidates", "consensus", "correct", "count", "exact", "extend", "map", "overlap",
    "pairwise", "polish", "wga",
]  # fmt: skip


def __dir__() -> list[str]:
    """What there is, loaded or not."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """The functions of `bellapy.api`, loaded when they are asked for: the command line's help needs none of them."""
    if name not in __all__:
        raise AttributeError(f"module 'bellapy' has no attribute {name!r}")
    from bellapy import api

    return getattr(api, name)
