"""`bellapy exact` from files to files: formats, records, strands, errors, going on after a kill."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys

import naive_exact
import numpy as np
import pysam
import pytest
from cases import listing, options_of, run

from bellapy import params
from bellapy.compute.gpu.devices import choose_beside
from bellapy.engines.exact import align, cpu, sweeps
from bellapy.engines.exact.align import bound_above
from bellapy.engines.exact.guess import Guess
from bellapy.io import workdir
from bellapy.jobs.exact import pipeline
from bellapy.report.run_report import Devices

SEED = 11
DEFAULTS = params.ExactParams()


def reverse_complement(sequence: str) -> str:
    return sequence[::-1].translate(str.maketrans("ACGT", "TGCA"))


def make_pair(length: int = 500) -> tuple[str, str]:
    rng = np.random.default_rng(SEED)
    query = "".join(rng.choice(list("ACGT"), length))
    changed = "".join("ACGT"[rng.integers(4)] if rng.random() < 0.05 else base for base in query)
    return query, "TTTT" + changed[:200] + "GATTACA" + changed[203:350] + changed[380:]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    query, target = make_pair()
    (tmp_path / "a.fa").write_text(f">a first\n{query}\n")
    (tmp_path / "b.fa").write_text(f">b\n{target}\n")
    (tmp_path / "b_rc.fa").write_text(f">b\n{reverse_complement(target)}\n")
    (tmp_path / "many.fa").write_text(f">x\nACGT\n>b\n{target}\n>empty\n\n")
    return tmp_path


def fails(folder, code, *arguments) -> str:
    """The error's line of a run that writes nothing."""
    before = listing(folder)
    outcome = run("exact", *arguments)
    assert outcome.code == code, outcome.err
    assert "Traceback" not in outcome.err and not outcome.out
    assert listing(folder) == before
    line = outcome.err.splitlines()[-1]
    assert line.startswith("bellapy: error: ")
    return line


def operations(cigar: str) -> list[tuple[str, int]]:
    return [(letter, int(size)) for size, letter in re.findall(r"(\d+)([MID])", cigar)]


def best(mode: str, query: str, target: str) -> int:
    scores = DEFAULTS.match, DEFAULTS.mismatch, DEFAULTS.gap_open, DEFAULTS.gap_extend
    return naive_exact.best_score(query, target, *scores, mode)


@pytest.mark.parametrize("mode", params.MODES)
def test_paf_on_both_strands(here, mode):
    query, target = make_pair()
    lines = {}
    for name in ("b.fa", "b_rc.fa"):
        outcome = run("exact", "a.fa", name, "--mode", mode, "-t", "1")
        assert outcome.code == 0, outcome.err
        lines[name] = outcome.out.decode().rstrip("\n").split("\t")
    forward, reverse = lines["b.fa"], lines["b_rc.fa"]
    tags = dict(tag.split(":", 1) for tag in forward[12:])
    assert int(tags["AS"][2:]) == best(mode, query, target)
    assert forward[4] == "+" and reverse[4] == "-"
    start, end, t_start, t_end = (int(forward[k]) for k in (2, 3, 7, 8))
    scores = DEFAULTS.match, DEFAULTS.mismatch, DEFAULTS.gap_open, DEFAULTS.gap_extend
    path = operations(tags["cg"][2:])
    assert naive_exact.rescore(query[start:end], target[t_start:t_end], path, *scores) == int(tags["AS"][2:])
    assert int(forward[10]) == sum(size for _, size in path)
    assert int(forward[10]) - int(forward[9]) == int(tags["NM"][2:])
    rc_tags = dict(tag.split(":", 1) for tag in reverse[12:])
    assert rc_tags["AS"] == tags["AS"]
    start, end, t_start, t_end = (int(reverse[k]) for k in (2, 3, 7, 8))
    parts = reverse_complement(query[start:end]), reverse_complement(target)[t_start:t_end]
    assert naive_exact.rescore(*parts, operations(rc_tags["cg"][2:]), *scores) == int(rc_tags["AS"][2:])


