"""Counting on a GPU: the CPU's entries and spectrum; on a GPU if there is one, else in Numba's simulator."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from strategies import make_reads, mutate, random_bases

from bellapy.compute.gpu.devices import known_gpus
from bellapy.compute.gpu.planes import BASES, pack_planes
from bellapy.errors import DeviceError
from bellapy.records.bases import PAD
from bellapy.seeding.kmers import count_kmers

try:
    known_gpus()
except DeviceError as error:
    pytest.skip(f"no GPU: {error}", allow_module_level=True)

from bellapy.compute.gpu.desk import Desk, desk
from bellapy.compute.gpu.ops import SIMULATED
from bellapy.report.run_report import Devices
from bellapy.seeding.gpu import kmers as kmers_cuda
from bellapy.seeding.gpu.kmers import can_count, count_on_gpus, lists_for, passes_for

pytestmark = pytest.mark.usefixtures("quick_threads")
ANY, PLENTY = (1 << 31) - 1, 1 << 36


def some_codes(rng) -> np.ndarray:
    """Reads of one sequence, on both strands, with an unknown base and a k-mer that occurs very often."""
    n, length = (3, 40) if SIMULATED else (300, 1000)
    whole = random_bases(rng, 2 * length)
    reads = [mutate(rng, whole[at : at + length], 0.05) for at in rng.integers(0, length, n)]
    turned = reads[0][::-1].translate(str.maketrans("ACGT", "TGCA"))
    codes = make_reads([*reads, turned, "A" * (length // 2) + "N" + whole[: length // 2]]).codes
    return codes[PAD - 5 :] if SIMULATED else codes


@pytest.mark.parametrize(
    ("k", "lower", "keep_one_in", "free"),
    [(5, 2, 1, PLENTY), (4, 3, 4, PLENTY), (7, 2, 1, 40_000)] if SIMULATED
    else [
        (5, 2, 1, PLENTY), (17, 2, 1, PLENTY), (21, 3, 4, PLENTY), (13, 2, 1, 4_000_000), (22, 2, 1, 5_000_000),
        (1, 2, 1, PLENTY),
    ],
)  # fmt: skip
def test_the_entries_are_those_of_the_cpu(rng, k, lower, keep_one_in, free):
    codes = some_codes(rng)
    wanted = count_kmers(codes, k, lower, ANY, keep_one_in=keep_one_in)
    planes = np.empty((-(-len(codes) // BASES), 3), np.uint32)
    pack_planes(codes, planes)
    assert (passes_for(2 * k, len(codes), free) > 0) == (lists_for(len(codes), free) > 0) == (free < PLENTY)
    with desk(Devices()) as its_desk:
        entries, spectrum = count_on_gpus([its_desk], [its_desk.send(planes)], len(codes), k, lower, free, keep_one_in)
        assert_array_equal(its_desk.fetch(entries), wanted.entries)
    assert entries.dtype == wanted.entries.dtype and len(wanted.entries)
    assert_array_equal(spectrum, wanted.spectrum)


@pytest.mark.parametrize("keep_one_in", [1, 2])
def test_places_are_marked_for_some_passes_at_a_time(rng, monkeypatch, keep_one_in):
    codes, marked = some_codes(rng), []
    monkeypatch.setattr(kmers_cuda, "MARKED_PASSES", 3)
    monkeypatch.setattr(kmers_cuda, "passes_for", lambda hash_bits, n_listed, free: 3)
    wanted = count_kmers(codes, 9, 2, ANY, keep_one_in=keep_one_in)
    planes = np.empty((-(-len(codes) // BASES), 3), np.uint32)
    pack_planes(codes, planes)
    with desk(Devices()) as its_desk:
        launch = its_desk.launch
        monkeypatch.setattr(
            its_desk, "launch", lambda kernel, *rest: (marked.append(kernel.__name__), launch(kernel, *rest))
        )
        entries, spectrum = count_on_gpus([its_desk], [its_desk.send(planes)], len(codes), 9, 2, PLENTY, keep_one_in)
        assert_array_equal(its_desk.fetch(entries), wanted.entries)
    assert_array_equal(spectrum, wanted.spectrum)
    n_passes = marked.count("write_words")
    assert n_passes > 3 and marked.count("mark_passes") == -(-n_passes // 3)


@pytest.mark.parametrize("n", [2, 5])
def test_devices_share_the_passes(rng, monkeypatch, n):
    """Also where some of them get none."""
    codes, free = some_codes(rng), 30_000 if SIMULATED else 8_000_000
    wanted = count_kmers(codes, 7, 2, ANY)
    planes = np.empty((-(-len(codes) // BASES), 3), np.uint32)
    pack_planes(codes, planes)
    if SIMULATED:  # whose kernels run one at a time
        monkeypatch.setattr(kmers_cuda, "on_each", lambda count, *items: list(map(count, *items)))
    with desk(Devices()) as its_desk:
        some = [its_desk, *(Desk(replace(its_desk.worker, device=replace(its_desk.device))) for _ in range(n - 1))]
        entries, spectrum = count_on_gpus(some, [its_desk.send(planes)] * n, len(codes), 7, 2, free)
        assert_array_equal(its_desk.fetch(entries), wanted.entries)
    assert_array_equal(spectrum, wanted.spectrum)


def test_what_a_word_cannot_hold_is_left_to_the_cpu():
    assert can_count(21, 1 << 33, 2) and can_count(27, 1 << 10, 2)
    assert not can_count(31, 1 << 10, 2) and not can_count(21, 1 << 10, 100)
