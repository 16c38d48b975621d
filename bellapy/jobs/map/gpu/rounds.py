"""Mapping with GPUs: in rounds of many batches, whose anchors and chains are found there; the CPU's records come out.

Some rounds are in work at a time: while a GPU finds the chains of one, threads of the CPU align and write the reads of
others.  Several GPUs take rounds in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import NamedTuple, TypeVar

import numpy as np

from bellapy.compute.gpu.pool import FULL, give_to_cpu, is_out_of_memory
from bellapy.compute.threads import map_in_order, map_threads
from bellapy.io.fastx import Records
from bellapy.jobs.map.bases import pack_both_ways
from bellapy.jobs.map.gpu.reference import NO_ROOM, Card, Cards
from bellapy.jobs.map.pieces import do_steps
from bellapy.jobs.map.pipeline import Mapped, Mapper, Reads
from bellapy.records.bases import ENCODE
from bellapy.seeding.anchors import Layout, layout_for
from bellapy.seeding.chain import Chains
from bellapy.seeding.gpu.anchors import anchors_on_gpu
from bellapy.seeding.gpu.chain import Chained, chains_on_gpu
from bellapy.seeding.gpu.minimizers import send_planes

Shown = TypeVar("Shown")

ROUND_BASES = 1 << 25
IN_WORK = 3
"""Rounds at a time, each at another step."""
CIRCLES = "reads on circles are mapped on the CPU"
LOST = "reads whose chains a join over longer gaps has lost are mapped on the CPU"


class Part(NamedTuple):
    """A batch of reads with its chains.  lonely : as in `Chained`."""

    records: Records
    reads: Reads
    chains: Chains
    anchors: np.ndarray
    lonely: np.ndarray


def map_on_gpus(
    mapper: Mapper, cards: Cards, stream: Iterable[Records], show: Callable[[list[Mapped]], Shown]
) -> Iterator[Shown]:  # fmt: skip
    """What `show` makes of all reads, in their order."""
    ready = [] if mapper.target.has_circles else cards.holding(mapper.index)
    if not ready:
        yield from _map_on_cpu(mapper, cards, stream, show, CIRCLES if mapper.target.has_circles else NO_ROOM)
        return

    def do(numbered: tuple[int, list[Records]]) -> list[Shown]:
        number, batches = numbered
        return _Round(mapper, cards, ready[number % len(ready)]).do(batches, show)

    for shown in map_in_order(do, enumerate(_rounds(stream)), IN_WORK, begun_ahead=1):
        yield from shown


def _map_on_cpu(
    mapper: Mapper, cards: Cards, stream: Iterable[Records], show: Callable[[list[Mapped]], Shown], reason: str
) -> Iterator[Shown]:  # fmt: skip
    """The same without a GPU, for a reason that is told."""

    def do(records: Records) -> Shown:
        give_to_cpu(cards.resources.devices, reason, reads=len(records.names))
        return show(mapper.map(records))

    yield from map_in_order(do, stream, cards.resources.threads)


def _rounds(stream: Iterable[Records]) -> Iterator[list[Records]]:
    """Batches in groups of about ROUND_BASES."""
    waiting: list[Records] = []
    n_bases = 0
    for records in stream:
        waiting.append(records)
        n_bases += sum(map(len, records.sequences))
        if n_bases >= ROUND_BASES:
            yield waiting
            waiting, n_bases = [], 0
    if waiting:
        yield waiting


class _Round:
    """Some batches that are mapped together, with a GPU."""

    def __init__(self, mapper: Mapper, cards: Cards, card: Card):
        self._mapper, self._card, self._devices = mapper, card, cards.resources.devices
        self._threads = cards.resources.threads

    def do(self, batches: list[Records], show: Callable[[list[Mapped]], Shown]) -> list[Shown]:
        """What `show` makes of each batch."""
        return map_threads(lambda part: show(self._map(part)), self._find(batches), self._threads)

    def _find(self, batches: list[Records]) -> list[Part | Records]:
        """The chains of batches; a batch that does not fit the GPU as it is."""
        layout = self._layout(batches)
        if sum(len(records.names) for records in batches) < layout.most_reads:
            try:
                return list(self._find_together(batches, layout))
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
        if len(batches) > 1:
            middle = len(batches) // 2
            return [*self._find(batches[:middle]), *self._find(batches[middle:])]
        give_to_cpu(self._devices, FULL, reads=len(batches[0].names))
        return list(batches)

    def _layout(self, batches: list[Records]) -> Layout:
        """Of the anchors of all batches together."""
        lengths = map(len, chain.from_iterable(records.sequences for records in batches))
        return layout_for(max(lengths, default=1), len(self._mapper.target.codes))

    def _find_together(self, batches: list[Records], layout: Layout) -> Iterator[Part]:
        """The chains of batches whose reads one layout holds."""
        mapper, index = self._mapper, self._mapper.index
        codes, packed = _packed(batches, self._threads)
        at, lengths = (np.concatenate(columns) for columns in zip(*((at, n) for _, at, n in packed), strict=True))
        with self._card.use() as desk:
            there, planes = self._card.index, send_planes(desk, codes, self._threads)
            assert there is not None  # these cards hold it
            found = anchors_on_gpu(desk, there, index.k, index.window, planes, at, lengths, layout)
            chained = chains_on_gpu(desk, found, layout, index.k, mapper.rule, mapper.costs, mapper.target.starts)
        del planes
        self._card.note(reads=len(at), uploaded_bases=len(codes))
        first = 0
        for records, (begin, its_at, its_lengths) in zip(batches, packed, strict=True):
            end = first + len(its_at)
            mine = slice(begin, begin + 2 * int(its_lengths.sum()))
            reads = Reads(codes[mine], its_at - begin, its_lengths, found.repeated[first:end].copy(), layout)
            yield Part(records, reads, *_of_reads(chained, first, end, layout))
            first = end

    def _map(self, part: Part | Records) -> list[Mapped]:
        """The records of a batch."""
        mapper = self._mapper
        if isinstance(part, Records):
            return mapper.map(part)
        records, reads = part.records, part.reads
        chains, anchors = mapper.join_far(part.chains, part.anchors, reads)
        if _number(chains) < _number(part.chains):
            give_to_cpu(self._devices, LOST, reads=len(records.names))
            return mapper.map(records)
        chains, anchors = mapper.try_harder(chains, anchors, part.lonely, reads)
        return [do_steps(mapper.map_chained(records, reads, chains, anchors), partial(mapper.solve, reads))]


def _number(chains: Chains) -> int:
    """Reads that have chains."""
    return int(np.count_nonzero(np.diff(chains.read, prepend=-1)))


def _packed(batches: list[Records], threads: int) -> tuple[np.ndarray, list[tuple[int, np.ndarray, np.ndarray]]]:
    """The codes of all batches, both ways; of each batch, where it begins there, where its reads do, and their lengths."""
    sizes = [2 * sum(map(len, records.sequences)) for records in batches]
    begins = [int(begin) for begin in np.cumsum([0, *sizes])]
    codes = np.empty(begins[-1], np.uint8)

    def pack(x: int) -> tuple[int, np.ndarray, np.ndarray]:
        _, at, lengths = pack_both_ways(batches[x].sequences, ENCODE, codes[begins[x] : begins[x + 1]])
        return begins[x], at + begins[x], lengths

    return codes, map_threads(pack, range(len(batches)), threads)


def _of_reads(chained: Chained, first: int, end: int, layout: Layout) -> tuple[Chains, np.ndarray, np.ndarray]:
    """The chains of the reads first .. end - 1, which are numbered from 0 then, their anchors, and the lonely ones."""
    chains, shift = chained.chains, layout.q_bits + layout.place_bits + 1
    rows = slice(*np.searchsorted(chains.read, [first, end]))
    some = Chains(*(column[rows] for column in chains))
    begin = int(some.first[0]) if len(some.first) else 0
    anchors = chained.anchors[begin : begin + int(some.n_anchors.sum())]
    own = slice(*np.searchsorted(chained.lonely >> np.uint64(shift), np.array([first, end], np.uint64)))
    less = np.uint64(first << shift)
    return some._replace(read=some.read - first, first=some.first - begin), anchors - less, chained.lonely[own] - less
