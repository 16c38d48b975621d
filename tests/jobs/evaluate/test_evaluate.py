"""Tests of bellapy.jobs.evaluate.pipeline: against plain loops over all pairs, by hand-made cases, and on bad input."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
from itertools import combinations

import numpy as np
import pysam
import pytest
from cases import run as program
from hypothesis import given, settings
from hypothesis import strategies as st

from bellapy.errors import InputError, OutputError, ParameterError
from bellapy.jobs.evaluate import pipeline as evaluate
from bellapy.jobs.evaluate.pipeline import evaluate_overlaps
from bellapy.jobs.evaluate.truth import read_truth

KEYS = """lines pairs true_pairs tp fp grey fp_touching fp_disjoint precision_disjoint recall precision f1
strand_accuracy end_err_median end_err_p95 end_err_mean inner_end_err_median inner_end_err_p95 both_end_err_median
both_end_err_p95 covered_median covered_p5 covered_mean self_lines lines_outside_truth
lines_below_min_span lines_not_end_to_end lines_bad_coordinates
min_overlap grey_floor min_span reads_in_truth""".split()


# ---- an evaluator of plain loops, written from the definitions ----


def naive_shared(a, b):
    return max(0, min(a["end"], b["end"]) - max(a["start"], b["start"])) if a["ref"] == b["ref"] else 0


def naive_true_ends(read, start, end, length):
    first, last = (0, length) if read["part"] is None else read["part"][1:]
    scale = (last - first) / max(1, read["end"] - read["start"])
    if read["strand"] == "+":
        return first + (start - read["start"]) * scale, first + (end - read["start"]) * scale
    return first + (read["end"] - end) * scale, first + (read["end"] - start) * scale


def naive_lines(reads, lines, min_span, end_to_end):
    """Best line of each pair, and how many lines there were of each kind."""
    best, n_self, n_outside, n_short, n_inner, n_bad = {}, 0, 0, 0, 0, 0
    for line in lines:
        (query, ql, qs, qe), same, (target, tl, ts, te) = line
        if query == target:
            n_self += 1
            continue
        if min_span > 0 and qe - qs < min_span and te - ts < min_span:
            n_short += 1
            continue
        if query not in reads or target not in reads:
            n_outside += 1
            continue
        n_bad += qs < 0 or qe < qs or qe > ql or ts < 0 or te < ts or te > tl
        left, right = (ts, tl - te) if same else (tl - te, ts)
        if end_to_end is not None and (min(qs, left) > end_to_end or min(ql - qe, right) > end_to_end):
            n_inner += 1
            continue
        pair = frozenset((query, target))
        if pair not in best or qe - qs > best[pair][0][3] - best[pair][0][2]:
            best[pair] = line
    kinds = n_self, n_outside, n_short, n_inner, n_bad
    return best, dict(zip(KEYS[KEYS.index("self_lines") :], kinds, strict=False))


def naive_placement(reads, hits):
    n_right, query_errors, target_errors, inner, covered = 0, [], [], [], []
    for (query, ql, qs, qe), same, (target, tl, ts, te) in hits:
        a, b = reads[query], reads[target]
        if same != (a["strand"] == b["strand"]):
            continue
        n_right += 1
        start, end = max(a["start"], b["start"]), min(a["end"], b["end"])
        for read, length, got, errors in ((a, ql, (qs, qe), query_errors), (b, tl, (ts, te), target_errors)):
            for reported, expected in zip(got, naive_true_ends(read, start, end, length), strict=True):
                errors.append(abs(reported - expected))
                if 100 < expected < length - 100:
                    inner.append(abs(reported - expected))
        first, last = naive_true_ends(a, start, end, ql)
        covered.append(max(0, min(qe, last) - max(qs, first)) / max(1, last - first))
    return n_right, query_errors, query_errors + target_errors, inner, covered


def naive_evaluate(reads, lines, *, min_overlap, grey, min_span, end_to_end, bins):
    best, tally = naive_lines(reads, lines, min_span, end_to_end)
    all_pairs = {frozenset((a, b)): naive_shared(reads[a], reads[b]) for a, b in combinations(reads, 2)}
    n_true = sum(shared >= min_overlap for shared in all_pairs.values())
    hits = [line for pair, line in best.items() if all_pairs[pair] >= min_overlap]
    false = [all_pairs[pair] for pair in best if all_pairs[pair] < grey]
    tp, fp, disjoint = len(hits), len(false), false.count(0)
    precision, recall = tp / (tp + fp) if tp + fp else 0.0, tp / n_true if n_true else 0.0
    n_right, query_errors, both, inner, covered = naive_placement(reads, hits)

    def percentile(values, percent):
        return round(float(np.percentile(values, percent)), 1) if values else None

    figures = [len(lines), len(best), n_true, tp, fp, len(best) - tp - fp, fp - disjoint, disjoint]
    figures += [round(tp / (tp + disjoint), 5) if tp + disjoint else None, round(recall, 5), round(precision, 5)]
    figures += [round(2 * precision * recall / (precision + recall), 5) if tp else 0.0]
    figures += [round(n_right / tp, 5) if tp else None, percentile(query_errors, 50), percentile(query_errors, 95)]
    figures += [round(sum(query_errors) / len(query_errors), 1) if covered else None]
    figures += [percentile(values, percent) for values in (inner, both) for percent in (50, 95)]
    figures += [percentile(covered, 50), percentile(covered, 5)]
    figures += [round(sum(covered) / len(covered), 4) if covered else None]
    result = dict(zip(KEYS, [*figures, *tally.values(), min_overlap, grey, min_span, len(reads)], strict=True))
    if bins:
        result["recall_by_true_overlap"] = by_bin = {}
        for low, high in zip(bins, [*bins[1:], None], strict=True):
            pairs = [p for p, n in all_pairs.items() if n > 0 and n >= low and (high is None or n < high)]
            found = sum(pair in best for pair in pairs)
            by_bin[f"{low}-{high or ''}"] = [len(pairs), round(found / len(pairs), 4) if pairs else None]
    return result, [line for pair, line in best.items() if all_pairs[pair] < grey]


# ---- writing small cases ----


def write_truth(path, reads):
    with open(path, "w") as stream:
        for name, read in reads.items():
            print(
                name,
                read["ref"],
                read["start"],
                read["end"],
                read["strand"],
                *read["part"] or (),
                sep="\t",
                file=stream,
            )


def format_line(line, overlap_format):
    (query, ql, qs, qe), same, (target, tl, ts, te) = line
    if overlap_format == "paf":
        columns = (query, ql, qs, qe, "+" if same else "-", target, tl, ts, te, 9, 10, 255, "tp:A:S", "cm:i:3")
    else:
        ts, te = (ts, te) if same else (tl - te, tl - ts)
        columns = (query, target, 3, 50, 900, "n" if same else "c", qs, qe, ql, ts, te, tl)
    return "\t".join(map(str, columns)) + "\n"


def write_lines(path, lines, overlap_format="paf"):
    path.write_text("".join(format_line(line, overlap_format) for line in lines))
    return path


@st.composite
def truths(draw):
    reads = {}
    for i in range(draw(st.integers(1, 9))):
        start, length = draw(st.integers(0, 500)), draw(st.integers(0, 900))
        strand, part = draw(st.sampled_from("+-")), None
        if draw(st.booleans()):
            before, inside, after = draw(st.tuples(st.integers(0, 40), st.integers(0, 900), st.integers(0, 40)))
            part = (before + inside + after, before, before + inside)
        ref = draw(st.sampled_from(["chr2", "chr1"]))
        reads[f"read{i}"] = {"ref": ref, "start": start, "end": start + length, "strand": strand, "part": part}
    return reads


@st.composite
def overlap_lines(draw, names):
    def side():
        length, start = draw(st.integers(1, 900)), draw(st.integers(-2, 600))
        return (draw(st.sampled_from(names)), length, start, start + draw(st.integers(-2, 600)))

    return [(side(), draw(st.booleans()), side()) for _ in range(draw(st.integers(0, 25)))]


@settings(max_examples=250, deadline=None)
@given(data=st.data(), overlap_format=st.sampled_from(["paf", "bella"]), chunk=st.integers(1, 30))
def test_agrees_with_plain_loops(tmp_path_factory, data, overlap_format, chunk):
    folder = tmp_path_factory.getbasetemp()
    reads = data.draw(truths())
    lines = data.draw(overlap_lines([*reads, "stranger"]))
    min_overlap = data.draw(st.integers(1, 500))
    options = {
        "min_overlap": min_overlap,
        "grey": data.draw(st.integers(0, min_overlap)),
        "min_span": data.draw(st.sampled_from([0, 1, 150])),
        "end_to_end": data.draw(st.sampled_from([None, 0, 100])),
        "bins": data.draw(st.lists(st.integers(1, 600), max_size=3)),
    }
    expected, false = naive_evaluate(reads, lines, **options)
    write_truth(folder / "t.tsv", reads)
    path = write_lines(folder / "overlaps", lines, overlap_format)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluate, "CHUNK_LINES", chunk)
        truth = read_truth(folder / "t.tsv")
        got = evaluate_overlaps(truth, path, overlap_format=overlap_format, false_pairs=folder / "false", **options)
    assert got == expected
    assert list(got) == list(expected)
    rows = [(q[0], t[0], *q[1:], "+" if same else "-", *t[1:]) for q, same, t in false]
    assert (folder / "false").read_text() == "".join("\t".join(map(str, row)) + "\n" for row in rows)


# ---- one figure at a time ----

# a and b share 2000..5000, a and c share 4000..5000, b and c share 4000..8000, d is elsewhere, e touches c by 100
TRUTH = """#read\tref\tstart\tend\tstrand
a\tchr\t0\t5000\t+
b\tchr\t2000\t8000\t-
c\tchr\t4000\t9000\t+

