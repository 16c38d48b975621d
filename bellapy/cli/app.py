"""The program: its commands, each loaded when it is asked for, and exit codes.  The only module that ends the process."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import Annotated, Any, NamedTuple, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from bellapy.cli.values import quickly
from bellapy.compute import own_process
from bellapy.errors import INTERRUPTED, BellapyError, MemoryLimitError, OutputClosed, ParameterError
from bellapy.version import __version__


class Entry(NamedTuple):
    """A command: its help, and where its function stands."""

    help: str
    module: str
    function: str


COMMANDS = {
    "overlap": Entry("Overlaps of all reads with each other: the whole job, as PAF, SAM or BAM.", "overlap", "overlap"),
    "correct": Entry("Correct reads by each other: the same reads, whole, with far fewer errors.", "correct", "correct"),
    "assemble": Entry("Reads to contigs: complete, circular genomes with their plasmids.", "assemble", "assemble"),
    "polish": Entry("Correct the contigs of any assembler by the reads that map to them.", "assemble", "polish"),
    "map": Entry("Map reads, which come second, to a reference; BAM is sorted and indexed.", "map", "map_command"),
    "index": Entry("Make the index of a reference once, for many runs of `map`.", "map", "index_command"),
    "exact": Entry(
        "The optimal alignment of a query (first) and a target (second) with affine gaps: provably no other scores higher.",
        "exact", "exact",
    ),
    "wga": Entry("Align two genomes, target first: all local alignments, as sensitive as LASTZ.", "wga", "wga"),
    "extend": Entry(
        "Extend given seeds: index, score, query start and end, target start and end of each pair; with paths, their tags.",
        "extend", "extend",
    ),
    "pairwise": Entry(
        "Align given pairs, query first, with affine gap costs: score and ends of each.", "map", "pairwise"
    ),
    "consensus": Entry("Consensus of windows of sequences by partial-order alignment.", "consensus", "consensus"),
    "evaluate": Entry(
        "Recall, precision and end errors against where the reads truly lie, as JSON.", "evaluate", "evaluate"
    ),
    "count": Entry("Step 1 of 4: count k-mers and keep the reliable ones with their places.", "overlap", "count"),
    "candidates": Entry("Step 2 of 4: the sparse product and seeds of all candidate pairs.", "overlap", "candidates"),
    "align": Entry("Step 3 of 4: X-drop extension of the seeds.", "overlap", "align"),
    "filter": Entry(
        "Step 4 of 4: keep the alignments that are overlaps; writes PAF, SAM or BAM.", "overlap", "filter_command"
    ),
    "plan": Entry("Cut a large job into tasks in a folder, for batch systems.", "tiles", "plan"),
    "run-tile": Entry("Do tasks of a planned job.", "tiles", "run_tile"),
    "gather": Entry("Write the overlaps of a planned job whose tasks are done.", "tiles", "gather"),
    "stage-options": Entry(
        "Print those options of overlap that a stage takes; for workflows.", "stage_options", "stage_options"
    ),
    "view": Entry(
        "Look at a read's overlaps, at a pair of reads or at a place base by base, in the terminal or as a picture.", "view",
        "view",
    ),
    "warm-up": Entry("Compile what the commands need, so that their first runs need not.", "warm_up", "warm_up"),
    "info": Entry("Versions, processor, devices and where compiled code is cached.", "info", "info"),
}  # fmt: skip


@cache
def load_command(name: str) -> TyperCommand:
    """The parser of a command."""
    from bellapy.cli.options import make_command

    entry = COMMANDS[name]
    return make_command(name, entry.help, getattr(import_module(f"bellapy.cli.{entry.module}"), entry.function))


class Commands(TyperGroup):
    """All commands; help and a command's own run need not load the others."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names."""
        return list(COMMANDS)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is asked for; ParameterError names the nearest where there is none."""
        name = args[0] if args else ""
        if name and name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            near = get_close_matches(name, COMMANDS, 1)
            meant = f"did you mean `bellapy {near[0]}`?" if near else "`bellapy -h` shows all"
            raise ParameterError(f"{name}: there is no such command; {meant}")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | None:
        """The parser of one of them."""
        return load_command(cmd_name) if cmd_name in COMMANDS else None

    def get_params(self, ctx: Any) -> list[Any]:
        """Options before the command."""
        return quickly(super().get_params(ctx), {})

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Their part of the help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])


app = typer.Typer(
    name="bellapy",
    help="Align long reads: find their overlaps, correct them, map them; align sequences and genomes.",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(show: bool) -> None:
    if show:
        typer.echo(f"bellapy {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line and end the process: 0, 1 (input, output), 2 (usage); `stopping` has what signals do."""
    _open_standard_streams()
    own_process.claim()
    _leave(_guarded(app))


def _leave(code: int) -> NoReturn:
    """End the process at once: the system frees memory and devices faster than the interpreter and the driver do."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)


def _open_standard_streams() -> None:
    """No file may get the number of a stream that is closed: libraries would write into it."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")


def _guarded(command: Callable[..., Any]) -> int:
    debug = "--debug" in sys.argv
    try:
        try:
            command(prog_name="bellapy", standalone_mode=True)
            code = 0
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
        if sys.stdout is not None:
            sys.stdout.flush()  # help and version, which may stand there still
        return code
    except BrokenPipeError:  # the reader of our output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OutputClosed.exit_code
    except KeyboardInterrupt:
        print(INTERRUPTED, file=sys.stderr)
        return 130
    except OSError as error:  # a stage that writes or reads a file tells its own; help and version are left
        if debug:
            raise
        from bellapy.io.outputs import silence_stdout

        silence_stdout()
        where = error.filename or ("standard output" if error.errno else "a library cannot be loaded")
        print(f"bellapy: error: {where}: {error.strerror or error}", file=sys.stderr)
        return 1
    except BellapyError as error:
        if debug:
            raise
        if isinstance(error, OutputClosed):
            return error.exit_code
        less = _less_memory("--sampling") if isinstance(error, MemoryLimitError) else ""
        print(f"bellapy: error: {error}{less}", file=sys.stderr)
        return error.exit_code
    except Exception as error:
        told = None if debug else _explained(error)
        if told is None:
            raise
        print(f"bellapy: error: {told}", file=sys.stderr)
        return 1


def _explained(error: Exception) -> str | None:
    """What a user can do about an error that is not the package's own; None: it is a fault of ours."""
    if isinstance(error, MemoryError):
        less = _less_memory("--max-memory", "--sampling") or " Use fewer threads (-t), or a machine with more."
        return f"out of memory.{less}"
    if isinstance(error, RuntimeError) and "start new thread" in str(error):
        return f"{error}; use fewer threads (-t), or allow more (ulimit -u, ulimit -v)"
    from bellapy.compute.code_cache import folder, remove_damaged

    if remove_damaged(error):
        return f"{folder()}: this compiled code is damaged; it is removed: run the command again"
    return None


LESS_MEMORY = {"--max-memory": "--max-memory bounds it.", "--sampling": "--sampling fraction needs less."}


def _less_memory(*options: str) -> str:
    """What else may help, of options that the command has."""
    command = next((word for word in sys.argv[1:] if word in COMMANDS), None)
    known = {name for param in load_command(command).params for name in param.opts} if command else set()
    return "".join(f" {LESS_MEMORY[option]}" for option in options if option in known)
