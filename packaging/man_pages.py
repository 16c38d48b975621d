"""Manual pages of the program and of its commands, made from the help: python packaging/man_pages.py FOLDER"""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from bellapy import __version__
from bellapy.cli.app import COMMANDS, app
from bellapy.cli.options import help_record


def escape(text: str) -> str:
    """Text as roff takes it."""
    text = text.replace("\\", "\\\\").replace("-", "\\-")
    return "\n".join("\\&" + line if line.startswith((".", "'")) else line for line in text.splitlines())


def head(name: str, help_text: str, usage: str) -> list[str]:
    """The sections that every page begins with."""
    return [
        f'.TH {name.upper().replace(" ", "-")} 1 "" "bellapy {__version__}" "bellapy"',
        ".SH NAME", f"{escape(name.replace(' ', '-'))} \\- {escape(help_text)}",
        ".SH SYNOPSIS", f".B {escape(name)}", escape(usage),
    ]  # fmt: skip


def records_of(command: typer.core.TyperCommand, context: typer.Context) -> list[tuple[str, str]]:
    """Names and help of all arguments and options."""
    found = (help_record(param, context) for param in command.get_params(context))
    return [record for record in found if record]


def pages() -> dict[str, str]:
    """The text of every page by its file's name."""
    group = typer.main.get_command(app)
    context = typer.Context(group, info_name="bellapy")
    made = {"bellapy.1": [*head("bellapy", group.help or "", "COMMAND [OPTIONS] ..."), ".SH COMMANDS"]}
    for name, entry in COMMANDS.items():
        made["bellapy.1"] += [".TP", f".BR bellapy\\-{escape(name)} (1)", escape(entry.help)]
        command = group.get_command(context, name)
        inner = typer.Context(command, info_name=name, parent=context)
        usage = " ".join(command.collect_usage_pieces(inner))
        lines = [*head(f"bellapy {name}", entry.help, usage), ".SH OPTIONS"]
        for option, text in records_of(command, inner):
            lines += [".TP", f".B {escape(option)}", escape(text)]
        made[f"bellapy-{name}.1"] = [*lines, ".SH SEE ALSO", ".BR bellapy (1)"]
    return {name: "\n".join(lines) + "\n" for name, lines in made.items()}


def main() -> None:
    """Write all pages to the folder that is named."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    main()
