"""What tests of `correct` share: its output, and how far it is from the truth."""

from __future__ import annotations

import numpy as np


def edits(one: str, other: str) -> int:
    """Edit distance of a sequence to the best part of another."""
    a, b = (np.frombuffer(text.encode(), np.uint8) for text in (one, other))
    column, at = np.zeros(len(b) + 1, np.int64), np.arange(len(b) + 1)
    for letter in a:
        new = np.minimum(column + 1, np.concatenate(([len(a)], column[:-1] + (b != letter))))
        new[0] = column[0] + 1
        column = np.minimum.accumulate(new - at) + at
    return int(column.min())


def records(text: bytes) -> list[tuple[str, str]]:
    lines = text.decode().splitlines()
    return [(name[1:], sequence) for name, sequence in zip(lines[::2], lines[1::2], strict=True)]


def oriented(sequence: str, strand: int) -> str:
    return sequence if strand > 0 else sequence[::-1].translate(str.maketrans("ACGTacgt", "TGCAtgca"))
