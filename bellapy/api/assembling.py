"""Reads to contigs: correction, overlaps, graph, polishing, one after another."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bellapy.api.inputs import Reads, no_more
from bellapy.api.polishing import Draft, Polisher
from bellapy.api.reading import load_given
from bellapy.compute.memory import give_back_freed
from bellapy.compute.resources import Resources
from bellapy.compute.threads import usable_cores
from bellapy.engines.ends import End
from bellapy.engines.trace import map_paths
from bellapy.io.gfa import Link, Segment, format_fasta, format_gfa
from bellapy.io.outputs import GFA, ending_of, open_output
from bellapy.io.workdir import Workdir
from bellapy.jobs.assemble.contigs import Contig, leave_out_shallow, settle, without_unaligned
from bellapy.jobs.assemble.drafting import Drafter
from bellapy.jobs.assemble.hits import Spans
from bellapy.jobs.assemble.layout import Layout
from bellapy.jobs.assemble.links import find_links
from bellapy.jobs.assemble.needed import needed_reads, used_spans, usual_depth, usual_errors
from bellapy.jobs.assemble.report import SPARED, ContigLine, Details, ReadTable, count_fates, fates_of
from bellapy.jobs.assemble.slips import without_slips
from bellapy.jobs.assemble.thinning import MOST, choose_some
from bellapy.jobs.assemble.turns import unrolled
from bellapy.jobs.correct.kept import keep_overlaps
from bellapy.jobs.correct.members import Traced, pack
from bellapy.jobs.correct.pipeline import Job, correct_reads
from bellapy.jobs.correct.report import start_report as start_correct
from bellapy.jobs.overlap.canonical import canonical_reads
from bellapy.jobs.overlap.filter import paths_stage
from bellapy.jobs.overlap.pipeline import overlap_reads
from bellapy.jobs.overlap.report import REASONS
from bellapy.jobs.overlap.report import start_report as start_overlaps
from bellapy.jobs.overlap.work import with_min_overlap
from bellapy.params import Params, Scoring, make_params
from bellapy.params.assemble import AssembleParams, make_assemble_params
from bellapy.params.correct import SHORTEST_USED, CorrectParams
from bellapy.params.fields import fields_of
from bellapy.records import Overlaps, ReadSet, join_overlaps
from bellapy.report.log import logger
from bellapy.report.run_report import RunReport, Stage
from bellapy.version import __version__

COPIES = 5
"""Sequence that the genome has up to so many times links reads, which correction and paths then tell apart: there are reads
that lie in repeats from end to end.  A molecule with some copies and repeats of its own, as a mitochondrion, has hardly any
k-mers that are rarer."""


class Assembly(NamedTuple):
    """The contigs, the longest first, the links between them, and what became of every read.

    report : what was done; see docs/report.md.
    """

    segments: list[Segment]
    links: list[Link]
    reads: ReadTable
    report: RunReport

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the graph to a file that ends in .gfa, or .gfa.gz, and the contigs as FASTA to any other.

        Raises
        ------
        OutputError : the file cannot be written.
        """
        as_gfa = ending_of(os.fspath(path)) == GFA
        with open_output(os.fspath(path)) as stream:
            for text in format_gfa(self.segments, self.links) if as_gfa else format_fasta(self.segments):
                stream.write(text)

    def write_reads(self, path: str | os.PathLike[str]) -> None:
        """Write what became of every read as a table with tabs.

        Raises
        ------
        OutputError : the file cannot be written.
        """
        with open_output(os.fspath(path)) as stream:
            for text in self.reads.lines([one.name for one in self.segments]):
                stream.write(text)


