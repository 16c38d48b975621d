"""Many windows at a time, on the device that is wanted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.engines.poa.windows import GAP_LETTER, Window

REGISTERS = 4, 10, 16
"""Of a lane of a GPU, for a row; there is a kernel for each."""
LEFT = "windows that fit no kernel of a GPU are aligned on the CPU"
NOT_SOLVED = -1


class Groups(NamedTuple):
    """Sequences of windows.

    codes : (n_bases,) uint8, all sequences end to end.  offsets : (n_sequences + 1,) int64, of the sequences.
    firsts : (n_windows + 1,) int64, the first sequence of each window.
    """

    codes: np.ndarray
    offsets: np.ndarray
    firsts: np.ndarray

    def __len__(self) -> int:
        return len(self.firsts) - 1

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.offsets)

    def take(self, begin: int, end: int) -> Groups:
        """Consecutive windows."""
        first, last = self.firsts[begin], self.firsts[end]
        base = self.offsets[first]
        codes, offsets = self.codes[base : self.offsets[last]], self.offsets[first : last + 1] - base
        return Groups(codes, offsets, self.firsts[begin : end + 1] - first)


class Layout(NamedTuple):
    """Columns of windows.

    consensus : (n_bases,) int32, of the bases of the consensus, which stand as in `Solved.consensus`.
    bases : (n_bases,) int32, of all bases.  sizes : (n_windows,) int64, how many columns there are.
    """

    consensus: np.ndarray
    bases: np.ndarray
    sizes: np.ndarray


class Solved(NamedTuple):
    """What a GPU gives.

    consensus : uint8, that of window w is consensus[starts[w] : starts[w] + sizes[w]]; NOT_SOLVED is the size of none.
    scores : (n_sequences,) int64.  layout : None if no alignment is wanted.
    """

    consensus: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray
    scores: np.ndarray
    layout: Layout | None

    @classmethod
    def empty(cls, groups: Groups, with_alignment: bool) -> Solved:
        """Nothing yet."""
        n, bases = len(groups), len(groups.codes)
        layout = Layout(np.empty(bases, np.int32), np.empty(bases, np.int32), np.zeros(n, np.int64))
        return cls(
            np.empty(bases, np.uint8), np.zeros(n, np.int64), np.full(n, NOT_SOLVED, np.int64),
            np.zeros(len(groups.lengths), np.int64), layout if with_alignment else None,
        )  # fmt: skip

    def window(self, groups: Groups, w: int) -> Window:
        """One window."""
        first, end = groups.firsts[w], groups.firsts[w + 1]
        its = slice(self.starts[w], self.starts[w] + self.sizes[w])
        if self.layout is None:
            return Window(self.consensus[its], self.scores[first:end], None, None)
        bases = slice(groups.offsets[first], groups.offsets[end])
        rows = np.full((end - first, self.layout.sizes[w]), GAP_LETTER, np.uint8)
        sequence = np.repeat(np.arange(end - first), groups.lengths[first:end])
        rows[sequence, self.layout.bases[bases]] = groups.codes[bases]
        return Window(self.consensus[its], self.scores[first:end], rows, self.layout.consensus[its].astype(np.int64))
