"""Kernels that look up the minimizers of reads on GPUs and write anchors: the rules are the functions of anchors.py."""

from __future__ import annotations

import numpy as np
from numba import cuda

from bellapy.compute.gpu.ops import U64
from bellapy.seeding.anchors import RESCUE_COPIES, anchor_of, choose_of_read, count_words, cutoff_of
from bellapy.seeding.gpu.minimizers_kernels import last_before
from bellapy.seeding.index import find_run


def find_ends(marks, begins, lengths, ends):
    """ends[r + 1] = minimizers of reads 0 to r, a thread for each read.

    marks : (n,) int64, of minimizers.py.  begins, lengths : (n_reads,) int64, of reads.  ends : (n_reads + 1,) int64.
    """
    read = cuda.grid(1)
    if read >= begins.size:
        return
    if read == 0:
        ends[0] = 0
    ends[read + 1] = last_before(marks, np.int64(0), marks.size, (begins[read] + lengths[read] << 1) - 1) + 1


def look_up(lookup, hashes, begins, marks, reads, firsts, counts):
    """Find the words of each minimizer, a thread for each: as `look_up` of anchors.py.

    lookup : Lookup.  hashes : (n,) uint64.  begins : (n_reads,) int64, of reads.
    marks : (n,) int64, which become those on the minimizer's own read.  reads : (n,) int32, filled with these reads.
    firsts, counts : (n,) int64 and int32, the first word of each and their number.
    """
    x = cuda.grid(1)
    if x >= hashes.size:
        return
    read = last_before(begins, np.int64(0), begins.size, marks[x] >> 1)
    reads[x] = read
    marks[x] -= begins[read] << 1
    begin, stop = find_run(lookup, hashes[x])
    firsts[x] = begin
    counts[x] = count_words(lookup.words, begin, stop, U64(lookup.place_bits), RESCUE_COPIES) if stop > begin else 0


def choose_seeds(counts, marks, ends, lengths, k, cutoff, repeated):
    """Set the counts of minimizers that are not to be used to 0, a thread for each read: as that of anchors.py.

    counts, marks : of `look_up`.  ends : of `find_ends`.  lengths : (n_reads,) int64.  k, cutoff : of the index.
    repeated : (n_reads,) int64, filled with bases that minimizers left out lie on.
    """
    read = cuda.grid(1)
    if read >= lengths.size:
        return
    begin, end = ends[read], ends[read + 1]
    mine, its_marks, n = counts[begin:end], marks[begin:end], end - begin
    most = cutoff_of(mine, n, lengths[read], np.int64(cutoff))
    repeated[read] = choose_of_read(mine, its_marks, n, lengths[read], np.int64(k), most)


def write_anchors(lookup, marks, reads, firsts, counts, begins, lengths, k, layout, anchors):
    """The anchors of each minimizer, a thread for each, in the order of reads and minimizers.

    lookup : Lookup.  marks, reads, firsts, counts : of `look_up`, chosen.  begins : (n,) int64, of the anchors of each.
    lengths : (n_reads,) int64.  k : of the index.  layout : Layout.  anchors : uint64.
    """
    x = cuda.grid(1)
    if x >= counts.size:
        return
    read, at, first = np.int64(reads[x]), begins[x], firsts[x]
    for y in range(counts[x]):
        anchors[at + y] = anchor_of(lookup.words[first + y], marks[x], read, lengths[read], k, lookup, layout)
