"""Base-level paths: the table's own, the extension's score and interval, left-aligned; text that shows them; trimming."""

from __future__ import annotations

import re
from dataclasses import replace
from unittest import mock

import naive
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from strategies import (
    end_of,
    flank_pairs,
    lay_out_flanks,
    make_reads,
    make_seeds,
    mutate,
    on_ends,
    on_tables,
    random_bases,
    scorings,
    simulate_flanks,
)
from traced import check_counts, interval, joined, make_overlaps, pairs_of

from bellapy.compute.memory import RESERVE, Budget
from bellapy.compute.resources import Resources
from bellapy.engines import extend as xdrop
from bellapy.engines import flank_paths
from bellapy.engines import trace as base_level
from bellapy.engines.ends import End
from bellapy.engines.flank_paths import most_runs
from bellapy.engines.linear import extend_cpu
from bellapy.engines.linear.trace_cpu import trace_flanks
from bellapy.engines.trace import blocks, map_paths, trace_overlaps
from bellapy.engines.trim import trim_paths
from bellapy.errors import MemoryLimitError
from bellapy.io.path_text import aligned_bases, cigars, differences, draw, mismatches
from bellapy.jobs.overlap.filter import keep_sound, trim_and_test
from bellapy.params import FilterParams, Scoring

SCORINGS = [
    Scoring(1, -1, -1, 0),
    Scoring(1, -1, -1, 7),
    Scoring(1, -1, -1, 30),
    Scoring(1, -1, -2, 2),
    Scoring(2, -3, -4, 20),
    Scoring(3, -1, -6, 60),
    Scoring(5, -4, -6, 50),
    Scoring(1, -1, -1, 400),
    Scoring(100, -100, -1, 16_000),
]


def letters_of(found, i: int) -> str:
    """A flank's path, M, I or D for every column."""
    begin = found.starts[i]
    return "".join("MID"[run & 15] * (run >> 4) for run in found.runs[begin : begin + found.counts[i]].tolist())


