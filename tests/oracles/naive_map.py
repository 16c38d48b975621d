"""What `map` is made of, written from the definitions; nothing here imports bellapy."""

from __future__ import annotations

import math
import re

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


def ds(query: str, target: str, cigar: str) -> str:
    """The tag ds of a path end to end: cs in its short form, with brackets in gaps that could stand elsewhere."""
    text, same, q, t = "", 0, 0, 0

    def counted() -> str:
        return f":{same}" if same else ""

    for size, step in ((int(n), step) for n, step in re.findall(r"(\d+)([MID])", cigar)):
        if step == "M":
            for a, b in zip(query[q : q + size], target[t : t + size], strict=True):
                if a == b != "N":
                    same += 1
                    continue
                text, same = text + counted() + f"*{b}{a}", 0
            q, t = q + size, t + size
            continue
        mark, whole, begin = ("+", query, q) if step == "I" else ("-", target, t)
        text, same = text + counted() + mark + _gap(whole, begin, size), 0
        q, t = q + size * (step == "I"), t + size * (step == "D")
    return (text + counted()).lower()


def _gap(whole: str, begin: int, size: int) -> str:
    """The bases of a gap; moved to where the rest of the sequence is as before, it would be the same gap."""
    rest, moved = whole[:begin] + whole[begin + size :], []
    for way in (1, -1):
        n = 0
        while n < size and 0 <= (at := begin + way * (n + 1)) <= len(rest) and whole[:at] + whole[at + size :] == rest:
            n += 1
        moved.append(n)
    right, left = moved
    bases = whole[begin : begin + size]
    if right + left >= size:
        return f"[{bases}]"
    parts = bases[:right], bases[right : size - left], bases[size - left :]
    return "".join(f"[{part}]" if part and edge else part for part, edge in zip(parts, (True, False, True), strict=True))


def chain_scores(anchors, k: int, max_gap: int, band: int) -> list[int]:
    """The best score of a chain that ends at each anchor, from all anchors that may stand before it (Li 2018, 2.1).

    anchors : (sequence, place, query position), sorted; those of one sequence are of one read and strand.
    """
    scores: list[int] = []
    for i, (sequence, place, query) in enumerate(anchors):
        ways = [k]
        for j, (other, before, its_query) in enumerate(anchors[:i]):
            t_gap, q_gap = place - before, query - its_query
            if other != sequence or not (0 < t_gap <= max_gap and 0 < q_gap <= max_gap) or abs(t_gap - q_gap) > band:
                continue
            difference = abs(t_gap - q_gap)
            cost = int(0.008 * k * difference + 0.5 * math.log2(difference + 1))
            ways.append(scores[j] + min(k, t_gap, q_gap) - cost)
        scores.append(max(ways))
    return scores
