"""Cutting, copies, one-to-one and chains, against what their definitions say."""

from __future__ import annotations

import naive_wga
import numpy as np
from strategies import random_bases

from bellapy.jobs.wga import cut, select
from bellapy.jobs.wga.chain import join_chains, way_cost
from bellapy.jobs.wga.extending import joined
from bellapy.jobs.wga.rejoin import rejoin
from bellapy.params.wga import DEFAULT_SCORES, make_wga_params
from bellapy.records.bases import encode
from bellapy.records.genomes import PAIR, QUERY_ALONE, TARGET_ALONE, Alignment, Genome

COSTS = (DEFAULT_SCORES.matrix, DEFAULT_SCORES.open, DEFAULT_SCORES.extend)


def genome(*texts: str) -> Genome:
    lengths = np.array([len(text) for text in texts])
    codes, masked = encode("".join(texts)), np.zeros(lengths.sum(), np.bool_)
    return Genome(tuple("abcdefg"[: len(texts)]), codes, masked, np.cumsum(lengths) - lengths, lengths)


def aligned(score: int, t: int, q: int, size: int, target: int = 0, query: int = 0, strand: int = 1) -> Alignment:
    return Alignment(score, target, query, strand, t, q, np.array([(PAIR, size)], np.int64))


def glued(rng) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Related, unrelated, related sequence, and long gaps: target, query and the runs of a path through all of it."""
    parts, runs = [], []
    pieces = (True, 150, (TARGET_ALONE, 200)), (True, 90, None), (False, 120, (QUERY_ALONE, 7)), (True, 200, None)
    for related, size, gap in pieces:
        text = random_bases(rng, size)
        parts.append((text, mutate_pairs(rng, text) if related else random_bases(rng, size)))
        runs.append((PAIR, size))
        if gap:
            alone = random_bases(rng, gap[1])
            parts.append((alone, "") if gap[0] == TARGET_ALONE else ("", alone))
            runs.append(gap)
    merged = []
    for operation, size in runs:
        if merged and merged[-1][0] == operation:
            merged[-1][1] += size
        else:
            merged.append([operation, size])
    return encode("".join(a for a, _ in parts)), encode("".join(b for _, b in parts)), np.array(merged, np.int64)


def mutate_pairs(rng, text: str) -> str:
    return "".join(rng.choice(list("ACGT")) if rng.random() < 0.15 else base for base in text)


def test_parts_are_where_the_score_does_not_fall():
    rng = np.random.default_rng(1)
    for _ in range(5):
        target, query, runs = glued(rng)
        parts = cut.find_parts(target, query, 0, 0, runs, COSTS, 3000, 3000)
        assert len(parts) == 2  # the long gap does not cut, the unrelated stretch does
        for part in parts:
            some = cut.runs_of_part(runs, part)
            t, q = int(part[cut.TARGET]), int(part[cut.QUERY])
            assert naive_wga.path_score(target, query, t, q, some.tolist(), DEFAULT_SCORES) == part[cut.SCORE]
            assert some[0, 0] == some[-1, 0] == PAIR
            level = np.concatenate(([0], naive_wga.levels(target, query, t, q, some.tolist(), DEFAULT_SCORES, cut.FORGIVEN)))
            assert (np.maximum.accumulate(level) - level).max() <= 3000
            assert level.argmin() == 0 and level.argmax() == len(level) - 1  # neither end could be better
        whole = cut.find_parts(target, query, 0, 0, runs, COSTS, 0, 3000)
        assert len(whole) == 1 and whole[0][cut.SCORE] >= max(part[cut.SCORE] for part in parts) - 6400


def test_what_is_between_two_parts_fills_the_path():
    rng = np.random.default_rng(3)
    for _ in range(5):
        target, query, runs = glued(rng)
        first, second = cut.find_parts(target, query, 0, 0, runs, COSTS, 3000, 3000)
        between = cut.runs_between(runs, first, second)
        pieces = [cut.runs_of_part(runs, first), between, cut.runs_of_part(runs, second)]
        whole = joined(joined(pieces[0], pieces[1]), pieces[2])
        begin, end = int(first[cut.START_RUN]), int(second[cut.END_RUN])
        assert len(whole) == end - begin + 1 and np.array_equal(whole[1:-1], runs[begin + 1 : end])
        assert np.array_equal(joined(pieces[1][:0], pieces[2]), pieces[2])


def test_parts_are_joined_again_where_nothing_else_is_aligned():
    rng = np.random.default_rng(4)
    target, query = genome(random_bases(rng, 1000)), genome(random_bases(rng, 1000))
    fall = np.array([(PAIR, 80), (QUERY_ALONE, 20), (PAIR, 10)], np.int64)
    one, two, three = aligned(9000, 0, 0, 200), aligned(5000, 290, 310, 100), aligned(4000, 480, 520, 50)
    falls = [two.behind(fall), three.behind(fall)]
    assert (falls[0].t_start, falls[0].q_start, falls[0].t_end, falls[0].q_end) == (200, 200, 290, 310)

    def rejoined(*kept: Alignment) -> list[Alignment]:
        return sorted(rejoin(list(kept), falls, target, query, DEFAULT_SCORES), key=Alignment.order)

    (whole,) = rejoined(three, one, two)
    assert whole.runs[:, 1].tolist() == [280, 20, 190, 20, 60] and whole.runs[:, 0].tolist() == [0, 1, 0, 1, 0]
    codes = target.codes, query.codes
    lost = sum(naive_wga.path_score(*codes, x.t_start, x.q_start, fall.tolist(), DEFAULT_SCORES) for x in falls)
    assert whole.score == 18_000 + lost
    assert len(rejoined(one, three)) == 2  # the part between is not there
    first = naive_wga.path_score(*codes, 200, 200, fall.tolist(), DEFAULT_SCORES)
    # over the first fall, on either genome
    for other in (aligned(3000, 230, 700, 40), aligned(3000, 700, 660, 60, strand=-1)):
        some = {found.t_start: found for found in rejoined(one, two, three, other)}
        assert len(some) == 3 and np.array_equal(some[0].runs, one.runs) and some[290].score == 9000 + lost - first


def test_many_parts_in_one_run():
    """No gap anywhere: the parts are within a single run."""
    rng = np.random.default_rng(2)
    stretches = [random_bases(rng, 60) for _ in range(21)]
    others = [text if x % 2 == 0 else random_bases(rng, 60) for x, text in enumerate(stretches)]
    target, query = encode("".join(stretches)), encode("".join(others))
    runs = np.array([(PAIR, len(target))], np.int64)
    assert len(cut.find_parts(target, query, 0, 0, runs, COSTS, 1000, 3000)) == 11


def test_copies_are_dropped_where_both_genomes_have_better():
    both = genome("A" * 1000), genome("A" * 1000)
    first, second = aligned(900, 0, 0, 300), aligned(800, 500, 500, 300)
    crossed = aligned(400, 10, 510, 250)  # better ones on both sides
    duplicate = aligned(500, 20, 850, 140)  # nothing else there on the query
    kept = select.drop_copies([crossed, duplicate, second, first], *both)
    assert sorted(found.score for found in kept) == [500, 800, 900]
    minus = aligned(300, 700, 200, 90, strand=-1)  # on the query's forward strand from 710 on, where all of it is taken
    assert minus not in select.drop_copies([first, second, minus], *both)
    for free, is_kept in ((70, False), (80, True)):  # of 100 bases on the target
        beside = aligned(300, 300 - 100 + free, 500, 100)
        assert (beside in select.drop_copies([first, second, beside], *both)) == is_kept


def test_one_to_one_leaves_every_base_in_one_alignment():
    rng = np.random.default_rng(3)
    text = random_bases(rng, 1000)
    target, query = genome(text), genome(text)
    params = make_wga_params({})
    whole, shifted = aligned(60_000, 200, 200, 600), aligned(50_000, 0, 0, 1000)
    kept = select.one_to_one([shifted, whole], target, query, params)
    pairs = sorted(zip(*(np.concatenate(x) for x in zip(*(found.pairs() for found in kept), strict=True)), strict=True))
    assert [int(t) for t, _ in pairs] == list(range(1000)) and len(kept) == 3
    for found in kept:
        codes = target.codes, query.codes
        score = naive_wga.path_score(*codes, found.t_start, found.q_start, found.runs.tolist(), DEFAULT_SCORES)
        assert score == found.score or found is kept[0]


def test_runs_come_back_from_pairs():
    found = Alignment(0, 0, 0, 1, 5, 9, np.array([(PAIR, 4), (QUERY_ALONE, 2), (TARGET_ALONE, 3), (PAIR, 6)], np.int64))
    assert np.array_equal(select._runs(*found.pairs()), found.runs)
    assert (found.t_end, found.q_end, found.forward(100)) == (18, 21, (9, 21))


def test_chains_join_what_is_in_order():
    one, two, apart = aligned(9000, 0, 0, 100), aligned(8000, 300, 150, 100), aligned(7000, 500, 20, 50)
    chains = join_chains([two, apart, one])
    assert [chain.score for chain in chains] == [17_000 - int(way_cost(np.array([200]), np.array([50]))[0]), 7000]
    assert chains[0].runs.tolist() == [[PAIR, 100], [QUERY_ALONE, 50], [TARGET_ALONE, 200], [PAIR, 100]]
    far = aligned(8000, 400_000, 400_000, 100)
    assert len(join_chains([one, far])) == 2  # the way costs more than it wins
    assert way_cost(np.array([0, 11, 0, 2]), np.array([0, 0, 111, 1])).tolist() == [0, 600, 900, 850]


def test_a_chain_is_the_best_one():
    """Against all subsets in order, on few alignments."""
    rng = np.random.default_rng(4)
    for _ in range(20):
        some = [aligned(*map(int, rng.integers(1, 5000, 3)), 50) for _ in range(6)]
        some = sorted(some, key=Alignment.order)

        def total(members) -> int:
            score = members[-1].score
            for a, b in zip(members, members[1:], strict=False):
                if b.t_start < a.t_end or b.q_start < a.q_end:
                    return -1
                score += a.score - int(way_cost(np.array([b.t_start - a.t_end]), np.array([b.q_start - a.q_end]))[0])
            return score

        subsets = ([some[x] for x in range(6) if mask >> x & 1] for mask in range(1, 64))
        assert join_chains(some)[0].score == max(total(members) for members in subsets)
