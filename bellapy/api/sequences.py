"""What `correct` and `polish` return: sequences with names, which can be gone through, turned into tables, and written."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bellapy.api.tables import Columns
from bellapy.errors import ParameterError
from bellapy.io.outputs import is_fastq, open_output
from bellapy.report.run_report import RunReport


@dataclass(frozen=True, repr=False)
class SequenceTable(Columns):
    """Sequences that were made of others: corrected reads, or polished contigs.

    It goes where reads are asked for: `bellapy.overlap(bellapy.correct("reads.fq"))`.

    names, sequences : text.  qualities : letters as in FASTQ; None: there are none.
    report : what was done; see docs/report.md.
    """

    names: list[str]
    sequences: list[str]
    qualities: list[str] | None
    report: RunReport

    @classmethod
    def of(cls, pieces: Sequence[tuple[str, bytes, bytes | None]], report: RunReport) -> SequenceTable:
        """From names, letters and letters of qualities; None for all: there are none."""
        marks = [mark.decode() for _, _, mark in pieces if mark is not None]
        names, sequences = [name for name, _, _ in pieces], [text.decode() for _, text, _ in pieces]
        return cls(names, sequences, marks if len(marks) == len(pieces) else None, report)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"<SequenceTable: {len(self):,} sequences>"

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Name and sequence of each."""
        return zip(self.names, self.sequences, strict=True)

    def columns(self) -> dict[str, np.ndarray]:
        """name, sequence : (n,) objects; `quality` where there are any."""
        found = {"name": np.array(self.names, dtype=object), "sequence": np.array(self.sequences, dtype=object)}
        return found if self.qualities is None else {**found, "quality": np.array(self.qualities, dtype=object)}

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write FASTQ to a file that ends in .fq or .fastq, and FASTA to any other; .gz compresses.

        Raises
        ------
        ParameterError : FASTQ of sequences without qualities.  OutputError : the file cannot be written.
        """
        name = os.fspath(path)
        if is_fastq(name) and self.qualities is None:
            raise ParameterError(f"{name}: these sequences have no qualities; write FASTA")
        with open_output(name) as stream:
            if is_fastq(name) and self.qualities is not None:
                for (title, text), marks in zip(self, self.qualities, strict=True):
                    stream.write(f"@{title}\n{text}\n+\n{marks}\n".encode())
                return
            for title, text in self:
                stream.write(f">{title}\n{text}\n".encode())
