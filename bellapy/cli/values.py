"""How words of the command line become values, in a short time."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import typer

from bellapy.errors import ParameterError


def quickly(params: list[Any], kinds: Mapping[str, Callable[[Any], Any]]) -> list[Any]:
    """Parameters that make their values by themselves; what is missing is left to Typer and its messages.

    Typer has values made by Pydantic, even those that are not given, and to load it takes a tenth of a second.

    kinds : what makes a value of a word, for parameters without a callback by name.
    """
    for param in params:
        if "process_value" not in vars(param):
            param.process_value = functools.partial(_value, param, kinds.get(param.name), param.process_value)
    return params


def _value(
    param: Any, kind: Callable[[Any], Any] | None, by_typer: Callable[..., Any], context: typer.Context, value: Any
) -> Any:
    given = value is not None and value != ()
    if not given and not param.required:
        return param.callback(context, param, value) if param.callback else value
    if not given or kind is None or param.callback:
        return by_typer(context, value)
    try:
        return kind(value)
    except ValueError:
        number = "a whole number" if kind is int else "a number"
        raise ParameterError(f"{param.opts[-1]} {value}: give {number}") from None
