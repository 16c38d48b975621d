"""The workflows' own command lines, run as Snakemake and Nextflow run them: names with blanks, options for the stages."""

from __future__ import annotations

import ast
import gzip
import os
import re
import shlex
import shutil
import signal
import string
import subprocess
import sys
import textwrap
import time
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest
from cases import IMPORTS, run, sample_reads

from bellapy import __version__
from bellapy.jobs.overlap.pipeline import flow_of
from bellapy.jobs.overlap.work import Round

ROOT = Path(__file__).parents[1]
OPTIONS = "--preset ont -k 13 --min-overlap 700 --max-copies 9 --delta 0.2 --cigar"


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A folder with blanks in its name and in that of the reads, and the command `bellapy`."""
    folder = tmp_path_factory.mktemp("two words")
    (folder / "my reads.fa").write_text(sample_reads(7, genome=9000, depth=10, mean=2000, error=0.05).fasta())
    (folder / "bin").mkdir()
    command = folder / "bin" / "bellapy"
    command.write_text(f'#!/bin/sh\nPYTHONPATH={shlex.quote(IMPORTS)} exec {shlex.quote(sys.executable)} -m bellapy "$@"\n')
    command.chmod(0o755)
    assert run("overlap", folder / "my reads.fa", "-o", folder / "expected.paf", *OPTIONS.split()).code == 0
    return folder


def shell(script: str, folder: Path) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    command = ["bash", "-euo", "pipefail", "-c", script]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


class Quoting(string.Formatter):
    """Snakemake's way to fill in a command: {name:q} is quoted for the shell."""

    def format_field(self, value, spec):
        return shlex.quote(str(value)) if spec == "q" else str(value)


def snakemake_rules() -> dict[str, str]:
    text = (ROOT / "workflows" / "Snakefile").read_text()
    found = re.findall(r"rule (\w+):\n(?:(?!rule ).*\n)*?    shell:\n((?: {8}\".*\"\n?)+)", text)
    return {name: ast.literal_eval(f"({command})") for name, command in found}


def run_rule(name: str, work: Path, options: str, **files) -> subprocess.CompletedProcess:
    output = files.pop("output")
    given = SimpleNamespace(**files) if len(files) > 1 else files.pop("reads")
    command = Quoting().format(snakemake_rules()[name], input=given, output=output, threads=1, options=options)
    return shell(command, work)


def test_snakemake_in_stages(work):
    out = work / "out of snakemake"
    out.mkdir()
    steps = {
        "count": (None, "kmers.npz"),
        "candidates": ("kmers", "seeds.npz"),
        "align": ("seeds", "alignments.npz"),
        "filter": ("alignments", "staged.paf"),
    }
    for name, (source, target) in steps.items():
        more = {source: out / f"{source}.npz"} if source else {}
        done = run_rule(name, work, OPTIONS, reads=work / "my reads.fa", output=out / target, **more)
        assert done.returncode == 0, done.stderr
    assert (out / "staged.paf").read_bytes() == (work / "expected.paf").read_bytes()


def test_snakemake_in_one_step(work):
    output = SimpleNamespace(paf=work / "one step.paf", report=work / "one step.json")
    done = run_rule("overlap", work, OPTIONS, reads=work / "my reads.fa", output=output)
    assert done.returncode == 0, done.stderr
    assert output.paf.read_bytes() == (work / "expected.paf").read_bytes()
    assert output.report.exists()


@pytest.mark.parametrize("stage", ["count", "candidates", "align", "filter"])
def test_a_wrong_option_ends_every_step(work, stage):
    files = {"kmers": "x", "seeds": "x", "alignments": "x"} if stage != "count" else {}
    done = run_rule(stage, work, "-k 13 --nope", reads=work / "my reads.fa", output=work / "none", **files)
    assert done.returncode == 2 and "--nope" in done.stderr
    assert not (work / "none").exists()


def nextflow_scripts() -> dict[str, str]:
    text = (ROOT / "workflows" / "main.nf").read_text()
    found = re.findall(r'process (\w+) \{(?:(?!\n\}).)*?script:\s*("""|")(.*?)\2', text, re.S)
    return {name: script for name, _, script in found}


def groovy(script: str) -> str:
    """What Groovy makes of a string."""
    script = script.replace("${params.options}", OPTIONS).replace("${task.cpus}", "1")
    assert "${" not in script, "names of files do not stand in scripts"
    return script.replace("\\$", "$")