def trace(pairs, scoring, longest, rng):
    """Paths of flanks, and the results of their extension."""
    codes, flanks = lay_out_flanks(pairs, rng)
    results = on_tables(extend_cpu.extend_flanks)(codes, flanks, scoring, longest, 1)
    ends = np.ascontiguousarray(results[:, 1:])
    found = on_ends(trace_flanks)(codes, flanks, ends, scoring, longest, 1 + len(pairs) // 100)
    assert (found.counts <= most_runs(results[:, 1:], scoring, longest)).all()
    return [letters_of(found, i) for i in range(len(pairs))], results


def score_of(path: str, query: str, target: str, scoring: Scoring, n_is_n: bool) -> tuple[int, int, int]:
    """Score, query bases and target bases of a path that runs forward."""
    total = q = t = 0
    for step in path:
        if step == "M":
            equal = query[q] == target[t] if query[q] in naive.KNOWN else n_is_n and target[t] not in naive.KNOWN
            total += scoring.match if equal else scoring.mismatch
        else:
            total += scoring.gap
        q, t = q + (step != "D"), t + (step != "I")
    return total, q, t


# ---------------------------------------------------------------- flanks


@settings(max_examples=150)
@given(pair=flank_pairs(), scoring=scorings(), longest=st.booleans(), seed=st.integers(0, 7))
@example(("", ""), Scoring(1, -1, -1, 7), False, 0)
@example(("A" * 70, "C" * 70), Scoring(1, -1, -1, 300), True, 4)
@example(("N" * 30, "N" * 30), Scoring(1, -2, -1, 300), True, 5)
@example(("A" * 30, "A" * 12), Scoring(1, -2, -1, 100), True, 5)
def test_path_is_the_tables(pair, scoring, longest, seed):
    (got,), (result,) = trace([pair], scoring, longest, np.random.default_rng(seed))
    assert got == naive.xdrop_path(*pair, scoring, tuple(result[1:].tolist()), longest)


@pytest.mark.parametrize("longest", [False, True])
@pytest.mark.parametrize("scoring", SCORINGS, ids=str)
def test_paths_of_many_flanks_have_the_extensions_score(rng, scoring, longest):
    pairs = simulate_flanks(rng, 200, 300) + simulate_flanks(rng, 20, 2500)
    found, results = trace(pairs, scoring, longest, rng)
    for path, pair, result in zip(found, pairs, results.tolist(), strict=True):
        assert score_of(path[::-1], *pair, scoring, longest) == tuple(result)


@pytest.mark.parametrize("scoring", SCORINGS[1::2], ids=str)
def test_blocks_change_nothing(rng, monkeypatch, scoring):
    pairs = simulate_flanks(rng, 150, 800)
    expected, _ = trace(pairs, scoring, False, np.random.default_rng(3))
    for size in (1, 300_000):
        monkeypatch.setattr(flank_paths, "BLOCK_BYTES", size)
        monkeypatch.setattr(flank_paths.math, "isqrt", lambda n: 0)
        assert trace(pairs, scoring, False, np.random.default_rng(3))[0] == expected


def test_a_slightly_longer_flank_after_a_long_one(rng):
    """So long that sorting by rounded lengths would not tell them apart."""
    n = 64 * 4200
    first, second = random_bases(rng, n), random_bases(rng, n + 7)
    other = next(base for base in "ACGT" if base not in second[-4:-2])
    pairs = [(first, first), (second, second[:-3] + other + second[-3:])]
    found, _ = trace(pairs, Scoring(1, -1, -1, 20), False, rng)
    assert found == ["M" * n, "MMMD" + "M" * (n + 4)]


def test_blocks_grow_with_the_square_root():
    for n_chunks in (1, 100, 10_000, 10**8):
        chunks = flank_paths.block_chunks(n_chunks, 16_000, 20_000)
        assert 1 <= chunks <= n_chunks
        n_blocks = -(-n_chunks // chunks)
        assert chunks * 16_000 <= flank_paths.BLOCK_BYTES or n_blocks * 20_000 <= chunks * 16_000 * 1.01 + 20_000
        assert chunks * 16_000 <= max(flank_paths.BLOCK_BYTES, 3 * 18_000 * n_chunks**0.5)


# ---------------------------------------------------------------- overlaps


def texts(table) -> list[str]:
    whole = table.text.tobytes().decode()
    return [whole[a:b] for a, b in zip(table.offsets[:-1], table.offsets[1:], strict=True)]


def spell(cigar: str) -> str:
    assert re.fullmatch(r"([1-9][0-9]*[MIDH])*", cigar), cigar
    runs = re.findall(r"([0-9]+)([MIDH])", cigar)
    assert all(a[1] != b[1] for a, b in zip(runs, runs[1:], strict=False))
    return "".join(int(n) * op for n, op in runs)


SCORES = "match", "mismatch", "gap"


@st.composite
def seeded_reads(draw, max_size: int = 60):
    """Reads on both strands around a seed, one pair, with the seed's place."""
    k = draw(st.integers(1, 9))
    seed = draw(st.one_of(st.text("ACGT", min_size=k, max_size=k), st.sampled_from("ACGT").map(lambda base: base * k)))
    (left, left_too), (right, right_too) = draw(flank_pairs(max_size)), draw(flank_pairs(max_size))
    query, target, at = left + seed + right, left_too + seed + right_too, len(left_too)
    strand = draw(st.sampled_from([1, -1]))
    if strand < 0:
        target, at = naive.reverse_complement(target), len(target) - k - at
    return [query, target], make_seeds([0], [1], [strand], [len(left)], [at], k)


@settings(max_examples=300)
@given(case=seeded_reads(), scoring=scorings(60), second=st.none() | scorings(60), longest=st.booleans())
@example((["AAAAAAAAC", "AAAAAAC"], make_seeds([0], [1], [1], [2], [2], 3)), Scoring(1, -1, -1, 9), None, False)
@example((["GTTTTTTTTC", "GTTTTTTC"], make_seeds([0], [1], [1], [6], [2], 3)), Scoring(1, -1, -1, 9), None, False)
@example((["GTTTTTTTTC", "GAAAAAAC"], make_seeds([0], [1], [-1], [6], [3], 3)), Scoring(1, -1, -1, 9), None, False)
@example((["AACGA", "TCCTGTT"], make_seeds([0], [1], [-1], [3], [0], 2)), Scoring(1, -2, -1, 1), Scoring(1, -1, -1, 1), True)
def test_path_of_an_overlap(device, case, scoring, second, longest):
    sequences, seeds = case
    steps = (scoring,) if second is None else (scoring, second._replace(**dict(zip(SCORES, scoring, strict=False))))
    with mock.patch.multiple(xdrop, NEAR=2, LEAST_FOUND=0):
        reads, overlaps = make_overlaps(sequences, seeds, *steps, longest=longest)
    exact, paths = trace_overlaps(reads, overlaps, steps, end_of(longest), Resources(1, device))
    (cigar,) = texts(cigars(paths))
    path, (query, target) = spell(cigar), interval(sequences, overlaps, 0)
    assert score_of(path, query, target, scoring, longest) == (overlaps.score[0], len(query), len(target))
    check_counts(path, query, target, paths, 0)
    assert (exact.n_matches[0], exact.n_columns[0]) == (paths.n_matches[0], len(path))
    assert paths.n_mismatches[0] + paths.n_gap_bases[0] >= naive.edit_distance(query, target)
    assert path == naive.left_aligned(path, query, target)
    assert path == naive.left_aligned(joined(sequences, overlaps, steps, longest), query, target)


@pytest.mark.parametrize("longest", [False, True])
@pytest.mark.parametrize("x", [7, 15, 25, 50, 100])
def test_paths_of_seqans_pairs(oracle, device, x, longest):
    """Every CIGAR consumes the reported interval and scores what is reported; the seed counts as matches, as in SeqAn."""
    n, scoring = 0, Scoring(1, -1, -1, x)
    for (k, its_x), (rows, reads, seeds) in oracle.items():
        if its_x != x:
            continue
        sequences = [row[name] for row in rows for name in ("seqV", "seqH")]
        _, overlaps = make_overlaps(sequences, seeds, scoring, longest=longest)
        if longest:
            assert_array_equal(overlaps.score, [int(row["score"]) for row in rows])
        _, paths = trace_overlaps(reads, overlaps, (scoring,), end_of(longest), Resources(1, device))
        for i, cigar in enumerate(texts(cigars(paths))):
            path, (query, target) = spell(cigar), interval(sequences, overlaps, i)
            v, h = (int(rows[i][name]) for name in ("posV", "posH"))
            seed = rows[i]["seqV"][v : v + k], rows[i]["seqH"][h : h + k]
            unseen = k * scoring.match - score_of("M" * k, *seed, scoring, longest)[0]
            total, q, t = score_of(path, query, target, scoring, longest)
            assert (total + unseen, q, t) == (overlaps.score[i], len(query), len(target))
            check_counts(path, query, target, paths, i)
            n += 1
    assert n == 600


@pytest.fixture(scope="module")
def sample():
    """Reads of both strands with N, seeds between them; the reads as strings, as a ReadSet, and overlaps with paths."""
    rng = np.random.default_rng(5)
    genome, k = random_bases(rng, 3000), 15
    sequences, seeds = [], []
    for i in range(60):
        at, strand = int(rng.integers(700, 2000)), 1 if i % 2 else -1
        left, right = int(rng.integers(0, 600)), int(rng.integers(0, 900))
        pair = []
        for _ in range(2):
            before = mutate(rng, genome[at - left : at], 0.12)
            after = mutate(rng, genome[at + k : at + k + right], 0.12)
            if i % 5 == 0 and len(after) > 50:
                after = after[:20] + "NN" + after[22:]
            pair.append((before + genome[at : at + k] + after, len(before)))
        (query, query_pos), (target, target_pos) = pair
        if strand < 0:
            target, target_pos = naive.reverse_complement(target), len(target) - k - target_pos
        seeds.append((2 * i, 2 * i + 1, strand, query_pos, target_pos))
        sequences += [query, target]
    reads, overlaps = make_overlaps(sequences, make_seeds(*zip(*seeds, strict=True), k), Scoring(1, -1, -1, 15))
    return sequences, reads, *trace_overlaps(reads, overlaps, (Scoring(1, -1, -1, 15),))


@pytest.mark.parametrize("threads", [1, 3])
def test_pieces_change_nothing(sample, monkeypatch, device, threads):
    _, reads, overlaps, paths = sample
    expected = texts(cigars(paths))
    monkeypatch.setattr(base_level, "BLOCK_BASES", 3000)
    rows = blocks(overlaps)
    assert len(rows) > 5
    assert [piece.start for piece in rows] == [0, *(piece.stop for piece in rows[:-1])]
    pieces = map_paths(
        lambda some, its_paths: (some, texts(cigars(its_paths))),
        reads,
        overlaps,
        (Scoring(),),
        End.BEST,
        Resources(threads, device),
    )
    exact, got = zip(*pieces, strict=True)
    assert len(got) == len(rows) and sum(got, []) == expected
    for name in ("query_id", "n_matches", "n_columns"):
        assert_array_equal(np.concatenate([getattr(some, name) for some in exact]), getattr(overlaps, name))
    assert blocks(overlaps.take(slice(0, 0))) == []


@pytest.mark.parametrize("threads", [1, 3])
def test_pieces_keep_to_the_memory_allowed(sample, threads):
    _, _, overlaps, _ = sample
    spans = overlaps.query_end - overlaps.query_start + overlaps.target_end - overlaps.target_start
    for allowed in (spans.max(), 2 * spans.max(), 7 * spans.max()):
        budget = Budget(RESERVE + int(allowed) * threads * base_level.BASE_BYTES, lambda: 0)
        held = [spans[piece].sum() for piece in blocks(overlaps, threads, budget)]
        assert max(held) <= allowed < max(held) + 2 * spans.max() and sum(held) == spans.sum()
    with pytest.raises(MemoryLimitError, match="tracing paths needs more"):
        blocks(overlaps, threads, Budget(RESERVE + int(spans.max()) * threads * base_level.BASE_BYTES - 1, lambda: 0))


# ---------------------------------------------------------------- text


def test_differences_restore_both_reads(sample):
    sequences, reads, overlaps, paths = sample
    for i, cs in enumerate(texts(differences(draw(reads, overlaps, paths)))):
        query, target = (text.lower() for text in interval(sequences, overlaps, i))
        q, t, spelled = 0, 0, ""
        tokens = re.findall(r":[0-9]+|\*[acgtn]{2}|[+-][acgtn]+", cs)
        assert "".join(tokens) == cs
        for token in tokens:
            kind, rest = token[0], token[1:]
            if kind == ":":
                n = int(rest)
                assert query[q : q + n] == target[t : t + n] and "n" not in query[q : q + n]
                q, t, spelled = q + n, t + n, spelled + "M" * n
            elif kind == "*":
                assert (target[t], query[q]) == tuple(rest) and (rest[0] != rest[1] or rest == "nn")
                q, t, spelled = q + 1, t + 1, spelled + "M"
            elif kind == "+":
                assert query[q : q + len(rest)] == rest
                q, spelled = q + len(rest), spelled + "I" * len(rest)
            else:
                assert target[t : t + len(rest)] == rest
                t, spelled = t + len(rest), spelled + "D" * len(rest)
        assert (q, t) == (len(query), len(target))
        assert spelled == spell(texts(cigars(paths))[i])


def test_mismatches_restore_the_target(sample):
    sequences, reads, overlaps, paths = sample
    for i, md in enumerate(texts(mismatches(draw(reads, overlaps, paths)))):
        query, target = interval(sequences, overlaps, i)
        assert re.fullmatch(r"[0-9]+(([A-Z]|\^[A-Z]+)[0-9]+)*", md)
        bases, errors = [], 0
        for number, deleted, letter in re.findall(r"([0-9]+)|\^([A-Z]+)|([A-Z])", md):
            bases += ["="] * int(number) if number else [letter] if letter else ["^", *deleted]
            errors += bool(letter)
        assert errors == paths.n_mismatches[i]
        path, q, t, deleting = spell(texts(cigars(paths))[i]), 0, 0, False
        bases = iter(bases)
        for step in path:
            if step == "I":
                q += 1
                deleting = False
                continue
            base = next(bases)
            if base == "^":
                assert step == "D" and not deleting
                base = next(bases)
            deleting = step == "D"
            assert target[t] == (query[q] if base == "=" else base)
            q, t = q + (step == "M"), t + 1
        assert next(bases, None) is None


def test_aligned_bases(sample):
    sequences, reads, overlaps, _ = sample
    assert texts(aligned_bases(reads, overlaps)) == [interval(sequences, overlaps, i)[0] for i in range(len(overlaps))]


def test_clips(sample):
    _, _, overlaps, paths = sample
    clips = np.zeros((len(paths), 2), np.int64)
    clips[0], clips[1, 1] = (3, 12), 7
    plain, clipped = texts(cigars(paths)), texts(cigars(paths, clips))
    assert clipped[:3] == [f"3H{plain[0]}12H", f"{plain[1]}7H", plain[2]]


# ---------------------------------------------------------------- trimming and dropping


def best_stretch(columns: list[bool], identity: float) -> float:
    """The most that any stretch of columns is worth."""
    weights = [1 - identity if match else -identity for match in columns]
    best = total = 0.0
    for weight in weights:
        total = max(0.0, total) + weight
        best = max(best, total)
    return best


def columns_of(path, query, target) -> list[bool]:
    same = pairs_of(path, query, target)
    return [
        step == "M" and (lambda a, b: a == b and a in naive.KNOWN)(*next(same)) if step == "M" else False for step in path
    ]


@pytest.mark.parametrize("identity", [0.3, 0.6, 0.8, 0.9, 0.99])
def test_trimming_keeps_the_best_stretch(sample, identity):
    sequences, reads, overlaps, paths = sample
    scoring = Scoring(2, -3, -1, 15)
    kept, trimmed = trim_paths(reads, overlaps, paths, identity, scoring)
    n_cut = 0
    for i, (before, after) in enumerate(zip(texts(cigars(paths)), texts(cigars(trimmed)), strict=True)):
        old = columns_of(spell(before), *interval(sequences, overlaps, i))
        path, (query, target) = spell(after), interval(sequences, kept, i)
        new = columns_of(path, query, target)
        assert score_of(path, query, target, scoring, False) == (kept.score[i], len(query), len(target))
        check_counts(path, query, target, trimmed, i)
        assert best_stretch(old, identity) == pytest.approx(sum(new) - identity * len(new), abs=1e-3)
        assert new[0] and new[-1]
        n_cut += len(new) < len(old)
        start, end = kept.query_start[i], kept.query_end[i]
        assert overlaps.query_start[i] <= start < end <= overlaps.query_end[i]
        assert overlaps.target_start[i] <= kept.target_start[i] < kept.target_end[i] <= overlaps.target_end[i]
    assert n_cut == 0 if identity == 0.3 else n_cut > 0


def test_trimming_keeps_the_better_of_two_glued_parts(rng):
    good, middle = (random_bases(rng, 400), random_bases(rng, 300)), (random_bases(rng, 120), random_bases(rng, 120))
    sequences = [good[0] + part + good[1] for part in middle]
    reads, overlaps = make_overlaps(sequences, make_seeds([0], [1], [1], [100], [100], 15), Scoring(1, -1, -1, 100))
    assert overlaps.query_end[0] == 820
    params = FilterParams(min_overlap=50, trim_identity=0.9)
    scoring = Scoring(1, -1, -1, 100)
    traced = trace_overlaps(reads, overlaps, (scoring,))
    exact, paths, dropped = trim_and_test(reads, *traced, scoring, params)
    assert (exact.query_start[0], exact.target_start[0]) == (0, 0)
    assert 400 <= exact.query_end[0] < 410 and exact.score[0] >= 399
    assert not any(dropped.values())
    for least in ({"min_overlap": 500}, {"max_overhang": 300}):
        exact, paths, dropped = trim_and_test(reads, *traced, scoring, replace(params, **least))
        assert len(exact) == len(paths) == 0 and sum(dropped.values()) == 1


def test_nothing_is_left_without_a_match():
    reads, overlaps = make_overlaps(["ACGT", "ACGT"], make_seeds([0], [1], [1], [0], [0], 4), Scoring())
    other = make_reads(["ACGT", "CATG"])
    _, paths = trace_overlaps(reads, overlaps, (Scoring(),))
    kept, trimmed = trim_paths(other, overlaps, paths, 0.5, Scoring())
    assert texts(cigars(trimmed)) == [""] and kept.query_start[0] == kept.query_end[0] and kept.score[0] == 0


def test_what_the_path_drops(sample):
    _, reads, overlaps, paths = sample
    identity = overlaps.n_matches / overlaps.n_columns
    span = np.minimum(overlaps.query_end - overlaps.query_start, overlaps.target_end - overlaps.target_start)
    params = FilterParams(min_overlap=400, min_identity=float(np.median(identity)))
    kept, left, dropped = keep_sound(reads, overlaps, paths, params)
    good = (span >= 400) & (identity >= params.min_identity)
    assert 0 < len(kept) == len(left) == good.sum() < len(overlaps)
    unlike = (span >= 400) & (identity < params.min_identity)
    assert dropped == {"too short": (span < 400).sum(), "overhang": 0, "identity": unlike.sum()}
    assert texts(cigars(left)) == [text for text, keep in zip(texts(cigars(paths)), good, strict=True) if keep]
    assert_array_equal(left.n_gaps, paths.n_gaps[good])
    same, also, none = keep_sound(reads, overlaps, paths, replace(params, min_overlap=1, min_identity=0.0))
    assert same is overlaps and also is paths and not any(none.values())
