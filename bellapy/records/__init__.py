"""The arrays that flow between stages, one frozen record each.

Kernels trust them.  What comes from a file is not to be trusted: `check` of a record says what kernels count on, and raises
ValueError with the name of the field that is wrong.

Positions are 0-based and intervals half-open, on the forward strand of each read.  `strand` is +1 when query and target
run the same way and -1 when they do not.  Arrays are made read-only: a stage builds new ones.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field, fields
from functools import cached_property

import numpy as np

from bellapy.params import RANGES

INT32_MAX = 2**31 - 1
CHECKED = 1 << 20  # values at a time: what is between takes little memory
TABLE_SHIFT = 10  # one entry of a matrix' table of reads for so many bits of place


def _freeze(record, dtypes: dict[str, type]) -> None:
    """Check dtype and C order of each named array, in constant time, and make it read-only."""
    for name, dtype in dtypes.items():
        array = getattr(record, name)
        if not isinstance(array, np.ndarray) or array.dtype != dtype or not array.flags.c_contiguous:
            got = getattr(array, "dtype", type(array).__name__)
            raise TypeError(f"{type(record).__name__}.{name}: expected contiguous {np.dtype(dtype)}, got {got}")
        array.flags.writeable = False


def check_columns(record, n: int, *scalars: str) -> None:
    """Raise ValueError unless every field but `scalars` is (n,)."""
    for f in fields(record):
        if f.name not in scalars and getattr(record, f.name).shape != (n,):
            raise ValueError(f"{f.name}: {getattr(record, f.name).shape} instead of ({n},)")


def check_range(name: str, values, low, high) -> None:
    """Raise ValueError unless low <= values <= high everywhere; each an array or a number."""
    for at in range(0, np.size(values), CHECKED):
        piece = slice(at, at + CHECKED)
        value, least, most = (x[piece] if np.ndim(x) else x for x in (values, low, high))
        if not np.all((least <= value) & (value <= most)):  # said so, NaN is nowhere
            raise ValueError(f"{name}: out of range")


@dataclass(frozen=True)
class ReadSet:
    """Reads as base codes, end to end with PAD unknown bases before, between and after them.

    names : n_reads strings, unique.
    codes : (PAD + sum(length + PAD),) uint8, 0-3 for ACGT, UNKNOWN for anything else.
    starts : (n_reads,) int64, where each read begins in `codes`.
    lengths : (n_reads,) int32.
    error_rate : mean error probability per base by the quality values; None where there are none to use.
    other_letters : how often every letter occurs that is none of A, C, G, T, U and N; upper case stands for both.
    in_room : `codes` come from `room_both_ways`, and are not copied.
    """

    names: tuple[str, ...]
    codes: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    error_rate: float | None = None
    other_letters: dict[str, int] = field(default_factory=dict)
    in_room: InitVar[bool] = False

    def __post_init__(self, in_room: bool):
        _freeze(self, {"codes": np.uint8, "starts": np.int64, "lengths": np.int32})
        if not len(self.names) == len(self.starts) == len(self.lengths):
            raise ValueError("ReadSet: names, starts and lengths differ in number")
        if not in_room:
            codes = room_both_ways(len(self.codes))
            codes[:] = self.codes
            codes.flags.writeable = False
            object.__setattr__(self, "codes", codes)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def n_bases(self) -> int:
        """Bases of all reads, padding not counted."""
        return int(self.lengths.sum(dtype=np.int64))

    @cached_property
    def both_ways(self) -> np.ndarray:
        """`codes`, then `codes` reversed: kernels read every flank in increasing order.

        The base at index g of `codes` stands again at index 2 * len(codes) - 1 - g.
        """
        both = self.codes.base[:]  # an array of its own: that it is the same one tells that the bases are the same
        both[len(self.codes) :] = self.codes[::-1]
        both.flags.writeable = False
        return both


def room_both_ways(n: int) -> np.ndarray:
    """Room for n `ReadSet.codes`, which need not be copied then, and behind it for `ReadSet.both_ways`: that takes no memory
    before it is written."""
    return np.empty(2 * n, np.uint8)[:n]


def entry_type(n_places: int) -> type:
    """The smaller of the types that hold entries of a KmerMatrix for reads of so many places."""
    return np.uint32 if n_places <= 1 << 30 else np.uint64


@dataclass(frozen=True)
class KmerMatrix:
    """The sparse matrix A, reads x reliable k-mers, with the place of every k-mer in every read.

    Counting finds k-mers one by one, so A is held by columns (equally: the rows of its transpose); `to_csr` gives the
    other order.  A k-mer that occurs several times in one read keeps all its positions.  An entry is one number,

        [ place | first | reverse ]

    of which `place` is the start of the k-mer in `ReadSet.codes`, from which read and position follow; `first` is 1 in the
    first entry of a column, whose places ascend; `reverse` is 1 where the read shows the reverse complement of the
    canonical form.

    k, n_kmers : length of the k-mers, number of columns.
    entries : (nnz,) uint32, uint64 for more than 2^30 places.
    starts : (n_reads + 1,) int64, where each read begins in `ReadSet.codes`, and the length of that.
    upper : columns with more entries are repeats: they mark repeats, but link no reads.
    seed_length : exactly matching bases at each position (k; 1 where homopolymers were compressed).
    """

    k: int
    n_kmers: int
    entries: np.ndarray
    starts: np.ndarray
    upper: int
    seed_length: int

    def __post_init__(self):
        _freeze(self, {"entries": entry_type(int(self.starts[-1])), "starts": np.int64})

    def check(self, reads: ReadSet) -> None:
        """Every place in a read of these, with room for a seed; places ascend in a column, and all columns are there."""
        check_range("k", self.k, *RANGES["k"])
        check_range("seed_length", self.seed_length, 1, self.k)
        check_range("upper", self.upper, 1, INT32_MAX)
        if not np.array_equal(self.starts, np.append(reads.starts, len(reads.codes))):
            raise ValueError("starts: not those of the reads")
        if self.entries.ndim != 1:
            raise ValueError("entries: not a column")
        n_columns, before = 0, 0
        for at in range(0, len(self.entries), CHECKED):
            entries = self.entries[at : at + CHECKED]
            place, first = (entries >> np.uint8(2)).astype(np.int64), (entries & np.uint8(2)) != 0
            read = np.maximum(np.searchsorted(reads.starts, place, side="right") - 1, 0)
            if not len(reads):
                raise ValueError("entries: out of range")
            begin = reads.starts[read]
            check_range("entries", place, begin, begin + reads.lengths[read] - self.seed_length)
            if not np.all(first | (np.diff(place, prepend=before) > 0)) or not (at or first[0]):
                raise ValueError("entries: not in order")
            n_columns, before = n_columns + int(first.sum()), place[-1]
        if n_columns != self.n_kmers:
            raise ValueError("n_kmers: not the number of columns")

    @property
    def n_reads(self) -> int:
        return len(self.starts) - 1

    @property
    def indptr(self) -> np.ndarray:
        """Where the columns begin in `entries`, and the end of the last, (n_kmers + 1,) int64."""
        return np.append(np.flatnonzero(self.entries & np.uint8(2)), len(self.entries))

    @cached_property
    def read_table(self) -> np.ndarray:
        """The read that begins last at or before place i << TABLE_SHIFT, or the first one, for every i, int32."""
        marks = np.arange((int(self.starts[-1]) >> TABLE_SHIFT) + 1, dtype=np.int64) << TABLE_SHIFT
        return np.maximum(np.searchsorted(self.starts[:-1], marks, side="right") - 1, 0).astype(np.int32)

    def locate(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Read, position in it and strand (+1, -1 for reverse) of every entry, (nnz,) int64 each."""
        place = (self.entries >> np.uint8(2)).astype(np.int64)
        read_id = np.searchsorted(self.starts, place, side="right") - 1
        return read_id, place - self.starts[read_id], 1 - 2 * (self.entries & np.uint8(1)).astype(np.int64)

    def to_csr(self):
        """A as scipy `csr_array` of ones, with positions and strands in the same order."""
        from scipy.sparse import csc_array

        read_id, position, strand = self.locate()
        entry = csc_array(
            (np.arange(1, len(read_id) + 1, dtype=np.int64), read_id, self.indptr), shape=(self.n_reads, self.n_kmers)
        ).tocsr()
        order = entry.data - 1
        entry.data = np.ones(len(order), np.int32)
        return entry, position[order], strand[order]


