"""Reads of a job: gathered, put into their canonical order, and given back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace

from bellapy.api.inputs import Reads, as_reads, paths_of
from bellapy.compute import memory
from bellapy.compute.gpu.devices import choose_beside
from bellapy.compute.memory import Budget
from bellapy.compute.threads import shared_by
from bellapy.errors import MemoryLimitError
from bellapy.io.fastx import GatheredReads, gather_reads
from bellapy.io.overlap_writer import Destination
from bellapy.jobs.overlap.canonical import Order, canonical_reads, hash_taken, number_of_queries
from bellapy.params import Params
from bellapy.records import ReadSet
from bellapy.report.log import logger
from bellapy.report.progress import progress
from bellapy.report.run_report import ReadStage, RunReport, describe_dropped


class TooLarge(Exception):
    """A job that needs more than --max-memory in one piece."""


@dataclass
class Loaded:
    """The reads in canonical order, how they were given, and the parameters with the device that is there.

    n_queries : the first so many reads are queries, the others their targets; None: every read is both.
    """

    reads: ReadSet
    order: Order
    params: Params
    n_queries: int | None = None


def load_given(reads: Reads, params: Params, report: RunReport, *, overlaps: bool = False) -> Loaded:
    """Reads as callers have them; overlaps : as of `load_reads`.

    Raises
    ------
    InputError : as `as_reads`.
    """
    if (paths := paths_of(reads)) is not None:
        return load_reads(paths, params, report, overlaps=overlaps)
    if overlaps:
        params = replace(params, run=replace(params.run, device=choose_beside(params.run.device).result()))
    with report.stage(ReadStage("read")) as stage:
        given = as_reads(reads)
        stage.reads, stage.bases = len(given), given.n_bases
        report.count_letters(given.other_letters, given.n_bases)
        Budget(params.run.max_memory).require("the reads in their canonical order", given.codes.nbytes)
        return Loaded(*canonical_reads(given, params.run.threads), params)


def load_reads(
    paths: list[str], params: Params, report: RunReport, output: Destination | None = None, *, overlaps: bool = False,
    or_tiles: bool = False, targets: bool = False,
) -> Loaded:  # fmt: skip
    """Read the files.

    output : where its format limits names, they are checked now.  overlaps : the device is chosen now.
    or_tiles : raise TooLarge as soon as it shows that the whole job does not fit in one piece.
    targets : the last file holds targets of the other reads.
    """
    device = choose_beside(params.run.device if overlaps else "cpu")
    check = output.check if output else lambda names: None
    loading = _Loading(params, report, or_tiles, device, targets)
    canonical = loading.load(paths, check)
    if overlaps:
        if not device.done() and params.run.max_memory is None:
            canonical[0].turn_by(shared_by(params.run.threads))  # while a GPU is awaited
        params = replace(params, run=replace(params.run, device=device.result()))
    return Loaded(*canonical, params, loading.n_queries)


class _Loading:
    """Reading, within the bound on memory; device : the choice of it, which may fail meanwhile.

    targets : as of `load_reads`.  n_queries : as in Loaded, when they are read.
    """

    def __init__(self, params: Params, report: RunReport, or_tiles: bool, device: Future[str], targets: bool):
        self.params, self.report, self.or_tiles, self.device = params, report, or_tiles, device
        self.targets, self.budget = targets, Budget(params.run.max_memory)
        self.n_queries: int | None = None
        self.refused: MemoryLimitError | None = None  # raised when the reads have been counted
        self.held = 0

    def load(self, paths: list[str], check: Callable[[Sequence[str]], None]) -> tuple[ReadSet, Order]:
        """The reads in canonical order, and how they were given; check : raises what is wrong with their names."""
        try:
            self.budget.require("the program itself", max(0, memory.PROGRAM - memory.resident()))
        except MemoryLimitError as error:
            self.refused = error
        self.held = memory.resident()
        with self.report.stage(ReadStage("read")) as stage:
            gathered = self.gather(paths)
            if self.targets:
                self.n_queries = number_of_queries(gathered.file_ends)
            stage.reads, stage.bases = len(gathered.names), int(gathered.lengths.sum(dtype="int64"))
            self.expect(stage.reads, stage.bases)
            self.report.count_letters(gathered.other_letters, stage.bases)
            tell_left_out(self.report, gathered.dropped)
            check(gathered.names)  # before the work
            return canonical_reads(gathered, self.params.run.threads, self.n_queries)

    def expect(self, n_reads: int, n_bases: int) -> None:
        """Raise what is known to go wrong with so many reads."""
        memory.expect(self.held, n_reads, n_bases, in_tiles=self.or_tiles)
        if self.refused:
            raise self.refused
        if self.or_tiles and not memory.fits_in_one_piece(self.budget, n_bases):
            raise TooLarge

    def gather(self, paths: list[str]) -> GatheredReads:
        def check(n_reads: int, n_bases: int) -> None:
            advance(n_reads)
            if self.device.done():
                self.device.result()
            self.expect(n_reads, n_bases)
            self.budget.require("holding the reads", n_bases)  # in the end they are copied once

        with progress("read", None) as advance:
            return gather_reads(paths, check, threads=self.params.run.threads, look=hash_taken, wanted=self.params.reads)


def tell_left_out(report: RunReport, dropped: Mapping[str, int]) -> None:
    """Report and log the reads that were left out; dropped : by reason."""
    report.dropped.add(dropped)
    if any(dropped.values()):
        logger.info("left out: %s", describe_dropped(dropped))
