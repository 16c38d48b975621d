"""Many alignments on NVIDIA GPUs, in bands that fit there; the CPU does the rest.

Without a band that is asked for, a first score tells how wide a band has to be, and a second one in that band is the best.
An extension that `zdrop` may end needs the whole table.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from bellapy.compute.gpu.pool import give_to_cpu
from bellapy.compute.jit import njit
from bellapy.compute.resources import Resources
from bellapy.compute.threads import map_threads
from bellapy.engines.affine.batch_cpu import WIDE_MARGIN, WIDE_SHARE, Aligner, Effort
from bellapy.engines.affine.gpu.bands import ROWS, Bands, align_bands
from bellapy.engines.affine.pieces import Pieces, Solved
from bellapy.engines.affine.rule import EXTEND, GLOBAL, NO_ZDROP, REACH, rows_of_band, width_needed
from bellapy.params import AffineScoring

LEFT = "pairs that fit no band of a GPU are aligned on the CPU"


@njit
def _enough(pieces, index, score, scoring):
    """Diagonals of bands in which the best of the whole table is found, if some band has given these scores.

    pieces : Pieces.  index : (n,) int64, rows of pieces.  score : (n_pieces,) int64.  scoring : AffineScoring.
    """
    found = np.empty(len(index), np.int64)
    for x in range(len(index)):
        p = index[x]
        q_len, t_len, mode = pieces.q_len[p], pieces.t_len[p], pieces.mode[p]
        shift = abs(t_len - q_len) if mode == GLOBAL else 0
        found[x] = shift + 2 * width_needed(score[p], q_len, t_len, mode, 0, scoring) + 4
    return found


class _Found:
    """Solutions of some pieces so far.

    solved : of all pieces.  there : (n,) bool, which have a solution.  runs : of one part after the other.
    """

    def __init__(self, pieces: Pieces):
        n = len(pieces.q_at)
        score, q_used, t_used, starts, counts = np.zeros((5, n), np.int64)
        none = np.empty(0, np.uint32)
        self.solved = Solved(score, q_used, t_used, np.zeros(n, np.bool_), none, starts, counts, 0)
        self.there, self.runs, self.n_runs = np.zeros(n, np.bool_), [none], 0

    def put(self, index: np.ndarray, part: Solved, which: np.ndarray | slice = slice(None)) -> None:
        """The pieces `index` have these solutions, `which` of a part."""
        solved = self.solved
        for whole, its in zip(solved[:4], part[:4], strict=True):
            whole[index] = its[which]
        solved.starts[index], solved.counts[index] = part.starts[which] + self.n_runs, part.counts[which]
        self.runs.append(part.runs)
        self.n_runs += len(part.runs)
        self.solved = solved._replace(cells=solved.cells + part.cells)
        self.there[index] = True

    def all(self) -> Solved:
        return self.solved._replace(runs=np.concatenate(self.runs))


class GpuAligner:
    """Aligns pieces on all GPUs, and on threads of the CPU what fits no GPU.

    scoring : from rule.ordered.  paths : whether they are wanted.
    """

    def __init__(self, scoring: AffineScoring, paths: bool, resources: Resources):
        self.scoring, self.paths, self.resources = scoring, paths, resources
        self.sizes, self.few = ROWS, (ROWS[0], ROWS[2], ROWS[-1])  # each size has to be compiled

    def align(self, query: np.ndarray, target: np.ndarray, pieces: Pieces, effort: Effort) -> Solved:
        """Align all pieces; the results are those of `batch_cpu.Aligner`, paths left out if they are not wanted."""
        codes, found = (query, target), _Found(pieces)
        index = np.flatnonzero((pieces.mode != REACH) & (pieces.q_len > 0) & (pieces.t_len > 0))
        longer, shorter = np.maximum(pieces.q_len, pieces.t_len), np.minimum(pieces.q_len, pieces.t_len)
        diagonals = np.full(len(longer), effort.diagonals)
        if not effort.diagonals:
            whole = (pieces.mode == EXTEND) & (effort.zdrop != NO_ZDROP)
            diagonals = 2 * np.where(whole, longer + 1, np.maximum(WIDE_MARGIN, shorter // WIDE_SHARE))
            first = _Found(pieces)
            self._in_bands(codes, pieces, index[~whole[index]], diagonals, False, effort, first)
            index = index[first.there[index] | whole[index]]
            known = index[first.there[index]]
            diagonals[known] = _enough(pieces, known, first.solved.score, self.scoring)
        self._in_bands(codes, pieces, index, diagonals, self.paths, effort, found)
        self._on_cpu(codes, pieces, np.flatnonzero(~found.there), effort, found)
        return found.all()

    def _in_bands(
        self, codes: tuple, pieces: Pieces, index: np.ndarray, diagonals: np.ndarray, paths: bool, effort: Effort,
        found: _Found,
    ) -> None:  # fmt: skip
        """Align the pieces `index` in bands of so many diagonals, as far as there are kernels for these."""
        rows = rows_of_band(diagonals, pieces.q_len, pieces.t_len, pieces.mode)
        if not effort.diagonals:  # wider ones do no harm
            sizes = np.array([*self.few, 0])
            rows = sizes[np.searchsorted(sizes[:-1], rows)]
        for size, mode in product(self.sizes, (GLOBAL, EXTEND)):
            bands = Bands(size, self.scoring, paths, mode == EXTEND, effort.zdrop)
            its = index[(rows[index] == size) & (pieces.mode[index] == mode)]
            if len(its) and bands.exist:
                part, taken = align_bands(codes[0], codes[1], pieces.take(its), bands, self.resources)
                found.put(its[taken], part, taken)

    def _on_cpu(self, codes: tuple, pieces: Pieces, index: np.ndarray, effort: Effort, found: _Found) -> None:
        if not len(index):
            return
        give_to_cpu(self.resources.devices, LEFT, extensions=len(index))
        threads = self.resources.threads
        parts = [part for part in (index[thread::threads] for thread in range(threads)) if len(part)]

        def align(part: np.ndarray) -> Solved:
            return Aligner(self.scoring).align(codes[0], codes[1], pieces.take(part), effort)

        solved = map_threads(align, parts, threads)
        for part, its in zip(parts, solved, strict=True):
            found.put(part, its)
