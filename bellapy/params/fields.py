"""What is known about a parameter, written once beside it: default, range, unit, help, source and its option.

A group of parameters is a frozen dataclass, or a NamedTuple where compiled code takes it.  Its fields are annotated with
`About`; the command line makes its options from that, and `check` refuses values out of range.  Groups must not postpone the
evaluation of annotations.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from types import NoneType
from typing import Any, NamedTuple, get_args

from bellapy.errors import ParameterError

INPUT, SEEDING, ALIGNMENT, FILTER, OUTPUT, RUN = "Input", "Seeding", "Alignment", "Filter", "Output", "Run"
PANELS = INPUT, SEEDING, ALIGNMENT, FILTER, OUTPUT, RUN
"""Groups of options in help, in this order."""

LARGEST = 2**31 - 1
"""A bound that only the type sets; help does not name it."""


class Range(NamedTuple):
    """Smallest and largest value that is allowed."""

    low: float
    high: float


@dataclass(frozen=True)
class About:
    """What is known about a parameter.

    help : one sentence, without default, range and choices.
    low, high : smallest and largest value allowed; choices : all values allowed.
    unit : of the value, in words.  source : where the default comes from, if not from our own measurements.
    unset : in words, what happens where the value is None.
    panel : the group of its option in help; "" : there is no option.
    flags : names of the option; none: made of the field's name.  metavar : what stands for the value in help.
    text : the option takes text, which something else turns into the value.
    common : shown by the short help too.
    aliases : other words for choices, as other programs have them, each with the choice that is meant.
    """

    help: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    unit: str = ""
    source: str = ""
    unset: str = ""
    panel: str = ""
    flags: tuple[str, ...] = ()
    metavar: str | None = None
    text: bool = False
    common: bool = False
    aliases: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Field:
    """A parameter: its name, its type (int, float, str or bool), its default, and what is known about it."""

    name: str
    kind: type
    default: Any
    about: About

    @property
    def flags(self) -> tuple[str, ...]:
        """Names of its option, the one that messages use last."""
        return self.about.flags or ("--" + self.name.replace("_", "-"),)

    def meant(self, value: Any) -> Any:
        """The value that a user means: what is always negative may be given without its sign."""
        about = self.about
        if about.high is not None and about.high < 0 and value is not None:
            return -abs(value)
        return dict(about.aliases).get(value, value) if about.aliases else value

    def check(self, value: Any) -> None:
        """Raise ParameterError, naming the option, for a value out of range."""
        about = self.about
        if about.choices and value not in about.choices:
            raise ParameterError(f"{self.flags[-1]} {value}: choose from {', '.join(about.choices)}")
        if about.low is None or about.high is None or about.low <= value <= about.high:
            return
        raise ParameterError(f"{self.flags[-1]} {value}: must be from {_shown(about.low)} to {_shown(about.high)}")

    def describe(self) -> str:
        """The help text: what it is, its unit, range, choices and default."""
        about, known = self.about, []
        if about.choices:
            known.append(", ".join(about.choices))
        elif about.low is not None and about.high is not None:
            low, high = _shown(about.low), _shown(about.high)
            known.append(f"{low} to {high}" if about.high < LARGEST else f"at least {low}")
        if about.unset:
            known.append(f"default: {about.unset}")
        elif self.default is not None and self.default is not False:
            known.append(f"default: {_shown(self.default)}")
        text = about.help + (f", in {about.unit}" if about.unit else "")
        return f"{text} [{'; '.join(known)}]." if known else f"{text}."


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() else f"{value:g}"
    return str(value)


def fields_of(group: type) -> dict[str, Field]:
    """The fields of a group that say something about themselves, by name, in order."""
    found = {}
    for name, hint in group.__annotations__.items():
        about = next((part for part in getattr(hint, "__metadata__", ()) if isinstance(part, About)), None)
        if about is not None:
            kinds = [kind for kind in get_args(hint.__origin__) or (hint.__origin__,) if kind is not NoneType]
            found[name] = Field(name, str if about.text else kinds[0], _default(group, name), about)
    return found


def _default(group: type, name: str) -> Any:
    if not is_dataclass(group):
        return group._field_defaults.get(name)  # type: ignore[attr-defined]
    default = next(f.default for f in fields(group) if f.name == name)
    return None if default is MISSING else default


def options_of(*groups: type) -> dict[str, Field]:
    """The fields of some groups that have options, by name; one option rules all fields of its name."""
    return {name: field for group in groups for name, field in fields_of(group).items() if field.about.panel}


def ranges_of(*groups: type) -> dict[str, Range]:
    """Ranges of all fields that have one, by name."""
    found = {name: field.about for group in groups for name, field in fields_of(group).items()}
    bounds = ((name, about.low, about.high) for name, about in found.items())
    return {name: Range(low, high) for name, low, high in bounds if low is not None and high is not None}


def check(values: Mapping[str, Any], known: Mapping[str, Field]) -> None:
    """Raise ParameterError, naming the option, for a value out of range; names that are not known pass."""
    for name, value in values.items():
        if name in known:
            known[name].check(value)


def given_values(values: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Those of the values that have these names and are not None."""
    return {name: values[name] for name in names if values.get(name) is not None}


def checked(values: Mapping[str, Any], group: type) -> dict[str, Any]:
    """Those of the values that are fields of a group and are not None, in range; else ParameterError names the option."""
    known = fields_of(group)
    given = given_values(values, known)
    check(given, known)
    return given


UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
"""The power of 1000 that each unit of size stands for; with an i, of 1024."""


def parse_size(text: str) -> int:
    """Bytes of a size such as 600M, 1.5GB, 2GiB or 1e9: K, M, G and T are powers of 1000, Ki, Mi, Gi and Ti of 1024."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?(?:E[0-9]{1,2})?)(?:([KMGT])(I?))?B?", text.upper())
    if not match:
        raise ParameterError(f"--max-memory {text}: give a number and a unit, such as 600M, 1.5G or 2GiB")
    number, unit, binary = match.groups(default="")
    return int(float(number) * (1024 if binary else 1000) ** UNITS[unit])
