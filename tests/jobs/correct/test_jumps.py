"""Alignments of reads of another copy, cut where they jump over bases that other reads support."""

from __future__ import annotations

import numpy as np

from bellapy.jobs.correct.jumps import cut_jumps
from bellapy.jobs.correct.placements import Placements, homes

PAIR, QUERY, DRAFT = 0, 1, 2


def short(*runs: tuple[int, int]) -> list[int]:
    """Short runs: at most 63 columns each."""
    return [min(63, n - at) << 2 | operation for n, operation in runs for at in range(0, n, 63)]


def place(*lines: tuple[int, int, list[tuple[int, int]]]) -> Placements:
    """Lines by contig, start and runs; the first base of each is 1,000 times its number."""
    runs = [short(*line[2]) for line in lines]
    ends = np.cumsum([len(some) for some in runs])
    start = np.array([line[1] for line in lines])
    end = start + [sum(n for n, operation in line[2] if operation != QUERY) for line in lines]
    n = np.arange(len(lines))
    return Placements(
        1000 * n, 0 * n, np.array([line[0] for line in lines]), start, end, ends - [len(some) for some in runs], ends, n,
        n < 0, n < 0, 0.0 * n, np.concatenate([np.array(some, np.uint8) for some in runs]),
    )  # fmt: skip


def described(placed: Placements) -> list[tuple]:
    """Read, base, start, end and columns of pairs of each line, in order."""
    rows = []
    for i in np.lexsort((placed.start, placed.read)):
        runs = placed.runs[placed.first[i] : placed.last[i]]
        pairs = int((runs[(runs & 3) == PAIR] >> 2).astype(int).sum())
        rows.append((*(int(c[i]) for c in (placed.read, placed.base, placed.start, placed.end)), pairs))
    return rows


JUMPING = (0, 100, [(300, PAIR), (400, DRAFT), (200, PAIR), (90, QUERY), (100, PAIR)])
WHOLE = (0, 0, [(1500, PAIR)])
LENGTHS, LINES = np.array([2000, 500]), np.zeros(2, bool)


def test_what_other_reads_support_is_not_jumped_over():
    placed = place(JUMPING, WHOLE, WHOLE, WHOLE)
    found = described(cut_jumps(placed, LENGTHS, LINES, 3))
    assert found[:3] == [(0, 0, 100, 400, 300), (0, 300, 800, 1000, 200), (0, 590, 1000, 1100, 100)]
    assert found[3:] == described(placed)[1:]


def test_a_contig_that_nothing_supports_may_be_wrong():
    for others in ([WHOLE, WHOLE], [WHOLE, WHOLE, (1, 0, [(400, PAIR)])], [(0, 0, [(600, PAIR)])] * 5, [JUMPING] * 5):
        placed = place(JUMPING, *others)
        assert cut_jumps(placed, LENGTHS, LINES, 3) is placed


def test_positions_of_circles_go_on():
    later = (0, 1900, [(1500, PAIR)])  # lies at 1,900 to 3,400, and so at -100 to 1,400
    placed = place(JUMPING, later, later, later)
    assert cut_jumps(placed, LENGTHS, LINES, 3) is placed
    assert len(described(cut_jumps(placed, LENGTHS, ~LINES, 3))) == 6


def test_a_short_gap_is_no_jump():
    placed = place((0, 100, [(300, PAIR), (62, DRAFT), (200, PAIR)]), WHOLE, WHOLE, WHOLE)
    assert cut_jumps(placed, LENGTHS, LINES, 3) is placed


def test_the_home_of_a_read_has_most_of_its_bases():
    placed = place((0, 0, [(300, PAIR)]), (1, 0, [(200, PAIR)]), (1, 300, [(150, PAIR)]), (1, 0, [(10, PAIR)]))
    placed = placed._replace(read=np.array([1, 1, 1, 2]))
    assert homes(placed, 4).tolist() == [-1, 1, 1, -1]
    assert homes(placed._replace(end=placed.end - [0, 50, 0, 0]), 4).tolist() == [-1, 0, 1, -1]  # equal: the first one
