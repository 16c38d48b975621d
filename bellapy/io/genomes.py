"""Genomes from FASTA, with the lower case that marks repeats."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bellapy.errors import InputError
from bellapy.io.fastx import stream_records
from bellapy.io.fastx_lines import Records
from bellapy.records.bases import ENCODE, UNKNOWN
from bellapy.records.genomes import BETWEEN, Genome

LOWER = ord("a")
CODES = ENCODE.tobytes()


def load_genome(path: str) -> Genome:
    """All sequences of a FASTA file, plain or gzip; "-" is standard input.

    Raises
    ------
    InputError : as `stream_records` and `genome_of`.
    """
    return genome_of(stream_records([path]), path)


def genome_of(all_records: Iterable[Records], source: str) -> Genome:
    """All sequences of records; source : where they are from.

    Raises
    ------
    InputError : two sequences of one name; no base but N at all.
    """
    names: dict[str, None] = {}
    between = np.full(BETWEEN, UNKNOWN, np.uint8), np.zeros(BETWEEN, np.bool_)
    codes, masked, sizes = [between[0]], [between[1]], []
    for records in all_records:
        for name, sequence in zip(records.names, records.sequences, strict=True):
            text = name.decode("utf-8", "surrogateescape")
            if text in names:
                raise InputError(source, f"two sequences have the name {text}; names have to differ", record=len(names) + 1)
            names[text] = None
            letters = np.frombuffer(sequence, np.uint8)
            codes += [np.frombuffer(sequence.translate(CODES), np.uint8), between[0]]
            masked += [letters >= LOWER, between[1]]
            sizes.append(len(letters))
    lengths = np.array(sizes, np.int64)
    genome = Genome(
        tuple(names), np.concatenate(codes), np.concatenate(masked),
        BETWEEN + np.cumsum(lengths + BETWEEN) - lengths - BETWEEN, lengths,
    )  # fmt: skip
    if genome.codes.min() >= UNKNOWN:
        raise InputError(source, "holds no base that is known: no A, C, G or T")
    return genome