@pytest.mark.parametrize("mode", params.MODES)
@pytest.mark.parametrize("forward, reverse", [(400, 100), (400, 390), (390, 400), (100, 400), (400, 400), (0, 300), (0, 0)])
@pytest.mark.parametrize("is_known", [True, False])
def test_bounds_of_the_second_strand_are_made_while_a_gpu_sweeps_back(here, monkeypatch, mode, forward, reverse, is_known):
    """The same alignment and the same score to beat, whichever strand is the better one, and whatever was known before."""
    rng = np.random.default_rng(forward + reverse)
    target = "".join(rng.choice(list("ACGT"), 400))
    (here / "q.fa").write_text(f">q\n{target[:forward]}C{reverse_complement(target)[:reverse]}\n")
    (here / "t.fa").write_text(f">t\n{target}\n")
    if not is_known:
        monkeypatch.setattr(align, "guess_best", lambda *_: Guess(-3000 if mode == "global" else 1))

    def sweep_like_gpus(sweeper, name, task, back=None):
        if task.every or back:
            sweeper.beside(task.known)
        return sweeper._finish(name, cpu.Sweep(task._replace(every=64 if task.every else 0))), None

    monkeypatch.setattr(sweeps.Sweeper, "_uses_gpus", lambda sweeper, task: bool(sweeper.devices))
    monkeypatch.setattr(sweeps.Sweeper, "_sweep_on_gpus", sweep_like_gpus)
    command = ["exact", "q.fa", "t.fa", "--mode", mode, "-t", "4", "--report", "r.json"]
    results = []
    for early in (False, True):
        made = []
        with monkeypatch.context() as patch:
            if early:
                patch.setattr(pipeline, "_gpus", lambda *_: Devices)
            patch.setattr(pipeline, "bound_above", lambda *given, **on: made.append(on) or bound_above(*given, **on))  # noqa: B023
            assert run(*command, "-o", f"{early}.paf").code == 0
        stages = json.loads((here / "r.json").read_text())["stages"]
        results.append((here / f"{early}.paf").read_text())
        results[-1] += str([(x.get("score"), x["lower_bound"]) for x in stages if x["stage"].startswith("align")])
        assert len(made) <= early and (mode != "local" or early <= len(made))
    assert results[0] == results[1]


@pytest.mark.parametrize(
    "device, cells, wanted",
    [("cpu", 0, ["cpu"]), ("auto", 0, ["cpu", "auto"]), ("auto", 1 << 30, ["cpu"]), ("cuda", 1 << 30, ["cuda"])],
)
def test_gpus_are_looked_for_where_one_may_be_worth_it(here, monkeypatch, device, cells, wanted):
    asked = []
    monkeypatch.setattr(pipeline, "choose_beside", lambda device: asked.append(device) or choose_beside("cpu"))
    monkeypatch.setattr(pipeline, "GPU_CELLS", cells)
    assert run("exact", "a.fa", "b.fa", "--device", device).code == 0
    assert asked == wanted


def test_a_strand_alone(here):
    assert run("exact", "a.fa", "b_rc.fa", "--strand", "forward", "-o", "f.paf").code == 0
    assert run("exact", "a.fa", "b_rc.fa", "--strand", "reverse", "-o", "r.paf").code == 0
    strands = [(here / name).read_text().split("\t")[4] for name in ("f.paf", "r.paf")]
    assert strands == ["+", "-"]


@pytest.mark.parametrize("target", ["b.fa", "b_rc.fa"])
def test_sam(here, target):
    assert run("exact", "a.fa", target, "-o", "x.sam").code == 0
    pysam.faidx(target)
    checked = pysam.calmd("x.sam", target)
    with pysam.AlignmentFile("x.sam") as file:
        (record,) = file
    assert record.is_reverse == (target == "b_rc.fa")
    query = make_pair()[0]
    assert record.query_sequence == (reverse_complement(query) if record.is_reverse else query)
    assert f"MD:Z:{record.get_tag('MD')}" in checked and f"NM:i:{record.get_tag('NM')}" in checked


def test_text_side_by_side(here):
    assert run("exact", "a.fa", "b_rc.fa", "-o", "x.txt").code == 0
    assert run("exact", "a.fa", "b_rc.fa", "-o", "x.paf").code == 0
    fields = (here / "x.paf").read_text().split("\t")
    head, *blocks = (here / "x.txt").read_text().split("\n\n")
    rows = [block.rstrip("\n").split("\n") for block in blocks]
    top, bottom = ("".join(row[k].split()[1] for row in rows) for k in (0, 2))
    query = make_pair()[0]
    start, end = int(fields[2]), int(fields[3])
    assert top.replace("-", "") == reverse_complement(query[start:end])
    assert (int(rows[0][0].split()[0]), int(rows[-1][0].split()[2])) == (end, start + 1)
    assert sum(row[1].count("|") for row in rows) == int(fields[9])
    assert len(top) == len(bottom) == int(fields[10])
    assert f"# score   {fields[13][5:]}" in head


