"""Reads that are taken: all, or those that are long enough and good enough."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from bellapy.errors import ParameterError
from bellapy.io.fastx_lines import Records
from bellapy.params.reads import POOR, SHORT, ReadParams

_ERRORS = 10.0 ** ((33 - np.arange(256)) / 10)  # share of errors that a letter of FASTQ stands for


class ReadFilter:
    """Lets reads through and counts the others.  dropped : how many, by reason.

    The quality of a read is the Phred value of the mean share of errors that its quality values tell.
    """

    def __init__(self, params: ReadParams):
        self.params = params
        self._most_errors = 10.0 ** (-params.min_quality / 10)
        self.dropped = {SHORT: 0, POOR: 0}

    def __call__(self, stream: Iterable[Records]) -> Iterator[Records]:
        """Some records at a time.

        Raises
        ------
        ParameterError : qualities are asked for, and there are none.
        """
        for records in stream:
            some, _ = self.keep(records, [0] * len(records.names))
            if some.names:
                yield some

    def keep(self, records: Records, lines: list[int]) -> tuple[Records, list[int]]:
        """Those of the records that are kept; lines : a number of each, which stays with it."""
        if not self.params.leave_out:
            return records, lines
        kept = [i for i in range(len(records.names)) if self._is_kept(records, i)]
        names, comments, sequences = ([column[i] for i in kept] for column in records[:3])
        qualities = None if records.qualities is None else [records.qualities[i] for i in kept]
        return Records(names, comments, sequences, qualities), [lines[i] for i in kept]

    def _is_kept(self, records: Records, i: int) -> bool:
        if len(records.sequences[i]) < self.params.min_length:
            self.dropped[SHORT] += 1
            return False
        if self.params.min_quality > 0:
            if records.qualities is None:
                raise ParameterError("least quality: reads of FASTA have no quality values; leave the option out")
            values = np.frombuffer(records.qualities[i], np.uint8)
            if len(values) and _ERRORS[values].mean() > self._most_errors:
                self.dropped[POOR] += 1
                return False
        return True
