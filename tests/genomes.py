"""Small genomes: of given sequences, and with planted repeats, reads of them, and whether contigs run as the genome does."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from cases import noisy_copy

from bellapy.records.bases import encode
from bellapy.records.genomes import BETWEEN, Genome

LETTERS = np.frombuffer(b"ACGT", np.uint8)
WORD = 31
COMPLEMENT = str.maketrans("ACGT", "TGCA")
SLACK = 60  # bases by which a contig may be longer or shorter than the genome between two words


def genome_of(*texts: str) -> Genome:
    """A genome of some sequences, as it is read from a file."""
    between = "N" * BETWEEN
    codes = encode(between + between.join(texts) + between)
    lengths = np.array([len(text) for text in texts])
    names = tuple("abc"[: len(texts)])
    return Genome(
        names, codes, np.zeros(len(codes), np.bool_), BETWEEN + np.cumsum(lengths + BETWEEN) - lengths - BETWEEN, lengths
    )


class Molecule(NamedTuple):
    """A sequence, how many copies of it there are, and whether it is a circle."""

    sequence: str
    copies: float
    circular: bool


def random_genome(seed: int) -> list[Molecule]:
    """One or two molecules of 20 to 40 kb with repeats of 300 to 9,000 bases, some of them turned, some in a row."""
    rng = np.random.default_rng(seed)

    def bases(n: int) -> str:
        return LETTERS[rng.integers(0, 4, n)].tobytes().decode()

    repeats = [bases(int(np.exp(rng.uniform(np.log(300), np.log(9000))))) for _ in range(rng.integers(0, 3))]
    molecules = []
    for i in range(rng.integers(1, 3)):
        parts = [bases(int(rng.integers(1500, 9000))) for _ in range(rng.integers(2, 5))]
        for repeat in repeats:
            for _ in range(rng.integers(1, 4)):
                copy = turned(repeat) if rng.random() < 0.5 else repeat
                parts.insert(int(rng.integers(0, len(parts) + 1)), copy * int(rng.choice([1, 1, 1, 2])))
        molecules.append(Molecule("".join(parts), 1.0 if i == 0 else float(rng.uniform(0.7, 6)), bool(rng.random() < 0.7)))
    return molecules


def turned(sequence: str) -> str:
    return sequence.translate(COMPLEMENT)[::-1]


def reads_of(molecules: list[Molecule], seed: int, *, depth: float, mean: int, error: float) -> dict[str, str]:
    """Reads of gamma-distributed lengths, from both strands; some of circles go round more than once."""
    rng = np.random.default_rng(seed)
    weights = np.array([len(m.sequence) * m.copies for m in molecules])
    wanted, done, reads = depth * weights.sum(), 0, {}
    while done < wanted:
        sequence, _, circular = molecules[int(rng.choice(len(molecules), p=weights / weights.sum()))]
        n, size = len(sequence), max(500, int(rng.gamma(2.0, mean / 2)))
        start = int(rng.integers(-size + 500, n - 500)) if not circular else int(rng.integers(0, n))
        whole = sequence * (2 + size // n) if circular else sequence
        piece = whole[max(0, start) : start + size]
        piece = turned(piece) if rng.random() < 0.5 else piece
        reads[f"r{len(reads)}"] = noisy_copy(rng, piece, error)[0]
        done += len(piece)
    return reads


def breaks(contig: str, circular: bool, molecules: list[Molecule]) -> list[tuple[int, int]]:
    """Places of a contig where two words, that the genome has once each, do not stand as they do there."""
    places: dict[str, list[tuple[int, int, int]]] = {}
    for i, one in enumerate(molecules):
        text = one.sequence + (one.sequence[: WORD - 1] if one.circular else "")
        for j in range(len(text) - WORD + 1):
            places.setdefault(text[j : j + WORD], []).append((i, j, 1))
            places.setdefault(turned(text[j : j + WORD]), []).append((i, j, -1))
    text = contig + (contig[: min(len(contig), 30_000)] if circular else "")
    found, last = [], None
    for at in range(0, len(text) - WORD + 1):
        here = places.get(text[at : at + WORD], ())
        if len(here) != 1:
            continue
        if last is not None:
            before, (i, j, strand) = last
            k, m, other = here[0]
            n = len(molecules[i].sequence)
            off = strand * (m - j) - (at - before)
            if molecules[i].circular:
                off = (off + n // 2) % n - n // 2
            if k != i or other != strand or abs(off) > SLACK:
                found.append((before, at))
        last = at, here[0]
    return found
