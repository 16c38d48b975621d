"""Correction from reads to reads: what comes out, and the rules that single steps follow."""

from __future__ import annotations

import json
import re
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from cases import roomy, run, sample_reads
from corrected import edits, oriented, records
from hypothesis import given
from hypothesis import strategies as st
from piles import pack
from strategies import mutate, random_bases

from bellapy.api import overlapping
from bellapy.compute import memory
from bellapy.engines.tags.columns import FAR, NEAR, SAME, Differences, Look
from bellapy.engines.tags.graph import Terms
from bellapy.engines.tags.judge import find_odds, no_tally
from bellapy.engines.tags.links import UNIT
from bellapy.engines.tags.symbols import GAP
from bellapy.errors import MemoryLimitError
from bellapy.jobs.correct import pipeline, template
from bellapy.jobs.correct.members import BIN, choose_depth, find_members
from bellapy.jobs.correct.output import Writer, choose_pieces, raw_span, supported_pieces
from bellapy.jobs.correct.template import LEFT, LOOKS, Corrected, changes_of, choose_reads, uncorrected
from bellapy.jobs.correct.terms import LEAST_SITES, N_BINS, TELLING, Learnt, find_valley, sample
from bellapy.params.correct import CorrectParams
from bellapy.records import Overlaps

USUAL_ODDS = find_odds([])


@pytest.fixture(scope="module")
def genome():
    return random_bases(np.random.default_rng(5), 4000)


@pytest.fixture(scope="module")
def work(tmp_path_factory, genome):
    """Reads, and what a run with all defaults makes of them."""
    folder = tmp_path_factory.mktemp("correct")
    reads = sample_reads(8, genome=genome, depth=22, mean=1700, error=0.1)
    (folder / "reads.fa").write_text(reads.fasta())
    outcome = run("correct", folder / "reads.fa", "-o", folder / "out.fa", "--report", folder / "report.json", "-t", 1)
    assert outcome.code == 0, outcome.err
    return folder, reads, records((folder / "out.fa").read_bytes())


def test_every_read_comes_out_once_whole_and_with_few_errors(work, genome):
    _, reads, out = work
    names = [line[1:] for line in reads.fasta().splitlines()[::2]]
    assert [name for name, _ in out] == names
    before = after = 0
    for i, (_, sequence) in enumerate(out):
        region = genome[max(0, reads.start[i] - 20) : reads.end[i] + 20]
        if i % 3:
            continue  # the distance takes long
        before += edits(oriented(reads.sequences[i], reads.strand[i]), region)
        after += edits(oriented(sequence, reads.strand[i]), region)
        assert abs(len(sequence) - (reads.end[i] - reads.start[i])) < 60
    assert after < before / 15


@pytest.mark.parametrize("options", [["-t", 3], roomy, ["--device", "cpu"]])
def test_the_output_does_not_depend_on_how_the_work_is_done(work, options, monkeypatch):
    folder, _, out = work
    monkeypatch.setattr(pipeline, "RANGE_BYTES", 1)  # a range for every read
    options = options() if callable(options) else options
    assert records(run("correct", folder / "reads.fa", *options, "-q").out) == out


def test_paths_of_the_next_range_may_be_made_ahead(work, monkeypatch):
    folder, _, out = work
    monkeypatch.setattr(pipeline, "RANGE_BYTES", 1 << 18)
    monkeypatch.setattr(pipeline.Job, "traces_ahead", True)
    assert records(run("correct", folder / "reads.fa", "-t", 2, "-q").out) == out


@pytest.mark.parametrize(("judged", "left"), [(0, 41), (1, 40), (2, 40)])
def test_the_last_consensus_is_judged(judged, left, monkeypatch):
    monkeypatch.setattr(template, "JUDGED", judged)
    counts = no_tally()
    counts.runs[:], counts.bases[:] = 10_000, 10_000
    counts.missing[:], counts.more[:], counts.other[:] = 400, 400, 100
    flank = [0, 1, 0, 2, 1, 2, 0, 1, 3, 0, 2, 3, 1, 0, 3, 2, 1, 1, 0, 0]
    raw = np.array([*flank, 3, *flank[::-1]], np.uint8)
    shown = [3] * 4 + [GAP] * 4 + [2] * 4  # as many paths lead over the base as past it; other bases speak against it
    pile = pack([(0, raw.tolist()), *((0, [*flank, symbol, *flank[::-1]]) for symbol in shown)])
    how = template.How(Terms(), find_odds([counts]), 2, 0.5, TELLING[-1])
    found = template.correct_template(raw, pile, how, CorrectParams()).found
    assert len(found.codes) == left
    assert found.begins[-1] == left