@dataclass(frozen=True)
class DepthProfile:
    """How often the k-mers of each stretch of each read occur in all reads: repeats stand out.

    Bins of `width` bases; the bins of read r are offsets[r] to offsets[r + 1].

    offsets : (n_reads + 1,) int64.
    n_kmers : (n_bins,) uint32, occurrences of k-mers that occur at least twice.
    copies : (n_bins,) uint32, sum of their counts.
    reference : (n_reads,) float32, mean count that is usual for the k-mers of this read; 0 where unknown.
    repeats : (n_reads,) uint8, whether a read holds repeats: 0 none, 1 some, 2 with k-mers that set their copies apart.
    """

    width: int
    offsets: np.ndarray
    n_kmers: np.ndarray
    copies: np.ndarray
    reference: np.ndarray
    repeats: np.ndarray

    def __post_init__(self):
        dtypes = {
            "offsets": np.int64,
            "n_kmers": np.uint32,
            "copies": np.uint32,
            "reference": np.float32,
            "repeats": np.uint8,
        }
        _freeze(self, dtypes)

    def check(self, reads: ReadSet) -> None:
        """As many bins as the reads have."""
        check_range("width", self.width, 1, INT32_MAX)
        check_columns(self, len(reads) + 1, "width", "n_kmers", "copies", "reference", "repeats")
        check_columns(self, len(reads), "width", "offsets", "n_kmers", "copies")
        check_range("reference", self.reference, 0, np.finfo(np.float32).max)
        check_range("repeats", self.repeats, 0, 2)
        if self.offsets[0] or not np.array_equal(np.diff(self.offsets), reads.lengths // self.width + 1):
            raise ValueError("offsets: not those of the reads")
        check_columns(self, int(self.offsets[-1]), "width", "offsets", "reference", "repeats")


@dataclass(frozen=True)
class Seeds:
    """One or more seeds for every candidate (query, target, strand), in that order, best seed first.

    query_id, target_id : (n,) int32, query_id < target_id.
    strand : (n,) int8.
    query_pos, target_pos : (n,) int32, start of the seed on the forward strand of each read.
    rank : (n,) int8, 0 for the best-supported diagonal of a candidate, 1 for the next, 2 for the best one of another piece.
    n_support : (n,) int32, shared k-mers near the seed's diagonal, at least k apart.
    n_shared : (n,) int32, all shared k-mers of the candidate.
    implied_length : (n,) int32, bases of the overlap if it ran along the seed's diagonal to the ends of the reads.
    query_first, query_last, target_first, target_last : (n,) int32, start of the outermost of the k-mers behind n_support.
    copies : (n,) float32, how often the least repeated of them occur, in units of what is usual; 1 where unknown.
    length : bases of a seed.
    """

    query_id: np.ndarray
    target_id: np.ndarray
    strand: np.ndarray
    query_pos: np.ndarray
    target_pos: np.ndarray
    rank: np.ndarray
    n_support: np.ndarray
    n_shared: np.ndarray
    implied_length: np.ndarray
    query_first: np.ndarray
    query_last: np.ndarray
    target_first: np.ndarray
    target_last: np.ndarray
    copies: np.ndarray
    length: int

    def __post_init__(self):
        special = {"strand": np.int8, "rank": np.int8, "copies": np.float32}
        _freeze(self, {f.name: special.get(f.name, np.int32) for f in fields(self) if f.name != "length"})

    def __len__(self) -> int:
        return len(self.query_id)

    def check(self, reads: ReadSet) -> None:
        """Every seed in two reads of these."""
        check_range("length", self.length, 1, RANGES["k"].high)
        check_columns(self, self.query_id.size, "length")
        check_range("target_id", self.target_id, 0, len(reads) - 1)
        check_range("query_id", self.query_id, 0, self.target_id - 1)
        check_range("strand", np.abs(self.strand), 1, 1)
        for side, read in (("query", self.query_id), ("target", self.target_id)):
            last = reads.lengths[read] - self.length
            check_range(f"{side}_pos", getattr(self, f"{side}_pos"), 0, last)
            check_range(f"{side}_last", getattr(self, f"{side}_last"), 0, last)
            check_range(f"{side}_first", getattr(self, f"{side}_first"), 0, getattr(self, f"{side}_last"))
        for name in ("rank", "n_support", "n_shared", "implied_length"):
            check_range(name, getattr(self, name), 0, INT32_MAX)
        check_range("copies", self.copies, 0, np.finfo(np.float32).max)

    def take(self, rows: np.ndarray) -> Seeds:
        """The seeds of the given rows (indices or mask)."""
        columns = {f.name: getattr(self, f.name)[rows] for f in fields(self) if f.name != "length"}
        return Seeds(**columns, length=self.length)


@dataclass(frozen=True)
class Extensions:
    """The alignment that grew from each seed; row i belongs to seed i.

    score : (n,) int32.
    query_start, query_end, target_start, target_end : (n,) int32, forward strand of each read.
    left_query, left_target, right_query, right_target : (n,) int32, bases from the seed to where the second step of the
        extension began (`xdrop.extend_seeds`), or to its end where there was none; left and right as the query runs.
    """

    score: np.ndarray
    query_start: np.ndarray
    query_end: np.ndarray
    target_start: np.ndarray
    target_end: np.ndarray
    left_query: np.ndarray
    left_target: np.ndarray
    right_query: np.ndarray
    right_target: np.ndarray

    def __post_init__(self):
        _freeze(self, {f.name: np.int32 for f in fields(self)})

    def __len__(self) -> int:
        return len(self.score)

    def check(self, reads: ReadSet, seeds: Seeds) -> None:
        """Every alignment in its reads, and around its seed; a score that so many bases can have."""
        check_columns(self, len(seeds))
        shorter = np.full(len(self), INT32_MAX, np.int32)
        for side, read in (("query", seeds.query_id), ("target", seeds.target_id)):
            start, end = getattr(self, f"{side}_start"), getattr(self, f"{side}_end")
            seed = getattr(seeds, f"{side}_pos")
            check_range(f"{side}_start", start, 0, seed)
            check_range(f"{side}_end", end, seed + np.int32(seeds.length), reads.lengths[read])
            shorter = np.minimum(shorter, end - start)
        same = seeds.strand > 0
        before, after = seeds.target_pos - self.target_start, self.target_end - seeds.target_pos - np.int32(seeds.length)
        check_range("left_query", self.left_query, 0, seeds.query_pos - self.query_start)
        check_range("right_query", self.right_query, 0, self.query_end - seeds.query_pos - np.int32(seeds.length))
        check_range("left_target", self.left_target, 0, np.where(same, before, after))
        check_range("right_target", self.right_target, 0, np.where(same, after, before))
        check_range("score", self.score, -2 * RANGES["xdrop"].high, RANGES["match"].high * shorter.astype(np.int64))

    def take(self, rows: np.ndarray) -> Extensions:
        """The extensions of the given rows (indices or mask)."""
        return Extensions(*(getattr(self, f.name)[rows] for f in fields(self)))


@dataclass(frozen=True)
class Overlaps:
    """What is reported, by query, target and strand; all (n,) int32 but `strand`, int8.

    query_id, target_id, strand, query_start, query_end, target_start, target_end : as in Seeds and Extensions.
    score : of the alignment; 0 where none was made.
    n_support : shared k-mers that agree on the seed's diagonal.
    n_matches, n_columns : matching bases and length of the alignment; estimates where there is no path.
    seed_query, seed_target, seed_length : where the seed stands, as in Seeds.
    left_query, left_target, right_query, right_target : as in Extensions; 0 where no alignment was made.
    """

    query_id: np.ndarray
    target_id: np.ndarray
    strand: np.ndarray
    query_start: np.ndarray
    query_end: np.ndarray
    target_start: np.ndarray
    target_end: np.ndarray
    score: np.ndarray
    n_support: np.ndarray
    n_matches: np.ndarray
    n_columns: np.ndarray
    seed_query: np.ndarray
    seed_target: np.ndarray
    seed_length: np.ndarray
    left_query: np.ndarray
    left_target: np.ndarray
    right_query: np.ndarray
    right_target: np.ndarray

    @property
    def turns(self) -> np.ndarray:
        """(2 n, 2) int64: query and target bases of the first step, of all left flanks, then of all right ones."""
        sides = (self.left_query, self.left_target), (self.right_query, self.right_target)
        return np.concatenate([np.stack(side, axis=1, dtype=np.int64) for side in sides])

    def __post_init__(self):
        _freeze(self, {f.name: np.int8 if f.name == "strand" else np.int32 for f in fields(self)})

    def __len__(self) -> int:
        return len(self.query_id)

    def take(self, rows: np.ndarray) -> Overlaps:
        """The overlaps of the given rows (indices, mask or slice)."""
        return Overlaps(*(getattr(self, f.name)[rows] for f in fields(self)))


@dataclass(frozen=True)
class Paths:
    """The base-level paths of some overlaps, row i that of overlap i, along the target's forward strand.

    runs : uint32, length << 4 | operation, as BAM packs a CIGAR: 0 a pair of bases, equal or not (M), 1 query bases alone
        (I), 2 target bases alone (D).
    offsets : (n + 1,) int64; the runs of overlap i are runs[offsets[i] : offsets[i + 1]].
    n_matches, n_mismatches, n_gap_bases, n_gaps : (n,) int32; unknown bases match nothing.
    """

    runs: np.ndarray
    offsets: np.ndarray
    n_matches: np.ndarray
    n_mismatches: np.ndarray
    n_gap_bases: np.ndarray
    n_gaps: np.ndarray

    def __post_init__(self):
        numbers = ("n_matches", "n_mismatches", "n_gap_bases", "n_gaps")
        _freeze(self, {"runs": np.uint32, "offsets": np.int64, **dict.fromkeys(numbers, np.int32)})

    def __len__(self) -> int:
        return len(self.n_matches)

    def take(self, mask: np.ndarray) -> Paths:
        """The paths of the rows that a mask, (n,) bool, holds."""
        sizes = np.diff(self.offsets)
        numbers = (self.n_matches, self.n_mismatches, self.n_gap_bases, self.n_gaps)
        offsets = np.concatenate(([0], np.cumsum(sizes[mask])))
        return Paths(self.runs[np.repeat(mask, sizes)], offsets, *(column[mask] for column in numbers))
