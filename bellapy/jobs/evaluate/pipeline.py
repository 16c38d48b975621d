"""Judge reported overlaps against the places on the reference that the reads come from.

`truth` reads those places; `evaluate_overlaps` compares the pairs of an overlap file with them.  Every unordered
pair of distinct reads falls into one class, by the number of reference bases that its reads share:

    true    min_overlap or more          has to be reported
    grey    grey up to min_overlap - 1   may be reported or not; counts neither way
    false   fewer than grey              must not be reported

A pair on several lines counts once, by the line of longest query span (the first of equals).  The figures, in order:

    lines; pairs (distinct, reported); true_pairs (reported or not); tp, fp, grey (reported, by class);
    fp_touching, fp_disjoint (fp that share some bases, none); precision_disjoint (without fp_touching);
    recall, precision, f1; strand_accuracy (of tp);
    end_err_* (bases between reported and true end, on the query), inner_end_err_* (on both reads, true ends within
    READ_END_MARGIN of an end of the read left out), both_end_err_* (on both reads);
    covered_* (share of the true overlap, on the query, that the line spans);
    self_lines, lines_outside_truth, lines_below_min_span, lines_not_end_to_end (not judged);
    lines_bad_coordinates (judged all the same);
    min_overlap, grey_floor, min_span, reads_in_truth;
    recall_by_true_overlap, if asked for: "low-high" shared bases -> [true pairs, recall].

Ends and coverage are those of tp of the right strand.  True ends are the shared reference interval, carried over to
the read in proportion.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice, repeat
from os import PathLike
from typing import Any

import numpy as np

from bellapy.errors import InputError, ParameterError
from bellapy.io.compressed import as_text, check_line_end, open_stream
from bellapy.io.outputs import open_output
from bellapy.jobs.evaluate.truth import MAX_POSITION, UNKNOWN, Truth, read_truth
from bellapy.params.evaluate import EvaluateParams
from bellapy.params.fields import check, given_values, options_of
from bellapy.report.log import logger

DEFAULTS = EvaluateParams()
READ_END_MARGIN = 100  # bases; an overlap that ends so near to a read's end ends because the read does: not "inner"
CHUNK_LINES = 1 << 10  # parsed together: enough to hide the cost of a numpy call, few enough to stay in cache

LEFT_OUT = {
    "self_lines": "of a read with itself",
    "lines_outside_truth": "of a read that the truth does not have",
    "lines_below_min_span": "shorter than --min-span",
    "lines_not_end_to_end": "with overhangs longer than --end-to-end",
}
"""Why lines are not judged, by the figure that counts them."""

_NUMBERS = ("query_length", "query_start", "query_end", "target_length", "target_start", "target_end")
_LINE = np.dtype([(name, "i8") for name in ("query", "target", *_NUMBERS)] + [("same_strand", "?"), ("self", "?")])
_N_COLUMNS = 12
_COLUMNS = {  # from 0: query, target, strand, then as _NUMBERS
    "paf": (0, 5, 4, 1, 2, 3, 6, 7, 8),
    "bella": (0, 1, 5, 8, 6, 7, 11, 9, 10),
}
_STRANDS = {"paf": ("+", "-"), "bella": ("n", "c")}


def evaluate_files(truth: str, overlaps: str, **options: Any) -> dict[str, Any]:
    """The same with the file of the truth; options : as of `evaluate_overlaps`."""
    return evaluate_overlaps(read_truth(truth), overlaps, **options)


def evaluate_overlaps(
    truth: Truth,
    path: str | PathLike,
    *,
    overlap_format: str = DEFAULTS.overlap_format,
    min_overlap: int = DEFAULTS.min_overlap,
    grey: int = DEFAULTS.grey,
    min_span: int = DEFAULTS.min_span,
    end_to_end: int | None = DEFAULTS.end_to_end,
    bins: Sequence[int] = (),
    false_pairs: str | PathLike | None = None,
) -> dict:
    """Count right and wrong pairs of an overlap file, and measure how well the right ones are placed.

    Parameters
    ----------
    truth : where the reads lie.
    path : the overlaps, plain or gzip; "-" is standard input.
    overlap_format : "paf", or "bella" for the 12 columns of the C++ program.
    min_overlap : least shared bases of a true pair, >= 1.
    grey : least shared bases of a pair that is not false, 0 to min_overlap.
    min_span : leave out lines shorter than this on both reads.
    end_to_end : leave out lines with more than this many bases unaligned on both reads at the same end: true overlaps
        run until one of the reads stops, repeats need not.
    bins : borders, in shared bases, between which recall is given too; the last bin is open.
    false_pairs : file to write the false pairs to: both names, query length, start, end, strand, target length, start,
        end.

    Returns
    -------
    dict, ready for JSON: the figures listed at the top of this module; a rate or error of nothing is None.

    Raises
    ------
    InputError : missing or damaged file, a line of fewer than 12 columns, a coordinate that is not a whole number.
    ParameterError : an option out of range.
    OutputError : `false_pairs` cannot be written.
    """
    _check_options(overlap_format, min_overlap, grey, min_span, end_to_end)
    lines, tally = _read_overlaps(str(path), overlap_format, truth, min_span, end_to_end)
    _warn_of_nothing(str(path), len(lines), tally, truth)
    reported = _one_line_per_pair(lines, len(truth))
    shared = _shared_bases(truth, reported)
    result: dict = {"lines": tally.pop("lines")}
    result |= _count_classes(shared, _count_pairs_sharing(truth, min_overlap), min_overlap, grey)
    result |= _measure_placement(truth, reported[shared >= min_overlap])
    result |= tally
    result |= {"min_overlap": min_overlap, "grey_floor": grey, "min_span": min_span, "reads_in_truth": len(truth)}
    if bins:
        result["recall_by_true_overlap"] = _recall_by_bin(truth, shared, bins)
    if false_pairs is not None:
        _write_lines(str(false_pairs), truth, reported[shared < grey])
    return result


def _check_options(overlap_format: str, min_overlap: int, grey: int, min_span: int, end_to_end: int | None) -> None:
    given = EvaluateParams(overlap_format, min_overlap, grey, min_span, end_to_end)._asdict()
    check(given_values(given, EvaluateParams._fields), options_of(EvaluateParams))
    if grey > min_overlap:
        raise ParameterError(f"--grey {grey}: must be from 0 to --min-overlap ({min_overlap})")


def _read_overlaps(
    path: str, overlap_format: str, truth: Truth, min_span: int, end_to_end: int | None
) -> tuple[np.ndarray, Counter]:
    """Lines to judge, (n,) of _LINE in the order of the file, and how many lines there were of each kind."""
    kept = [np.empty(0, _LINE)]
    tally = Counter(lines=0, **dict.fromkeys((*LEFT_OUT, "lines_bad_coordinates"), 0))
    with open_stream(path) as stream, as_text(stream) as texts:
        while chunk := list(islice(texts, CHUNK_LINES)):
            try:
                lines = _parse_lines(chunk, overlap_format, truth.ids)
            except (ValueError, OverflowError) as error:
                raise _first_fault(path, chunk, tally["lines"] + 1, overlap_format) from error
            tally["lines"] += len(chunk)
            check_line_end(path, chunk[-1], tally["lines"])
            kept.append(_screen(lines, min_span, end_to_end, tally))
    return np.concatenate(kept), tally


def _warn_of_nothing(path: str, n_lines: int, tally: Counter, truth: Truth) -> None:
    """Warn why there is nothing to judge: a recall of 0 looks like a bad overlapper."""
    where = "standard input" if path == "-" else path
    if not tally["lines"]:
        logger.warning("%s: holds no overlaps", where)
    elif not n_lines and 0 < tally["lines_outside_truth"] == tally["lines"] - tally["self_lines"]:
        logger.warning(
            "%s: no line has both of its reads in the truth. Compare the names: the truth has reads such as %r.",
            where, truth.names[0],
        )  # fmt: skip
    elif not n_lines:
        why = ", ".join(f"{tally[name]:,} {words}" for name, words in LEFT_OUT.items() if tally[name])
        logger.warning("%s: no line is left to judge: %s", where, why)


def _parse_lines(texts: list[str], overlap_format: str, ids: dict[str, int]) -> np.ndarray:
    """Lines as (n,) of _LINE; ValueError or OverflowError if there is a bad one among them."""
    # zip stops at the shortest line, so the number of columns tells whether every line is long enough
    columns = list(zip(*(text.split("\t", _N_COLUMNS) for text in texts), strict=False))
    if len(columns) < _N_COLUMNS:
        raise ValueError("short line")
    query, target, strand, *numbers = (columns[i] for i in _COLUMNS[overlap_format])
    values: list[Iterator] = [map(ids.get, names, repeat(UNKNOWN)) for names in (query, target)]
    values += [map(int, column) for column in numbers]
    if not set(strand) <= set(_STRANDS[overlap_format]):
        raise ValueError("unknown strand")
    values += [map(_STRANDS[overlap_format][0].__eq__, strand), map(operator.eq, query, target)]
    lines = np.empty(len(texts), _LINE)
    for field, column in zip(_LINE.names or (), values, strict=True):
        lines[field] = np.fromiter(column, _LINE[field], len(texts))
    if overlap_format == "bella":  # the C++ program counts on the reverse complement of a reversed target
        start, end, length = (lines[f"target_{name}"].copy() for name in ("start", "end", "length"))
        lines["target_start"] = np.where(lines["same_strand"], start, length - end)
        lines["target_end"] = np.where(lines["same_strand"], end, length - start)
    return lines


def _first_fault(path: str, texts: list[str], first_number: int, overlap_format: str) -> InputError:
    """Name the line that stopped _parse_lines."""
    for number, text in enumerate(texts, first_number):
        columns = text.split("\t", _N_COLUMNS)
        if len(columns) < _N_COLUMNS:
            problem = f"{len(columns)} columns where {_N_COLUMNS} are needed; check --format and whether the file is whole."
            return InputError(path, problem, line=number)
        if (found := columns[_COLUMNS[overlap_format][2]]) not in _STRANDS[overlap_format]:
            problem = f"the strand is {found!r}, not {' or '.join(_STRANDS[overlap_format])}; check --format."
            return InputError(path, problem, line=number)
        for i in sorted(_COLUMNS[overlap_format][3:]):
            try:
                np.int64(int(columns[i]))
            except (ValueError, OverflowError):
                problem = f"column {i + 1} is {columns[i].strip()!r}, not a whole number; check --format."
                return InputError(path, problem, line=number)
    raise AssertionError("lines that cannot be parsed have no fault")


def _screen(lines: np.ndarray, min_span: int, end_to_end: int | None, tally: Counter) -> np.ndarray:
    """Lines to judge; adds those met to the tally."""
    tally["self_lines"] += int(lines["self"].sum())
    lines = lines[~lines["self"]]
    if min_span:
        long = np.maximum(_span(lines, "query"), _span(lines, "target")) >= min_span
        tally["lines_below_min_span"] += int((~long).sum())
        lines = lines[long]
    inside = (lines["query"] != UNKNOWN) & (lines["target"] != UNKNOWN)
    tally["lines_outside_truth"] += int((~inside).sum())
    lines = lines[inside]
    tally["lines_bad_coordinates"] += int((~(_fits_read(lines, "query") & _fits_read(lines, "target"))).sum())
    if end_to_end is not None:
        whole = _overhang(lines) <= end_to_end
        tally["lines_not_end_to_end"] += int((~whole).sum())
        lines = lines[whole]
    return lines


def _span(lines: np.ndarray, side: str) -> np.ndarray:
    return lines[f"{side}_end"] - lines[f"{side}_start"]


def _fits_read(lines: np.ndarray, side: str) -> np.ndarray:
    start, end = lines[f"{side}_start"], lines[f"{side}_end"]
    return (start >= 0) & (start <= end) & (end <= lines[f"{side}_length"])


def _overhang(lines: np.ndarray) -> np.ndarray:
    """Bases left unaligned on both reads, at the worse end of the overlap."""
    target_left, target_right = lines["target_start"], lines["target_length"] - lines["target_end"]
    before = np.where(lines["same_strand"], target_left, target_right)
    after = np.where(lines["same_strand"], target_right, target_left)
    query_right = lines["query_length"] - lines["query_end"]
    return np.maximum(np.minimum(lines["query_start"], before), np.minimum(query_right, after))


def _one_line_per_pair(lines: np.ndarray, n_reads: int) -> np.ndarray:
    """The line of longest query span of each pair, pairs in the order in which they first appear."""
    low, high = np.minimum(lines["query"], lines["target"]), np.maximum(lines["query"], lines["target"])
    keys, first_line, pair = np.unique(low * n_reads + high, return_index=True, return_inverse=True)
    by_pair = np.lexsort((-_span(lines, "query"), pair))  # stable: of equal spans the earlier line comes first
    longest = by_pair[np.searchsorted(pair[by_pair], np.arange(len(keys)))]
    return lines[longest[np.argsort(first_line)]]


def _shared_interval(truth: Truth, lines: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Start and end of what the intervals of both reads have in common; end <= start where that is nothing."""
    query, target = lines["query"], lines["target"]
    start = np.maximum(truth.starts[query], truth.starts[target])
    return start, np.minimum(truth.ends[query], truth.ends[target])


