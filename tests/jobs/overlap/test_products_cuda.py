"""Product and seeds on a GPU: the CPU's, in its order; on a GPU if there is one, else in Numba's simulator."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import cycle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from strategies import make_reads, mutate, random_bases

from bellapy.compute.columns import join_rows
from bellapy.compute.gpu.devices import known_gpus
from bellapy.errors import DeviceError
from bellapy.jobs.overlap.products import Between, Multiplied, make_key_layout, multiply, symbolic_product
from bellapy.jobs.overlap.seeds import choose_seeds
from bellapy.params import SeedParams
from bellapy.records import Seeds
from bellapy.seeding.kmer_matrix import build_kmer_matrix
from bellapy.seeding.kmers import count_kmers

try:
    known_gpus()
except DeviceError as error:
    pytest.skip(f"no GPU: {error}", allow_module_level=True)

from bellapy.compute.gpu.desk import desk
from bellapy.compute.gpu.ops import SIMULATED
from bellapy.jobs.overlap.gpu import products as products_cuda
from bellapy.jobs.overlap.gpu.products import find_on_gpus
from bellapy.report.run_report import Devices

pytestmark = pytest.mark.usefixtures("quick_threads")
ANY = (1 << 31) - 1


def some_reads(rng):
    """Reads of one sequence that has a repeat, on both strands; the first two share very many k-mers."""
    n, length = (3, 30) if SIMULATED else (60, 900)
    whole = random_bases(rng, 2 * length)
    reads = [mutate(rng, whole[at : at + length], 0.03) for at in rng.integers(0, length // 2, n)]
    turned = [read[::-1].translate(str.maketrans("ACGT", "TGCA")) for read in reads[:2]]
    unit = random_bases(rng, 7)
    return make_reads([unit * (length // 14), *reads, *turned, unit * (length // 10) + whole[:length]])


def pair_of(seeds: Seeds, row: int) -> tuple[int, int, int]:
    """The candidate of a row, in the order of candidates."""
    return int(seeds.query_id[row]), int(seeds.target_id[row]), -int(seeds.strand[row])


@pytest.mark.parametrize("case", ["whole", "groups", "between", "coarse", "shared"])
def test_the_seeds_are_those_of_the_cpu(rng, monkeypatch, case):
    monkeypatch.setattr(products_cuda, "LEAST_PART", 1)
    reads = some_reads(rng)
    k, params = (6, SeedParams(min_support=2, min_overlap=5)) if SIMULATED else (9, SeedParams(min_overlap=50))
    matrix = build_kmer_matrix(count_kmers(reads.codes, k, 2, ANY), reads, k, ANY)
    between = Between(3, 2) if case == "between" else None
    work = symbolic_product(matrix, 1, between)
    layout = None
    if case == "coarse":
        layout = make_key_layout(1 << 44, len(reads), int(np.diff(matrix.starts).max()))
        assert layout.diagonal_shift > 0
    if case == "groups":
        monkeypatch.setattr(products_cuda, "GROUP_PRODUCTS", int(work.sum() // 3))
        monkeypatch.setattr(products_cuda, "CHOSEN_BYTES", 1 << 10)
        monkeypatch.setattr(products_cuda, "MANY_ENTRIES", 0)
    if SIMULATED:  # whose kernels run one at a time
        monkeypatch.setattr(products_cuda, "on_each", lambda bring, desks: list(map(bring, desks)))
        monkeypatch.setattr(products_cuda, "on_free", lambda find, desks, items: list(map(find, cycle(desks), items)))
    chosen = [
        choose_seeds(products, matrix, reads, params) for products in multiply(matrix, work, between=between, layout=layout)
    ]
    wanted = join_rows([seeds for part in chosen for seeds in part[0]])
    with desk(Devices()) as its_desk:
        some = [its_desk, replace(its_desk), replace(its_desk)] if case == "shared" else [its_desk]
        if case == "groups" and SIMULATED:
            monkeypatch.setattr(its_desk.device, "workers", [its_desk.worker, replace(its_desk.worker)])
        found = find_on_gpus(some, matrix, reads.lengths, params, 3, Multiplied(between, layout))
    assert found.n_products == work.sum() > 0 and len(wanted) > 0
    assert (found.n_candidates, found.n_weak) == (sum(part[1] for part in chosen), sum(part[2] for part in chosen))
    got = join_rows(found.parts)
    for f in fields(Seeds):
        assert_array_equal(getattr(got, f.name), getattr(wanted, f.name), f.name)
    ends = [(pair_of(part, -1), pair_of(after, 0)) for part, after in zip(found.parts, found.parts[1:], strict=False)]
    assert len(ends) > 1 and all(one < other for one, other in ends), "whole candidates"


def test_what_hardly_fits_is_left_to_the_cpu():
    """Groups of a few products would be very many; but a small device is used for a small matrix."""
    large = 260_000_000, 1_550_000_000, 320_000_000
    assert products_cuda.products_for(8 << 30, *large) > 50_000_000
    with pytest.raises(MemoryError):
        products_cuda.products_for(5 << 30, *large)
    assert products_cuda.products_for(1 << 20, 1000, 9000, 5000) > 5000


def test_a_long_read_leaves_room_for_queries():
    """Groups of few of them would be very many."""
    bits = products_cuda._bits(make_key_layout(1 << 20, 600_000, 1_000_000))
    assert products_cuda.WORD_BITS - bits.target - 1 - bits.diagonal >= 20


def test_groups_without_seeds_are_left_out(monkeypatch):
    columns = np.zeros((products_cuda.N_COLUMNS, 5), np.int32)
    columns[0] = 0, 1, 1, 2, 2
    some = [columns[:, :0], columns, columns[:, :0]]
    assert [part.query_id.tolist() for part in products_cuda._cut(some, 9, 3)] == [[0, 1, 1, 2, 2]], "few are one part"
    monkeypatch.setattr(products_cuda, "LEAST_PART", 1)
    assert [part.query_id.tolist() for part in products_cuda._cut(some, 9, 3)] == [[0], [1, 1], [2, 2]]
