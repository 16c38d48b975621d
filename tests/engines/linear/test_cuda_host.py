"""What the CPU does for GPUs: pieces of flanks, and reads as bit planes."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bellapy.compute.gpu.planes import BASES, BLOCK, mark_blocks, pack_planes, stretches
from bellapy.engines.flanks import Flanks
from bellapy.engines.registers.host import NOT_YET, STATE_COLUMN, clear, cut_seeds, list_piece, put_back, put_late, rows_of

END = 20 * BLOCK  # of both directions


def random_flanks(rng, n: int) -> Flanks:
    """Left flanks, then right ones, in the order of the reads; a few are empty."""
    at = np.sort(rng.integers(6000, END // 2 - 6000, (n + 1) // 2))
    lengths = rng.integers(0, 5000, (2, n)) * (rng.random(n) > 0.05)
    begins = np.concatenate((END - at, at))[:n]
    columns = (begins, lengths[0], begins.copy(), lengths[1])
    return Flanks(*(np.ascontiguousarray(column, np.int64) for column in columns), (np.arange(n) % 2).astype(np.uint8))


@pytest.mark.parametrize("shares", [(1,), (1, 4, 4, 4, 4), (1, 3) * 4])
@pytest.mark.parametrize("n", [0, 1, 7, 5000])
def test_pieces_have_their_shares_and_hold_every_flank_once(rng, n, shares):
    flanks = random_flanks(rng, n)
    pieces = cut_seeds(flanks, shares, 1500)
    rows = [rows_of(*piece, n) for piece in pieces]
    assert_array_equal(np.sort(np.concatenate([np.arange(0), *rows])), np.arange(n))
    assert all(0 < end - begin <= 1500 for begin, end in pieces)
    if n == 5000 and len(shares) > 1:
        work = np.minimum(flanks.query_length, flanks.target_length)
        assert_allclose([work[some].sum() / work.sum() for some in rows], np.array(shares) / sum(shares), rtol=0.2)


@pytest.mark.parametrize("n", [400, 401])
def test_a_piece_is_listed_longest_first_and_put_back(rng, n):
    flanks = random_flanks(rng, n)
    shorter = np.minimum(flanks.query_length, flanks.target_length)
    rows, table = np.empty(320, np.int32), np.empty((320, 5), np.int64)
    wanted = rows_of(50, (n + 1) // 2, n)
    n_listed = list_piece(*flanks.columns, 50, (n + 1) // 2, rows, table)
    rows, table = rows[:n_listed], table[:n_listed]
    assert_array_equal(np.sort(rows), np.sort(wanted[shorter[wanted] > 0]))
    assert_array_equal(table, flanks.table(rows))
    assert (np.diff(shorter[rows] // 32) <= 0).all()
    found, results = rng.integers(0, 99, (n_listed, 4)).astype(np.int32), np.full((n, 3), 7, np.int64)
    found[:, STATE_COLUMN] = 0
    now, late = found.copy(), np.empty(n, np.int32)
    now[[60, 90], STATE_COLUMN] = NOT_YET
    clear(50, (n + 1) // 2, results)
    assert [put_back(begin, begin + 50, rows, now, results, late) for begin in (0, 50)] == [0, 2]
    assert_array_equal(late[:2], [60, 90])
    ready = np.setdiff1d(np.arange(100), late[:2])
    assert_array_equal(results[rows[ready]], found[ready, :3])
    others = np.setdiff1d(np.arange(n), rows[ready])
    assert_array_equal(results[others], np.where(np.isin(others, wanted), 0, 7)[:, None].repeat(3, axis=1))
    put_late(late[:2], rows, found, results)
    assert_array_equal(results[rows[:100]], found[:100, :3])


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