def test_score_only(here):
    score = best("local", *make_pair())
    outcome = run("exact", "a.fa", "b.fa", "--score-only")
    fields = outcome.out.decode().rstrip("\n").split("\t")
    assert fields[:2] == ["a", "500"] and fields[-1] == f"AS:i:{score}"


def test_other_scores(here):
    outcome = run("exact", "a.fa", "b.fa", "--match=2", "--mismatch=-5", "--gap-open=1", "--gap-extend=4", "--score-only")
    score = naive_exact.best_score(*make_pair(), 2, -5, 1, 4, "local")
    assert outcome.out.decode().endswith(f"AS:i:{score}\n")


def test_records_by_name(here):
    assert run("exact", "a.fa", "many.fa", "--target-name", "b", "-o", "x.paf").code == 0
    assert run("exact", "a.fa", "b.fa", "-o", "y.paf").code == 0
    assert (here / "x.paf").read_bytes() == (here / "y.paf").read_bytes()


def test_nothing_to_align_is_said(here):
    (here / "t.fa").write_text(">t\nTTTTT\n")
    (here / "c.fa").write_text(">c\nCCCCC\n")
    for name, content in (("x.paf", ""), ("x.sam", "\t4\t"), ("x.txt", "no alignment"), ("x.paf", "")):
        outcome = run("exact", "t.fa", "c.fa", "-o", name)
        assert outcome.code == 0 and "no alignment scores above 0" in outcome.err
        assert content in (here / name).read_text()


def test_report_tells_bounds_and_shares(here):
    assert run("exact", "a.fa", "b.fa", "-o", "x.paf", "--report", "r.json").code == 0
    report = json.loads((here / "r.json").read_text())
    (stage,) = [stage for stage in report["stages"] if stage["stage"] == "align"]
    assert stage["lower_bound"] <= stage["score"] <= stage["upper_bound"]
    assert 0 < stage["matrix_percent_forward"] <= 100


def test_plot(here):
    for mode in params.MODES:
        assert run("exact", "a.fa", "b_rc.fa", "--mode", mode, "-o", "x.paf", "--plot", "x.png").code == 0
        assert (here / "x.png").read_bytes().startswith(b"\x89PNG")


def test_plot_without_matplotlib(here, monkeypatch):
    monkeypatch.setattr("bellapy.report.pictures.find_spec", lambda name: None)
    assert "pip install matplotlib" in fails(here, 2, "a.fa", "b.fa", "-o", "x.paf", "--plot", "x.png")


@pytest.mark.parametrize(
    ("code", "arguments", "problem"),
    [
        (1, ["a.fa", "none.fa"], "none.fa: No such file"),
        (1, ["a.fa", "many.fa"], "many.fa: holds 3 records (x, b, empty); choose one with --target-name"),
        (1, ["many.fa", "a.fa"], "choose one with --query-name"),
        (1, ["a.fa", "many.fa", "--target-name", "c"], "many.fa: holds no record c"),
        (1, ["a.fa", "many.fa", "--target-name", "empty"], "record empty has no bases"),
        (1, ["a.fa", "b.fa", "-o", "b.fa"], "b.fa: "),
        (2, ["a.fa", "b.fa", "-o", "x.bam"], "-o x.bam: the name tells no format; end it in .paf, .sam, .txt"),
        (2, ["a.fa", "b.fa", "-o", "x.paf", "--mode", "best"], "--mode best: choose from local, global, semiglobal"),
        (2, ["a.fa", "b.fa", "-o", "x.paf", "--strand", "+"], "--strand +: choose from both, forward, reverse"),
        (2, ["a.fa", "b.fa", "-o", "x.paf", "--gap-extend=0"], "--gap-extend 0: must be from 1 to 1000"),
        (2, ["a.fa", "b.fa", "-o", "x.paf", "--mismatch=0"], "--mismatch 0: must be from -100 to -1"),
        (2, ["a.fa", "b.fa", "-o", "x.paf", "-t", "0"], "--threads 0: must be from 1 to 4096"),
        (2, ["a.fa", "b.fa", "-o", "x.sam", "--score-only"], "SAM needs a path"),
        (2, ["a.fa", "b.fa", "-o", "x.paf", "--score-only", "--plot", "x.png"], "--plot: draws a path"),
        (2, ["a.fa", "b.fa", "-o", "x.paf", "--plot", "x.gif"], "--plot x.gif: the name does not tell the kind of picture"),
        (2, ["-", "-", "-o", "x.paf"], "only one of them can be standard input"),
        (2, ["a.fa", "b.fa", "-o", "x.png", "--plot", "x.png"], "the output goes there; name another file"),
        (1, ["a.fa", "b.fa", "-o", "x.paf", "--workdir", "."], "holds other files"),
        (1, ["a.fa", "b.fa", "-o", "x.paf", "--workdir", "no/such"], "no/such: No such file or directory"),
    ],
)
def test_errors(here, code, arguments, problem):
    assert problem in fails(here, code, *arguments)


