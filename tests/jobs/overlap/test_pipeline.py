"""The whole job: planted overlaps are found, and nothing but reads and parameters decides the output."""

from __future__ import annotations

import gzip
import json
from dataclasses import fields
from functools import partial

import naive
import numpy as np
import pytest
from cases import Sample, accuracy, noisy_copy, parse_paf, roomy, run, sample_reads
from numpy.testing import assert_array_equal
from strategies import random_bases

from bellapy.api import stages
from bellapy.compute.columns import begins_of_runs
from bellapy.engines import extend as xdrop
from bellapy.engines.linear import extend_cpu as batch_cpu
from bellapy.io import fastx_blocks, paf
from bellapy.io.fastx import load_reads
from bellapy.jobs.overlap import candidates, counting, products
from bellapy.jobs.overlap.canonical import canonical_reads
from bellapy.jobs.overlap.linking import ORDINARY
from bellapy.jobs.overlap.pipeline import in_memory, run_counting
from bellapy.jobs.overlap.products import multiply
from bellapy.jobs.overlap.report import start_report
from bellapy.params import make_params
from bellapy.records import ReadSet
from bellapy.report.run_report import RunReport
from bellapy.seeding import kmers
from bellapy.seeding.kmers import count_kmers

STAGES = ("count", "candidates", "align", "filter")


def repeat_genome() -> str:
    """40 kb with three copies of 1,500 bases, one of them reversed."""
    rng = np.random.default_rng(5)
    repeat, unique = random_bases(rng, 1500), random_bases(rng, 40_000)
    turned = naive.reverse_complement(repeat)
    return unique[:8000] + repeat + unique[8000:16_000] + repeat + unique[16_000:30_000] + turned + unique[30_000:]


@pytest.fixture(scope="module")
def samples() -> dict[str, Sample]:
    return {
        "noisy": sample_reads(1, error=0.12),
        "noisier": sample_reads(2, error=0.15),
        "accurate": sample_reads(3, error=0.01),
        "repeats": sample_reads(4, repeat_genome(), error=0.12),
        "accurate repeats": sample_reads(4, repeat_genome(), error=0.01),
    }


@pytest.fixture
def overlap(tmp_path):
    """A function that writes reads, runs `overlap` on them and returns lines, report and messages."""

    def overlap_sample(sample: Sample | list[str], *options):
        fasta = sample.fasta() if isinstance(sample, Sample) else "".join(f">r{i}\n{s}\n" for i, s in enumerate(sample))
        (tmp_path / "reads.fa").write_text(fasta)
        outcome = run("overlap", tmp_path / "reads.fa", "-t", 1, "--report", tmp_path / "report.json", *options)
        assert outcome.code == 0, outcome.err
        return parse_paf(outcome.out), json.loads((tmp_path / "report.json").read_text()), outcome.err

    return overlap_sample


# ---------------------------------------------------------------- truth


@pytest.mark.parametrize(
    ("name", "least_recall", "least_precision"),
    [
        ("noisy", 0.995, 0.999),
        ("noisier", 0.99, 0.999),
        ("accurate", 0.995, 1),
        ("repeats", 0.99, 0.96),
        ("accurate repeats", 0.98, 0.999),
    ],
)
def test_planted_overlaps_are_found(overlap, samples, name, least_recall, least_precision):
    recall, precision = accuracy(samples[name], overlap(samples[name], "--min-overlap", 500)[0])
    assert recall >= least_recall, recall
    assert precision >= least_precision, precision


@pytest.mark.parametrize("options", [[], ["--cigar", "--trim-identity", "0.5"]], ids=len)
def test_overlaps_of_short_reads_are_found(overlap, options):
    sample = sample_reads(5, genome=12_000, depth=15, mean=900, error=0.1)
    lines, _, said = overlap(sample, *options)
    assert "overlaps from" in said
    recall, precision = accuracy(sample, lines, 450, 100)
    assert recall >= 0.98, recall
    assert precision >= 0.999, precision


