"""Reads that are mapped: all, or those that are long enough and good enough."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from bellapy.errors import ParameterError
from bellapy.io.fastx import Records

SHORT, POOR = "reads too short", "reads of low quality"
_ERRORS = 10.0 ** ((33 - np.arange(256)) / 10)  # share of errors that a letter of FASTQ stands for


class ReadFilter:
    """Lets reads through and counts the others.

    min_length : bases.  min_quality : Phred value of the mean share of errors that the quality values of a read tell.
    dropped : how many, by reason.
    """

    def __init__(self, min_length: int = 0, min_quality: float = 0.0):
        self._min_length, self._most_errors = min_length, 10.0 ** (-min_quality / 10)
        self._judges = min_quality > 0
        self.dropped = {SHORT: 0, POOR: 0}

    def __call__(self, stream: Iterable[Records]) -> Iterator[Records]:
        """Some records at a time.

        Raises
        ------
        ParameterError : qualities are asked for, and there are none.
        """
        for records in stream:
            if not (self._min_length or self._judges):
                yield records
                continue
            kept = [i for i in range(len(records.names)) if self._is_kept(records, i)]
            columns = ([column[i] for i in kept] if column is not None else None for column in records)
            if kept:
                yield Records(*columns)  # type: ignore[arg-type]

    def _is_kept(self, records: Records, i: int) -> bool:
        if len(records.sequences[i]) < self._min_length:
            self.dropped[SHORT] += 1
            return False
        if self._judges:
            if records.qualities is None:
                raise ParameterError("--min-quality: reads of FASTA have no quality values; leave it out")
            values = np.frombuffer(records.qualities[i], np.uint8)
            if len(values) and _ERRORS[values].mean() > self._most_errors:
                self.dropped[POOR] += 1
                return False
        return True