def _refuse(*_, **__):
    raise MemoryLimitError(1, "the test", 2)


@pytest.mark.parametrize("name", ["reading", "aligning", "aligning, with a folder"])
def test_overlaps_are_found_in_tiles_where_memory_is_small(work, name, monkeypatch, tmp_path):
    folder, _, out = work
    if name == "reading":
        monkeypatch.setattr(memory, "fits_in_one_piece", lambda *_: False)
    else:
        monkeypatch.setattr(overlapping, "overlap_reads", _refuse)
    options = ["--workdir", tmp_path / "work", "--keep-workdir"] if "folder" in name else []
    outcome = run("correct", folder / "reads.fa", *roomy(), "-o", tmp_path / "out.fa", *options)
    assert outcome.code == 0, outcome.err
    assert "done in tiles" in outcome.err
    assert records((tmp_path / "out.fa").read_bytes()) == out
    assert {path.name for path in tmp_path.iterdir()} <= {"out.fa", "work"}
    if options:  # the folder has the overlaps
        again = run("correct", folder / "reads.fa", *roomy(), "-o", tmp_path / "again.fa", *options)
        assert "done in tiles" not in again.err
        assert (tmp_path / "again.fa").read_bytes() == (tmp_path / "out.fa").read_bytes()


def test_standard_input_is_not_read_twice(work, monkeypatch):
    folder, _, _ = work
    monkeypatch.setattr(overlapping, "overlap_reads", _refuse)
    outcome = run("correct", "-", *roomy(), stdin=(folder / "reads.fa").read_bytes())
    assert outcome.code == 1 and not outcome.out
    assert "--max-memory" in outcome.err.splitlines()[-1]


def test_overlaps_from_a_file_give_the_same(work):
    folder, _, out = work
    assert run("overlap", folder / "reads.fa", "--min-overlap", 500, "--cigar", "-o", folder / "x.paf.gz", "-q").code == 0
    outcome = run("correct", folder / "reads.fa", "--overlaps", folder / "x.paf.gz")
    assert records(outcome.out) == out
    text = run("overlap", folder / "reads.fa", "--min-overlap", 500, "--cigar", "-q").out
    both = []
    for line in text.splitlines():
        columns = line.split(b"\t")
        both += [line, line] if columns[4] == b"+" else [line]
    outcome = run("correct", folder / "reads.fa", "--overlaps", "-", stdin=b"\n".join(both))
    assert records(outcome.out) == out
    assert f"{len(both) - len(text.splitlines()):,} written twice" in outcome.err


def test_a_stopped_job_goes_on_in_its_folder(work, tmp_path, monkeypatch):
    folder, _, out = work
    monkeypatch.setattr(pipeline, "KEPT_BYTES", 1)  # a range for every read
    command = ["correct", folder / "reads.fa", "--workdir", tmp_path / "work", "-t", 1, "--device", "cpu"]
    made, correct = [], pipeline.correct_template

    def stop_late(*given):
        made.append(given)
        if len(made) == 5:
            raise KeyboardInterrupt
        return correct(*given)

    monkeypatch.setattr(pipeline, "correct_template", stop_late)
    assert run(*command).code != 0
    done = [path for path in (tmp_path / "work").glob("reads-*") if path.suffix != ".lock"]
    assert len(done) == 4
    assert records(run(*command, "--keep-workdir").out) == out
    assert len(made) == 5 + len(out) - 4
    monkeypatch.setattr(pipeline, "correct_template", None)
    assert records(run(*command, "-t", 2).out) == out
    assert not (tmp_path / "work").exists()
    assert run("correct", folder / "reads.fa", "--keep-workdir").code == 2


def test_the_report_adds_up(work):
    folder, reads, out = work
    report = json.loads((folder / "report.json").read_text())
    found = report["details"]["correction"]
    assert found["reads"] == len(out)
    assert found["bases_in"] == sum(map(len, reads.sequences))
    assert found["bases_out"] == sum(len(sequence) for _, sequence in out) == report["details"]["written_bases"]
    assert found["bases_out"] - found["bases_in"] == found["inserted"] - found["deleted"]
    assert 15 < found["support"] < 30
    assert report["details"]["rounds"] == 2
    assert report["dropped"]["without support"] == 0


