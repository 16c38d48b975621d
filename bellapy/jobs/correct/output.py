"""Corrected reads as FASTA or FASTQ: whole, without unsupported ends, or in supported pieces."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bellapy.jobs.correct.qualities import Qualities
from bellapy.jobs.correct.report import SHORT, UNSUPPORTED
from bellapy.jobs.correct.template import Corrected
from bellapy.params.correct import CorrectParams
from bellapy.report.log import logger
from bellapy.report.run_report import RunReport

FIRST_MARK = np.uint8(33)  # of a quality of 0 in FASTQ
LETTERS = b"ACGTN".ljust(256)  # of codes
LOWER_CASE = np.uint8(32)  # what makes a letter a small one


def supported_pieces(raw: np.ndarray) -> list[tuple[int, int]]:
    """The stretches that are not raw: start and end."""
    edges = np.flatnonzero(np.diff(np.concatenate(([True], raw, [True])).astype(np.int8)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def choose_pieces(found: Corrected, params: CorrectParams) -> list[tuple[int, int]]:
    """The parts of a corrected read that are wanted: start and end."""
    if not (params.trim or params.split):
        return [(0, len(found.codes))]
    pieces = supported_pieces(found.raw)
    return pieces if params.split or not pieces else [(pieces[0][0], pieces[-1][1])]


def raw_span(found: Corrected, start: int, end: int) -> tuple[int, int]:
    """The bases of the raw read that stand for bases start to end - 1 of the corrected one."""
    first = int(np.searchsorted(found.begins, start, side="right")) - 1
    last = int(np.searchsorted(found.begins, end, side="left"))
    return first, last


class Writer:
    """Makes records of corrected reads, and counts what is left out.

    qualities : what tells the qualities of bases; None: FASTA is made.

    n_records, n_bases : written.  n_short : reads or pieces that are too short, n_unsupported : reads of which nothing is
    supported; neither is written.
    """

    def __init__(self, params: CorrectParams, qualities: Qualities | None = None):
        self.params, self.qualities = params, qualities
        self.n_records = self.n_bases = self.n_short = self.n_unsupported = 0

    def take_qualities(self, qualities: Qualities) -> None:
        """Make FASTQ from now on."""
        self.qualities = qualities

    def records(self, name: str, comment: bytes, found: Corrected) -> Iterator[bytes]:
        """The records of one read; comment : what stands behind its name."""
        for label, text, marks in self.pieces(name, found):
            if marks is None:
                yield b">%s%s\n%s\n" % (label.encode(), comment, text)
            else:
                yield b"@%s%s\n%s\n+\n%s\n" % (label.encode(), comment, text, marks)

    def pieces(self, name: str, found: Corrected) -> Iterator[tuple[str, bytes, bytes | None]]:
        """What is wanted of one read: names, letters, and the letters of qualities, if any are known."""
        letters = found.codes.tobytes().translate(LETTERS)
        if self.params.lowercase:
            letters = (np.frombuffer(letters, np.uint8) + LOWER_CASE * found.raw).tobytes()
        marks = None if self.qualities is None else self.qualities.of(found) + FIRST_MARK
        pieces = choose_pieces(found, self.params)
        self.n_unsupported += not pieces
        for start, end in pieces:
            if end - start < self.params.min_length:
                self.n_short += 1
                continue
            label = name
            if self.params.split:
                first, last = raw_span(found, start, end)
                label = f"{name}:{first}-{last}"
            self.n_records += 1
            self.n_bases += end - start
            yield label, letters[start:end], None if marks is None else marks[start:end].tobytes()

    def tell(self, report: RunReport) -> None:
        """Say and report what was written and what was not."""
        report.details.records, report.details.written_bases = self.n_records, self.n_bases
        report.dropped.add({SHORT: self.n_short, UNSUPPORTED: self.n_unsupported})
        logger.info(
            "wrote %s records with %s bases; left out: %s too short, %s reads without support", f"{self.n_records:,}",
            f"{self.n_bases:,}", f"{self.n_short:,}", f"{self.n_unsupported:,}",
        )  # fmt: skip
