"""What the CPU does for GPUs: pieces of flanks, and reads as bit planes."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from bellapy.xdrop.cuda_host import BASES, BLOCK, cut_pieces, list_piece, mark_blocks, pack_planes, put_back, stretches
from bellapy.xdrop.flanks import Flanks

END = 20 * BLOCK  # of both directions


def random_flanks(rng, n: int) -> Flanks:
    """Left flanks of n // 2 seeds, then right ones, in the order of the reads; a few are empty."""
    half = n // 2
    at = np.sort(rng.integers(6000, END // 2 - 6000, half))
    lengths = rng.integers(0, 5000, (2, n)) * (rng.random(n) > 0.05)
    begins = np.concatenate((END - at, at))
    columns = (begins, lengths[0], begins.copy(), lengths[1])
    return Flanks(*(np.ascontiguousarray(column, np.int64) for column in columns), np.tile([0, 1], half).astype(np.uint8))


@pytest.mark.parametrize("n_pieces", [1, 4, 16])
@pytest.mark.parametrize("n", [0, 2, 6, 5000])
def test_pieces_have_equal_work_and_hold_every_flank_once(rng, n, n_pieces):
    flanks = random_flanks(rng, n)
    pieces = cut_pieces(flanks, n_pieces, 2000, END)
    assert_array_equal(np.sort(np.concatenate([np.arange(0), *(np.arange(*piece) for piece in pieces)])), np.arange(n))
    assert all(0 < end - begin <= 2000 for begin, end in pieces)
    work = np.minimum(flanks.query_length, flanks.target_length)
    if n == 5000 and n_pieces == 16:
        assert len(pieces) == 16 and max(work[slice(*piece)].sum() for piece in pieces) < 1.1 * work.sum() / 16


def test_pieces_of_the_same_reads_follow_one_another(rng):
    flanks = random_flanks(rng, 4000)
    first = [min(at, END - at) for at in flanks.query_at[[begin for begin, _ in cut_pieces(flanks, 8, 4000, END)]]]
    assert first == sorted(first)
    assert {begin >= 2000 for begin, _ in cut_pieces(flanks, 8, 4000, END)[:3]} == {True, False}


def test_a_piece_is_listed_longest_first_and_put_back(rng):
    flanks = random_flanks(rng, 400)
    shorter = np.minimum(flanks.query_length, flanks.target_length)
    rows, table = np.empty(300, np.int32), np.empty((300, 5), np.int64)
    n = list_piece(*flanks.columns, 50, 350, rows, table)
    assert_array_equal(np.sort(rows[:n]), 50 + np.flatnonzero(shorter[50:350]))
    assert_array_equal(table[:n], flanks.table(rows[:n]))
    assert (np.diff(shorter[rows[:n]] // 16) <= 0).all()
    found, results = rng.integers(0, 99, (n, 3)).astype(np.int32), np.zeros((400, 3), np.int64)
    put_back(rows[:n], found, results)
    assert_array_equal(results[rows[:n]], found)
    assert results.sum() == found.sum()


def test_blocks_of_flanks(rng):
    flanks = random_flanks(rng, 6)
    table = flanks.table(np.flatnonzero(np.minimum(flanks.query_length, flanks.target_length)))
    needed, bases = np.zeros(END // 2 // BLOCK, np.bool_), np.zeros(END, np.bool_)
    mark_blocks(table, END // 2, needed)
    for at, length in table[:, :4].reshape(-1, 2):
        bases[at : at + length] = True
    bases = bases[: END // 2] | bases[END // 2 :][::-1]
    assert_array_equal(needed, bases.reshape(-1, BLOCK).any(axis=1))


def test_stretches():
    flags = np.array([0, 1, 1, 1, 0, 0, 1, 0, 1, 1], np.bool_)
    assert list(stretches(flags, 2)) == [(1, 3), (3, 4), (6, 7), (8, 10)]
    assert list(stretches(np.zeros(3, np.bool_), 2)) == []


@pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 200])
def test_planes_hold_the_bits_of_the_codes(rng, n):
    codes = rng.integers(0, 5, n).astype(np.uint8)
    planes = np.zeros((-(-n // BASES), 3), np.uint32)
    pack_planes(codes, planes)
    bits = planes[:, None, :] >> np.arange(BASES)[None, :, None] & 1
    unpacked = (bits << np.arange(3)).sum(axis=2).reshape(-1)
    assert_array_equal(unpacked[:n], codes)
    assert (unpacked[n:] == 4).all()