def of_other_haplotype(folder: Path, genome: str, apart: int, reads: dict, *options: str) -> float:
    """Errors of corrected reads beside their own haplotype, for each beside the other one.

    apart : bases from one difference to the next.  reads : how they are, see `sample_reads`.
    """
    rng, other = np.random.default_rng(1), list(genome)
    for place in np.arange(60, len(genome) - 60, apart):
        other[place] = "ACGT"["ACGT".index(genome[place]) - int(rng.integers(1, 4))]
    genomes = [genome, "".join(other)]
    sets = [sample_reads(20 + h, genome=genomes[h], **reads) for h in (0, 1)]
    (folder / "reads.fa").write_text("".join(s.fasta().replace(">", f">h{h}_") for h, s in enumerate(sets)))
    counts = np.zeros(2)
    for i, (name, sequence) in list(enumerate(records(run("correct", folder / "reads.fa", "-q", *options).out)))[::4]:
        h = int(name[1])
        s, i = sets[h], i - h * len(sets[0])
        sequence = oriented(sequence, s.strand[i])
        regions = [g[s.start[i] : s.end[i]] for g in genomes]
        counts += [edits(sequence, regions[h]), edits(sequence, regions[1 - h])]
    return counts[0] / counts[1]


def test_haplotypes_stay_apart(tmp_path, genome):
    reads = {"depth": 14, "mean": 1800, "error": 0.08}
    assert of_other_haplotype(tmp_path, genome, 100, reads) < 0.25  # far nearer to their own haplotype
    assert of_other_haplotype(tmp_path, genome, 100, reads, "--no-phase") > 0.6


def test_haplotypes_stay_apart_in_repeats(tmp_path):
    """What tells the copies of a repeat apart, thousands of bases, tells nothing of haplotypes."""
    rng = np.random.default_rng(5)
    unit = random_bases(rng, 4000)
    genome = "".join(random_bases(rng, 1000) + mutate(rng, unit, 0.04) for _ in range(4))
    assert of_other_haplotype(tmp_path, genome, 500, {"depth": 14, "mean": 5000, "error": 0.003}) < 0.05


@pytest.mark.parametrize(("apart", "lacks", "depth"), [(0.02, 26, 45), (0.15, 0, 20)])
def test_a_rare_copy_stays_as_it_is_beside_a_deep_one(tmp_path, genome, apart, lacks, depth):
    """Neither the bases of a deep strain, or of a relative, nor what they lack is taken over."""
    other = mutate(np.random.default_rng(21), genome, apart)
    rare = sample_reads(5, genome=genome, depth=10, mean=2500, error=0.003)
    deep = sample_reads(4, genome=other[:2000] + other[2000 + lacks :], depth=depth, mean=2500, error=0.003)
    (tmp_path / "reads.fa").write_text(rare.fasta().replace(">", ">rare_") + deep.fasta())
    outcome = run("correct", tmp_path / "reads.fa", "-t", 1)
    (mismatches,) = re.findall(r"([0-9.]+) % mismatches", outcome.err)
    assert float(mismatches) < 0.3, "reads of the other copy are no errors"
    found = [(i, text) for i, (name, text) in enumerate(records(outcome.out)) if name.startswith("rare")]
    assert len(found) == len(rare)
    assert sum(edits(oriented(text, rare.strand[i]), genome[rare.start[i] : rare.end[i]]) for i, text in found) < 12


def test_reads_without_overlaps_stay_as_they_are(tmp_path):
    rng = np.random.default_rng(2)
    text = "".join(f">r{i}\n{random_bases(rng, 1500)}\n" for i in range(3)) + ">n\nACGTNNACGT\n>empty\n\n"
    (tmp_path / "reads.fa").write_text(text)
    outcome = run("correct", tmp_path / "reads.fa")
    assert outcome.code == 0
    assert outcome.out.decode() == text
    assert "stay as they were" in outcome.err
    assert run("correct", tmp_path / "reads.fa", "--lowercase", "-q").out.decode() == "".join(
        line if line[0] == ">" else line.lower() for line in text.splitlines(True)
    )
    outcome = run("correct", tmp_path / "reads.fa", "--split")
    assert outcome.out == b""
    assert "5 reads without support" in outcome.err


# ---------------------------------------------------------------- steps


