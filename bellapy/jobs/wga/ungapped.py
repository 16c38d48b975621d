"""Ungapped extension of seed hits: high-scoring segment pairs (HSPs), and the anchor in each.

A hit is extended to the left from its last base, then to the right, until the score falls by more than `xdrop` below the
best.  An HSP's score is lowered by the entropy of its matching bases, unless it is more than three times the threshold.  A
hit that begins in what was looked at for an earlier HSP of the same diagonal is not extended.

Where seeds tell counterparts from copies (support.py), an HSP is told as sections: from seed to seed, as long as they are no
more than APART bases apart.

Most hits are put aside by the sieve (engines/ydrop/sieve.py), which changes nothing but the time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_inner, prefetch
from bellapy.compute.threads import even_ranges
from bellapy.engines.ydrop.diagonal import extend_left, extend_right, table_of, use_vectors
from bellapy.engines.ydrop.row import LANES
from bellapy.engines.ydrop.sieve import MARGIN, WORDS, Packed, can_sieve, pack, sieve, sieve_table
from bellapy.params.wga import WgaParams
from bellapy.records.genomes import Genome
from bellapy.seeding.sampling import MIXER
from bellapy.seeding.spaced import Pattern, SeedIndex, expect, find_word, has_bucket, rank_of, transitions_of, words_of

ENTROPY_BASES = 20  # with fewer matches there is no telling
SURE = 3  # times the threshold: such a score is not lowered
WEAK = 2 / 3  # of the threshold: HSPs with so much count near alignments (gapped.py)
PEAK = 31  # columns; the middle of the best stretch of so many is the anchor
TARGET, QUERY, LENGTH, SCORE, N_SEEDS, N_COLUMNS = range(6)
APART = 256
"""Bases between two seeds of a section."""
HITS, EXTENDED, CAPPED, N_HSPS, N_COUNTS = range(5)
"""Counts: seed hits, those extended one by one, those left out for too many copies, HSPs."""
HELD = 1 << 10  # words at a time, so that what they need is on its way from memory
AHEAD = 16  # words that are asked for in advance
ROOM = 1 << 12  # HSPs; doubled where there are more
BLOCK, MOST_BLOCKS = 1 << 18, 64
"""Places of the query in a piece of work at least, and pieces at most."""
U = np.uint64
"""Places in arrays without a sign: Numba would look at each whether it counts from the end."""
ANYWHERE, ABOVE, BEFORE = range(3)
"""Which hits count: all; of a genome with itself, those with query beyond target, or with its counterpart beyond target."""


class HspRule(NamedTuple):
    """matrix : (5, 5) int32, by target, then query.  table, vectors : as in engines/ydrop/diagonal.py.
    sieve_table, sieved : as in engines/ydrop/sieve.py.

    xdrop : see the module.  least, threshold : of HSPs to keep, of the entropy rule.  sensitive : no extension, all are
    kept.  transitions : (n,) uint32, what turns a word into others that count.  span : of a seed.
    most_copies : a word with more is left out.  which : of the hits.  sections : whether HSPs are told as sections.
    """

    matrix: np.ndarray
    table: np.ndarray
    vectors: bool
    sieve_table: np.ndarray
    sieved: bool
    xdrop: int
    least: int
    threshold: int
    sensitive: bool
    transitions: np.ndarray
    span: int
    most_copies: int
    which: int
    sections: bool


class Found(NamedTuple):
    """hsps : (room, N_COLUMNS) int64, target and query place, length, score, seeds.  counts : (N_COUNTS,) int64.

    seen : (2 ** n, 3) int64, more than twice as long as hsps: diagonals that have an HSP, the query place up to which each
        was looked at for it, and the last row of it.  An entry stands at its hash, or in the next one that was free; a
        diagonal of -1 is free.
    """

    hsps: np.ndarray
    counts: np.ndarray
    seen: np.ndarray


@njit
def _no_hsps(room, counts):
    """Room for HSPs; it is a power of two."""
    return Found(np.empty((room, N_COLUMNS), np.int64), counts, np.full((4 * room, 3), -1, np.int64))


@njit_inner
def _entry(seen, diagonal):
    """Where the table has a diagonal, or a free entry for it."""
    last = U(len(seen) - 1)
    at = U(diagonal) * MIXER >> U(32) & last
    while seen[at, 0] != diagonal and seen[at, 0] >= 0:
        at = at + U(1) & last
    return at


@njit
def _with_room(found, n):
    """The same HSPs with room for n more."""
    n_hsps = found.counts[N_HSPS]
    room = len(found.hsps)
    if n_hsps + n <= room:
        return found
    while n_hsps + n > room:
        room *= 2
    more = _no_hsps(room, found.counts)
    for x in range(n_hsps):
        for field in range(N_COLUMNS):
            more.hsps[x, field] = found.hsps[x, field]
    for x in range(len(found.seen)):
        if found.seen[x, 0] >= 0:
            at = _entry(more.seen, found.seen[x, 0])
            for field in range(3):
                more.seen[at, field] = found.seen[x, field]
    return more


def search_bytes(n_places: int, most_copies: int) -> int:
    """What a search for the seeds of a block of n_places holds at most, besides the genomes, their index and HSPs."""
    return 8 * n_places + (HELD << 4) * (most_copies + 1)


def blocks_of(target: Genome, query: Genome) -> list[tuple[int, int]]:
    """Ranges of query places of equal size; they depend on the genomes alone."""
    return even_ranges(len(query.codes), max(1, min(MOST_BLOCKS, len(query.codes) // BLOCK)))


class Texts(NamedTuple):
    """target, query : uint8 codes.  packed_target, packed_query : of the same."""

    target: np.ndarray
    query: np.ndarray
    packed_target: Packed
    packed_query: Packed


class Search:
    """What all searches in a target share."""

    def __init__(
        self, target: Genome, index: SeedIndex, pattern: Pattern, params: WgaParams, *, transition: bool, most_copies: int,
        sections: bool = False, threads: int = 1,
    ):  # fmt: skip
        """transition : whether one base of a seed may differ by one.  most_copies, sections : as in HspRule."""
        self.index, self.pattern, self.params = index, pattern, params
        self.target, self.packed = target.codes, pack(target.codes, threads)
        transitions = np.zeros(1, np.uint32)
        if transition:
            transitions = np.concatenate((transitions, transitions_of(pattern)))
        matrix, xdrop = params.scores.matrix, params.xdrop
        self.rule = HspRule(
            matrix, table_of(matrix), use_vectors(matrix, xdrop), sieve_table(matrix),
            can_sieve(matrix, xdrop, pattern.span) and not params.sensitive, xdrop, int(params.hspthresh * WEAK),
            params.hspthresh, params.sensitive, transitions, pattern.span, most_copies, ANYWHERE, sections,
        )  # fmt: skip


@njit_inner
def entropy(target, query, t, q, length):
    """Entropy of the matching bases of a segment, from 0 (all the same) to 1; 1 for few matches."""
    a = c = g = u = 0
    for x in range(length):
        code = target[t + x]
        if code == query[q + x]:
            a += code == 0
            c += code == 1
            g += code == 2
            u += code == 3
    if a + c + g + u < ENTROPY_BASES:
        return 1.0
    total = 0.0
    for n in (a, c, g, u):
        if n:
            total -= n / length * np.log(n / length)
    return total / np.log(4.0)


@njit_inner
def _add_hsp(t, q, length, score, n_seeds, found, at):
    """Add an HSP, or a section of one; at : its entry in `seen`."""
    n = found.counts[N_HSPS]
    one = found.hsps[n]
    one[TARGET], one[QUERY], one[LENGTH], one[SCORE], one[N_SEEDS] = t, q, length, score, n_seeds
    found.seen[at, 2] = n
    found.counts[N_HSPS] = n + 1


@njit_inner
def _note_seed(t, q, span, found, at):
    """A hit within an HSP: its section goes on to it, or another one begins."""
    one = found.hsps[found.seen[at, 2]]
    end = one[QUERY] + one[LENGTH]
    if q > end + APART:
        _add_hsp(t, q, span, one[SCORE], 1, found, at)
    else:
        one[N_SEEDS] += 1
        one[LENGTH] += q + span - end


@njit_inner
def _extend(target, query, t, q, rule, first, found):
    """Extend one hit, t and q being its first places, unless it was seen; note what HSP comes of it."""
    diagonal = t - q + first
    at = _entry(found.seen, diagonal)
    if found.seen[at, 1] > q:
        if rule.sections:
            _note_seed(t, q, rule.span, found, at)
        return
    found.counts[EXTENDED] += 1
    t_end, q_end = t + rule.span, q + rule.span
    left, score, looked = np.int64(rule.span), np.int64(0), np.int64(0)
    if rule.sensitive:
        for x in range(rule.span):
            score += rule.matrix[target[t + x], query[q + x]]
        right = np.int64(0)
    else:
        left, score = extend_left(target, query, t_end, q_end, min(q_end, t_end), rule)
        right, right_score, looked = extend_right(target, query, t_end, q_end, rule)
        score += right_score
    if score < rule.least and not rule.sensitive:
        return
    length = left + right
    if score <= SURE * rule.threshold and not rule.sensitive:
        score = np.int64(score * entropy(target, query, t_end - left, q_end - left, length))
        if score < rule.least:
            return
    found.seen[at, 0], found.seen[at, 1] = diagonal, q_end + looked
    if rule.sections:
        _add_hsp(t, q, rule.span, score, 1, found, at)
    else:
        _add_hsp(t_end - left, q_end - left, length, score, 1, found, at)


@njit_inner
def _hold_hits(texts, index, wanted, n_wanted, rule, first, held, found):
    """The hits of the words that are wanted, into `held`, but for some that were seen; their number.  What the next steps
    need is asked for in advance.
    """
    for word in range(n_wanted):
        x = U(word)
        wanted[x, 2] = rank_of(index, wanted[x, 0])
        prefetch(index.starts, wanted[x, 2])
    for word in range(n_wanted):
        x = U(word)
        begin, end = find_word(index, np.uint32(wanted[x, 0]), wanted[x, 2])
        if end - begin > rule.most_copies:
            found.counts[CAPPED] += end - begin
            end = begin
        wanted[x, 0], wanted[x, 2] = begin, end
        prefetch(index.places, begin)
    n, n_hits, last = 0, 0, len(texts.target) - rule.span
    for word in range(n_wanted):
        x = U(word)
        q = wanted[x, 1]
        for entry in range(wanted[x, 0], wanted[x, 2]):
            t = np.int64(index.places[U(entry)])
            if rule.which == ANYWHERE or (rule.which == ABOVE and q > t) or (rule.which == BEFORE and t + q < last):
                held[U(n), 0], held[U(n), 1] = t, q
                prefetch(texts.packed_target.bases, t + MARGIN >> 2)
                at = _entry(found.seen, t - q + first)
                if found.seen[at, 1] <= q:
                    n += 1
                elif rule.sections:
                    _note_seed(t, q, rule.span, found, at)
                n_hits += 1
    found.counts[HITS] += n_hits
    return n


@njit_inner
def _extend_some(texts, held, n_hits, rule, first, words, found):
    """Extend the hits that the sieve leaves, in their order."""
    for begin in range(0, n_hits, LANES):
        n = min(LANES, n_hits - begin)
        some = np.uint64((1 << n) - 1)
        if rule.sieved:
            some = np.uint64(sieve(texts.packed_target, texts.packed_query, held, begin, n, rule, words))
        for hit in range(begin, begin + n):
            if some >> np.uint64(hit - begin) & np.uint64(1):
                _extend(texts.target, texts.query, held[U(hit), 0], held[U(hit), 1], rule, first, found)


@njit
def _scan(texts, words, places, block, index, rule, counts):
    """Look up words, (m,), with their transitions, and extend the hits.  places : (m,), where words begin in the block.

    Returns the HSPs, (n, 4) int64 as in Found.  counts : as there, are filled.
    """
    n, n_others, found = np.int64(0), len(rule.transitions), _no_hsps(np.int64(ROOM), counts)
    wanted = np.empty((HELD + n_others, 3), np.int64)
    held = np.empty((len(wanted) * rule.most_copies, 2), np.int64)
    packed = np.empty(2 * WORDS * LANES, np.uint64)
    begin, first = block
    for x in range(len(words)):
        if x + AHEAD < len(words):
            expect(index, words[x + AHEAD])
        for other in range(n_others):
            word = words[x] ^ rule.transitions[U(other)]
            wanted[U(n), 0], wanted[U(n), 1] = word, begin + places[x]
            n += has_bucket(index, word)
        if n >= HELD or x == len(words) - 1:
            if rule.sections:
                found = _with_room(found, len(held))
            n_hits = _hold_hits(texts, index, wanted, n, rule, first, held, found)
            for some in range(0, n_hits, ROOM):
                found = _with_room(found, min(ROOM, n_hits - some))
                _extend_some(texts, held[some:], min(ROOM, n_hits - some), rule, first, packed, found)
            n = 0
    return found.hsps[: found.counts[N_HSPS]].copy()


def find_hsps(
    search: Search, query: Genome, packed_query: Packed, strand: int, block: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """HSPs of the seeds that begin in a block of a query strand, (n, 4) int64 as in Found, and the counts."""
    params, (begin, end) = search.params, block
    stop = min(end + search.pattern.span - 1, len(query.codes))
    words, places = words_of(query.codes[begin:stop], query.masked[begin:stop], search.pattern)
    rule = search.rule._replace(which=ANYWHERE if not params.itself else ABOVE if strand > 0 else BEFORE)
    texts = Texts(search.target, query.codes, search.packed, packed_query)
    counts = np.zeros(N_COUNTS, np.int64)
    hsps = _scan(texts, words, places, block, search.index, rule, counts)
    return hsps, counts


@njit
def find_anchors(target, query, hsps, matrix, anchors):
    """The anchor of each HSP, its target and query place, into anchors, (n, 2) int64; target, query : codes."""
    for x in range(len(hsps)):
        t, q, length = hsps[x, TARGET], hsps[x, QUERY], hsps[x, LENGTH]
        peak = length // 2
        if length > PEAK:
            total = 0
            for k in range(PEAK):
                total += matrix[target[t + k], query[q + k]]
            best, peak = total, PEAK // 2
            for k in range(PEAK, length):
                total += matrix[target[t + k], query[q + k]] - matrix[target[t + k - PEAK], query[q + k - PEAK]]
                if total > best:
                    best, peak = total, k - PEAK // 2
        anchors[x, 0], anchors[x, 1] = t + peak, q + peak