def _shared_bases(truth: Truth, lines: np.ndarray) -> np.ndarray:
    """Reference bases that the two reads of each line share, 0 if none."""
    start, end = _shared_interval(truth, lines)
    same_ref = truth.ref_ids[lines["query"]] == truth.ref_ids[lines["target"]]
    return np.where(same_ref, np.maximum(end - start, 0), 0)


def _count_pairs_sharing(truth: Truth, n_bases: int) -> int:
    """Number of unordered pairs of reads that share at least `n_bases` >= 1, in O(n log n).

    Notes
    -----
    Two intervals share n bases if they still meet when the last n are taken off both.  Of two that do not meet one
    ends before the other starts: counting, at each start, the shortened intervals ended by then finds them all, once.
    """
    long_enough = truth.ends - truth.starts >= n_bases
    offsets = truth.ref_ids * (truth.ends.max() + 1)  # end to end on one axis, intervals of two references never meet
    starts = (offsets + truth.starts)[long_enough]
    shortened_ends = np.sort((offsets + truth.ends)[long_enough] - n_bases)
    n_apart = int(np.searchsorted(shortened_ends, starts, side="left").sum())
    return len(starts) * (len(starts) - 1) // 2 - n_apart


def _count_classes(shared: np.ndarray, n_true: int, min_overlap: int, grey: int) -> dict:
    """Reported pairs by class and the rates made of them."""
    tp, fp = int((shared >= min_overlap).sum()), int((shared < grey).sum())
    disjoint = int((shared == 0).sum()) if grey else 0
    precision = tp / (tp + fp) if tp + fp else 0.0
    recall = tp / n_true if n_true else 0.0
    f1 = 2 * precision * recall / (precision + recall) if tp else 0.0
    n_grey = len(shared) - tp - fp
    counts: dict = {"pairs": len(shared), "true_pairs": n_true, "tp": tp, "fp": fp, "grey": n_grey}
    counts |= {"fp_touching": fp - disjoint, "fp_disjoint": disjoint}
    counts["precision_disjoint"] = round(tp / (tp + disjoint), 5) if tp + disjoint else None
    return counts | {"recall": round(recall, 5), "precision": round(precision, 5), "f1": round(f1, 5)}


