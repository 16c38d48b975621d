"""Windows: groups of sequences that show the same stretch of bases, from end to end."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit
from bellapy.engines.poa.align import (
    LANES,
    Rows,
    best_end,
    fill_rows,
    make_profile,
    stretch_length,
    trace_mates,
)
from bellapy.engines.poa.bundle import heaviest_bundle
from bellapy.engines.poa.graph import BASES, FIRST, N_COLUMNS, NONE, Graph, add_path, sort_nodes
from bellapy.params.correct import PoaScoring

MOST_SHORT = 15_000  # scores of 16 bits stay within this of 0
MOST_CELLS = 1 << 30
NO_BOUND = np.iinfo(np.int64).max  # scores of 32 bits have room for a window of so many cells
SHORT_LOWEST, LONG_LOWEST = -16_000, -(1 << 30)
GAP_LETTER = 255


class Window(NamedTuple):
    """What a window gives.

    consensus : (n,) uint8 codes.  scores : (n_sequences,) int64, of each sequence's alignment; 0 for the first one.
    alignment : (n_sequences, n_columns) uint8 codes and GAP_LETTER, or None.
    columns : (n,) int64, where the bases of the consensus stand in it, or None.
    """

    consensus: np.ndarray
    scores: np.ndarray
    alignment: np.ndarray | None
    columns: np.ndarray | None


@njit
def make_graph(n):
    """An empty graph with room for `n` bases."""
    column = np.empty((10, n), np.int32)
    sizes = np.zeros(4, np.int32)
    sizes[FIRST] = NONE
    return Graph(
        sizes, np.empty(n, np.uint8), column[0], column[1], column[2], column[3], column[4], column[5],
        column[6], np.empty((n, BASES), np.int32), column[7], column[8], column[9],
    )  # fmt: skip


@njit
def _grown(rows, n_cells, n_profile):
    """Rows with that much room; their cells may be lost."""
    if len(rows.cells) >= n_cells and len(rows.profile) >= n_profile:
        return rows
    room = max(len(rows.cells), n_cells + n_cells // 2)
    profile = max(len(rows.profile), n_profile)
    return Rows(np.empty(room, rows.cells.dtype), np.empty(profile, rows.cells.dtype), rows.carry)


@njit
def _align(graph, n_nodes, sequence, rows, scoring, mates):
    """Align a sequence to the graph; returns the rows, perhaps new ones, and the score."""
    length = stretch_length(len(sequence))
    rows = _grown(rows, (n_nodes + 1) * (length + 1) * LANES, BASES * length * LANES)
    make_profile(rows.profile, sequence, length, scoring)
    fill_rows(graph, n_nodes, rows, length, scoring)
    node, score = best_end(graph, n_nodes, rows, len(sequence), length)
    trace_mates(graph, rows, sequence, node, length, scoring, mates)
    return rows, score


@njit
def _build(graph, codes, offsets, first, rows, most, scoring, paths, scores):
    """Add sequences to a graph from number `first` on, as long as scores stay within `most` of 0.

    rows : Rows with room for such scores.
    paths : (n,) int32, overwritten: the node of each base.  scores : (n_sequences,) int64, overwritten.

    Returns the number of nodes, how many sequences the graph has, and the rows, perhaps new ones.
    """
    steepest = max(scoring.match, -scoring.mismatch, -scoring.gap)
    n_nodes = sort_nodes(graph)
    for i in range(first, len(offsets) - 1):
        sequence = codes[offsets[i] : offsets[i + 1]]
        mates = np.full(len(sequence), NONE, np.int32)
        scores[i] = 0
        if n_nodes and len(sequence):
            if steepest * (n_nodes + 2 * len(sequence) + 2 * LANES) > most:
                return n_nodes, i, rows
            rows, scores[i] = _align(graph, n_nodes, sequence, rows, scoring, mates)
        add_path(graph, sequence, mates, paths[offsets[i] : offsets[i + 1]])
        n_nodes = sort_nodes(graph)
    return n_nodes, len(offsets) - 1, rows


@njit
def _consensus(graph, n_nodes, path):
    """The nodes of the consensus, (n,) int32; path : (n_nodes,) int32, overwritten."""
    scores, before = np.empty(n_nodes, np.int64), np.empty(n_nodes, np.int32)
    n = heaviest_bundle(graph, n_nodes, scores, before, path)
    return path[:n][::-1].copy()


@njit
def _lay_out(graph, offsets, codes, paths, consensus):
    """The sequences by columns, (n_sequences, n_columns) uint8, and the columns of the consensus, (n,) int64.

    codes, paths : bases of all sequences end to end and the nodes of them.  consensus : (n,) int32 nodes.
    """
    place, n, column = np.empty(graph.sizes[N_COLUMNS], np.int64), 0, graph.sizes[FIRST]
    while column != NONE:
        place[column] = n
        n, column = n + 1, graph.column_next[column]
    out = np.full((len(offsets) - 1, n), GAP_LETTER, np.uint8)
    for i in range(len(offsets) - 1):
        for j in range(offsets[i], offsets[i + 1]):
            out[i, place[graph.column[paths[j]]]] = codes[j]
    return out, place[graph.column[consensus]]


def most_cells(lengths: np.ndarray) -> int:
    """Cells that a window of sequences of these lengths may need, (n,) int64: those of the longest with all other bases."""
    return int(lengths.sum()) * (int(lengths.max(initial=0)) + 2 * LANES)


def _empty_rows(kind: type, lowest: int) -> Rows:
    return Rows(np.empty(0, kind), np.empty(0, kind), np.full(4 * LANES, lowest, kind))


class Aligner:
    """Aligns windows; holds the working memory of one thread.

    with_alignment : whether the sequences are to be laid out too.
    """

    def __init__(self, scoring: PoaScoring, with_alignment: bool = False):
        self.scoring, self.with_alignment = scoring, with_alignment
        self._narrow, self._wide = _empty_rows(np.int16, SHORT_LOWEST), _empty_rows(np.int32, LONG_LOWEST)

    def align(self, codes: np.ndarray, offsets: np.ndarray) -> Window:
        """Consensus of sequences that show the same bases from end to end.

        codes : (n,) uint8, all sequences end to end.  offsets : (n_sequences + 1,) int64.
        """
        n, n_sequences = len(codes), len(offsets) - 1
        graph, paths, scores = make_graph(n), np.empty(n, np.int32), np.empty(n_sequences, np.int64)
        rest = self.scoring, paths, scores
        n_nodes, done, self._narrow = _build(graph, codes, offsets, 0, self._narrow, MOST_SHORT, *rest)
        if done < n_sequences:
            n_nodes, _, self._wide = _build(graph, codes, offsets, done, self._wide, NO_BOUND, *rest)
        nodes = _consensus(graph, n_nodes, np.empty(n, np.int32))
        rows, columns = _lay_out(graph, offsets, codes, paths, nodes) if self.with_alignment else (None, None)
        return Window(graph.base[nodes], scores, rows, columns)