@pytest.mark.parametrize("name", ["mode", "strand", "match", "mismatch", "gap_open", "gap_extend"])
def test_help_tells_the_default(name):
    text = options_of("exact")[name].help
    assert f"default: {getattr(DEFAULTS, name)}]" in text
    for choice in {"mode": params.MODES, "strand": params.STRANDS}.get(name, ()):
        assert choice in text


KILLED = """
import itertools, os, signal, sys
from bellapy.cli import app as cli
from bellapy.engines.exact import band, cpu, sweeps
from bellapy.jobs.exact.pipeline import StrandJournal
sweeps.SHOW_SECONDS = sweeps.SAVE_SECONDS = 0.0
if sys.argv.pop(1) == "tiles":
    sweeps.is_narrow = lambda *_: False
cpu.STRETCH, band.STRETCH = 3, 128
count, die, save = itertools.count(), int(sys.argv.pop(1)), StrandJournal.save
def save_and_die(self, name, state):
    save(self, name, state)
    if next(count) == die:
        os.kill(os.getpid(), signal.SIGKILL)
StrandJournal.save = save_and_die
cli.main()
"""


@pytest.mark.parametrize("way", ["lines", "tiles"])
def test_killed_and_continued(here, way):
    """Killed ten times after some of the states it keeps, the run goes on where it was and writes the same bytes."""
    query, target = make_pair(4000)
    for name, sequence in (("a.fa", query), ("b_rc.fa", reverse_complement(target))):
        (here / name).write_text(f">{name[0]}\n{sequence}\n")
    command = ["exact", "a.fa", "b_rc.fa", "-o", "x.paf", "--workdir", "work", "-t", "1"]
    assert run("exact", "a.fa", "b_rc.fa", "-o", "whole.paf").code == 0
    kills = 0
    for die in (0, 2, 1, 3, 1, 2, 4, 1, 3, 2, 10**6):
        outcome = subprocess.run([sys.executable, "-c", KILLED, way, str(die), *command], capture_output=True, text=True)
        if outcome.returncode == 0:
            break
        kills += 1
        assert outcome.returncode == -signal.SIGKILL and (here / "work" / workdir.JOURNAL).exists(), outcome.stderr
        assert kills == 1 or "going on from" in outcome.stderr
        assert not (here / "x.paf").exists()
    assert kills == 10
    assert (here / "x.paf").read_bytes() == (here / "whole.paf").read_bytes()
    assert not (here / "work").exists()


def test_workdir_of_another_job(here, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "write_alignment", stop)
        assert run("exact", "a.fa", "b.fa", "-o", "x.paf", "--workdir", "work").code == 130
    assert "b_rc.fa is not" in fails(here, 1, "a.fa", "b_rc.fa", "-o", "x.paf", "--workdir", "work")
    assert "begun with another match: 1 then, 2 now" in fails(
        here, 1, "a.fa", "b.fa", "--match=2", "-o", "x.paf", "--workdir", "work"
    )
    (kept, *_) = (here / "work").glob("*.arrays")
    whole = kept.read_bytes()
    kept.write_bytes(whole[:100])
    assert "is damaged" in fails(here, 1, "a.fa", "b.fa", "-o", "x.paf", "--workdir", "work")
    kept.write_bytes(whole)
    assert run("exact", "a.fa", "b.fa", "-o", "x.paf", "--workdir", "work").code == 0