@pytest.mark.parametrize("names", [("overlap",), ("count", "candidates", "align", "keep")])
def test_nextflow(work, tmp_path, names):
    """Every process runs in a folder where its inputs are links with names of its own."""
    (tmp_path / "reads").symlink_to(work / "my reads.fa")
    text = (ROOT / "workflows" / "main.nf").read_text()
    assert re.findall(r"input: (.*)", text) == ["path 'reads'"] * 2 + [
        f"path 'reads'; path '{name}.npz'" for name in ("kmers", "seeds", "alignments")
    ]
    for name in names:
        done = shell(
            f"export PATH={shlex.quote(str(work / 'bin'))}:$PATH; cd {tmp_path}\n{groovy(nextflow_scripts()[name])}", work
        )
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "overlaps.paf").read_bytes() == (work / "expected.paf").read_bytes()


def taken(*words):
    outcome = run("stage-options", *words)
    assert outcome.code == 0, outcome.err
    return outcome.out.decode().split()


def test_options_of_stages():
    words = OPTIONS.split()
    assert taken("count", "--", *words) == ["--preset", "ont", "-k", "13"]
    assert taken("candidates", "--", *words) == ["--min-overlap", "700", "--max-copies", "9"]
    assert taken("align", "--", *words) == ["--preset", "ont", "--delta", "0.2"]
    assert taken("filter", "--", *words) == ["--min-overlap", "700", "--delta", "0.2", "--cigar"]
    assert taken("filter") == []
    assert taken("align", "--", "-x7", "--gap=-2", "-q") == ["-x", "7", "--gap", "-2", "-q"]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["count", "--", "--report", "x"], "--report"),
        (["count", "--", "-o", "x"], "--output"),
        (["count", "--", "-t", "4"], "--threads"),
        (["count", "--", "--skip-alignment"], "--skip-alignment: no stage takes it"),
        (["count", "--", "x.fa"], "x.fa: is no option"),
        (["count", "--", "--help-all"], "--help-all: no stage takes it"),
        (["count", "--", "--such"], "Try 'bellapy overlap --help'"),
        (["overlap", "--", "-k", "13"], "overlap: is no stage; choose from count, candidates, align, filter"),
    ],
)
def test_options_that_are_not_for_stages(words, problem):
    outcome = run("stage-options", *words)
    assert outcome.code == 2 and outcome.out == b"" and problem in outcome.err


# ---------------------------------------------------------------- tiles

TILES = ROOT / "workflows" / "tiles"
SBATCH = """#!/usr/bin/env bash
# What Slurm's sbatch does, at once, with arrays of at most 2.
set -euo pipefail
echo "$*" >> "$(dirname "$0")/sbatch.log"
array=0-0
while [ $# -gt 0 ]; do
  case $1 in
    --array) array=$2; shift;;
    --wrap) command=$2; shift;;
  esac
  shift
done
[ "${array#*-}" -le 1 ]
for ((i = ${array%-*}; i <= ${array#*-}; i++)); do SLURM_ARRAY_TASK_ID=$i bash -euo pipefail -c "$command" >&2; done
echo $RANDOM
"""


def test_slurm_arrays_of_tiles(work):
    """More tasks than an array may have, several in a job, and folders with blanks."""
    sbatch = work / "bin" / "sbatch"
    sbatch.write_text(SBATCH)
    sbatch.chmod(0o755)
    words = ["-t1", "-q", "--preset", "ont", "-k", "13", "--min-overlap", "700", "--skip-alignment"]
    plain = shell(shlex.join(["bellapy", "overlap", "my reads.fa", "-o", "plain.paf", *words]), work)
    assert plain.returncode == 0, plain.stderr
    script = str(ROOT / "workflows" / "slurm_tiles.sh")
    command = shlex.join([script, "tiles work", "tiles out.paf", "my reads.fa", "--blocks", "3", *words])
    done = shell(f"MAX_ARRAY=2 TASKS_PER_JOB=2 {command}", work)
    assert done.returncode == 0, done.stderr
    assert (work / "tiles out.paf").read_bytes() == (work / "plain.paf").read_bytes()
    assert not (work / "tiles work").exists()
    log = (work / "bin" / "sbatch.log").read_text()
    assert "--offset 6" in log and "--dependency afterok:" in log


@pytest.mark.skipif(not find_spec("snakemake"), reason="needs snakemake")
@pytest.mark.parametrize("target", ["", "staged"])
def test_the_call_in_the_header_of_the_snakefile(work, target):
    line = next(line for line in (ROOT / "workflows" / "Snakefile").read_text().splitlines() if "snakemake -s" in line)
    call = line.lstrip("# ").replace("[staged]", target).replace("reads=reads.fastq.gz", "reads='my reads.fa'")
    words = [sys.executable, "-m", *shlex.split(call.replace("workflows/", f"{ROOT / 'workflows'}/")), "--dry-run"]
    done = subprocess.run(words, cwd=work, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not find_spec("snakemake"), reason="needs snakemake")
