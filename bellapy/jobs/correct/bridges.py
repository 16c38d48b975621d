"""Bad stretches of a read or a contig, which few reads show, bridged by the reads that go on beside them.

There overlaps end, or their paths lead through bases that have nothing in common.  The reads themselves go on, and many come
out on the other side.  What they have between the two flanks of the stretch is aligned by partial-order alignment, and its
consensus takes the place of the stretch.
"""

from __future__ import annotations

from threading import Lock, local
from typing import NamedTuple

import numpy as np

from bellapy.engines.infix import MOST_PATTERN, find_infix
from bellapy.engines.poa.windows import GAP_LETTER, Aligner
from bellapy.engines.tags.graph import find_consensus
from bellapy.engines.tags.support import NOWHERE, Support, find_bases
from bellapy.engines.tags.symbols import Sources, pile_of_rows
from bellapy.jobs.correct.members import Neighbours
from bellapy.jobs.correct.template import Corrected, How, refine
from bellapy.params.correct import PoaScoring
from bellapy.records.bases import UNKNOWN

FLANK, MARGIN = MOST_PATTERN, 30  # bases that are looked for on either side, and bases between them and the stretch
ROOM = FLANK + MARGIN
SUPPORTED = 0.2  # of the reads across a window, that support it where it is not bad
MOST_EDITS = 20  # of a flank in another read; chance gives about 26
SLACK = 2 * FLANK  # bases by which a flank may lie elsewhere than its path tells
LONGEST, MOST = 2500, 12  # bases of a bridge, and reads that it is made of
ALIKE = 0.25  # of the middle length, by which the lengths of reads may differ
UNRELATED = 0.57  # of a path through bases at random that is equal
USUAL, WELL = 0.75, 0.5  # quantile of such shares that is usual for a read; how far from UNRELATED to it is well
SCORING = PoaScoring(1, -1, -1)  # small, so that scores have 16 bits
BRIDGE_BYTES = 64 << 20  # that the alignment of one bridge takes, with 35 % errors; one is made at a time
SHORT, SHORT_BYTES = 400, 6 << 20  # bases of a bridge and its flanks that every thread makes by itself, and what that takes


class Beside(NamedTuple):
    """The reads of a pile: where they lie beside the template, and their paths.  runs : short runs of all paths."""

    neighbours: Neighbours
    sources: Sources
    runs: np.ndarray

    def only(self, some: np.ndarray) -> Beside:
        """Some of them; some : a mask."""
        return Beside(self.neighbours.only(some), self.sources.part(some), self.runs)


class _Own(local):
    """What every thread has for itself."""

    def __init__(self) -> None:
        self.aligner = Aligner(SCORING, with_alignment=True)


