"""Mapping with GPUs: in rounds of many batches; the CPU's records come out.

A GPU finds the chains of all reads of a round.  Then all batches of the round go on side by side, each by the CPU's steps:
when these ask for pieces to be aligned, the GPU aligns those of all batches together.  Some rounds are in work at a time, so
that the GPU has work while threads of the CPU do theirs.  Several GPUs take rounds in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import numpy as np

from bellapy.compute.gpu.ops import SIMULATED
from bellapy.compute.gpu.pool import FULL, is_out_of_memory, quick_turns
from bellapy.compute.threads import made_ahead, map_in_order, map_threads
from bellapy.engines.affine.batch_cpu import NEVER, Tried
from bellapy.engines.affine.gpu.lanes import parts_of, try_lanes_on_gpu
from bellapy.engines.affine.pieces import Pieces, Solved
from bellapy.io.fastx import Records
from bellapy.jobs.map.bases import pack_both_ways
from bellapy.jobs.map.batches import BATCH_BASES, batches, grouped
from bellapy.jobs.map.gpu.reference import NO_ROOM, Card, Cards
from bellapy.jobs.map.pipeline import Mapped, Mapper, Reads
from bellapy.records.bases import ENCODE
from bellapy.seeding.anchors import Layout, layout_for
from bellapy.seeding.chain import Chains
from bellapy.seeding.gpu.anchors import anchors_on_gpu
from bellapy.seeding.gpu.chain import Chained, chains_on_gpu
from bellapy.seeding.gpu.minimizers import planes_of

Shown = TypeVar("Shown")
Item = TypeVar("Item")
Made = TypeVar("Made")

ROUND_BASES, PART_BASES = 1 << 25, 1 << 23
"""Of what is on a GPU at a time, and of what a thread of the CPU does."""
TURN = 1e-4
"""Seconds until a thread asks another one for the GIL: one that talks to a GPU needs it again and again."""
BASE_BYTES = 16
"""Of a round's reads: letters, codes both ways, anchors, paths and text."""
IN_WORK, SHARED_BY = 8, 2
"""Rounds at a time, each at another step, and how many of them share the threads while others are on GPUs."""
FEW_PIECES = 1 if SIMULATED else 128
"""Of a batch: fewer are aligned on the CPU before a GPU has begun."""
BOUNDED = "--max-memory leaves no room for the reads that a GPU needs at a time; the CPU does the work"
CIRCLES = "reads on circles are mapped on the CPU"


class Part(NamedTuple):
    """A batch of reads with its chains.

    lonely : as in `Chained`.  planes : of the codes of all batches that were sent together.  begin : of its own ones there.
    """

    records: Records
    reads: Reads
    chains: Chains
    anchors: np.ndarray
    lonely: np.ndarray
    planes: Any
    begin: int


class _Way:
    """A batch on its way through the steps of mapping.

    asked : pieces that wait for their solutions; None: it is mapped.  mapped : its records then.
    """

    def __init__(self, mapper: Mapper, part: Part, chains: Chains, anchors: np.ndarray):
        self.part, self._mapper = part, mapper
        self._steps = mapper.map_chained(part.records, part.reads, chains, anchors)
        self.asked: Pieces | None = None
        self.mapped: list[Mapped] = []
        self._step(None)
        self._do_few()

    def go_on(self, tried: Tried | None) -> None:
        """With what narrow bands have given, or without, until many pieces are asked for again."""
        if self.asked is not None:
            self._step(self._mapper.solve(self.part.reads, self.asked, tried))
        self._do_few()

    def _do_few(self) -> None:
        """Align few pieces here, rather than wait for other batches to ask."""
        while self.asked is not None and len(self.asked.q_at) < FEW_PIECES:
            self._step(self._mapper.solve(self.part.reads, self.asked))

    def _step(self, solved: Solved | None) -> None:
        try:
            self.asked = self._steps.send(solved)  # type: ignore[arg-type]  # None begins
        except StopIteration as end:
            self.asked, self.mapped = None, [end.value]


