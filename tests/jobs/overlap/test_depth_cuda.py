"""K-mers of pieces that a GPU finds are those of a plain search; on a GPU if there is one, else simulated."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from strategies import make_reads, random_bases

from bellapy.compute.gpu.devices import known_gpus
from bellapy.compute.resources import Resources
from bellapy.errors import DeviceError
from bellapy.jobs.overlap.depth import find_kmers, make_table
from bellapy.seeding.kmer_hashes import make_stretch

try:
    known_gpus()
except DeviceError as error:
    pytest.skip(f"no GPU: {error}", allow_module_level=True)

from bellapy.compute.gpu.ops import SIMULATED
from bellapy.jobs.overlap.gpu.depth import find_listed


@pytest.mark.parametrize(("k", "one_in"), [(13, 1), (16, 4), (21, 2)])
@pytest.mark.filterwarnings("ignore:.*overflow encountered:RuntimeWarning")
def test_listed_kmers(rng, k, one_in):
    length = 60 if SIMULATED else 5000
    text = random_bases(rng, 3 * length)
    sequences = [text[at : at + length] for at in rng.integers(0, 2 * length, 4)]
    sequences += [sequences[0][::-1].translate(str.maketrans("ACGT", "TGCA")), random_bases(rng, length), "N" * 40, "A" * 40]
    reads = make_reads(sequences)
    table, *_ = make_table(reads, np.arange(2), k, one_in)
    found = np.empty((2, len(reads.codes) + 1), np.uint64)
    n = find_kmers(reads.codes, 0, len(reads.codes), table, *found, make_stretch())
    wanted = found[:, :n][:, np.isin(found[0, :n], table.hashes)]
    assert wanted.size and len(wanted[0]) > len(table.hashes)
    assert_array_equal(find_listed(reads, table, Resources(device="cuda")), wanted)
