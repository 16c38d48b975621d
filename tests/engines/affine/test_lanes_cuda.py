"""Short alignments on a GPU give what lanes of the CPU give, byte by byte: scores, paths, and which band was enough.

On a GPU if there is one, else in Numba's simulator.  That runs no code for CPUs, so what is expected comes from another
process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import nullcontext

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from strategies import mutate, random_bases

from bellapy.compute.gpu.devices import known_gpus
from bellapy.errors import DeviceError

try:
    known_gpus()
except DeviceError as error:
    pytest.skip(f"no GPU: {error}", allow_module_level=True)

from bellapy.compute.gpu.desk import desk
from bellapy.compute.gpu.ops import SIMULATED
from bellapy.engines.affine.batch_cpu import HEIGHTS, Effort
from bellapy.engines.affine.gpu.lanes import try_lanes_on_gpu
from bellapy.engines.affine.pieces import Pieces
from bellapy.engines.affine.rule import EXTEND, GLOBAL, REACH, ordered
from bellapy.params import map_preset
from bellapy.records.bases import encode
from bellapy.report.run_report import Devices
from bellapy.seeding.gpu.minimizers import send_planes

pytestmark = pytest.mark.usefixtures("quick_threads")
ON_CPU = """
import sys, numpy as np
from bellapy.engines.affine.batch_cpu import Aligner, Effort
from bellapy.engines.affine.pieces import Pieces
from bellapy.engines.affine.rule import ordered
from bellapy.params import map_preset
given = np.load(sys.argv[1])
aligner = Aligner(ordered(map_preset(sys.argv[2]).scoring))
effort = Effort(*given["effort"].tolist())
tried = aligner.try_lanes((given["query"], given["target"]), Pieces(*given["pieces"]), effort)
solved = tried.solved
np.savez(sys.argv[1], needed=tried.needed, columns=np.stack([*map(np.int64, solved[:4]), solved.starts, solved.counts]),
         runs=solved.runs[:tried.n_runs], cells=solved.cells)
"""
N_PIECES, LONGEST = (12, 40) if SIMULATED else (3000, 700)


def some_pieces(rng) -> tuple[np.ndarray, np.ndarray, Pieces]:
    """Pieces of all modes, both ways: with errors, gaps, tails that do not fit, unknown bases, one empty, one too long."""
    queries, targets, modes = [], [], []
    for x in range(N_PIECES):
        n, rate = int(rng.integers(1, LONGEST)), (0.02, 0.15, 0.3)[x % 3]
        target = random_bases(rng, n)
        query = mutate(rng, target, rate) or "A"
        cut = int(rng.integers(0, n))
        if x % 4 == 1:
            query = query[:cut] + random_bases(rng, int(rng.integers(0, 20 if SIMULATED else 150))) + query[cut:]
        if x % 4 == 2:
            query = query[: max(1, cut)] + random_bases(rng, n)
        if x % 7 == 6:
            query = query[:cut] + "N" + query[cut:]
        queries, targets, modes = [*queries, query], [*targets, target], [*modes, (GLOBAL, EXTEND, REACH)[x % 5 % 3]]
    queries, targets, modes = [*queries, "ACG", "A" * 5000], [*targets, "", "A" * 20], [*modes, GLOBAL, GLOBAL]
    sides, step = [], np.where(np.arange(len(modes)) % 2, 1, -1)
    for texts in (queries, targets):
        sizes = np.array([len(text) for text in texts])
        begins = np.cumsum(sizes) - sizes
        codes = encode("".join(text[::way] for text, way in zip(texts, step.tolist(), strict=True)))
        sides.append((codes, np.where(step > 0, begins, begins + sizes - 1), sizes))
    (query, q_at, q_len), (target, t_at, t_len) = sides
    return query, target, Pieces(q_at, q_len, t_at, t_len, step, np.array(modes))


@pytest.mark.parametrize("preset, floor, bonus", [("clr", 500, 10), ("hifi", -500, 3)])
def test_they_are_the_cpus(rng, tmp_path, preset, floor, bonus):
    query, target, pieces = some_pieces(rng)
    effort = Effort(floor, 3, 20 if SIMULATED else 200, bonus)
    there = tmp_path / "pieces.npz"
    np.savez(there, query=query, target=target, pieces=np.stack(pieces), effort=np.array(effort))
    plain = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    subprocess.run([sys.executable, "-c", ON_CPU, str(there), preset], check=True, env=plain)
    expected = np.load(there)
    with desk(Devices()) as here:
        planes = send_planes(here, query, 1), send_planes(here, target, 1)
        tried = try_lanes_on_gpu(lambda: nullcontext(here), planes, pieces, ordered(map_preset(preset).scoring), effort)
    assert_array_equal(tried.needed, expected["needed"])
    done, solved = tried.needed == 0, tried.solved
    assert_array_equal(np.stack(list(map(np.int64, solved[:4])))[:, done], expected["columns"][:4, done])
    starts, counts = expected["columns"][4:]
    assert_array_equal(solved.counts[done], counts[done])
    for p in np.flatnonzero(done):
        mine, its = solved.runs[solved.starts[p] :], expected["runs"][starts[p] :]
        assert_array_equal(mine[: counts[p]], its[: counts[p]])
    assert solved.cells == expected["cells"]
    assert done.sum() > N_PIECES // 2 and not done.all()
    assert HEIGHTS[0] < solved.cells / (pieces.q_len + pieces.t_len)[done].sum()
