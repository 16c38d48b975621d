"""The reads that lie on a place of a read, base by base, as a terminal or a picture shows them.

Bases that equal the read's are dots, missing ones are -, inserted ones widen the column for all.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from bellapy.errors import InputError
from bellapy.io.outputs import ending_of, whole_files
from bellapy.jobs.view.lines import Mate
from bellapy.records.bases import reverse_complement
from bellapy.report.pictures import BELOW, load_drawing, new_figure, short_name

BETWEEN = "#f3f3f3"
COLOURS = {"A": "#4b7a2f", "C": "#4f86b8", "G": "#c9a227", "T": "#b3400f"}
GAP, SAME, NOTHING = "-", ".", " "
MOST_LETTERS = 30  # of a name beside its row
MOST_TICKS = 10


class Row(NamedTuple):
    """A read on the place: for each base of the place what stands there, and what is inserted after it."""

    name: str
    bases: list[str]
    inserted: list[str]


def mate_row(mate: Mate, sequence: str, place: tuple[int, int]) -> Row:
    """The row of another read.

    sequence : of the other read, forward.  place : start and end on the read looked at.
    """
    if mate.cigar is None:
        raise InputError(mate.name, "its overlap has no path; make the overlaps with `bellapy overlap --cigar`")
    steps = [(int(size), operation) for size, operation in re.findall(r"(\d+)([A-Z=])", mate.cigar)]
    other = sequence[mate.other_start : mate.other_end]
    if mate.is_query and mate.strand < 0:  # the path runs along the other read: turned, it runs along this one
        steps = steps[::-1]
    if mate.strand < 0:
        other = reverse_complement(other.encode()).decode()
    here = "I" if mate.is_query else "D"  # bases of the read looked at alone
    bases, inserted = [NOTHING] * (place[1] - place[0]), [""] * (place[1] - place[0])
    at, i = mate.start, 0
    for size, operation in steps:
        if operation == here or operation in "M=X":
            for j in range(max(at, place[0]), min(at + size, place[1])):
                bases[j - place[0]] = GAP if operation == here else other[i + j - at]
            at += size
            i += 0 if operation == here else size
        else:
            if place[0] < at <= place[1]:
                inserted[at - 1 - place[0]] = other[i : i + size]
            i += size
    return Row(mate.name, bases, inserted)


def layout(sequence: str, place: tuple[int, int], rows: list[Row]) -> list[tuple[str, str]]:
    """Names and texts of equal width: the read itself, then the others, with room for what is inserted."""
    own = sequence[place[0] : place[1]]
    room = [max((len(row.inserted[j]) for row in rows), default=0) for j in range(len(own))]
    shown = [("", "".join(base + GAP * room[j] for j, base in enumerate(own)))]
    for row in rows:
        text = ""
        for j, base in enumerate(row.bases):
            filler = NOTHING if base == NOTHING else GAP
            text += SAME if base.upper() == own[j].upper() else base
            text += row.inserted[j].lower().ljust(room[j], filler)
        shown.append((row.name, text))
    return shown


def pile_text(name: str, place: tuple[int, int], shown: list[tuple[str, str]], width: int) -> str:
    """The rows below each other, as many columns at a time as the terminal has."""
    label = min(24, max(12, width // 5))
    size = max(20, width - label - 1)
    names = [name, *(row for row, _ in shown[1:])]
    rows = [f"{name}, bases {place[0]:,} to {place[1]:,}: {len(shown) - 1:,} other reads"]
    for begin in range(0, len(shown[0][1]), size):
        for row_name, (_, text) in zip(names, shown, strict=True):
            part = text[begin : begin + size]
            if part.strip():
                rows.append(f"{row_name[:label]:{label}} {part.rstrip()}")
        rows.append("")
    return "\n".join(rows)


def position_ticks(place: tuple[int, int], own: str) -> tuple[list[int], list[str]]:
    """Columns that have a tick, and the places in the read that they stand for: round numbers.

    own : the read's own row, in which insertions of others are gaps.
    """
    columns = [i for i, letter in enumerate(own) if letter != GAP]
    sizes = (digit * 10**power for power in range(10) for digit in (1, 2, 5))
    step = next(size for size in sizes if len(columns) <= size * MOST_TICKS)
    places = range(-(-place[0] // step) * step, place[1], step)
    return [columns[at - place[0]] for at in places], [f"{at:,}" for at in places]


def draw_pile(path: str, name: str, place: tuple[int, int], shown: list[tuple[str, str]]) -> None:
    """The rows as a picture: a field for each base, grey where it equals the read's."""
    to_rgb = load_drawing().colors.to_rgb
    colours = {letter: to_rgb(colour) for letter, colour in COLOURS.items()}
    colours |= {SAME: to_rgb("#dddddd"), GAP: to_rgb("#555555"), NOTHING: to_rgb("#ffffff")}
    white, between, own = colours[NOTHING], to_rgb(BETWEEN), shown[0][1]
    image = [
        [
            between if letter == its_own == GAP else colours.get(letter.upper(), white)
            for letter, its_own in zip(text, own, strict=True)
        ]
        for _, text in shown
    ]
    size = min(16, max(6, 2 + 0.09 * len(image[0]))), 2 + 0.14 * len(image)
    figure = new_figure(size, 130)
    axes = figure.add_subplot()
    axes.imshow(image, aspect="auto", interpolation="nearest")
    names = [name, *(row for row, _ in shown[1:])]
    axes.set_yticks(range(len(shown)), [short_name(row, MOST_LETTERS) for row in names], fontsize=5)
    axes.set_xticks(*position_ticks(place, own), fontsize=6)
    axes.set_xlabel("place in the read (bases)", fontsize=7)
    axes.set_title(f"{short_name(name)}, bases {place[0]:,} to {place[1]:,}", fontsize=8)
    for letter in "ACGT":
        axes.plot([], [], "s", color=COLOURS[letter], label=letter)
    axes.plot([], [], "s", color="#dddddd", label="as in the read")
    axes.plot([], [], "s", color="#555555", label="missing")
    axes.plot([], [], "s", color=BETWEEN, markeredgecolor="#bbbbbb", label="nothing inserted")
    figure.legend(fontsize=6, **{**BELOW, "ncols": 7})
    with whole_files(path) as (written,):
        figure.savefig(written, format=ending_of(path))
