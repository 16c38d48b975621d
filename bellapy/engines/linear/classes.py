"""The sizes of windows that kernels are made for: known without loading what makes them."""

from __future__ import annotations

CLASSES: tuple[tuple[int, int, int], ...] = (
    (4, 4, 14), (4, 6, 25), (8, 4, 50), (8, 8, 110), (8, 14, 200), (16, 10, 300), (16, 14, 500), (32, 10, 700),
    (32, 14, 1010),
)  # fmt: skip
"""Lanes of a group, registers of a lane (of two rows each), and up to which X over the gap penalty nearly all true overlaps
stay inside; by measurement (benchmarks/gpu.py)."""
SIMULATED_CLASSES: tuple[tuple[int, int, int], ...] = ((4, 2, 3), (8, 4, 40))
"""Those of Numba's simulator, whose warps are small."""
