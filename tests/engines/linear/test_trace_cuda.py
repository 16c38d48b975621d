"""Paths on GPUs: on a GPU if there is one, else in Numba's simulator, as in test_cuda.py, whence few and short flanks here.

On a GPU the tests of test_paths.py run as well.
"""

from __future__ import annotations

import json
from dataclasses import fields
from unittest import mock

import naive
import numpy as np
import pytest
from cases import run
from numpy.testing import assert_array_equal
from strategies import end_of, make_reads, mutate, random_bases, simulate_flanks
from traced import around_seeds, as_overlaps, check_counts, interval, joined, make_overlaps

from bellapy.compute.gpu.devices import find_gpus
from bellapy.compute.gpu.errors import DriverError
from bellapy.compute.resources import Resources
from bellapy.engines import extend
from bellapy.engines.ends import Ends
from bellapy.engines.flanks import join_flanks
from bellapy.engines.join import flank_ends
from bellapy.errors import DeviceError
from bellapy.params import Scoring
from bellapy.records import Paths, join_paths

try:
    find_gpus()
except DeviceError as error:
    pytest.skip(f"the GPU kernels do not run here: {error}", allow_module_level=True)

from bellapy.compute.gpu import pool as cuda_pool
from bellapy.compute.gpu.ops import SIMULATED
from bellapy.engines.linear.gpu import extend as extension
from bellapy.engines.linear.gpu import trace as batch_cuda
from bellapy.engines.linear.gpu.extend import CLASSES
from bellapy.engines.linear.trace_cpu import trace_overlaps as trace_on_cpu

pytestmark = pytest.mark.usefixtures("quick_threads")
MANY, LONG = (3, 40) if SIMULATED else (600, 300)  # flanks of a case, their bases
SCORINGS = [
    Scoring(1, -1, -1, 7), Scoring(1, -1, -1, 0), Scoring(1, -3, -1, 12), Scoring(2, -3, -4, 20), Scoring(5, -11, -5, 50)
]  # fmt: skip
"""Also with a mismatch that costs more than two gaps."""


def overlaps_of(rng, pairs, scoring, longest):
    """Reads around seeds, and the overlaps that extension gives: by full tables, or for many flanks by the CPU."""
    sequences, seeds = around_seeds(rng, pairs)
    if not SIMULATED:
        return sequences, *make_overlaps(sequences, seeds, scoring, longest=longest)
    oracle, none = naive.xdrop_longest if longest else naive.xdrop_best, ("", "")
    ends = np.array([oracle(*pair, *scoring)[1:] for pair in [*pairs, none]], np.int64)
    anchors, n = seeds.anchors, len(seeds)
    table = np.zeros((2 * n, 3), np.int64)
    table[:n, 1:], table[n:, 1:] = ends[: 2 * n : 2], ends[1 : 2 * n : 2]
    return sequences, make_reads(sequences), as_overlaps(seeds, join_flanks(anchors, Ends(table), table[:, 1:], 1))


def check(pairs, scoring, longest, rng, resources=None):
    """Paths are those of the full tables; on a GPU, where many are traced, those of the CPU."""
    sequences, reads, overlaps = overlaps_of(rng, pairs, scoring, longest)
    check_paths(sequences, reads, overlaps, (scoring,), longest, resources)


def check_paths(sequences, reads, overlaps, steps, longest, resources=None):
    parts = batch_cuda.trace_overlaps(reads, overlaps, steps, end_of(longest), resources or Resources())
    got = join_paths([part.part(0, len(part)) for part in parts])
    assert len(got) == len(overlaps)
    if SIMULATED:
        for i in range(len(overlaps)):
            runs = got.runs[got.offsets[i] : got.offsets[i + 1]].tolist()
            path, (query, target) = "".join("MID"[run & 15] * (run >> 4) for run in runs), interval(sequences, overlaps, i)
            assert path == naive.left_aligned(joined(sequences, overlaps, steps, longest, i), query, target)
            assert all(one & 15 != other & 15 for one, other in zip(runs, runs[1:], strict=False))
            check_counts(path, query, target, got, i)
    else:
        wanted = trace_on_cpu(reads, overlaps, steps, end_of(longest), Resources())
        for f in fields(Paths):
            assert_array_equal(getattr(got, f.name), getattr(wanted, f.name), f.name)


