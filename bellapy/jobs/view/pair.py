"""Two reads against each other: k-mers that they share, and their alignment with its seed and its path."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from bellapy.io.outputs import ending_of, whole_files
from bellapy.records.bases import UNKNOWN, reversed_codes
from bellapy.report.pictures import BELOW, load_drawing, new_figure, short_name

MOST_DOTS = 200_000


class Dots(NamedTuple):
    """Places of shared k-mers on the query and the target, forward strand of each; both int64."""

    query: np.ndarray
    target: np.ndarray


class Drawn(NamedTuple):
    """An alignment of two reads, 0-based and half-open on the forward strand of each.

    strand : +1, or -1 where the target's reverse complement aligns.  seed : its place on both reads, and its length.
    cigar : along the target's forward strand.
    """

    query_start: int
    query_end: int
    target_start: int
    target_end: int
    strand: int
    seed: tuple[int, int, int]
    cigar: str
    score: int
    identity: float


def shared_kmers(query: np.ndarray, target: np.ndarray, k: int) -> tuple[Dots, Dots]:
    """K-mers of two reads, (n,) and (m,) uint8, that are equal, and those that are each other's reverse complement."""
    first, second = _kmers(query, k), _kmers(target, k)
    backward = _meet(first, _kmers(reversed_codes(target), k))
    return _meet(first, second), Dots(backward.query, len(target) - k - backward.target)


def _kmers(codes: np.ndarray, k: int) -> np.ndarray:
    """K-mers as numbers, (n - k + 1,) int64; -1 where one holds an unknown base."""
    if len(codes) < k:
        return np.empty(0, np.int64)
    windows = np.lib.stride_tricks.sliding_window_view(codes.astype(np.int64), k)
    found = windows @ (np.int64(4) ** np.arange(k - 1, -1, -1))
    found[(windows == UNKNOWN).any(axis=1)] = -1
    return found


def _meet(first: np.ndarray, second: np.ndarray) -> Dots:
    order = np.argsort(second, kind="stable")
    low, high = (np.searchsorted(second[order], first, side) for side in ("left", "right"))
    number = np.where(first >= 0, high - low, 0)
    most = MOST_DOTS // max(len(first), 1) + 1
    number[number > most] = 0  # of repeats: the others show where the reads agree
    query = np.repeat(np.arange(len(first)), number)
    within = np.arange(len(query)) - np.repeat(np.cumsum(number) - number, number)
    return Dots(query, order[np.repeat(low, number) + within])


def path_corners(found: Drawn) -> tuple[list[int], list[int]]:
    """Places on query and target where the path turns."""
    step = found.strand
    q, t = [found.query_start if step > 0 else found.query_end], [found.target_start]
    for size, operation in re.findall(r"(\d+)([A-Z=])", found.cigar):
        q.append(q[-1] + (step * int(size) if operation != "D" else 0))
        t.append(t[-1] + (int(size) if operation != "I" else 0))
    return q, t


def describe_pair(names: tuple[str, str], dots: tuple[Dots, Dots], k: int, found: list[Drawn]) -> str:
    """Lines of text: shared k-mers and alignments."""
    same, other = (len(some.query) for some in dots)
    rows = [f"{names[0]} and {names[1]}: {same:,} shared {k}-mers on the same strand, {other:,} on the other"]
    rows += [
        f"{one.query_start:,}-{one.query_end:,} and {one.target_start:,}-{one.target_end:,}, "
        f"{'same' if one.strand > 0 else 'other'} strand: score {one.score:,}, identity {one.identity:.1%}, "
        f"seed of {one.seed[2]} bases at {one.seed[0]:,} and {one.seed[1]:,}"
        for one in found
    ]
    return "\n".join([*rows, "" if found else "no overlap\n"])


def text_plot(lengths: tuple[int, int], dots: tuple[Dots, Dots], width: int) -> str:
    """A dot plot of characters: / for the same strand, \\ for the other, X for both; the query to the right."""
    columns = max(20, min(width - 2, 100))
    rows = max(10, columns // 2)
    canvas = np.zeros((rows, columns), np.uint8)
    for bit, some in enumerate(dots):
        x = np.minimum(some.query * columns // max(lengths[0], 1), columns - 1)
        y = np.minimum(some.target * rows // max(lengths[1], 1), rows - 1)
        canvas[y, x] |= 1 << bit
    body = "\n".join("|" + "".join(" /\\X"[cell] for cell in row) for row in canvas[::-1])
    return f"{body}\n+{'-' * columns}\n"


def draw_pair(
    path: str, names: tuple[str, str], lengths: tuple[int, int], dots: tuple[Dots, Dots], k: int, found: list[Drawn]
) -> None:
    """The dot plot as a picture, with window, seed and path of every alignment."""
    figure, rectangle = new_figure((7, 7.4), 130), load_drawing().patches.Rectangle
    axes = figure.add_subplot()
    for some, colour, kind in zip(dots, ("#4f86b8", "#c9a227"), ("same strand", "other strand"), strict=True):
        axes.plot(some.query, some.target, ".", color=colour, markersize=2.5, label=f"{k}-mers, {kind}", rasterized=True)
    for i, one in enumerate(found):
        size = one.query_end - one.query_start, one.target_end - one.target_start
        label = None if i else "window"
        axes.add_patch(rectangle((one.query_start, one.target_start), *size, fill=False, edgecolor="#777777", label=label))
        axes.plot(*path_corners(one), color="#b3400f", linewidth=0.9, label=f"path, identity {one.identity:.1%}")
        axes.plot(*one.seed[:2], "o", color="#1a1a1a", markersize=5, fillstyle="none", label="seed" if i == 0 else None)
    x_label, y_label = (f"{short_name(name)} (bases)" for name in names)
    axes.set(xlim=(0, lengths[0]), ylim=(0, lengths[1]), xlabel=x_label, ylabel=y_label)
    figure.legend(fontsize=7, **{**BELOW, "ncols": 3})
    with whole_files(path) as (written,):
        figure.savefig(written, format=ending_of(path))
