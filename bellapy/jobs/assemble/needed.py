"""Which reads are worth correcting: those that few others contain."""

from __future__ import annotations

import numpy as np

from bellapy.jobs.assemble.hits import Hits, sort_kinds
from bellapy.records import Overlaps

CONTAINERS = 6  # of a read that is left out, for each haplotype
OVERHANG, SHARE = 100, 0.9  # of overlaps that say so


def needed_reads(overlaps: Overlaps, lengths: np.ndarray, haplotypes: int, min_overlap: int) -> np.ndarray:
    """Mask of the reads that are in fewer than some others, and are as long as an overlap has to be.

    What is left out would be found inside another read after correction, too.  Over every place at least as many reads stay
    as a read that is left out has around it: the longest ones.
    """
    hits = Hits.of(overlaps)
    kinds = sort_kinds(hits, lengths.astype(np.int64), OVERHANG, SHARE)
    inner = np.concatenate([hits.query[kinds.query_inside], hits.target[kinds.target_inside]])
    return (np.bincount(inner, minlength=len(lengths)) < CONTAINERS * haplotypes) & (lengths >= min_overlap)
