"""Options of the whole job, given to a workflow -> those that a stage takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bellapy.errors import ParameterError

STAGES = ("count", "candidates", "align", "filter")
NOT_FOR_USERS = ("output", "report_file", "threads", "debug")  # the workflow says these


def options_for(stage: str, options: Sequence[str], commands: Mapping) -> list[str]:
    """The words of those options that a stage takes.

    Parameters
    ----------
    options : words of options of `overlap`.
    commands : the parsers of the command line, by name.

    Raises
    ------
    ParameterError : no such stage, or an option that no stage takes; what `overlap` does not know, its parser refuses.
    """
    if stage not in STAGES:
        raise ParameterError(f"{stage}: is no stage; choose from {', '.join(STAGES)}")
    whole = commands["overlap"]
    given, others, _ = whole.make_parser(whole.context_class(whole)).parse_args(list(options))
    if others := [*others, *(given.pop("reads", None) or ())]:
        raise ParameterError(f"{others[0]}: is no option of overlap")
    taken = {name: {option.name: option.opts[0] for option in commands[name].params} for name in STAGES}
    words = []
    for name, value in given.items():
        if name in NOT_FOR_USERS or not any(name in options for options in taken.values()):
            raise ParameterError(f"--{name.replace('_', '-')}: no stage takes it from a workflow")
        if name in taken[stage]:
            words += [taken[stage][name]] if isinstance(value, bool) else [taken[stage][name], value]
    return words
