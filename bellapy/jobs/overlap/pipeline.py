"""The whole flow, one call per stage: reads -> k-mers -> matrix -> candidates -> seeds -> alignments -> overlaps, paths.

A stage is some rounds of tasks (work.py).  In memory each round has one task.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TypeVar

import numpy as np

from bellapy.compute.gpu.devices import choose_device
from bellapy.compute.memory import Budget
from bellapy.compute.resources import Resources
from bellapy.engines.ends import End
from bellapy.engines.extend import extend_anchors
from bellapy.jobs.overlap import estimate as estimates
from bellapy.jobs.overlap.align_rounds import (
    ALIGN_ROUNDS,
    ALL,
    FILTER_ROUNDS,
    IMPLY_ROUNDS,
    overlaps_of,
    selected,
    steps_for,
    thresholds_of,
)
from bellapy.jobs.overlap.candidate_rounds import ROUNDS as CANDIDATE_ROUNDS
from bellapy.jobs.overlap.candidate_rounds import typical_of
from bellapy.jobs.overlap.count_rounds import ANY_COUNT, choose_settings, links_of, profile_of
from bellapy.jobs.overlap.count_rounds import ROUNDS as COUNT_ROUNDS
from bellapy.jobs.overlap.ends import Steps, describe_steps, pilot_seeds
from bellapy.jobs.overlap.linking import describe
from bellapy.jobs.overlap.report import (
    AlignStage,
    CandidatesStage,
    CountStage,
    Estimates,
    EstimateStage,
    FilterStage,
    PathsStage,
)
from bellapy.jobs.overlap.selection import selects
from bellapy.jobs.overlap.work import HeldReads, Launch, MemoryStore, Plan, Round, Work, launch_here
from bellapy.params import TILT_UNIT, Params
from bellapy.params.overlap import SHORTEST_OVERLAP
from bellapy.records import DepthProfile, Estimate, Extensions, KmerMatrix, Overlaps, Paths, ReadSet, Seeds
from bellapy.records.bases import UNKNOWN
from bellapy.records.kmers import Held
from bellapy.report.log import logger
from bellapy.report.progress import progress
from bellapy.report.run_report import RunReport, describe_dropped

Shown = TypeVar("Shown")
MOSTLY = 0.5  # share of unknown bases that explains why reads have no k-mers in common


@dataclass(frozen=True)
class Counted:
    """What counting found: the matrix, the depth profile, and what the spectrum says of the reads."""

    matrix: KmerMatrix
    profile: DepthProfile
    estimate: Estimate

    def meta(self) -> dict:
        """What later stages need besides the arrays, as JSON holds it."""
        return {"estimate": asdict(self.estimate)}

    @classmethod
    def from_meta(cls, matrix: KmerMatrix, profile: DepthProfile, meta: dict) -> Counted:
        """The inverse of `meta`."""
        return cls(matrix, profile, estimate_of(meta))


def estimate_of(meta: dict) -> Estimate:
    """The estimate that a stage file's `meta` holds."""
    return Estimate(**meta["estimate"])


def with_device(params: Params) -> Params:
    """The parameters with the device that is there: before the work, so that a GPU that cannot be used is told early."""
    return replace(params, run=replace(params.run, device=choose_device(params.run.device)))


# ---------------------------------------------------------------- the job, and its stages one by one


def in_memory(
    reads: ReadSet, params: Params, report: RunReport, estimate: Estimate | None = None, n_queries: int | None = None,
    copies: int = 1,
) -> Work:  # fmt: skip
    """The whole job as one task for each round, in memory; n_queries, copies : as in Work."""
    work = Work(params, HeldReads(reads), Plan.whole(len(reads), n_queries), MemoryStore(), report, n_queries, copies)
    if estimate is not None:
        work.store.put("settings", {"estimate": asdict(estimate)})
    return work