d\tother\t0\t5000\t+
e\tchr\t8900\t9900\t+
"""
AB = (("a", 5000, 2000, 5000), False, ("b", 6000, 3000, 6000))
AC = (("a", 5000, 4000, 5000), True, ("c", 5000, 0, 1000))
BC = (("b", 6000, 0, 4000), False, ("c", 5000, 0, 4000))
AD = (("a", 5000, 0, 3000), True, ("d", 5000, 0, 3000))
CE = (("c", 5000, 4900, 5000), True, ("e", 1000, 0, 100))


@pytest.fixture
def judge(tmp_path):
    """Evaluate lines against TRUTH."""
    (tmp_path / "truth.tsv").write_text(TRUTH)

    def run(*lines, overlap_format="paf", **options):
        path = write_lines(tmp_path / "overlaps", lines, overlap_format)
        return evaluate_overlaps(read_truth(tmp_path / "truth.tsv"), path, overlap_format=overlap_format, **options)

    return run


def moved(line, query=(0, 0), target=(0, 0), flip=False):
    (q, ql, qs, qe), same, (t, tl, ts, te) = line
    return (q, ql, qs + query[0], qe + query[1]), same != flip, (t, tl, ts + target[0], te + target[1])


PERFECT = {"lines": 2, "pairs": 2, "tp": 2, "fp": 0, "recall": 1.0, "precision": 1.0, "f1": 1.0, "strand_accuracy": 1.0}
CASES = {
    "perfect": ([AB, BC], {}, PERFECT | {"end_err_p95": 0.0, "both_end_err_p95": 0.0, "covered_p5": 1.0}),
    "nothing": (
        [],
        {},
        {"lines": 0, "true_pairs": 2, "recall": 0.0, "precision": 0.0, "f1": 0.0, "covered_mean": None},
    ),
    "half recall": ([AB], {}, {"true_pairs": 2, "tp": 1, "recall": 0.5, "precision": 1.0, "f1": 0.66667}),
    "pair on several lines": ([AB, AB[::-1], BC], {}, PERFECT | {"lines": 3}),
    "longest line counts": ([moved(AB, (1000, 0)), AB], {}, {"pairs": 1, "end_err_p95": 0.0}),
    "first of equals counts": ([AB, moved(AB, (-9, -9))], {}, {"pairs": 1, "end_err_p95": 0.0}),
    "grey": ([AB, BC, AC], {}, PERFECT | {"lines": 3, "pairs": 3, "grey": 1}),
    "grey made true": ([AB, BC, AC], {"min_overlap": 1000}, {"true_pairs": 3, "tp": 3, "grey": 0}),
    "grey made false": ([AC], {"grey": 1001}, {"grey": 0, "fp": 1, "fp_touching": 1, "fp_disjoint": 0}),
    "false": ([AB, AD, CE], {}, {"fp": 2, "fp_touching": 1, "fp_disjoint": 1, "precision_disjoint": 0.5}),
    "precision": ([AB, BC, AD, CE], {}, {"precision": 0.5, "recall": 1.0, "f1": 0.66667}),
    "wrong strand": ([AB, moved(BC, flip=True)], {}, {"tp": 2, "strand_accuracy": 0.5, "end_err_mean": 0.0}),
    "only wrong strand": ([moved(AB, flip=True)], {}, {"strand_accuracy": 0.0, "end_err_median": None}),
    "query ends": ([moved(AB, (10, -30))], {}, {"end_err_median": 20.0, "end_err_mean": 20.0, "end_err_p95": 29.0}),
    "target ends": ([moved(AB, target=(40, 0))], {}, {"end_err_p95": 0.0, "both_end_err_p95": 34.0}),
    "inner ends": ([moved(AB, (7, -50), (7, -50))], {}, {"inner_end_err_median": 7.0, "inner_end_err_p95": 7.0}),
    "covered": ([moved(AB, (300, 0))], {}, {"covered_mean": 0.9, "covered_median": 0.9, "covered_p5": 0.9}),
    "self": ([AB, (AB[0], True, AB[0])], {}, {"lines": 2, "pairs": 1, "self_lines": 1}),
    "unknown self": ([(("x", 9, 0, 9), True, ("x", 9, 0, 9))], {}, {"self_lines": 1, "lines_outside_truth": 0}),
    "outside": ([AB, (AB[0], True, ("x", 9, 0, 9))], {}, {"pairs": 1, "lines_outside_truth": 1}),
    "bad coordinates": ([moved(AB, (0, 1)), moved(BC, target=(-1, 0))], {}, {"tp": 2, "lines_bad_coordinates": 2}),
    "min_span keeps": ([moved(AB, (2000, 0))], {"min_span": 3000}, {"pairs": 1}),
    "min_span drops": ([AB, AC], {"min_span": 1001}, {"lines": 2, "pairs": 1, "grey": 0, "lines_below_min_span": 1}),
    "end_to_end keeps": ([moved(AB, (100, -100), (100, -100))], {"end_to_end": 100}, {"pairs": 1}),
    "end_to_end drops left": ([moved(AB, target=(0, -101))], {"end_to_end": 100}, {"pairs": 0}),
    "end_to_end drops right": ([moved(AB, (0, -101))], {"end_to_end": 100}, {"pairs": 0}),
    "end_to_end minds strand": ([BC, moved(AB, flip=True)], {"end_to_end": 0}, {"pairs": 1, "tp": 1}),
}


@pytest.mark.parametrize("overlap_format", ["paf", "bella"])
@pytest.mark.parametrize("case", CASES)
def test_figure(judge, case, overlap_format):
    lines, options, expected = CASES[case]
    got = judge(*lines, overlap_format=overlap_format, **options)
    assert {key: got[key] for key in expected} == expected


def test_keys_in_order_and_fit_for_json(judge):
    got = judge(AB, AD, bins=(500, 3500))
    assert list(got) == [*KEYS, "recall_by_true_overlap"]
    assert json.loads(json.dumps(got)) == got


@pytest.mark.parametrize(
    ("bins", "expected"),
    [
        ((1,), {"1-": [4, 0.5]}),
        ((0, 500, 3000, 3001), {"0-500": [1, 0.0], "500-3000": [1, 0.0], "3000-3001": [1, 1.0], "3001-": [1, 1.0]}),
        ((5000, 100), {"5000-100": [0, None], "100-": [4, 0.5]}),
    ],
)
def test_recall_by_bin(judge, bins, expected):
    assert judge(AB, BC, AD, bins=bins)["recall_by_true_overlap"] == expected


def test_true_ends_follow_the_aligned_part_of_the_read(tmp_path):
    # 10 bases before the place, and 1.5 read bases a reference base; b has 1 and 20 after, on the reverse strand
    (tmp_path / "t.tsv").write_text("a\tchr\t0\t2000\t+\t3030\t10\t3010\nb\tchr\t1000\t3000\t-\t2020\t20\t2020\n")
    line = ("a", 3030, 1510, 3010), False, ("b", 2020, 1020, 2020)
    got = evaluate_overlaps(read_truth(tmp_path / "t.tsv"), write_lines(tmp_path / "o", [line]), min_overlap=1000)
    assert (got["tp"], got["strand_accuracy"], got["both_end_err_p95"], got["covered_mean"]) == (1, 1.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("start", "length", "inner"),
    [(101, 2202, 8.7), (100, 2201, 9.0), (101, 2201, 3.0), (100, 2200, None)],
    ids=["both inside", "end inside", "start inside", "neither"],
)
def test_inner_ends_start_beyond_the_margin(tmp_path, start, length, inner):
    truth = f"a\tchr\t0\t2000\t+\t2100\t0\t2000\nb\tchr\t0\t2000\t+\t{length}\t{start}\t{start + 2000}\n"
    (tmp_path / "t.tsv").write_text(truth)
    line = ("a", 2100, 50, 1950), True, ("b", length, start + 3, start + 2000 - 9)
    got = evaluate_overlaps(read_truth(tmp_path / "t.tsv"), write_lines(tmp_path / "o", [line]))
    assert got["inner_end_err_p95"] == inner


def test_figures_of_parts_of_reads(tmp_path):
    (tmp_path / "t.tsv").write_text("fwd\tchr\t100\t225\t+\t114\t10\t110\nrev\tchr\t50\t202\t-\t180\t20\t170\n")
    line = ("fwd", 114, 12, 90), False, ("rev", 180, 70, 150)
    got = evaluate_overlaps(read_truth(tmp_path / "t.tsv"), write_lines(tmp_path / "o", [line]), min_overlap=50, grey=10)
    # they share 100..202: on fwd (0.8 read bases a reference base) 10..91.6, on rev (150/152) 20..120.66
    figures = ("tp", "strand_accuracy", "end_err_mean", "both_end_err_p95", "covered_mean")
    assert [got[key] for key in figures] == [1, 1.0, 1.8, 46.9, 0.9559]


# ---- formats ----


@pytest.mark.parametrize("suffix", ["", ".gz", ".bgz"])
def test_compressed_overlaps(judge, tmp_path, suffix):
    (tmp_path / "truth.tsv").write_text(TRUTH)
    text = format_line(AB, "paf") + format_line(BC, "paf")
    path = tmp_path / f"o.paf{suffix}"
    path.write_bytes(gzip.compress(text.encode()) if suffix else text.encode())
    assert evaluate_overlaps(read_truth(tmp_path / "truth.tsv"), path) == judge(AB, BC)


def test_a_cut_last_line_is_told(tmp_path):
    """Whatever its last column is then; lines before it would be judged as if nothing was missing."""
    (tmp_path / "t.tsv").write_text("a\tg\t0\t2000\t+\nb\tg\t100\t2100\t+\n")
    line = "a\t2000\t100\t2000\t+\tb\t2000\t0\t1900\t1900\t1900\t255\n"
    for text, truth, told in ((line, True, None), (line[:-1], True, "o.paf: line 1"), (line[:-3], True, "o.paf: line 1"),
                              (line, False, "t.tsv: line 2")):  # fmt: skip
        (tmp_path / "o.paf").write_text(text)
        if not truth:
            (tmp_path / "t.tsv").write_text((tmp_path / "t.tsv").read_text()[:-1])
        outcome = program("evaluate", tmp_path / "o.paf", "--truth", tmp_path / "t.tsv")
        assert outcome.code == (told is not None), outcome.err
        assert told is None or (told in outcome.err and "may be cut short" in outcome.err)


def test_overlaps_cut_between_blocks_of_bgzip(tmp_path):
    """No line is cut: only the block that ends such files, which is missing, tells of it."""
    (tmp_path / "truth.tsv").write_text(TRUTH)
    with pysam.BGZFile(str(tmp_path / "o.paf.gz"), "wb") as packed:
        packed.write((format_line(AB, "paf") + format_line(BC, "paf")).encode())
    whole = (tmp_path / "o.paf.gz").read_bytes()
    first_block = int.from_bytes(whole[16:18], "little") + 1
    assert first_block < len(whole)
    (tmp_path / "o.paf.gz").write_bytes(whole[:first_block])
    with pytest.raises(InputError, match="end-of-file block of bgzip is missing"):
        evaluate_overlaps(read_truth(tmp_path / "truth.tsv"), tmp_path / "o.paf.gz")


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_standard_input(judge, tmp_path, monkeypatch, pack):
    expected = judge(AB, BC)
    data = io.BytesIO(pack((tmp_path / "overlaps").read_bytes()))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(data)))
    assert evaluate_overlaps(read_truth(tmp_path / "truth.tsv"), "-") == expected
    assert not sys.stdin.buffer.closed


def test_names_of_any_bytes(tmp_path):
    (tmp_path / "t.tsv").write_bytes(b"\xe9\tchr\t0\t3000\t+\nb\tchr\t0\t3000\t+\n")
    (tmp_path / "o.paf").write_bytes(b"\xe9\t3000\t0\t3000\t+\tb\t3000\t0\t3000\t1\t1\t1\n")
    truth = read_truth(tmp_path / "t.tsv")
    got = evaluate_overlaps(truth, tmp_path / "o.paf", min_overlap=3001, grey=3001, false_pairs=tmp_path / "f")
    assert got["fp"] == 1
    assert (tmp_path / "f").read_bytes() == b"\xe9\tb\t3000\t0\t3000\t+\t3000\t0\t3000\n"


def test_compressed_false_pairs(judge, tmp_path):
    judge(AB, AD, false_pairs=tmp_path / "false.gz")
    assert gzip.decompress((tmp_path / "false.gz").read_bytes()) == b"a\td\t5000\t0\t3000\t+\t5000\t0\t3000\n"


def test_false_pairs_are_whole_or_as_they_were(judge, tmp_path, monkeypatch):
    def fail(source, _):
        assert os.path.getsize(source) > 0
        raise OSError("no more room")

    (tmp_path / "false").write_text("before\n")
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OutputError, match="false: no more room"):
        judge(AD, false_pairs=tmp_path / "false")
    assert (tmp_path / "false").read_text() == "before\n"
    assert not list(tmp_path.glob("*.tmp"))


def test_numba_is_not_imported():
    code = "import sys, bellapy.jobs.evaluate.pipeline; sys.exit('numba' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- bad input ----

GOOD = format_line(AB, "paf")
BAD_OVERLAPS = {
    "few columns": (GOOD + "a\t5000\t0\n", "line 2: 3 columns where 12"),
    "blank line": (GOOD + "\n" + GOOD, "line 2: 1 columns"),
    "not a number": (GOOD * 3 + GOOD.replace("2000", "2e3"), "line 4: column 3 is '2e3'"),
    "too large": (GOOD.replace("6000", str(1 << 64)), "line 1: column 7"),
    "first of two": (GOOD.replace("2000", "x") + "short\n", "line 1: column 3"),
    "bella as paf": (format_line(AB, "bella"), "line 1: the strand is"),
}


@pytest.mark.parametrize("chunk", [1, 2, 1000])
@pytest.mark.parametrize("case", BAD_OVERLAPS)
def test_bad_overlaps(tmp_path, monkeypatch, case, chunk):
    monkeypatch.setattr(evaluate, "CHUNK_LINES", chunk)
    text, message = BAD_OVERLAPS[case]
    (tmp_path / "t.tsv").write_text(TRUTH)
    (tmp_path / "o.paf").write_text(text)
    with pytest.raises(InputError, match=message):
        evaluate_overlaps(read_truth(tmp_path / "t.tsv"), tmp_path / "o.paf")


def test_files_that_cannot_be_used(judge, tmp_path):
    (tmp_path / "cut.paf.gz").write_bytes(gzip.compress(np.random.default_rng(1).bytes(9999))[:-2000])
    (tmp_path / "t.tsv").write_text(TRUTH)
    for name in ("missing.paf", ".", "cut.paf.gz"):
        with pytest.raises(InputError):
            evaluate_overlaps(read_truth(tmp_path / "t.tsv"), tmp_path / name)
    with pytest.raises(OutputError, match="no_folder"):
        judge(AB, false_pairs=tmp_path / "no_folder" / "false")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_overlap": 0}, "--min-overlap 0: "),
        ({"min_overlap": 400, "grey": 401}, r"--grey 401: .*--min-overlap \(400\)"),
        ({"grey": -1}, "--grey -1: "),
        ({"min_span": -1}, "--min-span -1: "),
        ({"end_to_end": -1}, "--end-to-end -1: "),
        ({"overlap_format": "sam"}, "--format sam: .*paf, bella"),
    ],
)
def test_options_out_of_range(tmp_path, options, message):
    (tmp_path / "t.tsv").write_text(TRUTH)
    with pytest.raises(ParameterError, match=message):
        evaluate_overlaps(read_truth(tmp_path / "t.tsv"), tmp_path / "never_opened", **options)
