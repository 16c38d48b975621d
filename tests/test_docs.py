"""README.md and docs/: their commands run as they stand, their options exist, their links lead somewhere.

A block that begins with ```sh or ```python holds commands for a shell, or for Python, in the top folder of the repository.
They run here (those of docs/api.md in test_api.py).  So do those of a block that begins with ```sh your-files, on small
files with the names that the reader's have there.  A block that begins with ```sh no-test does not run: NOT_RUN says why.
One with `needs X Y` runs where programs X and Y are found.  Options of all are checked.
"""

from __future__ import annotations

import gzip
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from shutil import which

import numpy as np
import pytest
import typer
from cases import noisy_copy, run, sample_reads
from strategies import random_bases

from bellapy.cli.app import app

TOP = Path(__file__).parents[1]
MANUAL = [TOP / "README.md", TOP / "CONTRIBUTING.md", *sorted((TOP / "docs").glob("*.md"))]
PAGES = [
    *MANUAL,
    *sorted((TOP / "benchmarks").glob("[A-Z]*.md")),
    *(TOP / room / "README.md" for room in ("data", "workflows")),
]
ABOUT = {"map.md": ("map", "index", "pairwise"), "exact.md": ("exact",), "evaluate.md": ("overlap", "map", "evaluate")}
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
DRAWS = re.compile(r"(--report|--plot|-o) \S+\.(html|png|svg)\b")
NUMBER = re.compile(r"-[0-9.]+$")
SEPARATORS = {"|", "&&", ";", ">", "<"}
NOT_RUN = {
    "python3 -m venv .venv && .venv/bin/pip install .": "installs; `.ci/run` does it",
    "pip install -e '.[dev]'": "installs; `.ci/run` does the same",
    "pip install '.[dev]' && .venv/bin/pytest": "runs all tests; `.ci/run` does it",
    "pip install '.[plot]'": "installs; one opens a browser",
    "pip install '.[cuda]'": "needs a GPU and its libraries",
    "pip install '.[cluster]'": "needs a cluster",
    "dask_jobqueue": "needs a cluster",
    "bellapy run-tile": "numbers of tasks follow from the reads; tests/test_workflows.py plans, runs and gathers",
    "slurm_tiles.sh": "needs Slurm; tests/test_workflows.py runs it with a stand-in for sbatch",
}
"""What stands in a block that does not run, and why it does not."""
BLOCKS = {"sh", "sh your-files", "sh no-test"}
PROGRAMS = {"sh": ["bash", "-euo", "pipefail", "-c"], "python": [sys.executable, "-c"]}


def blocks_of(page: Path) -> list[tuple[str, str]]:
    """What stands behind the opening ``` of every block, and its text."""
    return BLOCK.findall(page.read_text())


RUN = [page for page in PAGES if page.name != "api.md" and any(kind in PROGRAMS for kind, _ in blocks_of(page))]


@cache
def options_of_commands() -> dict[str, set[str]]:
    """The names of all options of every command."""
    group = typer.main.get_command(app)
    context = typer.Context(group, **group.context_settings)
    options = {}
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        params = command.get_params(typer.Context(command, parent=context))
        options[name] = {option for param in params for option in (*param.opts, *param.secondary_opts) if option[0] == "-"}
    return options


def calls_in(text: str) -> Iterator[tuple[str, list[str]]]:
    """Every call of bellapy in shell text: its command and its other words."""
    for line in text.splitlines():
        words = shlex.shlex(line, posix=True, punctuation_chars=True)
        words.whitespace_split = True
        command: list[str] = []
        for word in [*words, ";"]:
            if word not in SEPARATORS:
                command.append(word)
                continue
            if len(command) > 1 and Path(command[0]).name == "bellapy":
                yield command[1], command[2:]
            command = []


def unknown_options(calls: Iterator[tuple[str, list[str]]]) -> list[str]:
    known, unknown = options_of_commands(), []
    for command, words in calls:
        if command in ("-h", "--help", "--version"):
            continue
        if command not in known:
            unknown.append(command)
            continue
        for word in words[: words.index("--")] if "--" in words else words:
            if word.startswith("-") and word != "-" and not NUMBER.match(word):
                if word.split("=")[0] not in known[command]:
                    unknown.append(f"{command} {word}")
    return unknown


def name_of(page: Path) -> str:
    return str(page.relative_to(TOP))


