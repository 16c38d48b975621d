"""The bases of a batch of reads: as codes, both ways."""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit
from bellapy.records.bases import UNKNOWN


def pack_both_ways(
    sequences: list[bytes], encode: np.ndarray, codes: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes of all sequences, each followed by its reverse complement; where each begins; their lengths, (n,) int64.

    encode : records/bases.ENCODE.  codes : where they are written, uint8, of the right length; None: to a new array.
    """
    lengths = np.array([len(sequence) for sequence in sequences], np.int64)
    ends = np.cumsum(2 * lengths)
    if codes is None:
        codes = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    _fill(np.frombuffer(b"".join(sequences), np.uint8), lengths, encode, codes)
    return codes, ends - 2 * lengths, lengths


@njit
def _fill(letters, lengths, encode, codes):
    """Fill codes, (2 n_letters,) uint8.

    letters : (n_letters,) uint8, sequences end to end.  lengths : (n,) int64.  encode : (256,) uint8, code of a letter.
    """
    at = source = 0
    for length in lengths:
        for b in range(length):
            code = encode[letters[source + b]]
            codes[at + b] = code
            codes[at + 2 * length - 1 - b] = code ^ 3 if code < UNKNOWN else code
        at, source = at + 2 * length, source + length
