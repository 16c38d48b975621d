"""A picture of an alignment: its path over the part of the matrix that was computed."""

from __future__ import annotations

import numpy as np

from bellapy.compute.runs import PAIR, QUERY_ALONE
from bellapy.engines.exact.align import Alignment, Reached, Work
from bellapy.engines.exact.path import unpacked
from bellapy.io.outputs import ending_of, whole_files
from bellapy.jobs.exact.output import Pair
from bellapy.report.pictures import BELOW, new_figure, short_name


def draw_plot(path: str, pair: Pair, alignment: Alignment | Reached | None, strand: int, work: Work) -> None:
    """Draw the path, the computed area and what was left out; query upwards, on the strand that was aligned."""
    figure = new_figure((7, 7.4), 150)
    axes = figure.add_subplot()
    n, m = len(pair.query), len(pair.target)
    axes.set_facecolor("0.93")
    if len(work.reach):
        rows, first, last = _computed(work, n, m)
        axes.fill_betweenx(rows, first, last, color="#9ecae1", step="post", linewidth=0.3, label="computed")
    axes.fill([], [], color="0.93", label="proven unnecessary")
    if isinstance(alignment, Alignment):
        columns, path_rows = path_points(alignment)
        axes.plot(columns, path_rows, color="#a50f15", linewidth=0.8, label=f"alignment, score {alignment.score:,}")
    axes.set(xlim=(0, m), ylim=(0, n), xlabel=f"{short_name(pair.target_name)} (bases)")
    turned = ", reverse complement" if strand < 0 else ""
    axes.set_ylabel(f"{short_name(pair.query_name)}{turned} (bases)")
    figure.legend(fontsize=8, **BELOW)
    with whole_files(path) as (written,):
        figure.savefig(written, format=ending_of(path))


def _computed(work: Work, n: int, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows where an interval of computed columns begins, and its ends, of the first sweep."""
    begin = np.arange(len(work.reach) + 1) * work.size
    first = work.reach[:, 0] * work.size
    last = np.where(work.reach[:, 1] >= 0, (work.reach[:, 1] + 1) * work.size, first)
    first, last = np.append(first, first[-1:]), np.append(last, last[-1:])
    if work.from_end:
        begin, first, last = n - begin[::-1], m - last[::-1], m - first[::-1]
        first, last = np.append(first[1:], first[-1:]), np.append(last[1:], last[-1:])
    return np.clip(begin, 0, n), np.clip(first, 0, m), np.clip(last, 0, m)


def path_points(alignment: Alignment) -> tuple[np.ndarray, np.ndarray]:
    """Columns and rows at the ends of a path's runs, its start included."""
    operations, sizes = unpacked(alignment.runs).T
    rows = np.where((operations == PAIR) | (operations == QUERY_ALONE), sizes, 0)
    columns = np.where(operations != QUERY_ALONE, sizes, 0)
    across, down = np.concatenate(([0], np.cumsum(columns))), np.concatenate(([0], np.cumsum(rows)))
    return alignment.target_start + across, alignment.query_start + down
