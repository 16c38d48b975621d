"""The whole flow: reads -> k-mers -> matrix -> candidates -> seeds -> alignments -> overlaps.

The lists below are the method: rounds of tasks (work.py), and what is learnt between them.  In memory a round has one task.
"""

from __future__ import annotations

from dataclasses import astuple, replace

import numpy as np

from bellapy.compute.gpu.devices import choose_device
from bellapy.compute.memory import Budget
from bellapy.jobs.overlap import estimate as estimates
from bellapy.jobs.overlap.align_rounds import (
    ALL,
    ALL_JUDGED,
    FIRST,
    FIRST_JUDGED,
    STEPS,
    align_first,
    align_second,
    learn_steps,
)
from bellapy.jobs.overlap.blocks import KEPT, LAYOUT, learn_layout
from bellapy.jobs.overlap.candidate_rounds import (
    BLIND,
    GATED,
    MARKS,
    SEEDS,
    TYPICAL,
    find_blind,
    find_seeds,
    gate,
    learn_from_sure,
    mark,
)
from bellapy.jobs.overlap.count_rounds import (
    COUNTED,
    LINKED,
    LINKING,
    SETTINGS,
    choose_settings,
    count,
    estimate_reads,
    keep,
    learn_from_parts,
    link_reads,
)
from bellapy.jobs.overlap.ends import Steps, describe_steps
from bellapy.jobs.overlap.filter_rounds import (
    BETTER,
    LEVELS,
    LIMITS,
    MEANS,
    OVERLAPS,
    SELECTED,
    SHORTFALLS,
    SUMS,
    add_up,
    add_up_better,
    compare,
    finish,
    imply,
    learn_levels,
    learn_means,
    limit_shortfalls,
    overlaps_of,
    select_overlaps,
)
from bellapy.jobs.overlap.linking import describe
from bellapy.jobs.overlap.report import AlignStage, CandidatesStage, CountStage, Estimates, EstimateStage, FilterStage
from bellapy.jobs.overlap.store import MemoryStore
from bellapy.jobs.overlap.work import (
    ESTIMATE,
    Flow,
    HeldReads,
    Launch,
    Learn,
    Plan,
    Round,
    Work,
    launch_here,
)
from bellapy.params import TILT_UNIT, Params
from bellapy.params.overlap import SHORTEST_OVERLAP
from bellapy.records import Overlaps, ReadSet
from bellapy.records.bases import UNKNOWN
from bellapy.report.log import logger
from bellapy.report.run_report import RunReport, describe_dropped

MOSTLY = 0.5  # share of unknown bases that explains why reads have no k-mers in common

# ---------------------------------------------------------------- the method

ESTIMATING: Flow = (
    Learn(ESTIMATE, estimate_reads),  # depth and error rate
    Learn(SETTINGS, choose_settings),  # k and bounds
)
COUNTING: Flow = (
    Round(COUNTED, count),
    Learn(LINKING, learn_from_parts),  # which columns link reads
    Round(KEPT, keep, spends=(COUNTED,)),  # A
    Learn(LINKED, link_reads),  # the depth along the reads
    Learn(LAYOUT, learn_layout),
)
FINDING_CANDIDATES: Flow = (
    Round(SEEDS, find_seeds, spends=(KEPT,)),  # of A·Aᵀ
    Learn(TYPICAL, learn_from_sure),  # what sound candidates show
    Round(MARKS, mark),
    Learn(BLIND, find_blind),  # reads in repeats whose copies look the same
    Round(GATED, gate, spends=(SEEDS, MARKS)),
)
ALIGNING: Flow = (
    Learn(STEPS, learn_steps),  # scores and X
    Round(FIRST, align_first, spends=(GATED,)),
    *FIRST_JUDGED.flow,
    Round(ALL, align_second, spends=(FIRST, FIRST_JUDGED.measured, FIRST_JUDGED.fair)),
)
FILTERING: Flow = (
    *ALL_JUDGED.flow,
    Round(SUMS, add_up),
    Learn(MEANS, learn_means),
    Round(BETTER, add_up_better, spends=(SUMS,)),
    Learn(LEVELS, learn_levels),  # what each read scores with its own copy
    Round(SHORTFALLS, compare, spends=(BETTER,)),
    Learn(LIMITS, limit_shortfalls),
    Round(OVERLAPS, finish, spends=(ALL, ALL_JUDGED.measured, ALL_JUDGED.fair, SHORTFALLS)),
    Learn(SELECTED, select_overlaps),
)
IMPLYING: Flow = (Round(OVERLAPS, imply, spends=(GATED,)), Learn(SELECTED, select_overlaps))


def flow_of(skip_alignment: bool) -> Flow:
    """All of it, in order."""
    end = IMPLYING if skip_alignment else (*ALIGNING, *FILTERING)
    return (*ESTIMATING, *COUNTING, *FINDING_CANDIDATES, *end)


def follow(work: Work, flow: Flow, launch: Launch) -> None:
    """Do the rounds, and learn what is learnt between them."""
    for step in flow:
        if isinstance(step, Learn):
            step.do(work)
        else:
            launch(work, step)


# ---------------------------------------------------------------- the job