def _measure_placement(truth: Truth, hits: np.ndarray) -> dict:
    """Strand, ends and coverage of the lines that stand for true pairs."""
    same_strand = truth.strands[hits["query"]] == truth.strands[hits["target"]]
    right = hits[hits["same_strand"] == same_strand]
    query_ends, target_ends = _true_ends(truth, right, "query"), _true_ends(truth, right, "target")
    query_errors, query_inner = _end_errors(right, "query", query_ends)
    target_errors, target_inner = _end_errors(right, "target", target_ends)
    inner = np.concatenate((query_errors[query_inner], target_errors[target_inner]))
    both = np.concatenate((query_errors, target_errors))
    covered = _covered_share(right, query_ends)
    placement: dict = {"strand_accuracy": round(len(right) / len(hits), 5) if len(hits) else None}
    placement |= {"end_err_median": _percentile(query_errors, 50), "end_err_p95": _percentile(query_errors, 95)}
    placement |= {"end_err_mean": _mean(query_errors, 1)}
    placement |= {"inner_end_err_median": _percentile(inner, 50), "inner_end_err_p95": _percentile(inner, 95)}
    placement |= {"both_end_err_median": _percentile(both, 50), "both_end_err_p95": _percentile(both, 95)}
    placement |= {"covered_median": _percentile(covered, 50), "covered_p5": _percentile(covered, 5)}
    return placement | {"covered_mean": _mean(covered, 4)}


