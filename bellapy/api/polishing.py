"""Contigs corrected by the reads that map to them, as a function and from files to a file."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from bellapy.api.inputs import Reads, as_records, named, no_more, run_params, source_of
from bellapy.api.reading import Loaded, load_given, load_reads
from bellapy.api.sequences import SequenceTable
from bellapy.compute.resources import Resources
from bellapy.compute.threads import map_in_order
from bellapy.engines.tags.symbols import shorten
from bellapy.errors import ParameterError
from bellapy.io.fastx import stream_records
from bellapy.io.fastx_lines import Records
from bellapy.io.outputs import open_output
from bellapy.io.workdir import Workdir
from bellapy.jobs.correct.contigs import Piles, polish_piles
from bellapy.jobs.correct.drafts import DraftContig, read_drafts
from bellapy.jobs.correct.jumps import cut_jumps
from bellapy.jobs.correct.pipeline import BEFORE_PHASING, Counts
from bellapy.jobs.correct.placements import Placements, depth_of, homes
from bellapy.jobs.correct.template import changes_of
from bellapy.jobs.map.batches import BATCH_BASES
from bellapy.jobs.map.choose import SECONDARY
from bellapy.jobs.map.pipeline import Hits, Mapped, Mapper
from bellapy.jobs.map.run import Wanted, prepare
from bellapy.params import Params, make_params
from bellapy.params.assemble import MOST_ROUNDS, POLISHING, SETTLED, PolishParams, make_polish_params
from bellapy.params.correct import CorrectParams
from bellapy.params.reads import POOR, SHORT
from bellapy.records import Paths, ReadSet
from bellapy.records.bases import LETTERS
from bellapy.report.log import logger
from bellapy.report.progress import progress
from bellapy.report.run_report import Dropped, RunReport, Stage
from bellapy.version import __version__

BEYOND = 20_000  # bases by which circles go on for the reads that cross their joint
MOST_TURNS = 3  # of small ones
SOME = 100  # reads, spread evenly, that tell how to map all
PLACED, NOISY = 0.5, "clr"  # share of bases that find a place at least, else this preset of `map` is tried
RAW = "raw"
CHANGES = "mismatches", "inserted", "deleted", RAW  # of Counts


def polish(
    draft: Reads | bytes, reads: Reads, *, circular: Collection[str] = (), threads: int | None = None, device: str = "auto",
    **options: Any,
) -> SequenceTable:  # fmt: skip
    """Correct contigs by the reads that map to them: what `bellapy polish` does.

    Parameters
    ----------
    draft : contigs, as the reads of `bellapy.overlap`, or one sequence.  reads : as those of `bellapy.overlap`.
    circular : names of contigs that are circles, beside those of files whose headers say so.
    threads : None: all cores.  device : auto, cpu or cuda.
    options : rounds, min_support, max_depth, no_phase, max_memory, as options of `bellapy polish`.

    Raises
    ------
    ParameterError : an option out of range, or a circle of no such name.  InputError : sequences that cannot be read.
    TypeError : an option of no such name.
    """
    no_more(options, [*POLISHING, *PolishParams.__annotations__, "max_memory"])
    params, rounds = make_polish_params(options)
    finding = replace(make_params(), run=run_params(threads, device, options.get("max_memory")))
    report = RunReport("bellapy.polish", __version__, {"polish": {**asdict(params), "rounds": rounds}})
    report.dropped = Dropped(SHORT, POOR)
    contigs = named(draft, "draft")
    drafts = read_drafts(as_records(contigs), source_of(contigs))
    if unknown := set(circular) - {one.name for one in drafts}:
        raise ParameterError(f"circular: no contig is named {', '.join(sorted(unknown))}")
    drafts = [one._replace(circular=one.circular or one.name in circular) for one in drafts]
    polished = _polish(drafts, load_given(reads, finding, report), params, rounds, report, None)
    report.finish()
    pieces = [(one.name, LETTERS[codes].tobytes(), None) for one, codes in zip(drafts, polished, strict=True)]
    return SequenceTable.of(pieces, report)


class Draft(NamedTuple):
    """A contig that is to be polished.  codes : (n,) uint8."""

    name: str
    codes: np.ndarray
    circular: bool


@dataclass(slots=True)
class PolishStage(Stage):
    """A round of polishing: contigs, and their windows."""

    contigs: int | None = None
    windows: int | None = None


@dataclass(slots=True)
class Details:
    """polished : what each round changed."""

    polished: list[dict[str, int]] = field(default_factory=list)


class Polished(NamedTuple):
    """Contigs after a round.

    contigs : their codes.  depth : (n,) float64, reads on a base of each.
    changes : bases replaced, put in and taken out, and bases with too few reads to be changed.
    homes : (n_reads,) int64, the contig that has most bases of each read; -1: none.
    """

    contigs: list[np.ndarray]
    depth: np.ndarray
    changes: dict[str, int]
    homes: np.ndarray

    def pack(self) -> dict[str, np.ndarray]:
        """As arrays."""
        lengths = np.array([len(codes) for codes in self.contigs], np.int64)
        numbers = np.array([self.changes[name] for name in CHANGES], np.int64)
        codes = np.concatenate(self.contigs)
        return {"codes": codes, "lengths": lengths, "depth": self.depth, "changes": numbers, "homes": self.homes}

    @classmethod
    def unpack(cls, arrays: Mapping[str, np.ndarray]) -> Polished:
        """The inverse of `pack`."""
        contigs = np.split(arrays["codes"], np.cumsum(arrays["lengths"])[:-1])
        changes = dict(zip(CHANGES, arrays["changes"].tolist(), strict=True))
        return cls(contigs, arrays["depth"], changes, arrays["homes"])

    @property
    def n_changes(self) -> int:
        """Changed bases."""
        return sum(n for name, n in self.changes.items() if name != RAW)


class Polisher:
    """Polishes drafts by reads until they stay as they are.

    rounds : how often; None: until few bases change.  work : the folder that keeps what is done; None: nothing is kept.
    """

    def __init__(
        self, params: CorrectParams, rounds: int | None, resources: Resources, report: RunReport, work: Workdir | None = None
    ):
        self._params, self._rounds, self._resources, self._report, self._work = params, rounds, resources, report, work
        self._n_done = 0  # rounds, of all drafts

    def polish(self, drafts: list[Draft], reads: ReadSet) -> list[Polished]:
        """All rounds; the last one has the contigs in the end."""
        done: list[Polished] = []
        while drafts and len(done) < (MOST_ROUNDS if self._rounds is None else self._rounds):
            done.append(self._round(drafts, reads))
            self._n_done += 1
            bases = sum(len(draft.codes) for draft in drafts)
            drafts = [one._replace(codes=codes) for one, codes in zip(drafts, done[-1].contigs, strict=True)]
            if self._rounds is None and done[-1].n_changes < SETTLED * bases:
                break
        return done

    def _round(self, drafts: list[Draft], reads: ReadSet) -> Polished:
        def polish() -> Polished:
            return polish_once(drafts, reads, self._params, self._resources, self._report)

        if self._work is None:
            return polish()
        return Polished.unpack(self._work.once(f"polished-{self._n_done}", lambda: polish().pack()))


def polish_once(
    drafts: list[Draft], reads: ReadSet, params: CorrectParams, resources: Resources, report: RunReport
) -> Polished:
    """A round of polishing of all drafts by reads."""
    placed = place_reads(drafts, reads, resources.threads, report)
    circular = np.array([draft.circular for draft in drafts])
    lengths = np.array([len(draft.codes) for draft in drafts], np.int64)
    placed = cut_jumps(placed, lengths, circular, params.min_support)
    piles = Piles(reads, [draft.codes for draft in drafts], circular, placed, BEFORE_PHASING * params.max_depth)
    counts, contigs, window = Counts(), list[np.ndarray](), 0
    with report.stage(PolishStage("polish")) as stage, progress("polish", len(drafts)) as advance:
        for codes, found in polish_piles(piles, params, resources.threads):
            for one in found:
                counts.add(one, changes_of(piles.codes(window), one))
                window += 1
            contigs.append(codes)
            advance(len(contigs))
        stage.contigs, stage.windows = len(contigs), window
    changes = {name: getattr(counts, name) for name in CHANGES}
    told = ", ".join(f"{changes[n]:,} {n}" for n in CHANGES)
    logger.info("polish: %s bases; %s; bad stretches bridged: %s", f"{int(lengths.sum()):,}", told, f"{counts.bridges:,}")
    return Polished(contigs, depth_of(placed, lengths), changes, homes(placed, len(reads)))


def place_reads(drafts: list[Draft], reads: ReadSet, threads: int, report: RunReport) -> Placements:
    """Where reads lie on drafts; parts of a read may lie in different places."""
    mapper, lengths = _prepare(drafts, reads, threads, report), np.array([len(draft.codes) for draft in drafts])
    batches = np.split(np.arange(len(reads)), _edges(reads.lengths))
    parts, at = [], 0

    def place(rows: np.ndarray) -> list[Placements]:
        return [_placements(mapped, reads, lengths) for mapped in mapper.map(_records(reads, rows))]

    with report.stage(Stage("map")), progress("map", len(reads)) as advance:
        for rows, found in zip(batches, map_in_order(place, batches, threads), strict=True):
            for part in found:
                shift = at - part.first[0] if len(part.first) else 0
                parts.append(part._replace(first=part.first + shift, last=part.last + shift))
                at += len(part.runs)
            advance(int(rows[-1]) + 1)
    return Placements(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _prepare(drafts: list[Draft], reads: ReadSet, threads: int, report: RunReport) -> Mapper:
    """A mapper to drafts that fits the reads, of which some are tried.

    A draft that is made of raw reads looks perfect to these reads, and far off to the others.  So where less than half of
    all bases find a place, it is looked for as noisy reads need it, too.
    """
    reference = ReadSet.from_codes([_lengthened(draft) for draft in drafts], [draft.name for draft in drafts])
    some = _records(reads, np.unique(np.linspace(0, len(reads) - 1, SOME).astype(np.int64)))
    best, most = None, -1.0
    for preset in (None, NOISY):
        mapper = prepare(reference, some, Wanted(preset, lambda params: params, True), report, threads)
        placed = sum(_n_placed(mapped) for mapped in mapper.map(some))
        if placed > most:
            best, most = mapper, placed
        if most >= PLACED * sum(map(len, some.sequences)):
            break
    assert best is not None
    return best


def _n_placed(mapped: Mapped) -> int:
    """Bases of drafts under reads."""
    first = mapped.hits.take(mapped.hits.kind != SECONDARY)
    return int((first.t_end - first.t_start).sum())


def _lengthened(draft: Draft) -> np.ndarray:
    """The bases of a draft; those of a circle go on into the next turn."""
    if not draft.circular:
        return draft.codes
    n = len(draft.codes)
    return np.resize(draft.codes, n + min(BEYOND, (MOST_TURNS - 1) * n))


def _edges(lengths: np.ndarray) -> np.ndarray:
    """Where a new batch of reads begins, of about as many bases as `map` takes at a time."""
    return np.flatnonzero(np.diff(np.cumsum(lengths, dtype=np.int64) // BATCH_BASES)) + 1


def _records(reads: ReadSet, rows: np.ndarray) -> Records:
    """Some reads as `map` takes them; their names are their numbers."""
    begins, ends = reads.starts[rows], reads.starts[rows] + reads.lengths[rows]
    texts = [LETTERS[reads.codes[a:b]].tobytes() for a, b in zip(begins.tolist(), ends.tolist(), strict=True)]
    return Records([b"%d" % read for read in rows.tolist()], [b""] * len(rows), texts, None)


def _placements(mapped: Mapped, reads: ReadSet, lengths: np.ndarray) -> Placements:
    """The alignments of a batch that are used.  lengths : of the drafts."""
    assert mapped.paths is not None  # the mapper was asked to align
    hits, paths = mapped.hits.take(_used_hits(mapped.hits, lengths)), mapped.paths
    rows = hits.row
    n_runs = paths.n_runs[rows]
    offsets = np.concatenate(([0], np.cumsum(n_runs)))
    place = np.repeat(paths.first[rows] - offsets[:-1], n_runs) + np.arange(offsets[-1])
    none = np.zeros(len(rows), np.int32)
    runs, ends = shorten(Paths(paths.runs[place], offsets, none, none.copy(), none.copy(), none.copy()))
    read = np.array([int(name) for name in mapped.records.names], np.int64)[hits.read]
    start = reads.starts[read]
    base = np.where(hits.strand == 0, start + hits.q_start, 2 * len(reads.codes) - start - hits.q_end)
    return Placements(
        base, np.where(hits.strand == 0, 0, 3), hits.sequence, hits.t_start, hits.t_end, ends[:-1], ends[1:],
        read, hits.quality == 0, hits.kind == SECONDARY, 1 - hits.n_matches / np.maximum(1, hits.n_columns), runs,
    )  # fmt: skip


def _used_hits(hits: Hits, lengths: np.ndarray) -> np.ndarray:
    """Rows of all alignments but secondary ones, and of the secondary ones that score the same on the same part of a read.

    So each of two equal contigs has the reads of both.  A place on a circle and the same one a turn further are one.

    lengths : of the drafts.
    """
    second = hits.kind == SECONDARY
    _, part = np.unique(np.stack([hits.read, hits.q_start, hits.q_end, hits.score]), axis=1, return_inverse=True)
    part = part.reshape(-1)
    alike = np.flatnonzero(np.bincount(part, ~second)[part])
    alike = alike[np.argsort(second[alike], kind="stable")]
    place = np.stack([part, hits.sequence, hits.strand, hits.t_start % lengths[hits.sequence]])[:, alike]
    return np.sort(alike[np.unique(place, axis=1, return_index=True)[1]])


def polish_files(
    draft: str, reads: list[str], output: str, finding: Params, params: CorrectParams, rounds: int | None, report: RunReport,
    work: Workdir | None,
) -> None:  # fmt: skip
    """The contigs of a file, corrected by reads of others, to a file.  rounds, work : as in Polisher.

    finding : which reads are taken, and what may be used.
    """
    drafts = read_drafts(stream_records([draft]), draft)
    polished = _polish(drafts, load_reads(reads, finding, report), params, rounds, report, work)
    with open_output(output) as stream:
        for one, codes in zip(drafts, polished, strict=True):
            header = one.header_for(len(codes)).encode(errors="surrogateescape")
            stream.write(b">%s\n%s\n" % (header, LETTERS[codes].tobytes()))


def _polish(
    drafts: list[DraftContig], loaded: Loaded, params: CorrectParams, rounds: int | None, report: RunReport,
    work: Workdir | None,
) -> list[np.ndarray]:  # fmt: skip
    """The bases of drafts, polished."""
    report.details = Details()
    some = [Draft(one.name, one.codes, one.circular) for one in drafts if len(one.codes)]
    resources = Resources.of(loaded.params.run, report.devices)
    done = Polisher(params, rounds, resources, report, work).polish(some, loaded.reads)
    report.details.polished = [one.changes for one in done]
    polished = iter(done[-1].contigs if done else [one.codes for one in some])
    return [next(polished) if len(one.codes) else one.codes for one in drafts]
