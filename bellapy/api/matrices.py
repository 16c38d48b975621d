"""The first two steps of the method as functions: the matrix A of reads and k-mers, and the candidates of A·Aᵀ."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from bellapy.api.inputs import Reads
from bellapy.api.reading import Loaded, load_given
from bellapy.api.stages import Counted, candidates_stage, count_stage
from bellapy.compute.threads import usable_cores
from bellapy.jobs.overlap.report import start_report
from bellapy.params import make_params
from bellapy.records.sparse import sparse_kmers, sparse_seeds
from bellapy.report.run_report import RunReport
from bellapy.version import __version__


def count(reads: Reads, *, preset: str | None = None, threads: int | None = None, **options: Any) -> sparse.csc_array:
    """The matrix A, reads x reliable k-mers: what `bellapy count` finds.

    Parameters
    ----------
    reads, preset, threads, options : as of `bellapy.overlap`.

    Returns
    -------
    (n_reads, n_kmers) int32, rows in the order of the reads: the start of the k-mer in the read as given, from 1, negative
    where the read shows its reverse complement.  A k-mer that a read has several times has several values there.

    Raises
    ------
    As `bellapy.overlap`.
    """
    loaded, counted = _counted(reads, preset, threads, options, "bellapy.count")
    read_set, order = loaded.reads, loaded.order
    found = sparse_kmers(counted.matrix)
    row = order.given[found.indices]
    whole = read_set.lengths[found.indices].astype(np.int64) - counted.matrix.seed_length + 2
    turned = np.sign(found.data) * (np.abs(found.data) - whole)
    value = np.where(order.flipped[found.indices], turned, found.data).astype(np.int32)
    columns = np.repeat(np.arange(found.shape[1]), np.diff(found.indptr))
    by_row = np.lexsort((np.abs(value), row, columns))
    return sparse.csc_array((value[by_row], row[by_row].astype(np.int32), found.indptr), shape=found.shape)


def candidates(reads: Reads, *, preset: str | None = None, threads: int | None = None, **options: Any) -> sparse.csr_array:
    """The pairs of reads that may overlap, the non-zeros of A·Aᵀ that have a seed: what `bellapy candidates` finds.

    Parameters
    ----------
    reads, preset, threads, options : as of `bellapy.overlap`.

    Returns
    -------
    (n_reads, n_reads) int32, in the order of the reads: the k-mers that both share, each pair once, above the diagonal.

    Raises
    ------
    As `bellapy.overlap`.
    """
    loaded, counted = _counted(reads, preset, threads, options, "bellapy.candidates")
    report = start_report(RunReport("bellapy.candidates", __version__))
    seeds = candidates_stage(loaded.reads, counted, loaded.params, report)
    pairs = sparse_seeds(seeds, len(loaded.reads)).tocoo()
    rows = np.sort(loaded.order.given[np.stack(pairs.coords)], axis=0)
    return sparse.coo_array((pairs.data, (rows[0], rows[1])), shape=pairs.shape).tocsr()


def _counted(
    reads: Reads, preset: str | None, threads: int | None, options: dict[str, Any], name: str
) -> tuple[Loaded, Counted]:
    """The reads in their canonical order, and what counting found."""
    params = make_params(preset, threads=threads or usable_cores(), **options)
    report = start_report(RunReport(name, __version__, params.to_dict()))
    loaded = load_given(reads, params, report, overlaps=True)
    return loaded, count_stage(loaded.reads, loaded.params, report)
