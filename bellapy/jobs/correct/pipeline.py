"""All reads, range by range: overlaps -> paths -> piles -> corrected reads, in the order of the input."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise, starmap

import numpy as np

from bellapy.compute.resources import Resources
from bellapy.compute.threads import made_ahead, map_in_order
from bellapy.engines.tags.changes import Changes
from bellapy.engines.tags.support import find_stretches
from bellapy.engines.tags.symbols import Pile, Sources, make_pile
from bellapy.io.workdir import Workdir
from bellapy.jobs.correct.bridges import BRIDGE_BYTES, SHORT_BYTES, Beside, Bridges
from bellapy.jobs.correct.charts import CorrectCharts
from bellapy.jobs.correct.kept import pack, unpack
from bellapy.jobs.correct.members import (
    Members,
    TracedPiles,
    Tracer,
    find_members,
    find_neighbours,
    limit_depth,
    spans_on_template,
    trace_piles,
)
from bellapy.jobs.correct.qualities import Half, Qualities, compare_halves
from bellapy.jobs.correct.report import DEEP, FOREIGN, CorrectStage, Details, LearnStage, PilesStage
from bellapy.jobs.correct.template import Corrected, How, Solved, changes_of, correct_template, uncorrected
from bellapy.jobs.correct.terms import HALF, Learnt, learn_from, sample
from bellapy.params.correct import CorrectParams
from bellapy.records import Overlaps, ReadSet
from bellapy.report.log import logger
from bellapy.report.progress import progress
from bellapy.report.run_report import RunReport

RANGE_BYTES = 512 << 20  # of paths held at a time, where no bound is given; one between two ranges is traced for both
KEPT_BYTES = 64 << 20  # the same with a folder, which keeps each range when it is done
HELD_BESIDE = 3  # ranges whose paths are held beside those that GPUs have: the next one, one that waits, and the last
SHORT_START = 4  # how many times shorter the first ranges are that GPUs have: until the first one is done nobody has work
PATH_BYTES = 1.25  # of short runs for each column of very noisy reads, held twice while parts are joined
PILE_BYTES = 8  # for each column of the piles that are worked on
BEGUN_AHEAD = 16  # reads for each thread: a long one takes as long as ten others
GIVEN_TOGETHER = 64  # reads that a GPU has corrected and a thread looks at: each takes less than to hand it over
BEFORE_PHASING = 2  # times the depth that is kept in the end are looked at
FEW = 0.5  # share of bases with too little support from which on the user is told


@dataclass
class Job:
    """What correction needs of its surroundings.

    trace : makes paths; see `members.Tracer`.
    work : the folder that keeps what is done; None: nothing is kept.
    wanted : (n_reads,) bool, reads that are to be corrected; the others only help.  None: all.
    """

    reads: ReadSet
    overlaps: Overlaps
    trace: Tracer
    params: CorrectParams
    resources: Resources = field(default_factory=Resources)
    work: Workdir | None = None
    wanted: np.ndarray | None = None

    @property
    def templates(self) -> np.ndarray:
        """Reads that are to be corrected, (n,) int64."""
        return np.arange(len(self.reads)) if self.wanted is None else np.flatnonzero(self.wanted)

    @property
    def samples(self) -> np.ndarray:
        """Those of them that are learnt from, (n,) int64."""
        return self.templates[sample(self.reads.lengths[self.templates])]

    @property
    def traces_ahead(self) -> bool:
        """Whether the paths of the next range are made while one is corrected: by a GPU, if no folder holds some already."""
        return self.resources.device != "cpu" and self.work is None

    def codes(self, read: int) -> np.ndarray:
        """The codes of a read, (n,) uint8."""
        start = self.reads.starts[read]
        return self.reads.codes[start : start + self.reads.lengths[read]]

    def pile(self, read: int, sources: Sources, runs: np.ndarray) -> Pile:
        """The pile of a read."""
        return make_pile(self.reads.both_ways, self.codes(read), sources, runs)


def correct_reads(
    job: Job, report: RunReport, tell_qualities: Callable[[Qualities], None] | None = None
) -> Iterator[Corrected]:
    """Every read that is wanted corrected, in order.  The stage ends with the last one.

    tell_qualities : takes what tells the qualities of bases, before the first read comes; None: nothing is learnt of them.
    """
    with report.stage(PilesStage("piles")) as stage:
        members = find_members(job.overlaps, len(job.reads))
        if job.wanted is not None:
            members = members.only(job.wanted)
        n_all = len(members.overlap)
        members = limit_depth(job.overlaps, members, job.reads.lengths, BEFORE_PHASING * job.params.max_depth)
        stage.overlaps = len(job.overlaps)
        report.dropped.add({DEEP: n_all - len(members.overlap)})
    with report.stage(LearnStage("learn")) as learning:
        learnt = _learn(job, members)
        learning.templates = len(job.samples)
    rounds = job.params.rounds or learnt.rounds
    errors = {"mismatches": learnt.mismatch, "inserted": learnt.inserted, "missing": learnt.gap}
    report.details = Details(report.details, errors, learnt.share, rounds)
    logger.info(
        "reads beside the consensus: %.2f %% mismatches, %.2f %% insertions, %.2f %% deletions; a base needs %s of the "
        "reads; %d rounds",
        100 * learnt.mismatch, 100 * learnt.inserted, 100 * learnt.gap,
        "half (too few to learn from)" if learnt.share is None else f"{100 * learnt.share:.1f} %", rounds,
    )  # fmt: skip
    how = How(learnt.terms, learnt.odds, rounds, learnt.share or HALF, learnt.telling, tell_qualities is not None)
    if tell_qualities is not None:
        tell_qualities(_learn_qualities(job, members, how, learnt.errors))
    yield from _correct_all(job, members, how, report)


def _learn(job: Job, members: Members) -> Learnt:
    """What some reads tell."""
    pile = _piles(job, members, job.samples)
    return learn_from(job.codes, pile, job.samples, job.params, job.resources.threads)


def _learn_qualities(job: Job, members: Members, how: How, raw_errors: float) -> Qualities:
    """What tells qualities, from some reads that are corrected with their piles and with either half of them."""
    pile_of = _piles(job, members, job.samples)

    def look(read: int) -> Half:
        codes, pile = job.codes(read), pile_of(read)
        place = np.arange(len(pile))
        some = pile, pile.take(place % 2 == 0), pile.take((place % 2 == 1) | (place == 0))
        return compare_halves(codes, *(correct_template(codes, part, how, job.params).found for part in some))

    return Qualities(list(map_in_order(look, job.samples, job.resources.threads)), raw_errors)


def _piles(job: Job, members: Members, templates: np.ndarray) -> Callable[[int], Pile]:
    """What makes the piles of some templates, (n,) int64, ascending, by their numbers."""
    traced = trace_piles(job.trace, job.reads, job.overlaps, members, templates)

    def pile(read: int) -> Pile:
        i = int(np.searchsorted(templates, read))
        return job.pile(read, traced.of(i, i + 1), traced.runs)

    return pile


def _correct_all(job: Job, members: Members, how: How, report: RunReport) -> Iterator[Corrected]:
    counts, bridges, templates = Counts(), Bridges(how, job.params.min_support), job.templates
    both_ways = job.reads.both_ways
    charts = CorrectCharts() if report.wants_charts else None
    traced: TracedPiles
    given: list[Solved | None]

    def correct_some(span: tuple[int, int]) -> list[Done]:
        """Templates of the range.  What takes Python longer than a GPU takes for a read is done for all of them at once."""
        some = [solved or correct_one(i) for i, solved in zip(range(*span), given[slice(*span)], strict=True)]
        own = np.concatenate([solved.own for solved in some])
        reads, sources = traced.templates[slice(*span)], traced.of(*span)
        ends = traced.ends[slice(*traced.offsets[list(span)])]
        offsets = np.concatenate(([0], np.cumsum([solved.own.sum() for solved in some])))
        if not own.all():
            sources, ends = sources.part(own), ends[own]
        bad = find_stretches(
            both_ways, job.reads.starts[reads], job.reads.lengths[reads], both_ways, sources, traced.runs, ends, offsets,
            bridges.rule,
        )  # fmt: skip
        firsts = np.searchsorted(bad[:, 0], np.arange(len(reads) + 1)).tolist()
        return [
            cross(i, solved, bad[first:end, 1:])
            for i, solved, (first, end) in zip(range(*span), some, pairwise(firsts), strict=True)
        ]

    def correct_one(i: int) -> Solved:
        read, sources = int(traced.templates[i]), traced.of(i, i + 1)
        codes = job.codes(read)
        if not len(sources.bases):
            return Solved(uncorrected(codes), np.ones(0, bool))
        return correct_template(codes, job.pile(read, sources, traced.runs), how, job.params)

    def cross(i: int, solved: Solved, stretches: np.ndarray) -> Done:
        """Bridge the bad stretches of a read, by the reads of its copy."""
        read, found = int(traced.templates[i]), solved.found
        if len(stretches):
            near = find_neighbours(job.reads, job.overlaps, *members.of(read))
            beside = Beside(near, traced.of(i, i + 1), traced.runs).only(solved.own)
            found = bridges.cross(found, stretches, beside)
        elif solved.changes:
            return found, solved.changes
        return found, changes_of(job.codes(read), found)

    def templates_in(first: int, last: int) -> np.ndarray:
        return templates[slice(*np.searchsorted(templates, (first, last)))]

    def correct_range(first: int, last: int) -> Iterator[Done]:
        nonlocal traced, given
        traced, given = next(ahead) if job.traces_ahead else ranges.prepare(templates_in(first, last))
        each = GIVEN_TOGETHER if any(given) else 1
        spans = ((at, min(at + each, len(given))) for at in range(0, len(given), each))
        for done in map_in_order(correct_some, spans, job.resources.threads, BEGUN_AHEAD):
            yield from done

    def once(first: int, last: int) -> Iterator[Done]:
        """The reads of a range; those that the folder holds are not corrected again."""
        if job.work is None:
            return correct_range(first, last)
        kept = job.work.once(f"reads-{first}", lambda: pack(found for found, _ in correct_range(first, last)))
        reads = zip(templates_in(first, last), unpack(kept), strict=True)
        return ((found, changes_of(job.codes(read), found)) for read, found in reads)

    with report.stage(CorrectStage("correct")) as stage, progress("correct", len(job.reads)) as advance:
        ranges = _Ranges(job, members, how)
        edges = _edges(job, members, ranges.at_once if job.traces_ahead else 0)
        ahead = ranges.prepared_ahead(starmap(templates_in, pairwise(edges)))
        for first, last in pairwise(edges):
            for read, (found, changes) in zip(templates_in(first, last).tolist(), once(first, last), strict=True):
                counts.add(found, changes)
                if charts:
                    charts.add(found, changes)
                advance(read)
                yield found
        stage.reads, stage.ranges = len(job.reads), len(edges) - 1
    counts.tell(job.params, report)
    if charts:
        report.charts = [*report.charts, *charts.charts(report.details.correction.changes_per_kb)]


Done = tuple[Corrected, Changes]
Prepared = tuple[TracedPiles, list[Solved | None]]


class _Ranges:
    """Gives the paths of the piles of a range of reads, and those reads that GPUs have corrected."""

    def __init__(self, job: Job, members: Members, how: How):
        self._job, self._members, self._gpus = job, members, None
        if job.resources.device != "cpu" and not how.with_margins:
            from bellapy.jobs.correct.gpu.ranges import OnGpus  # needs a GPU's driver

            self._gpus = OnGpus(job.reads, how, job.params, job.resources.devices)

    def prepare(self, templates: np.ndarray) -> Prepared:
        return self._solve(self._trace(templates))

    @property
    def at_once(self) -> int:
        """Ranges that GPUs correct at a time."""
        return max(1, self._gpus.at_once if self._gpus else 1)

    def prepared_ahead(self, ranges: Iterator[np.ndarray]) -> Iterator[Prepared]:
        """All ranges; the paths of one are made while GPUs correct those before, and the CPU has the one before these."""
        return map_in_order(self._solve, made_ahead(map(self._trace, ranges)), self.at_once, 1)

    def _trace(self, templates: np.ndarray) -> TracedPiles:
        return trace_piles(self._job.trace, self._job.reads, self._job.overlaps, self._members, templates)

    def _solve(self, traced: TracedPiles) -> Prepared:
        return traced, self._gpus.correct(traced) if self._gpus else [None] * len(traced.templates)


def _edges(job: Job, members: Members, ahead: int) -> list[int]:
    """Where ranges begin, and the last one ends.  A folder keeps them, so that they stay as they are.

    ahead : ranges that GPUs have at a time, while the CPU has the one before them.
    """
    if job.work is None:
        return _ranges(job, members, RANGE_BYTES, ahead)
    kept = job.work.once("ranges", lambda: {"edges": np.array(_ranges(job, members, KEPT_BYTES, ahead), np.int64)})
    return kept["edges"].tolist()


def _ranges(job: Job, members: Members, most_bytes: int, ahead: int) -> list[int]:
    """Cut the reads into ranges whose paths fit the memory: those of one read, and of as many more as there is room for."""
    held = ahead + HELD_BESIDE if ahead else 1
    start, end = spans_on_template(job.overlaps, members.overlap, members.as_query)
    totals = np.concatenate(([0], np.cumsum((end - start) * PATH_BYTES)))[members.offsets]
    most = int(np.diff(totals).max(initial=1)) + 1
    threads = job.resources.threads
    piles = int(PILE_BYTES / PATH_BYTES * threads * most) + BRIDGE_BYTES + threads * SHORT_BYTES
    room = (
        job.resources.budget.items(
            "the paths of a read's overlaps", 1, least=held * most + piles, most=held * max(most_bytes, most) + piles
        )
        - piles
    ) // held
    edges = [0]
    while edges[-1] < len(job.reads):
        here = room // SHORT_START if len(edges) <= ahead else room
        at = int(np.searchsorted(totals, totals[edges[-1]] + here, side="right")) - 1
        edges.append(min(len(job.reads), max(edges[-1] + 1, at)))
    return edges


@dataclass
class Counts:
    """What correction did to all reads."""

    reads: int = 0
    alone: int = 0  # reads without any other
    bases_in: int = 0
    bases_out: int = 0
    raw: int = 0  # bases of the output that stayed for want of reads
    mismatches: int = 0
    inserted: int = 0
    deleted: int = 0
    members: int = 0
    foreign: int = 0
    deep: int = 0
    bridges: int = 0  # bad stretches that others bridged
    support: float = 0.0  # other reads, summed over bases; in the report their mean
    changes_per_kb: dict[str, float] = field(default_factory=dict)

    def add(self, found: Corrected, changes: Changes) -> None:
        """Add a read, what it became and what was changed."""
        n_raw = len(found.begins) - 1
        self.reads += 1
        self.alone += not found.n_reads
        self.bases_in += n_raw
        self.bases_out += len(found.codes)
        self.raw += changes.raw
        self.mismatches += changes.mismatches
        self.inserted += changes.inserted
        self.deleted += changes.deleted
        self.members += found.n_reads
        self.foreign += found.n_foreign
        self.deep += found.n_deep
        self.bridges += found.n_bridges
        self.support += found.support * n_raw

    def tell(self, params: CorrectParams, report: RunReport) -> None:
        """Say and report what was done; warn where little was."""
        n = max(1, self.bases_in)
        per_kb = {kind: round(1000 * getattr(self, kind) / n, 2) for kind in ("mismatches", "inserted", "deleted")}
        report.details.correction = replace(self, support=round(self.support / n, 2), changes_per_kb=per_kb)
        report.dropped.add({FOREIGN: self.foreign, DEEP: self.deep})
        logger.info(
            "%s bases in, %s out; changes per kb: %.1f bases replaced, %.1f put in, %.1f taken out; %.1f other reads on "
            "each base; of %s reads in piles %s are of other haplotypes or copies; bad stretches bridged: %s",
            f"{self.bases_in:,}", f"{self.bases_out:,}", *per_kb.values(), self.support / n, f"{self.members:,}",
            f"{self.foreign:,}", f"{self.bridges:,}",
        )  # fmt: skip
        if self.raw > FEW * max(1, self.bases_out):
            logger.warning(
                "%.0f %% of the bases have too few other reads beside them (--min-support %d) and stay as they were; the "
                "mean is %.1f. More reads would help, or a smaller --min-support.",
                100 * self.raw / max(1, self.bases_out), params.min_support, self.support / n,
            )  # fmt: skip
