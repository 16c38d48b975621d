"""Ranges of reads corrected on GPUs; the threads of the CPU take what fits none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from threading import Lock

import numpy as np

from bellapy.compute.gpu.pool import FULL, give_to_cpu, is_out_of_memory
from bellapy.compute.jit import njit_entry, put
from bellapy.engines.tags.gpu.batch import Piles, make_piles
from bellapy.engines.tags.gpu.records import Given, Rule
from bellapy.jobs.correct.members import TracedPiles
from bellapy.jobs.correct.template import JUDGED, Corrected, How, Solved, choose_reads
from bellapy.params.correct import CorrectParams
from bellapy.records import ReadSet
from bellapy.report.run_report import Devices


@dataclass
class OnGpus:
    """Corrects the reads of ranges, each on a GPU.

    how : consensus is found.  at_once : ranges that may be corrected at a time.
    """

    reads: ReadSet
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

    def correct(self, traced: TracedPiles) -> list[Solved | None]:
        """The reads of a range, and what became of them; None: no GPU has room, or no other read overlaps it."""
        members = np.diff(traced.offsets)
        corrected: list[Solved | None] = [None] * len(members)
        some = np.flatnonzero(members)
        if not len(some):
            return corrected
        with self._lock:
            piles = self._free.pop() if self._free else None
        if piles is None:  # no GPU has room for the reads
            give_to_cpu(self.devices, FULL, piles=len(some))
            return corrected
        try:
            given = self._given(traced.templates[some], members[some], traced)
            for i, found in zip(some.tolist(), self._correct(piles, given), strict=True):
                corrected[i] = found
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            give_to_cpu(self.devices, FULL, piles=sum(corrected[i] is None for i in some.tolist()))
        finally:
            with self._lock:
                self._free.append(piles)
        return corrected

    def _correct(self, piles: Piles, given: Given) -> Iterator[Solved]:
        how, choose = self.how, partial(choose_reads, params=self.params)
        rule = Rule(how.terms, how.odds, how.rounds, JUDGED, self.params.min_support, how.telling, choose)
        for found, n_reads in zip(piles.correct(given, rule), given.members.tolist(), strict=True):
            codes, raw, begins, changes, n_symbols, own, n_foreign, n_deep = found
            support = n_symbols / max(1, len(begins) - 1)
            yield Solved(Corrected(codes, raw, begins, n_reads, n_foreign, n_deep, support), own, changes)

    def _given(self, reads: np.ndarray, members: np.ndarray, traced: TracedPiles) -> Given:
        offsets = np.concatenate(([0], np.cumsum(self.reads.lengths[reads], dtype=np.int64)))
        codes = np.empty(int(offsets[-1]), np.uint8)
        _join_codes(self.reads.codes, self.reads.starts[reads], offsets, codes)
        return Given(codes, offsets, members, traced.sources, traced.runs)


@njit_entry
def _join_codes(codes, starts, offsets, joined):
    for i in range(len(starts)):
        put(joined, offsets[i], codes, starts[i], starts[i] + offsets[i + 1] - offsets[i])
