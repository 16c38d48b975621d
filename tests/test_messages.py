"""All messages in one table, tests/expected/messages.txt, so that each change of one is read as its user will read it.

`python tests/test_messages.py` writes the table.  It has the lines of the log and the errors, with {} for what is put in.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bellapy import errors

TOP = Path(__file__).parent.parent
TABLE = Path(__file__).parent / "expected" / "messages.txt"
MADE = {*(name for name in vars(errors) if name.endswith("Error")), "fault", "fail"}
LEVELS = "info", "warning", "error"
NAMED = "problem", "why", "hint", "way_out", "told"
"""Variables that hold parts of messages."""
WORDS = (
    "tilt",
    "matrix percent",
    "set copies apart",
    "gate",
    "kept what",
    "blob",
    "kwargs",
    "dtype",
    "ndarray",
    "None",
    "tuple",
)
JARGON = re.compile(rf"\b(?:{'|'.join(WORDS)})\b")
PLURALS = re.compile(r"\b(?<![.\d])1 (reads|bases|ranges|tasks|lines|sequences)\b")


def text_of(node: ast.AST) -> str | None:
    """The text of a literal, with {} for what is put in; None: it is none."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.sub(r"%(?:\.\d+)?[sdfrx]", "{}", node.value).replace("%%", "%")
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = text_of(node.left), text_of(node.right)
        return None if left is None and right is None else (left or "{}") + (right or "{}")
    if isinstance(node, ast.IfExp):
        left, right = text_of(node.body), text_of(node.orelse)
        return None if left is None or right is None else f"{left} | {right}"
    return None


def messages_in(tree: ast.AST) -> Iterator[str]:
    """The messages of a module, in its order."""
    for node in ast.walk(tree):
        texts: list[str | None] = []
        if isinstance(node, ast.Call):
            function = node.func
            if isinstance(function, ast.Attribute) and function.attr in LEVELS and ast.unparse(function.value) == "logger":
                texts = [text_of(node.args[0])]
            elif isinstance(function, ast.Name) and function.id.lstrip("_") in MADE:
                texts = [text_of(argument) for argument in node.args]
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in NAMED:
            texts = [text_of(node.value)]
        yield from (text for text in texts if text and " " in text.strip())


def table() -> list[str]:
    """All messages with their modules."""
    lines = set()
    for path in sorted((TOP / "bellapy").rglob("*.py")):
        module = path.relative_to(TOP / "bellapy").with_suffix("").as_posix()
        lines |= {f"{module}\t{text}".replace("\n", " ") for text in messages_in(ast.parse(path.read_text()))}
    return sorted(lines)


def test_the_table_holds_all_messages():
    """Read what has changed, as a user who knows nothing of the source, and write the table again."""
    known, found = TABLE.read_text().splitlines(), table()
    new, gone = sorted(set(found) - set(known)), sorted(set(known) - set(found))
    assert not new and not gone, f"new: {new}; gone: {gone}; python {Path(__file__).relative_to(TOP)}"
    assert len(known) > 200


@pytest.mark.parametrize("line", table())
def test_messages_are_plain(line):
    """No word of the source; no number with a wrong plural; one blank between words."""
    _, text = line.split("\t", 1)
    assert not JARGON.search(text), text
    assert not PLURALS.search(text), text
    assert "  " not in text.strip() and not text.endswith(" .")


if __name__ == "__main__":
    TABLE.write_text("\n".join(table()) + "\n")
