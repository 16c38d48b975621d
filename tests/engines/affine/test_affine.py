"""The affine engine: the same integers as a naive table in every class, in both modes, and a path with just that score."""

from __future__ import annotations

import gzip
import re

import naive_affine
import numpy as np
import pytest
from affine_pairs import pieces_of, runs_of
from cases import TESTS, run
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import mutate, random_bases

from bellapy.engines.affine import rule, wide
from bellapy.engines.affine.batch_cpu import EXACT, HEIGHTS, PROVED_HEIGHTS, Aligner, Effort
from bellapy.engines.affine.lanes import fits
from bellapy.engines.affine.pieces import Piece
from bellapy.engines.affine.rule import EXTEND, GLOBAL, NO_ZDROP, REACH, ordered
from bellapy.errors import ParameterError
from bellapy.params import AffineScoring
from bellapy.records.bases import encode

ORACLE = TESTS / "data" / "oracle_affine2p.tsv.gz"
SCORINGS = [
    AffineScoring(),
    AffineScoring(1, -4, 6, 2, 26, 1),
    AffineScoring(1, -1, 0, 1, 0, 1),
    AffineScoring(3, -2, 24, 1, 4, 2),
    AffineScoring(10, -9, 30, 10, 30, 10),  # too large for bytes
]


ONE_PIECE = AffineScoring(2, -4, 4, 2, 4, 2)
"""The costs that most programs have by default."""


def check(pairs, scoring, mode, heights, zdrop=NO_ZDROP, step=1) -> None:
    aligner = Aligner(ordered(scoring))
    if aligner.heights:
        aligner.heights = heights
    costs = (scoring.open1, scoring.extend1, scoring.open2, scoring.extend2)
    plain = (scoring.match, scoring.mismatch, scoring.unknown, costs)
    queries, targets, pieces = pieces_of(pairs, mode, step)
    solved = aligner.align(queries, targets, pieces, Effort(zdrop=zdrop))
    for p, (query, target) in enumerate(pairs):
        h = naive_affine.table(query, target, *plain)
        want = naive_affine.extension(h, zdrop) if mode == EXTEND else (h[-1][-1], len(query), len(target))
        assert (solved.score[p], solved.q_used[p], solved.t_used[p]) == want
        assert naive_affine.path_score(query, target, runs_of(solved, p), *plain) == want
        assert runs_of(solved, p) == naive_affine.path(query, target, h, *plain, *want[1:])


def test_classes_share_the_room_for_scores():
    """The largest array of an aligner is held once for each thread, not once for each class."""
    aligner = Aligner(ordered(AffineScoring()))
    scores = [aligner.scratch(height).scores for height in aligner.heights]
    assert all(np.shares_memory(scores[0], other) for other in scores)
    assert len({len(row) / height for row, height in zip(scores, aligner.heights, strict=True)}) == 1


@st.composite
def similar_pairs(draw):
    """Short sequences, some related by large gaps, with unknown bases here and there."""
    letters = draw(st.sampled_from(["ACGT", "AC", "ACGTN"]))
    text = st.text(letters, max_size=14)
    a, b, c, d = draw(text), draw(text), draw(text), draw(text)
    return draw(
        st.sampled_from([(a + b, c + d), (a + b + c, a + c), (a + c, a + b + c), (a + b + c + d, a + d + c), (a + b, a + b)])
    )


@settings(max_examples=120)
@given(
    pairs=st.lists(similar_pairs(), min_size=1, max_size=4), scoring=st.sampled_from(SCORINGS),
    mode=st.sampled_from([GLOBAL, EXTEND]),
    heights=st.sampled_from([(), (12,), (*HEIGHTS, *PROVED_HEIGHTS)]), step=st.sampled_from([1, -1]),
)  # fmt: skip
def test_equals_the_naive_table(pairs, scoring, mode, heights, step):
    check(pairs, scoring, mode, heights, step=step)


