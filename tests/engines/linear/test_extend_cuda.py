"""The GPU kernels: on a GPU if there is one, else in Numba's simulator, if asked for by NUMBA_ENABLE_CUDASIM=1.

The simulator is slow and needs NUMBA_DISABLE_JIT=1 too, so these cases are small; `.ci/run` runs them there.  On a GPU the
tests of test_xdrop.py run as well.
"""

from __future__ import annotations

import csv
import gzip
from concurrent.futures import ThreadPoolExecutor

import naive
import numpy as np
import pytest
from cases import TESTS
from numpy.testing import assert_array_equal
from strategies import end_of, lay_out_flanks, make_reads, make_seeds, mutate, on_tables, random_bases, simulate_flanks

from bellapy.compute.gpu.devices import Gpu, find_gpus
from bellapy.compute.gpu.errors import DriverError
from bellapy.compute.resources import Resources
from bellapy.engines.flanks import Flanks, make_flanks
from bellapy.errors import DeviceError
from bellapy.params import Scoring

try:
    find_gpus()
except DeviceError as error:
    pytest.skip(f"the GPU kernels do not run here: {error}", allow_module_level=True)


from bellapy.compute.gpu import pool as cuda_pool
from bellapy.compute.gpu import reads as cuda_reads
from bellapy.compute.gpu.ops import SIMULATED, driver
from bellapy.compute.gpu.planes import BASES, BLOCK, pack_planes
from bellapy.engines.linear import classes, extend_cpu
from bellapy.engines.linear.gpu import extend as batch_cuda
from bellapy.engines.linear.gpu.extend import CLASSES, window_sizes
from bellapy.engines.linear.gpu.stack_kernels import OUTGROWN
from bellapy.engines.linear.gpu.step_kernels import SCALE, fits, pack_scoring
from bellapy.jobs.overlap.align import FAR_X, NEAR_X

ORACLE = TESTS / "data" / "oracle_seqan_xdrop.tsv.gz"
pytestmark = pytest.mark.usefixtures("quick_threads")
MANY, LONG = (4, 40) if SIMULATED else (600, 300)  # flanks of a case, their bases
SCORINGS = [
    Scoring(1, -1, -1, 7), Scoring(1, -1, -1, 0), Scoring(1, -1, -2, 2), Scoring(1, -6, -1, 12), Scoring(2, -3, -4, 20),
    Scoring(5, -4, -6, 50), Scoring(1, -1, -1, 9, 9, 20 * 64), Scoring(1, -1, -1, 30, 40, 64),
    Scoring(1, -1, -1, 200, 5, 300),
]  # fmt: skip


extend_flanks = on_tables(batch_cuda.extend_flanks)


def by_table(pairs, scoring, longest=False):
    oracle = naive.xdrop_longest if longest else naive.xdrop_best
    return np.array([oracle(query, target, *scoring) for query, target in pairs], np.int64).reshape(len(pairs), 3)


@pytest.mark.parametrize("scoring", SCORINGS, ids=str)
@pytest.mark.parametrize("longest", [False, True])
def test_both_results_are_the_full_table(rng, scoring, longest):
    pairs = simulate_flanks(rng, MANY, LONG)
    codes, flanks = lay_out_flanks(pairs, rng)
    assert_array_equal(extend_flanks(codes, flanks, scoring, longest, 1), by_table(pairs, scoring, longest))


@pytest.mark.parametrize("size", CLASSES, ids=str)
def test_every_size_of_window(rng, monkeypatch, size):
    """Windows that move, unknown bases, and flanks that outgrow even a wide window and go on in the kernel for any width."""
    monkeypatch.setattr(batch_cuda, "CLASSES", ((*size[:2], 1000),))
    scoring, whole = Scoring(1, -1, -1, 9), random_bases(rng, 90 if SIMULATED else 400)
    other = random_bases(rng, len(whole))
    pairs = [(whole, mutate(rng, whole, 0.1)), (whole, "N" + whole), (whole, other), ("A" * 70, "A" * 50), (whole, "")]
    pairs = pairs if SIMULATED else pairs + simulate_flanks(rng, MANY, LONG)
    codes, flanks = lay_out_flanks(pairs, rng)
    for longest in (False, True):
        assert_array_equal(extend_flanks(codes, flanks, scoring, longest, 1), by_table(pairs, scoring, longest))