@pytest.mark.parametrize("scoring", SCORINGS, ids=str)
@pytest.mark.parametrize("longest", [False, True])
def test_paths_are_the_full_tables(rng, scoring, longest):
    check(simulate_flanks(rng, MANY, LONG), scoring, longest, rng)


@pytest.mark.parametrize("size", CLASSES, ids=str)
def test_every_size_of_window(rng, monkeypatch, size):
    """Windows that move, unknown bases, pure gaps, and flanks that outgrow all windows and are left to the CPU."""
    monkeypatch.setattr(extension, "CLASSES", ((*size[:2], 2000),))
    told = []
    monkeypatch.setattr(batch_cuda, "give_to_cpu", lambda devices, reason, paths: told.append(paths))
    scoring, whole = Scoring(1, -1, -1, 9), random_bases(rng, 60 if SIMULATED else 400)
    pairs = [(whole, mutate(rng, whole, 0.1)), (whole, "N" + whole), ("AC" + "A" * 30, "A" * 25), (whole, "")]
    for longest in (False,) if SIMULATED else (False, True):
        check(pairs if SIMULATED else pairs + simulate_flanks(rng, MANY, LONG), scoring, longest, rng)
    told.clear()
    wide = 2 * size[0] * size[1]
    check([("A" * (wide + 8), "C" * (wide + 8))], Scoring(1, -1, -1, wide + 4), True, rng)
    assert told == [1]


@pytest.mark.parametrize("longest", [False] if SIMULATED else [False, True])
def test_outgrown_windows_go_on_in_wider_ones(rng, monkeypatch, longest):
    monkeypatch.setattr(batch_cuda, "window_sizes", lambda *_: [CLASSES[0][:2], CLASSES[-1][:2]])
    n = 50 if SIMULATED else 400
    whole = random_bases(rng, n)
    pairs = [(whole, whole[:20] + random_bases(rng, 9) + whole[20:]), (whole, mutate(rng, whole, 0.15))]
    check(pairs if SIMULATED else 50 * pairs, Scoring(1, -1, -1, 14), longest, rng)


@pytest.mark.parametrize("chunks", [1, 2])
@pytest.mark.parametrize("longest", [False, True])
def test_blocks_change_nothing(rng, monkeypatch, chunks, longest):
    """Flanks of one to several blocks, in windows that move, with gaps at the border."""
    monkeypatch.setattr(batch_cuda, "block_chunks", lambda n_chunks, chunk_bytes, state_bytes: chunks)
    whole = random_bases(rng, 60 if SIMULATED else 500)
    thinned = "".join(whole[i : i + 11] for i in range(0, len(whole), 12))
    pairs = [(whole, thinned), ("C" + whole[:40], whole)]
    check(pairs if SIMULATED else pairs + simulate_flanks(rng, MANY, LONG), Scoring(1, -2, -1, 6), longest, rng)


