"""Which passes of seeds a pair of genomes gets.

LASTZ's seeds find everything, and the hits between copies of repeats grow with the square of the genomes.  Where too many
hits are likely, a pass of longer seeds goes first, of words with few copies only: such hits grow with the genomes.  LASTZ's
seeds then look at what no alignment spans.  The hits and the divergence are estimated from a sample of words, by hash.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.threads import map_threads
from bellapy.params.wga import FEW_COPIES, LONG_SEED, SAMPLED, WgaParams
from bellapy.records.bases import UNKNOWN
from bellapy.records.genomes import Genome
from bellapy.report.log import logger
from bellapy.seeding.sampling import NONE, hash_kmers
from bellapy.seeding.spaced import parse_pattern

MANY_HITS, MANY_IN_REPEATS = 1 << 26, 1 << 22
"""Seed hits that LASTZ's seeds may have: all, and those that neither chance nor the genomes' likeness explains.  E. coli and
Salmonella have 39 M of the first and hardly one of the others, K-12 and W 3.6 M; a satellite of 300 kb adds 5 M and more
where it is up to 15 % apart.
"""
FAR = 0.12
"""Estimated divergence from which on a transition in a seed is worth its time; where rates vary, more than this is true."""
WORD = 24  # bases; their shared ones tell the divergence
WORDS = 1 << 18  # of the larger genome in the sample, about
LARGEST_HASH = 1 << 63
PIECE = 1 << 20  # bases that are hashed at a time


class Pass(NamedTuple):
    """seed : a pattern.  transition : whether one base of it may differ by one.  most_copies : of a word in the target.
    sampled : one word in so many counts, by its hash.

    linked : anchors are taken by the seeds in their HSPs and in those near by (support.py), not by their own scores.
    Distant genomes have too few seeds in common.  ydrop : what ends an extension.
    """

    seed: str
    transition: bool
    most_copies: int
    sampled: int
    linked: bool
    ydrop: int


def passes_of(target: Genome, query: Genome, params: WgaParams, threads: int = 1) -> list[Pass]:
    """The passes in order; the last one has the seeds that the options name."""
    own = Pass(params.seed, not params.notransition, params.max_copies, 1, linked=False, ydrop=params.ydrop)
    preset = params.preset
    if preset == "auto":
        preset = _choose(target, query, params, threads)
    if preset == "lastz":
        return [own]
    close = preset == "close"
    sampled, ydrop = (SAMPLED, params.close_ydrop) if close else (1, params.ydrop)
    return [Pass(LONG_SEED, not close, FEW_COPIES, sampled, linked=close, ydrop=ydrop), own]


def _choose(target: Genome, query: Genome, params: WgaParams, threads: int) -> str:
    if params.all_copies or params.itself or params.sensitive:
        return "lastz"
    n_hits, n_in_repeats = estimate_hits(target, query, params, threads)
    if n_hits <= MANY_HITS and n_in_repeats <= MANY_IN_REPEATS:
        return "lastz"
    distance = estimate_divergence(target, query, params, threads)
    preset = "close" if distance < FAR else "distant"
    logger.info(
        "about %s M seed hits, %s M of them in repeats; divergence about %.0f %%: --preset %s",
        f"{n_hits / 1e6:,.0f}", f"{n_in_repeats / 1e6:,.0f}", 100 * distance, preset,
    )  # fmt: skip
    return preset


def estimate_hits(target: Genome, query: Genome, params: WgaParams, threads: int = 1) -> tuple[float, float]:
    """Seed hits of both strands that are likely with the seeds of the options, and those between copies of repeats.

    The copies of equal words are counted in the sample; words that differ in a transition are left to chance.
    """
    weight = parse_pattern(params.seed).weight
    (t_words, t_counts), (q_words, q_counts), share = _samples(target, query, weight, threads, unmask=params.unmask)
    _, t_at, q_at = np.intersect1d(t_words, q_words, assume_unique=True, return_indices=True)
    few = t_counts[t_at] <= params.max_copies
    equal = float(t_counts[t_at[few]] @ q_counts[q_at[few]]) / share
    n_target, n_query = (float(counts.sum()) / share for counts in (t_counts, q_counts))
    chance = 2 * n_target * n_query / 4**weight
    in_repeats = max(0.0, equal - chance - min(n_target, n_query))
    return (equal + (0 if params.notransition else weight) * chance) / params.step, in_repeats / params.step


def estimate_divergence(target: Genome, query: Genome, params: WgaParams, threads: int = 1) -> float:
    """Share of bases that differ, from the words of the smaller genome that the other one has, too.

    Source: B. D. Ondov et al.: Mash: fast genome and metagenome distance estimation using MinHash, Genome Biol 17, 2016.
    """
    (t_words, _), (q_words, _), _ = _samples(target, query, WORD, threads, unmask=params.unmask)
    fewer, more = sorted((t_words, q_words), key=len)
    return 1 - float(np.isin(fewer, more).mean()) ** (1 / WORD) if len(fewer) else 1.0


def _samples(
    target: Genome, query: Genome, k: int, threads: int, *, unmask: bool
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray], float]:
    """The same share of the words of both genomes: hashes, ascending, with the copies of each, (n,) both; and that share."""
    share = min(1.0, WORDS / max(len(target.codes), len(query.codes)))
    most = np.uint64(min(share * LARGEST_HASH, LARGEST_HASH - 1))

    def words(of: tuple[Genome, int]) -> np.ndarray:
        genome, begin = of
        where = slice(begin, begin + PIECE + k - 1)
        codes = genome.codes[where]
        if not unmask:
            codes = np.where(genome.masked[where], np.uint8(UNKNOWN), codes)
        hashes = np.empty(min(PIECE, len(genome.codes) - begin), np.uint64)
        hash_kmers(codes, 0, len(hashes), k, hashes)
        return hashes[(hashes <= most) & (hashes != NONE)]

    pieces = [(genome, begin) for genome in (target, query) for begin in range(0, len(genome.codes), PIECE)]
    found, n = map_threads(words, pieces, threads), -(-len(target.codes) // PIECE)
    counted = [np.unique(np.concatenate(some), return_counts=True) for some in (found[:n], found[n:])]
    return counted[0], counted[1], share
