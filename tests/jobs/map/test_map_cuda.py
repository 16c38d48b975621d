"""Mapping with a GPU gives the CPU's records; on a GPU if there is one, else in Numba's simulator.

The simulator runs no code for CPUs, so what is expected of alignments comes from another process.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import naive
import pytest
from strategies import make_reads, mutate, random_bases

from bellapy.compute.gpu.devices import known_gpus
from bellapy.compute.memory import Budget
from bellapy.compute.resources import Resources
from bellapy.engines.affine.batch_cpu import Effort
from bellapy.errors import DeviceError
from bellapy.io.fastx import Records
from bellapy.jobs.map.circles import unroll
from bellapy.jobs.map.output import format_paf
from bellapy.jobs.map.pipeline import Mapper
from bellapy.jobs.map.style import Style
from bellapy.params import MapParams
from bellapy.params.map import SelectRule

try:
    known_gpus()
except DeviceError as error:
    pytest.skip(f"no GPU: {error}", allow_module_level=True)

from bellapy.compute.gpu.ops import SIMULATED
from bellapy.engines.affine.gpu.lanes import try_lanes_on_gpu
from bellapy.jobs.map.gpu import rounds
from bellapy.jobs.map.gpu.rounds import BOUNDED, CIRCLES, MappingCards

pytestmark = pytest.mark.usefixtures("quick_threads")
K, WINDOW = (6, 3) if SIMULATED else (15, 10)
PARAMS = MapParams(k=K, window=WINDOW, select=SelectRule(min_score=20, min_chain=12 if SIMULATED else 40))


def some_batches(rng) -> tuple[dict[str, str], list[Records]]:
    """A reference with a repeat, and batches of reads: some reach over a large deletion, some fit nowhere."""
    n = 60 if SIMULATED else 40_000
    unit = random_bases(rng, n // 3)
    one = random_bases(rng, n) + unit
    reference = {"one": one, "two": unit + random_bases(rng, n // 3)}
    size, reads = n // 2, []
    for x in range(4 if SIMULATED else 60):
        start = int(rng.integers(0, len(one) - size))
        read = mutate(rng, one[start : start + size], 0.05)
        reads.append(naive.reverse_complement(read) if x % 2 else read)
    reads += [one[: size // 2] + one[-size // 2 :], unit, random_bases(rng, size), "ACGT"]
    rows = [(f"r{x}".encode(), b"", read.encode()) for x, read in enumerate(reads)]
    return reference, [Records(*map(list, zip(*some, strict=True)), None) for some in (rows[:4], rows[4:])]


def lines(mapper: Mapper, found) -> bytes:
    return b"".join(format_paf(mapped, mapper.index, Style())[0] for parts in found for mapped in parts)


ON_CPU = """
import pickle, sys
from strategies import make_reads
from bellapy.jobs.map.output import format_paf
from bellapy.jobs.map.pipeline import Mapper
from bellapy.jobs.map.style import Style
from bellapy.seeding.index import build_index
reference, batches, params, effort = pickle.load(sys.stdin.buffer)
mapper = Mapper(build_index(make_reads(list(reference.values())), params.k, params.window), params)
mapper.effort = effort
found = [format_paf(mapped, mapper.index, Style())[0] for records in batches for mapped in mapper.map(records)]
sys.stdout.buffer.write(b"".join(found))
"""


@pytest.mark.parametrize("align, several", [(True, False), (False, False), *([] if SIMULATED else [(True, True)])])
def test_the_records_are_the_cpus(rng, align, several, monkeypatch):
    """The index is made there, too.  Batches may be mapped in one round, or in several, which GPUs share.

    Pieces that do not fit a GPU are tried in halves.
    """
    reference, batches = some_batches(rng)
    cards = MappingCards(Resources(threads=2, device="cuda"))
    if several:
        cards._cards += MappingCards(cards.resources)._cards
    index = cards.build(make_reads(list(reference.values())), K, WINDOW)
    mapper = Mapper(index, PARAMS, align=align)
    mapper.effort = Effort(500, 4, zdrop=400, bonus=10)
    monkeypatch.setattr(rounds, "ROUND_BASES", 1 << 20 if align and not several else 1)
    monkeypatch.setattr(rounds, "PART_BASES", 1)
    monkeypatch.setattr(rounds, "FEW_PIECES", 1)
    tried = []

    def full_at_first(*given):
        tried.append(len(given[2].q_at))
        if len(tried) == 1:
            raise MemoryError("full")
        return try_lanes_on_gpu(*given)

    monkeypatch.setattr(rounds, "try_lanes_on_gpu", full_at_first)
    found = lines(mapper, cards.map(mapper, batches, list))
    if align:
        assert several or tried[0] == tried[1] + tried[2]
        given, path = pickle.dumps((reference, batches, PARAMS, mapper.effort)), os.pathsep.join(sys.path)
        plain = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")} | {"PYTHONPATH": path}
        expected = subprocess.run([sys.executable, "-c", ON_CPU], input=given, stdout=subprocess.PIPE, check=True, env=plain)
        assert found == expected.stdout
    else:
        assert found == lines(mapper, map(mapper.map, batches))
    assert found.count(b"\n") > 5
    used = [use for use in cards.resources.devices.used() if use.name != "CPU, what fits no GPU"]
    assert sum(use.reads for use in used) == sum(len(records.names) for records in batches)
    assert any(use.paths for use in used) == align


def test_what_does_not_fit_is_done_on_the_cpu(rng, monkeypatch, caplog):
    """A round without room is halved.  To the CPU go a batch without room, reads on circles, and all under a bound."""
    reference, batches = some_batches(rng)
    cards = MappingCards(Resources(device="cuda"))
    index = cards.build(make_reads(list(reference.values())), K, WINDOW)
    asked = []

    def full(desk, there, k, window, planes, at, *rest):
        asked.append(len(at))
        raise MemoryError("full")

    monkeypatch.setattr(rounds, "anchors_on_gpu", full)
    monkeypatch.setattr(rounds, "PART_BASES", 1)
    for circular in ((), ("r0",)):
        mapper = Mapper(index, PARAMS, target=unroll(index, circular), align=not SIMULATED)
        assert lines(mapper, cards.map(mapper, batches, list)) == lines(mapper, map(mapper.map, batches))
    cards.resources = Resources(device="cuda", budget=Budget(1 << 20, lambda: 0), devices=cards.resources.devices)
    assert lines(mapper, cards.map(Mapper(index, PARAMS, align=not SIMULATED), batches, list))
    sizes = [len(records.names) for records in batches]
    assert asked == [sum(sizes), *sizes]
    used = {use.name: use.reads for use in cards.resources.devices.used()}
    assert used["CPU, what fits no GPU"] == 3 * sum(sizes) and CIRCLES in caplog.text and BOUNDED in caplog.text
