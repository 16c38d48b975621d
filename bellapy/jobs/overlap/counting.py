"""The first rounds: what the reads say about themselves, the settings that follow from it, and counting.

Counting is cut by hash into parts of the k-mers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from types import ModuleType

import numpy as np

from bellapy.compute.memory import Budget
from bellapy.jobs.overlap.blocks import ANY_COUNT, SETTINGS, PartCounts, Settings
from bellapy.jobs.overlap.depth import DEPTH_BYTES, Finder
from bellapy.jobs.overlap.estimate import estimate
from bellapy.jobs.overlap.store import MemoryStore, Result
from bellapy.jobs.overlap.work import Work, n50
from bellapy.params import RANGES, KmerParams, SeedParams
from bellapy.params.overlap import DEFAULT_SAMPLING_WINDOW
from bellapy.records import Estimate, ReadSet
from bellapy.records.bases import UNKNOWN
from bellapy.seeding.kmer_matrix import PROFILE_WIDTH, build_kmer_matrix, profile_depth
from bellapy.seeding.kmers import NO_MASK, KmerCounts, Known, Share, count_kmers, size_partitions, usual_ranges
from bellapy.seeding.sampling import choose_sampling, compress_homopolymers, restore_places, sampling_mask

LOWEST = 2  # count of the k-mers that are counted
PROFILED_BYTES = 48  # of a bin of the depth profile, while it is judged

LEAST_BASES = 1 << 20  # for each thread: fewer are counted sooner than kernels are loaded
SAMPLE_KMERS, READ_KMERS = 1 << 21, 32
SAMPLED_BASES = 1 << 20  # of which the composition is counted
ACCURATE = 0.05  # reads with fewer errors per base share long k-mers
CHANCE_ROOM = 8
RARE_CHANCE, OFTEN_CHANCE = 1 / 8, 1  # other places of a k-mer
DEFAULT_UPPER = 8  # BELLA's
UPPER_TAIL = 1e-3
MASKED = "minimizer", "syncmer"
"""Ways of sampling that mark places of the reads."""


@dataclass(frozen=True)
class Sample:
    """The k-mers that were counted to learn about the reads."""

    k: int
    known: Known


SAMPLE = Result("sample", Sample)


def estimate_reads(work: Work) -> Estimate:
    """Depth and error rate of the reads."""
    reads, kmers, run = work.reads.all(), work.params.kmers, work.params.run
    threads, budget = run.threads, Budget(run.max_memory)
    gc = gc_share(reads.codes)
    k = kmers.k or choose_k(reads.lengths, None, gc)
    one_in = sampling_rate(reads.n_bases, len(reads))
    counts, find = _sample_on_gpu(work, reads, k, one_in)
    if counts is None:
        sample = Share(0, 1, _sizes(work, k, one_in))
        counts = count_kmers(reads.codes, k, LOWEST, ANY_COUNT, share=sample, threads=threads, budget=budget)
        if _is_in_memory(work) and budget.limit is None:
            work.store.put(SAMPLE, Sample(k, Known(sample.sizes.shape[1], counts)))
    budget.require("measuring the depth", DEPTH_BYTES)
    matrix = build_kmer_matrix(counts, reads, k, ANY_COUNT)
    chance = chance_copies(reads.n_bases, k, gc)
    found = estimate(reads, matrix, one_in, chance, kmers.error_rate, kmers.depth, threads, find, work.sampled)
    found = replace(found, gc=gc)
    if found.error_rate is None and reads.error_rate is not None:
        return replace(found, error_rate=reads.error_rate, given=False, source="base qualities")
    return found


def choose_settings(work: Work) -> Settings:
    """k, bounds and sampling, given or chosen from the estimate."""
    reads, kmers, found = work.reads, work.params.kmers, work.estimate
    k = kmers.k or choose_k(reads.lengths, found.choice_rate, found.gc)
    depth, level = found.depth and work.copies * found.depth, work.copies * found.level
    upper = kmers.upper or choose_upper(depth, found.error_rate, k, kmers.lower, level)
    sampling, window = kmers.sampling, kmers.sampling_window or DEFAULT_SAMPLING_WINDOW
    if sampling == "auto":
        sampling, window = "fraction", choose_sampling(found.choice_rate, k)
    seed_length, one_in = 1 if kmers.homopolymer else k, window if sampling == "fraction" else 1
    return Settings(k, seed_length, kmers.lower, upper, sampling, window, one_in)


def gc_share(codes: np.ndarray) -> float:
    """Share of G and C among the known bases of codes, (n,) uint8, every so many of which are looked at."""
    counts = np.bincount(codes[:: 1 + len(codes) // SAMPLED_BASES], minlength=UNKNOWN)[:UNKNOWN]
    return float(counts[1:3].sum() / counts.sum()) if counts.any() else 0.5


def alike(gc: float) -> float:
    """How often two bases are the same by chance; gc : share of G and C."""
    return (gc**2 + (1 - gc) ** 2) / 2


def chance_copies(n_bases: int, k: int, gc: float = 0.5) -> float:
    """How often a k-mer occurs elsewhere by chance, on either strand; gc : share of G and C."""
    return 2 * n_bases * alike(gc) ** k


def choose_k(lengths: np.ndarray, error_rate: float | None, gc: float = 0.5) -> int:
    """k-mer length: long enough that chance matches are few, no longer, since every base may be wrong.

    If all k-mers were as likely, each would occur elsewhere no more than RARE_CHANCE times by chance, and there would be
    CHANCE_ROOM times as many as places where two long reads could agree by chance within one band of diagonals.  With the
    composition that the reads have, it may be OFTEN_CHANCE times: longer k-mers would miss overlaps.  Accurate reads afford
    21, which passes over most repeats.

    error_rate : None before it is known; then chance has to be rare with any composition.  gc : share of G and C.
    """
    if error_rate is not None and error_rate < ACCURATE:
        return 21
    long_read = n50(lengths)
    band = SeedParams().band + SeedParams().band_slope * long_read
    places = 2 * max(1, int(lengths.sum(dtype=np.int64)))  # on both strands
    needed = max(places / RARE_CHANCE, CHANCE_ROOM * long_read * band)
    needed_here = places / (RARE_CHANCE if error_rate is None else OFTEN_CHANCE)
    return min(21, max(13, math.ceil(math.log(needed, 4)), math.ceil(math.log(needed_here, 1 / alike(gc)))))


def choose_upper(depth: float | None, error_rate: float | None, k: int, lower: int, level: float = 0.0) -> int:
    """Largest count of a k-mer that occurs once in the genome, all but for a chance of UPPER_TAIL.

    BELLA takes counts as Binomial(depth, (1 - e)^k).  The depth itself varies from place to place, so that they are
    rather Poisson with the same mean.  Where that is unknown, the level of most reads stands for it: of the k-mers that
    were counted more than once, half of those in such reads occur less often.

    level : of Estimate.
    """
    if (depth is None or error_rate is None) and not level:
        return max(lower, DEFAULT_UPPER)
    mean = level if depth is None or error_rate is None else depth * (1 - error_rate) ** k
    counts = np.arange(max(RANGES["upper"].high, lower + 2) + 1)
    log_factorial = np.concatenate(([0.0], np.cumsum(np.log(counts[1:]))))
    above = 1 - np.cumsum(np.exp(counts * math.log(mean) - mean - log_factorial))
    rare = above[lower + 2 :] < UPPER_TAIL
    return lower + 2 + int(rare.argmax()) if rare.any() else int(counts[-1])


def sampling_rate(n_bases: int, n_reads: int) -> int:
    """Count one k-mer in so many to learn the spectrum: SAMPLE_KMERS of all, and about READ_KMERS of a read, or more."""
    most = min(n_bases // SAMPLE_KMERS, n_bases // max(1, n_reads) // READ_KMERS)
    return 1 << max(0, most.bit_length() - 1)


def _sample_on_gpu(work: Work, reads: ReadSet, k: int, one_in: int) -> tuple[KmerCounts | None, Finder | None]:
    """One k-mer in so many that occur more than once, and what finds k-mers in the reads; None where the CPU has to."""
    if not pays_on_gpu(work):
        return None, None
    columns, depth = _gpu()
    counts = columns.try_to_count(reads, k, LOWEST, one_in, work.resources)
    if counts is None:
        return None, None
    its_counts = replace(counts, entries=counts.entries.on_host())
    return its_counts, lambda table: depth.find_listed(reads, table, work.resources)


def needs_all_reads(kmers: KmerParams) -> bool:
    """Whether counting holds arrays of the size of all reads, so that it is done in one part."""
    return kmers.homopolymer or kmers.sampling in MASKED


def count(work: Work, part: int) -> PartCounts:
    """All k-mers of a part that occur more than once, and their depth profile."""
    reads, settings, threads = work.reads.all(), work.get(SETTINGS), work.params.run.threads
    known = _take_sample(work, settings.k)
    counts = _count_on_gpu(reads, work) or _count(reads, work, part, known)
    full = build_kmer_matrix(counts, reads, settings.k, settings.upper, seed_length=settings.seed_length)
    room = PROFILED_BYTES * (reads.n_bases // PROFILE_WIDTH + len(reads))
    Budget(work.params.run.max_memory).require("the depth along the reads", room)
    profile = profile_depth(full, reads, threads)
    return PartCounts(counts.entries, counts.spectrum, profile.n_kmers, profile.copies)


def _is_in_memory(work: Work) -> bool:
    """Whether all k-mers are counted by one task, whose results are not written to files."""
    return work.plan.n_parts == 1 and isinstance(work.store, MemoryStore)


def pays_on_gpu(work: Work) -> bool:
    """Whether a GPU was chosen, all of the job is one task, and there are reads enough."""
    n_bases = int(work.reads.lengths.sum(dtype=np.int64))
    return (
        work.is_whole
        and _is_in_memory(work)
        and work.params.run.device == "cuda"
        and n_bases >= LEAST_BASES * work.params.run.threads
    )


def _gpu() -> tuple[ModuleType, ModuleType]:
    """What counts on a GPU and holds the columns there, and what finds k-mers in the reads that it has."""
    from bellapy.jobs.overlap.gpu import columns, depth

    return columns, depth


def _count_on_gpu(reads: ReadSet, work: Work) -> KmerCounts | None:
    """The k-mers of the whole job, which a GPU holds from then on; None where the CPU has to count."""
    settings, kmers = work.get(SETTINGS), work.params.kmers
    if not pays_on_gpu(work) or kmers.homopolymer or settings.sampling in MASKED:
        return None
    return _gpu()[0].try_to_count(reads, settings.k, kmers.lower, settings.one_in, work.resources)


def _count(reads: ReadSet, work: Work, part: int, known: Known | None) -> KmerCounts:
    settings, kmers, threads = work.get(SETTINGS), work.params.kmers, work.params.run.threads
    k, budget = settings.k, Budget(work.params.run.max_memory)
    codes, mask, marks = reads.codes, NO_MASK, None
    if kmers.homopolymer:
        budget.require("homopolymer compression", 2 * len(codes))
        codes, marks = compress_homopolymers(codes)
    if settings.sampling in MASKED:
        budget.require(f"sampling by {settings.sampling}s", len(codes))
        mask = sampling_mask(codes, k, settings.sampling, settings.sampling_window, threads)
    plain = marks is None and not len(mask)
    known = known if kmers.lower == LOWEST else None
    share = Share(part, work.plan.n_parts, _sizes(work, k, settings.one_in), known) if plain else None
    counts = count_kmers(
        codes, k, kmers.lower, ANY_COUNT, keep_one_in=settings.one_in, mask=mask, share=share, threads=threads,
        budget=budget,
    )  # fmt: skip
    return counts if marks is None else replace(counts, entries=restore_places(reads.codes, marks, counts.entries, threads))


def _take_sample(work: Work, k: int) -> Known | None:
    """The k-mers that were counted to learn about the reads, if they have this k; they are forgotten in any case."""
    if not work.store.has(SAMPLE):
        return None
    sample = work.pop(SAMPLE)
    return sample.known if sample.k == k else None


def _sizes(work: Work, k: int, keep_one_in: int) -> np.ndarray:
    """How many k-mers of each partition start in each range of the reads; of the partitions, the first one in so many.

    They are counted once for each k: what is counted to learn about the reads mostly has the same.
    """
    threads, limited = work.params.run.threads, work.params.run.max_memory is not None
    n_ranges, codes = usual_ranges(threads, limited), work.reads.all().codes
    make = partial(size_partitions, codes, k, n_ranges=n_ranges, threads=threads)
    sizes = work.store.once(Result(f"sizes.{k}", np.ndarray), make)
    return sizes[:, : max(1, sizes.shape[1] // keep_one_in)]
