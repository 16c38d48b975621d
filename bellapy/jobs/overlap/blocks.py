"""The k-mer matrix in pieces: by parts of the k-mers, as it is counted, and by blocks of reads, put together for a tile.

Columns are cut apart when they are kept.  An entry of a block holds a place in the block, and goes with the number of its
column in the part.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit
from bellapy.jobs.overlap.products import Between, KeyLayout, Multiplied, layout_of, symbolic_product
from bellapy.jobs.overlap.store import Result
from bellapy.jobs.overlap.work import PARTS, Work
from bellapy.records import KmerMatrix
from bellapy.records.bases import PAD
from bellapy.records.kmers import Held, entry_type
from bellapy.seeding.entries import is_first, pack_entry, place_of, reverse_of
from bellapy.seeding.kmer_matrix import build_kmer_matrix
from bellapy.seeding.kmers import KmerCounts

U = np.uint64
ANY_COUNT = (1 << 31) - 1


@dataclass(frozen=True)
class Settings:
    """How k-mers are counted: k, bounds and sampling.

    seed_length : bases that surely match where a k-mer is shared.  one_in : one k-mer in so many is counted.
    """

    k: int
    seed_length: int
    lower: int
    upper: int
    sampling: str
    sampling_window: int
    one_in: int


@dataclass(frozen=True)
class PartCounts:
    """All k-mers of a part that occur more than once.

    entries : of a KmerMatrix.  spectrum : as in KmerCounts.  n_kmers, copies : (n_bins,) uint32, as in DepthProfile.
    """

    entries: np.ndarray | Held
    spectrum: np.ndarray
    n_kmers: np.ndarray
    copies: np.ndarray


class Blocks(NamedTuple):
    """Entries of a part by blocks of reads, and the columns these are of: one array for each block.

    columns : none where there is one block, of all reads.
    products : (n_reads,) int64, products that every query makes; None where there is one block.
    """

    entries: tuple[np.ndarray | Held, ...]
    columns: tuple[np.ndarray, ...] = ()
    products: np.ndarray | None = None


class Kept(NamedTuple):
    """What a part keeps.  n_entries : at its front.  kept, found : columns of each kind (linking.py), int64.

    n_apart : (n_reads,) int64, entries of columns that set copies apart.
    """

    n_entries: int
    kept: np.ndarray
    found: np.ndarray
    n_apart: np.ndarray


@dataclass(frozen=True)
class KeptPart:
    """The columns of a part of the k-mers that link reads.

    n_kmers, n_places : how many these are, and their entries.
    k, seed_length : length of the k-mers, and how many bases match exactly at each of their positions.
    kept : what was looked at; None where that is not known.
    """

    blocks: Blocks
    n_kmers: int
    n_places: int
    k: int
    seed_length: int
    kept: Kept | None


@dataclass(frozen=True)
class WholeLayout:
    """The layout of keys that the whole product would take; None: there is one tile, which takes what it needs."""

    keys: KeyLayout | None


SETTINGS = Result("settings", Settings)
COUNTED = Result("count", PartCounts, PARTS)
KEPT = Result("keep", KeptPart, PARTS)
LAYOUT = Result("layout", WholeLayout)


def matrix_of(work: Work, counts: KmerCounts, upper: int) -> KmerMatrix:
    """The matrix of some k-mers of all reads; no column with more than `upper` entries links reads."""
    settings = work.get(SETTINGS)
    return build_kmer_matrix(counts, work.reads.all(), settings.k, upper, seed_length=settings.seed_length)


@dataclass
class PartMatrices:
    """The matrix of every part, loaded anew each time it is gone through."""

    work: Work

    def __iter__(self) -> Iterator[KmerMatrix]:
        for entries, spectrum in self.work.arrays(COUNTED, "entries", "spectrum"):
            yield matrix_of(self.work, KmerCounts(entries, 0, spectrum), self.work.get(SETTINGS).upper)


def cut(work: Work, matrix: KmerMatrix) -> Blocks:
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
    products = symbolic_product(matrix, work.params.run.threads).sum(axis=0)
    return Blocks(tuple(np.split(entries, at[1:-1])), tuple(np.split(columns, at[1:-1])), products)


def learn_layout(work: Work) -> WholeLayout:
    """From the products of all parts."""
    if work.is_whole:
        return WholeLayout(None)
    most = np.sum([products for (products,) in work.arrays(KEPT, "blocks.products")], axis=0).max(initial=1)
    reads = work.reads.all()
    none = KmerMatrix(1, 0, np.zeros(0, entry_type(len(reads.codes))), np.append(reads.starts, len(reads.codes)), 1, 1)
    return WholeLayout(layout_of(none, int(most)))


def tile_matrix(work: Work, tile: int) -> tuple[KmerMatrix, Multiplied]:
    """The columns that link reads of a tile, and how they are multiplied."""
    told = work.store.told(KEPT, 0)
    shape = {name: told[name] for name in ("k", "seed_length")}
    if work.is_whole:
        parts = [work.pop(KEPT, part) for part in range(work.plan.n_parts)]
        whole = [part.blocks.entries[0] for part in parts]
        held = whole[0] if len(whole) == 1 else np.concatenate([part for part in whole if isinstance(part, np.ndarray)])
        counts = KmerCounts(held, sum(part.n_kmers for part in parts), np.zeros(0, np.int64))
        return build_kmer_matrix(counts, work.reads.all(), upper=ANY_COUNT, **shape), Multiplied()
    (i, j), first = work.plan.tiles[tile], work.plan.first_reads
    starts = PAD + np.concatenate(([0], np.cumsum(work.lengths(tile).astype(np.int64) + PAD)))
    n_queries = int(first[i + 1] - first[i])
    pieces, n_kmers = [], 0
    for part in range(work.plan.n_parts):
        names = [f"blocks.{what}.{b}" for b in ((i,) if i == j else (i, j)) for what in ("entries", "columns")]
        blocks = work.store.arrays(KEPT, names, part)
        if len(work.plan.tiles) == 1:
            work.pop(KEPT, part)  # nobody needs the rest
        room: np.ndarray = np.empty(sum(len(block) for block in blocks) // 2, entry_type(int(starts[-1])))
        shift = starts[n_queries] - PAD
        n, its_kmers = own_columns(*blocks, room) if i == j else join_columns(*blocks, shift, room)
        del blocks
        pieces.append(room[:n] if work.plan.n_parts == 1 else room[:n].copy())
        n_kmers += its_kmers
    entries = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
    matrix = KmerMatrix(n_kmers=n_kmers, entries=entries, starts=starts, upper=ANY_COUNT, **shape)
    between = None if i == j else Between(n_queries, n_queries)
    return matrix, Multiplied(between, work.get(LAYOUT).keys)


@njit
def count_in_blocks(entries, borders, sizes):
    """Add the entries that lie in each block of reads to sizes, (n_blocks,) int64.

    entries : of a KmerMatrix.  borders : (n_blocks + 1,) int64, places where blocks begin.
    """
    b = 0
    for i in range(entries.size):
        place = place_of(entries[i])
        if is_first(entries[i]):
            b = 0
        while place >= borders[b + 1]:
            b += 1
        sizes[b] += 1


@njit
def split_by_block(entries, borders, at, out, columns):
    """Write each entry, its place counted from the border of its block, to out[at[block]], and the number of its column.

    entries, borders : as in count_in_blocks.  at : (n_blocks,) int64, advanced.
    out : (n_entries,) of entry_type.  columns : (n_entries,) uint32.
    """
    b, column = 0, -1
    for i in range(entries.size):
        entry = entries[i]
        place = place_of(entry)
        if is_first(entry):
            b = 0
            column += 1
        while place >= borders[b + 1]:
            b += 1
        out[at[b]] = pack_entry(place - borders[b], U(0), reverse_of(entry))
        columns[at[b]] = column
        at[b] += 1


@njit
def join_columns(one, one_columns, other, other_columns, shift, out):
    """Write the columns that two blocks share to `out`; return how many entries and columns these are.

    one, other : entries of the blocks.  one_columns, other_columns : (n,) uint32, of each entry, ascending.
    shift : added to the places of the other block.  out : as long as both together.
    """
    a = b = n = n_columns = 0
    while a < one.size and b < other.size:
        column = one_columns[a]
        if column < other_columns[b]:
            a += 1
        elif column > other_columns[b]:
            b += 1
        else:
            first = n
            while a < one.size and one_columns[a] == column:
                out[n] = pack_entry(place_of(one[a]), U(n == first), reverse_of(one[a]))
                n, a = n + 1, a + 1
            while b < other.size and other_columns[b] == column:
                out[n] = pack_entry(place_of(other[b]) + shift, U(0), reverse_of(other[b]))
                n, b = n + 1, b + 1
            n_columns += 1
    return n, n_columns


@njit
def own_columns(one, columns, out):
    """Write the columns with several entries in a block to `out`; return how many entries and columns these are.

    one, columns, out : as in join_columns.
    """
    a = n = n_columns = 0
    while a < one.size:
        last = a + 1
        while last < one.size and columns[last] == columns[a]:
            last += 1
        if last - a > 1:
            for x in range(a, last):
                out[n] = pack_entry(place_of(one[x]), U(x == a), reverse_of(one[x]))
                n += 1
            n_columns += 1
        a = last
    return n, n_columns
