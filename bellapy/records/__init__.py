"""The arrays that flow between stages, one frozen record each.

Kernels trust them.  What comes from a file is not to be trusted: `check` of a record says what kernels count on, and raises
ValueError with the name of the field that is wrong.

Positions are 0-based and intervals half-open, on the forward strand of each read.  `strand` is +1 when query and target
run the same way and -1 when they do not.  Arrays are made read-only: a stage builds new ones.
"""

from bellapy.records.alignments import Extensions, Overlaps, Paths, join_overlaps, join_paths
from bellapy.records.estimate import Estimate
from bellapy.records.kmers import DepthProfile, KmerMatrix
from bellapy.records.reads import ReadSet
from bellapy.records.seeds import Anchors, Seeds

__all__ = [
    "Anchors", "DepthProfile", "Estimate", "Extensions", "KmerMatrix", "Overlaps", "Paths", "ReadSet", "Seeds",
    "join_overlaps", "join_paths",
]  # fmt: skip