def some_read() -> Corrected:
    """Ten bases of which 3 to 5 and 8 are supported; one of them was put in, and one of the raw read taken out."""
    raw = np.ones(10, bool)
    raw[[3, 4, 5, 8]] = False
    begins = np.array([0, 1, 2, 3, 4, 6, 6, 7, 8, 9, 10])
    return Corrected(np.arange(10, dtype=np.uint8) % 4, raw, begins, 5, 0, 0, 2.0)


def test_pieces_of_a_read():
    found = some_read()
    assert supported_pieces(found.raw) == [(3, 6), (8, 9)]
    assert choose_pieces(found, CorrectParams()) == [(0, 10)]
    assert choose_pieces(found, CorrectParams(trim=True)) == [(3, 9)]
    assert choose_pieces(found, CorrectParams(split=True)) == [(3, 6), (8, 9)]
    assert [raw_span(found, *piece) for piece in [(0, 10), (3, 6), (8, 9)]] == [(0, 10), (3, 5), (8, 9)]


def test_changes_of_a_read():
    assert changes_of(np.array([0, 2, 2, 3, 0, 1, 2, 3, 0, 1], np.uint8), some_read()) == (1, 1, 1, 6)


@st.composite
def looks(draw: st.DrawFn) -> tuple[Look, list[list[tuple[int, int, list[int], int]]]]:
    """Piles as `Look`; of each read its first column, number of symbols, its kind at each look, and matches."""
    seen = st.lists(st.sampled_from([SAME, NEAR, FAR]), min_size=LOOKS, max_size=LOOKS)
    read = st.tuples(st.integers(0, 400), st.sampled_from([0, 90, 300]), seen, st.integers(0, 80))
    piles = draw(st.lists(st.lists(read, min_size=1, max_size=9), min_size=1, max_size=4))
    piles = [[(0, 700, [SAME] * LOOKS, 700), *others] for _, *others in piles]
    starts, sizes, kinds, matches = (np.array(column) for column in zip(*chain(*piles), strict=True))
    asked = iter(kinds.T)
    differences = Differences(np.maximum(1, sizes), matches, np.zeros_like(sizes), np.zeros_like(sizes))
    firsts, n_columns = np.cumsum([0, *map(len, piles)]), np.full(len(piles), 700)

    return Look(firsts, n_columns, starts, sizes, lambda kept: next(asked) * kept, lambda: differences), piles