def _true_ends(truth: Truth, lines: np.ndarray, side: str) -> np.ndarray:
    """Start and end on one read, (n, 2) float64, of the reference interval that both reads share."""
    read = lines[side]
    start, end, forward = truth.starts[read], truth.ends[read], truth.strands[read] > 0
    shared_start, shared_end = _shared_interval(truth, lines)
    whole = truth.read_lengths[read] == UNKNOWN
    read_start = np.where(whole, 0, truth.read_starts[read])
    read_end = np.where(whole, lines[f"{side}_length"], truth.read_ends[read])
    scale = (read_end - read_start) / np.maximum(end - start, 1)
    before = np.where(forward, shared_start - start, end - shared_end)
    until = np.where(forward, shared_end - start, end - shared_start)
    return np.column_stack((read_start + before * scale, read_start + until * scale))


def _end_errors(lines: np.ndarray, side: str, true_ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far off both ends are on one read, and which of them lie well inside it; each (n, 2)."""
    errors = np.abs(np.column_stack((lines[f"{side}_start"], lines[f"{side}_end"])) - true_ends)
    margin_right = lines[f"{side}_length"][:, None] - READ_END_MARGIN
    return errors, (true_ends > READ_END_MARGIN) & (true_ends < margin_right)


def _covered_share(lines: np.ndarray, query_ends: np.ndarray) -> np.ndarray:
    """Share of the true overlap on the query, (n, 2) start and end, that each line spans."""
    start, end = query_ends.T
    common = np.minimum(lines["query_end"], end) - np.maximum(lines["query_start"], start)
    return np.maximum(common, 0.0) / np.maximum(end - start, 1.0)


def _percentile(values: np.ndarray, percent: float) -> float | None:
    return round(float(np.percentile(values, percent)), 1) if values.size else None


def _mean(values: np.ndarray, digits: int) -> float | None:
    return round(float(np.mean(values)), digits) if values.size else None


def _recall_by_bin(truth: Truth, shared: np.ndarray, borders: Sequence[int]) -> dict[str, list]:
    """Name of each bin of shared bases to its true pairs and the share of them that is reported."""
    recall = {}
    for low, high in zip(borders, (*borders[1:], MAX_POSITION), strict=True):
        least, beyond = max(low, 1), max(high, 1)  # pairs that share nothing are in no bin
        n_true = max(_count_pairs_sharing(truth, least) - _count_pairs_sharing(truth, beyond), 0)
        n_found = int(((shared >= least) & (shared < beyond)).sum())
        name = f"{low}-{high if high < MAX_POSITION else ''}"
        recall[name] = [n_true, round(n_found / n_true, 4) if n_true else None]
    return recall


def _write_lines(path: str, truth: Truth, lines: np.ndarray) -> None:
    """Write both names, then the other first columns of PAF."""
    with open_output(path) as stream:
        for query, target, *numbers, same_strand, _ in lines.tolist():
            numbers.insert(3, "+" if same_strand else "-")
            row = "\t".join(map(str, (truth.names[query], truth.names[target], *numbers)))
            stream.write(f"{row}\n".encode(errors="surrogateescape"))
