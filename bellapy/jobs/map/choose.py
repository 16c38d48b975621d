"""Which alignments of a read are written, as what, and how far its place can be trusted."""

from __future__ import annotations

from math import log, log2
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_inner
from bellapy.compute.runs import PAIR, length_of, operation_of
from bellapy.seeding.chain import overlap_of

COVERS = 0.9  # share of a read, and of the best score, that alignments need to be weighed by their differences
LEAST_ERRORS = 0.02  # of the columns of a read's best alignment: what is assumed at least when differences are weighed
DROPPED, PRIMARY, SECONDARY, SUPPLEMENTARY = range(4)
MOST_QUALITY = 60
NONE, COPY = -1, -2  # in the place of a parent


class Placed(NamedTuple):
    """Alignments, or chains, in the order of reads, then of falling weight; all columns (n,) int64 but `identity`.

    read, strand; q_start, q_end : on the read as given; t_start, t_end : in the reference's codes.
    score, weight : of the alignment.  chain_score, rival_chain, n_anchors : of its chain.
    identity : (n,) float64, matches of all columns.
    """

    read: np.ndarray
    strand: np.ndarray
    q_start: np.ndarray
    q_end: np.ndarray
    t_start: np.ndarray
    t_end: np.ndarray
    score: np.ndarray
    weight: np.ndarray
    chain_score: np.ndarray
    rival_chain: np.ndarray
    n_anchors: np.ndarray
    identity: np.ndarray


@njit_inner
def _logs_of_gaps(paths, a):
    """The sum of log2(1 + bases) of the gaps of path a of paths (Paths)."""
    total = 0.0
    for x in range(paths.first[a], paths.first[a] + paths.n_runs[a]):
        if operation_of(paths.runs[x]) != PAIR:
            total += log2(1.0 + length_of(paths.runs[x]))
    return total


@njit_inner
def _weigh_by_differences(weights, logs, paths, begin, end, match):
    """Weigh alignments begin to end of paths (Paths), those of a read, by what each mismatch or gap says about the place.

    That is the more, the fewer errors the best one has (as in minimap2 since version 2.20).

    weights : (n,) int64, changed.  logs : (n,) float64, of `_logs_of_gaps`.  match : the score of a pair of equal bases.
    """
    best = begin + np.argmax(weights[begin:end])
    events = paths.n_mismatches[best] + paths.n_gaps[best]
    cost = 0.5 / max(LEAST_ERRORS, events / max(np.int64(1), events + paths.n_matches[best]))
    for a in range(begin, end):
        lost = cost * (paths.n_mismatches[a] + paths.n_gaps[a]) + logs[a]
        weights[a] = max(np.int64(0), np.int64(match * (paths.n_matches[a] - lost)))


@njit
def weigh(read, lengths, paths, scoring):
    """What alignments of the same read are compared by, (n,) int64: their scores, if each gap cost by its logarithm.

    So an alignment over a large insertion comes before one of the insertion.  Where several that score alike cover the read,
    they are weighed by their differences.

    read : (n,) int64, ascending, of the alignments paths (Paths).  lengths : (n_reads,) int64.  scoring : AffineScoring.
    """
    n = len(read)
    weights, logs = paths.score.copy(), np.zeros(n)
    begin = 0
    while begin < n:
        end = begin
        while end < n and read[end] == read[begin]:
            end += 1
        if end - begin > 1:
            for a in range(begin, end):
                logs[a] = _logs_of_gaps(paths, a)
                pairs = paths.n_matches[a] * scoring.match + paths.n_mismatches[a] * scoring.mismatch
                weights[a] = pairs - np.int64(paths.n_gaps[a] * scoring.open1 + logs[a] * scoring.extend1)
            best = begin + np.argmax(weights[begin:end])
            several = (weights[begin:end] >= COVERS * weights[best]).sum() > 1
            if several and paths.q_end[best] - paths.q_start[best] >= COVERS * lengths[read[begin]]:
                _weigh_by_differences(weights, logs, paths, begin, end, scoring.match)
        begin = end
    return weights


@njit
def weigh_together(weights, read, chain, q_start, q_end, cut):
    """Weights of alignments, (n,) int64, where those that one chain was cut into stand together: on the bases of an
    alignment that they beat as a whole, each weighs as much as all.  So a read goes to the place that lacks a part of it, or
    has it turned, and not to a copy of a repeat that fits worse from end to end.

    weights, read, chain, q_start, q_end : (n,) int64, of alignments by read and chain; places on the read as given.
    cut : what each further part costs.
    """
    n = len(weights)
    together = weights.copy()
    begin = 0
    while begin < n:
        end = begin + 1
        while end < n and read[end] == read[begin]:
            end += 1
        first = begin
        while first < end:
            stop = first + 1
            while stop < end and chain[stop] == chain[first]:
                stop += 1
            if stop - first > 1:
                for a in range(begin, end):
                    if chain[a] != chain[first]:
                        _raise_parts(together, weights, first, stop, q_start, q_end, a, cut)
            first = stop
        begin = end
    return together


@njit_inner
def _lies_on(p, a, q_start, q_end):
    """Whether alignment p lies mostly on the bases of alignment a.  q_start, q_end : as in `weigh_together`."""
    return 2 * overlap_of(q_start[p], q_end[p], q_start[a], q_end[a]) > q_end[p] - q_start[p]