def test_batches_change_nothing(rng, monkeypatch):
    monkeypatch.setattr(batch_cuda, "BATCH_BYTES", 1 << (14 if SIMULATED else 20))
    monkeypatch.setattr(batch_cuda, "LEAST_PIECE", max(1, MANY // 6))
    monkeypatch.setattr(batch_cuda, "LEAST_COPY", 0)
    check(simulate_flanks(rng, 2 * MANY, LONG), Scoring(1, -1, -1, 3), False, rng)


def test_devices_without_packed_instructions(rng, monkeypatch):
    monkeypatch.setattr(cuda_pool.pool().devices[0], "packed", False)
    check(simulate_flanks(rng, MANY, LONG), Scoring(1, -1, -1, 7), False, rng)


def test_nothing_to_trace(rng):
    for pairs in ([("", "ACGT"), ("A", ""), ("A", "C")], [("A", "A"), ("A", "AC"), ("AAA", "")], [("", ""), ("", "")]):
        check(pairs, Scoring(), False, rng)
    sequences, reads, overlaps = overlaps_of(rng, [("A", "A")], Scoring(), False)
    check_paths(sequences, reads, overlaps.take(slice(0, 0)), (Scoring(),), False)


def test_gaps_go_left_and_meet(rng):
    """Through whole runs of pairs, up to the first pair of the path, and across the seed; of both kinds, side by side."""
    pairs = [
        ("A" * 9, "A" * 6), ("AAAAAC", "AAAC"), ("ACACACAC", "ACACAC"), ("ACACACACAC", "ACACAC"), ("CAAAAA", "CAAA"),
        ("CCAAAAG", "CCAAG"), ("AACCAA", "AAGGAA"), ("TTTTTTTT", "TTTT"), ("", ""), ("GTTTTG", "GTTG"),
    ]  # fmt: skip
    for turned in (pairs, [(target, query) for query, target in pairs]):
        check(turned if SIMULATED else 40 * turned, Scoring(1, -3, -1, 5), False, rng)


@pytest.mark.parametrize("longest", [False, True])
def test_both_steps(rng, longest):
    steps = Scoring(1, -1, -1, 0), Scoring(1, -1, -1, 9)
    whole = [random_bases(rng, LONG) for _ in range(2 * MANY)]
    pairs = [("ACGGT" * 28, "ACGGT" * 28)]  # for several short runs
    pairs += [(one, mutate(rng, one, 0.1)) for one in whole[1:]]
    sequences, seeds = around_seeds(rng, pairs)
    with mock.patch.multiple(extend, NEAR=5, LEAST_FOUND=0):
        reads, overlaps = make_overlaps(sequences, seeds, *steps, longest=longest)
    assert (overlaps.turns != flank_ends(overlaps)).any()
    check_paths(sequences, reads, overlaps, steps, longest)


def test_scores_that_fit_no_window_are_left_to_the_cpu(rng, said):
    resources = Resources()
    for _ in range(2):
        check([("ACGT", "ACGT")], Scoring(1, -1, -1, 1_200), False, rng, resources)
    assert said.text.count("paths are traced on the CPU") == 1
    assert resources.devices.used()[-1].paths == 2


def test_full_memory_makes_batches_smaller_then_the_cpu_helps(rng, monkeypatch, said):
    full = DriverError(cuda_pool.OUT_OF_MEMORY)

    def trace(job, worker, pieces, alone):
        begin, end = next(pieces)
        sizes.append(end - begin)
        if end - begin > 1:
            raise full
        on_gpu(job, worker, iter([(begin, end)]), alone)

    sizes, on_gpu, pairs = [], batch_cuda._trace_on_gpu, 10 * [("ACGTAC", "ACGTAC")]
    monkeypatch.setattr(batch_cuda, "_trace_on_gpu", trace)
    monkeypatch.setattr(batch_cuda, "LEAST_BATCH", 2)
    resources = Resources()
    check(pairs, Scoring(1, -1, -1, 3), False, rng, resources)
    assert sizes == [5, 2, 3, 1, 2]
    assert resources.devices.used()[-1].paths == 8
    assert said.text.count("what does not fit is done on the CPU") == 1


def test_lines_are_those_of_the_cpu(rng, monkeypatch, tmp_path):
    """Whole lines with CIGARs, through the command line; what the device did is in the report."""
    pairs = []
    for strand in "nc":
        whole = random_bases(rng, 60 if SIMULATED else 3000)
        copy = whole[:20] + mutate(rng, whole[20:], 0.1)
        target, at = (copy, 8) if strand == "n" else (naive.reverse_complement(copy), len(copy) - 20)
        pairs.append(f"{whole}\t8\t{target}\t{at}\t{strand}\n")
    text = "".join(pairs).encode()
    for extension_end in ("best", "longest"):
        options = ("extend", "-", "-k", 12, "-x", 3, "--cigar", "--cs", "-t", 1, "--extension", extension_end)
        expected = run(*options, "--device", "cpu", stdin=text)
        got = run(*options, "--device", "cuda", "--report", tmp_path / "report.json", stdin=text)
        assert got.code == expected.code == 0 and got.out == expected.out
        assert got.out.count(b"cg:Z:") == 2
    (used,) = json.loads((tmp_path / "report.json").read_text())["devices"]
    assert used["paths"] > 0 and used["path_s"] >= 0
