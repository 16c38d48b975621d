"""The affine engine on GPUs: on a GPU if there is one, else in Numba's simulator, as in test_extend_cuda.py; so these cases
are small.  The simulator runs no code for CPUs: there the naive table is all that kernels are compared with.
"""

from __future__ import annotations

import naive_affine
import numpy as np
import pytest
from affine_pairs import pieces_of, runs_of
from strategies import mutate, random_bases

from bellapy.compute.gpu.devices import find_gpus
from bellapy.compute.resources import Resources
from bellapy.errors import DeviceError
from bellapy.params import AffineScoring

try:
    find_gpus()
except DeviceError as error:
    pytest.skip(f"the GPU kernels do not run here: {error}", allow_module_level=True)

from bellapy.compute.gpu.ops import SIMULATED, WARP
from bellapy.engines.affine.batch_cpu import Aligner, Effort
from bellapy.engines.affine.gpu import bands as bands_cuda
from bellapy.engines.affine.gpu import batch as batch_cuda
from bellapy.engines.affine.gpu import step_kernels as cuda_step
from bellapy.engines.affine.gpu.band_kernels import padding
from bellapy.engines.affine.pieces import Solved
from bellapy.engines.affine.rule import EXTEND, GLOBAL, NO_ZDROP, ordered

pytestmark = pytest.mark.usefixtures("quick_threads")
LARGE = AffineScoring(10, -9, 30, 10, 30, 10)
SCALED = {"scale 1": 25, "scale 0": 50} if WARP == 32 else {"scale 1": 100, "scale 0": 150}
"""Matches whose scores fill half of 16 bits, or all: in the simulator warps and bands are narrower."""
SCORINGS = {
    "two": AffineScoring(),
    "one": AffineScoring(1, -1, 0, 1, 0, 1),
    **{name: AffineScoring(m, -min(m, 100), *2 * [m // 10, m // 5]) for name, m in SCALED.items()},
}


def align(pairs, scoring, rows=bands_cuda.ROWS[0], paths=True, step=1, zdrop=None):
    queries, targets, pieces = pieces_of(pairs, GLOBAL if zdrop is None else EXTEND, step)
    bands = bands_cuda.Bands(rows, ordered(scoring), paths, zdrop is not None, zdrop or 0)
    assert bands.exist
    return bands_cuda.align_bands(queries, targets, pieces, bands, Resources(1, "cuda"))


def check(pairs, scoring, solved, rows) -> None:
    plain = (scoring.match, scoring.mismatch, scoring.unknown, scoring[2:6])
    for p, (query, target) in enumerate(pairs):
        h = naive_affine.table(query, target, *plain, naive_affine.band(query, target, rows))
        assert solved.score[p] == h[-1][-1]
        assert runs_of(solved, p) == naive_affine.path(query, target, h, *plain, len(query), len(target))


def some(solved, p: int):
    """The solution of piece p alone."""
    return solved._replace(score=solved.score[p:], starts=solved.starts[p:], counts=solved.counts[p:])


def related(rng, n: int) -> tuple[str, str]:
    """A sequence, and a copy with errors and one gap, longer than those that a warp tries at once."""
    one, at = random_bases(rng, n), n // 2
    return one, mutate(rng, one[:at] + one[at + int(rng.integers(0, 12)) :], 0.15) or "A"


@pytest.mark.parametrize("scoring", SCORINGS.values(), ids=SCORINGS)
def test_equals_the_naive_table(rng, scoring):
    pairs = [related(rng, n) for n in (1, 7, 34)] + [("ACGTTG", "C")]
    solved, taken = align(pairs, scoring)
    assert taken.all()
    check(pairs, scoring, solved, bands_cuda.ROWS[0])


def test_a_band_is_kept_to(rng):
    """The best alignment of the table lies outside: both sequences share a part, far from each other's diagonal."""
    rows = bands_cuda.ROWS[0]
    same, other = random_bases(rng, 3 * rows), random_bases(rng, rows + 4)  # worth two gaps of that length
    pairs = [(same + other, other + same)]
    solved, taken = align(pairs, AffineScoring(), rows)
    assert taken.all()
    if SIMULATED:
        check(pairs, AffineScoring(), solved, rows)
    else:
        queries, targets, pieces = pieces_of(pairs, GLOBAL)
        wanted = Aligner(AffineScoring()).align(queries, targets, pieces, Effort(diagonals=2 * rows))
        assert solved.score[0] == wanted.score[0] and runs_of(solved, 0) == runs_of(wanted, 0)
        assert wanted.score[0] < Aligner(AffineScoring()).align(queries, targets, pieces).score[0]


def test_a_path_away_from_the_best_cells_is_found(rng, monkeypatch):
    """Scores are kept around the best cell alone at first; here that is a by-way, until the end of the table."""
    launched, launch = [], bands_cuda._launch

    def noted(job, worker, table, lanes, *arrays):
        launched.append((len(table), lanes))
        return launch(job, worker, table, lanes, *arrays)

    monkeypatch.setattr(bands_cuda, "_launch", noted)
    rows = bands_cuda.ROWS[0]
    away, same = rows - rows // 8, random_bases(rng, rows)
    pairs = [(same + random_bases(rng, away), random_bases(rng, away) + same), (same, same)]
    solved, taken = align(pairs, AffineScoring(), rows)
    assert taken.all() and launched == [(2, bands_cuda.FEW_LANES), (1, WARP)]
    if SIMULATED:
        check(pairs, AffineScoring(), solved, rows)


def test_unknown_bases_are_left_out(rng):
    query = random_bases(rng, 12)
    solved, taken = align(
        [(query, query), (query, query[:5] + "N" + query[6:]), (query[1:], query)], AffineScoring(), paths=False
    )
    assert taken.tolist() == [True, False, True] and solved.score[[0, 2]].tolist() == [24, 22 - 6]


def test_backwards(rng):
    pairs = [related(rng, 20)]
    solved, taken = align(pairs, AffineScoring(), step=-1)
    assert taken.all()
    check(pairs, AffineScoring(), solved, bands_cuda.ROWS[0])


@pytest.mark.parametrize("zdrop", [NO_ZDROP, 12])
def test_extensions_end_where_the_table_says(rng, zdrop):
    scoring, rows = AffineScoring(), bands_cuda.ROWS[0]
    pairs = [related(rng, n) for n in (2, 15, 40)] + [("A", "C"), ("ACGTT", "ACG")]
    pairs.append((pairs[2][0] + random_bases(rng, 30), pairs[2][1] + random_bases(rng, 12)))
    plain = (scoring.match, scoring.mismatch, scoring.unknown, scoring[2:6])
    solved, taken = align(pairs, scoring, rows, zdrop=zdrop)
    assert taken.all()
    for p, (query, target) in enumerate(pairs):
        h = naive_affine.table(query, target, *plain, naive_affine.band(query, target, rows, False))
        want = naive_affine.extension(h, zdrop)
        assert (solved.score[p], solved.q_used[p], solved.t_used[p]) == want
        assert runs_of(solved, p) == naive_affine.path(query, target, h, *plain, *want[1:])


def test_scores_that_do_not_fit_have_no_kernel():
    rows = bands_cuda.ROWS[-1]
    assert cuda_step.scale_for(ordered(AffineScoring()), 384) == 3 and cuda_step.scale_for(LARGE, 128) == 1
    assert cuda_step.scale_for(AffineScoring(100, -100, 10_000, 1000, 10_000, 1000), 128) < 0
    assert not bands_cuda.Bands(rows, ordered(AffineScoring()), True, True).exist
    assert not bands_cuda.Bands(bands_cuda.ROWS[3], LARGE, True, True).exist
    assert [cuda_step.scale_for(SCORINGS[f"scale {n}"], bands_cuda.ROWS[0]) for n in (1, 0)] == [1, 0]


def test_padding_ends_a_table_with_a_chunk():
    lengths = np.arange(1, 200)
    pads = padding(lengths, False)
    assert pads.min() >= 1 and set((lengths + 2 * pads) % 32) <= {0, 31}


def test_what_fits_no_gpu_goes_to_the_cpu(rng, monkeypatch):
    """And bands are as wide as a proof needs, unless one is asked for."""
    given = []

    class Cpu:
        def __init__(self, scoring):
            pass

        def align(self, query, target, pieces, effort):
            n = len(pieces.q_at)
            given.extend(pieces.q_len.tolist())
            numbers = np.zeros((5, n), np.int64)
            return Solved(*numbers[:3], np.zeros(n, np.bool_), np.empty(0, np.uint32), *numbers[3:], 0)

    monkeypatch.setattr(batch_cuda, "Aligner", Cpu)
    pairs = [related(rng, 20), ("ACNT", "ACTT"), ("", "ACGTA"), related(rng, 9)]
    queries, targets, pieces = pieces_of(pairs, GLOBAL)
    for diagonals in (0, 5):
        given.clear()
        resources = Resources(1, "cuda")
        aligner = batch_cuda.GpuAligner(AffineScoring(), True, resources)
        aligner.sizes = aligner.few = (128,)
        solved = aligner.align(queries, targets, pieces, Effort(diagonals=diagonals))
        assert given == [4, 0]
        check([pairs[0]], AffineScoring(), solved, 128)
        check([pairs[3]], AffineScoring(), some(solved, 3), 128)
        assert resources.devices.used()[-1].extensions == 2


@pytest.mark.skipif(SIMULATED, reason="compares with code for CPUs")
@pytest.mark.parametrize("scoring", [AffineScoring(), AffineScoring(1, -1, 0, 1, 0, 1), LARGE], ids=["two", "one", "large"])
@pytest.mark.parametrize("size", [0, 2, -1])
def test_gives_the_integers_of_the_cpu(rng, scoring, size):
    exist = [rows for rows in bands_cuda.ROWS if bands_cuda.Bands(rows, ordered(scoring), True, False, 0).exist]
    rows = exist[size]
    pairs = [related(rng, int(n)) for n in rng.integers(1, 3000, 201)]  # no multiple of the warps of a block
    queries, targets, pieces = pieces_of(pairs, GLOBAL)
    wanted = Aligner(ordered(scoring)).align(queries, targets, pieces, Effort(diagonals=2 * rows))
    for paths in (True, False):
        solved, taken = align(pairs, scoring, rows, paths)
        assert taken.all() and (solved.score == wanted.score).all()
        assert not paths or all(runs_of(solved, p) == runs_of(wanted, p) for p in range(len(pairs)))
