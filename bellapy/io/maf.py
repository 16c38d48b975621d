"""Alignments of genomes as text: MAF and AXT with both sequences, PAF, SAM and UCSC chains with paths.

Sources: the UCSC Genome Browser's descriptions of MAF, AXT and chain; the SAM specification; minimap2's manual for PAF.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np

from bellapy.compute.jit import njit, njit_vector
from bellapy.errors import InputError, ParameterError
from bellapy.io.codes import OPERATIONS, REVERSE, SIGN, SUPPLEMENTARY, UNKNOWN_QUALITY
from bellapy.io.outputs import ending_of
from bellapy.records.bases import UNKNOWN
from bellapy.records.genomes import PAIR, QUERY_ALONE, TARGET_ALONE, Alignment, Genome

LOWER = 8  # what a code is raised by for lower case
LETTERS = b"ACGTN".ljust(LOWER, b"N") + b"acgtn".ljust(256 - LOWER, b"n")
"""By code, for `bytes.translate`."""
SAM_NAME = set(map(chr, range(33, 127))) - set("\\,\"`'()[]{}<>")


class Layout:
    """What the formats need of the two genomes, and the text of each alignment."""

    def __init__(self, target: Genome, query: Genome):
        self.target, self.strands = target, {1: query, -1: query.reverse()}

    def letters(self, found: Alignment) -> tuple[np.ndarray, np.ndarray]:
        """Letters of the pieces of both sequences that are aligned; lower case as in the files."""
        target = _letters(self.target, found.target, found.t_start, found.t_end)
        return target, _letters(self.strands[found.strand], found.query, found.q_start, found.q_end)

    def rows(self, found: Alignment) -> tuple[bytes, bytes]:
        """Both rows of an alignment, - in gaps."""
        operation = np.repeat(found.runs[:, 0], found.runs[:, 1])
        rows = []
        for letters, alone in zip(self.letters(found), (QUERY_ALONE, TARGET_ALONE), strict=True):
            row = np.full(len(operation), ord("-"), np.uint8)
            row[operation != alone] = letters
            rows.append(row.tobytes())
        return rows[0], rows[1]

    def counts(self, found: Alignment) -> tuple[int, int, int, int]:
        """Matches, mismatches, bases in gaps, gaps."""
        sequences = self.target.sequence(found.target), self.strands[found.strand].sequence(found.query)
        matches = n_matches(*sequences, found.t_start, found.q_start, found.runs)
        is_pair = found.runs[:, 0] == PAIR
        n_pairs, n_gaps = int(found.runs[:, 1] @ is_pair), len(is_pair) - int(is_pair.sum())
        return matches, n_pairs - matches, int(found.runs[:, 1].sum()) - n_pairs, n_gaps

    def unknown(self, found: Alignment) -> int:
        """Pairs with an unknown base."""
        t, q = found.pairs()
        a, b = self.target.sequence(found.target)[t], self.strands[found.strand].sequence(found.query)[q]
        return int(((a >= UNKNOWN) | (b >= UNKNOWN)).sum())

    def lengths(self, found: Alignment) -> tuple[int, int]:
        query = self.strands[found.strand]
        return int(self.target.lengths[found.target]), int(query.lengths[found.query])

    def names(self, found: Alignment) -> tuple[str, str]:
        return self.target.names[found.target], self.strands[1].names[found.query]


@njit
def n_matches(target, query, t, q, runs):
    """How many pairs of a path are of one known base.

    target, query : (any,) uint8 codes.  t, q : places of the first pair.  runs : (n, 2), operation and bases of every run.
    """
    n = 0
    for x in range(len(runs)):
        operation, size = runs[x, 0], runs[x, 1]
        if operation == PAIR:
            n += _n_equal(target[t : t + size], query[q : q + size])
        t += size if operation != QUERY_ALONE else 0
        q += size if operation != TARGET_ALONE else 0
    return n


@njit_vector
def _n_equal(one, other):
    n = 0
    for x in range(len(one)):
        n += one[x] == other[x] and one[x] < UNKNOWN
    return n


def _letters(genome: Genome, i: int, begin: int, end: int) -> np.ndarray:
    at = int(genome.starts[i])
    codes = genome.codes[at + begin : at + end] + LOWER * genome.masked[at + begin : at + end].view(np.uint8)
    return np.frombuffer(codes.tobytes().translate(LETTERS), np.uint8)


def _maf(layout: Layout, alignments: list[Alignment]) -> Iterator[bytes]:
    yield b"##maf version=1\n"
    for found in alignments:
        lengths, names = layout.lengths(found), layout.names(found)
        places = (found.t_start, found.t_end, "+", lengths[0]), (found.q_start, found.q_end, SIGN[found.strand], lengths[1])
        heads = [(name, str(a), str(b - a), sign, str(n)) for name, (a, b, sign, n) in zip(names, places, strict=True)]
        wide = [max(len(head[column]) for head in heads) for column in range(5)]
        yield f"a score={found.score}\n".encode()
        for (name, start, size, sign, length), row in zip(heads, layout.rows(found), strict=True):
            line = f"s {name:<{wide[0]}} {start:>{wide[1]}} {size:>{wide[2]}} {sign} {length:>{wide[4]}} "
            yield _bytes(line) + row + b"\n"
        yield b"\n"


def _axt(layout: Layout, alignments: list[Alignment]) -> Iterator[bytes]:
    for number, found in enumerate(alignments):
        target, query = layout.names(found)
        head = (
            number, target, found.t_start + 1, found.t_end, query, found.q_start + 1, found.q_end, SIGN[found.strand],
            found.score,
        )  # fmt: skip
        yield _bytes(" ".join(map(str, head))) + b"\n" + b"\n".join(layout.rows(found)) + b"\n\n"


def cigar(found: Alignment) -> str:
    operations, sizes = found.runs.T.tolist()
    return "".join(chain.from_iterable(zip(map(str, sizes), map(OPERATIONS.__getitem__, operations), strict=True)))


def _paf(layout: Layout, alignments: list[Alignment]) -> Iterator[bytes]:
    for found in alignments:
        matches, mismatches, gap_bases, gaps = layout.counts(found)
        (target, query), (t_length, q_length) = layout.names(found), layout.lengths(found)
        fields = (
            query, q_length, *found.forward(q_length), SIGN[found.strand], target, t_length, found.t_start, found.t_end,
            matches, matches + mismatches + gap_bases, UNKNOWN_QUALITY, f"NM:i:{mismatches + gap_bases}",
            f"AS:i:{found.score}", f"de:f:{(mismatches + gaps) / (matches + mismatches + gaps):.4f}", f"cg:Z:{cigar(found)}",
        )  # fmt: skip
        yield _bytes("\t".join(map(str, fields))) + b"\n"


def _sam(layout: Layout, alignments: list[Alignment]) -> Iterator[bytes]:
    """The target's sequences are the references; the best alignment of each query is primary, the others supplementary."""
    yield b"@HD\tVN:1.6\tSO:unsorted\n"
    for name, length in zip(layout.target.names, layout.target.lengths.tolist(), strict=True):
        yield _bytes(f"@SQ\tSN:{name}\tLN:{length}\n")
    best: dict[int, int] = {}
    for number, found in enumerate(alignments):
        if found.query not in best or found.score > alignments[best[found.query]].score:
            best[found.query] = number
    for number, found in enumerate(alignments):
        _, mismatches, gap_bases, _ = layout.counts(found)
        (target, query), (_, q_length) = layout.names(found), layout.lengths(found)
        flag = (REVERSE if found.strand < 0 else 0) | (0 if best[found.query] == number else SUPPLEMENTARY)
        before, after = (f"{size}H" if size else "" for size in (found.q_start, q_length - found.q_end))
        fields = (
            query, flag, target, found.t_start + 1, UNKNOWN_QUALITY, before + cigar(found) + after, "*", 0, 0,
            layout.letters(found)[1].tobytes().decode(), "*", f"NM:i:{mismatches + gap_bases}", f"AS:i:{found.score}",
        )  # fmt: skip
        yield _bytes("\t".join(map(str, fields))) + b"\n"


