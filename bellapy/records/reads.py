"""Reads as base codes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import InitVar, dataclass, field
from functools import cached_property

import numpy as np

from bellapy.records.bases import PAD, UNKNOWN, encode
from bellapy.records.table import freeze


@dataclass(frozen=True, repr=False)
class ReadSet:
    """Reads as base codes, end to end with PAD unknown bases before, between and after them.

    names : n_reads strings, unique.
    codes : (PAD + sum(length + PAD),) uint8, 0-3 for ACGT, UNKNOWN for anything else.
    starts : (n_reads,) int64, where each read begins in `codes`.
    lengths : (n_reads,) int32.
    error_rate : mean error probability per base by the quality values; None where there are none to use.
    other_letters : how often every letter occurs that is none of A, C, G, T, U and N; upper case stands for both.
    in_room : `codes` come from `room_both_ways`, and are not copied.
    """

    names: tuple[str, ...]
    codes: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    error_rate: float | None = None
    other_letters: dict[str, int] = field(default_factory=dict)
    in_room: InitVar[bool] = False

    def __post_init__(self, in_room: bool):
        freeze(self, {"codes": np.uint8, "starts": np.int64, "lengths": np.int32})
        if not len(self.names) == len(self.starts) == len(self.lengths):
            raise ValueError("ReadSet: names, starts and lengths differ in number")
        if not in_room:
            self._move()

    @classmethod
    def from_sequences(cls, sequences: Sequence[str | bytes], names: Sequence[str] | None = None) -> ReadSet:
        """Reads given as text, in order.

        names : unique; None: their indices.  Every letter but A, C, G, T and U, in either case, becomes UNKNOWN.
        """
        return cls.from_codes([encode(sequence) for sequence in sequences], names)

    @classmethod
    def from_codes(cls, sequences: Sequence[np.ndarray], names: Sequence[str] | None = None) -> ReadSet:
        """Reads given as codes, (n,) uint8 each; names : as in `from_sequences`."""
        lengths = np.fromiter(map(len, sequences), np.int32, len(sequences))
        ends = np.cumsum(lengths.astype(np.int64) + PAD)
        codes = room_both_ways(PAD + (int(ends[-1]) if len(ends) else 0))
        codes[:] = UNKNOWN
        starts = ends - lengths
        for start, sequence in zip(starts.tolist(), sequences, strict=True):
            codes[start : start + len(sequence)] = sequence
        given = tuple(map(str, range(len(sequences)))) if names is None else tuple(names)
        return cls(given, codes, starts, lengths, in_room=True)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"<ReadSet: {len(self):,} reads, {self.n_bases:,} bases>"

    @property
    def n_bases(self) -> int:
        """Bases of all reads, padding not counted."""
        return int(self.lengths.sum(dtype=np.int64))

    def take(self, rows: np.ndarray) -> ReadSet:
        """The reads of the given rows, (n,) integers, as a set of their own."""
        some = rows.tolist()
        spans = [self.codes[self.starts[i] : self.starts[i] + self.lengths[i]] for i in some]
        return ReadSet.from_codes(spans, [self.names[i] for i in some])

    @cached_property
    def both_ways(self) -> np.ndarray:
        """`codes`, then `codes` reversed: kernels read every flank in increasing order.

        The base at index g of `codes` stands again at index 2 * len(codes) - 1 - g.
        """
        return self._turned(lambda turn, n: turn((0, n)))

    def turn_by(self, share: Callable[[Callable[[tuple[int, int]], None], int], object]) -> np.ndarray:
        """Make `both_ways` now, in parts.

        share : calls its first argument with the begin and end of parts of range(n), of which n is its second one.
        """
        if "both_ways" not in self.__dict__:
            self.__dict__["both_ways"] = self._turned(share)
        return self.both_ways

    def forget_both_ways(self) -> None:
        """Give the memory of `both_ways` back until that is asked for again: `codes` get memory of their own."""
        if self.__dict__.pop("both_ways", None) is not None:
            self._move()

    def _move(self) -> None:
        """Put `codes` in memory of their own."""
        codes = room_both_ways(len(self.codes))
        codes[:] = self.codes
        codes.flags.writeable = False
        object.__setattr__(self, "codes", codes)

    def _turned(self, share: Callable[[Callable[[tuple[int, int]], None], int], object]) -> np.ndarray:
        n = len(self.codes)
        both = memory_of(self.codes)[:]  # an array of its own: that it is the same one tells that the bases are the same

        def turn(part: tuple[int, int]) -> None:
            begin, end = part
            both[2 * n - end : 2 * n - begin] = self.codes[begin:end][::-1]

        share(turn, n)
        both.flags.writeable = False
        return both


def memory_of(view: np.ndarray) -> np.ndarray:
    """The array that a view shows a part of."""
    if view.base is None:
        raise ValueError("not a view of another array")
    return view.base


def room_both_ways(n: int) -> np.ndarray:
    """Room for n `ReadSet.codes`, which need not be copied then, and behind it for `ReadSet.both_ways`: that takes no memory
    before it is written."""
    return np.empty(2 * n, np.uint8)[:n]
