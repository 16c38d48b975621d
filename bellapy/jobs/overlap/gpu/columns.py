"""The columns of a matrix on a GPU, from counting to the product: they leave it only where the CPU has to go on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bellapy.compute.gpu.desk import Desk, desk, desks, on_each
from bellapy.compute.gpu.pool import FULL, give_to_cpu, is_out_of_memory
from bellapy.compute.gpu.scan import BLOCK, TILE, begins_of_tiles, blocks_for, scan, total_of
from bellapy.compute.resources import Resources
from bellapy.compute.threads import shared_by
from bellapy.jobs.overlap.blocks import Kept
from bellapy.jobs.overlap.depth_steps import UNIT, Bins
from bellapy.jobs.overlap.gpu.columns_kernels import (
    LANES,
    TOTALS,
    add_company,
    add_to_profile,
    add_votes,
    copy_kept,
    count_firsts,
    count_in_repeats,
    list_firsts,
    size_kept,
    survey_columns,
)
from bellapy.jobs.overlap.linking import N_KINDS, REPEAT, Rules, Tests
from bellapy.jobs.overlap.repeats import Voting
from bellapy.records import ReadSet
from bellapy.records.kmers import Held
from bellapy.report.run_report import Devices
from bellapy.seeding.gpu.kmers import can_count, count_on_gpus
from bellapy.seeding.kmer_matrix import MOST_COPIES
from bellapy.seeding.kmers import KmerCounts

SHARED_PLACES = 1 << 28  # for each GPU: fewer k-mers are counted before another one has the bases
LONG = "k-mers that long, of that many bases, do not fit the words of a GPU: the CPU counts them"


class DeviceColumns(Held):
    """Entries of a KmerMatrix on the first GPU.

    devices : where it is noted what the GPU does.
    """

    def __init__(self, entries: Any, devices: Devices):
        self.entries, self._devices = entries, devices
        self._begins: Any = None
        self._bins: tuple[Bins, Bins] | None = None  # here, and there

    def __len__(self) -> int:
        return int(self.entries.size)

    def on_host(self) -> np.ndarray:
        """The entries, in memory of the host."""
        with desk(self._devices) as its_desk:
            return its_desk.fetch_much(self.entries)

    def profile(self, *bins: Any) -> tuple[np.ndarray, np.ndarray]:
        """Entries and copies in every bin, as DepthProfile has them: (n_bins,) uint32 each; bins : what Bins consists of."""
        with desk(self._devices) as its_desk:
            there = self._there(its_desk, Bins(*bins))
            counts = [its_desk.zeros(int(bins[2][-1]), np.uint32) for _ in range(2)]
            self._over_entries(its_desk, add_to_profile, there, MOST_COPIES, *counts)
            n_kmers, copies = (its_desk.fetch_much(column) for column in counts)
        return n_kmers, copies

    def company(self, bins: Bins, runs: np.ndarray, n_runs: int) -> np.ndarray:
        """What `depth_steps.add_company` adds, (2, n_runs) uint32."""
        with desk(self._devices) as its_desk:
            found = its_desk.zeros((2, n_runs), np.uint32)
            self._over_columns(its_desk, add_company, self._there(its_desk, bins), its_desk.send(runs), UNIT, found)
            return its_desk.fetch(found)

    def votes(self, bins: Bins, upper: int, repeat: np.ndarray, voting: Voting) -> np.ndarray:
        """What `repeats.add_votes` adds, (2, n_bins) uint32."""
        with desk(self._devices) as its_desk:
            there, votes = self._there(its_desk, bins), its_desk.zeros((2, len(repeat)), np.uint32)
            counts = its_desk.zeros((2, self._columns(its_desk).size - 1), np.uint32)
            self._over_entries(its_desk, count_in_repeats, there, upper, its_desk.send(repeat), counts)
            self._over_entries(its_desk, add_votes, there, upper, voting, counts, votes)
            return its_desk.fetch_much(votes)

    def survey(self, tests: Tests) -> tuple[np.ndarray, np.ndarray, int]:
        """Columns and products of each kind, (N_KINDS,) int64, and entries of deep columns in sound bins."""
        with desk(self._devices) as its_desk:
            totals = self._survey(its_desk, tests)[1]
        return totals[:N_KINDS], totals[N_KINDS : 2 * N_KINDS], int(totals[-1])

    def keep(self, rules: Rules) -> tuple[DeviceColumns, Kept]:
        """The columns that link reads, and how many they are."""
        with desk(self._devices) as its_desk:
            kinds, totals, n_apart = self._survey(its_desk, rules.tests)
            found = totals[:N_KINDS]
            kept = -(-found // rules.one_in)
            kept[REPEAT] = 0
            if (rules.one_in[:REPEAT] > 1).any():
                kinds = its_desk.send(thinned(its_desk.fetch(kinds), rules.one_in))
            sizes = its_desk.empty(kinds.size, np.uint32)
            begins = self._columns(its_desk)
            its_desk.launch(size_kept, blocks_for(sizes.size), BLOCK, begins, kinds, sizes)
            to, sums = scan(its_desk, sizes)
            entries = its_desk.empty(total_of(its_desk, sums), self.entries.dtype)
            blocks = blocks_for(LANES * sizes.size)
            its_desk.launch(copy_kept, blocks, BLOCK, self.entries, begins, sizes, to, entries)
            n_apart = its_desk.fetch(n_apart).astype(np.int64)
        return DeviceColumns(entries, self._devices), Kept(len(entries), kept, found, n_apart)

    def _survey(self, its_desk: Desk, tests: Tests) -> tuple[Any, np.ndarray, Any]:
        bins, upper, most, sound, level, apart, apart_places = tests
        there, n_columns = self._there(its_desk, bins), self._columns(its_desk).size - 1
        kinds, totals = its_desk.empty(n_columns, np.uint8), its_desk.zeros(TOTALS, np.uint64)
        n_apart = its_desk.zeros(len(bins.offsets) - 1, np.uint64)
        limits = tuple(map(np.int64, (upper, most, apart, apart_places)))
        self._over_columns(
            its_desk, survey_columns, there, limits, its_desk.send(sound), its_desk.send(level), kinds, totals, n_apart
        )  # fmt: skip
        return kinds, its_desk.fetch(totals).astype(np.int64), n_apart

    def _columns(self, its_desk: Desk) -> Any:
        """Where columns begin, and where the last one ends, (n_columns + 1,) int64 on the device."""
        if self._begins is None:
            n_tiles = blocks_for(len(self), TILE)
            sums = its_desk.empty(n_tiles + 1, np.int64)
            its_desk.launch(count_firsts, n_tiles, BLOCK, self.entries, sums)
            self._begins = its_desk.empty(begins_of_tiles(its_desk, sums) + 1, np.int64)
            its_desk.launch(list_firsts, n_tiles, BLOCK, self.entries, sums, self._begins)
            self._begins[-1:].copy_to_device(np.array([len(self)], np.int64), stream=its_desk.stream)
        return self._begins

    def _there(self, its_desk: Desk, bins: Bins) -> Bins:
        """The bins on the device."""
        if self._bins is None or self._bins[0] is not bins:
            starts, table, offsets = (its_desk.send(array) for array in bins[:3])
            self._bins = bins, Bins(starts, table, offsets, bins.width)
        return self._bins[1]

    def _over_entries(self, its_desk: Desk, kernel: Any, *arguments: Any) -> None:
        """Start a kernel of which each thread takes OWN entries."""
        its_desk.launch(kernel, blocks_for(len(self), TILE), BLOCK, self.entries, self._columns(its_desk), *arguments)

    def _over_columns(self, its_desk: Desk, kernel: Any, *arguments: Any) -> None:
        """Start a kernel with a thread for each column."""
        begins = self._columns(its_desk)
        its_desk.launch(kernel, blocks_for(begins.size - 1), BLOCK, self.entries, begins, *arguments)


def bring_reads(some: Sequence[Desk], reads: ReadSet, resources: Resources) -> None:
    """Bring all bases to the GPUs of some desks, side by side, unless they are there."""
    both_ways, threads = reads.turn_by(shared_by(resources.threads)), max(1, resources.threads // len(some))

    def bring(its_desk: Desk) -> None:
        device = its_desk.device
        device.reads.hold(both_ways)
        device.note(uploaded_bases=device.reads.bring_all(both_ways, threads, its_desk.stream))

    on_each(bring, some)


def try_to_count(reads: ReadSet, k: int, lower: int, keep_one_in: int, resources: Resources) -> KmerCounts | None:
    """What `count_kmers` finds without an upper bound, held by the first GPU; None where the CPU has to count.

    The bases stay on the device, for the extension.
    """
    n_places = len(reads.codes)
    if not can_count(k, n_places, lower):
        give_to_cpu(resources.devices, LONG)
        return None
    try:
        with desks(resources.devices, 1 + n_places // SHARED_PLACES) as some:
            bring_reads(some, reads, resources)
            planes, free = [its.device.reads.planes for its in some], min(its.device.gpu.free for its in some)
            entries, spectrum = count_on_gpus(some, planes, n_places, k, lower, free, keep_one_in)
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        give_to_cpu(resources.devices, FULL)
        return None
    return KmerCounts(DeviceColumns(entries, resources.devices), int(spectrum[lower:].sum()), spectrum)


def thinned(kinds: np.ndarray, one_in: np.ndarray) -> np.ndarray:
    """The kinds of columns, (n,) uint8, as if what is left out of each kind were repeats; one_in : (N_KINDS,) int64."""
    kinds = kinds.copy()
    for kind in np.flatnonzero(one_in[:REPEAT] > 1).tolist():
        rows = np.flatnonzero(kinds == kind)
        left_out = np.ones(len(rows), bool)
        left_out[:: int(one_in[kind])] = False
        kinds[rows[left_out]] = REPEAT
    return kinds
