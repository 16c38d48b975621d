"""The command `correct`; app.py adds it to the program."""

from __future__ import annotations

from typing import Annotated

import typer

from bellapy.errors import ParameterError

Reads = Annotated[list[str], typer.Argument(help="FASTA or FASTQ, plain or gzip; - is standard input.", show_default=False)]
Output = Annotated[
    str, typer.Option("-o", "--output", help="File to write: FASTA; .gz or .bgz compresses; - is standard output.")
]
OverlapFile = Annotated[
    str | None, typer.Option("--overlaps", help="PAF of the reads with cg:Z paths [default: overlaps are found here].")
]
Preset = Annotated[str | None, typer.Option(help="Settings for a kind of reads: clr, ont or hifi.")]
MinSupport = Annotated[int | None, typer.Option(help="Other reads that a place needs to be changed [default: 3].")]
MaxDepth = Annotated[int | None, typer.Option(help="Reads used in any place, the most alike first [default: 60].")]
Rounds = Annotated[int | None, typer.Option(help="Rounds of consensus [default: 2, or 3 for noisy reads].")]
NoPhase = Annotated[bool, typer.Option("--no-phase", help="Use reads of other haplotypes and repeat copies too.")]
Trim = Annotated[bool, typer.Option("--trim", help="Cut ends with too little support.")]
Split = Annotated[bool, typer.Option("--split", help="Cut out what has too little support; pieces are read:from-to.")]
Lowercase = Annotated[bool, typer.Option("--lowercase", help="Write bases with too little support in lower case.")]
MinLength = Annotated[int | None, typer.Option(help="Leave out shorter reads and pieces [default: 0].")]
MinOverlap = Annotated[int | None, typer.Option(help="Shortest overlap, in bases [default: 1000].")]
ErrorRate = Annotated[float | None, typer.Option("-e", "--error-rate", help="Errors per base [default: from the data].")]
Depth = Annotated[float | None, typer.Option(help="Sequencing depth [default: from the data].")]
Device = Annotated[str | None, typer.Option(help="Where to align: cpu, cuda, or auto (GPUs if any) [default: auto].")]
Threads = Annotated[int | None, typer.Option("-t", "--threads", help="[default: all cores]")]
MaxMemory = Annotated[
    str | None, typer.Option("--max-memory", metavar="SIZE", help="Most memory to use, such as 600M or 2GiB [default: any].")
]
ReportFile = Annotated[str | None, typer.Option("--report", help="Write what was done as JSON.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Only warnings and errors.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")]


def correct(
    reads: Reads, output: Output = "-", overlaps: OverlapFile = None, preset: Preset = None, min_support: MinSupport = None,
    max_depth: MaxDepth = None, rounds: Rounds = None, no_phase: NoPhase = False, trim: Trim = False, split: Split = False,
    lowercase: Lowercase = False, min_length: MinLength = None, min_overlap: MinOverlap = None, error_rate: ErrorRate = None,
    depth: Depth = None, device: Device = None, threads: Threads = None, max_memory: MaxMemory = None,
    report_file: ReportFile = None, quiet: Quiet = False, debug: Debug = False,
) -> None:  # fmt: skip
    """Correct reads by each other: the same reads, whole and in the same order, with far fewer errors."""
    from bellapy.cli.app import _Run
    from bellapy.params.correct import make_correct_params

    chosen = make_correct_params(
        min_support=min_support, max_depth=max_depth, rounds=rounds, phase=not no_phase, trim=trim, split=split,
        lowercase=lowercase, min_length=min_length,
    )  # fmt: skip
    if output.removesuffix(".gz").removesuffix(".bgz").endswith((".fq", ".fastq")):
        raise ParameterError(f"-o {output}: corrected reads have no base qualities; name a FASTA file, such as corrected.fa.gz")
    making = {"preset": preset, "min_overlap": min_overlap, "error_rate": error_rate, "depth": depth}
    if overlaps:
        for name, value in making.items():
            if value is not None:
                raise ParameterError(f"--{name.replace('_', '-')}: rules how overlaps are found; leave out --overlaps")
    options = {**making, "device": device, "threads": threads, "max_memory": max_memory}
    options |= {"report_file": report_file, "quiet": quiet, "debug": debug}
    run = _Run(options, [*reads, *([overlaps] if overlaps else [])], output)
    read_set = run.load(reads, overlaps=not overlaps)
    from bellapy.io.outputs import open_output
    from bellapy.jobs.correct.output import Writer
    from bellapy.jobs.correct.pipeline import Job, correct_reads

    if overlaps:
        read_set, overlap_set, trace = _read_overlaps(run, read_set, overlaps)
    else:
        read_set, overlap_set, trace = _find_overlaps(run, read_set)
    job = Job(read_set, overlap_set, trace, chosen, run.params.run.threads, run.budget)
    writer = Writer(chosen)
    with open_output(output) as stream:
        for name, found in zip(read_set.names, correct_reads(job, run.report), strict=True):
            for record in writer.records(name, found):
                stream.write(record)
    writer.tell(run.report)
    run.finish()


def _find_overlaps(run, reads):
    """The reads as given, their overlaps, and what makes the paths of these."""
    from bellapy.compute.gpu.devices import choose_device
    from bellapy.engines.trace import map_paths
    from bellapy.jobs.correct.members import pack
    from bellapy.jobs.overlap.pipeline import overlap_reads

    overlaps, steps = overlap_reads(reads, run.params, run.report)
    reads, overlaps = run.restore(reads, overlaps, with_bases=True)
    device, longest = choose_device(run.params.run.device), run.params.extension.extension == "longest"

    def trace(rows):
        some, threads = overlaps.take(rows), run.params.run.threads
        return map_paths(pack, reads, some, steps, longest=longest, threads=threads, device=device, budget=run.budget)

    return reads, overlaps, trace


def _read_overlaps(run, reads, path: str):
    """The same from a file."""
    import numpy as np

    from bellapy.io.paf_paths import read_path_overlaps
    from bellapy.jobs.overlap.canonical import given_reads

    reads = given_reads(reads, run.order, run.params.run.threads, with_bases=True)
    with run.report.stage("overlaps") as numbers:
        found = read_path_overlaps(path, reads)
        numbers.update({"overlaps": len(found.overlaps), "of a read with itself": found.n_self, "twice": found.n_twice})

    def trace(rows):
        sizes = np.diff(found.offsets)
        mask = np.zeros(len(sizes), bool)
        mask[rows] = True
        yield found.runs[np.repeat(mask, sizes)], sizes[rows], found.columns[rows]

    return reads, found.overlaps, trace


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command()(correct)
