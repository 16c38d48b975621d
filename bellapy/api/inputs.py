"""Reads as callers have them: files, a dictionary of sequences by name, or pairs of name and sequence."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeAlias

from bellapy.compute.threads import usable_cores
from bellapy.errors import InputError
from bellapy.io.fastx import load_reads, stream_records
from bellapy.io.fastx_lines import Records
from bellapy.params.fields import check, fields_of, parse_size
from bellapy.params.run import RunParams
from bellapy.records import ReadSet

Text: TypeAlias = str | bytes
Path: TypeAlias = str | os.PathLike[str]
Reads: TypeAlias = Path | Sequence[Path] | Mapping[str, Text] | Iterable[tuple[str, Text]]

NAME = re.compile(r"[!-~]+")
SEQUENCES = "the sequences given"
SOME = 100  # records at a time
BASES = re.compile(r"[ACGTUNRYKMSWBDHV]+", re.IGNORECASE)


def named(given: Reads | bytes, name: str) -> Reads:
    """Reads as given; one sequence that is given where names of files may be, too, with this name."""
    if isinstance(given, bytes):
        return {name: given}
    if isinstance(given, str) and BASES.fullmatch(given) and not os.path.exists(given):
        return {name: given}
    return given


def paths_of(given: Reads) -> list[str] | None:
    """The files that are meant; None where sequences are given."""
    if isinstance(given, (str, os.PathLike)):
        return [os.fspath(given)]
    if isinstance(given, Sequence) and given and all(isinstance(item, (str, os.PathLike)) for item in given):
        return [os.fspath(item) for item in given]
    return None


def source_of(given: Reads) -> str:
    """What messages call it: the name of the first file, or the sequences given."""
    return (paths_of(given) or [SEQUENCES])[0]


def no_more(options: Mapping[str, Any], known: Collection[str]) -> None:
    """Raise TypeError for an option of an unknown name."""
    if unknown := options.keys() - set(known):
        raise TypeError(f"unknown options: {', '.join(sorted(unknown))}")


def run_params(threads: int | None, device: str, max_memory: int | str | None = None) -> RunParams:
    """What a call may use; threads : None: all cores.  max_memory : bytes, or text such as 2GiB.

    Raises
    ------
    ParameterError : a value out of range.
    """
    most = parse_size(max_memory) if isinstance(max_memory, str) else max_memory
    made = RunParams(usable_cores() if threads is None else threads, device, most)
    check(vars(made), fields_of(RunParams))
    return made


def as_reads(given: Reads) -> ReadSet:
    """All reads.

    Raises
    ------
    InputError : a file that cannot be read; a name that is no word or occurs twice; a sequence that is not all letters.
    """
    if (paths := paths_of(given)) is not None:
        return load_reads(paths)
    sequences: dict[str, Text] = {}
    for record, (name, sequence) in enumerate(_checked(given), 1):
        if name in sequences:
            raise InputError(SEQUENCES, f"the name {name!r} occurs twice. Names must be unique.", record)
        sequences[name] = sequence
    return ReadSet.from_sequences(list(sequences.values()), tuple(sequences))


def as_records(given: Reads) -> Iterator[Records]:
    """Some reads at a time.

    Raises
    ------
    InputError : as `as_reads`, but for names that occur twice.
    """
    if (paths := paths_of(given)) is not None:
        yield from stream_records(paths)
        return
    sequences = _checked(given)
    while some := list(islice(sequences, SOME)):
        names, texts = zip(*some, strict=True)
        coded = [text.encode() if isinstance(text, str) else text for text in texts]
        yield Records([name.encode() for name in names], [b""] * len(names), coded, None)


def _checked(given: Reads) -> Iterator[tuple[str, Text]]:
    pairs: Any = given.items() if isinstance(given, Mapping) else given
    for record, pair in enumerate(pairs, 1):
        try:
            name, sequence = pair
        except (TypeError, ValueError):
            raise InputError(SEQUENCES, "a name and a sequence are needed for each", record) from None
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise InputError(SEQUENCES, f"the name {name!r} is no word of printable ASCII", record)
        if not isinstance(sequence, (str, bytes)) or (sequence and not sequence.isalpha()) or not sequence.isascii():
            raise InputError(SEQUENCES, f"the sequence of {name!r} is not all letters", record)
        yield name, sequence
