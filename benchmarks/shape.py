#!/usr/bin/env python3
"""How long modules are, how long, wide and branched functions, and how much of the compiled ones is documented.

    python benchmarks/shape.py [FOLDER]

FOLDER is the package unless given.  Lines of a body leave the docstring out; a function that holds others counts its own
lines alone.  A branch is an `if`, a loop, an `and` or `or`, a handler, or a loop of a comprehension.  A parameter counts as
documented where the docstring of its function names it.  Compiled functions are those with a decorator of compute/jit.py or
numba's, functions inside of them, and those that the factories of GPU kernels make.
"""

from __future__ import annotations

import ast
import re
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

BRANCHES = (ast.If, ast.For, ast.While, ast.IfExp, ast.ExceptHandler, ast.BoolOp, ast.comprehension, ast.match_case)
COMPILED = re.compile(r"jit|^device$|^kernel")
MOST_LINES, MOST_KERNEL_LINES, MOST_ARGUMENTS, MOST_BRANCHES = 60, 120, 10, 20
MOST_MODULE_LINES = 400
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Shape(NamedTuple):
    """A function: lines of its body, arguments, branches; whether it is compiled, how many arguments its docstring names."""

    where: str
    lines: int
    arguments: int
    branches: int
    compiled: bool
    documented: int


def functions_of(path: Path, name: str) -> Iterator[Shape]:
    """All functions of a file, those inside of others too."""

    makes_kernels = path.stem.endswith("_kernels")

    def walk(node: ast.AST, inside: bool) -> Iterator[Shape]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, Function):
                compiled = inside or is_compiled(child) or (makes_kernels and isinstance(node, Function))
                yield shape_of(child, f"{name}:{child.name}", compiled)
                yield from walk(child, compiled)
            else:
                yield from walk(child, inside)

    return walk(ast.parse(path.read_text()), False)


def is_compiled(function: Function) -> bool:
    names = (ast.unparse(d.func if isinstance(d, ast.Call) else d).split(".")[-1] for d in function.decorator_list)
    return any(COMPILED.search(name) for name in names)


def own_nodes(function: Function) -> Iterator[ast.AST]:
    """Everything in a function but what stands in functions inside of it."""
    todo = list(ast.iter_child_nodes(function))
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, Function):
            todo += ast.iter_child_nodes(node)


def shape_of(function: Function, where: str, compiled: bool) -> Shape:
    body = function.body[1:] if ast.get_docstring(function) else function.body
    lines = function.end_lineno - body[0].lineno + 1 if body else 0
    lines -= sum(node.end_lineno - node.lineno + 1 for node in own_nodes(function) if isinstance(node, Function))
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
    names = [name for name in names if name not in ("self", "cls")]
    text = ast.get_docstring(function) or ""
    documented = sum(re.search(rf"\b{name}\b", text) is not None for name in names)
    return Shape(where, lines, len(names), sum(isinstance(n, BRANCHES) for n in own_nodes(function)), compiled, documented)


def module_lines(package: Path) -> dict[str, int]:
    """How many lines each module of a package has."""
    return {str(path.relative_to(package)): len(path.read_text().splitlines()) for path in sorted(package.rglob("*.py"))}


def shapes_of(package: Path) -> list[Shape]:
    """All functions of a package."""
    files = sorted(package.rglob("*.py"))
    return [shape for path in files for shape in functions_of(path, str(path.relative_to(package)))]


def main() -> None:
    package = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent / "bellapy"
    shapes = shapes_of(package)
    print(f"{len(shapes)} functions")
    for column in ("lines", "arguments", "branches"):
        values = sorted(getattr(shape, column) for shape in shapes)
        print(f"{column}: median {statistics.median(values):.0f}, p90 {values[len(values) * 9 // 10]}, most {values[-1]}")
    modules = module_lines(package)
    print(f"lines of a module: median {statistics.median(modules.values()):.0f}, most {max(modules.values())}")
    compiled = [shape for shape in shapes if shape.compiled]
    total, named = sum(s.arguments for s in compiled), sum(s.documented for s in compiled)
    print(f"parameters of compiled functions: {total}, documented {named} ({100 * named / max(1, total):.0f} %)")
    for title, rows in (
        ("long", [s for s in shapes if s.lines > (MOST_KERNEL_LINES if s.compiled else MOST_LINES)]),
        ("many arguments", [s for s in shapes if s.arguments > MOST_ARGUMENTS]),
        ("many branches", [s for s in shapes if s.branches > MOST_BRANCHES]),
    ):
        print(f"{title}: {len(rows)}")
        for s in sorted(rows, key=lambda s: -s.lines):
            print(f"  {s.where}: {s.lines} lines, {s.arguments} arguments, {s.branches} branches")

    long = [f"  {name}: {lines} lines" for name, lines in modules.items() if lines > MOST_MODULE_LINES]
    print("\n".join([f"long modules: {len(long)}", *long]))


if __name__ == "__main__":
    main()
