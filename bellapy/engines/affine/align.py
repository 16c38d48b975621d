"""Batches of pieces -> alignments, on the CPU or on GPUs: scores and paths are the same.

`BACKENDS` names what can do it.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import local

import numpy as np

from bellapy.compute.resources import Resources
from bellapy.engines.affine.batch_cpu import Aligner, Effort
from bellapy.engines.affine.pieces import Pieces, Solved
from bellapy.params import AffineScoring

Align = Callable[[np.ndarray, np.ndarray, Pieces, Effort], Solved]
"""Query and target codes, pieces, effort: as `Aligner.align`."""


def _cpu(scoring: AffineScoring, paths: bool, resources: Resources) -> Align:
    mine = local()

    def align(query: np.ndarray, target: np.ndarray, pieces: Pieces, effort: Effort) -> Solved:
        if not hasattr(mine, "aligner"):
            mine.aligner = Aligner(scoring)
        return mine.aligner.align(query, target, pieces, effort)

    return align


def _cuda(scoring: AffineScoring, paths: bool, resources: Resources) -> Align:
    from bellapy.engines.affine.gpu.batch import GpuAligner

    return GpuAligner(scoring, paths, resources).align


BACKENDS: dict[str, Callable[[AffineScoring, bool, Resources], Align]] = {"cpu": _cpu, "cuda": _cuda}


def make_align(scoring: AffineScoring, paths: bool, resources: Resources) -> Align:
    """What aligns pieces: on a CPU it may be called by several threads, for GPUs it takes threads by itself.

    scoring : from rule.ordered.  paths : whether they are wanted; scores alone are faster on GPUs.
    """
    return BACKENDS[resources.device](scoring, paths, resources)
