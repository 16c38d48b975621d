"""Charts as plain data: what a job puts into its report to be looked at.

They hold numbers and words alone.  `pictures` draws them, `page` puts them on a page, and JSON holds them as they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np


class Mark(NamedTuple):
    """A line across a chart at a value of the horizontal axis, with its name."""

    name: str
    x: float


class Curve(NamedTuple):
    """A line through points, with its name."""

    name: str
    x: Sequence[float]
    y: Sequence[float]


@dataclass(frozen=True)
class Chart:
    """A chart: its title, a sentence that says what it shows, and the names of both axes."""

    title: str
    about: str
    x_label: str
    y_label: str


@dataclass(frozen=True)
class Histogram(Chart):
    """How many fall between edges[i] and edges[i + 1]; curves and marks are drawn over it."""

    edges: Sequence[float] = ()
    counts: Sequence[float] = ()
    curves: Sequence[Curve] = ()
    marks: Sequence[Mark] = ()
    log_y: bool = False


@dataclass(frozen=True)
class Curves(Chart):
    """Lines over one axis."""

    curves: Sequence[Curve] = ()
    marks: Sequence[Mark] = ()


@dataclass(frozen=True)
class Density(Chart):
    """How many fall into each cell of a grid: counts[i][j] between x_edges[i] and [i + 1], y_edges[j] and [j + 1]."""

    x_edges: Sequence[float] = ()
    y_edges: Sequence[float] = ()
    counts: Sequence[Sequence[int]] = ()
    curves: Sequence[Curve] = ()


@dataclass(frozen=True)
class Levels(Chart):
    """A bar for each name."""

    names: Sequence[str] = ()
    values: Sequence[float] = ()


def histogram_of(values: np.ndarray, edges: np.ndarray, title: str, about: str, x_label: str, y_label: str, **more: Any):
    """The histogram of values, what lies beyond the last edge counted in the last bin."""
    counts, _ = np.histogram(np.minimum(values, np.nextafter(edges[-1], edges[0])), edges)
    return Histogram(title, about, x_label, y_label, edges.tolist(), counts.tolist(), **more)


def round_edges(largest: float, bins: int = 50) -> np.ndarray:
    """Edges from 0 to beyond `largest`, for whole numbers; the width is 1, 2 or 5 times a power of ten, for about `bins`."""
    power = 10 ** max(0, math.floor(math.log10(max(largest, 1) / bins)))
    width = next(power * step for step in (1, 2, 5, 10) if power * step * bins >= largest)
    return np.arange(int(largest // width) + 2) * width
