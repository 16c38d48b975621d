"""A dot plot: every alignment as a line, target to the right, query upwards, sequences end to end."""

from __future__ import annotations

import numpy as np

from bellapy.io.outputs import ending_of, whole_files
from bellapy.records.genomes import Alignment, Genome
from bellapy.report.pictures import BELOW, load_drawing, new_figure, short_name

COLOURS = {1: "#2166ac", -1: "#b2182b"}
NAMES = 40  # sequences; with more of them an axis has no names
MOST_LETTERS = 20  # of a name at a tick


def plot_lines(target: Genome, query: Genome, alignments: list[Alignment], strand: int) -> np.ndarray:
    """The lines of one strand, (n, 2, 2) float64: both ends, each as target and query base of the genomes end to end."""
    t_at, q_at = (np.cumsum(genome.lengths) - genome.lengths for genome in (target, query))
    lines = []
    for found in alignments:
        if found.strand == strand:
            begin, end = found.forward(int(query.lengths[found.query]))
            ends = (begin, end) if strand > 0 else (end, begin)
            t, q = t_at[found.target], q_at[found.query]
            lines.append([(t + found.t_start, q + ends[0]), (t + found.t_end, q + ends[1])])
    return np.array(lines, np.float64).reshape(-1, 2, 2)


def draw_plot(path: str, target: Genome, query: Genome, alignments: list[Alignment]) -> None:
    """Draw both strands, with a grid at the ends of sequences."""
    figure, collection = new_figure((8, 8.4), 150), load_drawing().collections.LineCollection
    axes = figure.add_subplot()
    for strand, colour in COLOURS.items():
        label = "same strand" if strand > 0 else "opposite strands"
        lines = plot_lines(target, query, alignments, strand)
        axes.add_collection(collection(list(lines), colors=colour, linewidths=1, label=label, capstyle="round"))
    for genome, axis, line in ((target, axes.xaxis, axes.axvline), (query, axes.yaxis, axes.axhline)):
        ends = np.cumsum(genome.lengths)
        for end in ends[:-1]:
            line(end, color="0.85", linewidth=0.5, zorder=0)
        if 1 < len(genome.names) <= NAMES:
            names = [short_name(name, MOST_LETTERS) for name in genome.names]
            axis.set_ticks(ends - genome.lengths / 2, names, fontsize=6, rotation=90 if axis is axes.xaxis else 0)
    axes.set(xlim=(0, target.n_bases), ylim=(0, query.n_bases))
    axes.set_xlabel(f"target, {_label(target)}")
    axes.set_ylabel(f"query, {_label(query)}")
    figure.legend(fontsize=8, **BELOW)
    with whole_files(path) as (written,):
        figure.savefig(written, format=ending_of(path))


def _label(genome: Genome) -> str:
    what = short_name(genome.names[0]) if len(genome.names) == 1 else f"{len(genome.names):,} sequences"
    return f"{what} ({genome.n_bases:,} bases)"