def overlap_reads(
    reads: ReadSet, params: Params, report: RunReport, *, with_paths: bool = False, n_queries: int | None = None,
    copies: int = 1,
) -> tuple[Overlaps, Steps]:  # fmt: skip
    """All overlaps of the reads with each other, and the scores of their alignments.

    with_paths : paths will be made: identities are left to them.
    n_queries : the first so many reads are queries, the others their targets, and only overlaps of both are found.
    copies : as in Work.
    """
    Budget(params.run.max_memory).require("keeping the reads in both directions", reads.codes.nbytes)
    work = in_memory(reads, for_paths(with_device(params), with_paths), report, n_queries=n_queries, copies=copies)
    find_overlaps(work)
    return overlaps_of(work, 0), steps_for(work)


def candidate_overlaps(reads: ReadSet, params: Params, report: RunReport, n_queries: int | None = None) -> Overlaps:
    """What the seeds of all candidates imply, without any alignment; n_queries : as of `overlap_reads`."""
    work = in_memory(reads, params, report, n_queries=n_queries)
    find_overlaps(work, skip_alignment=True)
    return overlaps_of(work, 0)


def for_paths(params: Params, with_paths: bool) -> Params:
    """The parameters of the filter where paths will be made, which know identities better."""
    return replace(params, filter=replace(params.filter, min_identity=0.0)) if with_paths else params


def find_overlaps(work: Work, launch: Launch = launch_here, *, skip_alignment: bool = False) -> None:
    """All rounds; what they find are the results "overlaps"."""
    count_rounds(work, launch)
    candidate_rounds(work, launch)
    if skip_alignment:
        _all(work, IMPLY_ROUNDS, launch)
        if selects(work.params.filter):
            work.report.dropped.add(selected(work)["dropped"])
        return
    align_rounds(work, launch)
    filter_rounds(work, launch)


def rounds_of(skip_alignment: bool) -> tuple[Round, ...]:
    """All rounds of a job, in order."""
    return (*COUNT_ROUNDS, *CANDIDATE_ROUNDS, *(IMPLY_ROUNDS if skip_alignment else (*ALIGN_ROUNDS, *FILTER_ROUNDS)))


def _all(work: Work, rounds: Sequence[Round], launch: Launch) -> None:
    for its_round in rounds:
        launch(work, its_round)


def count_rounds(work: Work, launch: Launch = launch_here) -> None:
    """Estimate depth and error rate, choose k and bounds, count k-mers, build the matrix."""
    report, lengths = work.report, work.reads.lengths
    with report.stage(EstimateStage("estimate")) as stage:
        settings = work.store.get_or_make("settings", lambda: choose_settings(work))
        stage.reads, stage.bases = len(lengths), int(lengths.sum(dtype=np.int64))
    k, lower, upper, sampling, window = (
        settings[name] for name in ("k", "lower", "upper", "sampling", "sampling_window")
    )  # fmt: skip
    sampled = f", {sampling} 1 in {window}" if window > 1 and sampling != "none" else ""
    least = work.rules.filter.min_overlap
    shorter = f", overlaps from {least:,} bases on" if least != SHORTEST_OVERLAP else ""
    about_reads = estimates.describe(work.reads.all(), work.estimate, work.n_queries)
    if work.n_queries is not None:
        logger.info("%s reads against %s targets", f"{work.n_queries:,}", f"{len(lengths) - work.n_queries:,}")
    logger.info("%s; k %d, counts %d to %d%s%s", about_reads, k, lower, upper, sampled, shorter)
    if (work.estimate.depth is None or work.estimate.error_rate is None) and work.params.kmers.upper is None:
        logger.warning(estimates.WITHOUT_DEPTH, upper)
    report.estimates = replace(
        Estimates.of(work.estimate), k=k, lower=lower, upper=upper, sampling=sampling, sampling_window=window,
        min_overlap=least,
    )  # fmt: skip
    with report.stage(CountStage("count")) as counted:
        _all(work, COUNT_ROUNDS, launch)
        links, spectrum = links_of(work)
        counted.kmers, counted.places = (work.total("keep", name, "parts") for name in ("kmers", "places"))
    for line in describe(links):
        logger.info(line)
    report.details.links, report.details.spectrum = links, spectrum[: 4 * upper + 1].tolist()
    if not counted.kmers:
        _explain_no_kmers(work.reads.all(), k, lower, upper)


