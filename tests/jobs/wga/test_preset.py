"""Passes of seeds: the estimates that choose them, the order of anchors by chains, what the second pass adds."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import naive_wga
import numpy as np
import pytest
from genomes import genome_of
from strategies import mutate, random_bases

from bellapy.jobs.wga import preset
from bellapy.jobs.wga.means import Means
from bellapy.jobs.wga.pipeline import align_genomes
from bellapy.jobs.wga.preset import Pass, estimate_divergence, estimate_hits, passes_of
from bellapy.jobs.wga.support import FORGET, REACH, support_of
from bellapy.jobs.wga.ungapped import LENGTH, N_SEEDS, QUERY, TARGET
from bellapy.params.wga import DEFAULT_SCORES, FEW_COPIES, LONG_SEED, SAMPLED, make_wga_params
from bellapy.records.genomes import TARGET_ALONE
from bellapy.report.run_report import RunReport

COMPLEMENT = str.maketrans("ACGT", "TGCA")


def canonical(text: str, k: int) -> Counter[str]:
    words = (text[at : at + k] for at in range(len(text) - k + 1))
    return Counter(min(word, word[::-1].translate(COMPLEMENT)) for word in words)


def test_support_is_that_of_its_definition():
    rng = np.random.default_rng(8)
    n_limited = n_without_ground = n_far = 0
    for n, size in [(40, 16_000)] * 20 + [(4, 64_000)] * 10:
        sizes = size, 2 * size
        t, length = rng.integers(0, size - 500, n), rng.integers(30, 400, n)
        q = np.where(
            rng.random(n) < 0.7, t + rng.choice((0, 400, 900), n) + rng.integers(-80, 80, n), rng.integers(0, size - 500, n)
        )
        q = np.clip(q, 0, size - 500) + size * (rng.random(n) < 0.2)
        hsps = np.stack((t, q, length, np.full(n, 3000), rng.integers(1, 100, n)), axis=1).astype(np.int64)
        q_edges = np.where((q < size)[:, None], [0, size], [size, 2 * size])
        edges = np.concatenate((np.where((t < 9000)[:, None], [0, 9500], [9000, size]), q_edges), axis=1)
        score, limits = support_of(hsps, edges, sizes, make_wga_params({}), threads=2)
        rows = [tuple(row) for row in hsps[:, [TARGET, QUERY, LENGTH, N_SEEDS]].tolist()]
        expected = naive_wga.support(rows, edges.tolist(), sizes, DEFAULT_SCORES, 9400, REACH, FORGET, SAMPLED)
        assert score.tolist() == expected[0] and limits.tolist() == expected[1]
        n_limited += int((limits != edges).sum())
        n_far += int((limits[:, 1] - t - length > REACH)[limits[:, 1] < edges[:, 1]].sum())
        n_without_ground += int((score == 0).sum())
    assert n_limited > 100 and n_without_ground > 40 and n_far > 3


def test_hits_are_estimated_as_they_are():
    rng = np.random.default_rng(3)
    repeat = random_bases(rng, 200)
    target = "".join(repeat + random_bases(rng, 300) for _ in range(6))
    query = "".join(random_bases(rng, 200) + mutate(rng, repeat, 0.02) for _ in range(4))
    ours, others = canonical(target, 12), canonical(query, 12)
    equal = sum(n * others[word] for word, n in ours.items())
    n_target, n_query = sum(ours.values()), sum(others.values())
    chance = 2 * n_target * n_query / 4**12
    n_hits, n_in_repeats = estimate_hits(genome_of(target), genome_of(query), make_wga_params({}))
    assert n_hits == pytest.approx(equal + 12 * chance) and n_in_repeats == pytest.approx(equal - chance - n_query)
    params = make_wga_params({"notransition": True, "max_copies": 5, "step": 2})
    n_hits, _ = estimate_hits(genome_of(target), genome_of(query), params)
    assert n_hits == pytest.approx(sum(n * others[word] for word, n in ours.items() if n <= 5) / 2)


def test_divergence_is_that_of_the_smaller_genome():
    rng = np.random.default_rng(4)
    text = random_bases(rng, 40_000)
    for rate in (0.01, 0.08):
        some = text[5000:35_000]
        other = "".join(rng.choice([c for c in "ACGT" if c != base]) if rng.random() < rate else base for base in some)
        for pair in ((text, other), (other, text)):
            assert estimate_divergence(*map(genome_of, pair), make_wga_params({})) == pytest.approx(rate, rel=0.1)


def test_the_preset_follows_from_hits_and_divergence(monkeypatch):
    rng = np.random.default_rng(5)
    text = random_bases(rng, 6000)
    near, far = (genome_of(mutate(rng, text, rate)) for rate in (0.03, 0.25))
    target, own = genome_of(text), Pass("12of19", True, 1000, 1, False, 9400)
    auto, long_seeds = make_wga_params({}), Pass(LONG_SEED, False, FEW_COPIES, SAMPLED, True, 18_400)
    assert passes_of(target, near, auto) == passes_of(target, near, make_wga_params({"preset": "lastz"})) == [own]
    monkeypatch.setattr(preset, "MANY_HITS", 0)
    assert passes_of(target, near, auto) == [long_seeds, own]
    assert passes_of(target, far, auto) == [Pass(LONG_SEED, True, FEW_COPIES, 1, False, 9400), own]
    for option in ("all_copies", "itself", "sensitive"):
        assert passes_of(target, near, make_wga_params({option: True})) == [own]
    masked = replace(target, masked=np.ones_like(target.masked))
    assert passes_of(masked, near, auto) == [own]


@pytest.mark.parametrize("name", ["close", "distant"])
def test_the_second_pass_finds_what_has_no_rare_words(name):
    """Copies of a repeat alone on a sequence of their own: every long word has too many copies in the target."""
    rng = np.random.default_rng(6)
    repeat, unique = random_bases(rng, 400), random_bases(rng, 900)
    target = genome_of(unique + "".join(repeat + random_bases(rng, 20) for _ in range(FEW_COPIES + 2)))
    query = genome_of(mutate(rng, unique, 0.03), mutate(rng, repeat, 0.02))
    params = make_wga_params({"preset": name})
    found = align_genomes(target, query, params, Means(RunReport()))
    assert {one.query for one in found} == {0, 1}
    report = RunReport()
    align_genomes(target, genome_of(mutate(rng, unique, 0.03)), params, Means(report))
    first, second = (stage for stage in report.stages if stage.stage == "seed")
    assert first.hsps > 0 == second.hsps  # what is spanned gives no more seeds


def test_a_gap_wins_over_a_detour_along_copies():
    """290 bases of a satellite are lost.  With LASTZ's y-drop the path changes to other copies instead."""
    rng = np.random.default_rng(0)
    monomer = random_bases(rng, 171)
    unit = "".join(mutate(rng, monomer, 0.2) for _ in range(12))
    copies = "".join(mutate(rng, unit, 0.015) for _ in range(4))
    text = random_bases(rng, 1500) + copies + random_bases(rng, 1500)
    target, query = genome_of(text), genome_of(mutate(rng, text[:4500] + text[4790:], 0.01))
    gaps = {}
    for options in ({}, {"ydrop": 9400}):
        (found,) = align_genomes(target, query, make_wga_params({"preset": "close", **options}), Means(RunReport()))
        gaps[len(options)] = [size for operation, size in found.runs.tolist() if operation == TARGET_ALONE and size > 20]
    assert gaps[0] == [290] and max(gaps[1]) < 200
