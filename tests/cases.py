"""Read sets with known overlaps, and the command line run inside the test's process."""

from __future__ import annotations

import io
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import naive
import numpy as np
from strategies import random_bases

import bellapy
from bellapy.cli import app as cli
from bellapy.compute.memory import resident

TESTS = Path(__file__).parent
IMPORTS = os.pathsep.join(filter(None, [str(Path(bellapy.__file__).parents[1]), os.environ.get("PYTHONPATH")]))
"""A PYTHONPATH for other processes, which find this package and what the tests find."""


class Outcome(NamedTuple):
    """Exit status, standard output and standard error of a run."""

    code: int
    out: bytes
    err: str


def run(*arguments, stdin: bytes = b"") -> Outcome:
    """What `bellapy arguments...` does, without a new process."""
    streams = {
        "stdin": io.TextIOWrapper(io.BufferedReader(io.BytesIO(stdin))),
        "stdout": io.TextIOWrapper(io.BytesIO()),
        "stderr": io.TextIOWrapper(io.BytesIO()),
    }
    with mock.patch.multiple(sys, argv=["bellapy", *map(str, arguments)], **streams):
        code = cli._guarded(cli.app)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    return Outcome(code, streams["stdout"].buffer.getvalue(), streams["stderr"].buffer.getvalue().decode())


def roomy() -> tuple[str, str]:
    """`--max-memory` with room for a small job: this process holds what the tests before it compiled, too."""
    return "--max-memory", f"{(resident() >> 20) + 2000}M"


def noisy_copy(rng: np.random.Generator, sequence: str, error: float) -> tuple[str, np.ndarray]:
    """A copy with substitutions, insertions and deletions, a third of `error` each.

    Returns the copy and, (len(sequence) + 1,), where in it each base stands, or would.
    """
    codes = np.frombuffer(sequence.encode(), np.uint8)
    kind, other = rng.random(len(codes)) * 3 / max(error, 1e-9), rng.choice(np.frombuffer(b"ACGT", np.uint8), len(codes))
    size = np.where(kind < 1, 0, np.where(kind < 2, 2, 1))
    places = np.concatenate(([0], np.cumsum(size)))
    copy = np.repeat(np.where((kind >= 2) & (kind < 3), other, codes), size)
    copy[places[:-1][size == 2] + 1] = other[size == 2]
    return copy.tobytes().decode(), places


@dataclass(frozen=True)
class Sample:
    """Simulated reads and where they come from.

    places : for every read where the genome's bases start, ..., end stand on it, as it is written.
    """

    sequences: list[str]
    start: np.ndarray
    end: np.ndarray
    strand: np.ndarray
    places: list[np.ndarray]

    def __len__(self) -> int:
        return len(self.sequences)

    def fasta(self) -> str:
        return "".join(f">r{i}\n{sequence}\n" for i, sequence in enumerate(self.sequences))

    def truth(self) -> str:
        rows = zip(self.start.tolist(), self.end.tolist(), self.strand.tolist(), strict=True)
        return "".join(
            f"r{i}\tg\t{start}\t{end}\t{'+' if strand > 0 else '-'}\n" for i, (start, end, strand) in enumerate(rows)
        )

    def shared(self) -> np.ndarray:
        """Genome bases that every two reads share, (n, n); 0 or less where none."""
        return np.minimum(self.end[:, None], self.end) - np.maximum(self.start[:, None], self.start)

    def interval(self, read: int, start: int, end: int) -> tuple[int, int]:
        """Where genome bases [start, end) stand on a read."""
        first, last = self.places[read][[start - self.start[read], end - self.start[read]]]
        return min(first, last), max(first, last)


def sample_reads(
    seed: int, genome: str | int = 30_000, depth: float = 12, mean: int = 3000, error: float = 0.12, lengths=None,
    circular: bool = False,
) -> Sample:  # fmt: skip
    """Reads of both strands of a genome, given or random.

    circular : reads start anywhere on a circle, and places beyond its end are those of its second round.
    """
    rng = np.random.default_rng(seed)
    text = random_bases(rng, genome) if isinstance(genome, int) else genome
    if lengths is None:
        lengths = rng.integers(mean // 2, 3 * mean // 2, max(2, int(depth * len(text) / mean)))
    if circular:
        starts, text = rng.integers(0, len(text), len(lengths)), 2 * text
    else:
        starts = np.array([rng.integers(0, len(text) - length + 1) for length in lengths])
    strands = rng.choice([1, -1], len(lengths))
    sequences, places = [], []
    for start, length, strand in zip(starts, lengths, strands, strict=True):
        copy, place = noisy_copy(rng, text[start : start + length], error)
        sequences.append(copy if strand > 0 else naive.reverse_complement(copy))
        places.append(place if strand > 0 else len(copy) - place)
    return Sample(sequences, starts, starts + np.array(lengths), strands, places)


class Line(NamedTuple):
    """A PAF line."""

    query: int
    query_length: int
    query_start: int
    query_end: int
    strand: int
    target: int
    target_length: int
    target_start: int
    target_end: int
    matches: int
    columns: int
    quality: int
    tags: dict[str, str]

    @property
    def span(self) -> int:
        """Aligned bases, of the read with fewer."""
        return min(self.query_end - self.query_start, self.target_end - self.target_start)

    @property
    def overhang(self) -> int:
        """Unaligned bases at the worse end, where both reads go on."""
        left, right = self.target_start, self.target_length - self.target_end
        left, right = (left, right) if self.strand > 0 else (right, left)
        return max(min(self.query_start, left), min(self.query_length - self.query_end, right))


def parse_paf(text: bytes) -> list[Line]:
    """Lines of reads named r0, r1, ..."""
    lines = []
    for line in text.decode().splitlines():
        q, ql, qs, qe, strand, t, *numbers = line.split("\t")
        assert strand in "+-"
        tags = {tag[:4]: tag[5:] for tag in numbers[6:]}
        numbers = [int(number) for number in numbers[:6]]
        lines.append(Line(int(q[1:]), int(ql), int(qs), int(qe), 1 if strand == "+" else -1, int(t[1:]), *numbers, tags))
    return lines


def accuracy(sample: Sample, lines: list[Line], least: int = 1000, grey: int = 300) -> tuple[float, float]:
    """Recall of pairs that share `least` bases, and the share of reported pairs that share more than `grey`."""
    shared = sample.shared()
    reported = {(min(line.query, line.target), max(line.query, line.target)) for line in lines}
    true = {(i, j) for i, j in zip(*np.nonzero(np.triu(shared >= least, 1)), strict=True)}
    good = sum(shared[pair] > grey for pair in reported)
    return len(true & reported) / len(true), good / max(1, len(reported))


def listing(folder: Path) -> set[str]:
    """Everything under a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


class Option(NamedTuple):
    """An option of a command: its field, type of its value, names on the command line, help."""

    name: str
    kind: type
    flags: list[str]
    help: str


def options_of(command: str) -> dict[str, Option]:
    """The options of a command by name, without positional arguments, as the program parses them.

    kind : of those that are parameters; of others str.
    """
    parser = cli.load_command(command)
    options = [param for param in parser.params if param.param_type_name == "option"]
    kinds = {name: field.kind for name, field in parser.fields.items()}
    return {option.name: Option(option.name, kinds.get(option.name, str), option.opts, option.help) for option in options}


COMMANDS = tuple(cli.COMMANDS)
