"""`bellapy consensus`: windows of sequences in, their consensus or their alignment out, by partial-order alignment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bellapy.compute.resources import Resources
from bellapy.compute.threads import made_ahead, map_in_order
from bellapy.engines.poa.consensus import make_aligner
from bellapy.engines.poa.groups import Groups
from bellapy.engines.poa.windows import MOST_CELLS, Window, most_cells
from bellapy.errors import InputError
from bellapy.io.fastx import stream_records
from bellapy.params.correct import PoaScoring
from bellapy.records.bases import encode
from bellapy.report.run_report import RunReport, Stage

BATCH_BASES = 1 << 20
GPU_BATCH = 64  # times as many for a GPU
LETTERS = np.full(256, ord("-"), np.uint8)
LETTERS[:5] = np.frombuffer(b"ACGTN", np.uint8)


@dataclass(slots=True)
class WindowsStage(Stage):
    """Windows, and the sequences in them."""

    windows: int = 0
    sequences: int = 0


class Group(NamedTuple):
    """The sequences of one window: its name, their letters."""

    name: bytes
    sequences: list[bytes]


def read_windows(paths: Sequence[str]) -> Iterator[Group]:
    """Records with the same name, one after another, are the sequences of a window.

    Raises
    ------
    InputError : a damaged file, or a name that comes again after others.
    """
    seen: set[bytes] = set()
    group = None
    for records in stream_records(paths):
        for name, sequence in zip(records.names, records.sequences, strict=True):
            if group is None or group.name != name:
                if group is not None:
                    yield group
                if name in seen:
                    problem = f"the window {name.decode()} comes again after others; put its sequences together"
                    raise InputError(paths[0], problem)
                seen.add(name)
                group = Group(name, [])
            group.sequences.append(sequence)
    if group is not None:
        yield group


def find_consensus(
    paths: Sequence[str], scoring: PoaScoring, report: RunReport, resources: Resources, *, with_alignment: bool = False
) -> Iterator[bytes]:  # fmt: skip
    """FASTA records of all windows, in order: the consensus, or with `with_alignment` the sequences with gaps.

    Raises
    ------
    InputError : see `read_windows` and `align_windows`.
    """
    groups = read_windows(paths)
    for group, rows in align_windows(groups, paths[0], scoring, report, resources, with_alignment=with_alignment):
        yield b"".join(b">%s\n%s\n" % (group.name, row) for row in rows)


def align_windows(
    groups: Iterator[Group], source: str, scoring: PoaScoring, report: RunReport, resources: Resources, *,
    with_alignment: bool = False,
) -> Iterator[tuple[Group, list[bytes]]]:  # fmt: skip
    """Windows and their consensus, or with `with_alignment` their sequences with gaps; source : where they are from.

    Raises
    ------
    InputError : a window that takes too much memory.
    """
    alone = resources.device != "cpu"  # the engine takes threads by itself
    align = make_aligner(scoring, with_alignment, resources)

    def solve(batch: list[Group]) -> tuple[list[tuple[Group, list[bytes]]], int]:
        laid = _lay_out(source, batch)
        rows = [_letters(window) for window in align(laid)]
        return list(zip(batch, rows, strict=True)), len(laid.lengths)

    with report.stage(WindowsStage("consensus")) as stage:
        batches = _batches(groups, GPU_BATCH * BATCH_BASES if alone else BATCH_BASES)
        done = map(solve, made_ahead(batches)) if alone else map_in_order(solve, batches, resources.threads)
        for solved, sequences in done:
            stage.windows, stage.sequences = stage.windows + len(solved), stage.sequences + sequences
            yield from solved


def _lay_out(path: str, batch: list[Group]) -> Groups:
    """The sequences of some windows end to end."""
    lengths = np.array([len(sequence) for group in batch for sequence in group.sequences], np.int64)
    firsts = np.cumsum([0] + [len(group.sequences) for group in batch])
    for group, first, end in zip(batch, firsts, firsts[1:], strict=False):
        if most_cells(its := lengths[first:end]) > MOST_CELLS:
            problem = f"the window {group.name.decode()} has {its.sum():,} bases, too many for one; cut it into shorter ones"
            raise InputError(path, problem)
    codes = encode(b"".join(sequence for group in batch for sequence in group.sequences))
    return Groups(codes, np.concatenate(([0], np.cumsum(lengths))), firsts)


def _batches(groups: Iterator[Group], most: int) -> Iterator[list[Group]]:
    """Some windows at a time, until they have more bases than this."""
    batch, bases = [], 0
    for group in groups:
        batch.append(group)
        bases += sum(len(sequence) for sequence in group.sequences)
        if bases > most:
            yield batch
            batch, bases = [], 0
    if batch:
        yield batch


def _letters(window: Window) -> list[bytes]:
    rows = [window.consensus] if window.alignment is None else window.alignment
    return [LETTERS[row].tobytes() for row in rows]
