"""Affine alignment of given pairs, as a function."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellapy.api.inputs import no_more, run_params
from bellapy.api.tables import Columns, text_objects
from bellapy.compute.resources import Resources
from bellapy.io.outputs import open_output
from bellapy.jobs.pairwise import Aligned, align_pairs, file_pairs, format_aligned, given_pairs
from bellapy.params.map import PairParams, make_pair_params
from bellapy.report.run_report import RunReport
from bellapy.version import __version__


@dataclass(frozen=True, repr=False)
class PairTable(Columns):
    """The alignment of every pair, in the order given.

    parts : alignments of some pairs, one after another.  params : how they were aligned.
    report : what was done; see docs/report.md.
    """

    parts: tuple[Aligned, ...]
    params: PairParams
    report: RunReport

    def __len__(self) -> int:
        return sum(len(part.score) for part in self.parts)

    def __repr__(self) -> str:
        return f"<PairTable: {len(self):,} pairs>"

    def columns(self) -> dict[str, np.ndarray]:
        """score, query_start, query_end, target_start, target_end : (n,) int64; `cigar` where paths were asked for."""
        names = ("score", "query_start", "query_end", "target_start", "target_end")
        none = np.zeros(0, np.int64)
        found = {name: np.concatenate([none, *(getattr(part, name) for part in self.parts)]) for name in names}
        texts = text_objects([part.cigars for part in self.parts if part.cigars])
        return {**found, "cigar": texts} if self.params.cigar else found

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write what `bellapy pairwise` does.

        Raises
        ------
        OutputError : the file cannot be written.
        """
        with open_output(os.fspath(path)) as stream:
            for part in self.parts:
                stream.write(format_aligned(part, self.params.mode))


def pairwise(
    pairs: str | os.PathLike[str] | Iterable[Sequence[str | bytes]], *, mode: str = "global", cigar: bool = False,
    threads: int | None = None, device: str = "auto", **options: Any,
) -> PairTable:  # fmt: skip
    """Align given pairs with affine gap costs: what `bellapy pairwise` does.

    Parameters
    ----------
    pairs : query and target of each, or a file of two columns.
    mode : global; extend, from both beginnings to the best end; local.  cigar : make paths.
    threads : None: all cores.  device : auto, cpu or cuda.
    options : match, mismatch, gap_open, gap_extend, zdrop, band, as options of `bellapy pairwise`; costs of gaps are one
        number, or two for two pieces, such as (4, 24).

    Raises
    ------
    ParameterError : an option out of range, or options that contradict each other.  InputError : no pair of sequences.
    DeviceError : no GPU can be used.  TypeError : an option of no such name.
    """
    no_more(options, PairParams._fields)
    costs = {name: _text(options.get(name)) for name in ("gap_open", "gap_extend")}
    params = make_pair_params({**options, **costs, "mode": mode, "cigar": cigar})
    report = RunReport("bellapy.pairwise", __version__, params._asdict())
    if isinstance(pairs, (str, os.PathLike)):
        read = file_pairs((os.fspath(pairs), None), params.scoring)
    else:
        read = given_pairs(pairs, params.scoring)
    parts = tuple(align_pairs(read, params, report, Resources.of(run_params(threads, device), report.devices)))
    report.finish()
    return PairTable(parts, params, report)


def _text(costs: int | str | Sequence[int] | None) -> str | None:
    """Costs of gaps as options have them."""
    if costs is None or isinstance(costs, str):
        return costs
    return ",".join(map(str, [costs] if isinstance(costs, int) else costs))