def test_snakemake_in_tiles(work):
    """Stopped in the middle, it goes on, to the same bytes."""
    out, clone = work / "out in tiles", work / "clone"
    shutil.copytree(TILES, clone)
    config = [f"reads={work / 'my reads.fa'}", f"out={out}", "blocks=2", "groups=1", "options=-q --min-overlap 700"]
    command = [sys.executable, "-m", "snakemake", "-s", str(clone / "Snakefile")]
    command += ["--profile", str(clone / "profiles" / "local")]
    command += ["--cores", "1", "--nolock", "-q", "all", "--config", *config]
    environment = {**os.environ, "PATH": f"{work / 'bin'}:{os.environ['PATH']}"}
    log = open(work / "snakemake.log", "wb")
    job = subprocess.Popen(command, cwd=work, env=environment, stdout=log, stderr=log, start_new_session=True)
    while not (out / "done" / "seeds.0").exists() and job.poll() is None:
        time.sleep(0.05)
    assert job.poll() is None, (work / "snakemake.log").read_text()
    os.killpg(job.pid, signal.SIGKILL)
    job.wait()
    first = (out / "done" / "count.0").stat().st_mtime_ns
    done = subprocess.run(command, cwd=work, env=environment, stdout=log, stderr=log)
    log.close()
    assert done.returncode == 0, (work / "snakemake.log").read_text()
    plain = shell(shlex.join(["bellapy", "overlap", "my reads.fa", "-o", "plain.paf", "-t1", "--min-overlap", "700"]), work)
    assert plain.returncode == 0
    assert (out / "overlaps.paf").read_bytes() == (work / "plain.paf").read_bytes()
    assert (out / "done" / "count.0").stat().st_mtime_ns == first, "what was done was not done again"
    assert not (out / "work").exists()


MODULES = sorted((ROOT / "workflows" / "nextflow" / "modules").rglob("main.nf"))


def module_script(name: str, kind: str = "script", **values: str) -> str:
    """The command of a process, as Nextflow fills it in."""
    path = next(path for path in MODULES if path.parent.name == name)
    text = re.search(kind + r':\n.*?"""\n(.*?)"""', path.read_text(), re.S).group(1)
    known = {"args": "", "prefix": "sample", "task.cpus": "1", "task.process": f"BELLAPY_{name.upper()}", **values}
    text = re.sub(r"(?<!\\)\$(?:\{([\w.]+)\}|(\w+(?:\.\w+)?))", lambda found: known[found[1] or found[2]], text)
    return textwrap.dedent(text).replace("\\\\", "\\").replace("\\$", "$")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.parent.name)
def test_nextflow_modules_have_the_form_of_nf_core(path):
    text = path.read_text()
    parts = (
        "tag ",
        "label ",
        "conda ",
        "container ",
        "tuple val(meta)",
        "emit: versions",
        "script:",
        "stub:",
        "task.ext.args",
    )
    assert [part for part in parts if part not in text] == []
    assert text.count("{") == text.count("}") and (path.parent / "environment.yml").exists()


def test_nextflow_in_tiles(work, tmp_path):
    (tmp_path / "reads").mkdir()
    (tmp_path / "reads" / "sample.fa").symlink_to(work / "my reads.fa")

    def run_script(name, kind="script", **values):
        done = shell(f"cd {tmp_path}\n{module_script(name, kind, **values)}", work)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "versions.yml").read_text() == f'"BELLAPY_{name.upper()}":\n    bellapy: {__version__}\n'

    folder = str(tmp_path / "work of tiles")
    run_script("overlap", args="-q --skip-alignment")
    expected = gzip.decompress((tmp_path / "sample.paf.gz").read_bytes())
    run_script("plan", args="-q --blocks 2 --skip-alignment", folder=folder)
    rows = [line.split("\t") for line in (tmp_path / "plan.tsv").read_text().splitlines() if not line.startswith("#")]
    named = re.findall(r"ROUND_\w+\(plan, '(\w+)'", (ROOT / "workflows" / "nextflow" / "main.nf").read_text())
    assert named == [*(step.name for step in flow_of(False) if isinstance(step, Round)), "placed"]
    assert {name for name, *_ in rows} <= set(named)
    for _, first, count in rows:
        run_script("runtile", args="-q", folder=folder, first=first, count=count)
    run_script("gather", args="-q", folder=folder)
    assert gzip.decompress((tmp_path / "sample.paf.gz").read_bytes()) == expected and len(expected) > 1000
    for name in ("overlap", "plan", "runtile", "gather"):
        run_script(name, "stub")