@settings(max_examples=60)
@given(
    pairs=st.lists(similar_pairs(), min_size=1, max_size=3), zdrop=st.integers(0, 30), heights=st.sampled_from([(), (64,)])
)
def test_zdrop_ends_an_extension_where_the_table_says(pairs, zdrop, heights):
    check(pairs, AffineScoring(), EXTEND, heights, zdrop)


@pytest.mark.parametrize("mode", [GLOBAL, EXTEND])
def test_blocks_give_the_same_path(rng, mode):
    """Where not all ways fit, they are computed again block by block."""
    pairs = [(random_bases(rng, 30) + "A" * 25 + (x := random_bases(rng, 20)), random_bases(rng, 12) + x) for _ in range(5)]
    for query, target in pairs:
        found = []
        for room in (1 << 20, 1, 60, 700):
            runs = np.zeros(len(query) + len(target), np.uint32)
            piece = Piece(encode(query), encode(target), 0, len(query), 0, len(target), 1, mode)
            score, i, j, _, n = wide.align_wide(piece, (-99, 99), AffineScoring(), NO_ZDROP, 0, room, runs, 0)
            found.append((score, i, j, runs[:n].tolist()))
        assert found[1:] == found[:1] * 3


@pytest.mark.parametrize("lengths", [(40, 500), (500, 40)])
def test_a_band_that_leaves_the_table_touches_no_other_memory(rng, lengths):
    """An extension of two lengths has anti-diagonals without a cell of the band; nothing is written for them."""
    query, target = (encode(random_bases(rng, n)) for n in lengths)
    piece = Piece(query, target, 0, len(query), 0, len(target), 1, EXTEND)
    table = wide._make_table(piece, (-20, 20), AffineScoring())
    memory = wide._make_memory(table, 1 << 20)
    around, size = 1000, memory.state.size
    room = np.full(size + 2 * around, 7, np.int32)
    wide._forward(table, memory._replace(state=room[around : around + size].reshape(memory.state.shape)), NO_ZDROP)
    assert (room[:around] == 7).all() and (room[around + size :] == 7).all()


def test_insertions_and_deletions_in_one_piece(rng):
    """A band that is too narrow for both is found out, wherever the path runs: scores equal those of the whole table."""
    pairs = []
    for _ in range(150):
        truth = random_bases(rng, 250)
        at, size, other = rng.integers(20, 110), rng.integers(10, 41, 2), random_bases(rng, 40)
        query = mutate(rng, truth[:at] + other[: size[0]] + truth[at : at + 110] + truth[at + 110 + size[1] :], 0.15)
        pairs.append((query, truth))
    queries, targets, pieces = pieces_of(pairs, GLOBAL)
    aligner, whole = Aligner(AffineScoring()), Aligner(AffineScoring())
    whole.heights = ()
    wanted = whole.align(queries, targets, pieces)
    assert (aligner.align(queries, targets, pieces).score == wanted.score).all()


@pytest.mark.parametrize("mode", [GLOBAL, EXTEND])
def test_a_band_that_is_asked_for_holds_all_cells(rng, mode, monkeypatch):
    """Also where the best alignment of the whole table lies outside."""
    monkeypatch.setattr(rule, "BAND_ROWS", 4)
    scoring, outside = AffineScoring(), 0
    plain = (scoring.match, scoring.mismatch, scoring.unknown, scoring[2:6])
    pairs = [
        (random_bases(rng, 12) + (x := random_bases(rng, n)), x + random_bases(rng, m)) for n in (9, 30) for m in (2, 12, 17)
    ]
    queries, targets, pieces = pieces_of(pairs, mode)
    solved = Aligner(scoring).align(queries, targets, pieces, Effort(diagonals=11))
    for p, (query, target) in enumerate(pairs):
        rows = int(rule.rows_of_band(11, pieces.q_len, pieces.t_len, pieces.mode)[p])
        assert rows % 4 == 0 and 2 * rows >= 11
        h = naive_affine.table(query, target, *plain, naive_affine.band(query, target, rows, mode == GLOBAL))
        want = naive_affine.extension(h) if mode == EXTEND else (h[-1][-1], len(query), len(target))
        assert (solved.score[p], solved.q_used[p], solved.t_used[p]) == want
        assert runs_of(solved, p) == naive_affine.path(query, target, h, *plain, *want[1:])
        whole = naive_affine.table(query, target, *plain)
        outside += (naive_affine.extension(whole)[0] if mode == EXTEND else whole[-1][-1]) > want[0]
    assert outside


