"""Options of commands, made from what stands beside the parameters, and the help that shows them by panels."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Set
from types import NoneType, UnionType
from typing import Annotated, Any, get_args, get_origin

import typer
from typer.core import TyperCommand

from bellapy.cli.habits import from_minimap2
from bellapy.cli.values import quickly
from bellapy.params.fields import OUTPUT, PANELS, Field, options_of
from bellapy.params.run import LogParams, RunParams

Given = Mapping[str, Any]
"""The options of a command by name; None: not given."""

SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"]}
OTHERS = "Other"
FEW_OPTIONS = 16  # so many are shown by the short help too, whatever they are

Reads = Annotated[
    list[str], typer.Argument(help="FASTA, FASTQ or BAM, packed or not; - is standard input.", show_default=False)
]
ReadFiles = Annotated[list[str], typer.Argument(help="Files of FASTA, FASTQ or BAM, packed or not.", show_default=False)]


def output_option(text: str, **others: Any) -> Any:
    """The option -o.  text : its help.  others : of `typer.Option`."""
    return typer.Option("-o", "--output", metavar="FILE", help=text, rich_help_panel=OUTPUT, **others)


Output = Annotated[str, output_option("File to write; .gz or .bgz compresses; - is standard output.")]
StageOutput = Annotated[str, output_option("File for the next stage.", show_default=False)]


def pick(group: type, names: str) -> dict[str, Field]:
    """The options of some fields of a group, named with blanks between."""
    found = options_of(group)
    return {name: found[name] for name in names.split()}


LOG = options_of(LogParams)
RUNNING = {**pick(RunParams, "threads max_memory"), **LOG}
"""Options of nearly every command."""
THREADS_AND_LOG = {**pick(RunParams, "threads"), **LOG}
"""Those of commands whose memory is not bounded."""


def takes(*options: Mapping[str, Field]) -> Callable[[Callable], Callable]:
    """Declare the options of a command: its function gets them as its argument `given`."""

    def declare(function: Callable) -> Callable:
        function.options = {name: field for some in options for name, field in some.items()}  # type: ignore[attr-defined]
        return function

    return declare


def make_command(name: str, text: str, function: Callable) -> Command:
    """The parser of a command.

    text : its help.  function : takes its own arguments and options, and as `given` those that `takes` declares.
    """
    options: dict[str, Field] = getattr(function, "options", {})
    own = [p for p in inspect.signature(function, eval_str=True).parameters.values() if p.name != "given"]
    rare = {name for name, field in options.items() if not field.about.common} if len(options) > FEW_OPTIONS else set()
    help_all = _argument("help_all", _help_all(hidden=not rare), False)
    parameters = (
        [p.replace(kind=p.KEYWORD_ONLY) for p in own] + [_parameter(field) for field in options.values()] + [help_all]
    )

    @functools.wraps(function)
    def run(**values: Any) -> None:
        mine = {p.name: values[p.name] for p in own}
        function(
            **mine, **({"given": {name: field.meant(values[name]) for name, field in options.items()}} if options else {})
        )

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    kinds = {p.name: _kind(p.annotation) for p in parameters}
    kind = type("Command", (Command,), {"rare": rare, "fields": options, "kinds": kinds})
    alone.command(name, help=text, cls=kind, context_settings=SETTINGS)(run)
    command = typer.main.get_command(alone)
    assert isinstance(command, Command)
    return command


def _kind(annotation: Any) -> Callable[[Any], Any]:
    """What makes a value of a word, or of all words of a list, for an annotated type."""
    hint = get_args(annotation)[0]
    given = next(kind for kind in get_args(hint) if kind is not NoneType) if isinstance(hint, UnionType) else hint
    return get_origin(given) or given


def _argument(name: str, kind: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _show_all(context: typer.Context, wanted: bool) -> None:
    if wanted:
        context.meta[__name__] = True
        typer.echo(context.get_help())
        raise typer.Exit


def _help_all(hidden: bool) -> Any:
    """The option --help-all; hidden : where the short help shows all options too."""
    text = "Show all options and exit."
    return Annotated[bool, typer.Option("--help-all", is_eager=True, callback=_show_all, help=text, hidden=hidden)]


def _parameter(field: Field) -> inspect.Parameter:
    """The option of a field as an argument of a function, as typer reads it; None where it is not given."""
    option = typer.Option(
        *field.flags,
        help=field.describe(), metavar=field.about.metavar, rich_help_panel=field.about.panel,
        autocompletion=_completion(field.about.choices) if field.about.choices else None,
    )  # fmt: skip
    return _argument(field.name, Annotated[field.kind | None, option], None)


def _completion(choices: tuple[str, ...]) -> Callable[[str], list[str]]:
    """What a shell asks for the choices that a beginning may become."""

    def starting(incomplete: str) -> list[str]:
        return [choice for choice in choices if choice.startswith(incomplete)]

    return starting


VALUES = {"<str>": "WORD", "<int>": "N", "<float>": "NUMBER"}
"""What stands for the values of options in help, for the names of Python's types that newer versions of Typer show."""


def help_record(param: Any, context: typer.Context) -> tuple[str, str] | None:
    """The name of an argument or option as help shows it, with what stands for its value, and its help; None: hidden."""
    record = param.get_help_record(context)
    if record is None:
        return None
    name, text = record
    if param.param_type_name == "argument":
        return name.split(" <")[0], text
    for kind, shown in VALUES.items():
        name = name.replace(kind, shown)
    return name, text


class Command(TyperCommand):
    """A command whose help groups options by panels, and leaves those out that few people need."""

    rare: Set[str] = frozenset()
    fields: Mapping[str, Field] = {}  # of the options that are parameters
    kinds: Mapping[str, Callable[[Any], Any]] = {}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; those of minimap2's users are understood where there are presets."""
        if preset := self.fields.get("preset"):
            known = {*preset.about.choices, *dict(preset.about.aliases)}
            needs_name = "xdrop" not in self.fields
            args = from_minimap2(args, lambda word: needs_name or word in known or not word[:1].isdigit())
        return super().parse_args(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        """Arguments and options, and help."""
        return quickly(super().get_params(ctx), self.kinds)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options; all of them after --help-all."""
        everything = ctx.meta.get(__name__, False)
        panels: dict[str, list] = {name: [] for name in ("Arguments", *PANELS, OTHERS)}
        for param in self.get_params(ctx):
            if (param.name in self.rare and not everything) or (record := help_record(param, ctx)) is None:
                continue
            if param.param_type_name == "argument":
                panels["Arguments"].append(record)
            else:
                panels[getattr(param, "rich_help_panel", None) or OTHERS].append(record)
        for name, records in panels.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)
        if self.rare and not everything:
            formatter.write_paragraph()
            formatter.write_text(f"{len(self.rare)} more options: {ctx.command_path} --help-all")
