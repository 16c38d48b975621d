"""What is given to a GPU, by which rule it is done, and what is found."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bellapy.engines.tags.changes import Changes
from bellapy.engines.tags.columns import Choice, Look, Telling
from bellapy.engines.tags.graph import Terms
from bellapy.engines.tags.judge import Odds
from bellapy.engines.tags.symbols import Sources

ROW_BYTES, TEMPLATE_BYTES = 20, 384  # of memory for each column of a pile's rows, and for each column of templates


class Given(NamedTuple):
    """The piles of some templates.

    codes : uint8, of the templates end to end.  offsets : (n + 1,) int64.
    members : (n,) int64, reads beside each template.  sources : of all piles end to end, see `make_pile`.
    runs : uint8, short runs.
    """

    codes: np.ndarray
    offsets: np.ndarray
    members: np.ndarray
    sources: Sources
    runs: np.ndarray

    def take(self, begin: int, end: int) -> Given:
        """Those of templates begin .. end - 1."""
        first, last = int(self.members[:begin].sum()), int(self.members[:end].sum())
        return Given(
            self.codes[self.offsets[begin] : self.offsets[end]], self.offsets[begin : end + 1] - self.offsets[begin],
            self.members[begin:end], self.sources.part(slice(first, last)), self.runs,
        )  # fmt: skip

    def only(self, templates: np.ndarray, kept: np.ndarray) -> Given:
        """Some of the templates, (n,) int64, with some of their reads; kept : (n_rows,) bool, of all rows."""
        firsts = np.cumsum(self.members + 1) - self.members - 1
        kept = np.delete(kept, firsts)
        owners = np.repeat(np.arange(len(self.members)), self.members)
        members = np.bincount(owners[kept], minlength=len(self.members))[templates]
        codes = [self.codes[self.offsets[i] : self.offsets[i + 1]] for i in templates.tolist()]
        offsets = np.concatenate(([0], np.cumsum([len(one) for one in codes], dtype=np.int64)))
        sources = self.sources.part(kept & np.isin(owners, templates))
        return Given(np.concatenate(codes), offsets, members, sources, self.runs)

    @property
    def bytes(self) -> int:
        """Memory of the device that they take, about."""
        columns = int(self.sources.columns.sum())
        return (columns + len(self.codes)) * ROW_BYTES + len(self.codes) * TEMPLATE_BYTES


class Rule(NamedTuple):
    """How consensus is found: as `find_consensus` and `judge` take it.

    rounds : of consensus.  judged : times.  telling : which columns tell copies apart.
    choose : tells which rows stay after the first round, and which piles are then done anew; None: all stay.
    """

    terms: Terms
    odds: Odds
    rounds: int
    judged: int
    least: int
    telling: Telling
    choose: Callable[[Look], Choice] | None


class Found(NamedTuple):
    """What was found of a template.

    codes, raw : of the consensus, as `judge` gives it.  begins : (n_raw + 1,) int64, places of the raw read's bases on it.
    changes : of the raw read.  n_symbols : of the reads beside it, in the end.
    own : (n_reads,) bool, those of the template's copy.  n_foreign, n_deep : reads left out by phasing, and by depth.
    """

    codes: np.ndarray
    raw: np.ndarray
    begins: np.ndarray
    changes: Changes
    n_symbols: int
    own: np.ndarray
    n_foreign: int
    n_deep: int
