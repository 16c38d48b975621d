"""The commands `map`, `index` and `pairwise`; app.py adds them to the program."""

from __future__ import annotations

import os
import shlex
import sys
from typing import Annotated

import typer

from bellapy import __version__
from bellapy.errors import ParameterError

Reads = Annotated[list[str], typer.Argument(help="FASTA or FASTQ, plain or gzip; - is standard input.", show_default=False)]
Output = Annotated[str, typer.Option("-o", "--output", help="File to write; .gz or .bgz compresses; - is standard output.")]
Threads = Annotated[int | None, typer.Option("-t", "--threads", help="[default: all cores]")]
ReportFile = Annotated[str | None, typer.Option("--report", help="Write what was done as JSON.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Only warnings and errors.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")]
Match = Annotated[int, typer.Option(help="Score of a match.")]
Mismatch = Annotated[int, typer.Option(help="Score of a mismatch.")]
GapOpen = Annotated[str, typer.Option(help="Cost of opening a gap: one value, or two for two pieces.", metavar="N[,N]")]
GapExtend = Annotated[str, typer.Option(help="Cost of each base of a gap, one value or two.", metavar="N[,N]")]


class Session:
    """What surrounds a command: checks before it, its log and its report."""

    def __init__(
        self, inputs: list[str], outputs: list[str], threads: int | None, report: str | None, quiet: bool, debug: bool
    ):
        from bellapy.io.outputs import check_outputs
        from bellapy.params import validate
        from bellapy.report.log import Report, set_up_logging, watch_compilation

        set_up_logging(quiet, debug)
        self.threads = threads if threads is not None else len(os.sched_getaffinity(0))
        validate({"threads": self.threads})
        names = {"-o": outputs[0], "--report": report} | {f"the index {path}": path for path in outputs[1:]}
        check_outputs(names, inputs)
        self.command = shlex.join(["bellapy", *sys.argv[1:]])
        self.report, self._report_file = Report(self.command, __version__), report
        watch_compilation(self.report)

    def finish(self) -> None:
        self.report.finish()
        if self._report_file:
            from bellapy.io.outputs import open_output

            with open_output(self._report_file) as stream:
                stream.write(self.report.to_json())


def _numbers(option: str, text: str) -> list[int]:
    try:
        values = [int(value) for value in text.split(",")]
    except ValueError:
        raise ParameterError(f"{option} {text}: one or two whole numbers are needed, such as 4,24") from None
    if len(values) > 2:
        raise ParameterError(f"{option} {text}: at most two values")
    return values


def affine_scoring(match: int, mismatch: int, gap_open: str, gap_extend: str):
    """Scores from options; one value for both kinds of gap costs means one piece.

    Raises
    ------
    ParameterError : a value out of range, or unequal numbers of values.
    """
    from bellapy.params import AffineScoring, validate

    opens, extends = _numbers("--gap-open", gap_open), _numbers("--gap-extend", gap_extend)
    if len(opens) != len(extends):
        raise ParameterError("--gap-open and --gap-extend: give as many values to one as to the other")
    validate({"match": match, "mismatch": mismatch})
    for opened, extended in zip(opens, extends, strict=True):
        validate({"gap_open": opened, "gap_extend": extended})
    return AffineScoring(match, mismatch, opens[0], extends[0], opens[-1], extends[-1])


def pairwise(
    pairs: Annotated[str, typer.Argument(help="Two columns a line, query and target; - is standard input.")],
    output: Output = "-",
    mode: Annotated[str, typer.Option(help="global, or extend: from the beginning of both to the best end.")] = "global",
    match: Match = 2, mismatch: Mismatch = -4, gap_open: GapOpen = "4,24", gap_extend: GapExtend = "2,1",
    zdrop: Annotated[int | None, typer.Option(help="End an extension that falls so far [default: never].")] = None,
    cigar: Annotated[bool, typer.Option("--cigar", help="The path, in cg:Z.")] = False,
    threads: Threads = None, report_file: ReportFile = None, quiet: Quiet = False, debug: Debug = False,
) -> None:  # fmt: skip
    """Align given pairs with affine gap costs: index, score, query end and target end of each."""
    scoring = affine_scoring(match, mismatch, gap_open, gap_extend)
    if zdrop is not None and zdrop < 0:
        raise ParameterError(f"--zdrop {zdrop}: must not be below 0")
    session = Session([pairs], [output], threads, report_file, quiet, debug)
    from bellapy.io.outputs import open_output
    from bellapy.jobs.pairwise import align_pairs

    lines = align_pairs(pairs, mode, scoring, session.report, zdrop=zdrop, cigar=cigar, threads=session.threads)
    with open_output(output) as stream:
        for some in lines:
            stream.write(some)
    session.finish()