@pytest.mark.parametrize("name", ["noisy", "accurate"])
@pytest.mark.parametrize(
    "options",
    [
        ["--homopolymer"],
        ["--sampling", "minimizer", "--sampling-window", "4"],
        ["--sampling", "syncmer", "--sampling-window", "4"],
        ["--sampling", "fraction", "--sampling-window", "2"],
        ["--sampling", "none"],
        ["--extension", "longest"],
        ["--skip-alignment"],
        ["-k", "14"],
        ["-k", "12", "--upper", "30"],
        ["--preset", "ont"],
        ["--match", "2", "--mismatch", "-3", "--gap", "-2", "-x", "40"],
        ["--depth", "12"],
    ],
    ids=" ".join,
)
def test_variants_find_planted_overlaps(overlap, samples, name, options):
    recall, precision = accuracy(samples[name], overlap(samples[name], *options)[0])
    assert recall >= 0.985, recall
    assert precision >= 0.99, precision


@pytest.mark.parametrize("k", [20, 21, 31])
def test_long_kmers(overlap, samples, k):
    recall, precision = accuracy(samples["accurate"], overlap(samples["accurate"], "-k", k)[0])
    assert recall >= 0.99 and precision == 1, (recall, precision)
    _, precision = accuracy(samples["noisy"], overlap(samples["noisy"], "-k", k)[0])
    assert precision >= 0.99, precision


@pytest.mark.parametrize(("name", "tolerance"), [("noisy", 60), ("accurate", 25)])
def test_strands_and_ends_are_those_planted(overlap, samples, name, tolerance):
    sample = samples[name]
    errors = []
    for line in overlap(sample)[0]:
        start, end = max(sample.start[[line.query, line.target]]), min(sample.end[[line.query, line.target]])
        assert line.strand == sample.strand[line.query] * sample.strand[line.target]
        assert line.query < line.target
        assert line.query_length == len(sample.sequences[line.query])
        assert line.target_length == len(sample.sequences[line.target])
        assert 0 <= line.query_start < line.query_end <= line.query_length
        assert 0 <= line.target_start < line.target_end <= line.target_length
        query, target = sample.interval(line.query, start, end), sample.interval(line.target, start, end)
        ends = line.query_start, line.query_end, line.target_start, line.target_end
        errors += [abs(a - b) for a, b in zip(ends, (*query, *target), strict=True)]
        assert line.matches <= line.columns
        assert max(line.query_end - line.query_start, line.target_end - line.target_start) <= 1.2 * line.columns
    assert np.percentile(errors, 98) <= tolerance
    assert np.median(errors) <= tolerance / 4


@pytest.mark.parametrize("strand", [1, -1])
def test_very_long_reads(overlap, strand):
    rng = np.random.default_rng(11)
    genome = random_bases(rng, 300_000)
    first, first_places = noisy_copy(rng, genome[:200_000], 0.05)
    second, second_places = noisy_copy(rng, genome[100_000:], 0.05)
    if strand < 0:
        second, second_places = naive.reverse_complement(second), len(second) - second_places
    lines, _, _ = overlap([first, second], "-k", 17)
    assert len(lines) == 1
    line = lines[0]
    target = sorted((second_places[0], second_places[100_000]))
    assert (line.strand, line.query_end, line.query_length, line.target_length) == (
        strand,
        len(first),
        len(first),
        len(second),
    )
    got = np.array([line.query_start, line.target_start, line.target_end])
    assert abs(got - [first_places[100_000], *target]).max() <= 50
    kept = 1 - 0.05 / 3 * 1.75  # of three kinds of error insertions cost no base, and a quarter of substitutions change none
    assert line.matches == pytest.approx(100_000 * kept**2, rel=0.005)


# ---------------------------------------------------------------- what does not change the output


