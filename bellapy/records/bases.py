"""Base codes: one byte a base, as every kernel reads them."""

from __future__ import annotations

import numpy as np

LETTERS = np.frombuffer(b"ACGTN", np.uint8)
"""Of codes, in upper case."""

UNKNOWN = 4
"""Code of every letter other than A, C, G, T, U (either case), and of the padding between reads."""

PAD = 320
"""Unknown bases before the first read, between reads and after the last one.

Kernels may look past a read's end by less than this without meeting another read."""

ENCODE = np.full(256, UNKNOWN, np.uint8)
"""Letter (byte value) to code: A 0, C 1, G 2, T and U (of RNA) 3, lower case alike, anything else UNKNOWN.

The complement of a known code c is c ^ 3."""
for _code, _letter in (*enumerate("ACGT"), (3, "U")):
    ENCODE[ord(_letter)] = ENCODE[ord(_letter.lower())] = _code


def encode(sequence: str | bytes) -> np.ndarray:
    """Codes, (length,) uint8, of a sequence given as text."""
    raw = sequence.encode("latin-1", "replace") if isinstance(sequence, str) else sequence
    return ENCODE[np.frombuffer(raw, np.uint8)]


def reversed_codes(codes: np.ndarray) -> np.ndarray:
    """The reverse complement of codes, (n,) uint8."""
    back = codes[::-1].copy()
    is_known = (back < UNKNOWN).view(np.uint8)
    return back ^ 3 * is_known


_COMPLEMENT = bytes.maketrans(b"ACGTUMRWSYKVHDBNacgtumrwsykvhdbn", b"TGCAAKYWSRMBDHVNtgcaakywsrmbdhvn")
"""Of every letter that SAM knows."""


def reverse_complement(letters: bytes) -> bytes:
    """Of a sequence of letters."""
    return letters.translate(_COMPLEMENT)[::-1]
