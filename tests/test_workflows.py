"""The workflows' own command lines, run as Snakemake and Nextflow run them: names with blanks, options for the stages."""

from __future__ import annotations

import ast
import os
import re
import shlex
import string
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from cases import run, sample_reads

ROOT = Path(__file__).parents[1]
OPTIONS = "--preset ont -k 13 --min-overlap 700 --max-copies 9 --delta 0.2 --cigar"


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A folder with blanks in its name and in that of the reads, and the command `bellapy`."""
    folder = tmp_path_factory.mktemp("two words")
    (folder / "my reads.fa").write_text(sample_reads(7, genome=9000, depth=10, mean=2000, error=0.05).fasta())
    (folder / "bin").mkdir()
    command = folder / "bin" / "bellapy"
    command.write_text(
        f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec {shlex.quote(sys.executable)} -m bellapy "$@"\n'
    )
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
        (["overlap", "--", "-k", "13"], "overlap: is no stage; choose from count, candidates, align, filter"),
    ],
)
def test_options_that_are_not_for_stages(words, problem):
    outcome = run("stage-options", *words)
    assert outcome.code == 2 and outcome.out == b"" and problem in outcome.err
