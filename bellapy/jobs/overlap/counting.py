"""The first rounds: what the reads say about themselves, counting, and the columns that link reads.

Counting is cut by hash into parts of the k-mers.  What follows works on tiles, so every part leaves its entries by blocks of
reads (blocks.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import ModuleType

import numpy as np

from bellapy.compute.memory import Budget
from bellapy.jobs.overlap import estimate as estimates
from bellapy.jobs.overlap.blocks import ANY_COUNT, KEPT, Blocks, KeptPart, cut
from bellapy.jobs.overlap.coverage import DEPTH_BYTES
from bellapy.jobs.overlap.depth import Finder
from bellapy.jobs.overlap.linking import Kept, Links, Rules, keep_columns, learn_rules, link_profile
from bellapy.jobs.overlap.store import MemoryStore, Result
from bellapy.jobs.overlap.work import PARTS, Work
from bellapy.params import KmerParams
from bellapy.params.overlap import DEFAULT_SAMPLING_WINDOW
from bellapy.records import DepthProfile, Estimate, KmerMatrix, ReadSet
from bellapy.records.kmers import Held
from bellapy.seeding.kmer_matrix import PROFILE_WIDTH, build_kmer_matrix, profile_depth
from bellapy.seeding.kmers import NO_MASK, KmerCounts, Known, Share, count_kmers, size_partitions, usual_ranges
from bellapy.seeding.sampling import compress_homopolymers, restore_places, sampling_mask

LOWEST = 2  # count of the k-mers that are counted
PROFILED_BYTES = 48  # of a bin of the depth profile, while it is judged

LEAST_BASES = 1 << 20  # for each thread: fewer are counted sooner than kernels are loaded
MASKED = "minimizer", "syncmer"
"""Ways of sampling that mark places of the reads."""


@dataclass(frozen=True)
class Settings:
    """How k-mers are counted: k, bounds and sampling."""

    k: int
    lower: int
    upper: int
    sampling: str
    sampling_window: int

    @property
    def one_in(self) -> int:
        """One k-mer in so many is counted."""
        return self.sampling_window if self.sampling == "fraction" else 1


@dataclass(frozen=True)
class Sample:
    """The k-mers that were counted to learn about the reads."""

    k: int
    known: Known


@dataclass(frozen=True)
class PartCounts:
    """All k-mers of a part that occur more than once.

    entries : of a KmerMatrix.  spectrum : as in KmerCounts.  n_kmers, copies : (n_bins,) uint32, as in DepthProfile.
    """

    entries: np.ndarray | Held
    spectrum: np.ndarray
    n_kmers: np.ndarray
    copies: np.ndarray


@dataclass(frozen=True)
class Linking:
    """What all counts say: the depth along the reads, the spectrum, and which columns link reads."""

    n_kmers: np.ndarray
    copies: np.ndarray
    spectrum: np.ndarray
    rules: Rules


@dataclass(frozen=True)
class Linked:
    """The depth profile with what was learnt of each read; which k-mers link reads, None where that is not known."""

    profile: DepthProfile
    links: Links | None = None


SETTINGS = Result("settings", Settings)
SAMPLE = Result("sample", Sample)
COUNTED = Result("count", PartCounts, PARTS)
LINKING = Result("links", Linking)
LINKED = Result("profile", Linked)


def estimate_reads(work: Work) -> Estimate:
    """Depth and error rate of the reads."""
    reads, kmers, run = work.reads.all(), work.params.kmers, work.params.run
    threads, budget = run.threads, Budget(run.max_memory)
    k = kmers.k or estimates.choose_k(reads.lengths, None)
    one_in = estimates.sampling_rate(reads.n_bases, len(reads))
    counts, find = _sample_on_gpu(work, reads, k, one_in)
    if counts is None:
        sample = Share(0, 1, _sizes(work, k, one_in))
        counts = count_kmers(reads.codes, k, LOWEST, ANY_COUNT, share=sample, threads=threads, budget=budget)
        if _is_in_memory(work) and budget.limit is None:
            work.store.put(SAMPLE, Sample(k, Known(sample.sizes.shape[1], counts)))
    budget.require("measuring the depth", DEPTH_BYTES)
    matrix = build_kmer_matrix(replace(counts, entries=_view(counts.entries)), reads, k, ANY_COUNT)
    found = estimates.estimate(reads, matrix, one_in, kmers.error_rate, kmers.depth, threads, find, sampled=work.sampled)
    if found.error_rate is None and reads.error_rate is not None:
        return replace(found, error_rate=reads.error_rate, given=False, source="base qualities")
    return found


def choose_settings(work: Work) -> Settings:
    """k, bounds and sampling, given or chosen from the estimate."""
    reads, kmers, found = work.reads, work.params.kmers, work.estimate
    k = kmers.k or estimates.choose_k(reads.lengths, found.choice_rate)
    depth, level = found.depth and work.copies * found.depth, work.copies * found.level
    upper = kmers.upper or estimates.choose_upper(depth, found.error_rate, k, kmers.lower, level)
    sampling, window = kmers.sampling, kmers.sampling_window or DEFAULT_SAMPLING_WINDOW
    if sampling == "auto":
        sampling, window = "fraction", estimates.choose_sampling(found.choice_rate, k)
    return Settings(k, kmers.lower, upper, sampling, window)


def _sample_on_gpu(work: Work, reads: ReadSet, k: int, one_in: int) -> tuple[KmerCounts | None, Finder | None]:
    """One k-mer in so many that occur more than once, and what finds k-mers in the reads; None where the CPU has to."""
    if not pays_on_gpu(work):
        return None, None
    columns, coverage = _gpu()
    counts = columns.try_to_count(reads, k, LOWEST, one_in, work.resources)
    if counts is None:
        return None, None
    its_counts = replace(counts, entries=counts.entries.on_host())
    return its_counts, lambda table: coverage.find_listed(reads, table, work.resources)


def needs_all_reads(kmers: KmerParams) -> bool:
    """Whether counting holds arrays of the size of all reads, so that it is done in one part."""
    return kmers.homopolymer or kmers.sampling in MASKED


def count(work: Work, part: int) -> PartCounts:
    """All k-mers of a part that occur more than once, and their depth profile."""
    reads, settings, threads = work.reads.all(), work.get(SETTINGS), work.params.run.threads
    known = _take_sample(work, settings.k)
    counts = _count_on_gpu(reads, work) or _count(reads, work, part, known)
    full = _matrix(work, replace(counts, entries=_view(counts.entries)), settings.upper)
    room = PROFILED_BYTES * (reads.n_bases // PROFILE_WIDTH + len(reads))
    Budget(work.params.run.max_memory).require("the depth along the reads", room)
    profile = profile_depth(full, reads, threads)
    return PartCounts(counts.entries, counts.spectrum, profile.n_kmers, profile.copies)


def _view(entries: np.ndarray | Held) -> np.ndarray | Held:
    """The entries, as another array, which may become read-only."""
    return entries if isinstance(entries, Held) else entries[:]


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
    from bellapy.jobs.overlap.gpu import columns, coverage

    return columns, coverage


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

    def make() -> np.ndarray:
        threads, limited = work.params.run.threads, work.params.run.max_memory is not None
        codes = work.reads.all().codes
        return size_partitions(codes, k, n_ranges=usual_ranges(threads, limited), threads=threads)

    sizes = work.store.once(Result(f"sizes.{k}", np.ndarray), make)
    return sizes[:, : max(1, sizes.shape[1] // keep_one_in)]


def _shape(work: Work) -> dict[str, int]:
    """The length of k-mers, and how many bases match exactly at each of their positions."""
    k = work.get(SETTINGS).k
    return {"k": k, "seed_length": 1 if work.params.kmers.homopolymer else k}


def _matrix(work: Work, counts: KmerCounts, upper: int) -> KmerMatrix:
    return build_kmer_matrix(counts, work.reads.all(), upper=upper, **_shape(work))


class _Matrices:
    """The matrix of every part, loaded anew each time it is gone through."""

    def __init__(self, work: Work):
        self._work = work

    def __iter__(self):
        work = self._work
        for entries, spectrum in work.arrays(COUNTED, "entries", "spectrum"):
            yield _matrix(work, KmerCounts(_view(entries), 0, spectrum), work.get(SETTINGS).upper)


def _plain_profile(work: Work) -> DepthProfile:
    """The sum of the profiles of all parts."""
    if work.plan.n_parts == 1:
        ((n_kmers, copies),) = work.arrays(COUNTED, "n_kmers", "copies")
    else:
        n_kmers, copies = np.zeros((2, int(_offsets(work)[-1])), np.uint32)
        for its_kmers, its_copies in work.arrays(COUNTED, "n_kmers", "copies"):
            n_kmers += its_kmers
            copies += its_copies
    return _profile(work, n_kmers, copies)


def _profile(work: Work, n_kmers: np.ndarray, copies: np.ndarray) -> DepthProfile:
    """A profile without what is learnt of each read."""
    unknown = np.zeros(len(work.reads.lengths))
    return DepthProfile(PROFILE_WIDTH, _offsets(work), n_kmers, copies, unknown.astype(np.float32), unknown.astype(np.uint8))


def _offsets(work: Work) -> np.ndarray:
    """Where the bins of each read begin, and where the last ones end, (n_reads + 1,) int64."""
    return np.concatenate(([0], np.cumsum(work.reads.lengths // PROFILE_WIDTH + 1, dtype=np.int64)))


def learn_from_parts(work: Work) -> Linking:
    """The depth profile, and which columns link reads."""
    settings, estimate, profile = work.get(SETTINGS), work.estimate, _plain_profile(work)
    rate = estimates.DEFAULT_ERROR_RATE if estimate.error_rate is None else estimate.error_rate
    rules = learn_rules(
        _Matrices(work), profile, (1 - rate) ** settings.k / settings.one_in, 1 / settings.one_in,
        strict=work.params.kmers.upper is not None, threads=work.params.run.threads,
    )  # fmt: skip
    spectrum = np.sum([spectrum for (spectrum,) in work.arrays(COUNTED, "spectrum")], axis=0)
    return Linking(profile.n_kmers, profile.copies, spectrum, rules)


def keep(work: Work, part: int) -> KeptPart:
    """The columns of a part that link reads, by blocks of reads, and the products that every query makes of them."""
    rules = work.get(LINKING).rules
    entries = work.pop(COUNTED, part).entries
    if isinstance(entries, Held):
        entries, kept = entries.keep(rules)  # type: ignore[attr-defined]
    else:
        kept = keep_columns(entries, rules, part)
        entries = entries[: kept.n_entries]
    n_kmers, blocks = int(kept.kept.sum()), Blocks((entries,))
    if not work.is_whole:
        blocks = cut(work, _matrix(work, KmerCounts(entries, n_kmers, kept.kept), ANY_COUNT))
    return KeptPart(blocks, n_kmers, len(entries), **_shape(work), kept=kept)


def link_reads(work: Work) -> Linked:
    """The depth profile of all reads, with what was learnt of each, and what was done to the k-mers."""
    learnt = work.get(LINKING)
    profile, rules = _profile(work, learnt.n_kmers, learnt.copies), learnt.rules
    kept = [Kept(0, *numbers) for numbers in work.arrays(KEPT, "kept.kept", "kept.found", "kept.n_apart")]
    return Linked(*link_profile(profile, rules, kept))
