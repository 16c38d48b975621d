"""The command `view`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bellapy.cli.options import Given, output_option, pick, takes
from bellapy.errors import InputError, ParameterError
from bellapy.params.fields import INPUT
from bellapy.params.run import LogParams

if TYPE_CHECKING:  # loaded when needed
    from bellapy.jobs.view.pile import Row

WIDTH = 100  # of the text where standard output is no terminal

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
    from bellapy.io.outputs import check_outputs
    from bellapy.report.log import set_up_logging

    set_up_logging(quiet=True, debug=bool(given["debug"]))
    _check_options(names, overlaps, reads, at, corrected, k)
    if output:
        from bellapy.report.pictures import check_plot

        check_plot("-o", output)
    check_outputs({"-o": output or "-"}, [path for path in (overlaps, reads, corrected) if path])
    if len(names) == 2:
        assert reads
        _view_pair(names[0], names[1], reads, k, output)
    elif at:
        assert reads and overlaps
        _view_pile(names[0], overlaps, reads, _place(at), corrected, output)
    else:
        assert overlaps
        _view_overlaps(names[0], overlaps, output)


def _check_options(
    names: list[str], overlaps: str | None, reads: str | None, at: str | None, corrected: str | None, k: int | None
) -> None:
    if len(names) > 2:
        raise ParameterError(f"{len(names)} reads are named; name one read, or two to compare")
    if len(names) == 2 and not reads:
        raise ParameterError("two reads are compared base by base: give their file with --reads")
    if len(names) == 1 and not overlaps:
        raise ParameterError("a read is shown with its overlaps: give them with --overlaps")
    if at and (len(names) == 2 or not reads):
        raise ParameterError("--at shows one read base by base: give --reads and --overlaps, and one name")
    if corrected and not at:
        raise ParameterError("--corrected is a row of what --at shows; give --at FROM-TO")
    if k is not None and not (len(names) == 2 and 8 <= k <= 31):
        raise ParameterError("-k: 8 to 31, where two reads are compared")


def _place(text: str) -> tuple[int, int]:
    first, _, last = text.replace(",", "").partition("-")
    if not (first.isdigit() and last.isdigit() and int(first) < int(last)):
        raise ParameterError(f"--at {text}: two numbers are needed, such as 1000-1100")
    return int(first), int(last)


def _write(text: str) -> None:
    from bellapy.io.outputs import open_output

    with open_output("-") as stream:
        stream.write(text.encode("utf-8", "surrogateescape"))


def _width() -> int:
    import shutil

    return shutil.get_terminal_size((WIDTH, 24)).columns


def _view_overlaps(name: str, overlaps: str, output: str | None) -> None:
    from bellapy.jobs.view.lines import read_mates
    from bellapy.jobs.view.overlaps import draw_overlaps, overlaps_text

    length, mates = read_mates(overlaps, name)
    if length is None:
        raise InputError(overlaps, f"no overlap of a read named {name}; names are the first word of a header")
    if output:
        draw_overlaps(output, name, length, mates)
    else:
        _write(overlaps_text(name, length, mates, _width()))


def _view_pair(first: str, second: str, path: str, k: int | None, output: str | None) -> None:
    from bellapy import api
    from bellapy.io.named_reads import sequences_of
    from bellapy.jobs.view.pair import Drawn, describe_pair, draw_pair, shared_kmers, text_plot
    from bellapy.records.bases import encode

    if first == second:
        raise ParameterError(f"{first}: is named twice; name two reads")
    sequences = sequences_of(path, {first, second})
    table = api.overlap(sequences, cigar=True, k=k, depth=2, upper=100, min_overlap=1, threads=1)
    some, k = table.records, int(table.report.estimates.k)
    found = [
        Drawn(
            one.query_start, one.query_end, one.target_start, one.target_end, one.strand,
            (int(some.seed_query[i]), int(some.seed_target[i]), int(some.seed_length[i])), one.cigar or "", one.score,
            one.n_matches / max(one.n_columns, 1),
        )
        for i, one in enumerate(table)
    ]  # fmt: skip
    names: tuple[str, str] = (table.reads.names[0], table.reads.names[1])
    codes = [encode(sequences[name]) for name in names]
    dots = shared_kmers(codes[0], codes[1], k)
    lengths = len(codes[0]), len(codes[1])
    if output:
        draw_pair(output, names, lengths, dots, k, found)
    else:
        _write(text_plot(lengths, dots, _width()) + describe_pair(names, dots, k, found))


def _view_pile(
    name: str, overlaps: str, path: str, place: tuple[int, int], corrected: str | None, output: str | None
) -> None:
    from bellapy.io.named_reads import sequences_of
    from bellapy.jobs.view.lines import read_mates
    from bellapy.jobs.view.pile import draw_pile, layout, mate_row, pile_text

    _, mates = read_mates(overlaps, name)
    there = [mate for mate in mates if mate.start < place[1] and mate.end > place[0]]
    sequences = sequences_of(path, {name, *(mate.name for mate in there)})
    own = sequences[name]
    if place[1] > len(own):
        raise ParameterError(f"--at: the read {name} has {len(own):,} bases")
    rows = [mate_row(mate, sequences[mate.name], place) for mate in there]
    if corrected:
        rows = [_corrected_row(own, sequences_of(corrected, {name})[name], place), *rows]
    shown = layout(own, place, rows)
    if output:
        draw_pile(output, name, place, shown)
    else:
        _write(pile_text(name, place, shown, _width()))


def _corrected_row(raw: str, corrected: str, place: tuple[int, int]) -> Row:
    """The corrected read on the raw one, by their overlap."""
    from bellapy import api
    from bellapy.jobs.view.lines import Mate
    from bellapy.jobs.view.pile import mate_row

    table = api.overlap({"raw": raw, "corrected": corrected}, cigar=True, depth=2, upper=100, min_overlap=1, threads=1)
    for one in table:
        start, end = one.query_start, one.query_end
        if one.query == "raw" and one.strand > 0 and one.cigar:
            mate = Mate("corrected", len(corrected), one.target_start, one.target_end, start, end, 1, 1.0, one.cigar, True)
            return mate_row(mate, corrected, place)
    raise InputError("--corrected", "the corrected read does not align with the read; give the same reads")
