"""`bellapy extend` against the oracle of the X-drop extension."""

from __future__ import annotations

import gzip
from types import SimpleNamespace

import naive
import pytest
from cases import run
from pair_cases import make_pairs, rows, text
from strategies import random_bases

import bellapy.jobs.extend
from bellapy.params import make_params
from bellapy.report.run_report import RunReport

SCORES = SimpleNamespace(match=1, mismatch=-1, gap=-1)


def expected(pair, k: int, x: int, longest: bool, scores=SCORES) -> tuple[int, ...]:
    """Score, ends on the query, ends on the target's forward strand."""
    query, query_pos, target, target_pos, strand = pair
    size = len(target)
    if strand == "c":
        target, target_pos = naive.reverse_complement(target), size - target_pos - k
    extend = naive.xdrop_longest if longest else naive.xdrop_best
    rule = (scores.match, scores.mismatch, scores.gap, x)
    left = extend(query[:query_pos][::-1], target[:target_pos][::-1], *rule)
    right = extend(query[query_pos + k :], target[target_pos + k :], *rule)
    start, end = target_pos - left[2], target_pos + k + right[2]
    start, end = (start, end) if strand == "n" else (size - end, size - start)
    return left[0] + right[0] + k * scores.match, query_pos - left[1], query_pos + k + right[1], start, end


@pytest.mark.parametrize("extension", ["best", "longest"])
@pytest.mark.parametrize("x", [0, 3, 7, 15, 60])
def test_same_as_the_oracle(rng, extension, x):
    pairs = make_pairs(rng, 70)
    outcome = run("extend", "-", "-k", 9, "-x", x, "--extension", extension, stdin=text(pairs))
    assert outcome.code == 0, outcome.err
    assert rows(outcome.out) == [(i, *expected(pair, 9, x, extension == "longest")) for i, pair in enumerate(pairs)]


@pytest.mark.parametrize("extension", ["best", "longest"])
@pytest.mark.parametrize(("match", "mismatch", "gap"), [(2, -3, -2), (1, -1, -2), (5, -4, -8)])
def test_other_scores(rng, extension, match, mismatch, gap):
    pairs, scores = make_pairs(rng, 30), SimpleNamespace(match=match, mismatch=mismatch, gap=gap)
    words = [f"--{name}={value}" for name, value in vars(scores).items()]
    outcome = run("extend", "-", "-k", 9, "-x", 20, "--extension", extension, *words, stdin=text(pairs))
    assert rows(outcome.out) == [(i, *expected(pair, 9, 20, extension == "longest", scores)) for i, pair in enumerate(pairs)]


@pytest.mark.parametrize("k", [1, 2, 31])
def test_shortest_and_longest_seeds(rng, k):
    pairs = make_pairs(rng, 20, k)
    assert rows(run("extend", "-", "-k", k, "-x", 7, stdin=text(pairs)).out) == [
        (i, *expected(pair, k, 7, False)) for i, pair in enumerate(pairs)
    ]


def test_whole_reverse_complement(rng):
    query = random_bases(rng, 300)
    pair = (query, 100, naive.reverse_complement(query), 300 - 100 - 17, "c")
    assert rows(run("extend", "-", "-k", 17, "-x", 7, stdin=text([pair])).out) == [(0, 300, 0, 300, 0, 300)]


def test_part_of_the_reverse_complement(rng):
    query = random_bases(rng, 300)
    pair = (query, 100, naive.reverse_complement(query[50:250]), 150 - 17, "c")
    assert rows(run("extend", "-", "-k", 17, "-x", 7, stdin=text([pair])).out) == [(0, 200, 50, 250, 0, 200)]


def test_lower_case_and_line_ends(rng):
    pairs = make_pairs(rng, 12)
    reference = run("extend", "-", "-k", 9, "-x", 7, stdin=text(pairs)).out
    lower = [(q.lower(), qp, t.lower(), tp, strand) for q, qp, t, tp, strand in pairs]
    for data in (text(lower), text(pairs).replace(b"\n", b"\r\n"), text(pairs)[:-1]):
        assert run("extend", "-", "-k", 9, "-x", 7, stdin=data).out == reference


def test_files_compressed_or_not(rng, tmp_path):
    pairs = make_pairs(rng, 12)
    reference = run("extend", "-", "-k", 9, "-x", 7, stdin=text(pairs)).out
    packed = gzip.compress(text(pairs))
    for name, content in (("a.tsv", text(pairs)), ("b.tsv.gz", packed), ("c", packed), ("d.gz", text(pairs))):
        (tmp_path / name).write_bytes(content)
        outcome = run("extend", tmp_path / name, "-k", 9, "-x", 7, "-o", tmp_path / f"{name}.out.gz")
        assert (outcome.code, outcome.out) == (0, b"")
        assert gzip.decompress((tmp_path / f"{name}.out.gz").read_bytes()) == reference
    assert run("extend", "-", "-k", 9, "-x", 7, stdin=packed).out == reference


@pytest.mark.parametrize("batch", [1, 2, 7, 24, 25, 1000])
@pytest.mark.parametrize("threads", [1, 3])
def test_batches_and_threads_do_not_matter(rng, monkeypatch, batch, threads):
    pairs = make_pairs(rng, 25)
    reference = run("extend", "-", "-k", 9, "-x", 7, stdin=text(pairs)).out
    monkeypatch.setattr(bellapy.jobs.extend, "BATCH_PAIRS", batch)
    assert run("extend", "-", "-k", 9, "-x", 7, "-t", threads, stdin=text(pairs)).out == reference


def test_an_error_late_in_the_file_is_counted_from_its_start(rng, monkeypatch):
    monkeypatch.setattr(bellapy.jobs.extend, "BATCH_PAIRS", 4)
    outcome = run("extend", "-", "-k", 9, "-x", 7, stdin=text(make_pairs(rng, 10)) + b"ACGT\n")
    assert outcome.code == 1
    assert "standard input: line 11: 1 columns" in outcome.err


def test_seeds_that_do_not_match_count_as_matches():
    """The seed is taken as given, as LOGAN does."""
    outcome = run("extend", "-", "-k", 4, "-x", 3, stdin=b"AAAA\t0\tCCCC\t0\tn\n")
    assert rows(outcome.out) == [(0, 4, 0, 4, 0, 4)]


def test_a_long_pair(rng):
    query = random_bases(rng, 70_000)
    target = query[:35_000] + random_bases(rng, 3) + query[35_000:]
    pair = (query, 66_000, target, 66_003, "n")
    row = rows(run("extend", "-", "-k", 17, "-x", 30, stdin=text([pair])).out)[0]
    assert row[2:] == (0, 70_000, 0, 70_003)
    assert row[1] == 70_000 - 3


def test_report_counts_pairs(rng, tmp_path):
    report = RunReport()
    (tmp_path / "x").write_bytes(text(make_pairs(rng, 5)))
    assert (
        len(
            b"".join(
                bellapy.jobs.extend.extend_pairs(str(tmp_path / "x"), 9, make_params(xdrop=7, extension="best"), report)
            ).splitlines()
        )
        == 5
    )
    assert report.stages[-1].pairs == 5
