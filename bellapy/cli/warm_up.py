"""The command `warm-up`."""

from __future__ import annotations

from typing import Annotated

import typer

from bellapy.compute.code_cache import folder
from bellapy.errors import BellapyError, ParameterError
from bellapy.params import DEVICES
from bellapy.report.log import logger, set_up_logging


def warm_up(
    commands: Annotated[list[str] | None, typer.Argument(help="Commands to compile for; all unless given.")] = None,
    device: Annotated[str, typer.Option(help="Compile for cpu, cuda, or what there is (auto).")] = "auto",
    threads: Annotated[int, typer.Option("--threads", "-t", min=1, help="Processes that compile at a time.")] = 4,
) -> None:
    """Compile what commands need, and keep it."""
    from bellapy.jobs.warm_up import RUNS, warm_up

    set_up_logging(False, False)
    if device not in DEVICES:
        raise ParameterError(f"--device {device}: choose from {', '.join(DEVICES)}")
    unknown = [name for name in commands or () if name not in RUNS]
    if unknown:
        raise ParameterError(f"{unknown[0]}: nothing to compile for; known are {', '.join(RUNS)}")
    failed = []
    for warmed in warm_up(commands or list(RUNS), device, threads):
        logger.info("%s (%.1f s)%s", warmed.command, warmed.seconds, f": {warmed.error}" if warmed.error else "")
        failed += [warmed.command] if warmed.error else []
    if failed:
        raise BellapyError(f"{len(failed)} of the runs failed: {', '.join(failed)}")
    logger.info("compiled code is in %s", folder())
