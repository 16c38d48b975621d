"""Tasks on the workers of a Dask scheduler (extra `cluster`), which all see the folder under the same name."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from bellapy.errors import BellapyError

RETRIES = 2  # of a task that ended with an error; the scheduler itself starts those of lost workers again
PATIENCE = "30s"  # until the scheduler answers


class Cluster:
    """The workers of a Dask scheduler.

    Parameters
    ----------
    job : the module whose functions `warm_up()` and `do_task(folder, number)` the workers call.
    """

    def __init__(self, address: str, job: str, folder: str):
        self._address, self._job, self._folder = address, job, os.path.abspath(folder)
        self._dask: Any = None
        self._client: Any = None

    def __enter__(self) -> Cluster:
        try:
            import distributed
        except ImportError as error:
            raise BellapyError(f"--scheduler {self._address}: needs Dask: pip install distributed") from error
        try:
            self._dask = distributed
            self._client = distributed.Client(self._address, timeout=PATIENCE, set_as_default=False)
        except OSError as error:
            raise BellapyError(f"--scheduler {self._address}: no Dask scheduler answers there ({error})") from error
        self._compile()
        return self

    def __exit__(self, *error: object) -> None:
        self._client.close()

    def _compile(self) -> None:
        """Let one worker of every machine compile first: many that fill one cache of compiled code at once may crash."""
        workers = self._client.scheduler_info()["workers"]
        hosts = {told["host"]: address for address, told in workers.items()}
        for future in [
            self._client.submit(_call, self._job, "warm_up", workers=[address], pure=False) for address in hosts.values()
        ]:
            future.result()

    def run(self, numbers: Sequence[int]) -> Iterator[int]:
        """Hand out all tasks."""
        futures = {
            self._client.submit(_call, self._job, "do_task", self._folder, number, pure=False, retries=RETRIES): number
            for number in numbers
        }
        for future in self._dask.as_completed(list(futures), loop=self._client.loop):
            if future.status != "finished":
                raise BellapyError(f"task {futures[future]} failed on the cluster: {future.exception()}")
            yield futures[future]


def _call(job: str, function: str, *arguments: Any) -> None:
    """Call a function of a job's module, on a worker."""
    getattr(import_module(job), function)(*arguments)