def count_stage(reads: ReadSet, params: Params, report: RunReport) -> Counted:
    """The stage `count`, alone."""
    work = in_memory(reads, params, report)
    count_rounds(work)
    kept = work.store.pop("keep.0")
    starts = np.append(reads.starts, len(reads.codes))
    entries = kept["entries.0"].on_host() if isinstance(kept["entries.0"], Held) else kept["entries.0"]
    matrix = KmerMatrix(n_kmers=kept["numbers"]["kmers"], entries=entries, starts=starts, upper=ANY_COUNT, **kept["shape"])
    return Counted(matrix, profile_of(work), work.estimate)


def _explain_no_kmers(reads: ReadSet, k: int, lower: int, upper: int) -> None:
    longest, n_bases = int(reads.lengths.max(initial=0)), int(reads.lengths.sum(dtype=np.int64))
    unknown = 1 - np.count_nonzero(reads.codes < UNKNOWN) / max(1, n_bases)
    if n_bases and unknown > MOSTLY:
        logger.warning(
            "%.0f %% of the bases are unknown (N, or no letter of a base): no overlaps. Is this the right input?",
            100 * unknown,
        )  # fmt: skip
    elif longest < k:
        logger.warning("no read is as long as k (%d; the longest has %d bases): no overlaps; try a smaller -k", k, longest)
    else:
        logger.warning(
            "no %d-mer occurs %d to %d times: no overlaps. The reads may be too few, too shallow or too noisy: try a "
            "smaller -k (such as %d), a larger --upper or more reads.",
            k, lower, upper, max(3, k - 4),
        )  # fmt: skip


def candidate_rounds(work: Work, launch: Launch = launch_here) -> None:
    """A·Aᵀ by blocks of queries, seeds of every candidate, without chance matches and repeats."""
    report = work.report
    n_kmers = work.total("keep", "kmers", "parts")
    with report.stage(CandidatesStage("candidates")) as stage:
        _all(work, CANDIDATE_ROUNDS, launch)
        stage.products, stage.candidates = (work.total("seeds", name) for name in ("products", "candidates"))
        stage.seeds = work.total("gate", "seeds")
        report.dropped.add(work.dropped("seeds"))
        report.dropped.add(work.dropped("gate"))
    report.details.typical = typical_of(work)
    if n_kmers and not stage.seeds:
        logger.warning(
            "no candidate is left: no overlaps. Of %s candidates, dropped: %s. Try a smaller -k, --min-overlap or "
            "--min-support, a larger --upper or --max-copies, or more reads.",
            f"{stage.candidates:,}", report.dropped,
        )  # fmt: skip


def candidates_stage(reads: ReadSet, counted: Counted, params: Params, report: RunReport) -> Seeds:
    """The stage `candidates`, alone."""
    work, matrix, profile = in_memory(reads, params, report, counted.estimate), counted.matrix, counted.profile
    work.store.put("keep.0", {
        "entries.0": matrix.entries, "numbers": {"kmers": matrix.n_kmers},
        "shape": {"k": matrix.k, "seed_length": matrix.seed_length},
    })  # fmt: skip
    work.store.put("profile", {f.name: getattr(profile, f.name) for f in fields(profile)})
    candidate_rounds(work)
    return work.store.pop("gate.0")["seeds"]


def align_rounds(work: Work, launch: Launch = launch_here) -> None:
    """Extend the best seed of every candidate, and the others where the first gave no overlap or leaves room for another."""
    report = work.report
    with report.stage(AlignStage("align")) as stage:
        _all(work, ALIGN_ROUNDS, launch)
        stage.extensions, stage.second_seeds = (work.total(ALL, name) for name in ("extensions", "second_seeds"))
    steps = steps_for(work)
    logger.info("%s", describe_steps(steps))
    report.estimates.xdrop, report.estimates.tilt = [step.xdrop for step in steps], steps[0].tilt / TILT_UNIT


