"""What surrounds every command: log, checks of files and limits before it, its report after it."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from bellapy.cli.options import Given
from bellapy.compute import own_process, stopping
from bellapy.compute.compiling import watch_compilation
from bellapy.compute.memory import address_space
from bellapy.errors import MemoryLimitError
from bellapy.io.outputs import check_outputs, is_streaming
from bellapy.io.report_files import check_kind, write_report
from bellapy.params import Params
from bellapy.params.fields import check, fields_of, given_values, parse_size
from bellapy.params.run import LogParams, RunParams
from bellapy.report.log import collect_warnings, logger, set_up_logging
from bellapy.report.progress import tell_every_minute
from bellapy.report.run_report import RunReport
from bellapy.version import __version__


@dataclass
class Session:
    """A command while it runs.

    run : threads, device and bound on memory as they are used.  report : what is done.
    """

    run: RunParams
    report: RunReport


@contextmanager
def session(
    given: Given, inputs: Sequence[str], outputs: Mapping[str, str | None], *, keeps_freed: bool = True
) -> Iterator[Session]:  # fmt: skip
    """Set up the log, check what is read and written, and write the report when the block ends without an error.

    In the block signals are heeded while compiled code runs, and compilation and progress are told of.

    outputs : what asks for each file, as the user knows it, and its path; None: no file.
    keeps_freed : much of freed memory is kept for new arrays, which saves a short job time.
    """
    told = LogParams(**given_values(given, LogParams._fields))
    set_up_logging(told.quiet, told.debug)
    run = _within_address_space(run_params(given))
    if not keeps_freed:
        own_process.keep_little_freed()
    elif run.max_memory is None:
        own_process.keep_freed_memory()
    check_outputs({**outputs, "--report": told.report_file}, inputs)
    report = RunReport(_command(), __version__)
    with ExitStack() as stack:
        stack.enter_context(collect_warnings(report.warnings))
        if told.report_file:
            report.wants_charts = True
            check_kind(told.report_file)
        stopping.watch()  # starts a thread: no process may fork after this
        tell_every_minute()
        stack.enter_context(watch_compilation(report))
        try:
            yield Session(run, report)
        except MemoryLimitError:
            if report.compile_s and _can_be_repeated(inputs):
                logger.info("compiling takes memory: starting again with what is compiled now")
                own_process.start_again()
            raise
    report.finish()
    if told.report_file:
        write_report(report, told.report_file)


def with_run(params: Params, session: Session) -> Params:
    """The parameters with threads, device and memory of the session."""
    return replace(params, run=session.run)


def _command() -> str:
    """The command as reports and headers tell it: bytes of a file's name that are not UTF-8 are shown with a backslash."""
    return shlex.join(["bellapy", *sys.argv[1:]]).encode(errors="backslashreplace").decode()


def _can_be_repeated(inputs: Sequence[str]) -> bool:
    """Whether the program can begin anew: what is read is still there, and nothing was written that cannot be taken back."""
    return own_process.may_start_again() and all(map(os.path.isfile, inputs)) and not is_streaming()


def run_params(given: Given) -> RunParams:
    """Threads, device and memory from options; all cores unless said."""
    from bellapy.compute.threads import usable_cores

    known = fields_of(RunParams)
    values = {"threads": usable_cores(), **given_values(given, known)}
    if "max_memory" in values:
        values["max_memory"] = parse_size(values["max_memory"])
    check(values, known)
    return RunParams(**values)


def _within_address_space(run: RunParams) -> RunParams:
    """Never use more memory than addresses allow: libraries that get none end the program."""
    if (space := address_space(run.threads)) is None:
        return run
    own_process.spare_addresses()
    limit = min(space, run.max_memory or space)
    logger.info("ulimit -v: works as with --max-memory %.0fM", limit / 1e6)
    return replace(run, max_memory=limit)
