"""Alignments that leave out many bases of a contig, or have many more, where other reads lie on the contig as it is.

Such reads are of another copy of a repeat, with or without a piece.  Where that copy is deeper they would outvote the reads
of this one.  So their alignments are cut there, and both parts are used.  Where nothing else supports the contig they stay
whole: there it is the contig that is wrong.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bellapy.compute.runs import PAIR, QUERY_ALONE
from bellapy.jobs.correct.placements import Placements

LONGEST_RUN = 63  # bases of a short run: a gap that holds such a run is a jump
BESIDE = 50  # bases on either side of a jump that reads have to cover to speak against it


def cut_jumps(placed: Placements, lengths: np.ndarray, circular: np.ndarray, least: int) -> Placements:
    """Lines without the jumps against which at least so many reads speak.  lengths, circular : of the contigs."""
    size, operation = placed.runs >> 2, placed.runs & 3
    long = np.flatnonzero((size == LONGEST_RUN) & (operation != PAIR))
    order = np.argsort(placed.first, kind="stable")
    lines = np.unique(order[np.searchsorted(placed.first[order], long, side="right") - 1]) if len(long) else long
    jumps = {int(line): _jumps(placed, int(line)) for line in lines}
    against = _speakers(placed, jumps, lengths, circular)
    parts, gone = [], []
    for line, found in jumps.items():
        cuts = [one for one, n in zip(found, against[line], strict=True) if n >= least]
        if cuts:
            gone.append(line)
            parts += _parts(placed, line, cuts)
    if not gone:
        return placed
    kept = np.setdiff1d(np.arange(len(placed.base)), gone)
    rows = np.array([part[0] for part in parts], np.int64)
    columns = {name: getattr(placed, name)[np.concatenate([kept, rows])] for name in placed._fields if name != "runs"}
    for i, name in enumerate(("base", "start", "end", "first", "last"), 1):
        columns[name][len(kept) :] = [part[i] for part in parts]
    return placed._replace(**columns)


class Jump(NamedTuple):
    """A long gap of a line.

    first, last : its runs.  before : bases of the read before it; inserted : in it.  start, end : on the contig.
    """

    first: int
    last: int
    before: int
    inserted: int
    start: int
    end: int


def _jumps(placed: Placements, line: int) -> list[Jump]:
    """The long gaps of a line."""
    found = []
    column, base, first = int(placed.start[line]), 0, int(placed.first[line])
    runs = placed.runs[first : int(placed.last[line])]
    sizes, operations = (runs >> 2).astype(np.int64), runs & 3
    edges = [0, *(np.flatnonzero(np.diff(operations)) + 1).tolist(), len(runs)]
    for a, b in pairwise(edges):
        n, operation = int(sizes[a:b].sum()), int(operations[a])
        inserted = n if operation == QUERY_ALONE else 0
        end = column + n - inserted
        if operation != PAIR and n >= LONGEST_RUN and 0 < a and b < len(runs):
            found.append(Jump(first + a, first + b, base, inserted, column, end))
        column, base = end, base + (n if operation == PAIR else inserted)
    return found


def _speakers(
    placed: Placements, jumps: dict[int, list[Jump]], lengths: np.ndarray, circular: np.ndarray
) -> dict[int, list[int]]:  # fmt: skip
    """How many lines without jumps lie across each jump."""
    whole = np.ones(len(placed.base), bool)
    whole[list(jumps)] = False
    rows = {contig: np.flatnonzero(whole & (placed.contig == contig)) for contig in {int(placed.contig[i]) for i in jumps}}
    against = {}
    for line, found in jumps.items():
        contig = int(placed.contig[line])
        start, end = placed.start[rows[contig]], placed.end[rows[contig]]
        shifts = (-lengths[contig], 0, lengths[contig]) if circular[contig] else (0,)

        def across(one: Jump, start: np.ndarray = start, end: np.ndarray = end, shifts: tuple = shifts) -> int:
            low, high = one.start - BESIDE, one.end + BESIDE
            return sum(int(((start <= low + by) & (end >= high + by)).sum()) for by in shifts)

        against[line] = [across(one) for one in found]
    return against


def _parts(placed: Placements, line: int, cuts: list[Jump]) -> list[tuple[int, ...]]:
    """The parts of a line between some jumps: line, base, start, end, first and last run."""
    base, start, first = int(placed.base[line]), int(placed.start[line]), int(placed.first[line])
    parts, begin = [], base
    for one in cuts:
        parts.append((line, begin, start, one.start, first, one.first))
        begin, start, first = base + one.before + one.inserted, one.end, one.last
    return [*parts, (line, begin, start, int(placed.end[line]), first, int(placed.last[line]))]