def assemble(
    reads: Reads, *, preset: str | None = None, threads: int | None = None, device: str = "auto", **options: Any
) -> Assembly:
    """Join reads to contigs: what `bellapy assemble` does.

    Parameters
    ----------
    reads : as those of `bellapy.overlap`.  preset : clr, ont, hq or hifi.  threads : None: all cores.
    device : auto, cpu or cuda.
    options : the options of `bellapy assemble` by their names, with _ for -: min_depth=3, haplotypes=2, fast=True.

    Raises
    ------
    ParameterError : an option out of range.  InputError : reads that cannot be read.  DeviceError : no GPU can be used.
    TypeError : an option of no such name.
    """
    no_more(options, fields_of(AssembleParams))
    chosen = make_assemble_params(options)
    params = make_params(preset, threads=threads or usable_cores(), device=device)
    report = RunReport("bellapy.assemble", __version__, {**params.to_dict(), "assemble": asdict(chosen)})
    found = assemble_reads(reads, params, chosen, report)
    report.finish()
    return found


def assemble_reads(
    reads: Reads, params: Params, chosen: AssembleParams, report: RunReport, work: Workdir | None = None
) -> Assembly:
    """The same with parameters, as of Assembler."""
    start_overlaps(report)
    loaded = load_given(reads, params, report, overlaps=True)
    return Assembler(loaded.params, chosen, report, work).assemble(loaded.reads)


