"""Ends of many extensions without walls on an NVIDIA GPU; what it hands back is left to the CPU.

The GPU needs packed instructions for two 16-bit numbers with signs: compute capability 9.0 (H100) and more.
"""

from __future__ import annotations

from threading import Lock
from time import monotonic
from typing import NamedTuple

import numpy as np

from bellapy.compute.gpu.devices import known_gpus
from bellapy.compute.gpu.ops import I32, SIMULATED, WARP, current_card, driver, kernel_of
from bellapy.compute.gpu.pool import FULL, give_to_cpu, is_out_of_memory
from bellapy.engines.ydrop.gpu.inspect_kernels import (
    CHUNK,
    DEAD,
    ENDED,
    LIVING,
    MOST_SCORE,
    OUTGROWN,
    PAD,
    R_BEST,
    R_LAST,
    SCORE,
    STATUS,
    WARPS,
    Costs,
    both,
    make_kernel,
)
from bellapy.params.wga import GapScores
from bellapy.records.bases import UNKNOWN
from bellapy.report.run_report import Devices

CLASSES = ((1, 2, 3), (2, 3, 4)) if SIMULATED else ((4, 6, 7), (5, 10, 16))
"""Registers of a lane; what outgrows the windows of one goes on, from its beginning, in those of the next."""
BLOCKS = 1 if SIMULATED else 5  # of a processor
MOST_SIDES = 1 << 22  # at a time
_one_at_a_time = Lock()
"""Two threads that load one kernel would make numba-cuda fail."""


class Ends(NamedTuple):
    """score, r, last : (n,) int32: of an end its score and anti-diagonal, and the last anti-diagonal looked at.

    done : (n,) bool, False for what is left to the CPU.  n_cells : computed.
    """

    score: np.ndarray
    r: np.ndarray
    last: np.ndarray
    done: np.ndarray
    n_cells: int


def fits(scores: GapScores, ydrop: int) -> bool:
    """Whether scores are bytes, and all that an extension compares stays within 16 bits."""
    opened, falls = scores.open + scores.extend, CHUNK // 2 * (MOST_SCORE + 1)
    return (
        int(np.abs(scores.matrix).max()) <= MOST_SCORE
        and ydrop + MOST_SCORE < LIVING
        and max(opened + falls, CHUNK * scores.extend) < DEAD
    )


def is_packed() -> bool:
    """Whether the current GPU has the instructions."""
    return SIMULATED or current_card().compute_capability >= (9, 0)


def free_bases(codes: np.ndarray, places: np.ndarray, step: int) -> np.ndarray:
    """Known bases in sequence from each place on, (n,) int64; step : 1 or -1."""
    unknown = np.concatenate(([-1], np.flatnonzero(codes >= UNKNOWN), [len(codes)]))
    if step > 0:
        return unknown[np.searchsorted(unknown, places)] - places
    return places - unknown[np.searchsorted(unknown, places, "right") - 1]


def sides_of(target: np.ndarray, query: np.ndarray, t: np.ndarray, q: np.ndarray, step: int) -> np.ndarray:
    """Rows of `sides` for the kernel, (n, 5) int32, from the places of base 1 of each side; codes of whole genomes."""
    free = free_bases(target, t, step), free_bases(query, q, step)
    return np.stack([t, q, np.full(len(t), step), *free], axis=1, dtype=np.int32, casting="same_kind")


def inspect(target, query, sides: np.ndarray, scores: GapScores, ydrop: int, devices: Devices) -> Ends:
    """Ends of extensions; target, query : uint8 codes, here or on the GPU.  sides : see `sides_of`.

    devices : gets what the GPU did.  Where its memory is too small nothing is done.
    """
    found, done, n_cells = np.zeros((len(sides), 4), np.int32), np.zeros(len(sides), np.bool_), 0
    begin = monotonic()
    with _one_at_a_time:
        try:
            texts = [_padded(text) for text in (target, query)]
            for at in range(0, len(sides), MOST_SIDES):
                rows = slice(at, at + MOST_SIDES)
                n_cells += _inspect(texts, sides[rows], scores, ydrop, found[rows])
                done[rows] = found[rows, STATUS] == ENDED
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            give_to_cpu(devices, FULL, extensions=len(sides) - int(done.sum()))
    devices.add(
        0, known_gpus()[0].name, extensions=int(done.sum()), cells=n_cells, kernel_s=monotonic() - begin,
        uploaded_bases=len(target) + len(query),
    )  # fmt: skip
    return Ends(found[:, SCORE], found[:, R_BEST], found[:, R_LAST], done, n_cells)


def _inspect(texts, sides: np.ndarray, scores: GapScores, ydrop: int, found: np.ndarray) -> int:
    """Fill the rows of `found`, as the kernel does; returns cells computed."""
    rule, rows, some, n_cells = _rule(scores, ydrop), None, sides, 0  # rows: numbers of the sides; None: all
    for sizes in CLASSES:
        if not len(some):
            break
        results, more = _launch(sizes, texts, some, rule)
        if rows is None:
            results.copy_to_host(found)
        else:
            found[rows] = results.copy_to_host()
        n_cells += more
        rows = np.flatnonzero(found[:, STATUS] == OUTGROWN)
        some = sides[rows]
    return n_cells


def _rule(scores: GapScores, ydrop: int):
    """Words and costs for the kernel."""
    matrix = scores.matrix[:4, :4].astype(np.int64) & 0xFF  # by target, then query
    words = driver.to_device((matrix.T * (1 << 8 * np.arange(4))).sum(axis=1).astype(np.uint32))
    rise = max(0, CHUNK // 2 * int(scores.matrix[:4, :4].max()))
    return words, Costs(both(DEAD), both(scores.open + scores.extend), both(-scores.extend), I32(ydrop), I32(rise))


def _launch(sizes: tuple[int, int, int], texts, sides: np.ndarray, rule):
    """Results of the kernel for windows of these sizes, on the GPU, and cells computed."""
    number, processors = (0, 1) if SIMULATED else _numbers()
    results, counts = driver.device_array((len(sides), 4), np.int32), driver.to_device(np.zeros(2, np.int64))
    blocks = min(BLOCKS * processors, (len(sides) + WARPS - 1) // WARPS)
    kernel = kernel_of(make_kernel(*sizes), number)
    kernel[blocks, WARPS * WARP](*texts, driver.to_device(sides), *rule, counts, results)
    return results, int(counts.copy_to_host()[1])


def _padded(codes):
    """Codes on the GPU, with PAD of any kind at both ends."""
    there = driver.device_array(len(codes) + 2 * PAD, np.uint8)
    there[PAD : PAD + len(codes)].copy_to_device(codes)
    return there


def _numbers() -> tuple[int, int]:
    """The current GPU's number, and its processors."""
    device = current_card()
    return device.id, device.MULTIPROCESSOR_COUNT
