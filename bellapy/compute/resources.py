"""What a job may use, and where it says what it did: the one argument that is handed down to the engines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from bellapy.compute.gpu.devices import choose_device
from bellapy.compute.memory import UNLIMITED, Budget
from bellapy.params import RunParams
from bellapy.report.run_report import Devices


@dataclass(frozen=True)
class Resources:
    """What a job may use.

    threads : of the CPU.
    device : "cpu" or "cuda", which engines know by name.
    budget : may make pieces of work smaller.
    progress : called with the number of items done; None: nobody listens.
    devices : where GPUs, and the CPU that helps them, note what they did in this run.
    """

    threads: int = 1
    device: str = "cpu"
    budget: Budget = UNLIMITED
    progress: Callable[[int], None] | None = None
    devices: Devices = field(default_factory=Devices)

    @classmethod
    def of(cls, run: RunParams, devices: Devices | None = None) -> Resources:
        """As the parameters say; `devices` is that of the run's report.

        Raises
        ------
        DeviceError : a GPU is asked for and none can be used.
        """
        return cls(run.threads, choose_device(run.device), Budget(run.max_memory), None, devices or Devices())
