"""What the job may use, and where it notes what it does."""

from __future__ import annotations

from typing import NamedTuple

from bellapy.compute.resources import Resources
from bellapy.io.workdir import Workdir
from bellapy.report.run_report import RunReport


class Means(NamedTuple):
    """work : keeps results for a run that goes on after a stop; None: nowhere.

    may_use_gpu : whether a GPU that nobody asked for is used if it saves time.
    """

    report: RunReport
    resources: Resources = Resources()
    work: Workdir | None = None
    may_use_gpu: bool = False
