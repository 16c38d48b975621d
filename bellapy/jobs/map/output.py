"""Alignments as lines of PAF and SAM."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from bellapy.errors import OutputError, ParameterError
from bellapy.jobs.map.choose import PRIMARY, SECONDARY, SUPPLEMENTARY
from bellapy.jobs.map.pipeline import Mapped
from bellapy.jobs.map.style import Style
from bellapy.jobs.map.text import COMPLEMENT, pieces_of, write_cigars, write_differences, write_mismatches
from bellapy.seeding.index import Index

UNMAPPED_FLAG, REVERSE_FLAG, SECONDARY_FLAG, SUPPLEMENTARY_FLAG = 4, 16, 256, 2048
TAG = re.compile(rb"[A-Za-z][A-Za-z0-9]:[AifZHB]:[ -~]*")
BASE_TAGS = b"MM:", b"ML:", b"Mm:", b"Ml:"  # about all bases of a read: wrong where some are clipped off
LONGEST_NAME = 254
TYPES = {PRIMARY: b"P", SECONDARY: b"S", SUPPLEMENTARY: b"P"}


@dataclass
class Counts:
    """How many reads and lines there were."""

    reads: int = 0
    bases: int = 0
    mapped: int = 0
    secondary: int = 0
    supplementary: int = 0

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


def make_header(index: Index, command: str, version: str, read_group: str | None) -> str:
    """The lines before the alignments in SAM."""
    sizes = zip(index.names, index.lengths.tolist(), strict=True)
    lines = ["@HD\tVN:1.6\tSO:unsorted", *(f"@SQ\tSN:{name}\tLN:{size}" for name, size in sizes if size)]
    lines += [read_group] if read_group else []
    return "\n".join([*lines, f"@PG\tID:bellapy\tPN:bellapy\tVN:{version}\tCL:{' '.join(command.split())}", ""])


class _Batch:
    """The columns of a batch as Python numbers, and the texts of its paths."""

    def __init__(self, mapped: Mapped, index: Index, style: Style, cs: bool, md: bool):
        hits = mapped.hits
        if not style.secondary:
            keep = hits.kind != SECONDARY
            hits = type(hits)(*(column[keep] for column in hits))
        self.hits, self.n = hits, len(hits.read)
        for name in (
            "read",
            "kind",
            "strand",
            "quality",
            "q_start",
            "q_end",
            "sequence",
            "t_start",
            "t_end",
            "score",
            "n_anchors",
        ):
            setattr(self, name, getattr(hits, name).tolist())
        self.chain_score, self.rival_chain = hits.chain_score.tolist(), hits.rival_chain.tolist()
        self.matches, self.columns = hits.n_matches.tolist(), hits.n_columns.tolist()
        self.cigars = self.cs = self.md = None
        paths = mapped.paths
        if paths is None:
            return
        where = (paths, mapped.codes, index.codes, hits.row)
        self.cigars = pieces_of(*write_cigars(*where, style.eqx))
        self.cs = pieces_of(*write_differences(*where)) if cs else None
        self.md = pieces_of(*write_mismatches(*where)) if md else None
        row = hits.row
        events = paths.n_mismatches[row] + paths.n_gaps[row]
        self.differences = (paths.n_mismatches[row] + paths.n_gap_bases[row]).tolist()
        self.divergence = (events / np.maximum(events + paths.n_matches[row], 1)).tolist()

    def tags(self, h: int) -> list[bytes]:
        """Those that PAF and SAM share."""
        found = [b"tp:A:%b" % TYPES[self.kind[h]], b"cm:i:%d" % self.n_anchors[h], b"s1:i:%d" % self.chain_score[h]]
        if self.kind[h] != SECONDARY:
            found.append(b"s2:i:%d" % self.rival_chain[h])
        if self.cigars is not None:
            found = [b"NM:i:%d" % self.differences[h], b"AS:i:%d" % self.score[h], *found, b"de:f:%.4f" % self.divergence[h]]
        return found


def format_paf(mapped: Mapped, index: Index, style: Style) -> tuple[bytes, Counts]:
    """PAF lines of a batch; reads without an alignment have none."""
    batch = _Batch(mapped, index, style, style.cs and mapped.paths is not None, bool(style.md) and mapped.paths is not None)
    names, lengths = mapped.records.names, [len(sequence) for sequence in mapped.records.sequences]
    targets, sizes = [name.encode() for name in index.names], index.lengths.tolist()
    lines = []
    for h in range(batch.n):
        read, target = batch.read[h], batch.sequence[h]
        line = [
            b"%b\t%d\t%d\t%d\t%b\t%b\t%d\t%d\t%d\t%d\t%d\t%d" % (
                names[read], lengths[read], batch.q_start[h], batch.q_end[h], b"-" if batch.strand[h] else b"+",
                targets[target], sizes[target], batch.t_start[h], batch.t_end[h], batch.matches[h], batch.columns[h],
                batch.quality[h],
            )
        ]  # fmt: skip
        line += batch.tags(h)
        if style.read_group:
            line.append(b"RG:Z:" + style.read_group)
        if batch.cigars is not None and style.cigar:
            line.append(b"cg:Z:" + batch.cigars[h])
        if batch.cs is not None:
            line.append(b"cs:Z:" + batch.cs[h])
        if batch.md is not None:
            line.append(b"MD:Z:" + batch.md[h])
        lines.append(b"\t".join(line))
    return b"\n".join([*lines, b""]), _count(mapped, batch)


def _count(mapped: Mapped, batch: _Batch) -> Counts:
    kinds = batch.hits.kind
    reads, bases = len(mapped.records.names), sum(map(len, mapped.records.sequences))
    return Counts(reads, bases, *(int((kinds == kind).sum()) for kind in (PRIMARY, SECONDARY, SUPPLEMENTARY)))


def comment_tags(comment: bytes) -> list[bytes]:
    """What a FASTQ comment becomes in SAM: its tags, if it consists of such, else one CO:Z with all of it."""
    if not comment:
        return []
    fields = comment.split(b"\t")
    if all(TAG.fullmatch(field) for field in fields):
        return fields
    return [b"CO:Z:" + re.sub(rb"[^ -~]", b" ", comment)]


def format_sam(mapped: Mapped, index: Index, style: Style) -> tuple[bytes, Counts]:
    """SAM lines of a batch, one at least for every read.

    Raises
    ------
    OutputError : a read whose name SAM does not allow.
    """
    batch = _Batch(mapped, index, style, style.cs, style.md is not False)
    targets = [name.encode() for name in index.names]
    lines, h = [], 0
    for read, name in enumerate(mapped.records.names):
        if len(name) > LONGEST_NAME or name.startswith(b"@"):
            raise OutputError(
                f"read {name.decode('latin-1')!r}: SAM does not allow this name; rename the read, or write PAF"
            )
        begin = h
        while h < batch.n and batch.read[h] == read:
            h += 1
        lines += _lines_of_read(mapped, batch, read, range(begin, h), targets, style)
    return b"\n".join([*lines, b""]), _count(mapped, batch)


def _lines_of_read(mapped: Mapped, batch: _Batch, read: int, hits: range, targets: list[bytes], style: Style) -> list[bytes]:
    records = mapped.records
    name, bases = records.names[read], records.sequences[read]
    quality = records.qualities[read] if records.qualities else b"*"
    comment = comment_tags(records.comments[read])
    group = [b"RG:Z:" + style.read_group] if style.read_group else []
    if not hits:
        return [b"\t".join([name, b"4\t*\t0\t0\t*\t*\t0\t0", bases or b"*", quality or b"*", *group, *comment])]
    parts = [h for h in hits if batch.kind[h] != SECONDARY]
    elsewhere = {h: _other_part(batch, h, targets, len(bases)) for h in parts} if len(parts) > 1 else {}
    turned = None
    lines = []
    for h in hits:
        kind, reverse = batch.kind[h], batch.strand[h]
        flag = reverse * REVERSE_FLAG + SECONDARY_FLAG * (kind == SECONDARY) + SUPPLEMENTARY_FLAG * (kind == SUPPLEMENTARY)
        head, tail = batch.q_start[h], len(bases) - batch.q_end[h]
        if reverse:
            head, tail = tail, head
            turned = turned or (bases.translate(COMPLEMENT)[::-1], quality if quality == b"*" else quality[::-1])
        its_bases, its_quality = turned if reverse else (bases, quality)
        hard = style.hard_clip and kind == SUPPLEMENTARY
        if kind == SECONDARY:
            its_bases = its_quality = b"*"
        elif hard:
            its_bases = its_bases[head : len(bases) - tail]
            its_quality = its_quality if its_quality == b"*" else its_quality[head : len(bases) - tail]
        clip = b"H" if hard or kind == SECONDARY else b"S"
        cigar = (b"%d%b" % (head, clip) if head else b"") + batch.cigars[h] + (b"%d%b" % (tail, clip) if tail else b"")
        tags = batch.tags(h)
        if batch.md is not None:
            tags.append(b"MD:Z:" + batch.md[h])
        if batch.cs is not None:
            tags.append(b"cs:Z:" + batch.cs[h])
        if kind != SECONDARY and elsewhere:
            tags.append(b"SA:Z:" + b"".join(text for other, text in elsewhere.items() if other != h))
        whole = not hard and kind != SECONDARY
        tags += group + [tag for tag in comment if whole or not tag.startswith(BASE_TAGS)]
        fields = (flag, targets[batch.sequence[h]], batch.t_start[h] + 1, batch.quality[h])
        lines.append(b"\t".join([name, b"%d\t%b\t%d\t%d" % fields, cigar, b"*\t0\t0", its_bases, its_quality, *tags]))
    return lines


def _other_part(batch: _Batch, h: int, targets: list[bytes], length: int) -> bytes:
    """An entry of SA; its CIGAR tells the spans and one gap for their difference, as minimap2's."""
    reverse = batch.strand[h]
    head, tail = batch.q_start[h], length - batch.q_end[h]
    if reverse:
        head, tail = tail, head
    q_span, t_span = batch.q_end[h] - batch.q_start[h], batch.t_end[h] - batch.t_start[h]
    steps = [(head, b"S"), (min(q_span, t_span), b"M"), (q_span - t_span, b"I"), (t_span - q_span, b"D"), (tail, b"S")]
    cigar = b"".join(b"%d%b" % step for step in steps if step[0] > 0)
    strand = b"-" if reverse else b"+"
    return b"%b,%d,%b,%b,%d,%d;" % (
        targets[batch.sequence[h]], batch.t_start[h] + 1, strand, cigar, batch.quality[h], batch.differences[h]
    )  # fmt: skip
