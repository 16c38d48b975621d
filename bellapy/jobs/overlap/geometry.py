"""How alignments lie on their reads, and which of their overhangs count.

An alignment that stops inside both reads leaves an overhang on that side.  Two reads that share a repeat but no locus leave
one, since they differ beyond the repeat.  But real reads also have bad ends, and some are two reads joined by mistake.  The
other alignments of the two reads show the difference.  If some of them go on past this place on the query, and some on the
target, both reads are sound there, and they differ.  If none goes on in one of the two reads, this read is bad from there
on, and the overhang does not count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bellapy.compute.jit import njit
from bellapy.records import Extensions, Overlaps, ReadSet, Seeds

BIN = 100  # bases: how finely it is known where alignments go on
BEYOND = 400  # bases: an alignment goes on past a place if it covers so many on both sides of it
AT_END = 100  # bases: an alignment that comes so close to the end of a read reaches it
STRAY = 0.02  # share of a read's alignments that may go on in what is bad


@dataclass(frozen=True)
class Geometry:
    """How alignments lie on their reads; arrays of bases, (n,) int32 but for `implied`.

    left, right : unaligned bases where both reads go on, to the left and right as the query runs.
    span : aligned bases, of the read with fewer.
    implied : (n,) float64, length of the overlap if it ran to the ends of the reads.
    """

    left: np.ndarray
    right: np.ndarray
    span: np.ndarray
    implied: np.ndarray

    @property
    def overhang(self) -> np.ndarray:
        return np.maximum(self.left, self.right)

    @property
    def aligned(self) -> np.ndarray:
        """Mean of the aligned bases of query and target, (n,) float64."""
        return self.implied - self.left - self.right

    def take(self, rows: np.ndarray) -> Geometry:
        """The same of some alignments."""
        return Geometry(self.left[rows], self.right[rows], self.span[rows], self.implied[rows])


def measure_geometry(reads: ReadSet, seeds: Seeds | Overlaps, extensions: Extensions | Overlaps) -> Geometry:
    """Overhangs, span and implied length of every alignment; overlaps are both, pairs of reads and alignments."""
    query_after = reads.lengths[seeds.query_id] - extensions.query_end
    target_after = reads.lengths[seeds.target_id] - extensions.target_end
    same = seeds.strand > 0
    left = np.minimum(extensions.query_start, np.where(same, extensions.target_start, target_after))
    right = np.minimum(query_after, np.where(same, target_after, extensions.target_start))
    query_span = extensions.query_end - extensions.query_start
    target_span = extensions.target_end - extensions.target_start
    return Geometry(left, right, np.minimum(query_span, target_span), left + right + (query_span + target_span) / 2)


def fair_geometry(reads: ReadSet, seeds: Seeds, extensions: Extensions, geometry: Geometry, sound: np.ndarray) -> Geometry:
    """The geometry without the overhangs that do not count.

    sound : (n,) bool, the alignments that tell where reads go on.
    """
    starts, going_on = _going_on(reads, seeds.take(sound), extensions.take(sound))
    most = np.maximum.reduceat(going_on, starts[:-1]) if len(reads) else going_on

    def is_bad(read: np.ndarray, position: np.ndarray) -> np.ndarray:
        return going_on[starts[read] + position // BIN] <= STRAY * most[read]

    same = seeds.strand > 0
    first = np.where(same, extensions.target_start, extensions.target_end)
    last = np.where(same, extensions.target_end, extensions.target_start)
    left = is_bad(seeds.query_id, extensions.query_start) | is_bad(seeds.target_id, first)
    right = is_bad(seeds.query_id, extensions.query_end) | is_bad(seeds.target_id, last)
    left, right = np.where(left, 0, geometry.left), np.where(right, 0, geometry.right)
    return Geometry(left, right, geometry.span, geometry.aligned + left + right)


def _going_on(reads: ReadSet, seeds: Seeds, extensions: Extensions) -> tuple[np.ndarray, np.ndarray]:
    """Number of alignments that go on past each bin of each read, and where the bins of the reads start, (n_reads + 1,)."""
    starts = np.concatenate(([0], np.cumsum(reads.lengths // BIN + 2, dtype=np.int64)))
    steps = np.zeros(starts[-1] + 1, np.int32)
    _add_steps(starts, reads.lengths, seeds.query_id, extensions.query_start, extensions.query_end, steps)
    _add_steps(starts, reads.lengths, seeds.target_id, extensions.target_start, extensions.target_end, steps)
    return starts, np.cumsum(steps, dtype=np.int32)


@njit
def _add_steps(starts, lengths, read_id, begin, end, steps):
    """Add 1 where an alignment begins to go on and take 1 where it does not any more.

    starts : (n_reads + 1,) int64, first bin of each read.  lengths : (n_reads,) int32.  read_id, begin, end : (n,) int32, of
    the alignments.  steps : (n_bins + 1,) int32, by bin.
    """
    for i in range(len(read_id)):
        length = lengths[read_id[i]]
        first = 0 if begin[i] <= AT_END else (begin[i] + BEYOND + BIN - 1) // BIN
        last = length // BIN if end[i] >= length - AT_END else (end[i] - BEYOND) // BIN
        if first <= last:
            steps[starts[read_id[i]] + first] += 1
            steps[starts[read_id[i]] + last + 1] -= 1
