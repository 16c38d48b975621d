"""Modules stay short, functions short, narrow and documented: the bounds of benchmarks/shape.py hold."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import bellapy

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
import shape

SHAPES = shape.shapes_of(Path(bellapy.__file__).parent)
MOST_EXCEPTIONS = 1  # functions with many branches
LEAST_DOCUMENTED = 0.8  # of the parameters of compiled functions


def has_slice(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Slice) for part in ast.walk(node))


def test_no_module_is_long():
    lines = shape.module_lines(Path(bellapy.__file__).parent)
    assert len(lines) > 100
    assert [name for name, n in lines.items() if n > shape.MOST_MODULE_LINES] == []


def test_no_function_is_long_or_wide():
    assert [s.where for s in SHAPES if s.lines > shape.MOST_KERNEL_LINES] == []
    assert [s.where for s in SHAPES if s.lines > shape.MOST_LINES and not s.compiled] == []
    assert [s.where for s in SHAPES if s.arguments > shape.MOST_ARGUMENTS and not s.where.startswith("cli/")] == []


def test_few_functions_have_many_branches():
    assert len([s.where for s in SHAPES if s.branches > shape.MOST_BRANCHES]) <= MOST_EXCEPTIONS


def test_parameters_of_compiled_functions_are_documented():
    compiled = [s for s in SHAPES if s.compiled]
    assert sum(s.documented for s in compiled) >= LEAST_DOCUMENTED * sum(s.arguments for s in compiled) > 0


def test_compiled_functions_assign_no_arrays_to_slices():
    """Nor tuples to rows: each takes Numba a second more to compile.  `put` of compute/jit.py copies."""
    for path in sorted(Path(bellapy.__file__).parent.rglob("*.py")):
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef) and any("njit" in ast.unparse(d) for d in function.decorator_list):
                for node in ast.walk(function):
                    if not isinstance(node, ast.Assign):
                        continue
                    assert not (has_slice(node.targets[0]) and has_slice(node.value)), f"{path}:{node.lineno}"
                    to_row = isinstance(node.targets[0], ast.Subscript) and isinstance(node.value, ast.Tuple)
                    assert not to_row, f"{path}:{node.lineno}"