def run_blocks(page: Path, kinds: set[str], folder: Path) -> None:
    """Run the blocks of some kinds in a folder, one after the other."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    missing: set[str] = set()
    for kind, text in blocks_of(page):
        kind, _, needed = kind.partition(" needs ")
        if kind not in kinds:
            continue
        missing |= {program for program in needed.split() if not which(program)}
        if not (needed and missing):
            words = [*PROGRAMS[kind.split()[0]], text]
            done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
            assert done.returncode == 0, text + done.stderr
            assert "Traceback" not in done.stderr
    if missing:
        pytest.skip(f"what needs {' and '.join(sorted(missing))} was not run")


@pytest.mark.parametrize("page", RUN, ids=name_of)
def test_commands_run_as_they_stand(page, tmp_path):
    (tmp_path / "data").symlink_to(TOP / "data")
    run_blocks(page, set(PROGRAMS), tmp_path)


@pytest.fixture(scope="session")
def your_files(tmp_path_factory):
    """Small files under the names that commands of the documentation give to the reader's."""
    folder = tmp_path_factory.mktemp("files")
    sample = sample_reads(11, genome=12_000, depth=14, mean=2500, error=0.03)
    records = [f"@read{i}\n{text}\n+\n{'5' * len(text)}\n" for i, text in enumerate(sample.sequences)]
    genome = random_bases(np.random.default_rng(3), 6000)
    other = noisy_copy(np.random.default_rng(4), genome, 0.05)[0]
    copies = [noisy_copy(np.random.default_rng(i), genome[:300], 0.1)[0] for i in range(5)]
    texts = {
        "reads.fastq": "".join(records),
        "a.fa": f">a\n{genome}\n",
        "b.fa": f">b\n{other}\n",
        "genome.fa": f">g\n{2 * genome}\n",
        "windows.fa": "".join(f">window{w}\n{copy}\n" for w in "12" for copy in copies),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    for name, source in {"reads.fq": "reads.fastq", "target.fa": "a.fa", "query.fa": "b.fa"}.items():
        (folder / name).write_text(texts[source])
    longest = max(sample.sequences, key=len)
    for name in ("reference.fa", "draft.fa"):
        (folder / name).write_text(f">g\n{longest}\n")
    for name, part in {"reads.fastq.gz": records, "a.fa.gz": records[::2], "b.fa.gz": records[1::2]}.items():
        (folder / name).write_bytes(gzip.compress("".join(part).encode()))
    for words in (["overlap", "--cigar", "reads.fq", "-o", "overlaps.paf"], ["correct", "reads.fq", "-o", "corrected.fa"]):
        assert run(*(folder / word if "." in word else word for word in words)).code == 0
    return folder


@pytest.mark.parametrize("page", [page for page in MANUAL if "```sh your-files" in page.read_text()], ids=name_of)
def test_commands_run_on_files_of_the_reader(page, your_files, tmp_path):
    for path in your_files.iterdir():
        shutil.copy(path, tmp_path)
    run_blocks(page, {"sh your-files"}, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_blocks_with_commands_say_whether_they_run(page):
    for kind, text in blocks_of(page):
        if any(calls_in(text)) and "[bellapy]" not in text:
            assert kind.partition(" needs ")[0] in BLOCKS, text


def test_what_does_not_run_is_told_with_its_reason():
    unused = set(NOT_RUN)
    for page in MANUAL:
        for kind, text in blocks_of(page):
            if kind == "sh no-test":
                found = [part for part in NOT_RUN if part in text]
                assert found, f"{page}: {text}"
                unused -= set(found)
    assert not unused


@pytest.mark.parametrize("page", RUN, ids=name_of)
def test_what_draws_is_installed_first(page):
    """As a page says it: an installation without matplotlib draws nothing."""
    installs = False
    for kind, text in blocks_of(page):
        installs = installs or ".[plot]" in text
        assert installs or kind != "sh" or not DRAWS.search(text), text


@pytest.mark.parametrize("page", MANUAL, ids=name_of)
def test_options_exist(page):
    text = page.read_text()
    if page.name == "coming-from.md":  # on the left are the options of other programs
        text = re.sub(r"^\|[^|]*\|", "|", text, flags=re.MULTILINE)
    known = options_of_commands()
    calls = [call for kind, block in blocks_of(page) if kind.startswith("sh") for call in calls_in(block)]
    codes = CODE.findall(BLOCK.sub("", text))
    calls += [call for code in codes if code.startswith("bellapy ") for call in calls_in(code)]
    assert not unknown_options(calls)
    here = set().union(*(known[command] for command in ABOUT.get(page.name, known)))
    named = {word for code in codes if code.startswith("-") for word in code.split() if re.match("--?[a-zA-Z]", word)}
    assert {word for word in named if word.split("=")[0] not in here} <= {"--version"}


def anchors_of(page: Path) -> set[str]:
    """Names of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", BLOCK.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    for link in LINK.findall(BLOCK.sub("", page.read_text())):
        if link.startswith("http"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors_of(target), link


def test_the_tests_see_what_is_wrong():
    calls = list(calls_in("a | .venv/bin/bellapy overlap --no-such -t 1 - -x=3 > b && bellapy fly"))
    assert calls == [("overlap", ["--no-such", "-t", "1", "-", "-x=3"]), ("fly", [])]
    assert unknown_options(calls) == ["overlap --no-such", "fly"]
    assert not unknown_options(calls_in("bellapy extend a.tsv -k 3 -x 25 --mismatch -2 # --no-such"))
