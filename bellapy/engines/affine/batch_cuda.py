"""Many alignments on NVIDIA GPUs: global ones in bands that fit there; the CPU does the rest.

Without a band that is asked for, a first score tells how wide a band has to be, and a second one in that band is the best.
"""

from __future__ import annotations

import numpy as np

from bellapy.compute.gpu.pool import give_to_cpu
from bellapy.compute.jit import njit
from bellapy.compute.resources import Resources
from bellapy.compute.threads import map_threads
from bellapy.engines.affine.bands_cuda import ROWS, align_bands
from bellapy.engines.affine.batch_cpu import WIDE_MARGIN, WIDE_SHARE, Aligner, Effort
from bellapy.engines.affine.cuda_step import scale_for
from bellapy.engines.affine.pieces import Pieces, Solved
from bellapy.engines.affine.rule import GLOBAL, rows_of_band, width_needed
from bellapy.params import AffineScoring

LEFT = "pairs that fit no band of a GPU, and extensions, are aligned on the CPU"


@njit
def _enough(pieces, index, score, scoring):
    """Diagonals of bands in which the best of the whole table is found, if some band has given these scores.

    pieces : Pieces, global ones.  index : (n,) int64, rows of pieces.  score : (n_pieces,) int64.  scoring : AffineScoring.
    """
    found = np.empty(len(index), np.int64)
    for x in range(len(index)):
        p = index[x]
        q_len, t_len = pieces.q_len[p], pieces.t_len[p]
        out = width_needed(score[p], q_len, t_len, GLOBAL, 0, scoring)
        found[x] = abs(t_len - q_len) + 2 * out + 4
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
        self.sizes = [rows for rows in ROWS if scale_for(scoring, rows) >= 0]

    def align(self, query: np.ndarray, target: np.ndarray, pieces: Pieces, effort: Effort) -> Solved:
        """Align all pieces; the results are those of `batch_cpu.Aligner`, paths left out if they are not wanted."""
        codes, found = (query, target), _Found(pieces)
        index = np.flatnonzero((pieces.mode == GLOBAL) & (pieces.q_len > 0) & (pieces.t_len > 0))
        if effort.diagonals:
            self._in_bands(codes, pieces, index, np.full(len(index), effort.diagonals), self.paths, found)
        else:
            guess = 2 * np.maximum(WIDE_MARGIN, np.minimum(pieces.q_len, pieces.t_len) // WIDE_SHARE)[index]
            first = _Found(pieces)
            self._in_bands(codes, pieces, index, guess, False, first)
            index = index[first.there[index]]
            enough = _enough(pieces, index, first.solved.score, self.scoring)
            self._in_bands(codes, pieces, index, enough, self.paths, found)
        self._on_cpu(codes, pieces, np.flatnonzero(~found.there), effort, found)
        return found.all()

    def _in_bands(
        self, codes: tuple[np.ndarray, np.ndarray], pieces: Pieces, index: np.ndarray, diagonals: np.ndarray, paths: bool,
        found: _Found,
    ) -> None:  # fmt: skip
        """Align the pieces `index`, global ones, in bands of so many diagonals, as far as there are kernels for these."""
        some = pieces.take(index)
        rows = rows_of_band(diagonals, some.q_len, some.t_len, some.mode)
        for size in self.sizes:
            its = np.flatnonzero(rows == size)
            if len(its):
                part, taken = align_bands(*codes, some.take(its), size, self.scoring, paths, self.resources)
                found.put(index[its[taken]], part, taken)

    def _on_cpu(self, codes: tuple, pieces: Pieces, index: np.ndarray, effort: Effort, found: _Found) -> None:
        if not len(index):
            return
        give_to_cpu(self.resources.devices, LEFT, extensions=len(index))
        threads = self.resources.threads
        parts = [part for part in (index[thread::threads] for thread in range(threads)) if len(part)]
        query, target = codes
        solved = map_threads(
            lambda part: Aligner(self.scoring).align(query, target, pieces.take(part), effort), parts, threads
        )
        for part, its in zip(parts, solved, strict=True):
            found.put(part, its)
