"""Alignments as lines of PAF and SAM."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bellapy.errors import OutputError, ParameterError
from bellapy.io import codes
from bellapy.io.base_tags import ABOUT_BASES, clip_base_tags
from bellapy.io.path_text import Drawn, cigars_of, compared_cigars, differences, mismatches
from bellapy.io.read_comments import tags_of
from bellapy.io.sam import LONGEST_NAME
from bellapy.io.table_text import LETTER, NAME, NO_NAMES, NUMBER, OPTIONAL, SHARE, TEXT, Column, NameTable, format_rows
from bellapy.jobs.map.choose import PRIMARY, SECONDARY, SUPPLEMENTARY
from bellapy.jobs.map.join import Paths
from bellapy.jobs.map.measures import best_parts
from bellapy.jobs.map.pipeline import Hits, Mapped
from bellapy.jobs.map.style import Style
from bellapy.records.bases import reverse_complement
from bellapy.seeding.index import Index

OWN_TAGS = tuple(tag + b":" for tag in b"NM ms AS nn tp cm s1 s2 de rl MD cs ds SA".split())  # of each line, written here
LEFT_OUT = -1  # of OPTIONAL columns


@dataclass
class Counts:
    """How many reads and lines there were, and how many reads on circles, as in `Crossed`."""

    reads: int = 0
    bases: int = 0
    mapped: int = 0
    secondary: int = 0
    supplementary: int = 0
    over_origin: int = 0
    around: int = 0
    too_long: int = 0

    def add(self, other: Counts) -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


def parse_read_group(text: str) -> tuple[str, bytes]:
    r"""A read group's header line and its ID, from text such as '@RG\tID:a\tSM:b'; \t stands for a tab.

    Raises
    ------
    ParameterError : text that is no such line.
    """
    line = text.replace("\\t", "\t")
    match = re.fullmatch(r"@RG(?:\t[A-Za-z][A-Za-z0-9]:[ -~]+)+", line)
    ids = re.findall(r"\tID:([^\t]+)", line)
    if not match or len(ids) != 1:
        raise ParameterError(f"--rg {text}: give a line of a SAM header such as '@RG\\tID:run1\\tSM:sample1'")
    return line, ids[0].encode()


def make_header(index: Index, command: str, version: str, read_groups: Iterable[str]) -> str:
    """The lines before the alignments in SAM."""
    sizes = zip(index.names, index.lengths.tolist(), strict=True)
    lines = ["@HD\tVN:1.6\tSO:unsorted", *(f"@SQ\tSN:{name}\tLN:{size}" for name, size in sizes if size)]
    lines += read_groups
    return "\n".join([*lines, f"@PG\tID:bellapy\tPN:bellapy\tVN:{version}\tCL:{' '.join(command.split())}", ""])


class Texts(NamedTuple):
    """Of the paths of alignments, one for each; None where they are not written."""

    cigars: NameTable | None = None
    cs: NameTable | None = None
    ds: NameTable | None = None
    md: NameTable | None = None


def draw(paths: Paths, rows: np.ndarray, query: np.ndarray, target: np.ndarray) -> Drawn:
    """Some of the paths; query, target : codes of reads and of the reference."""
    first, where = paths.first[rows], np.stack([paths.q_start[rows], paths.t_start[rows], np.zeros_like(rows)], axis=1)
    n_errors = int((paths.n_mismatches[rows] + paths.n_gaps[rows]).sum())
    ends = first + paths.n_runs[rows]
    return Drawn(query, target, where, paths.runs, first, ends, n_errors, int(paths.n_gap_bases[rows].sum()))


def _texts(mapped: Mapped, hits: Hits, index: Index, style: Style, md: bool) -> Texts:
    """Those that are written of some alignments."""
    if mapped.paths is None:
        return Texts()
    drawn = draw(mapped.paths, hits.row, mapped.codes, index.codes)
    return Texts(
        (compared_cigars if style.eqx else cigars_of)(drawn),
        differences(drawn, style.cs_long) if style.cs else None,
        differences(drawn, style.cs_long, movable=True) if style.ds else None,
        mismatches(drawn) if md else None,
    )


def _written(mapped: Mapped, style: Style) -> Hits:
    """The alignments that are written."""
    return mapped.hits if style.secondary else mapped.hits.take(mapped.hits.kind != SECONDARY)


def _tags(mapped: Mapped, hits: Hits, index: Index) -> list[Column]:
    """The tags of alignments that PAF and SAM share."""
    types = np.where(hits.kind == SECONDARY, ord("S"), ord("P"))
    rival = np.where(hits.kind == SECONDARY, LEFT_OUT, hits.rival_chain)
    tags: list[Column] = [
        (LETTER, "tp:A:", types), (NUMBER, "cm:i:", hits.n_anchors), (NUMBER, "s1:i:", hits.chain_score),
        (OPTIONAL, "s2:i:", rival),
    ]  # fmt: skip
    paths, row = mapped.paths, hits.row
    if paths is not None:
        events = paths.n_mismatches[row] + paths.n_gaps[row]
        n_all = np.maximum(events + paths.n_matches[row], 1)
        best, unknown = best_parts(mapped.codes, index.codes, paths, row, mapped.scoring)
        tags = [
            (NUMBER, "NM:i:", _differences(paths, row)), (NUMBER, "ms:i:", best), (NUMBER, "AS:i:", hits.score),
            (NUMBER, "nn:i:", unknown), *tags, (SHARE, "de:f:", (events * 20_000 + n_all) // (2 * n_all)),
        ]  # fmt: skip
    return [*tags, (NUMBER, "rl:i:", mapped.repeated[hits.read])]


def _differences(paths: Paths, rows: np.ndarray) -> np.ndarray:
    """Mismatches and gap bases of some paths."""
    return paths.n_mismatches[rows] + paths.n_gap_bases[rows]


def format_paf(mapped: Mapped, index: Index, style: Style) -> tuple[bytes, Counts]:
    """PAF lines of a batch; reads without an alignment have none unless asked for."""
    hits, records = _written(mapped, style), mapped.records
    texts = _texts(mapped, hits, index, style, bool(style.md))
    lengths = np.array([len(sequence) for sequence in records.sequences], np.int64)
    columns: list[Column] = [
        (NAME, "", hits.read), (NUMBER, "", lengths[hits.read]), (NUMBER, "", hits.q_start), (NUMBER, "", hits.q_end),
        (LETTER, "", np.where(hits.strand == 1, ord("-"), ord("+"))),
        (TEXT, "", NameTable.of([index.names[sequence] for sequence in hits.sequence.tolist()])),
        (NUMBER, "", index.lengths[hits.sequence]), (NUMBER, "", hits.t_start), (NUMBER, "", hits.t_end),
        (NUMBER, "", hits.n_matches), (NUMBER, "", hits.n_columns), (NUMBER, "", hits.quality), *_tags(mapped, hits, index),
    ]  # fmt: skip
    if style.read_group:
        columns.append((TEXT, "RG:Z:", NameTable.of([style.read_group] * len(hits.read))))
    shown = zip(("cg:Z:", "cs:Z:", "ds:Z:", "MD:Z:"), texts if style.cigar else texts._replace(cigars=None), strict=True)
    columns += [(TEXT, tag, text) for tag, text in shown if text is not None]
    lines = format_rows(columns, NameTable.of(records.names))
    if style.paf_no_hit:
        lines = _with_the_rest(lines, hits.read.tolist(), records.names, lengths.tolist())
    return lines, _count(mapped, hits)


def _with_the_rest(text: bytes, reads: list[int], names: list[bytes], lengths: list[int]) -> bytes:
    """Lines of PAF, with one for each read that has none.  reads : of the lines, ascending."""
    nowhere = set(range(len(names))).difference(reads)
    rest = [(read, b"%b\t%d\t0\t0\t*\t*\t0\t0\t0\t0\t0\t0\n" % (names[read], lengths[read])) for read in nowhere]
    lines = [*zip(reads, text.splitlines(True), strict=True), *rest]
    return b"".join(line for _, line in sorted(lines, key=lambda row: row[0]))


def _count(mapped: Mapped, hits: Hits) -> Counts:
    reads, bases = len(mapped.records.names), sum(map(len, mapped.records.sequences))
    of_kinds = [int((hits.kind == kind).sum()) for kind in (PRIMARY, SECONDARY, SUPPLEMENTARY)]
    return Counts(*(reads, bases, *of_kinds, *mapped.crossed))


class _Batch:
    """The columns of a batch as Python numbers, and the texts of its paths; tags : those that PAF has too."""

    def __init__(self, mapped: Mapped, hits: Hits, index: Index, style: Style):
        texts = _texts(mapped, hits, index, style, style.md is not False)
        assert mapped.paths is not None and texts.cigars is not None  # SAM is written of alignments only
        self.n = len(hits.read)
        self.read, self.kind, self.strand = hits.read.tolist(), hits.kind.tolist(), hits.strand.tolist()
        self.q_start, self.q_end = hits.q_start.tolist(), hits.q_end.tolist()
        self.t_start, self.t_end = hits.t_start.tolist(), hits.t_end.tolist()
        self.target = [index.names[sequence].encode() for sequence in hits.sequence.tolist()]
        self.quality, self.differences = hits.quality.tolist(), _differences(mapped.paths, hits.row).tolist()
        self.tags = format_rows(_tags(mapped, hits, index), NO_NAMES).splitlines()
        self.cigars = texts.cigars.to_list()
        shown = (b"MD:Z:", texts.md), (b"cs:Z:", texts.cs), (b"ds:Z:", texts.ds)
        self.texts = [(tag, text.to_list()) for tag, text in shown if text is not None]


def comment_tags(comment: bytes) -> list[bytes]:
    """What a FASTQ comment becomes in SAM: its tags, if it consists of such, else one CO:Z with all of it."""
    if not comment:
        return []
    return tags_of(comment) or [b"CO:Z:" + re.sub(rb"[^ -~]", b" ", comment)]


def format_sam(mapped: Mapped, index: Index, style: Style) -> tuple[bytes, Counts]:
    """SAM lines of a batch, one at least for every read, or for those that fit somewhere.

    Raises
    ------
    OutputError : a read whose name SAM does not allow.
    """
    hits = _written(mapped, style)
    batch, lines = _Batch(mapped, hits, index, style), list[bytes]()
    h = 0
    for read, name in enumerate(mapped.records.names):
        if len(name) > LONGEST_NAME or name.startswith(b"@") or not name.isascii():
            raise OutputError(f"read {name.decode()!r}: SAM does not allow this name; rename the read, or write PAF")
        begin = h
        while h < batch.n and batch.read[h] == read:
            h += 1
        lines += _lines_of_read(mapped, batch, read, range(begin, h), style)
    return b"\n".join([*lines, b""]), _count(mapped, hits)


def _lines_of_read(mapped: Mapped, batch: _Batch, read: int, hits: range, style: Style) -> list[bytes]:
    records = mapped.records
    name, bases = records.names[read], records.sequences[read]
    quality = records.qualities[read] if records.qualities else b"*"
    left_out = (*OWN_TAGS, b"RG:") if style.read_group else OWN_TAGS
    comment = [tag for tag in comment_tags(records.comments[read]) if not tag.startswith(left_out)]
    group = [b"RG:Z:" + style.read_group] if style.read_group else []
    if not hits and style.sam_hit_only:
        return []
    if not hits:
        return [
            b"\t".join([name, b"%d\t*\t0\t0\t*\t*\t0\t0" % codes.UNMAPPED, bases or b"*", quality or b"*", *group, *comment])
        ]
    parts = [h for h in hits if batch.kind[h] != SECONDARY]
    elsewhere = {h: _other_part(batch, h, len(bases)) for h in parts} if len(parts) > 1 else {}
    both_ways = [(bases, quality)]
    if any(batch.strand[h] for h in hits):
        both_ways.append((reverse_complement(bases), quality if quality == b"*" else quality[::-1]))
    lines = []
    for h in hits:
        kind, reverse = batch.kind[h], batch.strand[h]
        flag = (
            reverse * codes.REVERSE + codes.SECONDARY * (kind == SECONDARY) + codes.SUPPLEMENTARY * (kind == SUPPLEMENTARY)
        )
        hard = style.hard_clip and kind == SUPPLEMENTARY
        cigar, shown = _clip(batch, h, both_ways[reverse], hard)
        own = comment
        if kind == SECONDARY:  # without bases
            own = [tag for tag in comment if not tag.startswith(ABOUT_BASES)]
        elif hard:
            own = clip_base_tags(comment, bases, batch.q_start[h], batch.q_end[h])
        tags = [*_sam_tags(batch, h, elsewhere), *group, *own]
        fields = (flag, batch.target[h], batch.t_start[h] + 1, batch.quality[h])
        lines.append(b"\t".join([name, b"%d\t%b\t%d\t%d" % fields, cigar, b"*\t0\t0", *shown, *tags]))
    return lines


def _sam_tags(batch: _Batch, h: int, elsewhere: dict[int, bytes]) -> list[bytes]:
    """Tags of an alignment but for those that come with the read; elsewhere : entries of SA, by alignment."""
    tags = [batch.tags[h], *(tag + text[h] for tag, text in batch.texts)]
    if batch.kind[h] != SECONDARY and elsewhere:
        tags.append(b"SA:Z:" + b"".join(text for other, text in elsewhere.items() if other != h))
    return tags


def _clip(batch: _Batch, h: int, shown: tuple[bytes, bytes], hard: bool) -> tuple[bytes, tuple[bytes, bytes]]:
    """The CIGAR with what is clipped off, and the bases and qualities that the line has.

    shown : those of the whole read, as the reference runs.  hard : they end where the alignment does.
    """
    head, tail = _overhangs(batch, h, len(shown[0]))
    if batch.kind[h] == SECONDARY:
        hard, shown = True, (b"*", b"*")
    elif hard:
        inside = slice(head, len(shown[0]) - tail)
        shown = shown[0][inside], shown[1] if shown[1] == b"*" else shown[1][inside]
    clips = [b"%d%b" % (size, b"H" if hard else b"S") if size else b"" for size in (head, tail)]
    return clips[0] + batch.cigars[h] + clips[1], shown


def _overhangs(batch: _Batch, h: int, length: int) -> tuple[int, int]:
    """Bases of a read of that length before and after an alignment, as the reference runs."""
    head, tail = batch.q_start[h], length - batch.q_end[h]
    return (tail, head) if batch.strand[h] else (head, tail)


def _other_part(batch: _Batch, h: int, length: int) -> bytes:
    """An entry of SA; its CIGAR tells the spans and one gap for their difference, as minimap2's."""
    head, tail = _overhangs(batch, h, length)
    q_span, t_span = batch.q_end[h] - batch.q_start[h], batch.t_end[h] - batch.t_start[h]
    steps = [(head, b"S"), (min(q_span, t_span), b"M"), (q_span - t_span, b"I"), (t_span - q_span, b"D"), (tail, b"S")]
    cigar = b"".join(b"%d%b" % step for step in steps if step[0] > 0)
    strand = b"-" if batch.strand[h] else b"+"
    return b"%b,%d,%b,%b,%d,%d;" % (
        batch.target[h], batch.t_start[h] + 1, strand, cigar, batch.quality[h], batch.differences[h]
    )  # fmt: skip
