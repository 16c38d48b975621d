"""Tags about modified bases, MM and ML (SAM tags, section 1.7), of a part of a read.

MM says which bases of a kind are modified, by how many of that kind are skipped before each.  ML has a probability for each
of them, for each of several modifications in turn.  Both are about the read as it was sequenced, on whatever strand it
aligns.
"""

from __future__ import annotations

import re

import numpy as np

ENTRY = re.compile(rb"([ACGTUN])([-+](?:[a-z]+|\d+)[.?]?)((?:,\d+)*)")
PROBABILITIES = re.compile(rb"(?:,\d+)*")
NAMES = {b"MM:Z:": b"ML:B:C", b"Mm:Z:": b"Ml:B:C"}  # the latter as older programs write them
ABOUT_BASES = b"MM:", b"ML:", b"MN:", b"Mm:", b"Ml:"


def clip_base_tags(tags: list[bytes], bases: bytes, start: int, end: int) -> list[bytes]:
    """Tags of bases start to end of a read; those about modified bases that cannot be understood are left out.

    bases : of the whole read, as it was sequenced.
    """
    kept = [tag for tag in tags if not tag.startswith(ABOUT_BASES)]
    for places, chances in NAMES.items():
        modified = next((tag.removeprefix(places) for tag in tags if tag.startswith(places)), None)
        if modified is None:
            continue
        told = next((tag.removeprefix(chances) for tag in tags if tag.startswith(chances)), None)
        clipped = _clip(modified, told, np.frombuffer(bases.upper().replace(b"U", b"T"), np.uint8), start, end)
        if clipped is not None:
            kept.append(places + clipped[0])
            kept += [] if told is None else [chances + clipped[1]]
            kept += [b"MN:i:%d" % (end - start)] * any(tag.startswith(b"MN:") for tag in tags)
    return kept


def _clip(modified: bytes, chances: bytes | None, bases: np.ndarray, start: int, end: int) -> tuple[bytes, bytes] | None:
    """The values of MM and ML for bases start to end; None where they do not fit the read."""
    if not modified.endswith(b";") or not PROBABILITIES.fullmatch(chances or b""):
        return None
    values = (chances or b"").split(b",")[1:]
    entries, left, at = list[bytes](), list[bytes](), 0
    for text in modified.split(b";")[:-1]:
        if not (entry := ENTRY.fullmatch(text)):
            return None
        letter, kind, skips = entry.groups()
        its_bases = np.arange(len(bases)) if letter == b"N" else np.flatnonzero(bases == ord(letter.replace(b"U", b"T")))
        order = np.cumsum(np.array(skips.split(b",")[1:], np.int64) + 1) - 1  # of all its bases, the modified ones
        if len(order) and order[-1] >= len(its_bases):
            return None
        inside = (its_bases[order] >= start) & (its_bases[order] < end)
        n_before = int(np.searchsorted(its_bases, start))
        shown = np.diff(order[inside] - n_before, prepend=-1) - 1
        entries.append(letter + kind + b"".join(b",%d" % n for n in shown.tolist()) + b";")
        n_kinds = len(kind.strip(b"-+.?")) if kind[1:2].isalpha() else 1
        its_values = values[at : at + n_kinds * len(order)]
        left += [value for value, keep in zip(its_values, np.repeat(inside, n_kinds).tolist(), strict=False) if keep]
        at += n_kinds * len(order)
    if chances is not None and at != len(values):
        return None
    return b"".join(entries), b"".join(b"," + value for value in left)
