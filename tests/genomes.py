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
RUN = 10  # bases by which a second word confirms a place: one wrong base may make the first word of a repeat's other flank
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


def _numbers(sequence: str) -> np.ndarray:
    """A number for the word at every place, (n,) uint64."""
    codes = np.searchsorted(LETTERS, np.frombuffer(sequence.encode(), np.uint8)).astype(np.uint64)
    numbers = np.zeros(max(0, len(codes) - WORD + 1), np.uint64)
    for i in range(WORD):
        numbers = numbers << np.uint64(2) | codes[i : i + len(numbers)]
    return numbers


def _only_places(molecules: list[Molecule]) -> tuple[np.ndarray, np.ndarray]:
    """Words that the genome has once, ascending, and for each molecule, place and strand, (n, 3)."""
    words, places = [], []
    for i, one in enumerate(molecules):
        text = one.sequence + (one.sequence[: WORD - 1] if one.circular else "")
        for strand, numbers in ((1, _numbers(text)), (-1, _numbers(turned(text))[::-1])):
            n = len(numbers)
            words.append(numbers)
            places.append(np.stack([np.full(n, i), np.arange(n), np.full(n, strand)], axis=1))
    numbers, first, times = np.unique(np.concatenate(words), return_index=True, return_counts=True)
    return numbers[times == 1], np.concatenate(places)[first[times == 1]]


def breaks(contig: str, circular: bool, molecules: list[Molecule]) -> list[tuple[int, int]]:
    """Places of a contig where two words, that the genome has once each, do not stand as they do there."""
    words, places = _only_places(molecules)
    numbers = _numbers(contig + (contig[: min(len(contig), 30_000)] if circular else ""))
    row = np.minimum(np.searchsorted(words, numbers), len(words) - 1)
    at = np.flatnonzero(words[row] == numbers)
    at = at[np.isin(at + RUN, at)]
    here, beyond = places[row[at]], places[row[at + RUN]]
    sure = (here[:, 0] == beyond[:, 0]) & (beyond[:, 1] - here[:, 1] == here[:, 2] * RUN)
    at, (molecule, place, strand) = at[sure], here[sure].T
    off = strand[:-1] * np.diff(place) - np.diff(at)
    size = np.array([len(one.sequence) for one in molecules])[molecule[:-1]]
    closed = np.array([one.circular for one in molecules])[molecule[:-1]]
    off = np.where(closed, (off + size // 2) % size - size // 2, off)
    wrong = (np.diff(molecule) != 0) | (np.diff(strand) != 0) | (np.abs(off) > SLACK)
    return list(zip(at[:-1][wrong].tolist(), at[1:][wrong].tolist(), strict=True))
