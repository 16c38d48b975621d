"""Stages 4 and 5 on the device that is there: a matrix -> the seeds of all candidates.

Both devices find the same seeds.  What does not fit a GPU's memory, or its words, is left to the CPU.
"""

from __future__ import annotations

from bellapy.compute.resources import Resources
from bellapy.jobs.overlap.products import Multiplied, multiply, symbolic_product
from bellapy.jobs.overlap.seeds import Found, choose_seeds, seed_bytes
from bellapy.params import SeedParams
from bellapy.records import KmerMatrix, ReadSet
from bellapy.records.kmers import HeldMatrix
from bellapy.report.progress import progress

LEAST_ENTRIES = 1 << 18  # for each thread: fewer are multiplied sooner than kernels are loaded


def find_seeds_of(
    matrix: KmerMatrix, reads: ReadSet, params: SeedParams, resources: Resources, multiplied: Multiplied
) -> Found:
    """Seeds of all candidates.

    matrix : all of whose columns link reads.  reads : of which the lengths are looked at.
    """
    found = None
    pays = isinstance(matrix, HeldMatrix) or len(matrix.entries) >= LEAST_ENTRIES * resources.threads
    if resources.device == "cuda" and pays:
        from bellapy.jobs.overlap.gpu.products import try_on_gpu

        found = try_on_gpu(matrix, reads.lengths, params, resources, multiplied)
    if found is None and isinstance(matrix, HeldMatrix):
        matrix = matrix.on_host()
    return found or _find_on_cpu(matrix, reads, params, resources, multiplied)


def _find_on_cpu(
    matrix: KmerMatrix, reads: ReadSet, params: SeedParams, resources: Resources, multiplied: Multiplied
) -> Found:
    between, layout = multiplied
    products_of = symbolic_product(matrix, resources.threads, between)
    n_products = int(products_of.sum())
    parts, n_candidates, n_weak, done = [], 0, 0, 0
    groups = multiply(
        matrix, products_of, between=between, layout=layout, threads=resources.threads, budget=resources.budget,
        result_bytes=seed_bytes(params),
    )  # fmt: skip
    with progress("candidates", None if between or layout else n_products) as advance:
        for products in groups:
            more, n, weak = choose_seeds(products, matrix, reads, params, resources.threads)
            parts += more
            n_candidates, n_weak, done = n_candidates + n, n_weak + weak, done + len(products.keys)
            advance(done)
            del products  # before the next ones are made
    return Found(parts, n_products, n_candidates, n_weak)
