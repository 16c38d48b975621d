"""A reference and its index in files without names, mapped into memory: what `--max-memory` does not leave room for."""

from __future__ import annotations

import os
import tempfile
from typing import BinaryIO, NamedTuple

import numpy as np

from bellapy.compute.memory import PROGRAM, Budget, mapped_file
from bellapy.errors import OutputError
from bellapy.io.fastx import gather_reads
from bellapy.io.pieces import WrittenPieces
from bellapy.params import MapParams
from bellapy.records import ReadSet

LEAST_WORDS = 1 << 20  # that are filled together
GZIP = b"\x1f\x8b"
LARGEST_RATIO = 5  # of a sequence file to its compressed size


class Store(NamedTuple):
    """folder : where the files are, which the system removes with the process.  budget : how much may be in memory."""

    folder: str
    budget: Budget

    def is_needed(self, reference: str | ReadSet, params: MapParams) -> bool:
        """Whether the index of a reference may not fit the budget."""
        if self.budget.limit is None:
            return False
        if not isinstance(reference, str):
            return mapped_file(reference.codes) is not None
        if not os.path.isfile(reference):
            return True
        with open(reference, "rb") as stream:
            ratio = LARGEST_RATIO if stream.read(len(GZIP)) == GZIP else 1
        size = os.path.getsize(reference) * ratio
        return PROGRAM + size * (2 + 24 / (params.window + 1)) > self.budget.limit

    def load(self, reference: str) -> ReadSet:
        """The sequences of a file; codes are mapped.  One thread reads: each more would hold some whole sequences."""
        with self._file() as stream:
            written = WrittenPieces(stream.write)
            names, pieces, starts, lengths, error_rate, others, *_ = gather_reads([reference], codes=written)
            stream.flush()
            codes = np.memmap(stream, np.uint8, "r", 0, (pieces.size,)).view(np.ndarray)
        return ReadSet(names, codes, starts, lengths, error_rate, others, in_room=True)

    def room(self, n: int) -> tuple[np.ndarray, int]:
        """As the `store` of `build_index`."""
        at_once = self.budget.items("a part of the index", 16, least=min(n, LEAST_WORDS), most=n)
        with self._file() as stream:
            try:
                if hasattr(os, "posix_fallocate"):  # a full disk must be told now: it would end the program later
                    os.posix_fallocate(stream.fileno(), 0, max(1, 8 * n))
                words = np.memmap(stream, np.uint64, "r+", 0, (n,)).view(np.ndarray) if n else np.zeros(0, np.uint64)
            except OSError as error:
                raise OutputError(f"{self.folder}: no room for an index of {8 * n} bytes: {error.strerror}") from error
        return words, at_once

    def _file(self) -> BinaryIO:
        return tempfile.TemporaryFile(dir=self.folder, prefix="bellapy-")