@pytest.mark.parametrize("longest, share", [(False, 1), (False, 1 << 62), (True, 1)])
def test_outgrown_windows_go_on_in_wider_ones(rng, monkeypatch, longest, share):
    """Through two sizes of windows and into the kernel for any width, at the border of the matrix and inside it; with wider
    windows that start before it is known what is left for them, once their kernel is loaded, and with others.
    """
    monkeypatch.setattr(batch_cuda, "STATES_SHARE", share)
    monkeypatch.setattr(batch_cuda, "window_sizes", lambda *_: [size[:2] for size in CLASSES[:2]])
    scoring, n = Scoring(1, -1, -1, 14), 90 if SIMULATED else 600
    pairs = [(random_bases(rng, n), random_bases(rng, n)) for _ in range(2 if SIMULATED else 50)]
    whole = random_bases(rng, n)
    pairs += [(whole, mutate(rng, whole, 0.15)), (whole, whole[: n // 2])]
    codes, flanks = lay_out_flanks(pairs, rng)
    expected = by_table(pairs, scoring, longest)
    for _ in range(1 if SIMULATED else 2):
        assert_array_equal(extend_flanks(codes, flanks, scoring, longest, 1), expected)


@pytest.mark.parametrize("longest", [False, True])
def test_the_last_flanks_go_on_with_those_that_outgrew_their_windows(rng, monkeypatch, longest):
    monkeypatch.setattr(batch_cuda, "window_sizes", lambda *_: [size[:2] for size in CLASSES[:2]])
    scoring, n = Scoring(1, -1, -1, 14), 90 if SIMULATED else 600
    related = [random_bases(rng, n // 2 if SIMULATED else 3 * n) for _ in range(3)]  # at work when the others have left
    pairs = [(random_bases(rng, n), random_bases(rng, n)) for _ in range(4)] + [(some, some) for some in related]
    codes, flanks = lay_out_flanks(pairs, rng)
    expected, handed_over = by_table(pairs, scoring, longest), []
    finish = batch_cuda._Batch.finish
    monkeypatch.setattr(
        batch_cuda._Batch, "finish", lambda batch: [finish(batch), handed_over.append(batch.counted[1, OUTGROWN])]
    )
    for few in (0, len(pairs)):
        monkeypatch.setattr(batch_cuda, "FEW_WARPS", few)
        assert_array_equal(extend_flanks(codes, flanks, scoring, longest, 1), expected)
    assert handed_over[0] == 4 < handed_over[1]


@pytest.mark.parametrize("longest", [False, True])
@pytest.mark.parametrize("sizes", [0, 2])
def test_pieces_of_a_worker_go_on_together(rng, monkeypatch, longest, sizes):
    """Also where they do not fit its room at once, and without any windows."""
    monkeypatch.setattr(batch_cuda, "LEAST_PIECE", 2)
    monkeypatch.setattr(batch_cuda, "BATCH", 6)
    monkeypatch.setattr(batch_cuda, "window_sizes", lambda *_: [size[:2] for size in CLASSES[:sizes]])
    scoring, pairs = Scoring(1, -1, -1, 9), simulate_flanks(rng, 11, 40)
    whole = random_bases(rng, 60)
    pairs[2:6] = [(whole, mutate(rng, whole, 0.2)), ("", "ACGT"), (whole, random_bases(rng, 60)), (whole, whole)]
    codes, flanks = lay_out_flanks(pairs, rng)
    batches, started = [], batch_cuda._Batch.finish
    monkeypatch.setattr(batch_cuda._Batch, "finish", lambda batch: batches.append(batch.n) or started(batch))
    assert_array_equal(extend_flanks(codes, flanks, scoring, longest, 1), by_table(pairs, scoring, longest))
    assert len(batches) > 1 and max(batches) <= 6


def test_jobs_of_other_sizes_before_change_nothing(rng, monkeypatch):
    """A worker keeps its arrays, each as long as some job before needed it."""
    for n, size in ((12, CLASSES[0]), (4, CLASSES[1]), (8, CLASSES[0])):
        monkeypatch.setattr(batch_cuda, "window_sizes", lambda *_, size=size: [size[:2]])
        pairs = simulate_flanks(rng, n, 40)
        codes, flanks = lay_out_flanks(pairs, rng)
        scoring = Scoring(1, -1, -1, 9)
        assert_array_equal(extend_flanks(codes, flanks, scoring, True, 1), by_table(pairs, scoring, True))


def test_reads_are_uploaded_once(rng):
    codes, flanks = lay_out_flanks(simulate_flanks(rng, 4, 30), rng)
    codes.flags.writeable = False
    sent = []
    for _ in range(2):
        resources = Resources()
        batch_cuda.extend_flanks(codes, flanks, Scoring(1, -1, -1, 3), end_of(False), resources)
        sent.append(sum(device.uploaded_bases for device in resources.devices.used()))
    assert sent[0] > 0 and sent[1] == 0


def test_runs_side_by_side_are_counted_each_alone(rng):
    """Threads that share the GPUs, each with a set of reads of its own; a second run begins at zero."""
    scoring, n = Scoring(1, -1, -1, 3), 2 if SIMULATED else 4

    def run(i):
        pairs = simulate_flanks(np.random.default_rng(i), 3 + i, 20)
        codes, flanks = lay_out_flanks(pairs, np.random.default_rng(i))
        resources = Resources()
        got = batch_cuda.extend_flanks(codes, flanks, scoring, end_of(False), resources).table
        assert_array_equal(got, by_table(pairs, scoring))
        return int(np.count_nonzero(np.minimum(flanks.query_length, flanks.target_length))), resources.devices.used()

    with ThreadPoolExecutor(n) as threads:
        for _ in range(2):
            for n_extended, used in threads.map(run, range(n)):
                assert sum(device.extensions for device in used) == n_extended


def test_reads_are_packed_in_parts_and_sent_in_stretches(rng, monkeypatch):
    """By three threads, through memory that holds two blocks; the last block is not full."""
    monkeypatch.setattr(cuda_reads, "STAGED", 2)
    monkeypatch.setattr(cuda_reads, "LEAST_PART", 1)
    n_bases = 4 * BLOCK + 77
    codes, planes = rng.integers(0, 5, 2 * n_bases).astype(np.uint8), np.zeros((-(-n_bases // BASES), 3), np.uint32)
    pack_planes(codes[:n_bases], planes)
    table = np.array([[0, BLOCK, 3 * BLOCK, 10, 0], [0, n_bases, 0, 1, 0]], np.int64)  # blocks 0 and 3, then all
    stream = driver.stream()
    with ThreadPoolExecutor(2) as helpers:
        reads = cuda_reads.DeviceReads(cuda_pool.Rooms(driver.device_array), helpers)
        reads.hold(codes)
        sent = [reads.bring(table[: i + 1], codes, 3, stream) for i in (0, 1, 1)]
    stream.synchronize()
    assert sent == [2 * BLOCK, n_bases - 2 * BLOCK, 0]
    assert_array_equal(reads.planes.copy_to_host(), planes)


def test_a_few_reads_do_not_drive_out_many(rng, monkeypatch):
    monkeypatch.setattr(cuda_reads, "FEW", BLOCK)
    sets = [rng.integers(0, 5, 2 * n).astype(np.uint8) for n in (2 * BLOCK, 50, 70, 3 * BLOCK)]
    stream = driver.stream()

    def bring(codes):
        reads.hold(codes)
        sent = reads.bring_all(codes, 2, stream)
        stream.synchronize()
        planes = np.zeros((-(-len(codes) // 2 // BASES), 3), np.uint32)
        pack_planes(codes[: len(codes) // 2], planes)
        assert reads.n_bases == len(codes) // 2
        assert_array_equal(reads.planes.copy_to_host(), planes)
        return sent

    with ThreadPoolExecutor(2) as helpers:
        reads = cuda_reads.DeviceReads(cuda_pool.Rooms(driver.device_array), helpers)
        sent = [bring(sets[i]) for i in (0, 1, 0, 2, 1, 0, 3, 0)]
    assert sent == [2 * BLOCK, 50, 0, 70, 50, 0, 3 * BLOCK, 2 * BLOCK]


@pytest.mark.parametrize("scoring", [Scoring(1, -1, -1, 7), Scoring(2, -3, -4, 20)], ids=str)
def test_devices_without_packed_instructions(rng, monkeypatch, scoring):
    monkeypatch.setattr(cuda_pool.pool().devices[0], "packed", False)
    pairs = simulate_flanks(rng, MANY, LONG)
    codes, flanks = lay_out_flanks(pairs, rng)
    assert_array_equal(extend_flanks(codes, flanks, scoring, False, 1), by_table(pairs, scoring))


def test_windows_follow_a_diagonal_that_drifts(rng):
    """Every third base is missing on one side, so the window moves all the time, up or down."""
    whole = random_bases(rng, 120 if SIMULATED else 3000)
    thinned = "".join(whole[i : i + 11] for i in range(0, len(whole), 12))
    pairs = [(whole, thinned), (thinned, whole)]
    codes, flanks = lay_out_flanks(pairs, rng)
    scoring = Scoring(1, -2, -1, 6)
    expected = [naive.xdrop_best_sparse(*pair, *scoring) for pair in pairs]
    assert expected[0][0] > len(whole) / 2
    assert_array_equal(extend_flanks(codes, flanks, scoring, False, 1), expected)


def test_gaps_at_the_border_die_on_equality(rng):
    scoring, whole, pairs = Scoring(1, -6, -1, 8), random_bases(rng, 30), []
    for begin in (0, 1):
        for size in range(7 - begin, 10):
            pairs.append((whole, whole[:begin] + "N" * size + whole))
    pairs = pairs[1:4] if SIMULATED else pairs + [pair[::-1] for pair in pairs]
    codes, flanks = lay_out_flanks(pairs, rng)
    assert_array_equal(extend_flanks(codes, flanks, scoring, False, 1), by_table(pairs, scoring))


@pytest.mark.parametrize("x", [7, 100])
def test_longest_is_seqan(x):
    with gzip.open(ORACLE, "rt") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if int(row["X"]) == x]
    rows.sort(key=lambda row: int(row["cells"]))
    rows = [row for row in (rows[:60:30] if SIMULATED else rows) if row["k"] == rows[0]["k"]]
    reads = make_reads([row[name] for row in rows for name in ("seqV", "seqH")])
    places = ([int(row[name]) for row in rows] for name in ("posV", "posH"))
    even = np.arange(0, 2 * len(rows), 2)
    flanks = make_flanks(reads, make_seeds(even, even + 1, np.ones(len(rows)), *places, int(rows[0]["k"])).anchors)
    got = extend_flanks(reads.both_ways, flanks, Scoring(1, -1, -1, x), True, 1)
    expected = [[int(row[name]) for row in rows] for name in ("score_left", "score_right")]
    assert_array_equal(got[:, 0].reshape(2, -1), expected)


def test_nothing_to_extend(rng):
    for pairs in ([], [("", "ACGT"), ("A", "")]):
        codes, flanks = lay_out_flanks(pairs, rng) if pairs else lay_out_flanks([("A", "A")], rng)
        columns = (flanks.query_at, flanks.query_length, flanks.target_at, flanks.target_length, flanks.complement)
        flanks = flanks if pairs else Flanks(*(column[:0] for column in columns))
        assert_array_equal(extend_flanks(codes, flanks, Scoring(), False, 1), np.zeros((len(pairs), 3)))


def test_full_memory_makes_batches_smaller_then_the_cpu_helps(rng, monkeypatch, said):
    full = DriverError(cuda_pool.OUT_OF_MEMORY)

    def extend(job, worker, pieces, alone):
        begin, end = next(pieces)
        sizes.append(end - begin)
        raise full

    sizes, scoring = [], Scoring(1, -1, -1, 7)
    codes, flanks = lay_out_flanks(simulate_flanks(rng, 40, 30), rng)
    monkeypatch.setattr(batch_cuda, "_extend_on_gpu", extend)
    monkeypatch.setattr(batch_cuda, "LEAST_BATCH", 6)
    resources = Resources()
    got = batch_cuda.extend_flanks(codes, flanks, scoring, end_of(False), resources).table
    assert_array_equal(got, on_tables(extend_cpu.extend_flanks)(codes, flanks, scoring, False, 1))
    assert sizes[0] == 20 and min(sizes) <= 6
    assert resources.devices.used()[-1].extensions == 40
    assert said.text.count("what does not fit is done on the CPU") == 1


def test_other_errors_are_not_taken_for_full_memory(rng, monkeypatch):
    monkeypatch.setattr(batch_cuda, "_extend_on_gpu", lambda *_: 1 / 0)
    codes, flanks = lay_out_flanks([("ACGT", "ACGT")], rng)
    with pytest.raises(ZeroDivisionError):
        extend_flanks(codes, flanks, Scoring(), False, 1)


def test_sizes_of_windows(monkeypatch):
    """Wide enough, not close together, up to the widest; the second step of overlaps needs no kernels of its own."""
    monkeypatch.setattr(batch_cuda, "CLASSES", classes.CLASSES)
    assert window_sizes(Scoring(1, -1, -1, 16_000)) == []
    rows = {
        x: [2 * group * registers for group, registers in window_sizes(Scoring(1, -1, -1, x))]
        for x in (0, 12, NEAR_X, 50, 110, FAR_X, 200, 300)
    }
    for x, sizes in rows.items():
        assert sizes[0] >= x + 12 and sizes[-1] == 896
        assert all(wide >= 1.5 * narrow for narrow, wide in zip(sizes, sizes[1:-1], strict=False))
    assert set(rows[FAR_X]) <= set(rows[NEAR_X])
    close = window_sizes(Scoring(1, -1, -1, 50), batch_cuda.CLOSE)
    assert set(window_sizes(Scoring(1, -1, -1, 50))) < set(close) and len(close) == 7


def test_devices_take_their_share_then_that_of_others():
    pieces = cuda_pool.Pieces([(i, i + 1) for i in range(6)], 2)
    taken = [pieces.take(share) for share in (0, 1, 0, 0, 0, 0, 1)]
    assert [piece and piece[0] for piece in taken] == [0, 3, 1, 2, 5, None, 4]
    assert cuda_pool.Pieces([(0, 9)], 4).take(0) == (0, 9)
    assert cuda_pool.Pieces([], 2).take(0) is None


def test_time_in_kernels_counts_overlaps_once():
    device = cuda_pool.Device(Gpu(0, "GPU", 1, 1), True, 1, None)
    for span in ((5.0, 9.0), (0.0, 4.0), (1.0, 2.0), (8.0, 10.0)):
        device.count([span], extensions=1, cells=10, uploaded_bases=5)
    assert device.close_spans() == pytest.approx(0.009)
    (used,) = device.work_of.used()
    assert (used.extensions, used.cells, used.uploaded_bases) == (4, 40, 20)


def test_bounds_of_scores():
    for scoring in (Scoring(1, -1, -1, 1900), Scoring(5, -6, -6, 1500), Scoring(9, -1, -30, 0)):
        wide = max((s for x in range(2100) if fits(s := scoring._replace(xdrop=x))), key=lambda s: s.xdrop)
        rule = pack_scoring(wide)
        assert int(rule.origin) + SCALE * 17 * wide.match < 1 << 15
        assert all(int(word) >> 16 == int(word) & 0xFFFF for word in (rule.mismatch, rule.drift, rule.best, rule.floor))