def chain_blocks(found: Alignment) -> list[tuple[int, int, int]]:
    """Bases without a gap, then target and query bases up to the next ones; the last with zeros."""
    blocks: list[list[int]] = []
    for operation, size in found.runs.tolist():
        if operation == PAIR:
            blocks.append([size, 0, 0])
        else:
            blocks[-1][1 if operation == TARGET_ALONE else 2] += size
    return [(size, t, q) for size, t, q in blocks]


def _chain(layout: Layout, alignments: list[Alignment]) -> Iterator[bytes]:
    """A chain for each alignment, or for alignments that were joined."""
    for number, found in enumerate(sorted(alignments, key=lambda found: -found.score), 1):
        (target, query), (t_length, q_length) = layout.names(found), layout.lengths(found)
        head = (
            "chain", found.score, target, t_length, "+", found.t_start, found.t_end, query, q_length, SIGN[found.strand],
            found.q_start, found.q_end, number,
        )  # fmt: skip
        blocks = chain_blocks(found)
        lines = [f"{size}\t{t}\t{q}" for size, t, q in blocks[:-1]] + [str(blocks[-1][0])]
        yield _bytes(" ".join(map(str, head)) + "\n" + "\n".join(lines)) + b"\n\n"


def _psl(layout: Layout, alignments: list[Alignment]) -> Iterator[bytes]:
    """Lines of PSL without a head, as axtToPsl writes them: matches in repeats are not counted apart."""
    for found in alignments:
        (target, query), (t_length, q_length) = layout.names(found), layout.lengths(found)
        blocks = chain_blocks(found)
        sizes, t_gaps, q_gaps = np.array(blocks, np.int64).T
        t_starts = found.t_start + np.cumsum(sizes + t_gaps) - sizes - t_gaps
        q_starts = found.q_start + np.cumsum(sizes + q_gaps) - sizes - q_gaps
        matches, others, *_ = layout.counts(found)
        unknown = layout.unknown(found)
        fields = (
            matches, others - unknown, 0, unknown, np.count_nonzero(q_gaps), q_gaps.sum(), np.count_nonzero(t_gaps),
            t_gaps.sum(), SIGN[found.strand], query, q_length, *found.forward(q_length), target, t_length, found.t_start,
            found.t_end, len(blocks), *(",".join(map(str, column.tolist())) + "," for column in (sizes, q_starts, t_starts)),
        )  # fmt: skip
        yield _bytes("\t".join(map(str, fields))) + b"\n"


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