class Assembler:
    """Makes contigs of reads.

    params : how overlaps are found, and what may be used for it.  chosen : how contigs are made.
    report : its details are those of this job.  work : the folder that keeps what is done; None: nothing is kept.
    """

    def __init__(self, params: Params, chosen: AssembleParams, report: RunReport, work: Workdir | None = None):
        self.params, self.chosen, self.report, self.work = params, chosen, report, work
        self.resources = Resources.of(params.run, report.devices)
        self.details = report.details = Details()
        self._polisher = Polisher(CorrectParams(), chosen.rounds, self.resources, report, work)
        self._spans: Spans | None = None  # of all reads, where some are corrected
        self._depth = math.inf  # others that lie over a base of these, where some are corrected
        self._tail = 0  # bases at their ends that need no others, where they are accurate
        report.dropped = start_correct(start_overlaps(RunReport()), REASONS).dropped

    def assemble(self, reads: ReadSet) -> Assembly:
        """The contigs of reads, which are in canonical order."""
        kept = choose_some(reads, self.resources.threads)
        some = self._thinned(reads, kept)
        used = some if self.chosen.fast else self._corrected(some)
        overlaps = self._overlaps(used)
        _forget_both_ways(used)
        with self.report.stage(Stage("graph")):
            drafter = Drafter(
                used, overlaps, self.chosen, exact=not self.chosen.fast, depth=self._depth, tail=self._tail,
                threads=self.resources.threads,
            )  # fmt: skip
            chosen = drafter.draft()
        contigs, depth, homes = self._polished(chosen.contigs, reads)
        while drafter.ends_more(contigs):  # which are exact now
            chosen = drafter.draft()
            contigs, depth, homes = self._polished(chosen.contigs, reads)
        self.details.short, self.details.inner = chosen.short, chosen.inner
        if chosen.short or chosen.inner:
            logger.info("contigs that are left out, since they are short: %d; since they are like longer ones: %d",
                        chosen.short, chosen.inner)  # fmt: skip
        if self.details.polished:
            least = drafter.layout.min_depth
            deep, homes = leave_out_shallow(depth, homes, least)
            self.details.shallow = len(contigs) - len(deep)
            contigs, depth = [contigs[i] for i in deep.tolist()], depth[deep]
            if self.details.shallow:
                logger.info("contigs that are left out, since fewer than %d reads lie on them: %d",
                            least, self.details.shallow)  # fmt: skip
        table = self._accounted(some, used, drafter.layout, contigs, homes[kept])
        if not kept.all():
            table = table.among(reads.names, reads.lengths, kept, homes)
        return self._finished(contigs, depth, drafter.layout, table)

    def _thinned(self, reads: ReadSet, kept: np.ndarray) -> ReadSet:
        """The reads that are used of those of deep molecules, and all others."""
        if kept.all():
            return reads
        self.details.too_deep = int((~kept).sum())
        logger.info("%s of %s reads are not overlapped: they are of molecules more than %s reads deep",
                    f"{self.details.too_deep:,}", f"{len(reads):,}", f"{MOST:,}")  # fmt: skip
        return reads.take(np.flatnonzero(kept))

    @contextmanager
    def _part(self) -> Iterator[RunReport]:
        """A report for a part of the job; its stages and what it drops are those of the whole."""
        part = start_correct(start_overlaps(RunReport(devices=self.report.devices)), REASONS)
        yield part
        self.report.stages += part.stages
        self.report.dropped.add(part.dropped.to_dict())

    def _corrected(self, reads: ReadSet) -> ReadSet:
        """The reads that few others contain, corrected by all, in canonical order."""
        found = ReadSet.from_codes(*self._correct(reads))
        _forget_both_ways(reads)
        return canonical_reads(found, self.resources.threads)[0]

    def _correct(self, reads: ReadSet) -> tuple[list[np.ndarray], list[str]]:
        """Codes of what is used of these reads, and their names."""
        finding = _of_copies(self.params)
        finding = replace(finding, filter=replace(finding.filter, min_overlap=SHORTEST_USED))
        with self._part() as part:

            def find() -> tuple[Overlaps, tuple[Scoring, ...]]:
                return overlap_reads(reads, finding, part, copies=COPIES)

            overlaps, steps = find() if self.work is None else keep_overlaps(self.work, find)
            give_back_freed()
            end = End.of(self.params.extension.extension)

            def trace(rows: np.ndarray) -> Iterator[Traced]:
                return map_paths(pack, reads, overlaps.take(rows), steps, end, self.resources)

            chosen = self.chosen
            self._depth = usual_depth(overlaps, reads.lengths)
            errors = usual_errors(overlaps)
            of_one = usual_errors(overlaps, chosen.haplotypes) if chosen.haplotypes > 1 else errors
            self._tail = chosen.tail_at(of_one, self._depth / chosen.haplotypes, float(reads.lengths.mean()))
            least = max(1, chosen.min_depth_at(errors, self._depth) - 1)
            spans = self._spans = used_spans(overlaps, reads.lengths, least, self._tail, self.resources.threads)
            wanted = needed_reads(overlaps, spans, chosen.haplotypes, chosen.min_overlap, self.resources.threads)
            logger.info("%s of %s reads are corrected; the others are inside these", f"{wanted.sum():,}", f"{len(reads):,}")
            job = Job(reads, overlaps, trace, CorrectParams(), self.resources, self.work, wanted)
            kept = zip(spans.start[wanted].tolist(), spans.end[wanted].tolist(), strict=True)
            corrected = [
                unrolled(found.codes[found.begins[start] : found.begins[end]])
                for found, (start, end) in zip(correct_reads(job, part), kept, strict=True)
            ]
            self.details.corrected, self.details.spared = part.details.correction, int((~wanted).sum())
        return corrected, [name for name, use in zip(reads.names, wanted, strict=True) if use]

    def _overlaps(self, reads: ReadSet) -> Overlaps:
        """The overlaps of reads, which have exact numbers of matches where reads are corrected."""
        exact = not self.chosen.fast

        def find() -> Overlaps:
            with self._part() as part:
                if not exact:
                    return overlap_reads(reads, self.params, part)[0]
                finding = _of_copies(self.params)
                overlaps, steps = overlap_reads(reads, finding, part, with_paths=True, copies=COPIES)
                whole = reads, overlaps, partial(without_slips, reads)
                settled = with_min_overlap(finding, reads.lengths)
                return join_overlaps(list(paths_stage([whole], len(overlaps), steps, settled, part)) or [overlaps])

        return self._once("overlaps", find)

    def _once(self, name: str, make: Callable[[], Overlaps]) -> Overlaps:
        """What `make` gives, kept in the folder if there is one."""
        if self.work is None:
            return make()

        def arrays() -> dict[str, np.ndarray]:
            found = make()
            return {f.name: getattr(found, f.name) for f in fields(Overlaps)}

        kept = self.work.once(name, arrays)
        return Overlaps(**{f.name: kept[f.name] for f in fields(Overlaps)})

    def _polished(self, contigs: list[Contig], reads: ReadSet) -> tuple[list[Contig], np.ndarray, np.ndarray]:
        """The contigs after all rounds of polishing, the reads on a base of each, and the contig of each read."""
        drafts = [Draft(f"contig_{i}", one.codes, one.circular) for i, one in enumerate(contigs, 1)]
        done = self._polisher.polish(drafts, reads)
        _forget_both_ways(reads)  # contigs are looked at next, which takes as much
        self.details.polished += [one.changes for one in done]
        if not done:
            return contigs, np.zeros(len(contigs)), np.full(len(reads), -1)
        last = done[-1]
        polished = [one._replace(codes=codes) for one, codes in zip(contigs, last.contigs, strict=True)]
        return polished, last.depth, last.homes

    def _accounted(
        self, reads: ReadSet, used: ReadSet, layout: Layout, contigs: list[Contig], homes: np.ndarray
    ) -> ReadTable:  # fmt: skip
        """What became of all reads; used : those that the graph was made from."""
        of_used, own = fates_of(layout, contigs), self._spans
        fate, stretches = np.full(len(reads), SPARED), np.zeros(len(reads), np.int64)
        row_of = {name: row for row, name in enumerate(reads.names)}
        rows = [row_of[name] for name in used.names]
        fate[rows], stretches[rows] = of_used, layout.spans.n_stretches
        trimmed = layout.spans.lengths < used.lengths
        if own is not None:
            trimmed |= own.lengths[rows] < reads.lengths[rows]
            stretches = np.maximum(stretches, own.n_stretches)
        self.details.reads = count_fates(of_used, trimmed, stretches[rows] > 1)
        return ReadTable(reads.names, reads.lengths, fate, stretches, homes)

    def _finished(self, contigs: list[Contig], depth: np.ndarray, layout: Layout, reads: ReadTable) -> Assembly:
        """The contigs in their last order, with names."""
        settled = [settle(without_unaligned(one, layout.graph)) for one in contigs]
        order = sorted(range(len(settled)), key=lambda i: (-len(settled[i].codes), settled[i].codes.tobytes()))
        settled, depth = [settled[i] for i in order], depth[order]
        rank = np.append(np.argsort(order), -1)  # the last one is of reads without a contig
        reads = reads._replace(contig=rank[reads.contig])
        segments = [
            Segment(f"contig_{i}", one.codes, one.circular, round(float(deep), 2), float(deep / max(depth[0], 1e-9)))
            for i, (one, deep) in enumerate(zip(settled, depth, strict=True), 1)
        ]
        links = find_links(settled, layout.graph)
        self.details.links = len(links)
        self.details.contigs = [asdict(ContigLine(s.name, len(s.codes), s.circular, s.depth)) for s in segments]
        _tell(segments)
        return Assembly(segments, links, reads, self.report)


def _of_copies(params: Params) -> Params:
    """The same where overlaps may lie in sequence with COPIES copies."""
    return replace(params, seeds=params.seeds._replace(max_copies=float(max(COPIES, params.seeds.max_copies))))


def _forget_both_ways(reads: ReadSet) -> None:
    """Give the memory of the reversed reads back to the system, until they are asked for again."""
    reads.forget_both_ways()
    give_back_freed()


def _tell(segments: Sequence[Segment]) -> None:
    bases = sum(len(one.codes) for one in segments)
    circles = sum(one.circular for one in segments)
    noun = "contig" if len(segments) == 1 else "contigs"
    logger.info("%d %s, %d of them circular, %s bases", len(segments), noun, circles, f"{bases:,}")
    if not segments:
        logger.warning("no contig: the reads may be too few, too shallow or too noisy; see the lines above")
