"""What `map` is made of, written from the definitions; nothing here imports bellapy."""

from __future__ import annotations

from naive import KNOWN, reverse_complement


def hash_of(kmer: str) -> int:
    """T. Wang's integer hash of 64 bits, cut to the bits of a k-mer, with A, C, G, T as 0 to 3."""
    mask = (1 << 2 * len(kmer)) - 1
    x = int("".join(str("ACGT".index(letter)) for letter in kmer), 4)
    x = (~x + (x << 21)) & mask
    x ^= x >> 24
    x = (x + (x << 3) + (x << 8)) & mask
    x ^= x >> 14
    x = (x + (x << 2) + (x << 4)) & mask
    x ^= x >> 28
    return (x + (x << 31)) & mask


def minimizers(sequence: str, k: int, window: int) -> list[tuple[int, int, bool]]:
    """Hash, start and whether the other strand is canonical, of every window's smallest k-mer; the last of equal ones.

    K-mers with unknown bases, and those that equal their reverse complement, do not count.
    """
    hashes = []
    for start in range(len(sequence) - k + 1):
        kmer = sequence[start : start + k]
        other = reverse_complement(kmer)
        counts = set(kmer) <= KNOWN and kmer != other
        hashes.append((hash_of(min(kmer, other)), start, kmer > other) if counts else None)
    found = []
    for first in range(len(hashes) - window + 1):
        some = [entry for entry in hashes[first : first + window] if entry]
        if some and (best := min(some, key=lambda entry: (entry[0], -entry[1]))) not in found[-1:]:
            found.append(best)
    return found
