"""The command `view`."""

from __future__ import annotations

from typing import Annotated

import typer

from bellapy.cli.options import Given, output_option, pick, takes
from bellapy.errors import ParameterError
from bellapy.io.outputs import check_outputs
from bellapy.params.fields import INPUT
from bellapy.params.run import LogParams
from bellapy.report.log import set_up_logging
from bellapy.report.pictures import check_plot

Names = Annotated[list[str], typer.Argument(metavar="READ [OTHER]", help="The read to look at, or two.", show_default=False)]
OverlapFile = Annotated[
    str | None, typer.Option("--overlaps", help="PAF with its overlaps.", metavar="FILE", rich_help_panel=INPUT)
]
ReadFile = Annotated[
    str | None,
    typer.Option(
        "--reads", help="FASTA or FASTQ with the reads, for two reads or --at.", metavar="FILE", rich_help_panel=INPUT
    ),
]
Corrected = Annotated[
    str | None,
    typer.Option(help="With --at: the corrected reads, shown as one more row.", metavar="FILE", rich_help_panel=INPUT),
]
At = Annotated[str | None, typer.Option(help="Bases to show one by one, such as 1000-1100.", metavar="FROM-TO")]
K = Annotated[
    int | None,
    typer.Option("-k", help="Length of the k-mers that are marked in two reads, 8 to 31 [default: by the reads]."),
]
Picture = Annotated[
    str | None,
    output_option("Picture: .png, .svg or .pdf (needs matplotlib) [default: text to standard output]."),
]


@takes(pick(LogParams, "debug"))
def view(
    given: Given, names: Names, overlaps: OverlapFile = None, reads: ReadFile = None, at: At = None,
    corrected: Corrected = None, k: K = None, output: Picture = None,
) -> None:  # fmt: skip
    """A read's overlaps, a pair of reads, or a place of a read."""
    set_up_logging(quiet=True, debug=bool(given["debug"]))
    _check_options(names, overlaps, reads, at, corrected, k)
    if output:
        check_plot("-o", output)
    check_outputs({"-o": output or "-"}, [path for path in (overlaps, reads, corrected) if path])
    from bellapy.api import viewing

    if len(names) == 2:
        assert reads
        viewing.view_pair(names[0], names[1], reads, k, output)
    elif at:
        assert reads and overlaps
        viewing.view_pile(names[0], overlaps, reads, _place(at), corrected, output)
    else:
        assert overlaps
        viewing.view_overlaps(names[0], overlaps, output)


def _check_options(
    names: list[str], overlaps: str | None, reads: str | None, at: str | None, corrected: str | None, k: int | None
) -> None:
    if len(names) > 2:
        raise ParameterError(f"{len(names)} reads are named; name one read, or two to compare")
    if len(names) == 2 and not reads:
        raise ParameterError("two reads are compared base by base: give their file with --reads")
    if len(names) == 2 and overlaps:
        raise ParameterError("two reads are compared by their bases alone: leave out --overlaps")
    if len(names) == 1 and not overlaps:
        raise ParameterError("a read is shown with its overlaps: give them with --overlaps")
    if at and (len(names) == 2 or not reads):
        raise ParameterError("--at shows one read base by base: give --reads and --overlaps, and one name")
    if len(names) == 1 and reads and not at:
        raise ParameterError("--reads is for two names, or for --at FROM-TO, which shows one read base by base")
    if corrected and not at:
        raise ParameterError("--corrected is a row of what --at shows; give --at FROM-TO")
    if k is not None and not (len(names) == 2 and 8 <= k <= 31):
        raise ParameterError("-k: 8 to 31, where two reads are compared")


def _place(text: str) -> tuple[int, int]:
    first, _, last = text.replace(",", "").partition("-")
    if not (first.isdecimal() and last.isdecimal() and int(first) < int(last)):
        raise ParameterError(f"--at {text}: two numbers are needed, such as 1000-1100")
    return int(first), int(last)
