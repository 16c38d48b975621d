"""The GPUs that map, each with the reference and its index."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from bellapy.compute.gpu.desk import Desk, FreeDesks, desks_of_its_own
from bellapy.compute.gpu.ops import SIMULATED
from bellapy.compute.gpu.pool import give_to_cpu, is_out_of_memory
from bellapy.compute.resources import Resources
from bellapy.records import ReadSet
from bellapy.seeding.gpu.index import OnDevice, build_on_gpu, send_index
from bellapy.seeding.index import Index, build_index

DESKS = 1 if SIMULATED else 2
"""Of each GPU, so that one copies or waits for the CPU while another has kernels that run."""
NO_ROOM = "not enough GPU memory is free for the index; the CPU does the work"


class Card:
    """A GPU, for as many threads at a time as it has desks.  index : what it holds of the index in use."""

    def __init__(self, desks: list[Desk]):
        self._device, self._free = desks[0].device, FreeDesks(desks)
        self.index: OnDevice | None = None

    @contextmanager
    def use(self, seconds: str = "seeding_s") -> Iterator[Desk]:
        """A desk that is free; the time is noted under a name of `DeviceUse`.

        What others shall use has to be done before the desk is left: each has a stream of its own.
        """
        with self._free.take() as desk:
            began = time.perf_counter()
            yield desk
            self.note(**{seconds: time.perf_counter() - began})

    def note(self, **work: float) -> None:
        """Note what was done, by names of `DeviceUse`."""
        self._device.note(**work)


class Cards:
    """All GPUs.  resources : their threads pack what is sent, and their `devices` hear what was done."""

    def __init__(self, resources: Resources):
        self.resources = resources
        self._cards = [Card(desks) for desks in desks_of_its_own(resources.devices, DESKS)]
        self._index: Index | None = None

    def build(self, reference: ReadSet, k: int, window: int) -> Index:
        """As `build_index`, on the first GPU, which keeps it; on the CPU where there is no room."""
        self._let_go()
        try:
            with self._cards[0].use() as desk:
                self._index, self._cards[0].index = build_on_gpu(desk, reference, k, window, self.resources.threads)
            return self._index
        except Exception as error:
            if not is_out_of_memory(error):
                raise
        self.leave(NO_ROOM)
        return build_index(reference, k, window, self.resources.threads)

    def holding(self, index: Index) -> list[Card]:
        """The GPUs that have room for an index, which is there from now on."""
        if self._index is not index:
            self._let_go()
            self._index = index
        for card in self._cards:
            try:
                if card.index is None:
                    with card.use() as desk:
                        card.index = send_index(desk, index, self.resources.threads)
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
        return [card for card in self._cards if card.index is not None]

    def leave(self, reason: str, **work: int) -> None:
        """Note what the CPU does instead, by names of `DeviceUse`; the reason is told once."""
        give_to_cpu(self.resources.devices, reason, **work)

    def _let_go(self) -> None:
        self._index = None
        for card in self._cards:
            card.index = None
