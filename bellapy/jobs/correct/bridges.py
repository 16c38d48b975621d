"""Bad stretches of a read, over which no overlap reaches, bridged by the reads that go on beside them.

Overlaps end where a read is bad.  The reads themselves go on, and many come out on the other side.  What they have between
the two flanks of the stretch is aligned by partial-order alignment, and its consensus takes the place of the stretch.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

import numpy as np

from bellapy.compute.jit import njit_entry
from bellapy.engines.infix import MOST_PATTERN, find_infix
from bellapy.engines.poa.windows import GAP_LETTER, Aligner
from bellapy.engines.tags.graph import find_consensus
from bellapy.engines.tags.realign import realign
from bellapy.engines.tags.symbols import pile_of_rows
from bellapy.jobs.correct.members import Neighbours
from bellapy.jobs.correct.template import Corrected, How
from bellapy.params.correct import PoaScoring
from bellapy.records.bases import UNKNOWN

LEAST = 50  # bases without support that are bridged
FLANK, MARGIN = MOST_PATTERN, 30  # bases that are looked for on either side, and bases between them and the stretch
MOST_EDITS = 20  # of a flank in another read; chance gives about 26
SLACK = 300  # between the end of an overlap and the stretch
LONGEST, MOST = 2500, 12  # bases of a bridge, and reads that it is made of
ALIKE = 0.25  # of the middle length, by which the lengths of reads may differ
SCORING = PoaScoring(1, -1, -1)  # small, so that scores have 16 bits
BRIDGE_BYTES = 64 << 20  # that the alignment of one bridge takes, with 35 % errors; one is made at a time


def find_gaps(raw: np.ndarray) -> list[tuple[int, int]]:
    """Stretches without support, start and end, that have both flanks; those with less than that between them are one."""
    between, room = 2 * MARGIN + FLANK, MARGIN + FLANK
    gaps = np.empty((len(raw) // (between + 1) + 1, 2), np.int64)
    n = _list_gaps(raw, between, gaps)
    return [(a, b) for a, b in gaps[:n].tolist() if b - a >= LEAST and a >= room and b <= len(raw) - room]


@njit_entry
def _list_gaps(raw, between, gaps):
    """Write the stretches of raw bases to gaps, (n, 2) int64, those less than `between` apart as one; return how many."""
    n = i = 0
    while i < len(raw):
        begin = i
        while i < len(raw) and raw[i]:
            i += 1
        if i > begin:
            if n and begin - gaps[n - 1, 1] < between:
                n -= 1
            else:
                gaps[n, 0] = begin
            gaps[n, 1] = i
            n += 1
        i += 1
    return n


class Bridges:
    """Makes bridges, one at a time."""

    def __init__(self, how: How, least: int):
        self._aligner, self._lock = Aligner(SCORING, with_alignment=True), Lock()
        self._how, self._least = how, least

    def cross(self, found: Corrected, find: Callable[[], Neighbours]) -> Corrected:
        """Put bridges in the place of bad stretches, where there are enough reads for them."""
        gaps = find_gaps(found.raw)
        if not gaps:
            return found
        near = find()
        for start, end in reversed(gaps):
            texts = find_texts(found, start - MARGIN, end + MARGIN, near)
            if len(texts) >= self._least:
                with self._lock:
                    bridge, margins = self._consensus(texts)
                found = splice(found, start - MARGIN, end + MARGIN, bridge, margins)
        return found

    def _consensus(self, texts: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Consensus of reads that show the same bases from end to end, and its margins.

        It is found as that of piles, from the partial-order consensus on.
        """
        offsets = np.cumsum([0] + [len(text) for text in texts])
        window = self._aligner.align(np.concatenate(texts), offsets)
        assert window.alignment is not None and window.columns is not None  # the aligner was asked for them
        first = np.full((1, window.alignment.shape[1]), GAP_LETTER, np.uint8)
        first[0, window.columns] = window.consensus
        pile = pile_of_rows(np.concatenate((first, window.alignment)), window.columns, GAP_LETTER)
        found = find_consensus(window.consensus, pile, self._how.terms, self._least, with_template=False)
        before = None
        for _ in range(1, self._how.rounds):
            pile, before = realign(pile, found, before), found.codes
            found = find_consensus(found.codes, pile, self._how.terms, self._least, with_template=False)
        return found.codes, self._how.margins(pile, found)


