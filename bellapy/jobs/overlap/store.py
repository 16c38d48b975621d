"""What the tasks of rounds leave for each other, and what is learnt from all of them: records, in memory or in files.

A `Result` names a record and says what kind it is.  In a folder (`--workdir`) its fields become arrays by name: those of a
record in it with a point between, those of a tuple by number.  Of a list, whose items are meant end to end, one array is
made.  What is no array is kept as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Generic, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from bellapy.errors import InputError
from bellapy.io.workdir import Workdir
from bellapy.records.kmers import Held

Kind = TypeVar("Kind")
Part = TypeVar("Part")
ABOUT = "about"  # name of the array that holds what is no array, as JSON
BARE = "bare"  # name of an array that is a result by itself


@dataclass(frozen=True)
class Result(Generic[Kind]):
    """A record that is kept by name.

    over : what its round has tasks for, "parts" of the k-mers or "tiles" of the reads; "": there is one for the whole job.
    part : the field of the record that is meant, with points for fields of fields; "": all of it.
    """

    name: str
    kind: type[Kind]
    over: str = ""
    part: str = ""

    def of(self, task: int | None) -> str:
        """The name for one task."""
        return self.name if task is None else f"{self.name}.{task}"

    def only(self, part: str, kind: type[Part]) -> Result[Part]:
        """One field of it, of that kind."""
        return Result(self.name, kind, self.over, part)


@dataclass(frozen=True)
class Done:
    """What the tasks of a round told besides arrays, when all are done."""

    tasks: list[dict[str, object]]


def done(result: Result) -> Result[Done]:
    """What is kept of a round whose results are removed."""
    return Result(f"done_{result.name}", Done)


class MemoryStore:
    """Records in memory: those that are popped make room."""

    def __init__(self) -> None:
        self._records: dict[str, object] = {}
        self._told: dict[str, Mapping[str, Any]] = {}

    def has(self, result: Result, task: int | None = None) -> bool:
        """Whether it is there."""
        return result.of(task) in self._records

    def get(self, result: Result[Kind], task: int | None = None) -> Kind:
        """A record."""
        return field_of(self._records[result.of(task)], result.part)

    def pop(self, result: Result[Kind], task: int | None = None) -> Kind:
        """A record, which is forgotten."""
        return field_of(self._records.pop(result.of(task)), result.part)

    def arrays(self, result: Result, names: Sequence[str], task: int | None = None) -> list[np.ndarray]:
        """Some arrays of a record."""
        return [field_of(self.get(result, task), name) for name in names]

    def put(self, result: Result[Kind], record: Kind, task: int | None = None) -> None:
        """Keep a record."""
        self._records[result.of(task)] = record
        self._told[result.of(task)] = {name: value for name, value in leaves(record) if is_told(value)}

    def once(self, result: Result[Kind], make: Callable[[], Kind]) -> Kind:
        """A record that is made the first time."""
        if not self.has(result):
            self.put(result, make())
        return self.get(result)

    def told(self, result: Result, task: int) -> Mapping[str, Any]:
        """What a record held besides arrays."""
        return self._told[result.of(task)]


class FolderStore:
    """Records in files of a folder, through which any number of processes work together."""

    def __init__(self, folder: Workdir):
        self.folder = folder
        self._known: dict[str, Any] = {}  # those for the whole job

    def has(self, result: Result, task: int | None = None) -> bool:
        """Whether it is there."""
        return self.folder.has(result.of(task))

    def get(self, result: Result[Kind], task: int | None = None) -> Kind:
        """A record; InputError where it is not there."""
        if task is not None:
            return self._read(result, task)
        if result.name not in self._known:
            self._known[result.name] = self._read(result, None)
        return self._known[result.name]

    pop = get

    def _read(self, result: Result[Kind], task: int | None) -> Kind:
        if not result.part:
            return from_arrays(result.kind, self._load(result.of(task)))
        about = self._load(result.of(task), [ABOUT])
        names = [name for name in json.loads(about[ABOUT].tobytes())["arrays"] if f"{name}.".startswith(f"{result.part}.")]
        return from_arrays(result.kind, {**about, **self._load(result.of(task), names)}, f"{result.part}.")

    def _load(self, name: str, only: Sequence[str] = ()) -> dict[str, np.ndarray]:
        if (arrays := self.folder.load(name, only)) is None:
            raise InputError(self.folder.path_of(name), "is not there; run the tasks of the rounds before this one first")
        return arrays

    def arrays(self, result: Result, names: Sequence[str], task: int | None = None) -> list[np.ndarray]:
        """Some arrays of a record, without the others."""
        arrays = self._load(result.of(task), names)
        return [arrays[name] for name in names]

    def put(self, result: Result[Kind], record: Kind, task: int | None = None) -> None:
        """Keep a record."""
        self.folder.save(result.of(task), to_arrays(record))

    def once(self, result: Result[Kind], make: Callable[[], Kind]) -> Kind:
        """A record that is made the first time, in whatever process."""
        if result.name not in self._known:
            arrays = self.folder.once(result.name, lambda: to_arrays(make()))
            self._known[result.name] = from_arrays(result.kind, arrays)
        return self._known[result.name]

    def told(self, result: Result, task: int) -> Mapping[str, Any]:
        """What a record held besides arrays, also after it was removed with all of its round."""
        if self.has(done(result)):
            return self.get(done(result)).tasks[task]
        return json.loads(self._load(result.of(task), [ABOUT])[ABOUT].tobytes())["told"]


Store = MemoryStore | FolderStore
"""In both, `task` is the number of the task that left a record; None where there is one for the whole job."""


# ---------------------------------------------------------------- records as arrays


def field_of(record: object, name: str) -> Any:
    """A field; name : with points for fields of fields, and numbers for items; "": the record itself."""
    value: Any = record
    for step in name.split(".") if name else ():
        value = value[int(step)] if step.isdecimal() else getattr(value, step)
    return value


def is_told(value: object) -> bool:
    """Whether it is kept as JSON."""
    some = value[0] if isinstance(value, list) and value else value
    return not (isinstance(some, (np.ndarray, Held)) or _names_of(type(some)))


def _names_of(kind: type) -> tuple[str, ...]:
    """The fields of a kind of record: a dataclass or a NamedTuple; none where it is neither."""
    names = [f.name for f in fields(kind)] if is_dataclass(kind) else getattr(kind, "_fields", ())
    return tuple(names)


def leaves(record: object, before: str = "") -> Iterator[tuple[str, Any]]:
    """All fields of a record, those of the records and tuples in it too, by name; lists are left whole."""
    names = _names_of(type(record))
    numbered = [str(i) for i in range(len(record))] if isinstance(record, tuple) else ()
    if not names and not isinstance(record, tuple):
        yield BARE, record
    for name in names or numbered:
        value = field_of(record, name)
        if isinstance(value, tuple) or _names_of(type(value)):
            yield from leaves(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def to_arrays(record: object) -> dict[str, np.ndarray]:
    """A record as arrays by name."""
    arrays: dict[str, np.ndarray] = {}
    told: dict[str, object] = {}
    for name, value in leaves(record):
        if is_told(value):
            told[name] = value.item() if isinstance(value, np.generic) else value
        elif not isinstance(value, list):
            arrays[name] = value
        elif isinstance(value[0], np.ndarray):
            arrays[name] = value[0] if len(value) == 1 else np.concatenate(value)
        else:
            for inner, first in leaves(value[0], f"{name}."):
                parts = [field_of(part, inner[len(name) + 1 :]) for part in value]
                if isinstance(first, np.ndarray):
                    arrays[inner] = first if len(value) == 1 else np.concatenate(parts)
                else:
                    told[inner] = first
    about = json.dumps({"told": told, "arrays": list(arrays)}).encode()
    return {ABOUT: np.frombuffer(about, np.uint8), **arrays}


def from_arrays(kind: type[Kind], arrays: Mapping[str, np.ndarray], before: str = "") -> Kind:
    """The inverse of `to_arrays`, but that every list of arrays or records has one item."""
    if not _names_of(kind):
        return arrays[BARE]  # type: ignore[return-value]
    told = json.loads(arrays[ABOUT].tobytes())["told"]
    return _made(kind, {**told, **arrays}, before)


def _made(kind: type[Kind], values: Mapping[str, object], before: str) -> Kind:
    """A record of the values whose names begin with `before`."""
    return kind(**{name: _value(hint, values, f"{before}{name}") for name, hint in get_type_hints(kind).items()})


def _value(hint: object, values: Mapping[str, object], name: str) -> object:
    if name in values:
        is_list = get_origin(hint) is list and isinstance(values[name], np.ndarray)
        return [values[name]] if is_list else values[name]
    kinds = [kind for kind in (hint, *get_args(hint)) if isinstance(kind, type) and _names_of(kind)]
    if get_origin(hint) is tuple:
        n = len({key[len(name) + 1 :].split(".")[0] for key in values if key.startswith(f"{name}.")})
        return tuple(_value(get_args(hint)[0], values, f"{name}.{i}") for i in range(n))
    made: object = _made(kinds[0], values, f"{name}.")
    return [made] if get_origin(hint) is list else made