class Bridges:
    """Makes bridges, long ones one at a time.

    rule : which stretches of raw reads are bad.  Fewer than `least` reads support a window of theirs, or than the share
    `telling` of all.
    """

    def __init__(self, how: How, least: int, telling: float = SUPPORTED):
        self._aligner, self._lock, self._own = Aligner(SCORING, with_alignment=True), Lock(), _Own()
        self._how, self._least = how, least
        self.rule = Support(least, telling, UNRELATED, USUAL, WELL, ROOM, ROOM + MARGIN, LONGEST)

    def cross(self, found: Corrected, stretches: np.ndarray, beside: Beside) -> Corrected:
        """Put bridges in the place of bad stretches of the raw read, where there are enough reads for them.

        stretches : (n, 2) int64, their starts and ends, ascending.
        """
        left, right = _places(stretches, beside)
        for i in range(len(stretches))[::-1]:
            start, end = stretches[i].tolist()
            found, _ = self._cross(found, start, end, left[i], right[i], beside.neighbours)
        return found

    def cross_together(self, found: Corrected, stretches: np.ndarray, beside: Beside) -> Corrected:
        """As `cross`; where no bridge crosses a stretch alone, one may cross the next ones with it.

        What lies between two may be well supported, and yet not belong there: bases that are turned round, say.
        """
        (left, right), i = _places(stretches, beside), 0
        while i < len(stretches):
            start, is_crossed, j = int(stretches[i, 0]), False, i
            while not is_crossed and j < len(stretches) and stretches[j, 1] - start <= LONGEST:
                end = int(stretches[j, 1])
                found, is_crossed = self._cross(found, start, end, left[i], right[j], beside.neighbours)
                j += 1
            i = j if is_crossed else i + 1
        return found

    def _cross(
        self, found: Corrected, start: int, end: int, left: np.ndarray, right: np.ndarray, near: Neighbours
    ) -> tuple[Corrected, bool]:  # fmt: skip
        """The same with a bridge from `start` to `end`, and whether there is one.

        left, right : (n,) int64, where the paths of reads are beside these, as `find_bases` gives it.
        """
        start, end = int(found.begins[start]) - MARGIN, int(found.begins[end]) + MARGIN
        if start < FLANK or end > len(found.codes) - FLANK:
            return found, False
        flanks = found.codes[start - FLANK : start], found.codes[end : end + FLANK]
        texts = find_texts(*flanks, left, right, near)
        if len(texts) < self._least:
            return found, False
        return splice(found, start, end, *self._consensus(texts)), True

    def _consensus(self, texts: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Consensus of reads that show the same bases from end to end, and its margins.

        It is found as that of piles, from the partial-order consensus on.
        """
        offsets = np.cumsum([0] + [len(text) for text in texts])
        if max(map(len, texts)) <= SHORT:
            window = self._own.aligner.align(np.concatenate(texts), offsets)
        else:
            with self._lock:
                window = self._aligner.align(np.concatenate(texts), offsets)
        assert window.alignment is not None and window.columns is not None  # the aligner was asked for them
        first = np.full((1, window.alignment.shape[1]), GAP_LETTER, np.uint8)
        first[0, window.columns] = window.consensus
        pile = pile_of_rows(np.concatenate((first, window.alignment)), window.columns, GAP_LETTER)
        found = find_consensus(window.consensus, pile, self._how.terms, self._least, with_template=False)
        pile, found, _ = refine(pile, found, self._how, self._least)
        return found.codes, self._how.margins(pile, found)


def _places(stretches: np.ndarray, beside: Beside) -> tuple[np.ndarray, np.ndarray]:
    """Which bases of the reads stand on the left and on the right of stretches, (n, n_reads) int64 both, or NOWHERE."""
    columns, sides = np.unique(stretches + (-ROOM, ROOM - 1), return_inverse=True)
    places = find_bases(beside.sources, beside.runs, columns).T
    left, right = sides.reshape(-1, 2).T
    return places[left], places[right]


def find_texts(
    left: np.ndarray, right: np.ndarray, starts: np.ndarray, ends: np.ndarray, near: Neighbours
) -> list[np.ndarray]:
    """What other reads have between two flanks, with these, those of middle length first.

    starts, ends : (n,) int64, where the paths say that the flanks begin and end, as `find_bases` gives them.
    """
    texts: dict[int, np.ndarray] = {}
    reach = LONGEST + 2 * FLANK
    for row in np.flatnonzero(starts != NOWHERE).tolist():
        at, last = int(starts[row]), int(ends[row])
        last = at + reach if last == NOWHERE else last
        text, first = near.text(row, at - SLACK, last + SLACK)
        _add(texts, int(near.reads[row]), _between(text, at + FLANK + SLACK - first, left, right))
    for row in np.flatnonzero((starts == NOWHERE) & (ends != NOWHERE)).tolist():
        at = int(ends[row]) + 1
        text, first = near.text(row, at - reach - SLACK, at + SLACK)
        end = first + len(text)
        mirrored = _between(text[::-1].copy(), end - at + FLANK + SLACK, right[::-1].copy(), left[::-1].copy())
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
