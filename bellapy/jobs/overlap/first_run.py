"""What the job has compiled ahead for GPUs, in the order in which it is needed."""

from __future__ import annotations

from bellapy.compute.gpu import ahead
from bellapy.engines.linear.classes import CLASSES

COUNTING = (
    "bellapy.compute.gpu.sort:load", "bellapy.seeding.kmers_cuda:load", "bellapy.jobs.overlap.columns_cuda:load",
    "bellapy.jobs.overlap.products_cuda:load_choice", "bellapy.jobs.overlap.products_cuda:load",
)  # fmt: skip


def tasks(*, with_paths: bool) -> list[str]:
    """All that a run may need."""
    engines = ["extend_cuda", "trace_cuda"] if with_paths else ["extend_cuda"]
    sizes = [f"bellapy.engines.linear.{engine}:load_size:{number}" for engine in engines for number in range(len(CLASSES))]
    return [*COUNTING, *sizes]


def compile_ahead(*, with_paths: bool) -> None:
    """Begin with what no run has compiled yet."""
    ahead.start(tasks(with_paths=with_paths))
