"""The floors of the house: no module imports from a floor above its own, and no job from another job."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import bellapy

PACKAGE = Path(bellapy.__file__).parent
FLOORS = [
    "version",
    "errors",
    "params",
    "records",
    "report",
    "compute",
    "seeding",
    "engines",
    "io",
    "runs",
    "jobs",
    "api",
    "cli",
    "__main__",
]
MOST_DEFERRED = 60
MODULES = sorted(PACKAGE.rglob("*.py"))


def room_of(module: str) -> str:
    """'bellapy.engines.linear.rule' -> 'engines'; names that the package itself holds, as '__version__', have no room."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in FLOORS else ""


def imports_of(path: Path) -> set[str]:
    """All modules of this package that a file imports, inside of functions too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{name.name}" for name in node.names}
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
    return {module for module in found if module.startswith("bellapy.")}


def job_of(module: str) -> str:
    parts = module.split(".")
    return parts[2] if len(parts) > 2 and parts[1] == "jobs" else ""


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_nothing_imports_upward(path):
    module = ".".join(("bellapy", *path.relative_to(PACKAGE).with_suffix("").parts))
    here = room_of(module)
    if not here:
        return
    above = FLOORS[FLOORS.index(here) + 1 :]
    assert not {other for other in imports_of(path) if room_of(other) in above}
    assert not {other for other in imports_of(path) if job_of(module) and job_of(other) not in ("", job_of(module))}


def test_every_room_is_on_a_floor():
    rooms = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in MODULES}
    assert rooms - {"__init__"} <= set(FLOORS)


def imported_at_run_time(path: Path) -> set[str]:
    """The modules of this package that a file imports, inside of functions too, but not those for types alone."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            node.body = []
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "bellapy":
            found |= {f"{node.module}.{name.name}" for name in node.names} | {node.module}
    return found


def test_no_modules_import_each_other_in_a_circle():
    """Not even inside of functions; the package itself loads its functions when they are asked for."""
    name_of = {path: ".".join(("bellapy", *path.relative_to(PACKAGE).with_suffix("").parts)) for path in MODULES}
    name_of = {path: name.removesuffix(".__init__") for path, name in name_of.items()}
    names = set(name_of.values())
    left = {name: imported_at_run_time(path) & names - {name, "bellapy"} for path, name in name_of.items()}
    while free := {name for name, needs in left.items() if not needs & left.keys()}:
        left = {name: needs for name, needs in left.items() if name not in free}
    assert not left


def deferred(path: Path) -> list[str]:
    """The imports of a file that stand inside of functions."""
    functions = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, (ast.FunctionDef, ast.Lambda))]
    found = {node for function in functions for node in ast.walk(function) if isinstance(node, (ast.Import, ast.ImportFrom))}
    return [
        f"{path.relative_to(PACKAGE)}:{node.lineno} {ast.unparse(node)}" for node in sorted(found, key=lambda x: x.lineno)
    ]


def test_imports_inside_of_functions_are_few():
    """Each is what a command needs, a package that may be missing, or what few runs need and takes long to load."""
    every = [one for path in MODULES for one in deferred(path)]
    assert len(every) <= MOST_DEFERRED, "\n".join(every)
