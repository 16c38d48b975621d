"""Minimizers on a GPU: the same as minimizers.py finds, of all stretches at once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bellapy.compute.gpu.desk import Desk
from bellapy.compute.gpu.planes import BASES, pack_planes
from bellapy.compute.gpu.scan import BLOCK, TILE, begins_of_tiles, blocks_for
from bellapy.compute.threads import even_ranges, map_threads
from bellapy.records.table import frozen
from bellapy.seeding.gpu.minimizers_kernels import FLAGS, list_minimizers, mark_minimizers

LEAST_PART = 1 << 20  # bases that a thread packs


class Minimizers(NamedTuple):
    """Minimizers on a device, in the order of places.

    hashes : (n,) uint64.  marks : (n,) int64, place << 1 | strand, 1 where the reverse complement is the canonical form.
    """

    hashes: Any
    marks: Any


def planes_of(codes: np.ndarray, threads: int) -> np.ndarray:
    """The bit planes of codes, (words, 3) uint32; codes : uint8, packed by so many threads."""
    words = -(-len(codes) // BASES)
    planes = np.empty((words, 3), np.uint32)

    def pack(some: tuple[int, int]) -> None:
        begin, end = some
        pack_planes(frozen(codes[BASES * begin : BASES * end]), planes[begin:end])

    map_threads(pack, even_ranges(words, max(1, min(threads, len(codes) // LEAST_PART))), threads)
    return planes


def send_planes(desk: Desk, codes: np.ndarray, threads: int) -> Any:
    """The bit planes of codes on the device."""
    return desk.send(planes_of(codes, threads))


def find_on_gpu(desk: Desk, planes: Any, k: int, window: int, begins: np.ndarray, lengths: np.ndarray) -> Minimizers:
    """The minimizers of some stretches of bases, none of which is in two.

    planes : of `send_planes`.  begins, lengths : (n,) int64, of the stretches, ascending.
    """
    n_tiles = blocks_for(int((begins + lengths).max(initial=0)), TILE)
    flags, sums = desk.empty(n_tiles * FLAGS, np.uint32), desk.empty(n_tiles + 1, np.int64)
    desk.launch(
        mark_minimizers, n_tiles, BLOCK, planes, np.int32(k), np.int32(window), desk.send(begins), desk.send(lengths), flags,
        sums,
    )  # fmt: skip
    n = begins_of_tiles(desk, sums)
    found = Minimizers(desk.empty(n, np.uint64), desk.empty(n, np.int64))
    desk.launch(list_minimizers, n_tiles, BLOCK, planes, np.int32(k), flags, sums, *found)
    return found
