"""The whole flow, one call per stage: reads -> k-mers -> matrix -> candidates -> seeds -> alignments -> overlaps, paths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from typing import TypeVar

import numpy as np

from bellapy.compute.gpu.devices import choose_device
from bellapy.compute.memory import Budget
from bellapy.compute.resources import Resources
from bellapy.compute.threads import map_threads
from bellapy.engines import extend as xdrop
from bellapy.engines import trace as base_level
from bellapy.engines.ends import End
from bellapy.engines.extend import extend_anchors, join_extensions
from bellapy.jobs.overlap import estimate as estimates
from bellapy.jobs.overlap.candidate_filter import copies, dense_enough, keep_outside_repeats, learn_typical, lowest_depth
from bellapy.jobs.overlap.candidates import multiply, symbolic_product
from bellapy.jobs.overlap.depth import Links, describe, link_columns
from bellapy.jobs.overlap.ends import Steps, choose_steps, describe_steps, first_scoring
from bellapy.jobs.overlap.filter import Thresholds, filter_overlaps, implied_overlaps, judge, score_floor
from bellapy.jobs.overlap.geometry import Geometry, measure_geometry
from bellapy.jobs.overlap.path_filter import trim_and_test
from bellapy.jobs.overlap.pieces import clear_of, implied_ends
from bellapy.jobs.overlap.report import (
    NO_SUPPORT,
    REPEAT,
    TOO_SPARSE,
    AlignStage,
    CandidatesStage,
    CountStage,
    Estimates,
    EstimateStage,
    FilterStage,
    PathsStage,
)
from bellapy.jobs.overlap.seeds import (
    choose_seeds,
    first_of_candidate,
    has_any,
    join_seeds,
    seed_bytes,
    starts_of_candidates,
)
from bellapy.params import TILT_UNIT, KmerParams, Params
from bellapy.params.overlap import DEFAULT_SAMPLING_WINDOW
from bellapy.records import DepthProfile, Estimate, Extensions, KmerMatrix, Overlaps, Paths, ReadSet, Seeds
from bellapy.records.bases import PAD, UNKNOWN
from bellapy.report.log import logger, progress
from bellapy.report.run_report import RunReport, describe_dropped
from bellapy.seeding.kmer_matrix import PROFILE_WIDTH, build_kmer_matrix, profile_depth
from bellapy.seeding.kmers import NO_MASK, KmerCounts, count_kmers
from bellapy.seeding.sampling import compress_homopolymers, restore_places, sampling_mask

Shown = TypeVar("Shown")

ANY_COUNT = (1 << 31) - 1
PROFILED_BYTES = 120  # of a bin of the depth profile, while it is judged
JOINED_BYTES = 60  # of a copy of a seed and what is computed from it
ALIGNED_BYTES = 240  # of copies, alignments and what is computed from them, for each seed


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


def load_kernels(params: Params) -> None:
    """Load, the first time compile, what `overlap_reads` needs on a CPU."""
    count_kmers(np.full(PAD, UNKNOWN, np.uint8), 1, 2, 2)
    if params.run.device == "cpu":
        xdrop.load(first_scoring(params.extension))


def overlap_reads(reads: ReadSet, params: Params, report: RunReport, *, with_paths: bool = False) -> tuple[Overlaps, Steps]:
    """All overlaps of the reads with each other, and the scores of their alignments."""
    Budget(params.run.max_memory).require("keeping the reads in both directions", reads.codes.nbytes)
    params = with_device(params)
    counted = count_stage(reads, params, report)
    estimate, candidates = counted.estimate, [candidates_stage(reads, counted, params, report)]
    del counted  # the matrix is large and not needed any more; nor are the candidates kept here
    seeds, extensions, steps = align_stage(reads, candidates.pop(), estimate, params, report)
    return filter_stage(reads, seeds, extensions, estimate, params, report, with_paths=with_paths), steps


def with_device(params: Params) -> Params:
    """The parameters with the device that is there: before the work, so that a GPU that cannot be used is told early."""
    return replace(params, run=replace(params.run, device=choose_device(params.run.device)))


def candidate_overlaps(reads: ReadSet, params: Params, report: RunReport) -> Overlaps:
    """What the seeds of all candidates imply, without any alignment."""
    counted = count_stage(reads, params, report)
    return implied_overlaps(reads, candidates_stage(reads, counted, params, report))


def count_stage(reads: ReadSet, params: Params, report: RunReport) -> Counted:
    """Estimate depth and error rate, choose k and bounds, count k-mers, build the matrix."""
    kmers, threads = params.kmers, params.run.threads
    with report.stage(EstimateStage("estimate")) as stage:
        found = _estimate(reads, kmers, threads)
        k = kmers.k or estimates.choose_k(reads.lengths, found.choice_rate)
        upper = kmers.upper or estimates.choose_upper(found.depth, found.error_rate, k, kmers.lower)
        stage.reads, stage.bases = len(reads), reads.n_bases
        sampling = kmers.sampling
        window = kmers.sampling_window or DEFAULT_SAMPLING_WINDOW
        if sampling == "auto":
            sampling, window = "fraction", estimates.choose_sampling(found.choice_rate, k)
    logger.info(
        "%s; k %d, counts %d to %d%s", estimates.describe(reads, found), k, kmers.lower, upper,
        f", {sampling} 1 in {window}" if window > 1 and sampling != "none" else "",
    )  # fmt: skip
    report.estimates = replace(
        Estimates.of(found), k=k, lower=kmers.lower, upper=upper, sampling=sampling, sampling_window=window
    )
    with report.stage(CountStage("count")) as counted:
        counts = _count(reads, params, k, sampling, window)
        matrix, profile, links = _link(reads, counts, found, params, k, upper, window if sampling == "fraction" else 1)
        counted.kmers, counted.places = matrix.n_kmers, len(matrix.entries)
    for line in describe(links):
        logger.info(line)
    report.details.links, report.details.spectrum = links, counts.spectrum[: 4 * upper + 1].tolist()
    if not matrix.n_kmers:
        _explain_no_kmers(reads, k, kmers.lower, upper)
    return Counted(matrix, profile, found)


def _estimate(reads: ReadSet, kmers: KmerParams, threads: int) -> Estimate:
    k = kmers.k or estimates.choose_k(reads.lengths, None)
    one_in = estimates.sampling_rate(reads.n_bases)
    counts = count_kmers(reads.codes, k, 2, ANY_COUNT, keep_one_in=one_in, threads=threads)
    matrix = build_kmer_matrix(counts, reads, k, ANY_COUNT)
    found = estimates.estimate(reads, matrix, one_in, kmers.error_rate, kmers.depth, threads)
    if found.error_rate is None and reads.error_rate is not None:
        return replace(found, error_rate=reads.error_rate, given=False, source="base qualities")
    return found


def _link(
    reads: ReadSet, counts: KmerCounts, found: Estimate, params: Params, k: int, upper: int, one_in: int
) -> tuple[KmerMatrix, DepthProfile, Links]:
    """The matrix of the k-mers that link reads, and the depth profile of all."""
    seed_length = 1 if params.kmers.homopolymer else k
    full = build_kmer_matrix(replace(counts, entries=counts.entries[:]), reads, k, upper, seed_length=seed_length)
    room = PROFILED_BYTES * (reads.n_bases // PROFILE_WIDTH + len(reads))
    Budget(params.run.max_memory).require("the depth along the reads", room)
    profile = profile_depth(full, reads, params.run.threads)
    rate = estimates.DEFAULT_ERROR_RATE if found.error_rate is None else found.error_rate
    correct = (1 - rate) ** k / one_in
    n, profile, links = link_columns(
        counts.entries, full, profile, correct, 1 / one_in,
        strict=params.kmers.upper is not None, threads=params.run.threads,
    )  # fmt: skip
    kept = replace(counts, entries=counts.entries[:n], n_kmers=sum(links.kept))
    return build_kmer_matrix(kept, reads, k, ANY_COUNT, seed_length=seed_length), profile, links


def _count(reads: ReadSet, params: Params, k: int, sampling: str, window: int) -> KmerCounts:
    kmers, threads, budget = params.kmers, params.run.threads, Budget(params.run.max_memory)
    codes, mask, marks = reads.codes, NO_MASK, None
    if kmers.homopolymer:
        budget.require("homopolymer compression", 2 * len(codes))
        codes, marks = compress_homopolymers(codes)
    if sampling in ("minimizer", "syncmer"):
        budget.require(f"sampling by {sampling}s", len(codes))
        mask = sampling_mask(codes, k, sampling, window, threads)
    counts = count_kmers(
        codes, k, kmers.lower, ANY_COUNT, keep_one_in=window if sampling == "fraction" else 1, mask=mask,
        threads=threads, budget=budget,
    )  # fmt: skip
    return counts if marks is None else replace(counts, entries=restore_places(reads.codes, marks, counts.entries, threads))


def _explain_no_kmers(reads: ReadSet, k: int, lower: int, upper: int) -> None:
    longest = int(reads.lengths.max(initial=0))
    if longest < k:
        logger.warning("no read is as long as k (%d; the longest has %d bases): no overlaps; try a smaller -k", k, longest)
    else:
        logger.warning(
            "no %d-mer occurs %d to %d times: no overlaps. The reads may be too few, too shallow or too noisy: try a "
            "smaller -k (such as %d), a larger --upper or more reads.",
            k, lower, upper, max(3, k - 4),
        )  # fmt: skip


def candidates_stage(reads: ReadSet, counted: Counted, params: Params, report: RunReport) -> Seeds:
    """A·Aᵀ by blocks of queries, seeds of every candidate, without chance matches and repeats."""
    with report.stage(CandidatesStage("candidates")) as stage:
        parts = _multiply_and_seed(reads, counted.matrix, params, report, stage)
        n_seeds = sum(len(seeds) for seeds in parts)
        Budget(params.run.max_memory).require("choosing seeds", JOINED_BYTES * n_seeds)
        depths = map_threads(lambda seeds: lowest_depth(seeds, counted.profile), parts, params.run.threads)
        typical = learn_typical(parts, depths, params.run.threads)

        for i, depth in enumerate(depths):
            parts[i] = replace(parts[i], copies=copies(depth, typical).astype(np.float32))
        dense = [dense_enough(seeds, typical, params.seeds.density) for seeds in parts]
        sound = keep_outside_repeats(parts, dense, typical, counted.profile, params.seeds.max_copies)

        def drop(i):
            seeds, kept = parts[i], dense[i] & sound[i]
            still_there, linked = has_any(seeds, dense[i]), has_any(seeds, kept)
            parts[i] = seeds.take(kept)  # what is dropped leaves before all are joined
            return int((~still_there).sum()), int((still_there & ~linked).sum())

        numbers_dropped = np.array(map_threads(drop, range(len(parts)), params.run.threads)).reshape(-1, 2)
        report.dropped.add(dict(zip((TOO_SPARSE, REPEAT), numbers_dropped.sum(axis=0).tolist(), strict=True)))
        seeds = join_seeds(parts, counted.matrix.seed_length, params.run.threads)
        stage.seeds = len(seeds)
    report.details.typical = typical
    if counted.matrix.n_kmers and not len(seeds):
        logger.warning(
            "no candidate is left: no overlaps. Of %s candidates, dropped: %s. Try a smaller -k, --min-overlap or "
            "--min-support, a larger --upper or --max-copies, or more reads.",
            f"{stage.candidates:,}", report.dropped,
        )  # fmt: skip
    return seeds


def _multiply_and_seed(
    reads: ReadSet, matrix: KmerMatrix, params: Params, report: RunReport, stage: CandidatesStage
) -> list[Seeds]:
    threads, budget = params.run.threads, Budget(params.run.max_memory)
    work = symbolic_product(matrix, threads)
    n_products = int(work.sum())
    parts, n_candidates, n_weak, done = [], 0, 0, 0
    with progress("candidates", n_products) as advance:
        for products in multiply(matrix, work, threads=threads, budget=budget, result_bytes=seed_bytes(params.seeds)):
            more, n, weak = choose_seeds(products, matrix, reads, params.seeds, threads)
            parts += more
            n_candidates, n_weak, done = n_candidates + n, n_weak + weak, done + len(products.keys)
            advance(done)
            del products  # before the next ones are made
    stage.products, stage.candidates = n_products, n_candidates
    report.dropped.add({NO_SUPPORT: n_weak})
    return parts


def align_stage(
    reads: ReadSet, seeds: Seeds, estimate: Estimate, params: Params, report: RunReport
) -> tuple[Seeds, Extensions, Steps]:
    """Extend the best seed of every candidate, and the others where the first gave no overlap or leaves room for another;
    the scores used."""
    with report.stage(AlignStage("align")) as stage:
        room = reads.codes.nbytes + ALIGNED_BYTES * len(seeds)
        Budget(params.run.max_memory).require("the alignment, with the reads in both directions,", room)
        resources = Resources.of(params.run, report.devices)
        steps = choose_steps(reads, seeds, params.extension, resources)
        is_first = first_of_candidate(seeds)
        chosen, others, length = seeds.take(is_first), seeds.take(~is_first), seeds.length
        candidate = (np.cumsum(is_first) - 1)[~is_first]
        with progress("align", len(seeds)) as advance:
            del seeds  # there are many, and now twice
            resources, end = replace(resources, progress=advance), End.of(params.extension.extension)
            extensions = extend_anchors(reads, chosen.anchors, steps, end, resources)
            poor = poor_rows(reads, chosen, extensions, estimate, params)[candidate]
            apart = clear_of(implied_ends(reads, others), extensions.take(candidate))  # another piece, if anything
            others = others.take(np.where(poor, others.rank < params.seeds.ranks, apart))
            more = extend_anchors(reads, others.anchors, steps, end, resources)
        stage.extensions, stage.second_seeds = len(chosen) + len(others), len(others)
    logger.info("%s", describe_steps(steps))
    report.estimates.xdrop, report.estimates.tilt = [step.xdrop for step in steps], steps[0].tilt / TILT_UNIT
    return join_seeds([chosen, others], length), join_extensions([extensions, more]), steps


def judge_alignments(
    reads: ReadSet, seeds: Seeds, extensions: Extensions, estimate: Estimate, params: Params
) -> tuple[Thresholds, Geometry, Geometry]:
    """What overlaps have to reach; how the alignments lie on their reads, and that without bad ends."""
    geometry = measure_geometry(reads, seeds, extensions)
    floor = score_floor(params.extension, params.filter, estimate.error_rate, estimate.given)
    found = judge(reads, seeds, extensions, geometry, floor, params.filter.delta, given=estimate.given)
    return *found, geometry


def poor_rows(reads: ReadSet, seeds: Seeds, extensions: Extensions, estimate: Estimate, params: Params) -> np.ndarray:
    """Mask of the alignments that do not reach the thresholds: another seed may do better."""
    thresholds, fair, geometry = judge_alignments(reads, seeds, extensions, estimate, params)
    return ~np.logical_and.reduce(list(thresholds.passed(extensions.score, seeds.copies, geometry, fair).values()))


def filter_stage(
    reads: ReadSet, seeds: Seeds, extensions: Extensions, estimate: Estimate, params: Params, report: RunReport, *,
    with_paths: bool = False,
) -> Overlaps:  # fmt: skip
    """Keep the alignments that are overlaps.

    with_paths : paths will be made: identities are left to them.
    """
    tests = replace(params.filter, min_identity=0.0) if with_paths else params.filter
    with report.stage(FilterStage("filter")) as stage:
        thresholds, fair, _ = judge_alignments(reads, seeds, extensions, estimate, params)
        overlaps, dropped = filter_overlaps(reads, seeds, extensions, thresholds, fair, params.extension, tests)
        n_candidates = int(starts_of_candidates(overlaps.query_id, overlaps.target_id, overlaps.strand).sum())
        stage.overlaps, stage.second_pieces = len(overlaps), len(overlaps) - n_candidates
    report.dropped.add(dropped)
    report.details.thresholds = thresholds
    logger.info("kept what scores %.3f per base; dropped: %s", thresholds.score_rate, describe_dropped(dropped))
    return overlaps


def are_extended(reads: ReadSet, overlaps: Overlaps, steps: Steps, params: Params) -> bool:
    """Whether the overlaps' scores and ends are what extension of their seeds gives: what traces paths counts on it.

    Where overlaps come from a file, only another extension tells.
    """
    end = End.of(params.extension.extension)
    again = extend_anchors(reads, overlaps.anchors, steps, end, Resources.of(params.run))
    return all(np.array_equal(getattr(again, f.name), getattr(overlaps, f.name)) for f in fields(again))


def paths_stage(
    reads: ReadSet, overlaps: Overlaps, steps: Steps, params: Params, report: RunReport,
    show: Callable[[Overlaps, Paths], Shown],
) -> Iterator[Shown]:  # fmt: skip
    """What `show` makes of the overlaps and their base-level paths, in order, some at a time; the stage ends with the last.

    steps : that the overlaps were aligned with.
    """
    end, resources = End.of(params.extension.extension), Resources.of(params.run, report.devices)
    dropped: Counter[str] = Counter()
    n_done, n_kept = 0, 0

    def use(some: Overlaps, paths: Paths) -> tuple[Shown, int, int, dict[str, int]]:
        kept, paths, lost = trim_and_test(reads, some, paths, steps[0], params.filter)
        return show(kept, paths), len(some), len(kept), lost

    with report.stage(PathsStage("paths")) as stage, progress("paths", len(overlaps)) as advance:
        for lines, n, kept, lost in base_level.map_paths(use, reads, overlaps, steps, end, resources):
            yield lines
            n_done, n_kept = n_done + n, n_kept + kept
            dropped.update(lost)
            advance(n_done)
        stage.overlaps = n_kept
    report.dropped.add(dropped)
    logger.info("dropped by their paths: %s", describe_dropped(dropped))
