"""What the job may use, and where it notes what it does."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from bellapy.compute.resources import Resources
from bellapy.io.workdir import Workdir
from bellapy.params.run import RunParams
from bellapy.params.wga import WgaParams
from bellapy.report.run_report import RunReport


class Means(NamedTuple):
    """work : keeps results for a run that goes on after a stop; None: nowhere.

    may_use_gpu : whether a GPU that nobody asked for is used if it saves time.
    """

    report: RunReport
    resources: Resources = Resources()
    work: Workdir | None = None
    may_use_gpu: bool = False

    @classmethod
    def of(cls, run: RunParams, report: RunReport, params: WgaParams) -> Means:
        """As parameters say; `auto` takes a GPU where every seed is extended, if that saves time.

        Raises
        ------
        DeviceError : a GPU is asked for and none can be used.
        """
        is_auto = run.device == "auto"
        known = replace(run, device="cpu") if is_auto else run
        return cls(report, Resources.of(known, report.devices), may_use_gpu=is_auto and params.sensitive)
