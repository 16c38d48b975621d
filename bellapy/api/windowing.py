"""Consensus of windows of sequences, as a function."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from bellapy.api.inputs import SEQUENCES, Text, no_more, run_params
from bellapy.compute.resources import Resources
from bellapy.errors import InputError
from bellapy.jobs.windows import Group, align_windows
from bellapy.params.correct import PoaScoring
from bellapy.params.fields import checked
from bellapy.report.run_report import RunReport


def consensus(
    windows: Iterable[Iterable[Text]], *, msa: bool = False, threads: int | None = None, device: str = "auto", **options: Any
) -> list[str] | list[list[str]]:  # fmt: skip
    """Consensus of windows of sequences by partial-order alignment: what `bellapy consensus` does.

    Parameters
    ----------
    windows : the sequences of each.  msa : give the sequences with gaps instead of the consensus.
    threads : None: all cores.  device : auto, cpu or cuda.
    options : match, mismatch, gap, as options of `bellapy consensus`.

    Returns
    -------
    The consensus of each window; with `msa` the rows of each, of equal length.

    Raises
    ------
    ParameterError : a score out of range.
    InputError : a window without sequences, or of too many bases, or letters that are none.
    DeviceError : no GPU can be used.  TypeError : an option of no such name.
    """
    no_more(options, PoaScoring._fields)
    scoring = PoaScoring(**checked(options, PoaScoring))
    report = RunReport("bellapy.consensus")
    resources = Resources.of(run_params(threads, device), report.devices)
    found = align_windows(_groups(windows), SEQUENCES, scoring, report, resources, with_alignment=msa)
    rows = [[row.decode() for row in rows] for _, rows in found]
    return rows if msa else [row for (row,) in rows]


def _groups(windows: Iterable[Iterable[Text]]) -> Iterator[Group]:
    for number, window in enumerate(windows, 1):
        texts = [text.encode(errors="replace") if isinstance(text, str) else text for text in window]
        if isinstance(window, (str, bytes)) or not texts:
            raise InputError(SEQUENCES, "a window needs sequences, as a list of them", number)
        if not all(isinstance(text, bytes) and (text.isalpha() or not text) for text in texts):
            raise InputError(SEQUENCES, "a sequence of the window is not all letters", number)
        yield Group(b"%d" % number, texts)