def align_stage(
    reads: ReadSet, seeds: Seeds, estimate: Estimate, params: Params, report: RunReport
) -> tuple[Seeds, Extensions, Steps]:
    """The stage `align`, alone: seeds, alignments, and the scores used."""
    work = in_memory(reads, params, report, estimate)
    work.store.put("gate.0", {"seeds": seeds, "pilot": pilot_seeds(reads.lengths, seeds)})
    align_rounds(work)
    found = work.store.pop(f"{ALL}.0")
    return found["seeds"], found["extensions"], steps_for(work)


def filter_rounds(work: Work, launch: Launch = launch_here) -> None:
    """Keep the alignments that are overlaps."""
    report = work.report
    with report.stage(FilterStage("filter")) as stage:
        _all(work, FILTER_ROUNDS, launch)
        thresholds, dropped = thresholds_of(work, ALL), work.dropped("overlaps")
        stage.overlaps, stage.second_pieces = (work.total("overlaps", name) for name in ("overlaps", "second_pieces"))
        if selects(work.params.filter):
            chosen = selected(work)
            dropped = {**dropped, **chosen["dropped"]}
            stage.overlaps, stage.second_pieces = (chosen["numbers"][name] for name in ("overlaps", "second_pieces"))
    report.dropped.add(dropped)
    report.details.thresholds = thresholds
    logger.info("kept with a score of %.3f per base or more; dropped: %s", thresholds.score_rate, describe_dropped(dropped))


def filter_stage(
    reads: ReadSet, seeds: Seeds, extensions: Extensions, estimate: Estimate, params: Params, report: RunReport, *,
    with_paths: bool = False,
) -> Overlaps:  # fmt: skip
    """The stage `filter`, alone; with_paths : as in `overlap_reads`."""
    work = in_memory(reads, for_paths(params, with_paths), report, estimate)
    work.store.put(f"{ALL}.0", {"seeds": seeds, "extensions": extensions})
    filter_rounds(work)
    return overlaps_of(work, 0)


def are_extended(reads: ReadSet, overlaps: Overlaps, steps: Steps, params: Params) -> bool:
    """Whether the overlaps' scores and ends are what extension of their seeds gives: what traces paths counts on it.

    Where overlaps come from a file, only another extension tells.
    """
    end = End.of(params.extension.extension)
    again = extend_anchors(reads, overlaps.anchors, steps, end, Resources.of(params.run))
    return all(np.array_equal(getattr(again, f.name), getattr(overlaps, f.name)) for f in fields(again))


def paths_stage(
    parts: Iterable[tuple[ReadSet, Overlaps, Callable[[Overlaps, Paths], Shown]]], n_overlaps: int, steps: Steps,
    params: Params, report: RunReport,
) -> Iterator[Shown]:  # fmt: skip
    """What is shown of the overlaps and their base-level paths, in order, some at a time; the stage ends with the last.

    parts : the reads that some overlaps number, these overlaps, and what shows them.  n_overlaps : of all parts.
    steps : that the overlaps were aligned with.  params : with the shortest overlap, as `with_min_overlap` gives it.
    """
    from bellapy.engines.trace import map_paths  # what few runs need takes a while to load
    from bellapy.jobs.overlap.path_filter import trim_and_test

    end, resources = End.of(params.extension.extension), Resources.of(params.run, report.devices)
    dropped: Counter[str] = Counter()
    n_done, n_kept = 0, 0
    with report.stage(PathsStage("paths")) as stage, progress("paths", n_overlaps) as advance:
        for reads, overlaps, show in parts:

            def use(some: Overlaps, paths: Paths, reads=reads, show=show) -> tuple[Shown, int, int, dict[str, int]]:
                kept, paths, lost = trim_and_test(reads, some, paths, steps[0], params.filter)
                return show(kept, paths), len(some), len(kept), lost

            for lines, n, kept, lost in map_paths(use, reads, overlaps, steps, end, resources):
                yield lines
                n_done, n_kept = n_done + n, n_kept + kept
                dropped.update(lost)
                advance(n_done)
        stage.overlaps = n_kept
    report.dropped.add(dropped)
    logger.info("dropped by their paths: %s", describe_dropped(dropped))
