"""Spaced seeds: the same hits as from comparing all windows, and patterns that are no patterns."""

from __future__ import annotations

import naive_wga
import numpy as np
import pytest
from strategies import mutate, random_bases

from bellapy.engines.ydrop.sieve import pack
from bellapy.errors import ParameterError
from bellapy.jobs.wga.ungapped import HITS, QUERY, TARGET, Search, find_hsps
from bellapy.params.wga import make_wga_params
from bellapy.records.bases import encode
from bellapy.records.genomes import BETWEEN, Genome
from bellapy.seeding.spaced import PATTERNS, index_seeds, parse_pattern


def genome_of(text: str, masked: np.ndarray) -> Genome:
    between = np.full(BETWEEN, 4, np.uint8)
    codes = np.concatenate((between, encode(text), between))
    mask = np.pad(masked, BETWEEN)
    return Genome(("one",), codes, mask, np.array([BETWEEN]), np.array([len(text)]))


@pytest.mark.parametrize("transition", [True, False])
@pytest.mark.parametrize("seed", ["12of19", "5", "1101001", "14of22", "11" + "0" * 40 + "101"])
def test_hits_are_those_of_all_windows(seed, transition):
    """Sensitive mode tells every hit that does not begin in an earlier one of its diagonal."""
    rng = np.random.default_rng(len(seed) + transition)
    text = random_bases(rng, 500)
    genomes = []
    for sequence in (text, mutate(rng, text, 0.1) + text[100:200] + "N" * 3 + text[150:250]):
        masked = np.zeros(len(sequence), np.bool_)
        masked[40:60] = True
        genomes.append(genome_of(sequence, masked))
    target, query = genomes
    params = make_wga_params({"seed": seed, "notransition": not transition, "sensitive": True})
    pattern = parse_pattern(seed)
    search = Search(
        target, index_seeds(target.codes, target.masked, pattern), pattern, params, transition=transition, most_copies=1000
    )
    found, counts = find_hsps(search, query, pack(query.codes), 1, (0, len(query.codes)))
    shape = PATTERNS.get(seed) or ("1" * int(seed) if len(seed) < 3 else seed)
    hits = naive_wga.seed_hits(target.codes, query.codes, (target.masked, query.masked), shape, transition)
    expected, seen = set(), {}
    for t, q in sorted(hits, key=lambda hit: hit[1]):
        if seen.get(t - q, 0) <= q:
            expected.add((t, q))
            seen[t - q] = q + len(shape)
    assert {(int(hit[TARGET]), int(hit[QUERY])) for hit in found} == expected and len(expected) > 10
    assert counts[0] == len(hits)


@pytest.mark.parametrize("seed", ["12of19", "4", "14of22"])
def test_the_index_does_not_depend_on_threads(seed):
    rng = np.random.default_rng(5)
    codes, masked = encode(random_bases(rng, 3000) + "N" + random_bases(rng, 50)), rng.random(3051) < 0.01
    for mask, step in ((None, 1), (masked, 3)):
        one, *others = (index_seeds(codes, mask, parse_pattern(seed), step, threads) for threads in (1, 2, 3, 40))
        assert len(one.places) > 200
        for other in others:
            assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_one_word_in_so_many_counts_on_both_genomes():
    rng = np.random.default_rng(7)
    text = random_bases(rng, 4000)
    target, query = (genome_of(some, np.zeros(len(some), np.bool_)) for some in (text, mutate(rng, text, 0.02)))
    shape = PATTERNS["12of19"]
    hits = naive_wga.seed_hits(target.codes, query.codes, (target.masked, query.masked), shape, False)
    kept = []
    for t, _ in hits:
        window = [int(code) for code, one in zip(target.codes[t:], shape, strict=False) if one == "1"]
        word = int("".join(str(code & 1) for code in window) + "".join(str(code >> 1) for code in window), 2)
        kept.append((word * 0x9E3779B97F4A7C15) % 2**64 < 2**64 / 4)
    pattern, params = parse_pattern("12of19", 4), make_wga_params({"sensitive": True})
    index = index_seeds(target.codes, target.masked, pattern)
    search = Search(target, index, pattern, params, transition=False, most_copies=1000)
    _, counts = find_hsps(search, query, pack(query.codes), 1, (0, len(query.codes)))
    assert counts[HITS] == sum(kept) and 0.2 < np.mean(kept) < 0.3


def test_words_of_many_places_are_left_out_and_counted():
    text = "ACGTTGCATTGACCATGAACT" * 8
    target = genome_of(text, np.zeros(len(text), np.bool_))
    pattern = parse_pattern("12")
    index = index_seeds(target.codes, target.masked, pattern)
    few, many = (Search(target, index, pattern, make_wga_params({}), transition=False, most_copies=most) for most in (7, 8))
    capped, all_hits = (
        find_hsps(search, target, pack(target.codes), 1, (0, len(target.codes)))[1] for search in (few, many)
    )
    assert capped[0] + capped[2] == all_hits[0] and capped[2] > 0 == all_hits[2]


@pytest.mark.parametrize("text", ["", "3", "17", "0110", "1100", "12of18", "1" * 17, "11x11", "11" + "0" * 61 + "11"])
def test_what_is_no_pattern(text):
    with pytest.raises(ParameterError, match="--seed"):
        parse_pattern(text)
