"""What a worker sends to its device and fetches from it, by way of pinned memory, and when."""

from __future__ import annotations

from typing import Any

import numpy as np

from bellapy.compute.gpu.ops import driver, upload
from bellapy.compute.gpu.pool import Worker


def sent(worker: Worker, name: str, rows: np.ndarray) -> Any:
    """An array on the device, by way of pinned memory: copies of other memory wait for the kernels of other workers."""
    pinned, there = (room.of(name, len(rows), *rows.shape[1:], dtype=rows.dtype) for room in (worker.pinned, worker.rooms))
    pinned[:] = rows
    upload(pinned, there, worker.stream)
    return there


def fetched(worker: Worker, name: str, there) -> np.ndarray:
    """An array of the device, in pinned memory, once the stream has come there."""
    pinned = worker.pinned.of(name, *there.shape, dtype=there.dtype)
    there.copy_to_host(pinned, stream=worker.stream)
    return pinned


def moment(stream: Any) -> Any:
    """An event, now."""
    event = driver.event()
    event.record(stream)
    return event