@given(looks(), st.booleans(), st.integers(1, 6))
def test_reads_of_other_copies_and_those_too_deep_are_left_out(given_looks, no_phase, most):
    look, piles = given_looks
    stays = [[i for i, (_, size, *_) in enumerate(pile) if i and size] for pile in piles]
    n_others = list(map(len, stays))
    again = set() if no_phase else set(range(len(piles)))
    for turn in range(LOOKS):
        for p in sorted(again):
            kinds = {i: piles[p][i][2][turn] for i in stays[p]}
            own = [i for i in stays[p] if kinds[i] == SAME]
            enough = len(own) >= min(LEFT, len(stays[p]))
            if not enough or FAR not in kinds.values():
                again.remove(p)
            stays[p] = own if enough else stays[p]
    own, kept, n_foreign, n_deep, anew = choose_reads(look, CorrectParams(no_phase=no_phase, max_depth=most))
    assert anew.tolist() == [4 * n >= len(pile) - 1 and n > 0 for n, pile in zip(n_foreign, piles, strict=True)]
    assert n_foreign.tolist() == [n - len(stay) for n, stay in zip(n_others, stays, strict=True)]
    for pile, first, stay, deep, is_anew in zip(piles, look.firsts, stays, n_deep, anew, strict=False):
        depth = np.zeros(800 // BIN, int)
        for start, size, *_ in (pile[i] for i in stay):
            depth[start // BIN : (start + size - 1) // BIN + 1] += 1
        left = stay
        if depth.max() > most:
            left, depth = [], depth * 0
            for i in sorted(stay, key=lambda i: -pile[i][3] / pile[i][1]):
                its = slice(pile[i][0] // BIN, (pile[i][0] + pile[i][1] - 1) // BIN + 1)
                if (depth[its] < most).any():
                    depth[its] += 1
                    left.append(i)
        assert np.flatnonzero(kept[first : first + len(pile)]).tolist() == [0, *sorted(left)]
        nothing = [i for i, (_, size, *_) in enumerate(pile) if i and not size]
        its_own = [0, *sorted(stay + nothing)] if is_anew else list(range(len(pile)))
        assert np.flatnonzero(own[first : first + len(pile)]).tolist() == its_own
        assert deep == len(stay) - len(left)


def test_records_and_what_is_left_out():
    def text(**options):
        writer = Writer(CorrectParams(**options))
        return b"".join(writer.records("r", b"", some_read())).decode(), writer

    assert text()[0] == ">r\nACGTACGTAC\n"
    assert text(lowercase=True)[0] == ">r\nacgTACgtAc\n"
    assert text(trim=True)[0] == ">r\nTACGTA\n"
    assert text(split=True)[0] == ">r:3-5\nTAC\n>r:8-9\nA\n"
    shown, writer = text(split=True, min_length=2)
    assert shown == ">r:3-5\nTAC\n"
    assert (writer.n_records, writer.n_bases, writer.n_short, writer.n_unsupported) == (1, 3, 1, 0)
    writer = Writer(CorrectParams(trim=True))
    assert list(writer.records("r", b"", uncorrected(np.zeros(5, np.uint8)))) == []
    assert writer.n_unsupported == 1


def test_members_are_the_overlaps_of_both_reads():
    columns = {name: np.zeros(3, np.int32) for name in Overlaps.__dataclass_fields__} | {"strand": np.ones(3, np.int8)}
    columns |= {"query_id": np.array([0, 0, 2], np.int32), "target_id": np.array([2, 3, 3], np.int32)}
    members = find_members(Overlaps(**columns), 5)
    found = [list(zip(*(column.tolist() for column in members.of(read)), strict=True)) for read in range(5)]
    assert found == [[(0, True), (1, True)], [], [(0, False), (2, True)], [(1, False), (2, False)], []]


@given(st.lists(st.tuples(st.integers(0, 900), st.integers(1, 300)), max_size=30), st.integers(1, 5))
def test_depth_is_limited_where_it_is_exceeded_only(spans, most):
    start = np.array([a for a, _ in spans], np.int64)
    end = np.minimum(start + np.array([n for _, n in spans], np.int64), 1200)
    chosen = choose_depth(start, end, np.arange(len(spans)), most, 1200)
    depth = np.zeros(1200 // BIN + 1, int)
    for i in range(len(spans)):
        bins = slice(start[i] // BIN, (end[i] - 1) // BIN + 1)
        assert chosen[i] == (depth[bins].min() < most)
        depth[bins] += chosen[i]


def test_the_valley_lies_between_false_and_true_bases():
    shares = (np.arange(N_BINS) + 0.5) / N_BINS
    for valley in (0.4, 0.5, 0.55):
        counts = (20 * np.exp(40 * (shares - valley) ** 2)).astype(np.int64)
        assert abs(find_valley(counts) - valley) < 0.01
    assert find_valley(np.full(N_BINS, LEAST_SITES // 20)) is None  # too few
    assert find_valley((2000 * np.exp(-10 * (shares - 0.5) ** 2)).astype(np.int64)) is None  # a hill


@pytest.mark.parametrize("share", [0.35, 0.45, 0.5, 0.6])
def test_terms_let_paths_score_the_same_at_the_threshold(share):
    terms = Learnt(0.05, 0.05, 0.02, share, USUAL_ODDS).terms
    assert 2 * share - terms.insertion / UNIT == pytest.approx(1 - share, abs=0.02)
    assert 2 * (1 - share) - terms.gap / UNIT == pytest.approx(2 * share, abs=0.02)


def test_noisy_reads_get_a_further_round_and_nothing_learnt_changes_nothing():
    assert Learnt(0.05, 0.05, 0.02, 0.5, USUAL_ODDS).rounds == 2
    assert Learnt(0.08, 0.08, 0.05, 0.5, USUAL_ODDS).rounds == 3
    assert Learnt(0.0, 0.0, 0.0, None, USUAL_ODDS).terms == Terms() == Learnt(0.0, 0.0, 0.0, 0.5, USUAL_ODDS).terms


def test_the_sample_is_spread_evenly():
    assert sample(np.empty(0, np.int32)).tolist() == []
    assert sample(np.full(5, 100, np.int32)).tolist() == [0, 1, 2, 3, 4]
    found = sample(np.full(1000, 100_000, np.int32))
    assert found.tolist() == [0, 333, 666, 999]
