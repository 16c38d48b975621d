"""Which alignments of a read are written, as what, and how far its place can be trusted."""

from __future__ import annotations

from math import log

import numpy as np

from bellapy.compute.jit import njit, njit_inner
from bellapy.seeding.chain import overlap_of

DROPPED, PRIMARY, SECONDARY, SUPPLEMENTARY = range(4)
MOST_QUALITY = 60


@njit_inner
def _quality(score, rival_score, n_rivals, chain_score, rival_chain, n_anchors, identity, unique, match):
    """Mapping quality by minimap2's formula, on the scores of alignments (Li 2018, section 2.4, and its later changes).

    identity : matches of all columns.  unique : share of the chain in what it and repeated minimizers cover.
    """
    trust = min(unique * (1.0 if chain_score > 100 else 0.01 * chain_score), 1.0 if n_anchors > 10 else 0.1 * n_anchors)
    if rival_score > 0:
        ratio = rival_score * rival_chain / score / chain_score
        quality = identity * trust * 40.0 * (1.0 - ratio * ratio) * log(score / match)
        quality = min(quality, float(int(6.02 * identity * identity * (score - rival_score) / match + 0.499)))
    else:
        quality = identity * trust * 40.0 * (1.0 - rival_chain / chain_score) * log(score / match)
    quality = int(quality) - int(4.343 * log(n_rivals + 1.0) + 0.499)
    if quality <= 0:
        return 1 if score > rival_score and quality == 0 else 0
    return min(MOST_QUALITY, quality)


@njit_inner
def _is_copy(a, b, strand, q_start, q_end, t_start, t_end):
    """Whether two alignments share an end: one of them was found twice."""
    if strand[a] != strand[b]:
        return False
    return (q_start[a] == q_start[b] and t_start[a] == t_start[b]) or (q_end[a] == q_end[b] and t_end[a] == t_end[b])


@njit
def choose(
    read, strand, q_start, q_end, t_start, t_end, score, chain_score, rival_chain, n_anchors, identity, repeated, rule,
    match, aligned,
):  # fmt: skip
    """Kind, mapping quality and best rival's score of each alignment, (n,) int64 each.

    All columns are (n,), in the order of reads, then of falling score; positions are on the read as given.
    repeated : (n_reads,) int64, bases of a read that repeated minimizers lie on.
    rule : SelectRule.  match : the score of a pair of equal bases.
    aligned : scores are those of alignments, not of chains.
    """
    n = len(read)
    kind, quality, rival = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    n_rivals, n_secondary = np.zeros(n, np.int64), np.zeros(n, np.int64)
    chains = rival_chain.copy()
    head = 0
    for i in range(n):
        if read[i] != read[head]:
            head = i
        if score[i] < rule.min_score:
            continue
        parent, is_copy = -1, False
        for j in range(head, i):
            if kind[j] == DROPPED:
                continue
            if _is_copy(i, j, strand, q_start, q_end, t_start, t_end):
                is_copy = True
                break
            shared = overlap_of(q_start[i], q_end[i], q_start[j], q_end[j])
            if (
                parent < 0
                and kind[j] != SECONDARY
                and shared >= rule.mask * min(q_end[i] - q_start[i], q_end[j] - q_start[j])
            ):
                parent = j
        if is_copy:
            continue
        if parent < 0:
            kind[i] = SUPPLEMENTARY
            if not (kind[head:i] == PRIMARY).any():
                kind[i] = PRIMARY
            continue
        rival[parent] = max(rival[parent], score[i])
        chains[parent] = max(chains[parent], min(chain_score[i], chain_score[parent]))
        n_rivals[parent] += score[parent] - score[i] <= rule.near
        if score[i] >= rule.ratio * score[parent] and n_secondary[parent] < rule.most:
            kind[i] = SECONDARY
            n_secondary[parent] += 1
    for i in range(n):
        if kind[i] == PRIMARY or kind[i] == SUPPLEMENTARY:
            unique = chain_score[i] / (chain_score[i] + repeated[read[i]])
            best_chain = min(max(chains[i], rule.min_chain), chain_score[i])
            quality[i] = _quality(
                score[i], rival[i] if aligned else 0, n_rivals[i], chain_score[i], best_chain, n_anchors[i], identity[i],
                unique, match,
            )  # fmt: skip
    return kind, quality, rival
