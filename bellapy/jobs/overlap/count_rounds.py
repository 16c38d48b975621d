"""The first rounds: what the reads say about themselves, counting, and the columns that link reads.

Counting is cut by hash into parts of the k-mers.  What follows works on tiles, so every part leaves its entries by blocks of
reads (block_columns.py).
"""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from typing import Any

import numpy as np

from bellapy.compute.memory import Budget
from bellapy.jobs.overlap import estimate as estimates
from bellapy.jobs.overlap.block_columns import count_in_blocks, join_columns, own_columns, split_by_block
from bellapy.jobs.overlap.candidates import Between, KeyLayout, layout_of, symbolic_product
from bellapy.jobs.overlap.column_kinds import Tests
from bellapy.jobs.overlap.coverage import DEPTH_BYTES
from bellapy.jobs.overlap.depth import Bins
from bellapy.jobs.overlap.linking import Kept, Links, Rules, keep_columns, learn_rules, link_profile
from bellapy.jobs.overlap.measured import Finder
from bellapy.jobs.overlap.work import MemoryStore, Result, Round, Work
from bellapy.params import KmerParams
from bellapy.params.overlap import DEFAULT_SAMPLING_WINDOW
from bellapy.records import DepthProfile, Estimate, KmerMatrix, ReadSet
from bellapy.records.bases import PAD
from bellapy.records.kmers import Held, HeldMatrix, entry_type
from bellapy.seeding.kmer_matrix import PROFILE_WIDTH, build_kmer_matrix, profile_depth
from bellapy.seeding.kmers import NO_MASK, KmerCounts, Known, Share, count_kmers, size_partitions, usual_ranges
from bellapy.seeding.sampling import compress_homopolymers, restore_places, sampling_mask

LOWEST, ANY_COUNT = 2, (1 << 31) - 1  # bounds of counts
PROFILED_BYTES = 48  # of a bin of the depth profile, while it is judged

LEAST_BASES = 1 << 20  # for each thread: fewer are counted sooner than kernels are loaded
SAMPLE = "sample"  # name of what is counted to learn about the reads
MASKED = "minimizer", "syncmer"
"""Ways of sampling that mark places of the reads."""


def choose_settings(work: Work) -> Result:
    """Depth and error rate of the reads; k, bounds and sampling, given or chosen from these."""
    reads, kmers = work.reads.all(), work.params.kmers
    found = _estimate(work, reads, kmers, work.params.run.threads, Budget(work.params.run.max_memory))
    k = kmers.k or estimates.choose_k(reads.lengths, found.choice_rate)
    depth, level = found.depth and work.copies * found.depth, work.copies * found.level
    upper = kmers.upper or estimates.choose_upper(depth, found.error_rate, k, kmers.lower, level)
    sampling, window = kmers.sampling, kmers.sampling_window or DEFAULT_SAMPLING_WINDOW
    if sampling == "auto":
        sampling, window = "fraction", estimates.choose_sampling(found.choice_rate, k)
    return {
        "estimate": asdict(found), "k": k, "lower": kmers.lower, "upper": upper, "sampling": sampling,
        "sampling_window": window,
    }  # fmt: skip


def _estimate(work: Work, reads: ReadSet, kmers: KmerParams, threads: int, budget: Budget) -> Estimate:
    k = kmers.k or estimates.choose_k(reads.lengths, None)
    one_in = estimates.sampling_rate(reads.n_bases, len(reads))
    counts, find = _sample_on_gpu(work, reads, k, one_in)
    if counts is None:
        sample = Share(0, 1, _sizes(work, k, one_in))
        counts = count_kmers(reads.codes, k, LOWEST, ANY_COUNT, share=sample, threads=threads, budget=budget)
        if _is_in_memory(work) and budget.limit is None:
            work.store.put(SAMPLE, {"k": k, "known": Known(sample.sizes.shape[1], counts)})
    budget.require("measuring the depth", DEPTH_BYTES)
    matrix = build_kmer_matrix(replace(counts, entries=_view(counts.entries)), reads, k, ANY_COUNT)
    found = estimates.estimate(reads, matrix, one_in, kmers.error_rate, kmers.depth, threads, find, sampled=work.sampled)
    if found.error_rate is None and reads.error_rate is not None:
        return replace(found, error_rate=reads.error_rate, given=False, source="base qualities")
    return found


def _sample_on_gpu(work: Work, reads: ReadSet, k: int, one_in: int) -> tuple[KmerCounts | None, Finder | None]:
    """One k-mer in so many that occur more than once, and what finds k-mers in the reads; None where the CPU has to."""
    if not pays_on_gpu(work):
        return None, None
    from bellapy.jobs.overlap import columns_cuda, coverage_cuda

    counts = columns_cuda.try_to_count(reads, k, LOWEST, one_in, work.resources)
    if counts is None:
        return None, None
    its_counts = replace(counts, entries=counts.entries.on_host())
    return its_counts, lambda table: coverage_cuda.find_listed(reads, table, work.resources)