def test_no_result_depends_on_its_neighbours(rng):
    pairs = [(x := random_bases(rng, int(n)), mutate(rng, x, 0.12)) for n in rng.integers(0, 400, 100)]
    queries, targets, pieces = pieces_of(pairs, GLOBAL)
    aligner, effort = Aligner(AffineScoring()), Effort(floor=700)
    together = aligner.align(queries, targets, pieces, effort)
    for rows in np.array_split(rng.permutation(100), 30):
        some = aligner.align(queries, targets, pieces.take(rows), effort)
        assert (some.score == together.score[rows]).all()
        for x, p in enumerate(rows):
            assert runs_of(some, x) == runs_of(together, p)


def test_an_extension_uses_up_the_query_for_a_bonus():
    query, target = "ACGTACGTACGTACGTAA", "ACGTACGTACGTACGTCCGG"
    for heights in ((), (12,)):
        aligner = Aligner(AffineScoring())
        aligner.heights = heights
        queries, targets, pieces = pieces_of([(query, target)], REACH)
        for bonus, want in ((0, (32, 16, 16)), (7, (32, 16, 16)), (8, (24, 18, 16))):
            solved = aligner.align(queries, targets, pieces, Effort(bonus=bonus))
            assert (solved.score[0], solved.q_used[0], solved.t_used[0]) == want


@pytest.mark.parametrize("size", [40, 60])
def test_an_extension_that_ends_early_is_given_more_room(rng, size):
    """What comes before a large gap looks like a good end in a narrow band."""
    before, after = random_bases(rng, 500), random_bases(rng, 450)
    pairs = [
        (before + random_bases(rng, size) + after, before + after),
        (before + after, before + random_bases(rng, size) + after),
    ]
    queries, targets, pieces = pieces_of(pairs, EXTEND)
    wanted = Aligner(AffineScoring()).align(queries, targets, pieces)
    solved = Aligner(AffineScoring()).align(queries, targets, pieces, Effort(floor=500, zdrop=400))
    assert solved.score.tolist() == wanted.score.tolist() and solved.q_used.tolist() == [len(query) for query, _ in pairs]


@pytest.mark.parametrize("heights", [(), HEIGHTS])
def test_an_extension_finds_what_lies_far_off_its_first_band(rng, heights):
    """Nothing scores above 0 near the first diagonal, which is no proof that nothing does elsewhere."""
    same = random_bases(rng, 90).replace("T", "A")
    pairs = [(same[:70], "T" * n + same) for n in (20, 80, 130)]
    check(pairs, AffineScoring(match=5, mismatch=-6), EXTEND, heights)