class MappingCards(Cards):
    """GPUs that map reads."""

    def map(
        self, mapper: Mapper, stream: Iterable[Records], show: Callable[[list[Mapped]], Shown]
    ) -> Iterator[Shown]:  # fmt: skip
        """What `show` makes of all reads, in their order."""
        ready = [] if mapper.target.has_circles else self.holding(mapper.index)
        n = min(IN_WORK, self.resources.threads) + max(0, len(ready) - 1)
        most = self.resources.budget.items("rounds of reads", BASE_BYTES * (2 * n + 2), least=0, most=ROUND_BASES)
        if not ready or most < min(BATCH_BASES, ROUND_BASES):
            reason = CIRCLES if mapper.target.has_circles else NO_ROOM if not ready else BOUNDED
            yield from self._map_on_cpu(mapper, stream, show, reason)
            return

        def do(numbered: tuple[int, list[Records]]) -> list[Shown]:
            number, some = numbered
            return _Round(mapper, self, ready[number % len(ready)]).do(some, show)

        with quick_turns(TURN):
            for shown in map_in_order(do, enumerate(made_ahead(_rounds(stream, most))), n, begun_ahead=1):
                yield from shown

    def _map_on_cpu(
        self, mapper: Mapper, stream: Iterable[Records], show: Callable[[list[Mapped]], Shown], reason: str
    ) -> Iterator[Shown]:  # fmt: skip
        """The same without a GPU, for a reason that is told."""

        def do(records: Records) -> Shown:
            self.leave(reason, reads=len(records.names))
            return show(mapper.map(records))

        yield from map_in_order(do, stream, self.resources.threads)


def _rounds(stream: Iterable[Records], most: int) -> Iterator[list[Records]]:
    """Larger batches, in groups of about so many bases."""
    return grouped(batches(stream, most, min(most, PART_BASES)), lambda: most)


