"""Reads of a command: gathered while the program is loaded, put into their canonical order, and given back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bellapy.cli.session import Session
from bellapy.errors import MemoryLimitError
from bellapy.params import Params

if TYPE_CHECKING:  # loaded when needed
    from bellapy.io.fastx import GatheredReads
    from bellapy.io.overlap_writer import Destination
    from bellapy.jobs.overlap.canonical import Order
    from bellapy.records import Overlaps, ReadSet


@dataclass
class Loaded:
    """The reads in canonical order, how they were given, and the parameters with the device that is there."""

    reads: ReadSet
    order: Order
    params: Params

    def restore(self, overlaps: Overlaps, *, with_bases: bool) -> tuple[ReadSet, Overlaps]:
        """Reads and overlaps as the input has them; with_bases : `reads` must not be used any more."""
        from bellapy.jobs.overlap.canonical import given_overlaps, given_reads

        overlaps = given_overlaps(overlaps, self.reads.lengths, self.order)
        return given_reads(self.reads, self.order, self.params.run.threads, with_bases=with_bases), overlaps


def load_reads(
    session: Session, params: Params, paths: list[str], output: Destination | None = None, *, overlaps: bool = False
) -> Loaded:
    """Read the files.

    output : where its format limits names, they are checked now.  overlaps : kernels of the whole job are loaded, too.
    """
    if overlaps and params.run.device != "cpu":
        from bellapy.jobs.overlap.first_run import compile_ahead

        compile_ahead(with_paths=output is not None and output.paths)
    loading = _Loading(session, params, overlaps)
    reads = loading.load(paths)
    from bellapy.jobs.overlap.canonical import canonical_reads

    session.report.count_letters(reads.other_letters, reads.n_bases)
    if output and output.format in ("sam", "bam"):  # raised before the work
        from bellapy.io.sam import check_names

        check_names(reads.names)
    return Loaded(*canonical_reads(reads, session.run.threads), loading.params)


class _Loading:
    """Reading, and loading Numba and all stages: side by side where there are several threads."""

    def __init__(self, session: Session, params: Params, overlaps: bool):
        self.session, self.params, self.overlaps = session, params, overlaps
        self.refused: MemoryLimitError | None = None  # raised when the reads have been counted
        self.held = 0

    def load(self, paths: list[str]) -> ReadSet:
        from bellapy.compute.memory import PROGRAM, expect, resident
        from bellapy.io.fastx import join_reads
        from bellapy.io.read_ahead import can_read_ahead, read_ahead
        from bellapy.report.run_report import ReadStage

        session, budget = self.session, self.session.budget
        ahead = session.run.threads > 1 and budget.limit is None and can_read_ahead()
        if not ahead:
            try:
                budget.require("the program itself", max(0, PROGRAM - resident()))
                self.load_program()
            except MemoryLimitError as error:
                self.refused = error
        self.held = resident()
        with session.report.stage(ReadStage("read")) as stage:
            if ahead:
                reads = read_ahead(lambda: self.gather(paths), self.load_program)
            else:
                gathered = self.gather(paths)
                expect(self.held, len(gathered.names), int(gathered.lengths.sum(dtype="int64")))
                if self.refused:
                    raise self.refused
                reads = join_reads(gathered)
            stage.reads, stage.bases = len(reads), reads.n_bases
        return reads

    def gather(self, paths: list[str]) -> GatheredReads:
        from bellapy.compute.memory import expect
        from bellapy.io.fastx import gather_reads
        from bellapy.report.log import progress

        def check(n_reads: int, n_bases: int) -> None:
            advance(n_reads)
            expect(self.held, n_reads, n_bases)
            if self.refused:
                raise self.refused
            self.session.budget.require("holding the reads", n_bases)  # in the end they are copied once

        with progress("read", None) as advance:
            return gather_reads(paths, check)

    def load_program(self, look: Callable[[], None] | None = None) -> None:
        """Load what takes a while to load; the device, and kernels if there is time, where overlaps are to be found.

        look : if another process reads, raises what went wrong there; compiling kernels may take long.
        """
        self.session.watch()
        from bellapy.jobs.overlap.pipeline import load_kernels, with_device

        if self.overlaps:
            self.params = with_device(self.params)
            if look:
                look()
                load_kernels(self.params)


def with_run(params: Params, session: Session) -> Params:
    """The parameters with threads, device and memory of the session."""
    return replace(params, run=session.run)
