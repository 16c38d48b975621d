"""Charts as pictures, drawn by matplotlib: one for a page, which takes the page's colours, or a sheet of all."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from bellapy.errors import ParameterError
from bellapy.report.charts import Chart, Curves, Density, Histogram, Levels

if TYPE_CHECKING:  # loaded when needed
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, BAR, LINE, SECOND, THIRD = "#010203", "#010204", "#010205", "#010206", "#010207"
"""Stand for the colours of the page until the picture is put there."""

ON_PAGE = {INK: "currentColor", BAR: "var(--bar)", LINE: "var(--line)", SECOND: "var(--second)", THIRD: "var(--third)"}
ON_PAPER = {INK: "#1a1a1a", BAR: "#4f86b8", LINE: "#b3400f", SECOND: "#4b7a2f", THIRD: "#6d4a9c"}
CLOUD = (0.31, 0.53, 0.72)  # seen on light and on dark ground
CELL = (6.4, 3.6)  # inches
PLOTS = (".png", ".svg", ".pdf")
PARTS = "backends.backend_agg", "backends.backend_svg", "collections", "colors", "figure", "lines", "patches"
MOST_LETTERS = 50  # of a name in a picture
BELOW = {"loc": "outside lower center", "ncols": 6, "frameon": False}
"""Where the legend of a figure with the layout "constrained" covers nothing."""


def short_name(name: str, most: int = MOST_LETTERS) -> str:
    """A name, of which the middle is left out where it is long: sequencers give names that differ at their ends."""
    half = (most - 1) // 2
    return name if len(name) <= most else f"{name[:half]}…{name[-half:]}"


def check_pictures(asked: str) -> None:
    """Raise ParameterError before the work begins if no picture can be drawn; `asked`: the option that wants one."""
    if find_spec("matplotlib") is None:
        raise ParameterError(f"{asked}: matplotlib is not installed; run pip install matplotlib")


def check_plot(option: str, path: str) -> None:
    """Raise ParameterError before the work begins if no picture can be drawn; `option`: the one that names its file."""
    if not path.lower().endswith(PLOTS):
        raise ParameterError(f"{option} {path}: the name does not tell the kind of picture; end it in {', '.join(PLOTS)}")
    check_pictures(f"{option} {path}")


def load_drawing() -> Any:
    """matplotlib, which is optional, with the parts of it that draw."""
    import matplotlib

    for part in PARTS:
        import_module(f"matplotlib.{part}")
    return matplotlib


def new_figure(size: tuple[float, float], dpi: int, layout: str | None = "constrained") -> Figure:
    """An empty figure, size in inches."""
    drawing = load_drawing()
    figure = drawing.figure.Figure(figsize=size, dpi=dpi, layout=layout)
    drawing.backends.backend_agg.FigureCanvasAgg(figure)
    return figure


def page_picture(chart: Chart, number: int) -> str:
    """A chart as an SVG element in the colours of the page; `number` tells its parts from those of other charts there."""
    drawing = load_drawing()
    figure = drawing.figure.Figure(figsize=CELL)
    drawing.backends.backend_svg.FigureCanvasSVG(figure)
    stream = io.StringIO()
    with drawing.rc_context({"svg.fonttype": "none", "svg.hashsalt": f"chart {number}", "font.family": "sans-serif"}):
        draw(figure.add_subplot(), chart)
        figure.tight_layout()
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\s*<style type="text/css">.*?</style>', "", text, flags=re.DOTALL)
    text = re.sub(r'<svg ([^>]*?)width="[^"]*" height="[^"]*"|<svg ', _opening, text, count=1)
    text = re.sub(r'(?<=id=")(?=figure|axes|patch|text|line2d|matplotlib|xtick|ytick|legend|image)', f"c{number}-", text)
    return _coloured(text, ON_PAGE)


def _opening(found: re.Match[str]) -> str:
    return f'<svg aria-hidden="true" focusable="false" {found.group(1) or ""}'


def draw_sheet(charts: Sequence[Chart], title: str, path: str, kind: str) -> None:
    """Draw all charts on one sheet, as a file of a kind that matplotlib knows."""
    columns = min(2, max(1, len(charts)))
    rows = max(1, -(-len(charts) // columns))
    figure = new_figure((CELL[0] * columns, CELL[1] * rows + 0.6), 120, None)
    for i, chart in enumerate(charts):
        draw(figure.add_subplot(rows, columns, i + 1), chart, ON_PAPER)
    figure.suptitle(title, fontsize=9, wrap=True)
    figure.tight_layout()
    with load_drawing().rc_context({"svg.hashsalt": "sheet"}):  # the same file each time
        figure.savefig(path, format=kind, metadata={"Date": None} if kind == "svg" else None)


def draw(axes: Axes, chart: Chart, colours: dict[str, str] | None = None) -> None:
    """Draw a chart.  colours : for each of those above; None: they stand for themselves."""
    shown = colours or {colour: colour for colour in ON_PAGE}
    if colours:  # a page has the title as text
        axes.set_title(chart.title, fontsize=11, color=shown[INK])
    if isinstance(chart, Levels):
        _levels(axes, chart, shown)
    elif isinstance(chart, Density):
        _density(axes, chart)
    elif isinstance(chart, Histogram):
        axes.stairs(chart.counts, chart.edges, fill=True, color=shown[BAR])
        if chart.log_y and any(chart.counts):  # matplotlib warns where there is nothing to scale
            axes.set_yscale("log", nonpositive="clip")
        axes.set_ylim(bottom=0.5 if chart.log_y else 0)
    _over(axes, chart, shown)
    axes.set_xlabel(chart.x_label, color=shown[INK])
    axes.set_ylabel(chart.y_label, color=shown[INK])
    axes.tick_params(colors=shown[INK], labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    for side in ("bottom", "left"):
        axes.spines[side].set_color(shown[INK])


def _over(axes: Axes, chart: Chart, shown: dict[str, str]) -> None:
    """Curves and marks, with their names."""
    if not isinstance(chart, (Curves, Density, Histogram)):
        return
    colours = [shown[LINE], shown[SECOND], shown[THIRD]]
    for i, curve in enumerate(chart.curves):
        axes.plot(curve.x, curve.y, color=colours[i % 3], linewidth=1.4, label=curve.name)
    marks: Any = getattr(chart, "marks", ())
    for i, mark in enumerate(marks):
        style = ("--", ":", "-.")[i % 3]
        axes.axvline(mark.x, color=shown[INK], linewidth=1, linestyle=style, label=mark.name)
    if chart.curves or marks:
        axes.legend(fontsize=8, frameon=False, labelcolor=shown[INK])


def _levels(axes: Axes, chart: Levels, shown: dict[str, str]) -> None:
    names = range(len(chart.names))
    axes.barh(names, chart.values, color=shown[BAR])
    axes.set_yticks(names, chart.names)
    axes.invert_yaxis()
    for i, value in zip(names, chart.values, strict=True):
        axes.text(value, i, f" {value:,.4g}", va="center", fontsize=8, color=shown[INK])
    axes.margins(x=0.12)


def _density(axes: Axes, chart: Density) -> None:
    """Cells the fuller the less they let through; the logarithm of the counts, as a picture of its own."""
    counts = np.array(chart.counts, dtype=float).T
    image = np.zeros((*counts.shape, 4))
    image[..., :3] = CLOUD
    image[..., 3] = np.where(counts > 0, 0.15 + 0.85 * np.log1p(counts) / np.log1p(max(counts.max(initial=0), 1)), 0)
    x, y = chart.x_edges, chart.y_edges
    axes.imshow(image, origin="lower", aspect="auto", extent=(x[0], x[-1], y[0], y[-1]), interpolation="nearest")


def _coloured(text: str, colours: dict[str, str]) -> str:
    for stands, colour in colours.items():
        text = text.replace(stands, colour)
    return text
