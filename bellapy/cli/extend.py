"""The command `extend`."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from bellapy.cli.options import THREADS_AND_LOG, Given, Output, pick, takes
from bellapy.cli.session import session, with_run
from bellapy.io.outputs import open_output
from bellapy.params import ExtensionParams, make_params
from bellapy.params.fields import ALIGNMENT, SEEDING, given_values
from bellapy.params.overlap import FIELDS, WritingParams
from bellapy.params.run import RunParams

Pairs = Annotated[str, typer.Argument(help="Query, its seed's start, target, its seed's start, n or c (tab-separated).")]
K = Annotated[int, typer.Option("-k", help="Bases of a seed.", show_default=False, rich_help_panel=SEEDING)]
XDrop = Annotated[
    int,
    typer.Option(
        "-x",
        "--xdrop",
        help="Stop where the score falls so far below the best.",
        show_default=False,
        rich_help_panel=ALIGNMENT,
    ),
]

_END = pick(ExtensionParams, "extension")["extension"]
_ABOUT = "Where an alignment ends: at the best score, or where the extension stopped, as in SeqAn"
END = replace(_END, default="best", about=replace(_END.about, help=_ABOUT, choices=("best", "longest")))
"""Where an extension ends; the tilt of `homology` is learnt from whole sets of reads."""


@takes(
    pick(ExtensionParams, "match mismatch gap"), {"extension": END}, pick(WritingParams, "cigar cs"),
    pick(RunParams, "device"),
    THREADS_AND_LOG,
)  # fmt: skip
def extend(given: Given, pairs: Pairs, k: K, xdrop: XDrop, output: Output = "-") -> None:
    """Alignments of given seeds."""
    params = make_params(xdrop=xdrop, **{"extension": END.default, **given_values(given, FIELDS)})
    with session(given, [pairs], {"-o": output}) as run:
        params = with_run(params, run)
        run.report.parameters = params.to_dict()
        from bellapy.jobs.extend import extend_pairs

        cigar, cs = bool(given["cigar"]), bool(given["cs"])
        with open_output(output) as stream:
            for lines in extend_pairs(pairs, k, params, run.report, cigar=cigar, cs=cs):
                stream.write(lines)
