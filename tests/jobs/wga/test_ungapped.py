"""High-scoring segment pairs: those of the definition, whatever the sieve puts aside."""

from __future__ import annotations

import naive_wga
import numpy as np
import pytest
from genomes import genome_of
from strategies import mutate, random_bases

from bellapy.engines.ydrop.sieve import MOST_SCORE, can_sieve, pack
from bellapy.jobs.wga.ungapped import APART, EXTENDED, LENGTH, N_SEEDS, QUERY, ROOM, SCORE, TARGET, Search, find_hsps
from bellapy.params.wga import DEFAULT_SCORES, make_wga_params
from bellapy.records.genomes import Genome
from bellapy.seeding.spaced import PATTERNS, index_seeds, parse_pattern


def make_pair(rng) -> tuple[Genome, Genome]:
    """Parts of all identities, repeats, unknown bases inside of related sequence; and unrelated sequence far from these."""
    some = [random_bases(rng, 150) for _ in range(5)]
    others = [mutate(rng, text, errors) for text, errors in zip(some, (0.02, 0.1, 0.2, 0.3, 0.5), strict=True)]
    low = "AC" * 30 + "A" * 40
    target = genome_of(
        some[0] + some[1] + low, some[2] + some[3][:60] + "N" + some[3][60:], some[4] + random_bases(rng, 700)
    )
    query = genome_of(
        others[1] + random_bases(rng, 600) + others[0], low + others[3] + others[2][:99] + "NN" + others[2][99:]
    )
    return target, query


@pytest.mark.parametrize("seed", ["12of19", "6", "14of22"])
def test_hsps_are_those_of_the_definition(seed):
    rng = np.random.default_rng(len(seed))
    target, query = make_pair(rng)
    pattern, shape = parse_pattern(seed), PATTERNS.get(seed) or "1" * int(seed)
    hits = naive_wga.seed_hits(target.codes, query.codes, (target.masked, query.masked), shape, True)
    index, packed = index_seeds(target.codes, target.masked, pattern), pack(query.codes)
    largest = np.where(np.eye(5, dtype=np.bool_), MOST_SCORE, -MOST_SCORE).astype(np.int32)
    cases = [(DEFAULT_SCORES, *some) for some in ((910, 3000), (300, 1500), (910, 1200))]
    for scores, xdrop, hspthresh in [*cases, (DEFAULT_SCORES._replace(matrix=largest), 10 * MOST_SCORE, 5000)]:
        params = make_wga_params({"seed": seed, "hspthresh": hspthresh}, scores, xdrop=xdrop)
        search = Search(target, index, pattern, params, transition=True, most_copies=1000)
        matrix = params.scores.matrix
        expected = naive_wga.hsps(
            target.codes, query.codes, hits, len(shape), matrix, xdrop, int(hspthresh * 2 / 3), hspthresh
        )  # fmt: skip
        assert search.rule.sieved == can_sieve(matrix, xdrop, len(shape))
        extended = []
        for sieved in {False, search.rule.sieved}:
            search.rule = search.rule._replace(sieved=sieved)
            found, counts = find_hsps(search, query, packed, 1, (0, len(query.codes)))
            assert set(map(tuple, found[:, :N_SEEDS].tolist())) == expected and len(expected) > 3
            extended.append(int(counts[EXTENDED]))
        assert seed != "6" or len(extended) == 1 or extended[1] < extended[0]


def test_there_is_room_for_any_number_of_hsps():
    """Seventy copies of a repeat on each genome: more HSPs than there is room for at first."""
    rng = np.random.default_rng(2)
    repeat = random_bases(rng, 60)
    target, query = (genome_of("".join(repeat + random_bases(rng, 9 + x % 7) for x in range(70))) for _ in range(2))
    pattern, params = parse_pattern("14of22"), make_wga_params({"seed": "14of22"}, xdrop=300)
    search = Search(target, index_seeds(target.codes, None, pattern), pattern, params, transition=False, most_copies=1000)
    found, _ = find_hsps(search, query, pack(query.codes), 1, (0, len(query.codes)))
    hits = naive_wga.seed_hits(target.codes, query.codes, (target.masked, query.masked), PATTERNS["14of22"], False)
    expected = naive_wga.hsps(target.codes, query.codes, hits, 22, params.scores.matrix, 300, 2000, 3000)
    assert set(map(tuple, found[:, :N_SEEDS].tolist())) == expected and len(expected) > ROOM


def test_sections_of_hsps_are_their_seeds():
    """Seeds stand close, then far apart, as in copies that share few words; threads' batches and rooms are passed often."""
    rng = np.random.default_rng(4)
    text = random_bases(rng, 9000)
    other = "".join(mutate(rng, text[x : x + 300], 0.3 if x % 900 == 600 else 0.02) for x in range(0, 9000, 300))
    target, query = genome_of(text + text[3000:4000]), genome_of(other)
    pattern, params = parse_pattern("14of22"), make_wga_params({"seed": "14of22"})
    index = index_seeds(target.codes, None, pattern)
    search = Search(target, index, pattern, params, transition=False, most_copies=4, sections=True)
    found, _ = find_hsps(search, query, pack(query.codes), 1, (0, len(query.codes)))
    hits = naive_wga.seed_hits(target.codes, query.codes, (target.masked, query.masked), PATTERNS["14of22"], False)
    expected = naive_wga.sections(target.codes, query.codes, hits, 22, params, APART)
    assert sorted(map(tuple, found[:, [TARGET, QUERY, LENGTH, SCORE, N_SEEDS]].tolist())) == sorted(expected)
    assert len(expected) > 20 and any(n_seeds == 1 for *_, n_seeds in expected)
