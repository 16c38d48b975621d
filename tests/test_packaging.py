"""Packaging: what is made from a table is as the table says, with the same versions everywhere.

Nobody is told to install another project's package.
"""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from bellapy.cli.app import COMMANDS

TOP = Path(__file__).parents[1]
PACKAGING = TOP / "packaging"

pytestmark = pytest.mark.skipif(not PACKAGING.is_dir(), reason="the folder packaging is not here")


def lower_bounds(text: str) -> dict[str, str]:
    """Versions by the names of packages."""
    return dict(re.findall(r"""["\- ]([a-z][a-z-]*)(?:\[[a-z0-9]+\])? ?>=([0-9.]+)""", text))


def test_modules_are_as_the_table_says():
    made = runpy.run_path(str(PACKAGING / "modules.py"))["files"]()
    there = {
        str(path.relative_to(PACKAGING))
        for kind in ("nf-core", "snakemake")
        for path in (PACKAGING / kind).rglob("*.*")
        if "__pycache__" not in path.parts
    }
    assert there == set(made)
    for name, text in made.items():
        assert (PACKAGING / name).read_text() == text, f"{name}: run python packaging/modules.py"


def test_modules_call_commands_that_are_there():
    made = runpy.run_path(str(PACKAGING / "modules.py"))["files"]()
    called = {
        name for text in made.values() for name in re.findall(r"^ *(?:shell\(\")?bellapy ([a-z]+) ", text, re.MULTILINE)
    }
    assert called == {"overlap", "correct", "map", "exact", "wga"} <= set(COMMANDS)


def test_recipe_has_the_versions_of_the_project():
    project = (TOP / "pyproject.toml").read_text()
    needed = lower_bounds(project[project.index("\ndependencies") : project.index("[project.optional")])
    plot = lower_bounds(project[project.index("\nplot =") :].split("\n")[1])
    recipe = (PACKAGING / "conda" / "meta.yaml").read_text()
    run = lower_bounds(recipe[recipe.index("  run:\n") : recipe.index("\ntest:")])
    assert len(needed) == 6
    assert {**needed, "python": "3.10", "matplotlib-base": plot["matplotlib"]} == run


def test_manual_pages(tmp_path):
    subprocess.run([sys.executable, str(PACKAGING / "man_pages.py"), str(tmp_path)], check=True, cwd=TOP)
    assert {path.name for path in tmp_path.iterdir()} == {"bellapy.1", *(f"bellapy-{name}.1" for name in COMMANDS)}
    page = (tmp_path / "bellapy-overlap.1").read_text()
    assert ".SH OPTIONS" in page
    assert "\\-\\-min\\-overlap" in page


def test_nobody_is_told_to_install_the_other_bellapy():
    texts = [
        *TOP.glob("*.md"),
        *(path for room in ("bellapy", "docs", "workflows", "packaging") for path in (TOP / room).rglob("*")),
    ]
    for path in texts:
        if path.suffix in (".py", ".md", ".yaml", ".yml", ".nf", ".def", "") and path.is_file():
            assert not re.search(r"pip install[^\n]*[ '\"]bellapy(?!-bio)\b", path.read_text()), path