@pytest.mark.parametrize("mode", [GLOBAL, EXTEND])
@pytest.mark.parametrize("scoring", [AffineScoring(), ONE_PIECE, AffineScoring(1, -4, 6, 1, 6, 1)])
def test_wide_classes_give_what_one_by_one_gives(rng, mode, scoring):
    """Bands of up to 512 diagonals, which noisy pairs of such lengths need for a proof."""
    texts = [random_bases(rng, int(n)) for n in rng.integers(300, 1200, 70)]
    pairs = [(mutate(rng, text, 0.1) + random_bases(rng, i % 3 * 40), text) for i, text in enumerate(texts)]
    queries, targets, pieces = pieces_of(pairs, mode)
    alone, wide = Aligner(scoring), Aligner(scoring)
    alone.heights, wide.heights = (), PROVED_HEIGHTS
    expected, found = (one.align(queries, targets, pieces) for one in (alone, wide))
    assert (wide.try_lanes((queries, targets), pieces, EXACT).needed == 0).mean() > 0.3
    for name in ("score", "q_used", "t_used", "counts"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert [runs_of(found, p) for p in range(70)] == [runs_of(expected, p) for p in range(70)]


def test_scores_that_do_not_fit_bytes_are_found_out():
    assert fits(AffineScoring()) and fits(ONE_PIECE)
    assert not fits(AffineScoring(10, -9, 30, 10, 30, 10)) and not fits(AffineScoring(2, -60))


def test_scores_of_the_wrong_sign_are_refused():
    for scoring in (AffineScoring(0), AffineScoring(1, 0), AffineScoring(open1=-1), AffineScoring(extend2=0)):
        with pytest.raises(ParameterError):
            ordered(scoring)


# ---------------------------------------------------------------- the command


def test_pairwise_gives_the_scores_of_minimap2s_kernel(tmp_path):
    """2,800 pieces as a mapper aligns them: score, and a path that is worth it."""
    with gzip.open(ORACLE, "rt") as file:
        rows = [line.rstrip("\n").split("\t") for line in file][1:]
    assert len(rows) == 2800
    for costs in sorted({tuple(row[3:9]) for row in rows}):
        some = [row for row in rows if tuple(row[3:9]) == costs]
        (tmp_path / "pairs.tsv").write_text("".join(f"{row[1]}\t{row[2]}\n" for row in some))
        match, mismatch, open1, extend1, open2, extend2 = costs
        outcome = run(
            "pairwise", tmp_path / "pairs.tsv", "--mode", "global", "--match", match, "--mismatch", mismatch, "--gap-open",
            f"{open1},{open2}", "--gap-extend", f"{extend1},{extend2}", "--cigar", "-t", "1",
        )  # fmt: skip
        assert outcome.code == 0, outcome.err
        lines = [line.split("\t") for line in outcome.out.decode().splitlines()]
        assert [line[1] for line in lines] == [row[9] for row in some]
        plain = (int(match), int(mismatch), -1, tuple(map(int, (open1, extend1, open2, extend2))))
        for line, row in zip(lines, some, strict=True):
            runs = [(letter, int(size)) for size, letter in re.findall(r"(\d+)([MID])", line[4])]
            assert naive_affine.path_score(row[1], row[2], runs, *plain) == tuple(map(int, line[1:4]))


def test_pairwise_does_not_depend_on_threads_or_batches(tmp_path, rng, monkeypatch):
    pairs = [(x := random_bases(rng, int(n)), mutate(rng, x, 0.1)) for n in rng.integers(0, 900, 60)]
    (tmp_path / "p.tsv").write_text("".join(f"{q}\t{t}\n" for q, t in pairs))
    want = run("pairwise", tmp_path / "p.tsv", "--mode", "extend", "--cigar", "-t", 1)
    monkeypatch.setattr("bellapy.jobs.pairwise.BATCH_BASES", 2000)
    got = run("pairwise", tmp_path / "p.tsv", "--mode", "extend", "--cigar", "-t", 3)
    assert want.code == got.code == 0 and want.out == got.out and want.out.count(b"\n") == 60


def test_pairwise_aligns_in_a_band(tmp_path, rng):
    """Of which the best alignment of this pair would need more."""
    one, other = random_bases(rng, 300), random_bases(rng, 200)
    (tmp_path / "p.tsv").write_text(f"{one + other}\t{other + one}\n")
    scores = []
    for options in (["--band", 900], ["--band", 2], ["--band", 256], []):
        outcome = run("pairwise", tmp_path / "p.tsv", "--cigar", *options)
        assert outcome.code == 0, outcome.err
        index, score, q_used, t_used, path = outcome.out.decode().split("\t")
        runs = [(letter, int(size)) for size, letter in re.findall(r"(\d+)([MID])", path)]
        plain = (2, -4, -1, AffineScoring()[2:6])
        assert naive_affine.path_score(one + other, other + one, runs, *plain) == (int(score), int(q_used), int(t_used))
        scores.append(int(score))
    assert scores[1] == scores[2] < scores[0] == scores[3]


@pytest.mark.parametrize(
    "text, options, code, message",
    [
        ("ACGT\n", [], 1, "1 columns instead of 2"),
        ("AC-T\tACGT\n", [], 1, "the query holds characters that are not letters"),
        ("", [], 1, "is empty"),
        ("A\tA\n", ["--mode", "near"], 2, "choose from global, extend, local"),
        ("A\tA\n", ["--mode", "local", "--band", "9"], 2, "may lie on any diagonal"),
        ("A\tA\n", ["--mode", "local", "--zdrop", "9"], 2, "only extensions end early"),
        (">a\nACGT\n", [], 1, "For FASTA or FASTQ give two files."),
        ("A\tA\n", ["--gap-open", "4,24", "--gap-extend", "2"], 2, "as many values"),
        ("A\tA\n", ["--gap-open", "x"], 2, "whole numbers"),
        ("A\tA\n", ["--zdrop", "9"], 2, "only extensions end early"),
        ("A\tA\n", ["--band", "0"], 2, "--band 0: must be from"),
        ("A\tA\n", ["--device", "gpu"], 2, "choose from auto, cpu, cuda"),
        ("A\tA\n", ["--mismatch", "3000"], 2, "must be from"),
    ],
)
def test_pairwise_tells_what_is_wrong(tmp_path, text, options, code, message):
    (tmp_path / "p.tsv").write_text(text)
    outcome = run("pairwise", tmp_path / "p.tsv", "-o", tmp_path / "out.tsv", *options)
    assert outcome.code == code and message in outcome.err and "Traceback" not in outcome.err
    assert not (tmp_path / "out.tsv").exists()


def test_one_value_means_one_piece(tmp_path):
    (tmp_path / "p.tsv").write_text("ACGTACGTACGTACGTACGT\tACGTACGTACACGTACGT\n")
    outcome = run("pairwise", tmp_path / "p.tsv", "--gap-open", "4", "--gap-extend", "2", "--cigar")
    assert outcome.out.decode().split("\t")[1] == "28"


# ---------------------------------------------------------------- local alignments, and pairs of files


def local_score(query, target, match, mismatch, unknown, costs):
    """The best score of any part with any part: the best extension of all suffixes."""
    best = 0
    for i in range(len(query)):
        for j in range(len(target)):
            h = naive_affine.table(query[i:], target[j:], match, mismatch, unknown, costs)
            best = max(best, naive_affine.extension(h)[0])
    return best


def local_lines(path, *options):
    outcome = run("pairwise", path, "--mode", "local", "--cigar", *options)
    assert outcome.code == 0, outcome.err
    return [line.split("\t") for line in outcome.out.decode().splitlines()]


def check_local(query, target, line, scores):
    """A path of that score between the ends that are told."""
    score, q_start, q_end, t_start, t_end = map(int, line[1:6])
    runs = [(letter, int(size)) for size, letter in re.findall(r"(\d+)([MID])", line[6])]
    found = naive_affine.path_score(query[q_start:q_end], target[t_start:t_end], runs, *scores)
    assert found == (score, q_end - q_start, t_end - t_start)


def test_local_alignments_are_those_of_all_tables(tmp_path, rng):
    """Two pieces of gap costs, on short pairs, against all beginnings and ends."""
    pairs = []
    for size in rng.integers(1, 14, 40).tolist():
        core = random_bases(rng, size)
        pairs.append((random_bases(rng, 3) + core + "N" * (size % 2), mutate(rng, core, 0.2) + random_bases(rng, 2)))
    pairs += [("ACGT", ""), ("AAAA", "CCCC"), ("", "")]
    (tmp_path / "p.tsv").write_text("".join(f"{q}\t{t}\n" for q, t in pairs))
    options = ("--match", 3, "--mismatch", -2, "--gap-open", "1,3", "--gap-extend", "2,1")
    scores = 3, -2, -1, (1, 2, 3, 1)
    for (query, target), line in zip(pairs, local_lines(tmp_path / "p.tsv", *options), strict=True):
        assert int(line[1]) == local_score(query, target, *scores)
        if int(line[1]):
            check_local(query, target, line, scores)
        else:
            assert line[2:] == ["0", "0", "0", "0", "cg:Z:"]


def test_local_alignments_score_what_parasail_says(tmp_path, rng):
    import parasail

    pairs = []
    for size in rng.integers(20, 1500, 60).tolist():
        core = random_bases(rng, size)
        pairs.append((random_bases(rng, 200) + core, mutate(rng, core, 0.15) + random_bases(rng, 300)))
    (tmp_path / "p.tsv").write_text("".join(f"{q}\t{t}\n" for q, t in pairs))
    options = ("--match", 2, "--mismatch", -4, "--gap-open", "4", "--gap-extend", "2")
    matrix = parasail.matrix_create("ACGT", 2, -4)
    for (query, target), line in zip(pairs, local_lines(tmp_path / "p.tsv", *options, "-t", 2), strict=True):
        assert int(line[1]) == parasail.sw_striped_32(query, target, 6, 2, matrix).score
        check_local(query, target, line, (2, -4, -1, (4, 2, 4, 2)))


@pytest.mark.parametrize("mode", ["global", "extend", "local"])
def test_two_files_of_pairs_give_what_lines_give(tmp_path, rng, mode):
    """With names in the place of the index; FASTQ and FASTA may be paired."""
    pairs = [(x := random_bases(rng, int(n)), mutate(rng, x, 0.1)) for n in rng.integers(1, 900, 40)]
    (tmp_path / "p.tsv").write_text("".join(f"{q}\t{t}\n" for q, t in pairs))
    (tmp_path / "q.fq").write_text("".join(f"@q{x} c\n{q}\n+\n{'I' * len(q)}\n" for x, (q, _) in enumerate(pairs)))
    (tmp_path / "t.fa").write_text("".join(f">t{x}\n{t}\n" for x, (_, t) in enumerate(pairs)))
    of_lines = run("pairwise", tmp_path / "p.tsv", "--mode", mode, "--cigar")
    of_files = run("pairwise", tmp_path / "q.fq", tmp_path / "t.fa", "--mode", mode, "--cigar")
    assert of_files.code == 0, of_files.err
    want = [line.split(b"\t")[1:] for line in of_lines.out.splitlines()]
    got = [line.split(b"\t") for line in of_files.out.splitlines()]
    assert [line[2:] for line in got] == want
    assert [(line[0], line[1]) for line in got] == [(b"q%d" % x, b"t%d" % x) for x in range(len(pairs))]


def test_files_of_different_numbers_are_refused(tmp_path):
    (tmp_path / "q.fa").write_text(">a\nACGT\n>b\nACGT\n")
    (tmp_path / "t.fa").write_text(">a\nACGT\n")
    for files in (("q.fa", "t.fa"), ("t.fa", "q.fa")):
        outcome = run("pairwise", *(tmp_path / name for name in files), "-o", tmp_path / "out.tsv")
        assert outcome.code == 1 and "t.fa: has 1 sequences, but" in outcome.err and not (tmp_path / "out.tsv").exists()
    outcome = run("pairwise", "-", "-")
    assert outcome.code == 2 and "standard input holds" in outcome.err