def map_command(
    reference: Annotated[str, typer.Argument(help="FASTA, or a file made by `bellapy index`.", show_default=False)],
    reads: Reads,
    output: Output = "-",
    output_format: Annotated[str | None, typer.Option("--format", help="paf, sam or bam [default: by name].")] = None,
    preset: Annotated[str | None, typer.Option(help="clr, ont or hifi [default: from the reads].")] = None,
    no_align: Annotated[bool, typer.Option("--no-align", help="Chains of seeds only: fast, with rough ends; PAF.")] = False,
    most_secondary: Annotated[int | None, typer.Option("-N", help="Secondary lines for one part [default: 5].")] = None,
    secondary: Annotated[str, typer.Option(help="Write secondary alignments: yes or no.")] = "yes",
    read_group: Annotated[str | None, typer.Option("--rg", help=r"Read group, such as '@RG\tID:run1\tSM:sample1'.")] = None,
    cs: Annotated[bool, typer.Option("--cs", help="Differences in cs:Z.")] = False,
    md: Annotated[bool | None, typer.Option("--md/--no-md", help="Mismatches in MD:Z [default: in SAM and BAM].")] = None,
    eqx: Annotated[bool, typer.Option("--eqx", help="= and X in CIGARs instead of M.")] = False,
    hard_clip: Annotated[bool, typer.Option("--hard-clip", help="Leave clipped bases out of supplementary lines.")] = False,
    match: Annotated[int | None, typer.Option(help="Score of a match [default: of the preset].")] = None,
    mismatch: Annotated[int | None, typer.Option(help="Score of a mismatch.")] = None,
    gap_open: Annotated[str | None, typer.Option(help="Costs of opening a gap.", metavar="N[,N]")] = None,
    gap_extend: Annotated[str | None, typer.Option(help="Costs of each base of a gap.", metavar="N[,N]")] = None,
    zdrop: Annotated[int | None, typer.Option(help="Cut an alignment that falls so far below its best.")] = None,
    end_bonus: Annotated[int | None, typer.Option(help="Given up at most to align a read to its end.")] = None,
    threads: Threads = None, report_file: ReportFile = None, quiet: Quiet = False, debug: Debug = False,
) -> None:  # fmt: skip
    """Map reads to a reference, base by base; BAM is sorted and indexed."""
    values = locals()
    style, read_group = _style(values), values["read_group"]
    kind = _format(output, output_format, no_align, style)
    adjust = _adjustment(values)
    session = Session([reference, *reads], _outputs(output, kind), threads, report_file, quiet, debug)
    from bellapy.jobs.map.output import parse_read_group
    from bellapy.jobs.map.run import Job, map_reads, preset_params

    adjust(preset_params(preset))  # told before the work
    line, group = parse_read_group(read_group) if read_group is not None else (None, None)
    from dataclasses import replace

    job = Job(
        reference, reads, output, kind, replace(style, read_group=group), line, preset, adjust, not no_align, session.threads
    )  # fmt: skip
    map_reads(job, session.report)
    session.finish()


def _format(output: str, given: str | None, no_align: bool, style) -> str:
    """paf, sam or bam, by the option or by the output's name."""
    from bellapy.io.outputs import COMPRESSED, is_special

    stem = next((output[: -len(end)] for end in COMPRESSED if output.endswith(end)), output)
    kind = given or next((name for name in ("sam", "bam") if stem.endswith(f".{name}")), "paf")
    if kind not in ("paf", "sam", "bam"):
        raise ParameterError(f"--format {kind}: choose from paf, sam, bam")
    if kind == "bam" and (output == "-" or output.endswith(COMPRESSED) or is_special(output)):
        raise ParameterError("--format bam: name a file that does not end in .gz with -o, or write SAM")
    if no_align and (kind != "paf" or style.cs or style.eqx):
        raise ParameterError("--no-align: without alignments there are no paths; write PAF, without --cs and --eqx")
    return kind


def _outputs(output: str, kind: str) -> list[str]:
    return [output, f"{output}.bai"] if kind == "bam" else [output]


def _style(values: dict):
    from bellapy.jobs.map.style import Style

    if values["secondary"] not in ("yes", "no"):
        raise ParameterError(f"--secondary {values['secondary']}: choose from yes, no")
    return Style(
        cs=values["cs"], md=values["md"], eqx=values["eqx"], hard_clip=values["hard_clip"],
        secondary=values["secondary"] == "yes",
    )  # fmt: skip


def _adjustment(values: dict):
    """A function that puts the options given into the parameters of a preset."""
    from dataclasses import replace

    from bellapy.params import validate

    names = {"most_secondary": "-N", "zdrop": "--zdrop", "end_bonus": "--end-bonus"}
    validate({name: values[name] for name in names if values[name] is not None})
    costs = [values[name] for name in ("match", "mismatch", "gap_open", "gap_extend")]

    def adjust(params):
        old = params.scoring
        its = [old.match, old.mismatch, f"{old.open1},{old.open2}", f"{old.extend1},{old.extend2}"]
        scoring = affine_scoring(*(new if new is not None else default for new, default in zip(costs, its, strict=True)))
        most = values["most_secondary"]
        return replace(
            params, scoring=scoring, select=params.select if most is None else params.select._replace(most=most),
            **{name: values[name] for name in ("zdrop", "end_bonus") if values[name] is not None},
        )  # fmt: skip

    return adjust


def index_command(
    reference: Annotated[str, typer.Argument(help="FASTA, plain or gzip.", show_default=False)],
    output: Annotated[str, typer.Option("-o", "--output", help="Index file to write.", show_default=False)],
    preset: Annotated[str, typer.Option(help="clr, ont or hifi: the reads that will be mapped.")] = "ont",
    k: Annotated[int | None, typer.Option("-k", help="Bases of a minimizer [default: of the preset].")] = None,
    window: Annotated[int | None, typer.Option("-w", help="K-mers in a window [default: of the preset].")] = None,
    report_file: ReportFile = None, quiet: Quiet = False, debug: Debug = False,
) -> None:  # fmt: skip
    """Make the index of a reference once, for many runs of `map`."""
    if output == "-":
        raise ParameterError("-o -: an index is a file; name one")
    session = Session([reference], [output], 1, report_file, quiet, debug)
    from dataclasses import replace

    from bellapy.io.index_files import save_index
    from bellapy.jobs.map.run import make_index, preset_params

    params = preset_params(preset)
    given = {name: value for name, value in (("k", k), ("window", window)) if value is not None}
    save_index(make_index(reference, replace(params, **given), session.report), output)
    session.finish()


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.command("map")(map_command)
    app.command("index")(index_command)
    app.command()(pairwise)
