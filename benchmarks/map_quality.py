#!/usr/bin/env python3
"""How far mapping qualities can be trusted: error rates of simulated reads by quality, as a table and as charts.

    python benchmarks/map_quality.py TRUTH.tsv bellapy=BELLAPY.sam minimap2=MINIMAP2.sam [--chart CHART.png] [-o RESULT.json]

TRUTH.tsv is what `simulate.py` writes: read, sequence, start, end, strand.  The primary line of a read is wrong if it is on
another sequence or strand, or shares a tenth of the union with the true place at most.  The charts are drawn as those of
`--report`, to .png or .svg.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pysam
from common import describe_machine, finish, table

from bellapy.report.charts import Curve, Curves
from bellapy.report.pictures import check_plot, draw_sheet

LEAST_SHARED = 0.1  # of the union of two intervals
SHOWN = 60, 40, 20, 10, 5, 1, 0
MOST = 60
PER = 10_000  # reads: error rates are so small that shares of one are hard to read


class Place(NamedTuple):
    """Where a read comes from."""

    sequence: str
    start: int
    end: int
    strand: str


def read_truth(path: Path) -> dict[str, Place]:
    """The true place of each read."""
    rows = (line.rstrip("\n").split("\t") for line in path.open() if not line.startswith("#"))
    return {row[0]: Place(row[1], int(row[2]), int(row[3]), row[4]) for row in rows}


def is_right(record: pysam.AlignedSegment, place: Place) -> bool:
    """Whether a line is where its read comes from."""
    if record.reference_name != place.sequence or record.is_reverse != (place.strand == "-"):
        return False
    start, end = record.reference_start, record.reference_end or record.reference_start
    shared = min(end, place.end) - max(start, place.start)
    return shared > LEAST_SHARED * (max(end, place.end) - min(start, place.start))


def count_by_quality(path: Path, truth: dict[str, Place]) -> np.ndarray:
    """Mapped and wrong reads at each quality, (2, MOST + 1) int64."""
    counts = np.zeros((2, MOST + 1), np.int64)
    with pysam.AlignmentFile(str(path), check_sq=False) as records:
        for record in records:
            if record.is_unmapped or record.is_secondary or record.is_supplementary:
                continue
            counts[:, min(record.mapping_quality, MOST)] += 1, not is_right(record, truth[record.query_name])
    return counts


def charts_of(counts: dict[str, np.ndarray], n_reads: int) -> list[Curves]:
    """Error rates of the surest reads, and of those of each quality beside what it claims."""
    sure, claimed = [], []
    for name, (mapped, wrong) in counts.items():
        reached, missed = mapped[::-1].cumsum(), wrong[::-1].cumsum()
        some = reached > 0
        sure.append(Curve(name, (reached / n_reads)[some].tolist(), (PER * missed[some] / reached[some]).tolist()))
        there = np.flatnonzero(mapped)
        claimed.append(Curve(name, there.tolist(), (wrong[there] / mapped[there]).tolist()))
    qualities = np.arange(MOST + 1)
    claimed.append(Curve("claimed", qualities.tolist(), (10 ** (-qualities / 10)).tolist()))
    return [
        Curves(
            "Errors of the surest reads", "Reads with the highest mapping qualities first; ends at quality 0.",
            "share of all reads", f"wrong of {PER:,} mapped", sure,
        ),
        Curves(
            "Errors by quality", "Of the reads with just this quality. A quality q claims 10 to the power of -q / 10.",
            "mapping quality", "share that is wrong", claimed,
        ),
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("truth", type=Path)
    parser.add_argument("files", nargs="+", metavar="NAME=FILE", help="SAM or BAM of each tool")
    parser.add_argument("--chart", help="picture to draw")
    parser.add_argument("-o", "--output", help="write the results as JSON")
    options = parser.parse_args()
    if options.chart:
        check_plot("--chart", options.chart)
    truth = read_truth(options.truth)
    counts = {name: count_by_quality(Path(path), truth) for name, path in (text.split("=", 1) for text in options.files)}
    rows = [
        [name, least, round(mapped[least:].sum() / len(truth), 4), int(wrong[least:].sum()),
         round(PER * wrong[least:].sum() / max(1, mapped[least:].sum()), 2)]
        for name, (mapped, wrong) in counts.items() for least in SHOWN
    ]  # fmt: skip
    if options.chart:
        draw_sheet(charts_of(counts, len(truth)), "Mapping qualities", options.chart, options.chart.rsplit(".", 1)[1])
    results = {"benchmark": "map quality", "machine": describe_machine([]), "reads": len(truth)}
    results["counts"] = {name: both.tolist() for name, both in counts.items()}
    finish([table(["tool", "quality >=", "share of reads", "wrong", f"wrong of {PER:,}"], rows)], results, options.output)


if __name__ == "__main__":
    main()
