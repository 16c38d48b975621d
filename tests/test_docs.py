"""README.md and docs/: their commands run as they stand, their options exist, their links lead somewhere.

A block that begins with ```sh or ```python holds commands for a shell, or for Python, in the top folder of the repository.
They run here (those of docs/api.md in test_api.py).  A block that begins with ```sh no-test needs more than the repository
holds: files of the reader's, a GPU.  One with ```sh needs X Y runs where programs X and Y are found.  Options of both are
checked all the same.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from shutil import which

import pytest
import typer

from bellapy.cli.app import app

TOP = Path(__file__).parents[1]
MANUAL = [TOP / "README.md", TOP / "CONTRIBUTING.md", *sorted((TOP / "docs").glob("*.md"))]
PAGES = [
    *MANUAL,
    TOP / "benchmarks" / "RESULTS.md",
    *(TOP / room / "README.md" for room in ("benchmarks", "data", "workflows")),
]
ABOUT = {"map.md": ("map", "index", "pairwise"), "exact.md": ("exact",), "evaluate.md": ("overlap", "map", "evaluate")}
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
NUMBER = re.compile(r"-[0-9.]+$")
SEPARATORS = {"|", "&&", ";", ">", "<"}
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


@pytest.mark.parametrize("page", RUN, ids=name_of)
def test_commands_run_as_they_stand(page, tmp_path):
    (tmp_path / "data").symlink_to(TOP / "data")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    missing: set[str] = set()
    for kind, text in blocks_of(page):
        kind, _, needed = kind.partition(" needs ")
        missing |= {program for program in needed.split() if not which(program)}
        if kind in PROGRAMS and not (needed and missing):
            done = subprocess.run([*PROGRAMS[kind], text], cwd=tmp_path, env=environment, capture_output=True, text=True)
            assert done.returncode == 0, text + done.stderr
            assert "Traceback" not in done.stderr
    if missing:
        pytest.skip(f"what needs {' and '.join(sorted(missing))} was not run")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_blocks_with_commands_say_whether_they_run(page):
    for kind, text in blocks_of(page):
        if any(calls_in(text)) and "[bellapy]" not in text:
            assert kind.partition(" needs ")[0] in ("sh", "sh no-test"), text


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
