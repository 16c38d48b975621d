"""How a matrix is cut for GPUs: strips of rows, panels of columns, the tiles that may matter; and scores in 16 bits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.gpu.ops import BOTH, SIMULATED, U32
from bellapy.engines.exact.cpu import Task
from bellapy.engines.exact.gpu.records import LAG, NOT_MARKED, Kind, Packed
from bellapy.engines.exact.gpu.tile_kernels import HIGHEST
from bellapy.engines.exact.heights import Blocks, Heights
from bellapy.engines.exact.rule import Scores

LOOSE = 0.9  # of all tiles: with fewer that may matter there is one panel
WIDER = 3 / 2  # how many times as many tiles a panel has as there are warps, at least


class Sizes(NamedTuple):
    """How a matrix is cut; chosen by measurement.

    registers, steps : as in Kind; powers of two, so that blocks of cells (heights.py) are made of whole strips, and of LAG
    columns each.  panel : tiles of a panel; 0: as `panel_edges` chooses.
    """

    registers: int = 2 if SIMULATED else 16
    steps: int = 2 * LAG if SIMULATED else 4 * LAG
    panel: int = 0


DEFAULT = Sizes()


def rows_of(kind: Kind) -> int:
    """Rows of a strip."""
    return LAG * kind.registers


def reach(scores: Scores, kind: Kind) -> int:
    """How far below a tile's base the true scores on and in it lie at most.

    Scores k bases apart differ by at most k (match + extend) and the opening of a gap (docs/exact.md).  The base is the best
    score on the tile's borders, or a little more (`tile_kernels.highest_cell`).
    """
    span = rows_of(kind) + kind.steps + 2 * LAG
    return (scores.match + scores.gap_extend) * span + 2 * scores.first + scores.gap_extend * (kind.registers + 3)


def least_mismatch(scores: Scores) -> int:
    """What a mismatch counts at least: no less than two gaps of one base each, which give the same."""
    return max(scores.mismatch, -2 * scores.first)


def _added(scores: Scores) -> tuple[int, int]:
    """What the kernel adds for a mismatch and for a match: with the drift of a row and a column, and what opens a gap."""
    more = 2 * scores.gap_extend + scores.gap_open
    return least_mismatch(scores) + more, scores.match + more


def fits(scores: Scores, sizes: Sizes = DEFAULT) -> bool:
    """Whether the kernel's numbers keep to 16 bits, those of pairs to 7, and none is below 0."""
    kind = Kind(sizes.registers, sizes.steps, False)
    wrong, right = _added(scores)
    span = rows_of(kind) + kind.steps + 2 * LAG
    most = zero_of(scores, kind) + (scores.match + 2 * scores.gap_extend) * span + 2 * scores.first
    return 0 <= wrong and right < 128 and most < HIGHEST


def zero_of(scores: Scores, kind: Kind) -> int:
    """Where a tile's base stands: above all that is left out, whose scores may be raised to `dead`."""
    return reach(scores, kind) + 3 * scores.gap_open


def _both(number: int) -> np.uint32:
    """A number in both halves of a word; or what takes it from both."""
    return U32(number * BOTH & 0xFFFFFFFF)


def pack_scores(scores: Scores, kind: Kind, floor: bool, seek: bool) -> Packed:
    """The kernel's numbers."""
    wrong, right = _added(scores)
    return Packed(
        _both(-scores.gap_open), _both(scores.gap_extend), U32(1), _both(wrong), U32(wrong * 0x01010101), U32(wrong ^ right),
        np.int32(scores.gap_extend), np.int32(scores.gap_open), np.int32(zero_of(scores, kind)), np.int32(scores.gap_open),
        np.int32(scores.gap_open + 1), floor, seek,
    )  # fmt: skip


def highest(values: np.ndarray, size: int) -> np.ndarray:
    """The highest value of each `size` rows or columns, both borders included; int32."""
    edges = np.arange(0, max(1, len(values) - 1), size)
    inside = np.maximum.reduceat(values, edges)
    return np.maximum(inside, values[np.minimum(edges + size, len(values) - 1)]).astype(np.int32)