def one_in(settings: Result) -> int:
    """One k-mer in so many is counted."""
    return settings["sampling_window"] if settings["sampling"] == "fraction" else 1


def needs_all_reads(kmers: KmerParams) -> bool:
    """Whether counting holds arrays of the size of all reads, so that it is done in one part."""
    return kmers.homopolymer or kmers.sampling in MASKED


def count(work: Work, part: int) -> Result:
    """All k-mers of a part that occur more than once, and their depth profile."""
    reads, settings, threads = work.reads.all(), work.settings, work.params.run.threads
    known = _take_sample(work, settings["k"])
    counts = _count_on_gpu(reads, work) or _count(reads, work, part, known)
    full = _matrix(work, replace(counts, entries=_view(counts.entries)), settings["upper"])
    room = PROFILED_BYTES * (reads.n_bases // PROFILE_WIDTH + len(reads))
    Budget(work.params.run.max_memory).require("the depth along the reads", room)
    profile = profile_depth(full, reads, threads)
    return {
        "entries": counts.entries, "spectrum": counts.spectrum, "n_kmers": profile.n_kmers, "copies": profile.copies,
        "numbers": {"kmers": counts.n_kmers},
    }  # fmt: skip


def _view(entries: Any) -> Any:
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


def _count_on_gpu(reads: ReadSet, work: Work) -> KmerCounts | None:
    """The k-mers of the whole job, which a GPU holds from then on; None where the CPU has to count."""
    settings, kmers = work.settings, work.params.kmers
    if not pays_on_gpu(work) or kmers.homopolymer or settings["sampling"] in MASKED:
        return None
    from bellapy.jobs.overlap.columns_cuda import try_to_count

    return try_to_count(reads, settings["k"], kmers.lower, one_in(settings), work.resources)


def _count(reads: ReadSet, work: Work, part: int, known: Known | None) -> KmerCounts:
    settings, kmers, threads = work.settings, work.params.kmers, work.params.run.threads
    k, sampling, window, budget = (
        settings["k"], settings["sampling"], settings["sampling_window"], Budget(work.params.run.max_memory),
    )  # fmt: skip
    codes, mask, marks = reads.codes, NO_MASK, None
    if kmers.homopolymer:
        budget.require("homopolymer compression", 2 * len(codes))
        codes, marks = compress_homopolymers(codes)
    if sampling in MASKED:
        budget.require(f"sampling by {sampling}s", len(codes))
        mask = sampling_mask(codes, k, sampling, window, threads)
    plain = marks is None and not len(mask)
    known = known if kmers.lower == LOWEST else None
    share = Share(part, work.plan.n_parts, _sizes(work, k, one_in(settings)), known) if plain else None
    counts = count_kmers(
        codes, k, kmers.lower, ANY_COUNT, keep_one_in=one_in(settings), mask=mask, share=share, threads=threads,
        budget=budget,
    )  # fmt: skip
    return counts if marks is None else replace(counts, entries=restore_places(reads.codes, marks, counts.entries, threads))


def _take_sample(work: Work, k: int) -> Known | None:
    """The k-mers that were counted to learn about the reads, if they have this k; they are forgotten in any case."""
    if not _is_in_memory(work) or not work.store.get_or_make(SAMPLE, dict):
        return None
    sample = work.store.pop(SAMPLE)
    return sample["known"] if sample["k"] == k else None


def _sizes(work: Work, k: int, keep_one_in: int) -> np.ndarray:
    """How many k-mers of each partition start in each range of the reads; of the partitions, the first one in so many.

    They are counted once for each k: what is counted to learn about the reads mostly has the same.
    """

    def make() -> Result:
        threads, limited = work.params.run.threads, work.params.run.max_memory is not None
        codes = work.reads.all().codes
        return {"sizes": size_partitions(codes, k, n_ranges=usual_ranges(threads, limited), threads=threads)}

    sizes = work.store.get_or_make(f"sizes.{k}", make)["sizes"]
    return sizes[:, : max(1, sizes.shape[1] // keep_one_in)]


def _shape(work: Work) -> dict[str, int]:
    """The length of k-mers, and how many bases match exactly at each of their positions."""
    k = work.settings["k"]
    return {"k": k, "seed_length": 1 if work.params.kmers.homopolymer else k}


def _matrix(work: Work, counts: KmerCounts, upper: int) -> KmerMatrix:
    return build_kmer_matrix(counts, work.reads.all(), upper=upper, **_shape(work))


class _Matrices:
    """The matrix of every part, loaded anew each time it is gone through."""

    def __init__(self, work: Work):
        self._work = work

    def __iter__(self):
        work = self._work
        for entries, spectrum in work.arrays("count", "entries", "spectrum", over="parts"):
            yield _matrix(work, KmerCounts(_view(entries), 0, spectrum), work.settings["upper"])


def _plain_profile(work: Work) -> DepthProfile:
    """The sum of the profiles of all parts."""
    lengths = work.reads.lengths
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths // PROFILE_WIDTH + 1, out=offsets[1:])
    if work.plan.n_parts == 1:
        ((n_kmers, copies),) = work.arrays("count", "n_kmers", "copies", over="parts")
    else:
        n_kmers, copies = np.zeros((2, int(offsets[-1])), np.uint32)
        for its_kmers, its_copies in work.arrays("count", "n_kmers", "copies", over="parts"):
            n_kmers += its_kmers
            copies += its_copies
    unknown = np.zeros(len(lengths))
    return DepthProfile(PROFILE_WIDTH, offsets, n_kmers, copies, unknown.astype(np.float32), unknown.astype(np.uint8))


def learn_from_parts(work: Work) -> Result:
    """The depth profile, and which columns link reads."""
    settings, estimate, profile = work.settings, work.estimate, _plain_profile(work)
    rate = estimates.DEFAULT_ERROR_RATE if estimate.error_rate is None else estimate.error_rate
    window = one_in(settings)
    rules = learn_rules(
        _Matrices(work), profile, (1 - rate) ** settings["k"] / window, 1 / window,
        strict=work.params.kmers.upper is not None, threads=work.params.run.threads,
    )  # fmt: skip
    tests = rules.tests
    spectrum = np.sum([spectrum for (spectrum,) in work.arrays("count", "spectrum", over="parts")], axis=0)
    return {
        "n_kmers": profile.n_kmers, "copies": profile.copies, "sound": tests.sound, "level": tests.level,
        "one_in": rules.one_in, "before": rules.before, "reference": rules.reference, "in_repeat": rules.in_repeat,
        "spectrum": spectrum, "upper": tests.upper, "most": tests.most, "apart_places": tests.apart_places,
        "apart": tests.apart, "shares": [rules.apart_share, rules.deep_share, rules.repeat_share],
    }  # fmt: skip


def _rules(work: Work) -> tuple[DepthProfile, Rules, np.ndarray]:
    """The profile without what was learnt of each read, the rules, and the spectrum."""
    learnt = work.store.get_or_make("links", lambda: learn_from_parts(work))
    offsets = np.concatenate(([0], np.cumsum(work.reads.lengths // PROFILE_WIDTH + 1, dtype=np.int64)))
    profile = DepthProfile(
        PROFILE_WIDTH, offsets, learnt["n_kmers"], learnt["copies"], learnt["reference"],
        np.zeros(len(work.reads.lengths), np.uint8),
    )  # fmt: skip
    none = _matrix(work, KmerCounts(np.zeros(0, entry_type(len(work.reads.all().codes))), 0, learnt["spectrum"]), ANY_COUNT)
    tests = Tests(
        Bins(none.starts, none.read_table, offsets, PROFILE_WIDTH), learnt["upper"], learnt["most"], learnt["sound"],
        learnt["level"], learnt["apart"], learnt["apart_places"],
    )  # fmt: skip
    rest = learnt["one_in"], learnt["before"], learnt["reference"], learnt["in_repeat"], *learnt["shares"]
    return profile, Rules(tests, *rest), learnt["spectrum"]


def keep(work: Work, part: int) -> Result:
    """The columns of a part that link reads, by blocks of reads, and the products that every query makes of them."""
    _, rules, _ = _rules(work)
    entries = work.store.pop(f"count.{part}")["entries"]
    if isinstance(entries, Held):
        entries, kept = entries.keep(rules)  # type: ignore[attr-defined]
    else:
        kept = keep_columns(entries, rules, part)
        entries = entries[: kept.n_entries]
    numbers = {"kmers": int(kept.kept.sum()), "places": len(entries)}
    result: Result = {
        "kept": kept.kept, "found": kept.found, "n_apart": kept.n_apart, "numbers": numbers, "shape": _shape(work),
    }  # fmt: skip
    if work.is_whole:
        return {**result, "entries.0": entries}
    matrix = _matrix(work, KmerCounts(entries, numbers["kmers"], kept.kept), ANY_COUNT)
    return {
        **result, "products": symbolic_product(matrix, work.params.run.threads).sum(axis=0), **_by_block(work, matrix)
    }  # fmt: skip


def _by_block(work: Work, matrix: KmerMatrix) -> Result:
    """Entries and their columns by blocks of reads."""
    first = work.plan.first_reads
    borders = matrix.starts[first] - PAD
    borders[-1] = matrix.starts[-1]
    sizes = np.zeros(work.plan.n_blocks, np.int64)
    count_in_blocks(matrix.entries, borders, sizes)
    at = np.concatenate(([0], np.cumsum(sizes)))
    kind = entry_type(int(np.diff(borders).max(initial=0)))
    entries, columns = np.empty(at[-1], kind), np.empty(at[-1], np.uint32)
    split_by_block(matrix.entries, borders, at[:-1].copy(), entries, columns)
    result: Result = {}
    for b in range(work.plan.n_blocks):
        result[f"entries.{b}"], result[f"columns.{b}"] = entries[at[b] : at[b + 1]], columns[at[b] : at[b + 1]]
    return result


def tile_matrix(work: Work, tile: int) -> tuple[KmerMatrix, Between | None, KeyLayout | None]:
    """The columns that link reads of a tile, which reads are multiplied, and the layout of keys of the whole."""
    shape = work.store.metadata("keep.0")["shape"]
    if work.is_whole:
        parts = [work.store.pop(f"keep.{part}") for part in range(work.plan.n_parts)]
        entries = parts[0]["entries.0"] if len(parts) == 1 else np.concatenate([part["entries.0"] for part in parts])
        n_kmers = sum(part["numbers"]["kmers"] for part in parts)
        starts = np.append(work.reads.all().starts, len(work.reads.all().codes))
        kind: type[KmerMatrix] = HeldMatrix if isinstance(entries, Held) else KmerMatrix
        return kind(n_kmers=n_kmers, entries=entries, starts=starts, upper=ANY_COUNT, **shape), None, None
    (i, j), first = work.plan.tiles[tile], work.plan.first_reads
    lengths = work.lengths(tile)
    starts = PAD + np.concatenate(([0], np.cumsum(lengths.astype(np.int64) + PAD)))
    n_queries = int(first[i + 1] - first[i])
    pieces, n_kmers, kind = [], 0, entry_type(int(starts[-1]))
    layout = KeyLayout(*work.store.get_or_make("layout", lambda: _layout(work))["layout"])
    for part in range(work.plan.n_parts):
        names = [f"{what}.{b}" for b in ((i,) if i == j else (i, j)) for what in ("entries", "columns")]
        if len(work.plan.tiles) == 1:  # nobody needs the rest
            kept = work.store.pop(f"keep.{part}")
            blocks = [kept.pop(name) for name in names]
            del kept
        else:
            blocks = work.store.some(f"keep.{part}", names)
        room: np.ndarray = np.empty(sum(len(block) for block in blocks) // 2, kind)
        shift = starts[n_queries] - PAD
        n, its_kmers = own_columns(*blocks, room) if i == j else join_columns(*blocks, shift, room)
        del blocks
        pieces.append(room[:n] if work.plan.n_parts == 1 else room[:n].copy())
        n_kmers += its_kmers
    entries = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
    matrix = KmerMatrix(n_kmers=n_kmers, entries=entries, starts=starts, upper=ANY_COUNT, **shape)
    between = None if i == j else Between(n_queries, n_queries)
    return matrix, between, layout


def _layout(work: Work) -> Result:
    """The layout of keys that the whole product would take."""
    most = np.sum([products for (products,) in work.arrays("keep", "products", over="parts")], axis=0).max(initial=1)
    reads = work.reads.all()
    none = KmerMatrix(1, 0, np.zeros(0, entry_type(len(reads.codes))), np.append(reads.starts, len(reads.codes)), 1, 1)
    return {"layout": list(layout_of(none, int(most)))}


def profile_of(work: Work) -> DepthProfile:
    """The depth profile of all reads, with what was learnt of each."""
    found = work.store.get_or_make("profile", lambda: _linked_profile(work))
    return DepthProfile(*(found[f.name] for f in fields(DepthProfile)))


def links_of(work: Work) -> tuple[Links, np.ndarray]:
    """Which k-mers link reads, and the spectrum."""
    found = work.store.get_or_make("profile", lambda: _linked_profile(work))
    return Links(*found["links"]), found["spectrum"]


def _linked_profile(work: Work) -> Result:
    profile, rules, spectrum = _rules(work)
    kept = [Kept(0, *numbers) for numbers in work.arrays("keep", "kept", "found", "n_apart", over="parts")]
    profile, links = link_profile(profile, rules, kept)
    columns = {f.name: getattr(profile, f.name) for f in fields(profile)}
    return {**columns, "links": list(links), "spectrum": spectrum}


ROUNDS = (Round("count", "parts", count), Round("keep", "parts", keep, spends=("count",)))
