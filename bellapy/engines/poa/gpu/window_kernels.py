"""Partial-order alignment of windows on a GPU: a warp for each window, from its first sequence to its consensus."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numba import cuda

from bellapy.compute.gpu.ops import I32, WARP, shuffle, sync_warp
from bellapy.engines.poa.gpu.align_kernels import Registers, best_end, fill_rows, mark_bases, trace_mates
from bellapy.engines.poa.gpu.bundle_kernels import find_bundle, number_columns
from bellapy.engines.poa.gpu.graph_kernels import (
    BASE,
    NEW,
    PATH,
    SCORE,
    Seat,
    Sequence,
    add_edges,
    find_nodes,
    list_rows_before,
    order_nodes,
)
from bellapy.engines.poa.groups import REGISTERS
from bellapy.records.bases import UNKNOWN

N_CONSENSUS, N_COLUMNS, N_ROWS, RESULTS = 0, 1, 2, 3
FULL = -1  # in the place of N_CONSENSUS: the graph outgrew its room
MOST_REGISTERS = dict(zip(REGISTERS, (72, 104, 128), strict=True))
"""Of a thread, by registers of a lane for a row."""


class Room(NamedTuple):
    """What a warp may use.

    nodes : of a graph; a table has one row more.  places : int32 of each row of the graph's table.
    laid_out : whether columns are wanted.
    """

    nodes: int
    places: int
    laid_out: bool


class Written(NamedTuple):
    """Where results go.

    scores : (n_sequences,) int32.  results : (n_windows, RESULTS) int32.
    consensus, consensus_columns : uint8 and int32, those of a window begin where its codes do.
    columns : (n_bases,) int32 of all bases; like those of the consensus empty if they are not wanted.
    """

    scores: np.ndarray
    results: np.ndarray
    consensus: np.ndarray
    consensus_columns: np.ndarray
    columns: np.ndarray


@cache
def make_kernel(registers: int):
    """The function of a kernel for sequences of less than 2 * registers * WARP bases."""
    R = registers

    def align_windows(codes, offsets, windows, count, costs, room, rows, graph, written):
        """Align windows; each warp takes one after the other.

        Parameters
        ----------
        codes : uint8, all sequences end to end.  offsets : (n_sequences + 1,) int64.
        windows : (n, 3) int64, number of each window, its first sequence, and the end of its sequences.
        count : (1,) int32, windows that were taken; 0.
        costs, room, written : Costs, Room, Written.
        rows, graph : uint32 and (FIELDS, n) int32, working memory of all warps.
        """
        stacks = Registers(
            cuda.local.array(UNKNOWN, np.uint32), cuda.local.array(R, np.uint32), cuda.local.array(R, np.uint32)
        )  # fmt: skip
        lane, warp = I32(cuda.threadIdx.x & (WARP - 1)), np.int64(cuda.grid(1) // WARP)
        seat = Seat(warp * room.places, warp * (room.nodes + 1) * (R * WARP), lane)
        at = seat.at
        while True:
            i = I32(0)
            if lane == 0:
                i = I32(cuda.atomic.add(count, 0, 1))
            i = I32(shuffle(i, I32(0)))
            if i >= windows.shape[0]:
                break
            window, n_nodes, n_edges, n_rows = windows[i, 0], I32(0), I32(0), I32(0)
            for s in range(windows[i, 1], windows[i, 2]):
                begin, score = offsets[s], I32(0)
                n = I32(offsets[s + 1] - begin)
                sequence = Sequence(codes, begin, n)
                if n_nodes + n > room.nodes or n_edges + n > room.places - 1:
                    n_nodes = I32(FULL)
                    break
                for j in range(lane, n, WARP):
                    graph[PATH, at + j] = 0
                sync_warp()
                if n > 0 and n_nodes > 0:
                    mark_bases(stacks.masks, sequence, lane, R)
                    fill_rows(graph, n_nodes, rows, seat, stacks, costs, R)
                    sync_warp()
                    row, score = best_end(graph, n_nodes, rows, seat, n, R)
                    trace_mates(graph, rows, seat, sequence, row, score, costs, R)
                    sync_warp()
                    n_rows += n_nodes
                if lane == 0:
                    written.scores[s] = score
                n_new = find_nodes(graph, n_nodes, sequence, seat)
                n_edges = add_edges(graph, n_edges, n, seat)
                order_nodes(graph, n_nodes, n_new, seat)
                n_nodes += n_new
                list_rows_before(graph, n_nodes, seat)
                if room.laid_out:
                    for j in range(lane, n, WARP):
                        written.columns[begin + j] = graph[PATH, at + j]  # the node at first
                sync_warp()
            n_columns, size = I32(0), I32(FULL)
            if n_nodes >= 0:
                first, end = offsets[windows[i, 1]], offsets[windows[i, 2]]
                size = find_bundle(graph, n_nodes, seat)
                for k in range(lane, size, WARP):
                    written.consensus[first + k] = graph[BASE, at + graph[NEW, at + size - 1 - k]]
                if room.laid_out:
                    n_columns = number_columns(graph, n_nodes, seat)
                    for k in range(lane, size, WARP):
                        written.consensus_columns[first + k] = graph[SCORE, at + graph[NEW, at + size - 1 - k]]
                    for place in range(first + lane, end, WARP):
                        written.columns[place] = graph[SCORE, at + written.columns[place]]
            if lane == 0:
                written.results[window, N_CONSENSUS], written.results[window, N_COLUMNS] = size, n_columns
                written.results[window, N_ROWS] = n_rows
            sync_warp()

    align_windows.most_registers = MOST_REGISTERS[registers]  # type: ignore[attr-defined]  # for `kernel_of`
    return align_windows
