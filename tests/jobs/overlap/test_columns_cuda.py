"""Columns on a GPU: profile, votes, kinds and what is kept are the CPU's; on a GPU if there is one, else simulated."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from strategies import make_reads, mutate, random_bases

from bellapy.compute.gpu.devices import known_gpus
from bellapy.compute.resources import Resources
from bellapy.errors import DeviceError
from bellapy.jobs.overlap import counting as count_rounds_module
from bellapy.jobs.overlap import depth_steps, linking, repeats
from bellapy.jobs.overlap.blocks import KEPT
from bellapy.jobs.overlap.depth_steps import UNIT, Bins
from bellapy.jobs.overlap.gate import GATED
from bellapy.jobs.overlap.linking import APART_KIND, DEEP, N_KINDS, ORDINARY, REPEAT
from bellapy.jobs.overlap.pipeline import in_memory, run_candidates, run_counting
from bellapy.jobs.overlap.report import start_report
from bellapy.params import make_params
from bellapy.report.run_report import Devices, RunReport
from bellapy.seeding.kmer_matrix import build_kmer_matrix, profile_depth
from bellapy.seeding.kmers import count_kmers

try:
    known_gpus()
except DeviceError as error:
    pytest.skip(f"no GPU: {error}", allow_module_level=True)

from bellapy.compute.gpu.desk import desk
from bellapy.compute.gpu.ops import SIMULATED
from bellapy.jobs.overlap.gpu import columns as columns_cuda
from bellapy.jobs.overlap.gpu import products as products_cuda
from bellapy.jobs.overlap.gpu.columns import DeviceColumns


@pytest.fixture(autouse=True)
def small_sets_pay(monkeypatch):
    monkeypatch.setattr(count_rounds_module, "LEAST_BASES", 0)


pytestmark = pytest.mark.usefixtures("quick_threads")
ANY, K = (1 << 31) - 1, 7


def reads_of(rng):
    """Reads of one sequence, two of which show a repeat as well, on both strands."""
    n, length = (4, 40) if SIMULATED else (100, 2000)
    whole, unit = random_bases(rng, 2 * length), random_bases(rng, 20)
    reads = [mutate(rng, whole[at : at + length], 0.02) for at in rng.integers(0, length, n)]
    reads += [whole[: length // 2] + 3 * unit, 2 * unit + whole[length:]]
    return make_reads([*reads, reads[0][::-1].translate(str.maketrans("ACGT", "TGCA"))])


def both_ways(reads, upper):
    """The counts, and the matrix, of the CPU and of the GPU."""
    counts = count_kmers(reads.codes, K, 2, ANY)
    with desk(Devices()) as its_desk:
        held = DeviceColumns(its_desk.send(counts.entries), Devices())
    matrices = [
        build_kmer_matrix(replace(counts, entries=entries), reads, K, upper) for entries in (counts.entries[:], held)
    ]
    return counts, *matrices


def test_profile_company_and_votes(rng):
    reads = reads_of(rng)
    _, here, there = both_ways(reads, 3)
    profile, held = profile_depth(here, reads), profile_depth(there, reads)
    assert_array_equal(profile.n_kmers, held.n_kmers)
    assert_array_equal(profile.copies, held.copies)
    bins = Bins(here.starts, here.read_table, profile.offsets, profile.width)
    repeat = (rng.random(len(profile.n_kmers)) < 0.4).astype(np.uint8)
    narrow = Bins(here.starts, here.read_table, np.concatenate(([0], np.cumsum(reads.lengths // 2 + 1))), 2)
    high = (rng.random(narrow.offsets[-1]) < 0.2).astype(np.uint8)
    n_runs, runs = np.empty(len(reads), np.int64), np.empty(len(high), np.int32)
    depth_steps.count_runs(narrow.offsets, high, 0, len(reads), n_runs)
    firsts = np.concatenate(([0], np.cumsum(n_runs)))
    depth_steps.number_runs(narrow.offsets, high, firsts, 2, 0, len(reads), runs)
    for find in (
        lambda matrix: depth_steps.add_up_company([matrix], 1, narrow, runs, n_runs),
        lambda matrix: repeats.count_votes([matrix], bins, 3, repeat, repeats.Voting(1, UNIT // 4, 2), 1),
    ):
        wanted = find(here)
        assert wanted.any(axis=1).all()
        assert_array_equal(find(there), wanted)


@pytest.mark.parametrize("one_in", [(1, 1, 1, 1), (1, 2, 3, 1)])
def test_kinds_and_what_is_kept(rng, one_in):
    reads = reads_of(rng)
    counts, here, there = both_ways(reads, 2)
    profile = profile_depth(here, reads)
    bins = Bins(here.starts, here.read_table, profile.offsets, profile.width)
    sound = rng.random(len(profile.n_kmers)) < 0.5
    level = rng.choice([1.0, 99.0], len(sound)).astype(np.float32)
    tests = linking.Tests(bins, 2, 5 if SIMULATED else 30, sound, level, 2, 6 if SIMULATED else 20)
    one, other = (linking._survey(matrix, tests, 2) for matrix in (here, there))
    assert one[0][[ORDINARY, DEEP, APART_KIND]].all() and (SIMULATED or one[0][REPEAT])
    for wanted, found in zip(one, other, strict=True):
        assert_array_equal(wanted, found)
    none = np.zeros(len(reads))
    rules = linking.Rules(
        tests, np.array(one_in), np.zeros((1, N_KINDS), np.int64), none.astype(np.float32), none, 0.0, 0.0, 0.0
    )  # fmt: skip
    entries, found = there.entries.keep(rules)
    whole = counts.entries.copy()
    kept = linking.keep_columns(whole, rules)
    assert_array_equal(entries.on_host(), whole[: kept.n_entries])
    for wanted, its in zip(kept, found, strict=True):
        assert_array_equal(its, wanted)


def candidates_of(reads, device):
    """Seeds of the whole job up to the candidates, counts of its k-mers, and what was told of the devices."""
    report = RunReport()
    start_report(report)
    work = in_memory(reads, make_params(device=device, k=K, min_overlap=20, threads=2), report)
    run_counting(work)
    assert isinstance(work.get(KEPT, 0).blocks.entries[0], DeviceColumns) == (device == "cuda")
    run_candidates(work)
    return work.get(GATED, 0).seeds, work.store.told(KEPT, 0), report


def test_the_job_finds_the_same_candidates_on_both_devices(rng):
    reads = reads_of(rng)
    (seeds, told, report), (held, held_told, its_report) = (candidates_of(reads, device) for device in ("cpu", "cuda"))
    assert len(seeds)
    for f in fields(seeds):
        assert_array_equal(getattr(seeds, f.name), getattr(held, f.name), f.name)
    assert told == held_told
    assert report.details == its_report.details and str(report.dropped) == str(its_report.dropped)


def test_reads_are_sent_once(rng):
    reads, resources = reads_of(rng), Resources(threads=2, device="cuda")
    for _ in range(2):
        with desk(resources.devices) as its_desk:
            columns_cuda.bring_reads([its_desk], reads, resources)
    assert [use.uploaded_bases for use in resources.devices._uses.values()] == [len(reads.codes)]


def test_what_does_not_fit_the_gpu_is_left_to_the_cpu(rng, monkeypatch):
    reads = reads_of(rng)
    seeds, told, _ = candidates_of(reads, "cpu")

    def full(*_):
        raise MemoryError

    monkeypatch.setattr(products_cuda, "find_on_gpus", full)
    held, held_told, _ = candidates_of(reads, "cuda")
    assert told == held_told
    assert_array_equal(held.query_pos, seeds.query_pos)
    monkeypatch.setattr(columns_cuda, "count_on_gpus", full)
    with pytest.raises(AssertionError):  # counted by the CPU
        candidates_of(reads, "cuda")


def test_small_sets_and_other_devices_stay_on_the_cpu(rng, monkeypatch):
    reads = reads_of(rng)
    cases = {
        device: in_memory(reads, make_params(device=device, threads=2), RunReport()) for device in ("cpu", "cuda", "auto")
    }
    assert [count_rounds_module.pays_on_gpu(work) for work in cases.values()] == [False, True, False]
    monkeypatch.setattr(count_rounds_module, "LEAST_BASES", reads.n_bases // 2)
    assert count_rounds_module.pays_on_gpu(cases["cuda"])
    monkeypatch.setattr(count_rounds_module, "LEAST_BASES", reads.n_bases // 2 + 1)
    assert not count_rounds_module.pays_on_gpu(cases["cuda"])