class _Round:
    """Some batches that are mapped together, with a GPU."""

    def __init__(self, mapper: Mapper, cards: Cards, card: Card):
        self._mapper, self._cards, self._card = mapper, cards, card
        self._threads = -(-cards.resources.threads // SHARED_BY)

    def do(self, parts: list[Records], show: Callable[[list[Mapped]], Shown]) -> list[Shown]:
        """What `show` makes of each batch."""
        begun = map_threads(self._begin, self._find(parts), self._threads)
        waiting = [way for way in begun if isinstance(way, _Way) and way.asked is not None]
        while waiting:
            map_threads(lambda each: each[0].go_on(each[1]), self._tried(waiting), self._threads)
            waiting = [way for way in waiting if way.asked is not None]
        mapped = [way.mapped if isinstance(way, _Way) else way for way in begun]
        return map_threads(show, mapped, self._threads)

    def _begin(self, part: Part | Records) -> _Way | list[Mapped]:
        """The steps of a batch up to its first pieces; its records, if it has to be mapped on the CPU."""
        mapper = self._mapper
        if isinstance(part, Records):
            return mapper.map(part)
        chains, anchors = mapper.join_far(part.chains, part.anchors, part.reads)
        return _Way(mapper, part, *mapper.try_harder(chains, anchors, part.lonely, part.reads))

    def _tried(self, waiting: list[_Way]) -> list[tuple[_Way, Tried | None]]:
        """What the GPU has found of the pieces that batches wait for; None: the CPU does all of them."""
        if self._mapper.effort.floor == NEVER:  # every result has to be proved
            return [(way, None) for way in waiting]
        found: list[tuple[_Way, Tried | None]] = []
        for planes in {id(way.part.planes): way.part.planes for way in waiting}.values():
            together = [way for way in waiting if way.part.planes is planes]
            found += _in_halves(together, self._tried_together, self._not_tried)
        return found

    def _tried_together(self, some: list[_Way]) -> list[tuple[_Way, Tried | None]]:
        """The same, of batches that were sent together."""
        pieces = _joined(some)
        edges = np.cumsum([0, *(len(way.asked.q_at) for way in some if way.asked)]).tolist()
        return list(zip(some, parts_of(self._aligned(some[0].part.planes, pieces), pieces, edges), strict=True))

    def _not_tried(self, way: _Way) -> tuple[_Way, Tried | None]:
        """A batch whose pieces do not fit the GPU."""
        self._cards.leave(FULL, extensions=len(way.asked.q_at) if way.asked else 0)
        return way, None

    def _aligned(self, planes: Any, pieces: Pieces) -> Tried:
        """What narrow bands give."""
        mapper, there = self._mapper, self._card.index
        assert there is not None  # these cards hold it
        use = partial(self._card.use, "kernel_s")
        tried = try_lanes_on_gpu(use, (planes, there.planes), pieces, mapper.scoring, mapper.effort)
        done = int((tried.needed == 0).sum())
        self._card.note(extensions=done, paths=done, cells=tried.solved.cells)
        return tried

    def _find(self, parts: list[Records]) -> list[Part | Records]:
        """The chains of batches; a batch that does not fit the GPU as it is."""
        return _in_halves(parts, lambda some: list(self._find_together(some)), self._not_found)

    def _not_found(self, records: Records) -> Records:
        """A batch that does not fit the GPU."""
        self._cards.leave(FULL, reads=len(records.names))
        return records

    def _layout(self, parts: list[Records]) -> Layout:
        """Of the anchors of all batches together."""
        lengths = map(len, chain.from_iterable(records.sequences for records in parts))
        return layout_for(max(lengths, default=1), len(self._mapper.target.codes))

    def _find_together(self, parts: list[Records]) -> Iterator[Part]:
        """The chains of batches; MemoryError where no layout holds all their reads."""
        mapper, index, layout = self._mapper, self._mapper.index, self._layout(parts)
        if sum(len(records.names) for records in parts) >= layout.most_reads:
            raise MemoryError("too many reads at a time")
        codes, packed = _packed(parts, self._threads)
        at, lengths = (np.concatenate(columns) for columns in zip(*((at, n) for _, at, n in packed), strict=True))
        its_planes = planes_of(codes, self._threads)
        with self._card.use() as desk:
            there, planes = self._card.index, desk.send(its_planes)
            assert there is not None  # these cards hold it
            found = anchors_on_gpu(desk, there, index.k, index.window, planes, at, lengths, layout)
            chained = chains_on_gpu(desk, found, layout, index.k, mapper.rule, mapper.costs, mapper.target.starts)
        self._card.note(reads=len(at), uploaded_bases=len(codes))
        first = 0
        for records, (begin, its_at, its_lengths) in zip(parts, packed, strict=True):
            end = first + len(its_at)
            mine = slice(begin, begin + 2 * int(its_lengths.sum()))
            reads = Reads(codes[mine], its_at - begin, its_lengths, found.repeated[first:end].copy(), layout)
            yield Part(records, reads, *_of_reads(chained, first, end, layout), planes, begin)
            first = end


def _in_halves(items: list[Item], do: Callable[[list[Item]], list[Made]], alone: Callable[[Item], Made]) -> list[Made]:
    """What `do` makes of some items; of each half where the GPU has no room for all, and `alone` of one without room."""
    try:
        return do(items)
    except Exception as error:
        if not is_out_of_memory(error):
            raise
    if len(items) == 1:
        return [alone(items[0])]
    middle = len(items) // 2
    return [*_in_halves(items[:middle], do, alone), *_in_halves(items[middle:], do, alone)]


def _joined(some: list[_Way]) -> Pieces:
    """The pieces that batches wait for, with places in the codes of all."""
    asked = [way.asked._replace(q_at=way.asked.q_at + way.part.begin) for way in some if way.asked is not None]
    return Pieces(*map(np.concatenate, zip(*asked, strict=True)))


def _packed(parts: list[Records], threads: int) -> tuple[np.ndarray, list[tuple[int, np.ndarray, np.ndarray]]]:
    """The codes of all batches, both ways; of each batch, where it begins there, where its reads do, and their lengths."""
    sizes = [2 * sum(map(len, records.sequences)) for records in parts]
    begins = [int(begin) for begin in np.cumsum([0, *sizes])]
    codes = np.empty(begins[-1], np.uint8)

    def pack(x: int) -> tuple[int, np.ndarray, np.ndarray]:
        _, at, lengths = pack_both_ways(parts[x].sequences, ENCODE, codes[begins[x] : begins[x + 1]])
        return begins[x], at + begins[x], lengths

    return codes, map_threads(pack, range(len(parts)), threads)


def _of_reads(chained: Chained, first: int, end: int, layout: Layout) -> tuple[Chains, np.ndarray, np.ndarray]:
    """The chains of the reads first .. end - 1, which are numbered from 0 then, their anchors, and the lonely ones."""
    chains, shift = chained.chains, layout.q_bits + layout.place_bits + 1
    rows = slice(*np.searchsorted(chains.read, [first, end]))
    some = Chains(*(column[rows] for column in chains))
    begin = int(some.first[0]) if len(some.first) else 0
    anchors = chained.anchors[begin : begin + int(some.n_anchors.sum())]
    less = np.uint64(first << shift)
    own = slice(*np.searchsorted(chained.lonely, np.array([less, end << shift], np.uint64)))
    return some._replace(read=some.read - first, first=some.first - begin), anchors - less, chained.lonely[own] - less
