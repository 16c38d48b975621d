"""Where extensions of flanks end."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np


class End(Enum):
    """Which end an extension has (linear/rule.py).

    BEST : the highest score, tilted or not; an unknown base matches nothing.
    LONGEST : where the extension ended, as SeqAn reports it; unknown bases match each other.
    """

    BEST = "best"
    LONGEST = "longest"

    @classmethod
    def of(cls, extension: str) -> End:
        """That of a parameter's value."""
        return cls.LONGEST if extension == "longest" else cls.BEST


@dataclass(frozen=True)
class Ends:
    """Where flanks end.

    table : (n, 3) int64: score, query bases, target bases.
    """

    table: np.ndarray

    @property
    def score(self) -> np.ndarray:
        return self.table[:, 0]

    @property
    def query(self) -> np.ndarray:
        return self.table[:, 1]

    @property
    def target(self) -> np.ndarray:
        return self.table[:, 2]

    @property
    def bases(self) -> np.ndarray:
        """(n, 2) int64, a copy: query and target bases."""
        return np.ascontiguousarray(self.table[:, 1:])
