"""What the job has compiled ahead for GPUs, in the order in which it is needed (compute/gpu/ahead.py).

Few sizes of windows are enough: the widest, and others as they come.  So these are begun first, the widest before all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING

from bellapy.compute.gpu import ahead
from bellapy.compute.gpu.devices import choose_device, known_gpus

if TYPE_CHECKING:  # loaded when needed
    from bellapy.compute.resources import Resources
    from bellapy.records import ReadSet

ESTIMATE = f"{__name__}:load_count", f"{__name__}:load_depth", f"{__name__}:load_fit"
JUDGING = f"{__name__}:load_judging"
PROGRAM = f"{__name__}:load_program"
GAIN = "bellapy.jobs.overlap.ends:load_gain"
PRODUCTS = (
    "bellapy.compute.gpu.sort:load", "bellapy.jobs.overlap.products_cuda:load_choice",
    "bellapy.jobs.overlap.products_cuda:load",
)  # fmt: skip
SAMPLE = PRODUCTS[0], "bellapy.seeding.kmers_cuda:load", "bellapy.jobs.overlap.coverage_cuda:load"
COUNTING = *SAMPLE, "bellapy.jobs.overlap.columns_cuda:load", *PRODUCTS[1:]
EXTENSION = (8, 3, 1, 4, 0, 2, 5, 6, 7)
"""Sizes, by their numbers among those of engines/linear/classes.py."""
PATHS = (8, 7, 3, 1, 4, 5, 6, 0, 2)


def tasks(*, with_paths: bool) -> list[str]:
    """All that a run may need."""
    engine = "bellapy.engines.linear"
    extension = [f"{engine}.extend_cuda:load_size:{number}" for number in EXTENSION]
    paths = [f"{engine}.trace_cuda:load_size:{number}" for number in PATHS] if with_paths else []
    joining = [f"{engine}.trace_cuda:load_join"] if with_paths else []
    return [*ESTIMATE, JUDGING, *COUNTING, *extension[:3], *paths[:4], *joining, *extension[3:], *paths[4:]]


def compile_ahead(*, with_paths: bool, others: Sequence[str] = ()) -> None:
    """Begin with what no run has compiled yet; others : what a job needs beside its overlaps."""
    ahead.start([*tasks(with_paths=with_paths), *others])


def choose_beside(wanted: str) -> Future[str]:
    """Begin to choose the device, as `choose_device` does, and to load what a GPU does first, in a thread: reads can be read
    meanwhile.

    wanted : of `--device`.
    """
    choice: Future[str] = Future()

    def choose() -> None:
        try:
            device = choose_device(wanted)
        except BaseException as error:
            choice.set_exception(error)
            return
        choice.set_result(device)
        if device == "cuda":
            load_ahead()

    if wanted == "cpu":
        choice.set_result("cpu")
        return choice
    Thread(target=choose, name="choosing", daemon=True).start()
    return choice


def load_ahead() -> None:
    """Begin to load what is needed first where a GPU counts, once one is there."""
    engine = "bellapy.engines.linear"
    narrow_first = sorted(EXTENSION, key=lambda number: number or len(EXTENSION))  # the narrowest of all is rarely used
    extension = [f"{engine}.extend_cuda:load_size:{number}" for number in narrow_first]
    memory = f"{engine}.extend_cuda:take_memory"  # without the GIL, which reading needs; the estimate would wait for it
    of_others = *SAMPLE[:2], *PRODUCTS[1:], *extension, memory
    others = [f"{task}:{gpu}" for gpu in range(1, len(known_gpus())) for task in of_others]
    ahead.load([PROGRAM, memory, *SAMPLE, *ESTIMATE[1:], *COUNTING[len(SAMPLE) :], *extension, GAIN, JUDGING, *others])


def load_program() -> None:
    """Load the modules of the job, which takes a while, and those that write."""
    for module in ("jobs.overlap.pipeline", "io.overlap_writer", "io.paf"):
        import_module(f"bellapy.{module}")
    import_module("numpy.ma")  # numpy.unique asks whether an array is masked


@contextmanager
def sending(reads: ReadSet, resources: Resources) -> Iterator[None]:
    """Bring the reads to the GPU that will count while the CPU learns from them, in the block."""
    from bellapy.jobs.overlap.columns_cuda import send_reads

    with ThreadPoolExecutor(1) as pool:
        pool.submit(send_reads, reads, resources)
        yield


def load_count() -> None:
    """Compile, or load, what counts k-mers on the CPU: by no reads."""
    import numpy as np

    from bellapy.records.bases import PAD, UNKNOWN
    from bellapy.seeding.kmers import count_kmers

    count_kmers(np.full(PAD, UNKNOWN, np.uint8), 1, 2, 2)


def load_depth() -> None:
    """Compile, or load, what measures the depth: by reads of one base."""
    import numpy as np

    from bellapy.jobs.overlap.measured import LEAST_PIECES, measure_depth
    from bellapy.records import ReadSet

    reads = ReadSet.from_sequences(["A" * 40] * LEAST_PIECES)
    for find in (None, lambda table: np.zeros((2, 0), np.uint64)):
        measure_depth(reads, 13, 1, find=find)


def load_fit() -> None:
    """Compile, or load, what fits the spectrum of k-mers: by a flat one, and a matrix of two reads with one k-mer."""
    import numpy as np

    from bellapy.jobs.overlap.estimate import MIN_DISTINCT, fit_spectrum, spectrum_of_reads, survey_reads
    from bellapy.records import KmerMatrix
    from bellapy.records.table import INT32_MAX

    matrix = KmerMatrix(1, 1, np.array([2, 40], np.uint32), np.array([0, 10, 20]), INT32_MAX, 1)
    survey_reads(matrix)
    spectrum_of_reads(matrix, np.ones(2, bool), 3)
    fit_spectrum(np.full(50, float(MIN_DISTINCT)), 13, 1000, 0.1, 10.0, chance=0.5)


def load_judging() -> None:
    """Compile, or load, what makes overlaps of alignments, and lines of these: by copies of one read, aligned from end to
    end.
    """
    import numpy as np

    from bellapy.io.paf import format_overlaps
    from bellapy.jobs.overlap.canonical import Order, given_overlaps
    from bellapy.jobs.overlap.pipeline import filter_stage
    from bellapy.jobs.overlap.report import start_report
    from bellapy.jobs.overlap.seed_rows import N_COLUMNS, seeds_from_columns
    from bellapy.params import Params
    from bellapy.records import Estimate, Extensions, ReadSet
    from bellapy.report.log import quietly
    from bellapy.report.run_report import RunReport

    n_reads, n_bases = 12, 5000  # so many pairs that their usual score is known
    pairs = np.triu_indices(n_reads, 1)
    columns, alignments = np.zeros((N_COLUMNS, len(pairs[0])), np.int32), np.zeros((9, len(pairs[0])), np.int32)
    columns[:2], columns[2], columns[6:9] = pairs, 1, n_bases  # reads, strand, support
    alignments[[0, 2, 4]] = n_bases  # the score, and both ends
    reads, seeds = ReadSet.from_sequences(["A" * n_bases] * n_reads), seeds_from_columns(columns, 1)
    with quietly():
        estimate, report = Estimate(None, None, False, ""), start_report(RunReport())
        found = filter_stage(reads, seeds, Extensions(*alignments), estimate, Params(), report)
    order = Order(np.arange(n_reads), np.zeros(n_reads, bool))
    list(format_overlaps(reads, given_overlaps(found, reads.lengths, order)))
