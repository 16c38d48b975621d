"""Charts of `map`, `correct`, `exact` and `wga` say what their output says."""

from __future__ import annotations

import json
from dataclasses import fields

import numpy as np
import pytest
from cases import run
from scipy import stats
from strategies import make_reads, mutate, random_bases

from bellapy.jobs.overlap import charts as overlap_charts
from bellapy.jobs.overlap.charts import OverlapCharts, _expected
from bellapy.jobs.overlap.report import Estimates, start_report
from bellapy.records import Overlaps
from bellapy.report.run_report import RunReport


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rng, made = np.random.default_rng(8), tmp_path_factory.mktemp("charts")
    genome = random_bases(rng, 9000)
    (made / "genome.fa").write_text(f">g\n{genome}\n")
    (made / "other.fa").write_text(f">o\n{mutate(rng, genome, 0.04)}\n")
    reads = [mutate(rng, genome[start : start + 3000], 0.08) for start in range(0, 6000, 250)]
    (made / "reads.fa").write_text("".join(f">r{i}\n{text}\n" for i, text in enumerate(reads)))
    return made


def charts_of(folder, *command) -> dict:
    outcome = run(*command, "-t", 1, "--report", folder / "run.json")
    assert outcome.code == 0, outcome.err
    return {chart["title"]: chart for chart in json.loads((folder / "run.json").read_text())["charts"]}


def test_map(folder):
    charts = charts_of(folder, "map", folder / "genome.fa", folder / "reads.fa", "-o", folder / "x.paf", "--secondary", "no")
    rows = [line.split("\t") for line in (folder / "x.paf").read_text().splitlines()]
    assert len({row[0] for row in rows}) == 24
    assert sum(charts["Identity of reads"]["counts"]) == sum(charts["Mapping quality"]["counts"]) == 24
    everything, mapped = charts["Read lengths"]["curves"]
    assert sum(everything["y"]) == sum(mapped["y"]) == 24
    (depth,) = charts["Depth along the reference"]["curves"]
    part = depth["x"][1] - depth["x"][0]
    assert sum(depth["y"]) * part == pytest.approx(sum(int(row[8]) - int(row[7]) for row in rows), rel=0.01)


def test_correct(folder):
    charts = charts_of(folder, "correct", folder / "reads.fa", "-o", folder / "c.fa")
    for title in ("Changes of a read", "Support of a read", "What stayed as it was"):
        assert sum(charts[title]["counts"]) == 24
    assert charts["Changes"]["names"] == ["Mismatches", "Inserted", "Deleted"]
    assert 30 < sum(charts["Changes"]["values"]) < 150
    assert "K-mer spectrum" not in charts


def test_exact(folder):
    charts = charts_of(folder, "exact", folder / "genome.fa", folder / "other.fa", "-o", folder / "e.paf")
    row = (folder / "e.paf").read_text().split("\t")
    (path,) = charts["Path"]["curves"]
    assert [path["y"][0], path["y"][-1], path["x"][0], path["x"][-1]] == [int(row[i]) for i in (2, 3, 7, 8)]
    low, score, high = charts["Score"]["values"]
    assert low <= score <= high
    assert f"AS:i:{score}" in row


def test_wga(folder):
    charts = charts_of(folder, "wga", folder / "genome.fa", folder / "other.fa", "-o", folder / "w.paf")
    rows = [line.split("\t") for line in (folder / "w.paf").read_text().splitlines()]
    assert sum(charts["Lengths of alignments"]["counts"]) == sum(charts["Identity of alignments"]["counts"]) == len(rows) > 0
    counts = np.array(charts["Where the genomes align"]["counts"])
    assert counts.sum() > 7000
    assert np.abs(np.subtract(*np.nonzero(counts))).max() < 10, "all lies near the diagonal"


@pytest.mark.parametrize("depth", [0.0, 3.0, 40.0, 900.0])
def test_spectrum_expected_without_errors(depth):
    """The curve is Poisson's, as high as the counts beyond the mean."""
    counts, x = np.arange(5.0, 205.0), np.arange(2, 202)
    found = _expected(Estimates(depth=depth, error_rate=0.1, k=15), counts, x)
    shape = stats.poisson.pmf(x, depth * 0.9**15)
    if not shape[x >= depth * 0.9**15].sum():
        assert not found
        return
    y = shape * counts[x >= depth * 0.9**15].sum() / shape[x >= depth * 0.9**15].sum()
    np.testing.assert_allclose(found[0].y, y[y >= 0.5], rtol=1e-9)
    assert found[0].x == x[y >= 0.5].tolist()


def test_overlaps_that_come_in_parts_give_the_same_charts(rng, monkeypatch):
    reads, n = make_reads(["A" * 500] * 9), 50
    columns = rng.integers(0, 9, (18, n)).astype(np.int32)
    columns[[4, 6]] += columns[[3, 5]] + np.int32(40)  # ends behind starts
    names = [f.name for f in fields(Overlaps)]
    columns = {name: x.astype(np.int8) if name == "strand" else x for name, x in zip(names, columns, strict=True)}
    overlaps = Overlaps(**columns)
    made = []
    for at_once, sizes in ((1000, [50]), (1000, [1, 0, 30, 19]), (20, [50]), (50, [10] * 5)):
        monkeypatch.setattr(overlap_charts, "AT_ONCE", at_once)
        charts, report = OverlapCharts(reads), start_report(RunReport())
        begin = 0
        for size in sizes:
            charts.add(overlaps.take(slice(begin, begin + size)))
            begin += size
        charts.finish(report)
        made.append(report.to_dict()["charts"])
    assert made[0] == made[1] == made[2] == made[3]
    assert sum(made[0][2]["counts"]) == n
