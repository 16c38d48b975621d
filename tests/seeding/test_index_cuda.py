"""An index made on a GPU is the CPU's; on a GPU if there is one, else in Numba's simulator."""

from __future__ import annotations

import pytest
from numpy.testing import assert_array_equal
from strategies import make_reads, mutate, random_bases

from bellapy.compute.gpu.devices import known_gpus
from bellapy.errors import DeviceError, ParameterError
from bellapy.seeding.index import build_index

try:
    known_gpus()
except DeviceError as error:
    pytest.skip(f"no GPU: {error}", allow_module_level=True)

from bellapy.compute.gpu.desk import desk
from bellapy.compute.gpu.ops import SIMULATED
from bellapy.report.run_report import Devices
from bellapy.seeding.gpu import index as on_gpu
from bellapy.seeding.gpu.index import build_on_gpu, send_index

pytestmark = pytest.mark.usefixtures("quick_threads")


def some_reference(rng):
    """Sequences with repeats, unknown bases, one too short for any minimizer, and one base again and again."""
    n = 40 if SIMULATED else 30_000
    unit = random_bases(rng, n)
    some = [unit + "A" * n, random_bases(rng, n // 2) + "N" + mutate(rng, unit, 0.02)]
    return make_reads(some if SIMULATED else [*some, "ACGT", unit[: n // 2]])


def assert_same(lookup, expected):
    assert_array_equal(lookup.words, expected.words)
    assert_array_equal(lookup.starts, expected.starts)
    assert lookup.words.dtype == expected.words.dtype and lookup.starts.dtype == expected.starts.dtype
    assert lookup[2:] == expected[2:]


@pytest.mark.parametrize("k, window", [(5, 3), (28, 2)] if SIMULATED else [(15, 10), (19, 19), (28, 1), (5, 255)])
def test_it_is_the_cpus(rng, k, window):
    """Also where a hash takes more bits than a word has beside a number."""
    reference = some_reference(rng)
    expected = build_index(reference, k, window)
    with desk(Devices()) as here:
        index, there = build_on_gpu(here, reference, k, window, 2)
        assert_same(index.lookup, expected.lookup)
        for lookup in (there.lookup, send_index(here, expected, 2).lookup):
            assert_same(lookup._replace(words=here.fetch(lookup.words), starts=here.fetch(lookup.starts)), expected.lookup)
    assert not index.lookup.words.flags.writeable


def test_hashes_may_be_sorted_a_few_bits_at_a_time(rng, monkeypatch):
    monkeypatch.setattr(on_gpu, "WORD_BITS", 12 if SIMULATED else 24)
    reference = make_reads([random_bases(rng, 60 if SIMULATED else 20_000)])
    with desk(Devices()) as here:
        index, _ = build_on_gpu(here, reference, 6, 3, 1)
    assert_same(index.lookup, build_index(reference, 6, 3).lookup)


def test_sequences_without_a_minimizer(rng):
    reference = make_reads(["ACG", "N" * 30])
    with desk(Devices()) as here:
        index, _ = build_on_gpu(here, reference, 5, 3, 1)
        with pytest.raises(ParameterError, match="-k 3"):
            build_on_gpu(here, reference, 3, 3, 1)
    assert_same(index.lookup, build_index(reference, 5, 3).lookup)