@pytest.fixture(scope="module")
def reference(samples, tmp_path_factory):
    """Reads with repeats, errors, N, empty and short ones as a file, and their overlaps."""
    folder = tmp_path_factory.mktemp("reference")
    sample = samples["repeats"]
    chosen = sample.sequences[:70] + ["", "ACGT", "N" * 3000, "ACGTACGTACGTACGT", sample.sequences[0][:1000] + "N" * 50]
    (folder / "reads.fa").write_text("".join(f">r{i}\n{sequence}\n" for i, sequence in enumerate(chosen)))
    outcome = run("overlap", folder / "reads.fa", "-t", 1)
    assert outcome.code == 0 and len(outcome.out.splitlines()) > 200
    return folder / "reads.fa", outcome.out


def same(reference, *options) -> bool:
    path, expected = reference
    return run("overlap", path, *(options or ["-t", 1])).out == expected


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_do_not_matter(reference, threads):
    assert same(reference, "-t", threads)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("sampling", ["minimizer", "syncmer"])
def test_threads_do_not_matter_with_sampling(reference, sampling, threads):
    options = ["--sampling", sampling, "--sampling-window", 3, "--homopolymer", "--extension", "longest"]
    assert run("overlap", reference[0], *options, "-t", threads).out == run("overlap", reference[0], *options, "-t", 3).out


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("block", "group"), [(1, 1), (7, 100), (1000, 3), (1 << 30, 1 << 30)])
def test_blocks_do_not_matter(reference, monkeypatch, block, group, threads):
    monkeypatch.setattr(candidates, "multiply", partial(multiply, block_products=block, group_products=group))
    assert same(reference, "-t", threads)


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (products, "BLOCK_QUERIES", 1),
        (products, "BLOCK_QUERIES", 5),
        (xdrop, "BATCH_SEEDS", 7),
        (xdrop, "BATCH_SEEDS", 100),
        (batch_cpu, "BATCH", 1),
        (batch_cpu, "BATCH", 65),
        (kmers, "PARTITION_WORDS", 64),
        (kmers, "PARTITION_WORDS", 1 << 30),
        (kmers, "PASS_PARTITIONS", 1),
        (paf, "CHUNK", 1),
        (fastx_blocks, "BLOCK_SIZE", 1000),
    ],
)
def test_sizes_of_pieces_do_not_matter(reference, monkeypatch, module, name, value):
    monkeypatch.setattr(module, name, value)
    assert same(reference, "-t", 2)


@pytest.mark.parametrize("words", [1, 5000, 1 << 40])
def test_passes_do_not_matter(reference, monkeypatch, words):
    monkeypatch.setattr(counting, "count_kmers", partial(count_kmers, pass_words=words))
    assert same(reference)


@pytest.mark.parametrize(("options", "n_known"), [([], 1), (["-k", 15], 1), (["--lower", 3], 0), (roomy, 0)])
def test_what_the_sample_counted_does_not_matter(reference, monkeypatch, options, n_known):
    """K-mers that were counted to learn about the reads are not counted again, where they are some of those wanted."""
    options = options() if callable(options) else options
    given = []

    def count(*arguments, share, **others):
        given.append(share.known)
        return count_kmers(*arguments, share=share._replace(known=None), **others)

    expected = run("overlap", reference[0], *options, "-t", 1).out
    monkeypatch.setattr(counting, "count_kmers", count)
    assert same((reference[0], expected), *options, "-t", 1)
    assert len(given) == 2 and sum(known is not None for known in given) == n_known


def test_packaging_of_the_reads_does_not_matter(reference, tmp_path):
    path, expected = reference
    text = path.read_bytes()
    middle = text.index(b">r30\n")
    (tmp_path / "a.fa.gz").write_bytes(gzip.compress(text[:middle]))
    records = [record.split(b"\n")[:2] for record in text[middle + 1 :].split(b">")]
    (tmp_path / "b.fq").write_bytes(b"".join(b"@%s\n%s\n+\n%s\n" % (name, s, b"I" * len(s)) for name, s in records))
    assert run("overlap", tmp_path / "a.fa.gz", tmp_path / "b.fq").out == expected
    assert run("overlap", tmp_path / "a.fa.gz", "-", stdin=text[middle:].lower().replace(b">R", b">r")).out == expected


