"""What `bellapy view` shows of a read, of two reads, or of a place of a read."""

from __future__ import annotations

import shutil

from bellapy.api.overlapping import overlap
from bellapy.errors import InputError, ParameterError
from bellapy.io.named_reads import sequences_of
from bellapy.io.outputs import open_output
from bellapy.jobs.view.lines import Mate, read_mates
from bellapy.jobs.view.overlaps import draw_overlaps, overlaps_text
from bellapy.jobs.view.pair import Drawn, describe_pair, draw_pair, shared_kmers, text_plot
from bellapy.jobs.view.pile import Row, draw_pile, layout, mate_row, pile_text
from bellapy.records.bases import encode

WIDTH = 100  # of the text where standard output is no terminal


def _write(text: str) -> None:
    with open_output("-") as stream:
        stream.write(text.encode("utf-8", "surrogateescape"))


def _width() -> int:
    return shutil.get_terminal_size((WIDTH, 24)).columns


def view_overlaps(name: str, overlaps: str, output: str | None) -> None:
    """A read's overlaps, as text to standard output, or as a picture."""
    length, mates = read_mates(overlaps, name)
    if length is None:
        raise InputError(overlaps, f"no overlap of a read named {name}; names are the first word of a header")
    if output:
        draw_overlaps(output, name, length, mates)
    else:
        _write(overlaps_text(name, length, mates, _width()))


def view_pair(first: str, second: str, path: str, k: int | None, output: str | None) -> None:
    """The k-mers that two reads share, and their alignments."""
    if first == second:
        raise ParameterError(f"{first}: is named twice; name two reads")
    sequences = sequences_of(path, {first, second})
    table = overlap(sequences, cigar=True, k=k, depth=2, upper=100, min_overlap=1, threads=1)
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


def view_pile(
    name: str, overlaps: str, path: str, place: tuple[int, int], corrected: str | None, output: str | None
) -> None:
    """A place of a read base by base, with the reads that overlap there."""
    length, mates = read_mates(overlaps, name)
    there = [mate for mate in mates if mate.start < place[1] and mate.end > place[0]]
    sequences = sequences_of(path, {name, *(mate.name for mate in there)})
    for read, its_length in ((name, length), *((mate.name, mate.length) for mate in there)):
        if its_length not in (None, len(sequences[read])):
            raise InputError(
                path,
                f"the read {read} has {len(sequences[read]):,} bases, in {overlaps} {its_length:,}; give the same reads",
            )
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
    table = overlap({"raw": raw, "corrected": corrected}, cigar=True, depth=2, upper=100, min_overlap=1, threads=1)
    for one in table:
        start, end = one.query_start, one.query_end
        if one.query == "raw" and one.strand > 0 and one.cigar:
            mate = Mate("corrected", len(corrected), one.target_start, one.target_end, start, end, 1, 1.0, one.cigar, True)
            return mate_row(mate, corrected, place)
    raise InputError("--corrected", "the corrected read does not align with the read; give the same reads")
