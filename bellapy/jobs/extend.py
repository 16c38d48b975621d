"""`bellapy extend`: LOGAN's job alone.  Sequence pairs with one seed each, in; alignments by X-drop extension, out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from bellapy.compute.gpu.devices import choose_device
from bellapy.engines.extend import device_usage, extend_seeds, load
from bellapy.engines.trace import map_paths
from bellapy.errors import InputError, ParameterError
from bellapy.io.inputs import open_input
from bellapy.io.paf import path_columns
from bellapy.io.table_text import NUMBER, NameTable, format_rows
from bellapy.params import Params, Scoring
from bellapy.records import Extensions, Overlaps, Paths, ReadSet, Seeds
from bellapy.records.bases import PAD, UNKNOWN, encode
from bellapy.report.log import Report, cpu_time

BATCH_PAIRS = 1 << 14
STRANDS = {"n": 1, "c": -1}
N_COLUMNS = 5
NO_NAMES = NameTable.of([])
MAX_SEED = 31


def extend_pairs(
    path: str, k: int, params: Params, report: Report, *, cigar: bool = False, cs: bool = False
) -> Iterator[bytes]:
    """Lines of index, score, query start, query end, target start, target end; in input order.

    Coordinates are on the forward strand of each sequence as given, also on lines with strand c, where the target's reverse
    complement is aligned.  With `cigar` or `cs` the tags of PAF with base-level paths follow, which run along the target as
    given; their counts look at the seed's bases, the score does not.
    """
    if not 1 <= k <= MAX_SEED:
        raise ParameterError(f"-k {k}: must be from 1 to {MAX_SEED}")
    given = params.extension
    if given.extension == "homology":
        raise ParameterError("--extension homology: is learnt from a whole set of reads; choose best or longest")
    scoring = Scoring(given.match, given.mismatch, given.gap, given.xdrop)
    steps = (scoring,)
    longest, threads = given.extension == "longest", params.run.threads
    device = choose_device(params.run.device)
    n_pairs, packing, extending, tracing = 0, 0.0, 0.0, 0.0
    with report.stage("load"):  # compiled code, so that the times below are those of the work
        load(scoring, device)
    with open_input(path) as lines, report.stage("extend") as numbers:
        start = cpu_time()
        while batch := list(islice(lines, BATCH_PAIRS)):
            rows = [_parse(path, n_pairs + i + 1, line, k) for i, line in enumerate(batch)]
            reads, seeds = _pack(rows, k)
            reads.both_ways  # noqa: B018  (made here, where it is timed as packing)
            packed = cpu_time()
            extensions = extend_seeds(reads, seeds, steps, longest=longest, threads=threads, device=device)
            done = cpu_time()
            packing, extending = packing + packed - start, extending + done - packed
            if cigar or cs:
                overlaps = _as_overlaps(seeds, extensions)
                yield from _format_with_paths(n_pairs, reads, overlaps, steps, longest, cigar, cs, threads, device)
                tracing += cpu_time() - done
            else:
                yield format_rows(_columns(n_pairs + np.arange(len(rows)), extensions), NO_NAMES)
            n_pairs += len(rows)
            start = cpu_time()
        numbers["pairs"] = n_pairs
        numbers["CPU s reading and packing"], numbers["CPU s extending"] = round(packing, 3), round(extending, 3)
        if cigar or cs:
            numbers["CPU s tracing and writing"] = round(tracing, 3)
    report.data["devices"] = device_usage(device)
    if not n_pairs:
        raise InputError(path, "is empty; five tab-separated columns a line are needed")


def _parse(path: str, number: int, line: bytes, k: int) -> tuple[bytes, int, bytes, int, int]:
    """Query, seed position, target, seed position, strand."""
    columns = line.rstrip(b"\r\n").split(b"\t")
    if len(columns) != N_COLUMNS:
        raise InputError(path, f"{len(columns)} columns instead of {N_COLUMNS}, separated by tabs", line=number)
    query, query_pos, target, target_pos, strand = columns
    try:
        places = int(query_pos), int(target_pos)
    except ValueError:
        raise InputError(path, "columns 2 and 4 must be whole numbers, where the seed starts", line=number) from None
    if strand.decode("latin-1") not in STRANDS:
        raise InputError(path, "column 5 must be n (same strand) or c (opposite strands)", line=number)
    for what, sequence, place in (("query", query, places[0]), ("target", target, places[1])):
        if not 0 <= place <= len(sequence) - k:
            problem = f"the seed of {k} bases at {place} is not inside the {what} of {len(sequence)}"
            raise InputError(path, problem, line=number)
        if not sequence.isalpha():
            raise InputError(path, f"the {what} holds characters that are not letters", line=number)
    return query, places[0], target, places[1], STRANDS[strand.decode()]


def _pack(rows: list[tuple], k: int) -> tuple[ReadSet, Seeds]:
    """The sequences of all pairs as reads: pair i has query 2 i and target 2 i + 1."""
    sequences = [sequence for row in rows for sequence in (row[0], row[2])]
    lengths = np.array([len(sequence) for sequence in sequences], np.int32)
    starts = PAD + np.concatenate(([0], np.cumsum(lengths[:-1] + np.int64(PAD))))
    codes = np.full(int(starts[-1]) + int(lengths[-1]) + PAD, UNKNOWN, np.uint8)
    for start, sequence in zip(starts.tolist(), sequences, strict=True):
        codes[start : start + len(sequence)] = encode(sequence)
    reads = ReadSet(tuple(map(str, range(len(sequences)))), codes, starts, lengths)
    index = np.arange(len(rows), dtype=np.int32)
    query_pos, target_pos = (np.array([row[i] for row in rows], np.int32) for i in (1, 3))
    strand = np.array([row[4] for row in rows], np.int8)
    ones = np.ones(len(rows), np.int32)
    return reads, Seeds(
        2 * index, 2 * index + 1, strand, query_pos, target_pos, np.zeros(len(rows), np.int8), ones, ones.copy(),
        ones.copy(), query_pos.copy(), query_pos.copy(), target_pos.copy(), target_pos.copy(),
        np.ones(len(rows), np.float32), k,
    )  # fmt: skip


def _columns(index: np.ndarray, extensions: Extensions | Overlaps) -> list:
    columns = (
        index, extensions.score, extensions.query_start, extensions.query_end,
        extensions.target_start, extensions.target_end,
    )  # fmt: skip
    return [(NUMBER, "", column) for column in columns]


def _as_overlaps(seeds: Seeds, extensions: Extensions) -> Overlaps:
    """The extensions as overlaps without counts of columns."""
    zeros = np.zeros(len(seeds), np.int32)
    return Overlaps(
        seeds.query_id, seeds.target_id, seeds.strand, extensions.query_start, extensions.query_end,
        extensions.target_start, extensions.target_end, extensions.score, seeds.n_support, zeros, zeros.copy(),
        seeds.query_pos, seeds.target_pos, np.full(len(seeds), seeds.length, np.int32), extensions.left_query,
        extensions.left_target, extensions.right_query, extensions.right_target,
    )  # fmt: skip


def _format_with_paths(first, reads, overlaps, steps, longest, cigar, cs, threads, device) -> Iterator[bytes]:
    def lines(some: Overlaps, paths: Paths) -> bytes:
        index = first + some.query_id // 2  # query and target of pair i are reads 2 i and 2 i + 1
        return format_rows(_columns(index, some) + path_columns(reads, some, paths, cigar, cs), NO_NAMES)

    return map_paths(lines, reads, overlaps, steps, longest=longest, threads=threads, device=device)
