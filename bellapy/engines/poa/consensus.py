"""The consensus of windows on the device that is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import local

import numpy as np

from bellapy.compute.resources import Resources
from bellapy.compute.threads import map_threads
from bellapy.engines.poa.groups import NOT_SOLVED, Groups
from bellapy.engines.poa.windows import Aligner, Window
from bellapy.params.correct import PoaScoring


def make_aligner(scoring: PoaScoring, with_alignment: bool, resources: Resources) -> Callable[[Groups], Iterator[Window]]:
    """A function that gives every window of some groups, in order; safe to call from several threads."""
    mine = local()

    def on_cpu(groups: Groups, w: int) -> Window:
        if not hasattr(mine, "aligner"):
            mine.aligner = Aligner(scoring, with_alignment)
        one = groups.take(w, w + 1)
        return mine.aligner.align(one.codes, one.offsets)

    def all_on_cpu(groups: Groups) -> Iterator[Window]:
        return (on_cpu(groups, w) for w in range(len(groups)))

    if resources.device == "cpu":
        return all_on_cpu
    from bellapy.engines.poa.gpu.batch import align_groups

    def on_gpus(groups: Groups) -> Iterator[Window]:
        solved = align_groups(groups, scoring, with_alignment, resources)
        left = np.flatnonzero(solved.sizes == NOT_SOLVED).tolist()
        others = dict(zip(left, map_threads(lambda w: on_cpu(groups, w), left, resources.threads), strict=True))
        return (others[w] if w in others else solved.window(groups, w) for w in range(len(groups)))

    return on_gpus
