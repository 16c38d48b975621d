"""Ranges of reads corrected on GPUs; the threads of the CPU take what fits none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from threading import Lock

import numpy as np

from bellapy.compute.gpu.pool import FULL, give_to_cpu, is_out_of_memory
from bellapy.engines.tags.gpu.batch import Given, Piles, Rule, make_piles
from bellapy.jobs.correct.members import Members, TracedOverlaps, find_sources
from bellapy.jobs.correct.template import JUDGED, TELLING_READS, TELLING_SHARE, Corrected, How, choose_reads
from bellapy.params.correct import CorrectParams
from bellapy.records import Overlaps, ReadSet
from bellapy.report.run_report import Devices


@dataclass
class OnGpus:
    """Corrects the reads of ranges, each on a GPU.

    members : of all reads.  how : consensus is found.  at_once : ranges that may be corrected at a time.
    """

    reads: ReadSet
    overlaps: Overlaps
    members: Members
    how: How
    params: CorrectParams
    devices: Devices

    def __post_init__(self) -> None:
        self._free: list[Piles] = []
        self._lock = Lock()
        try:
            self._free = make_piles(self.reads.both_ways, self.devices)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
        self.at_once = len(self._free)

    def correct(self, first: int, last: int, traced: TracedOverlaps) -> list[Corrected | None]:
        """Reads first .. last - 1; None: no GPU has room, or no other read overlaps it."""
        reads = np.arange(first, last)
        reads = reads[np.diff(self.members.offsets[first : last + 1]) > 0]
        corrected: list[Corrected | None] = [None] * (last - first)
        if not len(reads):
            return corrected
        with self._lock:
            piles = self._free.pop() if self._free else None
        if piles is None:  # no GPU has room for the reads
            give_to_cpu(self.devices, FULL, piles=len(reads))
            return corrected
        try:
            for read, found in zip(reads.tolist(), self._correct(piles, reads, traced), strict=True):
                corrected[read - first] = found
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            give_to_cpu(self.devices, FULL, piles=sum(corrected[read - first] is None for read in reads.tolist()))
        finally:
            with self._lock:
                self._free.append(piles)
        return corrected

    def _correct(self, piles: Piles, reads: np.ndarray, traced: TracedOverlaps) -> Iterator[Corrected]:
        how, given, telling = self.how, self._given(reads, traced), (TELLING_READS, TELLING_SHARE)
        choose = partial(choose_reads, params=self.params)
        rule = Rule(how.terms, how.odds, how.rounds, JUDGED, self.params.min_support, telling, choose)
        for found, n_reads in zip(piles.correct(given, rule), given.members.tolist(), strict=True):
            support = float(found.n_symbols / max(1, len(found.begins) - 1))
            yield Corrected(found.codes, found.raw, found.begins, n_reads, found.n_foreign, found.n_deep, support)

    def _given(self, reads: np.ndarray, traced: TracedOverlaps) -> Given:
        members, lengths = self.members, self.reads.lengths[reads]
        span = slice(members.offsets[reads[0]], members.offsets[reads[-1] + 1])  # those between have none
        sources = find_sources(self.reads, self.overlaps, members.overlap[span], members.as_query[span], traced)
        offsets = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
        starts = self.reads.starts[reads]
        codes = np.concatenate(
            [self.reads.codes[start : start + n] for start, n in zip(starts.tolist(), lengths.tolist(), strict=True)]
        )
        return Given(codes, offsets, np.diff(members.offsets)[reads], sources, traced.runs)