@pytest.mark.parametrize("suffix", ["paf", "paf.gz"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"count": ["-k", "14", "--lower", "3", "--upper", "20"], "candidates": ["--min-support", "3"]},
        {"count": ["--homopolymer", "-e", "0.12"], "align": ["--match", "2", "--gap", "-2", "-x", "25"]},
        {"candidates": ["--density", "0.3", "--max-copies", "2"], "filter": ["--format", "bella", "--min-identity", "0.7"]},
        {"count": ["--sampling", "syncmer"], "align": ["--extension", "longest"], "filter": ["--max-overhang", "100"]},
        {"candidates": ["--min-overlap", "900"], "filter": ["--min-overlap", "900"], "align": ["--delta", "0.3"]},
    ],
)
def test_stages_through_files_give_the_same(reference, tmp_path, options, suffix):
    path, _ = reference
    every = [word for stage in STAGES for word in options.get(stage, [])]
    last = "filter", "--alignments", tmp_path / "align"
    if "--delta" in every:
        options = {**options, "filter": [*options["filter"], "--delta", "0.3"]}
    for command in (
        ["overlap", path, *every, "-o", tmp_path / f"whole.{suffix}"],
        ["count", path, "-o", tmp_path / "count", *options.get("count", [])],
        ["candidates", path, "--kmers", tmp_path / "count", "-o", tmp_path / "candidates", *options.get("candidates", [])],
        ["align", path, "--seeds", tmp_path / "candidates", "-o", tmp_path / "align", *options.get("align", [])],
        [*last, path, "-o", tmp_path / f"pieces.{suffix}", *options.get("filter", [])],
    ):
        assert run(*command).code == 0
    whole = (tmp_path / f"whole.{suffix}").read_bytes()
    assert whole == (tmp_path / f"pieces.{suffix}").read_bytes()
    assert len(whole) > 1000


def test_rows_of_stage_files_may_come_in_any_order(reference, rng):
    """Of seeds those of a candidate stay together, the best one first; of alignments none need stay where it was."""
    reads, params = canonical_reads(load_reads([str(reference[0])]))[0], make_params(threads=1, device="cpu")
    counted = stages.count_stage(reads, params, start_report(RunReport()))
    seeds, found = stages.candidates_stage(reads, counted, params, start_report(RunReport())), []
    of_candidate = rng.permutation(len(seeds))[np.cumsum(begins_of_runs(*seeds.pairs)) - 1]
    for of_seeds, of_alignments in ((np.zeros(len(seeds)), np.arange), (of_candidate, rng.permutation)):
        some, about = seeds.take(np.argsort(of_seeds, kind="stable")), (counted.estimate, params, start_report(RunReport()))
        its_seeds, extensions, _ = stages.align_stage(reads, some, *about)
        rows = of_alignments(len(its_seeds))
        found.append(stages.filter_stage(reads, its_seeds.take(rows), extensions.take(rows), *about))
    assert len(found[0]) > 100
    for f in fields(found[0]):
        assert_array_equal(getattr(found[0], f.name), getattr(found[1], f.name), f.name)


def test_lines_are_in_order_of_the_reads(reference):
    lines = [line.split(b"\t") for line in reference[1].splitlines()]
    keys = [(int(line[0][1:]), int(line[5][1:]), line[4] == b"+") for line in lines]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)


def test_order_of_the_reads_does_not_matter_to_what_is_found(samples, overlap):
    sample = samples["noisy"]
    sequences = sample.sequences[:60]
    forth, back = overlap(sequences)[0], overlap(sequences[::-1])[0]
    turned = {(59 - line.target, 59 - line.query, line.strand) for line in back}
    found = {(line.query, line.target, line.strand) for line in forth}
    assert len(found ^ turned) <= 0.01 * len(found)


