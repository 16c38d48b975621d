"""A plain reading of GFA 1: what a segment and a link are, and whether links fit their segments."""

from __future__ import annotations

import re
from typing import NamedTuple

COMPLEMENT = str.maketrans("ACGT", "TGCA")


class GfaLink(NamedTuple):
    source: str
    source_sign: str
    target: str
    target_sign: str
    cigar: str


def parse_gfa(text: str) -> tuple[dict[str, str], list[GfaLink]]:
    """Sequences by name, and links; an assertion fails where a line is not as GFA has it."""
    lines = [line.split("\t") for line in text.splitlines()]
    assert lines[0] == ["H", "VN:Z:1.2"] and {line[0] for line in lines[1:]} <= {"S", "L"}
    segments = {line[1]: line[2] for line in lines if line[0] == "S"}
    assert len(segments) == sum(line[0] == "S" for line in lines)
    for line in lines:
        if line[0] == "S":
            assert re.fullmatch("[ACGTN]+", line[2]) and f"LN:i:{len(line[2])}" in line[3:]
            assert all(re.fullmatch(r"[A-Za-z][A-Za-z0-9]:(i:-?\d+|f:-?\d+\.\d+)", tag) for tag in line[3:])
    links = [GfaLink(*line[1:6]) for line in lines if line[0] == "L"]
    assert len(set(links)) == len(links)
    for one in links:
        assert {one.source, one.target} <= segments.keys() and {one.source_sign, one.target_sign} <= {"+", "-"}
    return segments, links


def matches_of(link: GfaLink, segments: dict[str, str]) -> tuple[int, int]:
    """Pairs of equal bases, and columns, of a link's overlap; its CIGAR fits both ends."""
    assert re.fullmatch(r"(\d+[MID])+", link.cigar)
    runs = [(int(n), operation) for n, operation in re.findall(r"(\d+)([MID])", link.cigar)]
    source, target = _turned(segments[link.source], link.source_sign), _turned(segments[link.target], link.target_sign)
    i = len(source) - sum(n for n, operation in runs if operation in "MI")
    j = equal = columns = 0
    assert i >= 0
    for n, operation in runs:
        if operation == "M":
            equal += sum(a == b for a, b in zip(source[i : i + n], target[j : j + n], strict=True))
        i, j, columns = i + n * (operation != "D"), j + n * (operation != "I"), columns + n
    assert i == len(source) and j <= len(target)
    return equal, columns


def _turned(sequence: str, sign: str) -> str:
    return sequence if sign == "+" else sequence.translate(COMPLEMENT)[::-1]
