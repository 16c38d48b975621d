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

from bellapy import __version__
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
    assert len(needed) == 10
    needed["python-isal"] = needed.pop("isal")  # as conda-forge calls it
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


def test_recipe_is_sound():
    """As conda reads it: a template that gives YAML."""
    jinja2, yaml = pytest.importorskip("jinja2"), pytest.importorskip("yaml")
    text = jinja2.Template((PACKAGING / "conda" / "meta.yaml").read_text()).render(
        PYTHON="python", pin_subpackage=lambda name, max_pin: name
    )
    recipe = yaml.safe_load(text)
    assert recipe["package"] == {"name": "bellapy-bio", "version": __version__}
    assert recipe["build"]["entry_points"] == ["bellapy = bellapy.__main__:main"]
    assert "pip install" in recipe["build"]["script"] and {"imports", "commands"} <= set(recipe["test"])


def test_containers_copy_what_is_there():
    docker = (PACKAGING / "Dockerfile").read_text()
    copied = [name for line in re.findall(r"^COPY (.*)$", docker, re.MULTILINE) for name in line.split()[:-1]]
    apptainer = (PACKAGING / "apptainer.def").read_text()
    files = apptainer[apptainer.index("%files") : apptainer.index("%post")]
    copied += [line.split()[0] for line in files.splitlines()[1:] if line.strip()]
    assert copied and all((TOP / name).exists() for name in copied)
    project = (TOP / "pyproject.toml").read_text()
    needed = set(re.findall(r'"(README\.md|LICENSE)"', project)) | {"pyproject.toml", "bellapy"}
    assert needed <= set(copied)
    for extra in re.findall(r"/source\[([a-z,]+)\]", docker + apptainer):
        assert all(f"\n{name} = [" in project for name in extra.split(","))
