"""The whole flow: reads -> k-mers -> matrix -> candidates -> seeds -> alignments -> overlaps.

The lists below are the method: rounds of tasks (work.py), and what is learnt between them.  In memory a round has one task.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bellapy.compute.gpu.devices import choose_device
from bellapy.compute.memory import Budget
from bellapy.jobs.overlap import align, candidates, counting, gate, linking, other_copies
from bellapy.jobs.overlap import filter as filtering
from bellapy.jobs.overlap.align import Steps
from bellapy.jobs.overlap.blocks import COUNTED, KEPT, LAYOUT, SETTINGS, learn_layout
from bellapy.jobs.overlap.depth_steps import STEP
from bellapy.jobs.overlap.judging import Judging
from bellapy.jobs.overlap.linking import APART_KIND, DEEP, REPEAT, Links
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
from bellapy.records import Estimate, Overlaps, ReadSet
from bellapy.records.bases import UNKNOWN
from bellapy.records.estimate import LEAST_UNEVEN
from bellapy.report.log import logger
from bellapy.report.run_report import RunReport, describe_dropped

LEAST_TOLD = 0.01  # share of the bases that the log tells
WITHOUT_DEPTH = (
    "depth and error rate of the reads could not be measured; k-mers that occur up to %d times link reads, which fits the "
    "counts of most reads; give --depth and --error-rate if you know them"
)
MOSTLY = 0.5  # share of unknown bases that explains why reads have no k-mers in common

# ---------------------------------------------------------------- the method


def judged(its: Judging) -> Flow:
    """Alignments are judged twice: those of best seeds, and then all."""
    faults = its.faults
    return (
        Round(its.measured, its.measure),
        Learn(its.usual, its.learn_usual),  # the usual score per base
        Round(faults.turns, faults.cross),
        Learn(faults.partners, faults.add_partners),
        Round(faults.cover, faults.go_on),
        Learn(faults.standing, faults.stand),  # where alignments go on
        Round(its.fair, its.be_fair, spends=(faults.turns, faults.cover)),
        Learn(its.thresholds, its.learn_thresholds),
    )


ESTIMATING: Flow = (
    Learn(ESTIMATE, counting.estimate_reads),  # depth and error rate
    Learn(SETTINGS, counting.choose_settings),  # k and bounds
)
COUNTING: Flow = (
    Round(COUNTED, counting.count),
    Learn(linking.LINKING, linking.learn_from_parts),  # which columns link reads
    Round(KEPT, linking.keep, spends=(COUNTED,)),  # A
    Learn(linking.LINKED, linking.link_reads),  # the depth along the reads
    Learn(LAYOUT, learn_layout),
)
FINDING_CANDIDATES: Flow = (
    Round(candidates.SEEDS, candidates.find_seeds, spends=(KEPT,)),  # of A·Aᵀ
    Learn(candidates.TYPICAL, candidates.learn_from_sure),  # what sound candidates show
    Round(gate.MARKS, gate.mark),
    Learn(gate.BLIND, gate.find_blind),  # reads in repeats whose copies look the same
    Round(gate.GATED, gate.gate, spends=(candidates.SEEDS, gate.MARKS)),
)
ALIGNING: Flow = (
    Learn(align.STEPS, align.learn_steps),  # scores and X
    Round(align.FIRST, align.align_first, spends=(gate.GATED,)),
    *judged(align.FIRST_JUDGED),
    Round(
        align.ALL,
        align.align_second,
        spends=(align.FIRST, align.FIRST_JUDGED.measured, align.FIRST_JUDGED.fair),
    ),  # fmt: skip
)
FILTERING: Flow = (
    *judged(align.ALL_JUDGED),
    Round(other_copies.SUMS, other_copies.add_up),
    Learn(other_copies.MEANS, other_copies.learn_means),
    Round(other_copies.BETTER, other_copies.add_up_better),
    Learn(other_copies.LEVELS, other_copies.learn_levels),  # what each read scores with its own copy
    Round(other_copies.SHORTFALLS, other_copies.compare, spends=(other_copies.BETTER,)),
    Learn(other_copies.LIMITS, other_copies.limit_shortfalls),
    Round(
        filtering.OVERLAPS,
        filtering.finish,
        spends=(align.ALL, align.ALL_JUDGED.measured, align.ALL_JUDGED.fair, other_copies.SUMS, other_copies.SHORTFALLS),
    ),  # fmt: skip
    Learn(filtering.SELECTED, filtering.select_overlaps),
)
IMPLYING: Flow = (
    Round(filtering.OVERLAPS, filtering.imply, spends=(gate.GATED,)),
    Learn(filtering.SELECTED, filtering.select_overlaps),
)


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


def in_memory(reads: ReadSet, params: Params, report: RunReport, n_queries: int | None = None, copies: int = 1) -> Work:
    """The whole job as one task for each round, in memory; n_queries, copies : as in Work."""
    return Work(params, HeldReads(reads), Plan.whole(len(reads), n_queries), MemoryStore(), report, n_queries, copies)


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
    return filtering.overlaps_of(work, 0), work.get(align.STEPS).steps


def candidate_overlaps(reads: ReadSet, params: Params, report: RunReport, n_queries: int | None = None) -> Overlaps:
    """What the seeds of all candidates imply, without any alignment; n_queries : as of `overlap_reads`."""
    work = in_memory(reads, params, report, n_queries=n_queries)
    find_overlaps(work, skip_alignment=True)
    return filtering.overlaps_of(work, 0)


def for_paths(params: Params, with_paths: bool) -> Params:
    """The parameters of the filter where paths will be made, which know identities better."""
    return replace(params, filter=replace(params.filter, min_identity=0.0)) if with_paths else params


def find_overlaps(work: Work, launch: Launch = launch_here, *, skip_alignment: bool = False) -> None:
    """All rounds; `filtering.overlaps_of` gives what they find."""
    run_counting(work, launch)
    run_candidates(work, launch)
    if skip_alignment:
        follow(work, IMPLYING, launch)
        work.report.dropped.add(work.get(filtering.SELECTED).dropped)
        return
    run_alignment(work, launch)
    run_filter(work, launch)


def run_counting(work: Work, launch: Launch = launch_here) -> None:
    """Estimate depth and error rate, choose k and bounds, count k-mers, build the matrix."""
    report, lengths = work.report, work.reads.lengths
    with report.stage(EstimateStage("estimate")) as stage:
        follow(work, ESTIMATING, launch)
        stage.reads, stage.bases = len(lengths), int(lengths.sum(dtype=np.int64))
    settings = work.get(SETTINGS)
    k, lower, upper = settings.k, settings.lower, settings.upper
    sampling, window = settings.sampling, settings.sampling_window
    sampled = f", {sampling} 1 in {window}" if window > 1 and sampling != "none" else ""
    least = work.rules.filter.min_overlap
    shorter = f", overlaps from {least:,} bases on" if least != SHORTEST_OVERLAP else ""
    about_reads = describe_estimate(work.reads.all(), work.estimate, work.n_queries)
    if work.n_queries is not None:
        logger.info("%s reads against %s targets", f"{work.n_queries:,}", f"{len(lengths) - work.n_queries:,}")
    logger.info("%s; k %d, counts %d to %d%s%s", about_reads, k, lower, upper, sampled, shorter)
    if (work.estimate.depth is None or work.estimate.error_rate is None) and work.params.kmers.upper is None:
        logger.warning(WITHOUT_DEPTH, upper)
    report.estimates = replace(
        Estimates.of(work.estimate), k=k, lower=lower, upper=upper, sampling=sampling, sampling_window=window,
        min_overlap=least,
    )  # fmt: skip
    with report.stage(CountStage("count")) as counted:
        follow(work, COUNTING, launch)
        counted.kmers, counted.places = work.total(KEPT, "n_kmers"), work.total(KEPT, "n_places")
    report.details.links = links = work.get(linking.LINKED).links
    for line in describe_links(links) if links else ():
        logger.info(line)
    report.details.spectrum = work.get(linking.LINKING).spectrum[: 4 * upper + 1].tolist()
    if not counted.kmers:
        _explain_no_kmers(work.reads.all(), k, lower, upper)


def describe_estimate(reads: ReadSet, estimate: Estimate, n_queries: int | None = None) -> str:
    """One line for the log; n_queries : as in Work."""
    depth = "unknown" if estimate.depth is None else f"about {estimate.depth:.0f}x"
    depth += "" if estimate.spread is None else f" (± {estimate.spread:.1f})"
    error = "unknown" if estimate.error_rate is None else f"about {100 * estimate.error_rate:.1f} %"
    if estimate.mixed and estimate.worst_error_rate is not None:
        error += f" (mixed reads: about {100 * estimate.worst_error_rate:.0f} % in the worst tenth)"
    if estimate.uneven > LEAST_UNEVEN:
        depth += f" (uneven: {100 * estimate.uneven:.0f} % of the bases are in reads far from that)"
    size = ""
    if n_queries is not None:
        depth += " of reads and targets together"
    elif estimate.depth is not None:
        size = f", genome about {reads.n_bases / estimate.depth / 1e6:.2f} Mb"
        size += "" if estimate.repeats is None else f" with {100 * estimate.repeats:.0f} % in repeats"
        apart = estimate.heterozygosity
        size += "" if apart is None else f" and two haplotypes about {100 * apart:.1f} % apart"
    return f"depth {depth}, error rate {error}{size} (from: {estimate.source})"


def describe_links(links: Links) -> list[str]:
    """What the log tells of it."""
    said = []
    if links.deep_share > LEAST_TOLD:
        share = f", one in {links.one_in[DEEP]}" if links.one_in[DEEP] > 1 else ""
        said.append(
            f"uneven depth: {100 * links.deep_share:.0f} % of the bases are in stretches far deeper than the bound allows; "
            f"there, {links.kept[DEEP]:,} k-mers above {links.upper} link reads{share}"
        )
    if links.repeat_share > LEAST_TOLD:
        said.append(
            f"repeats: {100 * links.repeat_share:.0f} % of the bases are in sequence over {STEP:g} times as deep as that "
            f"around it; {links.found[REPEAT]:,} k-mers of repeats are left out, {links.kept[APART_KIND]:,} that differ "
            "between copies are used"
        )
    return said


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


def run_candidates(work: Work, launch: Launch = launch_here) -> None:
    """A·Aᵀ by blocks of queries, seeds of every candidate, without chance matches and repeats."""
    report = work.report
    n_kmers = work.total(KEPT, "n_kmers")
    with report.stage(CandidatesStage("candidates")) as stage:
        follow(work, FINDING_CANDIDATES, launch)
        stage.products, stage.candidates = (
            work.total(candidates.SEEDS, "products"),
            work.total(candidates.SEEDS, "candidates"),
        )
        stage.seeds = work.total(gate.GATED, "n_seeds")
        report.dropped.add(work.dropped(candidates.SEEDS))
        report.dropped.add(work.dropped(gate.GATED))
    report.details.typical = work.get(candidates.TYPICAL)
    if n_kmers and not stage.seeds:
        logger.warning(
            "no candidate is left: no overlaps. Of %s candidates, dropped: %s. Try a smaller -k, --min-overlap or "
            "--min-support, a larger --upper or --max-copies, or more reads.",
            f"{stage.candidates:,}", report.dropped,
        )  # fmt: skip


def run_alignment(work: Work, launch: Launch = launch_here) -> None:
    """Extend the best seed of every candidate, and the others where the first gave no overlap or leaves room for another."""
    report = work.report
    with report.stage(AlignStage("align")) as stage:
        follow(work, ALIGNING, launch)
        stage.extensions, stage.second_seeds = (
            work.total(align.ALL, "n_extensions"),
            work.total(align.ALL, "n_second"),
        )
    steps = work.get(align.STEPS).steps
    logger.info("%s", describe_steps(steps))
    report.estimates.xdrop, report.estimates.tilt = [step.xdrop for step in steps], steps[0].tilt / TILT_UNIT


def describe_steps(steps: Steps) -> str:
    """One line for the log."""
    x = ", then ".join(str(step.xdrop) for step in steps)
    ends = f"; ends are chosen with {steps[0].tilt / TILT_UNIT:.3f} off for each base" if steps[0].fall else ""
    return f"alignments were extended until the score fell by {x}{ends}"


def run_filter(work: Work, launch: Launch = launch_here) -> None:
    """Keep the alignments that are overlaps."""
    report = work.report
    with report.stage(FilterStage("filter")) as stage:
        follow(work, FILTERING, launch)
        thresholds, selected = work.get(align.ALL_JUDGED.thresholds), work.get(filtering.SELECTED)
        dropped = {**work.dropped(filtering.OVERLAPS), **selected.dropped}
        stage.overlaps, stage.second_pieces = selected.n_overlaps, selected.n_second
    report.dropped.add(dropped)
    report.details.thresholds = thresholds
    logger.info("kept with a score of %.3f per base or more; dropped: %s", thresholds.score_rate, describe_dropped(dropped))
