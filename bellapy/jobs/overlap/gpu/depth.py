"""The k-mers of pieces (depth.py) in all reads, found by a GPU that has the reads; the CPU goes on with these few."""

from __future__ import annotations

import numpy as np

from bellapy.compute.gpu.desk import Desk, desk
from bellapy.compute.gpu.pool import is_out_of_memory
from bellapy.compute.gpu.scan import BLOCK, TILE, begins_of_tiles, blocks_for
from bellapy.compute.resources import Resources
from bellapy.jobs.overlap.depth import HEAD_BITS, MARK_BITS, Table
from bellapy.jobs.overlap.gpu.columns import bring_reads
from bellapy.jobs.overlap.gpu.depth_kernels import Listed, count_listed, write_listed
from bellapy.records import ReadSet
from bellapy.seeding.gpu.kmers_kernels import Wanted

U = np.uint64


def find_listed(reads: ReadSet, table: Table, resources: Resources) -> np.ndarray | None:
    """Hash, and place << 1 | reverse, of all k-mers of the reads that the table has, by place: (2, n) uint64.

    None where the GPU has no room.
    """
    try:
        with desk(resources.devices) as its_desk:
            bring_reads([its_desk], reads, resources)
            return _find(its_desk, its_desk.device.reads.planes, len(reads.codes), table)
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        return None


def _find(its_desk: Desk, planes, n_places: int, table: Table) -> np.ndarray:
    """`find_listed`; planes : (words, 3) uint32 on the device, of n_places bases."""
    wanted = Wanted(
        np.int32(table.k), np.int32(0), np.int64(n_places), table.multiplier, U(4**table.k - 1), U(0), U(1 << table.bits)
    )  # fmt: skip
    to_mark, to_head = (U(max(0, table.bits - bits)) for bits in (MARK_BITS, HEAD_BITS))
    marks, heads, hashes = (its_desk.send(column) for column in (table.marks, table.heads, table.hashes))
    listed = Listed(wanted, to_mark, to_head, marks, heads, hashes)
    n_tiles = blocks_for(n_places, TILE)
    sums = its_desk.empty(n_tiles + 1, np.int64)
    its_desk.launch(count_listed, n_tiles, BLOCK, planes, listed, sums)
    found = its_desk.empty((2, begins_of_tiles(its_desk, sums)), np.uint64)
    its_desk.launch(write_listed, n_tiles, BLOCK, planes, listed, sums, found)
    return its_desk.fetch_much(found)
