"""pysam, loaded when it is needed; in a process of ours htslib says nothing to standard error, as errors are told anyway."""

from __future__ import annotations

from types import ModuleType

from bellapy.compute import own_process


def load_pysam() -> ModuleType:
    """The module."""
    import pysam

    if own_process.is_claimed():
        pysam.set_verbosity(0)
    return pysam