# ---------------------------------------------------------------- odd input

RANDOM = random_bases(np.random.default_rng(2), 9000)
SHORT, RARE, UNKNOWN = "no read is as long as k", "no 17-mer occurs 2 to", "of the bases are unknown"
ODD = {
    "one read": ([RANDOM], RARE),
    "unrelated": ([RANDOM[:4000], RANDOM[4000:8000], RANDOM[8000:]], RARE),
    "empty": (["", "", ""], SHORT),
    "short": (["ACGT", "ACGTACGTA", ""], SHORT),
    "only N": (["N" * 5000, "N" * 5000], UNKNOWN),
    "one base over and over": (["A" * 3000, "A" * 3000, "T" * 3000], None),
    "two bases over and over": (["AC" * 2000, "AC" * 1900], None),
}
WAYS = [[], ["--skip-alignment"], ["--homopolymer"], ["--sampling", "minimizer"], ["--sampling", "syncmer"]]


@pytest.mark.parametrize("options", WAYS, ids=" ".join)
@pytest.mark.parametrize("name", ODD)
def test_odd_reads(overlap, name, options):
    sequences, warning = ODD[name]
    lines, report, messages = overlap(sequences, "-k", 17, *options)
    assert report["stages"][0]["reads"] == len(sequences)
    if warning:
        assert lines == []
        assert "no overlaps" in messages
        assert warning in messages or (warning == SHORT and RARE in messages)


@pytest.mark.parametrize("name", ["repeat in one read", "all above upper", "no seed long enough"])
def test_empty_output_is_always_explained(overlap, name):
    read = RANDOM[:3000]
    sequences, options = {
        "repeat in one read": ([read + read], []),
        "all above upper": ([read] * 12, ["--upper", 8]),
        "no seed long enough": ([read, read[:400]], []),
    }[name]
    lines, _, messages = overlap(sequences, "-k", 17, *options)
    assert lines == []
    assert "no overlaps" in messages


@pytest.mark.parametrize("options", [[], ["--skip-alignment"]], ids=" ".join)
def test_a_read_of_n_among_others(overlap, samples, options):
    sequences = samples["noisy"].sequences[:20]
    lines = overlap(sequences, *options)[0]
    with_n = overlap([*sequences, "N" * 4000, ""], *options)[0]
    assert lines == with_n != []


@pytest.mark.parametrize("n", [2, 5])
def test_identical_reads(overlap, rng, n):
    read = random_bases(rng, 4000)
    lines, _, _ = overlap([read] * n, "-k", 17)
    assert [(line.query, line.target) for line in lines] == [(i, j) for i in range(n) for j in range(i + 1, n)]
    for line in lines:
        assert (line.strand, line.query_start, line.query_end, line.target_start, line.target_end) == (1, 0, 4000, 0, 4000)
        assert line.matches == line.columns == int(line.tags["AS:i"]) == 4000
        assert float(line.tags["dv:f"]) == 0


def test_more_identical_reads_than_the_largest_count(overlap, rng):
    read = random_bases(rng, 3000)
    assert overlap([read] * 12, "-k", 17, "--upper", 8)[0] == []
    assert len(overlap([read] * 12, "-k", 17, "--upper", 12)[0]) == 66


# ---------------------------------------------------------------- options of the filter


def test_min_overlap(overlap, samples):
    every = overlap(samples["noisy"], "--min-overlap", 200)[0]
    long = overlap(samples["noisy"], "--min-overlap", 1500)[0]
    assert len(every) > len(long) > 100
    assert min(line.span for line in long) >= 1500
    expected = {(line.query, line.target) for line in every if line.span >= 1550}
    assert len(expected - {(line.query, line.target) for line in long}) <= 0.005 * len(expected)


