"""Reads of a command: gathered, put into their canonical order, and given back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bellapy.cli.session import Session
from bellapy.errors import MemoryLimitError
from bellapy.params import Params
from bellapy.params.reads import ReadParams

if TYPE_CHECKING:  # loaded when needed
    from concurrent.futures import Future

    from bellapy.io.fastx import GatheredReads
    from bellapy.io.overlap_writer import Destination
    from bellapy.jobs.overlap.canonical import Order
    from bellapy.records import Overlaps, ReadSet
    from bellapy.report.run_report import RunReport


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

    def restore(self, overlaps: Overlaps, *, with_bases: bool) -> tuple[ReadSet, Overlaps]:
        """Reads and overlaps as the input has them; with_bases : `reads` must not be used any more."""
        from bellapy.jobs.overlap.canonical import given_overlaps, given_reads

        overlaps = given_overlaps(overlaps, self.reads.lengths, self.order, self.params.run.threads)
        return given_reads(self.reads, self.order, self.params.run.threads, with_bases=with_bases), overlaps


def load_reads(
    session: Session, params: Params, paths: list[str], output: Destination | None = None, *, overlaps: bool = False,
    or_tiles: bool = False, targets: bool = False,
) -> Loaded:  # fmt: skip
    """Read the files.

    output : where its format limits names, they are checked now.  overlaps : the device is chosen now.
    or_tiles : raise TooLarge as soon as it shows that the whole job does not fit in one piece.
    targets : the last file holds targets of the other reads.
    """
    session.watch()
    from bellapy.compute.gpu.devices import choose_beside
    from bellapy.compute.threads import shared_by

    device, check = choose_beside(params.run.device if overlaps else "cpu"), lambda names: None
    if output and output.format in ("sam", "bam"):
        from bellapy.io.sam import check_names as check
    loading = _Loading(session, or_tiles, device, params.reads, targets)
    canonical = loading.load(paths, check)
    if overlaps:
        if not device.done() and session.run.max_memory is None:
            canonical[0].turn_by(shared_by(session.run.threads))  # while a GPU is awaited
        params = replace(params, run=replace(params.run, device=device.result()))
    return Loaded(*canonical, params, loading.n_queries)


class _Loading:
    """Reading, within the bound on memory; device : the choice of it, which may fail meanwhile.

    wanted : which reads are taken.  targets : as of `load_reads`.  n_queries : as in Loaded, when they are read.
    """

    def __init__(self, session: Session, or_tiles: bool, device: Future[str], wanted: ReadParams, targets: bool):
        self.session, self.or_tiles, self.device, self.wanted = session, or_tiles, device, wanted
        self.targets = targets
        self.n_queries: int | None = None
        self.refused: MemoryLimitError | None = None  # raised when the reads have been counted
        self.held = 0

    def load(self, paths: list[str], check: Callable[[Sequence[str]], None]) -> tuple[ReadSet, Order]:
        """The reads in canonical order, and how they were given; check : raises what is wrong with their names."""
        from bellapy.compute.memory import PROGRAM, resident
        from bellapy.jobs.overlap.canonical import canonical_reads, number_of_queries
        from bellapy.report.run_report import ReadStage

        session = self.session
        try:
            session.budget.require("the program itself", max(0, PROGRAM - resident()))
        except MemoryLimitError as error:
            self.refused = error
        self.held = resident()
        with session.report.stage(ReadStage("read")) as stage:
            gathered = self.gather(paths)
            if self.targets:
                self.n_queries = number_of_queries(gathered.file_ends)
            stage.reads, stage.bases = len(gathered.names), int(gathered.lengths.sum(dtype="int64"))
            self.expect(stage.reads, stage.bases)
            session.report.count_letters(gathered.other_letters, stage.bases)
            tell_left_out(session.report, gathered.dropped)
            check(gathered.names)  # before the work
            return canonical_reads(gathered, session.run.threads, self.n_queries)

    def expect(self, n_reads: int, n_bases: int) -> None:
        """Raise what is known to go wrong with so many reads."""
        from bellapy.compute.memory import expect, fits_in_one_piece

        expect(self.held, n_reads, n_bases, in_tiles=self.or_tiles)
        if self.refused:
            raise self.refused
        if self.or_tiles and not fits_in_one_piece(self.session.budget, n_bases):
            raise TooLarge

    def gather(self, paths: list[str]) -> GatheredReads:
        from bellapy.io.fastx import gather_reads
        from bellapy.jobs.overlap.canonical import hash_taken
        from bellapy.report.progress import progress

        def check(n_reads: int, n_bases: int) -> None:
            advance(n_reads)
            if self.device.done():
                self.device.result()
            self.expect(n_reads, n_bases)
            self.session.budget.require("holding the reads", n_bases)  # in the end they are copied once

        with progress("read", None) as advance:
            return gather_reads(paths, check, threads=self.session.run.threads, look=hash_taken, wanted=self.wanted)


def tell_left_out(report: RunReport, dropped: Mapping[str, int]) -> None:
    """Report and log the reads that were left out; dropped : by reason."""
    from bellapy.report.log import logger
    from bellapy.report.run_report import describe_dropped

    report.dropped.add(dropped)
    if any(dropped.values()):
        logger.info("left out: %s", describe_dropped(dropped))


def with_run(params: Params, session: Session) -> Params:
    """The parameters with threads, device and memory of the session."""
    return replace(params, run=session.run)