@njit_inner
def _raise_parts(together, weights, first, stop, q_start, q_end, a, cut):
    """Let the parts first to stop of a chain that lie mostly on the bases of alignment a weigh as much as all of these, in
    `together`, if that is more than a does.  All else as in `weigh_together`.
    """
    total, n = np.int64(0), 0
    for p in range(first, stop):
        if _lies_on(p, a, q_start, q_end):
            total, n = total + weights[p] - cut * (n > 0), n + 1
    if n < 2 or total <= weights[a]:
        return
    for p in range(first, stop):
        if _lies_on(p, a, q_start, q_end):
            together[p] = max(together[p], total)


@njit_inner
def _quality(weight, rival_weight, n_rivals, chain_score, rival_chain, n_anchors, identity, unique, match):
    """Mapping quality by minimap2's formula, on the weights of alignments (Li 2018, section 2.4, and its later changes).

    weight, chain_score, n_anchors : of the alignment and its chain.  rival_weight, rival_chain : the best of other ones that
    cover the same bases; n_rivals : how many of these come close.
    identity : matches of all columns.  unique : share of the chain in what it and repeated minimizers cover.
    match : the score of a pair of equal bases.
    """
    trust = min(unique * (1.0 if chain_score > 100 else 0.01 * chain_score), 1.0 if n_anchors > 10 else 0.1 * n_anchors)
    if rival_weight > 0:
        ratio = rival_weight * rival_chain / weight / chain_score
        quality = identity * trust * 40.0 * (1.0 - ratio * ratio) * log(max(weight, 1) / match)
        quality = min(quality, float(int(6.02 * identity * identity * (weight - rival_weight) / match + 0.499)))
    else:
        quality = identity * trust * 40.0 * (1.0 - rival_chain / chain_score) * log(max(weight, 1) / match)
    quality = int(quality) - int(4.343 * log(n_rivals + 1.0) + 0.499)
    if quality <= 0:
        return 1 if weight > rival_weight and quality == 0 else 0
    return min(MOST_QUALITY, quality)


@njit_inner
def _is_copy(a, b, placed):
    """Whether alignments a and b of placed (Placed) share an end: one of them was found twice."""
    if placed.strand[a] != placed.strand[b]:
        return False
    starts_alike = placed.q_start[a] == placed.q_start[b] and placed.t_start[a] == placed.t_start[b]
    return starts_alike or (placed.q_end[a] == placed.q_end[b] and placed.t_end[a] == placed.t_end[b])


@njit_inner
def _find_parent(i, head, placed, kind, mask):
    """The alignment that covers the same part of the read as i, and is written; NONE for no such, COPY if i is its copy.

    head : the first alignment of the read.  placed : Placed.  kind : (n,) int64, of those before i.
    mask : share of the shorter one that is enough.
    """
    parent = NONE
    q_start, q_end = placed.q_start[i], placed.q_end[i]
    for j in range(head, i):
        if kind[j] == DROPPED:
            continue
        if _is_copy(i, j, placed):
            return COPY
        if parent < 0 and kind[j] != SECONDARY:
            shared = overlap_of(q_start, q_end, placed.q_start[j], placed.q_end[j])
            if shared >= mask * min(q_end - q_start, placed.q_end[j] - placed.q_start[j]):
                parent = j
    return parent


@njit
def choose(placed, repeated, rule, match, aligned):
    """Kind, mapping quality and best rival's weight of each alignment, (n,) int64 each.

    placed : Placed.
    repeated : (n_reads,) int64, bases of a read that repeated minimizers lie on.
    rule : SelectRule.  match : the score of a pair of equal bases.
    aligned : weights are those of alignments, not of chains.
    """
    read, score, weight, chain_score = placed.read, placed.score, placed.weight, placed.chain_score
    n = len(read)
    kind, quality, rival = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    n_rivals, n_secondary = np.zeros(n, np.int64), np.zeros(n, np.int64)
    chains = placed.rival_chain.copy()
    head = 0
    for i in range(n):
        if read[i] != read[head]:
            head = i
        if score[i] < rule.min_score:
            continue
        parent = _find_parent(i, head, placed, kind, rule.mask)
        if parent == COPY:
            continue
        if parent == NONE:
            kind[i] = SUPPLEMENTARY if (kind[head:i] == PRIMARY).any() else PRIMARY
            continue
        rival[parent] = max(rival[parent], weight[i])
        chains[parent] = max(chains[parent], min(chain_score[i], chain_score[parent]))
        n_rivals[parent] += weight[parent] - weight[i] <= rule.near
        if score[i] >= rule.ratio * score[parent] and n_secondary[parent] < rule.most:
            kind[i] = SECONDARY
            n_secondary[parent] += 1
    for i in range(n):
        if kind[i] == PRIMARY or kind[i] == SUPPLEMENTARY:
            unique = chain_score[i] / (chain_score[i] + repeated[read[i]])
            best_chain = min(max(chains[i], rule.min_chain), chain_score[i])
            quality[i] = _quality(
                weight[i], rival[i] if aligned else 0, n_rivals[i], chain_score[i], best_chain, placed.n_anchors[i],
                placed.identity[i], unique, match,
            )  # fmt: skip
    return kind, quality, rival
