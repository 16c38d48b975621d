"""The command `stage-options`: options of the whole job, given to a workflow -> those that a stage takes."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from bellapy.errors import ParameterError
from bellapy.io.outputs import open_output

STAGES = ("count", "candidates", "align", "filter")
NOT_FOR_USERS = ("output", "report_file", "threads", "debug", "help", "help_all")  # the workflow says these


def stage_options(
    stage: Annotated[str, typer.Argument(help="count, candidates, align or filter.", show_default=False)],
    options: Annotated[list[str] | None, typer.Argument(help="After --: options of overlap.", show_default=False)] = None,
) -> None:
    """Options for a stage, for workflows."""
    from bellapy.cli.app import load_command

    words = options_for(stage, options or [], load_command)
    with open_output("-") as stream:
        stream.write(f"{shlex.join(words)}\n".encode())


def options_for(stage: str, options: Sequence[str], parser_of: Callable[[str], Any]) -> list[str]:
    """The words of those options that a stage takes.

    Parameters
    ----------
    options : words of options of `overlap`.
    parser_of : gives the parser of a command.

    Raises
    ------
    ParameterError : no such stage, or an option that no stage takes; what `overlap` does not know, its parser refuses.
    """
    if stage not in STAGES:
        raise ParameterError(f"{stage}: is no stage; choose from {', '.join(STAGES)}")
    whole = parser_of("overlap")
    given, others, _ = whole.make_parser(whole.context_class(whole, info_name="bellapy overlap")).parse_args(list(options))
    if others := [*others, *(given.pop("reads", None) or ())]:
        raise ParameterError(f"{others[0]}: is no option of overlap")
    taken = {name: {option.name: option.opts[0] for option in parser_of(name).params} for name in STAGES}
    words = []
    for name, value in given.items():
        if name in NOT_FOR_USERS or not any(name in options for options in taken.values()):
            raise ParameterError(f"--{name.replace('_', '-')}: no stage takes it from a workflow")
        if name in taken[stage]:
            words += [taken[stage][name]] if isinstance(value, bool) else [taken[stage][name], value]
    return words
