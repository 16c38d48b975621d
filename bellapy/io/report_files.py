"""The file of `--report`: a page, pictures, a section of MultiQC or JSON, by its name."""

from __future__ import annotations

from bellapy.errors import ParameterError
from bellapy.io.outputs import ALIGNMENTS, ending_of, open_output, whole_files
from bellapy.report.multiqc import ENDING, make_multiqc
from bellapy.report.run_report import RunReport

PICTURES = (".png", ".svg")
PAGE = ".html"
OTHERS = ("pdf", "jpg", "jpeg", "gif", "eps", "ps", "tif", "tiff", "htm", "txt", "tsv", "csv", "xlsx", "md", *ALIGNMENTS)
"""What a report is not, though its name may say so."""


def check_kind(path: str) -> None:
    """Raise ParameterError before the work begins if the report cannot be made."""
    if ending_of(path) in OTHERS:
        raise ParameterError(f"--report {path}: reports are .html, .png, .svg and .json")
    if path.lower().endswith((PAGE, *PICTURES)):
        from bellapy.report.pictures import check_pictures

        check_pictures(f"--report {path}")


def write_report(report: RunReport, path: str) -> None:
    """Write a finished report."""
    from bellapy.report import page, pictures

    if path.lower().endswith(PICTURES):
        with whole_files(path) as (written,):
            pictures.draw_sheet(report.charts, f"bellapy {report.version}: {report.command}", written, ending_of(path))
        return
    if path.lower().endswith(PAGE):
        text = page.make_page(report)
    elif path.lower().endswith(ENDING):
        text = make_multiqc(report, path)
    else:
        text = report.to_json()
    with open_output(path) as stream:
        stream.write(text)
