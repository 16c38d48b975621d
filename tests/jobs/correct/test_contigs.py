"""Contigs in windows: which reads lie in which."""

from __future__ import annotations

import numpy as np
import pytest

from bellapy.jobs.correct import contigs
from bellapy.jobs.correct.contigs import find_pieces, make_windows
from bellapy.jobs.correct.placements import Placements


@pytest.mark.parametrize("seed", range(3))
def test_lines_lie_in_the_windows_that_they_share_bases_with(seed, monkeypatch):
    """On circles positions go on, two turns at most, and a line may lie in a window once in each turn."""
    monkeypatch.setattr(contigs, "WINDOW", 100)
    monkeypatch.setattr(contigs, "MARGIN", 15)
    rng = np.random.default_rng(seed)
    lengths, circular = np.array([700, 90, 20, 1000, 350]), np.array([True, False, True, False, True])
    contig = rng.permutation(np.repeat(np.arange(5), 40))
    start = rng.integers(0, lengths[contig] - 10)
    most = np.where(circular, np.minimum(3 * lengths, lengths + 400), lengths)[contig]
    end = rng.integers(start + 1, most + 1)
    none = np.zeros(len(contig), np.int64)
    placed = Placements(none, none, contig, start, end, *[none] * 7)
    windows = make_windows(lengths, circular)
    expected = [
        (window, line, turn * int(lengths[its]))
        for window, its in enumerate(windows.contig)
        for line in np.flatnonzero(contig == its).tolist()
        for turn in ((-2, -1, 0, 1) if circular[its] else (0,))
        if start[line] + turn * lengths[its] < windows.high[window] and windows.low[window] < end[line] + turn * lengths[its]
    ]
    pieces = find_pieces(placed, windows, lengths, circular)
    found = list(zip(pieces.window.tolist(), pieces.line.tolist(), pieces.shift.tolist(), strict=True))
    assert found == sorted(expected) and len({window for window, *_ in found}) == len(windows.low)
