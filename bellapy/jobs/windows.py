"""`bellapy consensus`: windows of sequences in, their consensus or their alignment out, by partial-order alignment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import local
from typing import NamedTuple

import numpy as np

from bellapy.compute.threads import map_in_order
from bellapy.engines.poa.windows import MOST_CELLS, Aligner, Window, most_cells
from bellapy.errors import InputError
from bellapy.io.fastx import stream_records
from bellapy.params.correct import PoaScoring
from bellapy.records.bases import encode
from bellapy.report.run_report import RunReport, Stage

BATCH_BASES = 1 << 20
LETTERS = np.full(256, ord("-"), np.uint8)
LETTERS[:5] = np.frombuffer(b"ACGTN", np.uint8)


@dataclass(slots=True)
class WindowsStage(Stage):
    """Windows, and the sequences in them."""

    windows: int = 0
    sequences: int = 0


class Group(NamedTuple):
    """The sequences of one window: its name, their codes."""

    name: bytes
    sequences: list[np.ndarray]


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
            group.sequences.append(encode(sequence))
    if group is not None:
        yield group


def find_consensus(
    paths: Sequence[str], scoring: PoaScoring, report: RunReport, *, with_alignment: bool = False, threads: int = 1
) -> Iterator[bytes]:
    """FASTA records of all windows, in order: the consensus, or with `with_alignment` the sequences with gaps.

    Raises
    ------
    InputError : see `read_windows`; a window that takes too much memory.
    """
    mine = local()

    def align(batch: list[Group]) -> tuple[bytes, int, int]:
        if not hasattr(mine, "aligner"):
            mine.aligner = Aligner(scoring, with_alignment)
        text = b"".join(_show(group, _align(paths[0], mine.aligner, group)) for group in batch)
        return text, len(batch), sum(len(group.sequences) for group in batch)

    with report.stage(WindowsStage("consensus")) as stage:
        for text, windows, sequences in map_in_order(align, _batches(read_windows(paths)), threads):
            stage.windows, stage.sequences = stage.windows + windows, stage.sequences + sequences
            yield text


def _align(path: str, aligner: Aligner, group: Group) -> Window:
    lengths = np.array([len(sequence) for sequence in group.sequences], np.int64)
    if most_cells(lengths) > MOST_CELLS:
        problem = f"the window {group.name.decode()} has {lengths.sum():,} bases, too many for one; cut it into shorter ones"
        raise InputError(path, problem)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    return aligner.align(np.concatenate(group.sequences), offsets)


def _batches(groups: Iterator[Group]) -> Iterator[list[Group]]:
    """Some windows at a time."""
    batch, bases = [], 0
    for group in groups:
        batch.append(group)
        bases += sum(len(sequence) for sequence in group.sequences)
        if bases > BATCH_BASES:
            yield batch
            batch, bases = [], 0
    if batch:
        yield batch


def _show(group: Group, window: Window) -> bytes:
    rows = [window.consensus] if window.alignment is None else window.alignment
    return b"".join(b">%s\n%s\n" % (group.name, LETTERS[row].tobytes()) for row in rows)
