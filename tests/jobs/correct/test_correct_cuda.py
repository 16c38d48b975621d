"""Reads corrected on GPUs, or in Numba's simulator, are those that the CPU corrects."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest

from bellapy.compute.gpu.devices import find_gpus
from bellapy.compute.resources import Resources
from bellapy.errors import DeviceError
from bellapy.jobs.correct import pipeline
from bellapy.jobs.correct.kept import pack, unpack
from bellapy.jobs.correct.members import Traced
from bellapy.jobs.correct.report import Details, start_report
from bellapy.params.correct import CorrectParams
from bellapy.records import Overlaps, ReadSet
from bellapy.report.run_report import RunReport

try:
    find_gpus()
except DeviceError as error:
    pytest.skip(f"the GPU kernels do not run here: {error}", allow_module_level=True)

from bellapy.engines.tags.gpu import batch as batch_cuda
from bellapy.jobs.correct.gpu import ranges as on_gpu

pytestmark = pytest.mark.usefixtures("quick_threads")
MOST = 63  # columns of a short run


def job_of(device: str, seed: int = 3) -> pipeline.Job:
    """Reads of a short genome on both strands, with other bases in places, and one read of something else."""
    rng = np.random.default_rng(seed)
    genome = rng.integers(0, 4, 50)
    starts, ends = [0, 5, 0, 16, 12], [36, 40, 50, 48, 50]
    strands, texts = rng.random(len(starts)) < 0.5, []
    for start, end, reverse in zip(starts, ends, strands, strict=True):
        codes = np.where(rng.random(end - start) < 0.08, rng.integers(0, 4, end - start), genome[start:end])
        texts.append("".join("ACGT"[code] for code in (3 - codes[::-1] if reverse else codes)))
    reads = ReadSet.from_sequences([*texts[:3], "".join("ACGT"[code] for code in rng.integers(0, 4, 20)), *texts[3:]])
    number, rows = [0, 1, 2, 4, 5], []
    for i, j in combinations(range(len(starts)), 2):
        spans = [max(starts[i], starts[j]), min(ends[i], ends[j])]
        place = []
        for r in (i, j):
            begin, end = spans[0] - starts[r], spans[1] - starts[r]
            n = ends[r] - starts[r]
            place.append((n - end, n - begin) if strands[r] else (begin, end))
        rows.append((number[i], number[j], *place[0], *place[1], 1 if strands[i] == strands[j] else -1))
    columns = {name: np.zeros(len(rows), np.int32) for name in Overlaps.__dataclass_fields__}
    names = "query_id", "target_id", "query_start", "query_end", "target_start", "target_end", "strand"
    columns |= {name: np.array(column, np.int32) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
    columns |= {"strand": columns["strand"].astype(np.int8)}
    sizes = columns["query_end"] - columns["query_start"]

    def trace(which: np.ndarray) -> Iterator[Traced]:
        runs = [[min(MOST, n - at) << 2 for at in range(0, n, MOST)] for n in sizes[which].tolist()]
        flat = np.array([run for its in runs for run in its], np.uint8)
        yield flat, np.array([len(its) for its in runs], np.int64), sizes[which].astype(np.int64)

    return pipeline.Job(reads, Overlaps(**columns), trace, CorrectParams(min_support=2), Resources(1, device))


def correct(job: pipeline.Job) -> tuple[list, RunReport]:
    report = start_report(RunReport())
    report.details = Details()
    return list(pipeline.correct_reads(job, report)), report


def check_equal(found: list, expected: list) -> None:
    for one, other in zip(found, expected, strict=True):
        for name, value in one._asdict().items():
            assert np.array_equal(value, getattr(other, name)), name


@pytest.mark.parametrize("range_bytes", [1 << 20, 150])
def test_equal_to_those_of_the_cpu(range_bytes, monkeypatch):
    monkeypatch.setattr(pipeline, "RANGE_BYTES", range_bytes)
    expected, _ = correct(job_of("cpu"))
    assert any(len(found.codes) and not found.raw.all() for found in expected)
    monkeypatch.setattr(pipeline, "correct_template", None)
    found, _ = correct(job_of("cuda"))
    check_equal(found, expected)


@pytest.mark.parametrize(
    "device, wanted", [("cpu", [1, 3, 4]), ("cpu", [0, 5]), ("cpu", [3]), ("cpu", []), ("cuda", [1, 3, 4])]
)
def test_only_reads_that_are_wanted_come(device, wanted, monkeypatch):
    """Read 3 has no other one."""
    monkeypatch.setattr(pipeline, "RANGE_BYTES", 150)
    expected, _ = correct(job_of("cpu"))
    job = job_of(device)
    job.wanted = np.isin(np.arange(6), wanted)
    found, report = correct(job)
    check_equal(found, [expected[read] for read in wanted])
    assert report.details.correction.reads == len(wanted)
    check_equal(list(unpack(pack(found))), found)


def test_what_does_not_fit_is_left_to_the_cpu(monkeypatch):
    expected, _ = correct(job_of("cpu"))

    def refuse(*_):
        raise MemoryError

    for place, name in ((batch_cuda._Batch, "_judge"), (on_gpu, "make_piles")):
        monkeypatch.setattr(place, name, refuse)
        job = job_of("cuda")
        found, _ = correct(job)
        check_equal(found, expected)
        (used,) = (use for use in job.resources.devices.used() if use.piles)
        assert (used.name[:3], used.piles) == ("CPU", 5)