def with_device(params: Params) -> Params:
    """The parameters with the device that is there: before the work, so that a GPU that cannot be used is told early."""
    return replace(params, run=replace(params.run, device=choose_device(params.run.device)))


def in_memory(reads: ReadSet, params: Params, report: RunReport, n_queries: int | None = None) -> Work:
    """The whole job as one task for each round, in memory; n_queries : as in Work."""
    return Work(params, HeldReads(reads), Plan.whole(len(reads), n_queries), MemoryStore(), report, n_queries)


def overlap_reads(
    reads: ReadSet, params: Params, report: RunReport, *, with_paths: bool = False, n_queries: int | None = None
) -> tuple[Overlaps, Steps]:
    """All overlaps of the reads with each other, and the scores of their alignments.

    with_paths : paths will be made: identities are left to them.
    n_queries : the first so many reads are queries, the others their targets, and only overlaps of both are found.
    """
    Budget(params.run.max_memory).require("keeping the reads in both directions", reads.codes.nbytes)
    work = in_memory(reads, for_paths(with_device(params), with_paths), report, n_queries=n_queries)
    find_overlaps(work)
    return overlaps_of(work, 0), work.get(STEPS).steps


def candidate_overlaps(reads: ReadSet, params: Params, report: RunReport, n_queries: int | None = None) -> Overlaps:
    """What the seeds of all candidates imply, without any alignment; n_queries : as of `overlap_reads`."""
    work = in_memory(reads, params, report, n_queries=n_queries)
    find_overlaps(work, skip_alignment=True)
    return overlaps_of(work, 0)


def for_paths(params: Params, with_paths: bool) -> Params:
    """The parameters of the filter where paths will be made, which know identities better."""
    return replace(params, filter=replace(params.filter, min_identity=0.0)) if with_paths else params


def find_overlaps(work: Work, launch: Launch = launch_here, *, skip_alignment: bool = False) -> None:
    """All rounds; `overlaps_of` gives what they find."""
    count_rounds(work, launch)
    candidate_rounds(work, launch)
    if skip_alignment:
        follow(work, IMPLYING, launch)
        work.report.dropped.add(work.get(SELECTED).dropped)
        return
    align_rounds(work, launch)
    filter_rounds(work, launch)


def count_rounds(work: Work, launch: Launch = launch_here) -> None:
    """Estimate depth and error rate, choose k and bounds, count k-mers, build the matrix."""
    report, lengths = work.report, work.reads.lengths
    with report.stage(EstimateStage("estimate")) as stage:
        follow(work, ESTIMATING, launch)
        stage.reads, stage.bases = len(lengths), int(lengths.sum(dtype=np.int64))
    k, lower, upper, sampling, window = astuple(work.get(SETTINGS))
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
        follow(work, COUNTING, launch)
        counted.kmers, counted.places = work.total(KEPT, "n_kmers"), work.total(KEPT, "n_places")
    report.details.links = links = work.get(LINKED).links
    for line in describe(links) if links else ():
        logger.info(line)
    report.details.spectrum = work.get(LINKING).spectrum[: 4 * upper + 1].tolist()
    if not counted.kmers:
        _explain_no_kmers(work.reads.all(), k, lower, upper)


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
    n_kmers = work.total(KEPT, "n_kmers")
    with report.stage(CandidatesStage("candidates")) as stage:
        follow(work, FINDING_CANDIDATES, launch)
        stage.products, stage.candidates = work.total(SEEDS, "products"), work.total(SEEDS, "candidates")
        stage.seeds = work.total(GATED, "n_seeds")
        report.dropped.add(work.dropped(SEEDS))
        report.dropped.add(work.dropped(GATED))
    report.details.typical = work.get(TYPICAL)
    if n_kmers and not stage.seeds:
        logger.warning(
            "no candidate is left: no overlaps. Of %s candidates, dropped: %s. Try a smaller -k, --min-overlap or "
            "--min-support, a larger --upper or --max-copies, or more reads.",
            f"{stage.candidates:,}", report.dropped,
        )  # fmt: skip


def align_rounds(work: Work, launch: Launch = launch_here) -> None:
    """Extend the best seed of every candidate, and the others where the first gave no overlap or leaves room for another."""
    report = work.report
    with report.stage(AlignStage("align")) as stage:
        follow(work, ALIGNING, launch)
        stage.extensions, stage.second_seeds = work.total(ALL, "n_extensions"), work.total(ALL, "n_second")
    steps = work.get(STEPS).steps
    logger.info("%s", describe_steps(steps))
    report.estimates.xdrop, report.estimates.tilt = [step.xdrop for step in steps], steps[0].tilt / TILT_UNIT


def filter_rounds(work: Work, launch: Launch = launch_here) -> None:
    """Keep the alignments that are overlaps."""
    report = work.report
    with report.stage(FilterStage("filter")) as stage:
        follow(work, FILTERING, launch)
        thresholds, selected = work.get(ALL_JUDGED.thresholds), work.get(SELECTED)
        dropped = {**work.dropped(OVERLAPS), **selected.dropped}
        stage.overlaps, stage.second_pieces = selected.n_overlaps, selected.n_second
    report.dropped.add(dropped)
    report.details.thresholds = thresholds
    logger.info("kept with a score of %.3f per base or more; dropped: %s", thresholds.score_rate, describe_dropped(dropped))
