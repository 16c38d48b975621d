"""Reads at places beyond 2^32: the pages between them are zeros that nobody writes, and take no memory."""

from __future__ import annotations

import ctypes
import mmap
import os

import naive
import numpy as np
import pytest
from strategies import column_bounds, locate, make_reads, random_bases

from bellapy.compute.columns import join_rows
from bellapy.engines.extend import extend_anchors
from bellapy.jobs.overlap import blocks, seeds
from bellapy.jobs.overlap.candidates import lowest_depth
from bellapy.jobs.overlap.products import multiply, symbolic_product
from bellapy.params import Scoring, make_params
from bellapy.records import KmerMatrix, ReadSet
from bellapy.records.bases import PAD
from bellapy.records.kmers import entry_type, places_of
from bellapy.seeding import kmers
from bellapy.seeding.kmer_matrix import build_kmer_matrix, profile_depth
from bellapy.seeding.kmers import count_kmers

N_READS, LENGTH, K = 12, 3000, 15
FAR = (1 << 32) + (1 << 20)


def zeros(n: int) -> np.ndarray:
    """Memory that is not there before it is written, and then only a page of it."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    memory = mmap.mmap(-1, n, flags=flags)
    return np.frombuffer((ctypes.c_uint8 * n).from_buffer(memory), np.uint8)  # shows no map, which could be let go


@pytest.fixture
def sequences(rng) -> list[str]:
    genome = random_bases(rng, 4 * LENGTH)
    starts = rng.integers(0, len(genome) - LENGTH, N_READS)
    found = [genome[start : start + LENGTH] for start in starts]
    return [naive.reverse_complement(text) if i % 2 else text for i, text in enumerate(found)]


def far_apart(reads: ReadSet, starts: np.ndarray, n: int) -> ReadSet:
    """The same reads at other places of n codes, which are A between them; both ways."""
    both = zeros(2 * n)
    for i, start in enumerate(starts.tolist()):
        codes = reads.codes[reads.starts[i] - PAD : reads.starts[i] + LENGTH + PAD]
        both[start - PAD : start + LENGTH + PAD] = codes
        both[2 * n - start - LENGTH - PAD : 2 * n - start + PAD] = codes[::-1]
    far = ReadSet(reads.names, both[:n], starts, reads.lengths, in_room=True)
    far.__dict__["both_ways"] = both
    return far


def moved(matrix: KmerMatrix, starts: np.ndarray, n: int) -> KmerMatrix:
    """The same matrix of reads at other places."""
    read, position, _ = locate(matrix)
    entries = (starts[read] + position).astype(np.uint64) << np.uint64(2) | (matrix.entries & np.uint8(3)).astype(np.uint64)
    entries = entries.astype(entry_type(n))
    return KmerMatrix(matrix.k, matrix.n_kmers, entries, np.append(starts, n), matrix.upper, matrix.seed_length)


def everything(reads: ReadSet, matrix: KmerMatrix) -> list[np.ndarray]:
    """Seeds, extensions and depths."""
    parts = []
    for products in multiply(matrix, symbolic_product(matrix)):
        parts += seeds.choose_seeds(products, matrix, reads, make_params(min_overlap=1000).seeds)[0]
    found = join_rows(parts)
    extensions = extend_anchors(reads, found.anchors, (Scoring(1, -1, -1, 15),))
    columns = [getattr(found, name) for name in ("query_id", "target_id", "strand", "query_pos", "target_pos", "n_support")]
    depth = lowest_depth(found, profile_depth(matrix, reads), 1.0)
    return [*columns, extensions.score, extensions.query_start, extensions.target_end, depth]


def test_products_seeds_and_extensions(sequences):
    reads = make_reads(sequences)
    matrix = build_kmer_matrix(count_kmers(reads.codes, K, 2, 30), reads, K, 30)
    starts = np.concatenate((PAD + (LENGTH + PAD) * np.arange(6), FAR - (LENGTH + PAD) * np.arange(6, 0, -1)))
    far, far_matrix = far_apart(reads, starts, FAR), moved(matrix, starts, FAR)
    assert places_of(far_matrix.entries).max() > 1 << 32 and far_matrix.entries.dtype == np.uint64
    expected = everything(reads, matrix)
    assert len(expected[0]) > 10 and (expected[-4] > 500).any()
    for got, wanted in zip(everything(far, far_matrix), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


SCAN = "BEYOND32_SCAN"  # set: goes through all zeros, in about a minute


@pytest.mark.parametrize("everything_scanned", [False, pytest.param(True, marks=pytest.mark.skipif(
    SCAN not in os.environ, reason=f"takes a minute; {SCAN}=1 asks for it"))])  # fmt: skip
@pytest.mark.parametrize("k", [K, 31])
def test_counting(sequences, monkeypatch, k, everything_scanned):
    """k-mers, their counts and the order of their places; k 31 has more bits than a word leaves beside such places."""
    reads = make_reads(sequences)
    starts = np.concatenate((PAD + (LENGTH + PAD) * np.arange(6), FAR - (LENGTH + PAD) * np.arange(6, 0, -1)))
    far, may_start = far_apart(reads, starts, FAR), zeros(FAR)
    for start in starts.tolist():
        may_start[start : start + LENGTH] = 1
    if not everything_scanned:
        filled = [(0, int(starts[5]) + LENGTH + PAD), (int(starts[6]) - PAD, FAR)]
        even_ranges = kmers.even_ranges
        monkeypatch.setattr(kmers, "even_ranges", lambda n, parts: filled if n == FAR else even_ranges(n, parts))
    here = build_kmer_matrix(count_kmers(reads.codes, k, 2, 30), reads, k, 30)
    counts = count_kmers(far.codes, k, 2, 30, mask=may_start)
    there = build_kmer_matrix(counts, far, k, 30)
    assert there.entries.dtype == np.uint64 and places_of(there.entries).max() > 1 << 32
    assert counts.n_kmers == here.n_kmers > 1000
    assert columns_of(there) == columns_of(here)


def columns_of(matrix: KmerMatrix) -> list[list[tuple[int, int, bool]]]:
    """Read, position and direction of the places of every k-mer; their order depends on the layout of words."""
    read, position, reverse = (values.tolist() for values in locate(matrix))
    rows = list(zip(read, position, reverse, strict=True))
    bounds = column_bounds(matrix).tolist()
    return sorted(rows[a:b] for a, b in zip(bounds[:-1], bounds[1:], strict=True))


@pytest.mark.parametrize("far", [False, True])
def test_blocks_beyond(sequences, far):
    """Entries of a block are places in the block, whatever lies before it."""
    reads = make_reads(sequences)
    matrix = build_kmer_matrix(count_kmers(reads.codes, K, 2, 30), reads, K, 30)
    shift = FAR if far else 0
    starts = reads.starts + np.where(np.arange(N_READS) < 6, 0, shift)
    its = moved(matrix, starts, len(reads.codes) + shift)
    borders = np.array([0, starts[6] - PAD, its.starts[-1]])
    sizes = np.zeros(2, np.int64)
    blocks.count_in_blocks(its.entries, borders, sizes)
    out, columns = np.empty(sizes.sum(), np.uint32), np.empty(sizes.sum(), np.uint32)
    blocks.split_by_block(its.entries, borders, np.array([0, sizes[0]]), out, columns)
    room = np.empty(len(out), np.uint32)
    first, second = slice(0, sizes[0]), slice(sizes[0], None)
    gap = int(reads.starts[6] - PAD)
    n, _ = blocks.join_columns(out[first], columns[first], out[second], columns[second], gap, room)
    both = {tuple(part) for part in np.split(matrix.entries, column_bounds(matrix)[1:-1])}
    got = {tuple(part) for part in np.split(room[:n], np.flatnonzero(room[:n] & 2)[1:])}
    assert got == {part for part in both if part[0] >> 2 < gap <= part[-1] >> 2} and got