def find_texts(found: Corrected, start: int, end: int, near: Neighbours) -> list[np.ndarray]:
    """What other reads have between the flanks of the stretch from start to end, those of middle length first."""
    left, right = found.codes[start - FLANK : start], found.codes[end : end + FLANK]
    starts, ends = found.begins[near.starts], found.begins[near.ends]
    reach = LONGEST + FLANK
    texts: dict[int, np.ndarray] = {}
    for row in np.flatnonzero((starts < start - FLANK) & (ends > start - SLACK) & (ends < end)).tolist():
        at, back = int(near.base_ends[row]), 2 * max(0, int(ends[row]) - start) + FLANK + SLACK
        text, first = near.text(row, at - back, at + SLACK + reach)
        _add(texts, int(near.reads[row]), _between(text, at + SLACK - first, left, right))
    for row in np.flatnonzero((ends > end + FLANK) & (starts < end + SLACK) & (starts > start)).tolist():
        at, back = int(near.bases[row]), 2 * max(0, end - int(starts[row])) + FLANK + SLACK
        text, first = near.text(row, at - SLACK - reach, at + back)
        mirrored = _between(text[::-1].copy(), first + len(text) - at + SLACK, right[::-1].copy(), left[::-1].copy())
        _add(texts, int(near.reads[row]), None if mirrored is None else mirrored[::-1])
    lengths = np.array([len(text) for text in texts.values()])
    middle = np.median(lengths) if len(lengths) else 0
    order = np.argsort(np.abs(lengths - middle), kind="stable")
    return [list(texts.values())[i] for i in order[:MOST] if abs(lengths[i] - middle) <= ALIKE * middle]


def _add(texts: dict[int, np.ndarray], read: int, text: np.ndarray | None) -> None:
    if text is not None:
        texts.setdefault(read, text)


def _between(text: np.ndarray, last: int, one: np.ndarray, other: np.ndarray) -> np.ndarray | None:
    """The part of a text between one flank, which lies before `last`, and the other; None if it does not show both.

    The first flank's bases stand before it, and the other one's behind it.  So all such parts begin and end alike.
    """
    equal = np.empty(UNKNOWN + 1, np.uint64)
    edits, begin = find_infix(one, text[:last], equal)
    if edits > MOST_EDITS:
        return None
    edits, end = find_infix(other, text[begin:], equal)
    back_edits, back = find_infix(other[::-1].copy(), text[begin : begin + end][::-1].copy(), equal)
    if max(edits, back_edits) > MOST_EDITS or end - back > LONGEST:
        return None
    return np.concatenate((one, text[begin : begin + max(0, end - back)], other))


def splice(found: Corrected, start: int, end: int, bridge: np.ndarray, margins: np.ndarray) -> Corrected:
    """A corrected read with a bridge, which begins and ends with the flanks, in the place of the stretch."""
    start, end = start - FLANK, end + FLANK
    codes = np.concatenate((found.codes[:start], bridge, found.codes[end:]))
    raw = np.concatenate((found.raw[:start], np.zeros(len(bridge), bool), found.raw[end:]))
    begins, inside = found.begins.copy(), (found.begins > start) & (found.begins < end)
    begins[inside] = start + (begins[inside] - start) * len(bridge) // (end - start)
    begins[found.begins >= end] += len(bridge) - (end - start)
    margins = np.concatenate((found.margins[:start], margins, found.margins[end:]))
    return found._replace(codes=codes, raw=raw, begins=begins, n_bridges=found.n_bridges + 1, margins=margins)