def living_tiles(task: Task, kind: Kind) -> np.ndarray:
    """(n_strips, 2) int32, as `tiles` of sweep_kernels.Matrix: what the task's intervals of columns leave of each strip.

    A strip's first tile lies before its first column, so that what comes from above is made in tiles of the same strips.
    """
    n, m, rows = len(task.query), len(task.target), rows_of(kind)
    first, last = task.bounds.first.astype(np.int64), task.bounds.last.astype(np.int64)
    last = np.where(first <= last, np.minimum(last, m), -1)
    edges = np.arange(0, n, rows) // task.size
    first, last = np.minimum.reduceat(first, edges), np.maximum.reduceat(last, edges)
    at = LAG * np.arange(len(edges))
    begin = np.maximum(0, at + np.maximum(0, first - 1) - 1) // kind.steps
    end = np.where(last < 0, 0, (at + LAG - 1 + last - 1) // kind.steps + 1)
    begin = np.minimum.accumulate(begin[::-1])[::-1]
    return np.stack([begin, np.maximum(begin, np.maximum.accumulate(end))], axis=1).astype(np.int32)


def keep_busy(tiles: np.ndarray, warps: int) -> bool:
    """Whether so many warps are worth it: those that only wait slow the others down.

    tiles : `living_tiles`.  A strip begins when the one above is done with its first tile.  Some strips always wait, so half
    as many again as there are warps should be there.
    """
    n, tiles = len(tiles), tiles.astype(np.int64)
    apart = 1 + max(0, int(tiles[-1, 0] - tiles[0, 0])) / n
    at_work = min(n, float((tiles[:, 1] - tiles[:, 0]).mean()) / apart)
    return 2 * at_work >= 3 * warps


def panel_edges(tiles: np.ndarray, warps: int, n_gpus: int = 1, width: int = 0) -> np.ndarray:
    """(n_panels + 1,) int64: the tile at which each panel begins, and the end.

    tiles : `living_tiles`.  warps : at work on a GPU.  width : tiles of all panels, if it is chosen.

    With more tiles in a panel than there are warps, none waits for the strip above.  All GPUs but one wait for the first
    panel, and the last one keeps but one GPU busy: with several GPUs these two are narrower.  All have as many panels.
    A narrower region is one panel, since few of its strips are alive at a time and nothing is to wait for a panel's end.
    """
    whole = max(1, int(tiles[:, 1].max(initial=0)))
    if width:
        return np.append(np.arange(0, whole, width), whole)
    if float((tiles[:, 1] - tiles[:, 0]).sum()) < LOOSE * len(tiles) * whole:
        return np.array([0, whole])
    ends = warps if n_gpus > 1 and whole > (n_gpus + 2) * warps else 0
    wide = n_gpus * max(1, int((whole - 2 * ends) / (WIDER * warps * n_gpus)))
    edges = np.linspace(ends, whole - ends, wide + 1).astype(np.int64)
    return np.concatenate(([0], edges, [whole])) if ends else edges


def list_tasks(tiles: np.ndarray, edges: np.ndarray, share: int = 0, shares: int = 1) -> np.ndarray:
    """(n_tasks, 5) int32, as in sweep_kernels.Traffic, in order.

    tiles, edges : `living_tiles`, `panel_edges`.  share, shares : of the panels that are dealt out in turn.
    """
    tiles, parts = tiles.astype(np.int64), [np.zeros((0, 5), np.int64)]
    for begin, end in zip(edges[share:-1:shares], edges[share + 1 :: shares], strict=True):
        inside = np.clip(tiles, begin, end)
        strips = np.flatnonzero(inside[:, 0] < inside[:, 1])
        above = np.where((strips > 0)[:, None], inside[strips - 1], 0)
        parts.append(np.concatenate([strips[:, None], inside[strips], above], axis=1))
    return np.concatenate(parts).astype(np.int32)


def blocks_by_strip(blocks: Blocks, n_strips: int, kind: Kind) -> tuple[np.ndarray, np.ndarray, np.uint32]:
    """Bounds of blocks of cells as sweep_kernels.Matrix has them: `block_most`, `block_row`, `block_shift`."""
    rows = (np.arange(n_strips) * rows_of(kind) // blocks.rows).astype(np.int32)
    return blocks.most, rows, U32(min(31, (blocks.columns // LAG).bit_length() - 1))


def marks_by_strip(marks: Heights, n_strips: int, kind: Kind) -> tuple[np.ndarray, np.uint32]:
    """What is to be noted, as sweep_kernels.Matrix has it: `mark_row`, `mark_shift`."""
    rows = np.full(n_strips, NOT_MARKED, np.int32)
    rows[marks.rows // rows_of(kind) - 1] = np.arange(len(marks.rows))
    return rows, U32(marks.columns.bit_length() - 1)


class Kept(NamedTuple):
    """Strips whose last rows are kept.

    strips : their numbers.  first, last : columns that may be there, from 0.  places : (n_strips,) int64, as `kept` of
    sweep_kernels.Matrix.  n : entries in all.
    """

    strips: np.ndarray
    first: np.ndarray
    last: np.ndarray
    places: np.ndarray
    n: int

    def within(self, begin: np.ndarray, end: np.ndarray) -> Kept:
        """The same without what was not computed; begin, end : (n_strips,) columns of each strip that were."""
        first = np.maximum(self.first, begin[self.strips])
        return self._replace(first=first, last=np.maximum(first, np.minimum(self.last, end[self.strips])))


def choose_kept(tiles: np.ndarray, m: int, kind: Kind, every: int, most: int, not_kept: int) -> Kept:
    """Keep the last rows of every so many strips that they take no more than `most` entries; every : 0 keeps none.

    m : columns.
    """
    strips = np.arange(len(tiles) - 1 if every else 0)
    begin, end = (tiles[strips].astype(np.int64) * kind.steps - LAG * (strips[:, None] + 1) + 1).T
    first, last = np.clip(begin, 0, m), np.clip(end, 0, m)
    apart = 1
    while int((last - first)[apart - 1 :: apart].sum()) > most:
        apart *= 2
    strips, first, last = (x[apart - 1 :: apart] for x in (strips, first, last))
    edges = np.concatenate(([0], np.cumsum(last - first)))
    places = np.full(len(tiles), not_kept, np.int64)
    places[strips] = edges[:-1] - first
    return Kept(strips, first, last, places, int(edges[-1]))