FORMATS = {"maf": _maf, "axt": _axt, "paf": _paf, "sam": _sam, "chain": _chain, "psl": _psl}
"""Functions from Layout and alignments to pieces of text."""


def format_of(output: str, given: str | None) -> str:
    """The format that is asked for, or that a file's name tells; MAF on standard output.

    Raises
    ------
    ParameterError : an unknown format, or a name that tells none.
    """
    kind = given or ("maf" if output == "-" else ending_of(output))
    if kind not in FORMATS:
        if given:
            raise ParameterError(f"--format {given}: choose from {', '.join(FORMATS)}")
        raise ParameterError(f"-o {output}: the name tells no format; end it in .{', .'.join(FORMATS)}, or use --format")
    return kind


def check_sam_names(path: str, genome: Genome) -> None:
    """Raise InputError for a name that SAM does not allow."""
    for number, name in enumerate(genome.names, 1):
        if set(name) - SAM_NAME or name[0] in "*=":
            raise InputError(path, f"SAM allows no name such as {name}; rename it, or write another format", record=number)


def format_alignments(kind: str, target: Genome, query: Genome, alignments: list[Alignment]) -> Iterator[bytes]:
    """The text of a file of alignments, piece by piece; kind : of FORMATS."""
    return FORMATS[kind](Layout(target, query), alignments)
