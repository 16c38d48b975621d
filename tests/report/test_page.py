"""Reports to look at: every chart on the page and on the sheet, with its numbers; nothing from elsewhere."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from browser import PROGRAM, check_pages
from cases import run, sample_reads
from strategies import random_bases

from bellapy.errors import ParameterError
from bellapy.io.report_files import check_kind, write_report
from bellapy.jobs.map.run import MapStage
from bellapy.jobs.overlap.report import FilterStage
from bellapy.report.charts import Curve, Curves, Density, Histogram, Levels, Mark, histogram_of, round_edges
from bellapy.report.page import make_page
from bellapy.report.run_report import ReadStage, RunReport

CHARTS = [
    Histogram("Sizes", "How large.", "size", "things", [0, 1, 2], [3, 4], [Curve("fit", [0, 1], [2, 3])], [Mark("here", 1)]),
    Histogram("Rare", "How rare.", "count", "things", [0, 1, 2], [1000, 1], log_y=True),
    Curves("Depth <&>", "How deep.", "place", "depth", [Curve("half", [0.0, 1.0], [5.0, 6.0])]),
    Density("Both", "How both.", "x", "y", [0, 1, 2], [0, 1, 2], [[1, 0], [0, 90]]),
    Levels("Times", "How long.", "s", "", ["read", "write"], [1.0, 2.5]),
]


@pytest.mark.parametrize("kind", ["html", "png"])
def test_charts_of_nothing_are_drawn_without_a_warning(tmp_path, recwarn, kind):
    empty = [Histogram("None", "How few.", "count", "things", [0, 1, 2], [0, 0], log_y=log_y) for log_y in (False, True)]
    write_report(RunReport(charts=empty), str(tmp_path / f"x.{kind}"))
    of_older_matplotlib = "PyparsingDeprecationWarning"
    assert not [one.message for one in recwarn if one.category.__name__ != of_older_matplotlib]


@pytest.fixture
def report() -> RunReport:
    made = RunReport("bellapy overlap 'a<b.fq'", "1.2", {"kmers": {"k": 17, "upper": None}}, charts=CHARTS)
    made.warnings.append("few reads & short")
    with made.stage(ReadStage("read")) as stage:
        stage.reads, stage.bases = 1234, 56789
    made.finish()
    return made


class Page(HTMLParser):
    """Checks that elements nest, and notes ids, links and texts."""

    def __init__(self, text: str):
        super().__init__()
        self.open, self.ids, self.links, self.words = [], [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids += [found["id"]] if "id" in found else []
        self.links += [value for name, value in attrs if name in ("href", "xlink:href", "src")]
        if tag not in ("meta", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        self.ids += [value for name, value in attrs if name == "id"]
        self.links += [value for name, value in attrs if name in ("href", "xlink:href", "src")]

    def handle_data(self, data):
        self.words.append(data)


def test_page(report, tmp_path):
    path = tmp_path / "run.html"
    write_report(report, str(path))
    text = path.read_text()
    page = Page(text)
    assert len(set(page.ids)) == len(page.ids)
    assert all(link.startswith(("#", "data:")) for link in page.links)
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
    words = "".join(page.words)
    for shown in ("bellapy overlap 'a<b.fq'", "Depth <&>", "few reads & short", "1,234 reads", "not set", "here", "fit"):
        assert shown in words
    assert text.count("<svg") == len(CHARTS) + 1  # and the times of the stages
    assert not re.search("#0102|<script|url\\(http", text)


def test_results_come_first(report):
    """Reads, bases, overlaps of a read, share mapped, identity; then date and versions; and no word of the source."""
    with report.stage(FilterStage("filter")) as stage:
        stage.overlaps = 6170
    with report.stage(MapStage("map")) as stage:
        stage.mapped = 617
    report.charts = [*CHARTS, Histogram("Identity", "Alike.", "identity", "reads", [0.8, 0.9, 1.0], [1, 5])]
    text = make_page(report).decode()
    page = Page(text)
    headings = re.findall("<h2[^>]*>([^<]*)</h2>", text)
    assert headings[0] == "Results" and headings[-1] == "Parameters"
    shown = dict(re.findall("<dt>([^<]*)</dt><dd>([^<]*)</dd>", text.split("</section>")[0]))
    assert shown == {
        "Reads": "1,234", "Bases": "56,789", "Overlaps": "6,170", "Mapped": "617", "Overlaps of a read": "10",
        "Share mapped": "0.5", "Median identity": "0.95",
    }  # fmt: skip
    words = "".join(page.words)
    assert report.date in words and f"Python {platform.python_version()}, numba" in words


NOT_IN_A_PAGE = re.compile(r"```|^\|.*\||^#+ |\bNone\b|\bnan\b|array\(|dtype|<class|\bobject at 0x", re.MULTILINE)


@pytest.mark.parametrize("command", [
    "overlap {reads}", "map {genome} {reads}", "correct {reads}", "assemble {reads}", "polish {genome} {reads}",
    "exact {genome} {genome}", "wga {genome} {genome}", "pairwise {genome} {genome}", "consensus {genome}",
])  # fmt: skip
def test_reports_of_all_jobs_can_be_read_on_a_phone(tmp_path, command):
    """All tables lie in boxes that scroll, headings follow each other, and nothing of Markdown or Python is left in."""
    sample = sample_reads(7, genome=6000, depth=6, mean=1500, error=0.05)
    (tmp_path / "reads.fa").write_text(sample.fasta())
    rng = np.random.default_rng(1)
    (tmp_path / "genome.fa").write_text(f">g\n{random_bases(rng, 3000)}{sample.sequences[0]}\n")
    words = command.format(reads=tmp_path / "reads.fa", genome=tmp_path / "genome.fa").split()
    output = tmp_path / {"overlap": "out.paf", "map": "out.paf", "exact": "out.paf", "wga": "out.maf"}.get(
        words[0], "out.fa"
    )
    outcome = run(*words, "-q", "-o", output, "--report", tmp_path / "run.html")
    assert outcome.code == 0, outcome.err
    text = (tmp_path / "run.html").read_text()
    page = Page(text)
    prose = re.sub("<style>.*?</style>|<svg.*?</svg>", "", text, flags=re.DOTALL)
    shown = re.sub("<[^>]*>", " ", prose)
    assert not NOT_IN_A_PAGE.search(shown), NOT_IN_A_PAGE.search(shown)
    assert prose.count("<table") == len(re.findall(r'<div class="wide"[^>]*><table', prose)) > 1
    levels = [int(level) for level in re.findall("<h([1-6])", prose)]
    assert levels[0] == 1 and all(b <= a + 1 for a, b in zip(levels, levels[1:], strict=False))
    assert 'name="viewport"' in text and len(set(page.ids)) == len(page.ids)
    assert re.findall("<h2[^>]*>([^<]*)</h2>", text)[0] == "Results"
    if PROGRAM:
        check_pages(tmp_path, ["run.html"])


@pytest.mark.parametrize("kind", [".png", ".svg", ".PNG", ".SVG"])
def test_sheet(report, tmp_path, kind):
    path = tmp_path / f"run{kind}"
    write_report(report, str(path))
    data = path.read_bytes()
    write_report(report, str(path))
    assert path.read_bytes() == data
    assert data.startswith(b"\x89PNG" if kind.lower() == ".png" else b"<?xml")
    assert len(data) > 10_000


def test_json_holds_the_charts(report, tmp_path):
    path = tmp_path / "run.json"
    write_report(report, str(path))
    told = json.loads(path.read_text())
    assert [chart["kind"] for chart in told["charts"]] == ["histogram", "histogram", "curves", "density", "levels"]
    assert told["charts"][0]["curves"] == [{"name": "fit", "x": [0, 1], "y": [2, 3]}]
    assert told["warnings"] == ["few reads & short"]


def test_multiqc_gets_a_row(report, tmp_path):
    path = tmp_path / "sample7_mqc.json"
    write_report(report, str(path))
    told = json.loads(path.read_text())
    assert (told["id"], told["plot_type"]) == ("bellapy_overlap", "table")
    row = told["data"]["sample7"]
    assert (row["Reads"], row["Bases"]) == (1234, 56789)
    assert row["Peak memory (MB)"] > 0


def test_pictures_need_matplotlib(monkeypatch):
    monkeypatch.setattr("bellapy.report.pictures.find_spec", lambda name: None)
    for path in ("run.html", "run.png"):
        with pytest.raises(ParameterError, match="--report run.*matplotlib is not installed"):
            check_kind(path)
    check_kind("run.json")


@pytest.mark.parametrize(("largest", "bins"), [(0, 50), (1, 50), (7, 50), (50, 50), (12_345, 50), (1e6, 7)])
def test_round_edges(largest, bins):
    edges = round_edges(largest, bins)
    assert edges[0] == 0
    assert edges[-1] > largest
    assert len(edges) <= bins + 3
    np.testing.assert_allclose(np.diff(edges), edges[1])


def test_histograms_count_everything():
    chart = histogram_of(np.array([0, 1, 5, 10, 99]), np.arange(11), "t", "a", "x", "y")
    assert sum(chart.counts) == 5
    assert chart.counts[-1] == 2


def test_overlap_makes_a_page(tmp_path):
    data = Path(__file__).parents[2] / "data" / "lambda_reads.fastq.gz"
    page, told = tmp_path / "run.html", tmp_path / "run.json"
    for report in (page, told):
        command = ["overlap", str(data), "-o", str(tmp_path / "x.paf"), "--report", str(report)]
        subprocess.run([sys.executable, "-m", "bellapy", *command], check=True, capture_output=True)
    charts = {chart["title"]: chart for chart in json.loads(told.read_text())["charts"]}
    rows = [line.split("\t") for line in (tmp_path / "x.paf").read_text().splitlines()]
    assert sum(charts["Lengths of overlaps"]["counts"]) == len(rows)
    assert sum(charts["Identity of overlaps"]["counts"]) == len(rows)
    assert sum(map(sum, charts["Score and length"]["counts"])) == len(rows)
    assert sum(charts["Read lengths"]["counts"]) == 236
    number = {}
    for row in rows:
        for name in (row[0], row[5]):
            number[name] = number.get(name, 0) + 1
    edges, counts = charts["Overlaps of a read"]["edges"], charts["Overlaps of a read"]["counts"]
    inside = np.histogram(np.minimum([*number.values(), *[0] * (236 - len(number))], edges[-1] - 1e-9), edges)[0]
    assert counts == inside.tolist()
    text = page.read_text()
    Page(text)
    assert len(text) < 2_000_000
    assert all(title in text for title in charts)
