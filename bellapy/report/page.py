"""The report as a page to look at: one file that needs no other and no connection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from bellapy.report.charts import Chart, Curves, Density, Histogram, Levels
from bellapy.report.pictures import page_picture
from bellapy.report.results import results_of
from bellapy.report.run_report import RunReport

SHOWN_ROWS = 200  # of a chart's numbers
UNITS = {"wall_s": "Wall time", "cpu_s": "CPU time", "compile_s": "Compiling", "peak_memory_bytes": "Peak memory"}


def make_page(report: RunReport) -> bytes:
    """A finished report as HTML."""
    told = report.to_dict()
    charts = [*report.charts, *_times(report)]
    sections = {
        "Results": _figures(results_of(report)),
        "Estimates": _figures(told["estimates"]),
        "Charts": f'<div class="charts">{"".join(map(_chart, charts, range(len(charts))))}</div>' if charts else "",
        "Stages": _stages(told["stages"]),
        "Dropped": _dropped(told["dropped"]),
        "Devices": _devices(told["devices"]),
        "Time and memory": _taken(told),
        "Parameters": _parameters(told["parameters"]),
    }
    shown = {name: text for name, text in sections.items() if text}
    ids = {name: name.lower().replace(" ", "-") for name in shown}
    links = "".join(f'<li><a href="#{ids[name]}">{name}</a></li>' for name in shown)
    body = "".join(
        f'<section aria-labelledby="{ids[name]}"><h2 id="{ids[name]}">{name}</h2>{text}</section>'
        for name, text in shown.items()
    )
    warnings = "".join(f'<p class="warning">Warning: {escape(text)}</p>' for text in report.warnings)
    versions = ", ".join(f"{name} {number}" for name, number in told["versions"].items())
    style = files("bellapy.report").joinpath("page.css").read_text(encoding="utf-8")
    job = escape(report.job)
    page = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>bellapy {job}: report</title>
<link rel="icon" href="data:,">
<style>
{style}</style>
</head>
<body>
<header>
<h1>bellapy {job}</h1>
<p>{escape(told["date"])}, {escape(versions)}</p>
<pre>{escape(report.command)}</pre>
{warnings}<nav aria-label="Sections"><ul>{links}</ul></nav>
</header>
<main>
{body}
</main>
<footer><p>docs/report.md explains every number. The same numbers come as JSON with --report run.json.</p></footer>
</body>
</html>
"""
    return page.encode(errors="backslashreplace")


def _figures(numbers: Mapping[str, Any]) -> str:
    """What came out, or what was learnt from the input."""
    return _list({_words(name): _value(value) for name, value in numbers.items() if value not in (None, "")})


def _taken(told: Mapping[str, Any]) -> str:
    """What the run took."""
    return _list({UNITS[name]: _amount(name, told[name]) for name in UNITS if told[name]})


def _list(shown: Mapping[str, str]) -> str:
    cells = "".join(f"<div><dt>{escape(name)}</dt><dd>{text}</dd></div>" for name, text in shown.items())
    return f"<dl>{cells}</dl>" if cells else ""


def _times(report: RunReport) -> list[Chart]:
    """How long the stages took."""
    if not report.stages:
        return []
    names, times = [_words(stage.stage) for stage in report.stages], [stage.wall_s for stage in report.stages]
    return [Levels("Time of stages", "Wall time of each stage, compiling included.", "seconds", "", names, times)]


def _chart(chart: Chart, number: int) -> str:
    return (
        f'<figure><h3>{escape(chart.title)}</h3><div role="img" aria-label="{escape(chart.title)}: {escape(chart.about)}">'
        f"{page_picture(chart, number)}</div><figcaption>{escape(chart.about)}</figcaption>{_numbers(chart)}</figure>"
    )


def _numbers(chart: Chart) -> str:
    """The numbers of a chart as a table that opens; those of a grid are too many."""
    if isinstance(chart, Histogram):
        rows: list[Sequence[Any]] = [
            (f"{low:,.6g} to {high:,.6g}", n)
            for low, high, n in zip(chart.edges, chart.edges[1:], chart.counts, strict=False)
            if n
        ]
        head: Sequence[str] = (chart.x_label, chart.y_label)
    elif isinstance(chart, Levels):
        head, rows = ("", chart.x_label), list(zip(chart.names, chart.values, strict=True))
    elif isinstance(chart, Curves) and chart.curves:
        head = (chart.x_label, *(curve.name for curve in chart.curves))
        rows = list(zip(chart.curves[0].x, *(curve.y for curve in chart.curves), strict=True))
    else:
        assert isinstance(chart, (Curves, Density))
        return ""
    more = f"<p>The first {SHOWN_ROWS} of {len(rows)} rows.</p>" if len(rows) > SHOWN_ROWS else ""
    return f"<details><summary>Numbers</summary>{_table(head, rows[:SHOWN_ROWS], chart.title)}{more}</details>"


def _stages(stages: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        (
            _words(stage["stage"]), *(_amount(name, stage[name]) for name in UNITS),
            ", ".join(f"{_value(n)} {_words(name).lower()}" for name, n in stage.items() if name not in ("stage", *UNITS)),
        )
        for stage in stages
    ]  # fmt: skip
    return _table(("Stage", *UNITS.values(), "What"), rows, "Time and memory of every stage", words=5) if rows else ""


def _dropped(counts: Mapping[str, int]) -> str:
    rows = [(reason.capitalize(), n) for reason, n in counts.items()]
    return _table(("Reason", "Dropped"), rows, "What was dropped, and why") if rows else ""


def _devices(devices: Sequence[Mapping[str, Any]]) -> str:
    if not devices:
        return ""
    names = list(devices[0])
    return _table(
        [_words(name) for name in names], [[device[name] for name in names] for device in devices], "What GPUs did"
    )


def _parameters(groups: Mapping[str, Any]) -> str:
    rows = [
        (_words(group), _words(name), _value(value))
        for group, values in groups.items()
        for name, value in (values.items() if isinstance(values, Mapping) else [(group, values)])
    ]
    head = ("Group", "Parameter", "Value")
    return f"<details><summary>All parameters</summary>{_table(head, rows, 'Parameters')}</details>" if rows else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]], caption: str, words: int | None = None) -> str:
    """A table, in a box that scrolls where the page is narrow; `words`: a column of text."""
    first = "".join(map(_head, head, (i == words for i in range(len(head)))))
    body = "".join(f"<tr>{''.join(_cell(cell, i == words) for i, cell in enumerate(row))}</tr>" for row in rows)
    name = escape(caption)
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{name}"><table><caption>{name}</caption>'
        f"<thead><tr>{first}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _head(name: str, words: bool) -> str:
    kind = ' class="words"' if words else ""
    return f'<th scope="col"{kind}>{escape(name)}</th>' if name else "<td></td>"


def _cell(value: Any, words: bool) -> str:
    return f'<td class="words">{_value(value)}</td>' if words else f"<td>{_value(value)}</td>"


def _words(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _amount(name: str, value: float) -> str:
    return f"{value / 1e6:,.0f} MB" if name.endswith("_bytes") else f"{value:,.2f} s"


def _value(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "not set"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.4g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_value, value))
    return escape(str(value))
