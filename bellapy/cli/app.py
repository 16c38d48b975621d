"""The command line: options -> parameters -> stages -> exit code.  The only module that ends the process."""

from __future__ import annotations

import gc
import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bellapy import __version__
from bellapy.cli import exact as cli_exact
from bellapy.cli import map as cli_map
from bellapy.cli import wga as cli_wga
from bellapy.errors import INTERRUPTED, BellapyError, MemoryLimitError, ParameterError

if TYPE_CHECKING:  # loaded when needed
    from bellapy.io.overlap_writer import Destination

app = typer.Typer(
    name="bellapy",
    help="Find which long reads overlap, where, and how well.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Reads = Annotated[list[str], typer.Argument(help="FASTA or FASTQ, plain or gzip; - is standard input.", show_default=False)]
Output = Annotated[str, typer.Option("-o", "--output", help="File to write; .gz or .bgz compresses; - is standard output.")]
StageOutput = Annotated[str, typer.Option("-o", "--output", help="File for the next stage.", show_default=False)]
Preset = Annotated[str | None, typer.Option(help="Settings for a kind of reads: clr, ont or hifi.")]
K = Annotated[int | None, typer.Option("-k", help="k-mer length, 3 to 31 [default: from the data].")]
Lower = Annotated[int | None, typer.Option(help="Smallest count of a k-mer that links reads [default: 2].")]
Upper = Annotated[int | None, typer.Option(help="Largest count [default: from depth and error rate].")]
ErrorRate = Annotated[float | None, typer.Option("-e", "--error-rate", help="Errors per base [default: from the data].")]
Depth = Annotated[float | None, typer.Option(help="Sequencing depth [default: from the data].")]
Sampling = Annotated[
    str | None, typer.Option(help="Which k-mers count: auto, none (all), fraction, minimizer, syncmer [default: auto].")
]
SamplingWindow = Annotated[int | None, typer.Option(help="Keep about one k-mer in so many [default: 8].")]
Homopolymer = Annotated[bool | None, typer.Option("--homopolymer", help="Count k-mers of homopolymer-compressed reads.")]
MinSupport = Annotated[int | None, typer.Option(help="Shared k-mers that have to agree [default: 2].")]
Density = Annotated[float | None, typer.Option(help="Share of the typical k-mer density a candidate needs [default: 0.05].")]
MaxCopies = Annotated[float | None, typer.Option(help="Copies of a sequence from which on it is a repeat [default: 2.5].")]
MinOverlap = Annotated[int | None, typer.Option(help="Shortest overlap, in bases [default: 1000].")]
Match = Annotated[int | None, typer.Option(help="Score of a match [default: 1].")]
Mismatch = Annotated[int | None, typer.Option(help="Score of a mismatch [default: -1].")]
Gap = Annotated[int | None, typer.Option(help="Score of a gap, per base [default: -1].")]
XDrop = Annotated[int | None, typer.Option("-x", "--xdrop", help="Stop so far below the best [default: from the data].")]
Extension = Annotated[str | None, typer.Option(help="Its end: homology, best, or longest (SeqAn) [default: homology].")]
Delta = Annotated[float | None, typer.Option(help="Tolerance of the score threshold [default: 0.1].")]
MinIdentity = Annotated[float | None, typer.Option(help="Least identity, 0 to 1; of the path if made [default: 0].")]
MaxOverhang = Annotated[int | None, typer.Option(help="Unaligned bases allowed where both reads go on [default: any].")]
Cigar = Annotated[bool, typer.Option("--cigar", help="Base-level paths: CIGAR in cg:Z.")]
Cs = Annotated[bool, typer.Option("--cs", help="Base-level paths: differences in cs:Z.")]
TrimIdentity = Annotated[float | None, typer.Option(help="Cut ends of paths with a smaller identity [default: any].")]
Sort = Annotated[bool, typer.Option("--sort", help="Sort BAM by target and index it.")]
Format = Annotated[str | None, typer.Option("--format", help="paf, sam, bam, or bella (12 columns) [default: by name].")]
InputFormat = Annotated[str, typer.Option("--format", help="paf, or bella for BELLA's 12 columns.")]
Device = Annotated[str | None, typer.Option(help="Where to align: cpu, cuda, or auto (GPUs if any) [default: auto].")]
Threads = Annotated[int | None, typer.Option("-t", "--threads", help="[default: all cores]")]
MaxMemory = Annotated[
    str | None, typer.Option("--max-memory", metavar="SIZE", help="Most memory to use, such as 600M or 2GiB [default: any].")
]
ReportFile = Annotated[str | None, typer.Option("--report", help="Write what was done as JSON.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Only warnings and errors.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")]


def _usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Run:
    """What every command does around its stages: check, log, read, report."""

    def __init__(self, options: dict[str, Any], inputs: list[str], output: str, index: str | None = None):
        self.debug, self.report_file = options.pop("debug"), options.pop("report_file")
        from bellapy.compute.memory import Budget, address_space
        from bellapy.io.outputs import check_outputs
        from bellapy.params import make_params
        from bellapy.report.log import Report, set_up_logging

        set_up_logging(options.pop("quiet"), self.debug)
        if options.get("threads") is None:
            options["threads"] = _usable_cores()
        self.params = make_params(options.pop("preset", None), **options)
        if (space := address_space(self.params.run.threads)) is not None:
            self._keep_to(space)
        self.budget = Budget(self.params.run.max_memory)
        check_outputs({"-o": output, "the index": index, "--report": self.report_file}, inputs)
        self.report = Report(shlex.join(["bellapy", *sys.argv[1:]]), __version__)
        self.report.data["parameters"] = self.params.to_dict()

    def _keep_to(self, space: int) -> None:
        """Never use more than that: libraries that get no memory end the program."""
        from bellapy.report.log import logger

        limit = min(space, self.params.run.max_memory or space)
        self.params = replace(self.params, run=replace(self.params.run, max_memory=limit))
        logger.info("ulimit -v: works as with --max-memory %.0fM", limit / 1e6)

    def load_program(self, overlaps: bool = False, look: Callable[[], None] | None = None) -> None:
        """Load what takes a while to load: Numba and all stages; for `overlaps` the device, and kernels if there is time.

        look : if another process reads, raises what went wrong there; compiling kernels may take long.
        """
        from bellapy.compute import stopping
        from bellapy.report.log import watch_compilation

        stopping.watch()
        watch_compilation(self.report)
        from bellapy.jobs.overlap.pipeline import load_kernels, with_device

        if overlaps:
            self.params = with_device(self.params)
            if look:
                look()
                load_kernels(self.params)

    def load(self, paths: list[str], output: Destination | None = None, *, overlaps: bool = False):
        from bellapy.compute.memory import PROGRAM, expect, resident
        from bellapy.io.fastx import gather_reads, join_reads
        from bellapy.io.read_ahead import can_read_ahead, read_ahead
        from bellapy.report.log import progress

        def read():
            def check(n_reads: int, n_bases: int) -> None:
                advance(n_reads)
                expect(held, n_reads, n_bases)
                if refused:
                    raise refused
                self.budget.require("holding the reads", n_bases)  # in the end they are copied once

            with progress("read", None) as advance:
                return gather_reads(paths, check)

        ahead = self.params.run.threads > 1 and self.budget.limit is None and can_read_ahead()
        refused = None
        if not ahead:
            try:
                self.budget.require("the program itself", max(0, PROGRAM - resident()))
                self.load_program(overlaps)
            except MemoryLimitError as error:  # told when the reads have been counted
                refused = error
        held = resident()
        with self.report.stage("read") as numbers:
            if ahead:
                reads = read_ahead(read, lambda look: self.load_program(overlaps, look))
            else:
                gathered = read()
                expect(held, len(gathered.names), int(gathered.lengths.sum(dtype="int64")))
                if refused:
                    raise refused
                reads = join_reads(gathered)
            numbers.update(reads=len(reads), bases=reads.n_bases)
            from bellapy.jobs.overlap.canonical import canonical_reads

            given, (reads, self.order) = reads, canonical_reads(reads, self.params.run.threads)
        self.report.letters(given.other_letters, given.n_bases)
        if output and output.format in ("sam", "bam"):  # told before the work
            from bellapy.io.sam import check_names

            check_names(given.names)
        return reads

    def restore(self, reads, overlaps, *, with_bases: bool):
        """Reads and overlaps as the input has them; with_bases : `reads` must not be used any more."""
        from bellapy.jobs.overlap.canonical import given_overlaps, given_reads

        overlaps = given_overlaps(overlaps, reads.lengths, self.order)
        return given_reads(reads, self.order, self.params.run.threads, with_bases=with_bases), overlaps

    def write(self, reads, overlaps, output: Destination) -> None:
        from bellapy.compute.threads import consume_ahead
        from bellapy.io.paf import format_overlaps

        reads, overlaps = self.restore(reads, overlaps, with_bases=False)
        with self.report.stage("write") as numbers, self._writer(output, reads) as write:
            consume_ahead(format_overlaps(reads, overlaps, output.format), write, self.params.run.threads)
            numbers["overlaps"] = len(overlaps)

    def write_overlaps(self, reads, overlaps, steps, output: Destination) -> None:
        """With their paths, if the output needs any."""
        if not output.paths:
            self.write(reads, overlaps, output)
            return
        from bellapy.compute.threads import consume_ahead
        from bellapy.io.overlap_writer import formatter
        from bellapy.jobs.overlap.pipeline import paths_stage

        reads, overlaps = self.restore(reads, overlaps, with_bases=True)
        show = formatter(output, reads)
        with self._writer(output, reads) as write:
            lines = paths_stage(reads, overlaps, steps, self.params, self.report, show)
            consume_ahead(lines, write, self.params.run.threads)

    def _writer(self, output: Destination, reads):
        from bellapy.io.overlap_writer import open_writer

        return open_writer(output, reads, self.report.data["command"], __version__, self.params.run.threads)

    def finish(self) -> None:
        self.report.finish()
        if self.report_file:
            from bellapy.io.outputs import open_output

            with open_output(self.report_file) as stream:
                stream.write(self.report.to_json())


@app.command()
def overlap(
    reads: Reads, output: Output = "-", preset: Preset = None, k: K = None, lower: Lower = None, upper: Upper = None,
    error_rate: ErrorRate = None, depth: Depth = None, sampling: Sampling = None, sampling_window: SamplingWindow = None,
    homopolymer: Homopolymer = None, min_support: MinSupport = None, density: Density = None, max_copies: MaxCopies = None,
    match: Match = None, mismatch: Mismatch = None, gap: Gap = None, xdrop: XDrop = None, extension: Extension = None,
    delta: Delta = None, min_overlap: MinOverlap = None, min_identity: MinIdentity = None, max_overhang: MaxOverhang = None,
    skip_alignment: Annotated[bool, typer.Option("--skip-alignment", help="Report candidates, align nothing.")] = False,
    cigar: Cigar = False, cs: Cs = False, trim_identity: TrimIdentity = None, overlap_format: Format = None,
    sort: Sort = False, device: Device = None, threads: Threads = None, max_memory: MaxMemory = None,
    report_file: ReportFile = None, quiet: Quiet = False, debug: Debug = False,
) -> None:  # fmt: skip
    """Overlaps of all reads with each other: the whole job, as PAF, SAM or BAM."""
    options = _options(locals(), "reads", "output", "skip_alignment", *WRITING)
    target = _choose_output(locals())
    if skip_alignment and target.paths:
        raise ParameterError("--skip-alignment: without alignments there are no paths; write PAF, without --cigar")
    run = _Run(options, reads, output, target.index)
    read_set = run.load(reads, target, overlaps=not skip_alignment)
    from bellapy.jobs.overlap.pipeline import candidate_overlaps, overlap_reads

    if skip_alignment:
        run.write(read_set, candidate_overlaps(read_set, run.params, run.report), target)
    else:
        overlaps, steps = overlap_reads(read_set, run.params, run.report, with_paths=target.paths)
        run.write_overlaps(read_set, overlaps, steps, target)
    run.finish()


@app.command()
def count(
    reads: Reads, output: StageOutput, preset: Preset = None, k: K = None, lower: Lower = None, upper: Upper = None,
    error_rate: ErrorRate = None, depth: Depth = None, sampling: Sampling = None, sampling_window: SamplingWindow = None,
    homopolymer: Homopolymer = None, threads: Threads = None, max_memory: MaxMemory = None, report_file: ReportFile = None,
    quiet: Quiet = False, debug: Debug = False,
) -> None:  # fmt: skip
    """Step 1 of 4: count k-mers and keep the reliable ones with their places."""
    run = _Run(_options(locals(), "reads", "output"), reads, output)
    read_set = run.load(reads)
    from bellapy.io.stage_files import save_stage
    from bellapy.jobs.overlap.pipeline import count_stage

    counted = count_stage(read_set, run.params, run.report)
    save_stage(output, "k-mers", read_set, counted.meta(), matrix=counted.matrix, profile=counted.profile)
    run.finish()


@app.command()
def candidates(
    reads: Reads, kmers: Annotated[str, typer.Option("--kmers", help="File of `bellapy count`.", show_default=False)],
    output: StageOutput, min_support: MinSupport = None, density: Density = None, max_copies: MaxCopies = None,
    min_overlap: MinOverlap = None, threads: Threads = None, max_memory: MaxMemory = None, report_file: ReportFile = None,
    quiet: Quiet = False, debug: Debug = False,
) -> None:  # fmt: skip
    """Step 2 of 4: the sparse product and seeds of all candidate pairs."""
    run = _Run(_options(locals(), "reads", "kmers", "output"), [*reads, kmers], output)
    read_set = run.load(reads)
    from bellapy.io.stage_files import load_stage, save_stage
    from bellapy.jobs.overlap.pipeline import Counted, candidates_stage

    meta, matrix, profile = load_stage(kmers, "k-mers", read_set, run.budget)
    seeds = candidates_stage(read_set, Counted.from_meta(matrix, profile, meta), run.params, run.report)
    save_stage(output, "seeds", read_set, meta, seeds=seeds)
    run.finish()


@app.command()
def align(
    reads: Reads, seeds: Annotated[str, typer.Option("--seeds", help="File of `bellapy candidates`.", show_default=False)],
    output: StageOutput, preset: Preset = None, match: Match = None, mismatch: Mismatch = None, gap: Gap = None,
    xdrop: XDrop = None, extension: Extension = None, delta: Delta = None, device: Device = None, threads: Threads = None,
    max_memory: MaxMemory = None, report_file: ReportFile = None, quiet: Quiet = False, debug: Debug = False,
) -> None:  # fmt: skip
    """Step 3 of 4: X-drop extension of the seeds."""
    run = _Run(_options(locals(), "reads", "seeds", "output"), [*reads, seeds], output)
    read_set = run.load(reads)
    from bellapy.io.stage_files import load_stage, save_stage
    from bellapy.jobs.overlap.pipeline import align_stage, estimate_of

    meta, seed_set = load_stage(seeds, "seeds", read_set, run.budget)
    seed_set, extensions, steps = align_stage(read_set, seed_set, estimate_of(meta), run.params, run.report)
    meta |= {"steps": [step._asdict() for step in steps], "extension": run.params.extension.extension}
    save_stage(output, "alignments", read_set, meta, seeds=seed_set, extensions=extensions)
    run.finish()


@app.command("filter")
def filter_command(
    reads: Reads,
    alignments: Annotated[str, typer.Option("--alignments", help="File of `bellapy align`.", show_default=False)],
    output: Output = "-", delta: Delta = None, min_overlap: MinOverlap = None, min_identity: MinIdentity = None,
    max_overhang: MaxOverhang = None, cigar: Cigar = False, cs: Cs = False, trim_identity: TrimIdentity = None,
    overlap_format: Format = None, sort: Sort = False, device: Device = None, threads: Threads = None,
    max_memory: MaxMemory = None, report_file: ReportFile = None, quiet: Quiet = False, debug: Debug = False,
) -> None:  # fmt: skip
    """Step 4 of 4: keep the alignments that are overlaps; writes PAF, SAM or BAM."""
    options = _options(locals(), "reads", "alignments", "output", *WRITING)
    target = _choose_output(locals())
    run = _Run(options, [*reads, alignments], output, target.index)
    read_set = run.load(reads, target)
    from bellapy.io.stage_files import load_stage, not_a_stage
    from bellapy.jobs.overlap.pipeline import are_extended, estimate_of, filter_stage, with_device
    from bellapy.params import Scoring, make_params

    meta, seeds, extensions = load_stage(alignments, "alignments", read_set, run.budget)
    steps = tuple(Scoring(**step) for step in meta["steps"])
    scores = {name: getattr(steps[0], name) for name in ("match", "mismatch", "gap")}
    given = {name: value for name, value in options.items() if value is not None}
    run.params = replace(make_params(**given, **scores, extension=meta["extension"]), run=run.params.run)
    if target.paths:
        run.params = with_device(run.params)
    run.report.data["parameters"] = run.params.to_dict()
    overlaps = filter_stage(read_set, seeds, extensions, estimate_of(meta), run.params, run.report, with_paths=target.paths)
    if target.paths and not are_extended(read_set, overlaps, steps, run.params):
        raise not_a_stage(alignments, "ends that are not those of an extension")
    run.write_overlaps(read_set, overlaps, steps, target)
    run.finish()


@app.command()
def extend(
    pairs: Annotated[str, typer.Argument(help="Query, its seed's start, target, its seed's start, n or c (tab-separated).")],
    k: Annotated[int, typer.Option("-k", help="Bases of a seed.", show_default=False)],
    xdrop: Annotated[int, typer.Option("-x", "--xdrop", help="Stop so far below the best score.", show_default=False)],
    output: Output = "-", match: Match = None, mismatch: Mismatch = None, gap: Gap = None, extension: Extension = None,
    cigar: Cigar = False, cs: Cs = False, device: Device = None, threads: Threads = None, report_file: ReportFile = None,
    quiet: Quiet = False, debug: Debug = False,
) -> None:  # fmt: skip
    """Extend given seeds: index, score, query start and end, target start and end of each pair; with paths, their tags."""
    options = _options(locals(), "pairs", "output", "k", "cigar", "cs")
    options["extension"] = extension or "best"
    run = _Run(options, [pairs], output)
    run.load_program()
    from bellapy.io.outputs import open_output
    from bellapy.jobs.extend import extend_pairs

    with open_output(output) as stream:
        for lines in extend_pairs(pairs, k, run.params, run.report, cigar=cigar, cs=cs):
            stream.write(lines)
    run.finish()


@app.command()
def evaluate(
    overlaps: Annotated[str, typer.Argument(help="PAF or BELLA file; - is standard input.")],
    truth: Annotated[str, typer.Option("--truth", help="SAM, BAM, MAF or TSV of where the reads lie.", show_default=False)],
    overlap_format: InputFormat = "paf",
    min_overlap: Annotated[int, typer.Option(help="Reference bases that a true pair shares.")] = 2000,
    grey: Annotated[int, typer.Option(help="Pairs that share so many, but fewer, count neither way.")] = 500,
    min_span: Annotated[int, typer.Option(help="Leave out lines shorter than this on both reads.")] = 0,
    end_to_end: Annotated[int | None, typer.Option(help="Leave out lines with longer overhangs.")] = None,
    bins: Annotated[str, typer.Option(help="Recall by true overlap too: comma-separated bounds.")] = "",
    false_pairs: Annotated[str | None, typer.Option("--false-list", help="Write the false pairs to this file.")] = None,
    debug: Debug = False,
) -> None:  # fmt: skip
    """Recall, precision and end errors against where the reads truly lie, as JSON."""
    import json

    from bellapy.compute import stopping
    from bellapy.io.outputs import check_outputs, open_output
    from bellapy.jobs.evaluate.pipeline import evaluate_overlaps
    from bellapy.jobs.evaluate.truth import read_truth
    from bellapy.report.log import set_up_logging

    try:
        bounds = [int(bound) for bound in bins.split(",") if bound]
    except ValueError as error:
        raise ParameterError(f"--bins {bins}: comma-separated whole numbers are needed") from error
    stopping.watch()
    set_up_logging(debug=debug)
    check_outputs({"the result": "-", "--false-list": false_pairs}, [overlaps, truth])
    result = evaluate_overlaps(
        read_truth(truth), overlaps, overlap_format=overlap_format, min_overlap=min_overlap, grey=grey, min_span=min_span,
        end_to_end=end_to_end, bins=bounds, false_pairs=false_pairs,
    )  # fmt: skip
    with open_output("-") as stream:
        stream.write((json.dumps(result, indent=1) + "\n").encode())


cli_exact.register(app)
cli_wga.register(app)


@app.command("stage-options")
def stage_options(
    stage: Annotated[str, typer.Argument(help="count, candidates, align or filter.", show_default=False)],
    options: Annotated[list[str] | None, typer.Argument(help="After --: options of overlap.", show_default=False)] = None,
) -> None:
    """Those of given options of overlap that a stage takes, for workflows."""
    from bellapy.cli.stage_options import options_for
    from bellapy.io.outputs import open_output

    words = options_for(stage, options or [], typer.main.get_command(app).commands)
    with open_output("-") as stream:
        stream.write(f"{shlex.join(words)}\n".encode())


cli_map.register(app)


@app.command()
def info() -> None:
    """Versions, processor, devices and where compiled code is cached."""
    from bellapy.io.outputs import open_output
    from bellapy.jobs.info import describe_system

    with open_output("-") as stream:
        stream.write(f"{describe_system()}\n".encode(errors="backslashreplace"))


def _version(show: bool) -> None:
    if show:
        typer.echo(f"bellapy {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    pass


WRITING = ("cigar", "cs", "sort", "overlap_format")


def _choose_output(values: dict[str, Any]) -> Destination:
    """The output that the options of a command ask for."""
    from bellapy.io.overlap_writer import choose_output

    return choose_output(
        values["output"], **{name: values[name] for name in WRITING}, trim=values["trim_identity"] is not None
    )


def _options(values: dict[str, Any], *others: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in others}


def main() -> None:
    """Run the command line and end the process: 0, 1 (input, output), 2 (usage); `stopping` has what signals do."""
    _open_standard_streams()
    gc.disable()  # arrays are freed by their reference counts; looking for cycles only costs time
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # no linear algebra here: its idle threads cost time,
    sys.modules.setdefault("scipy.linalg", None)  # and so does Numba's import of it, which jit.py lets fail
    code = _guarded(app)
    gc.freeze()  # nor does the interpreter look for them when it ends
    sys.exit(code)


def _open_standard_streams() -> None:
    """No file may get the number of a stream that is closed: libraries would write into it."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")


def _guarded(command: Callable[..., Any]) -> int:
    debug = "--debug" in sys.argv
    try:
        try:
            command(standalone_mode=True)
            code = 0
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
        if sys.stdout is not None:
            sys.stdout.flush()  # help and version, which may stand there still
        return code
    except BrokenPipeError:  # the reader of our output has left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print(INTERRUPTED, file=sys.stderr)
        return 130
    except OSError as error:  # a stage that writes or reads a file tells its own; help and version are left
        if debug:
            raise
        from bellapy.io.outputs import silence_stdout

        silence_stdout()
        where = error.filename or ("standard output" if error.errno else "a library cannot be loaded")
        print(f"bellapy: error: {where}: {error.strerror or error}", file=sys.stderr)
        return 1
    except BellapyError as error:
        if debug:
            raise
        print(f"bellapy: error: {error}", file=sys.stderr)
        return error.exit_code
    except RuntimeError as error:
        if debug or "start new thread" not in str(error):
            raise
        print(f"bellapy: error: {error}; use fewer threads (-t), or allow more (ulimit -u, ulimit -v)", file=sys.stderr)
        return 1
    except MemoryError:
        if debug:
            raise
        print("bellapy: error: out of memory; set --max-memory, use fewer reads, or --sampling fraction", file=sys.stderr)
        return 1