def test_min_identity(overlap, samples):
    every, _, _ = overlap(samples["noisy"])
    some, report, _ = overlap(samples["noisy"], "--min-identity", 0.8)
    assert some == [line for line in every if line.matches >= 0.8 * line.columns]
    assert 0 < len(some) < len(every)
    assert report["dropped"]["identity"] == len(every) - len(some)


def test_max_overhang(overlap, samples):
    every, _, _ = overlap(samples["repeats"])
    some, report, _ = overlap(samples["repeats"], "--max-overhang", 50)
    assert some == [line for line in every if line.overhang <= 50]
    assert 0 < len(some) < len(every)
    assert report["dropped"]["overhang"] == len(every) - len(some)
    assert accuracy(samples["repeats"], some)[1] > accuracy(samples["repeats"], every)[1]


def test_max_copies_drops_repeats(overlap, samples):
    lines = {copies: overlap(samples["repeats"], "--max-copies", copies, "--upper", 60)[0] for copies in (1.5, 1e6)}
    assert accuracy(samples["repeats"], lines[1.5])[1] > accuracy(samples["repeats"], lines[1e6])[1]


def test_skip_alignment(overlap, samples):
    lines, report, _ = overlap(samples["accurate"], "--skip-alignment")
    assert {line.tags["AS:i"] for line in lines} == {"0"}
    assert max(line.overhang for line in lines) == 0
    assert min(line.columns for line in lines) >= 500
    assert [stage["stage"] for stage in report["stages"]] == ["read", "estimate", "count", "candidates", "write"]


# ---------------------------------------------------------------- the report

STRICT = ["--min-identity", "0.8", "--max-overhang", "60", "--density", "0.4", "--max-copies", "1.5"]


@pytest.mark.parametrize("name", ["noisy", "repeats", "accurate repeats"])
@pytest.mark.parametrize("options", [[], STRICT], ids=len)
def test_numbers_of_the_report_add_up(overlap, samples, name, options):
    lines, report, _ = overlap(samples[name], *options)
    stages, dropped = {stage["stage"]: stage for stage in report["stages"]}, report["dropped"]
    assert len(lines) == stages["filter"]["overlaps"] == stages["write"]["lines"]
    n_candidates = len(lines) - stages["filter"]["second_pieces"]
    assert stages["candidates"]["candidates"] == sum(dropped.values()) + n_candidates
    by_filter = sum(
        dropped[reason]
        for reason in (
            "too short", "score too low", "stops in a repeat", "in the lesser part of a joined read", "overhang", "identity",
            "with another copy",
        )
    )  # fmt: skip
    assert stages["align"]["extensions"] - stages["align"]["second_seeds"] == by_filter + n_candidates
    assert stages["align"]["extensions"] <= stages["candidates"]["seeds"]


def test_estimates_are_right(overlap, samples):
    for name, error in (("noisy", 0.12), ("accurate", 0.01)):
        estimates = overlap(samples[name])[1]["estimates"]
        assert estimates["error_rate"] == pytest.approx(error, abs=0.03)
        assert estimates["depth"] == pytest.approx(12, rel=0.3)
    estimates = overlap(samples["noisy"], "-e", "0.2", "--depth", "30", "-k", 15)[1]["estimates"]
    assert (estimates["error_rate"], estimates["depth"], estimates["given"], estimates["k"]) == (0.2, 30, True, 15)


def test_kmers_of_some_copies_link_reads_where_asked(samples):
    """The repeat has three copies."""
    reads, uppers, found = ReadSet.from_sequences(samples["repeats"].sequences), [], []
    for copies in (1, 3):
        report = start_report(RunReport())
        work = in_memory(reads, make_params(threads=1, device="cpu"), report, copies=copies)
        run_counting(work)
        uppers.append(report.estimates.upper)
        found.append(report.details.links.kept[ORDINARY])
    assert 1.5 * uppers[0] < uppers[1] and found[0] < found[1]
