"""What a run did: told in the log as it happens, kept for `--report` and for those who call the package.

Every number has a field: none can be stored under a name that is not declared.  A job that has more to tell of a stage
derives a record from `Stage`; what it estimated or learnt is a record of its own, `estimates` or `details`.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from bellapy.report.log import cpu_time, logger, peak_memory
from bellapy.report.progress import doing

if TYPE_CHECKING:  # loaded when charts are made
    from bellapy.report.charts import Chart

SCHEMA = 2
"""Raised when a name in the JSON changes its meaning or goes."""

MANY_LETTERS, SHOWN_LETTERS = 0.01, 5  # share of the bases; kinds


@dataclass(slots=True)
class Stage:
    """A stage of a run: wall, CPU and compile time in seconds, and the largest resident memory so far, in bytes."""

    stage: str
    wall_s: float = 0.0
    cpu_s: float = 0.0
    compile_s: float = 0.0
    peak_memory_bytes: int = 0

    def numbers(self) -> dict[str, Any]:
        """What a kind of stage tells beside the fields of all stages, where it is known."""
        own = [f.name for f in fields(self)[len(fields(Stage)) :]]
        return {name: getattr(self, name) for name in own if getattr(self, name) is not None}

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        common = {f.name: getattr(self, f.name) for f in fields(Stage)}
        return {**common, **self.numbers()}


@dataclass(slots=True)
class ReadStage(Stage):
    """Reads and bases that were read."""

    reads: int | None = None
    bases: int | None = None


@dataclass(slots=True)
class WriteStage(Stage):
    """Lines that were written."""

    lines: int | None = None


@dataclass(slots=True)
class DeviceUse:
    """What a device did in this run.

    reads : whose chains were found (`map`).
    extensions, windows, piles : flanks extended or pairs aligned, windows and piles that gave a consensus.
    cells, kernel_s, gcups : cells computed, seconds in kernels, 10^9 cells a second.
    paths, path_s : flanks or pairs whose paths were traced, seconds in kernels for paths alone.
    pile_s : seconds of piles, with transfers, summed over batches that are done at a time.
    seeding_s : seconds of counting, product and seeds, or of index, anchors and chains, with transfers.
    idle_s : seconds during which none of its kernels ran, though there was work.  compile_s : spent on compiling kernels.
    uploaded_bases : of reads that were sent to it.
    """

    name: str
    reads: int = 0
    extensions: int = 0
    windows: int = 0
    piles: int = 0
    cells: int = 0
    kernel_s: float = 0.0
    gcups: float = 0.0
    paths: int = 0
    path_s: float = 0.0
    pile_s: float = 0.0
    seeding_s: float = 0.0
    idle_s: float = 0.0
    compile_s: float = 0.0
    uploaded_bases: int = 0

    @property
    def did_something(self) -> bool:
        done = self.reads, self.extensions, self.paths, self.cells, self.windows, self.piles, self.seeding_s
        return any(done)


class Devices:
    """What each device did in this run; workers add to it side by side."""

    def __init__(self) -> None:
        self._uses: dict[int, DeviceUse] = {}
        self._told: set[str] = set()
        self._lock = Lock()

    def add(self, number: int, name: str, **work: float) -> None:
        """Add to what a device did, by names of `DeviceUse`; the device's `number` sets its place in the list."""
        with self._lock:
            use = self._uses.setdefault(number, DeviceUse(name))
            for what, n in work.items():
                setattr(use, what, getattr(use, what) + n)

    def is_new(self, reason: str) -> bool:
        """Whether this is asked for the first time: what is told once in a run."""
        with self._lock:
            new = reason not in self._told
            self._told.add(reason)
            return new

    def used(self) -> list[DeviceUse]:
        """The devices that did something, with rounded times."""
        with self._lock:
            uses = [use for _, use in sorted(self._uses.items()) if use.did_something]
        return [
            replace(
                use, gcups=round(use.cells / use.kernel_s / 1e9, 1) if use.kernel_s else 0.0,
                kernel_s=round(use.kernel_s, 4), path_s=round(use.path_s, 4), seeding_s=round(use.seeding_s, 4),
                pile_s=round(use.pile_s, 4), idle_s=round(use.idle_s, 4), compile_s=round(use.compile_s, 3),
            )
            for use in uses
        ]  # fmt: skip


class Dropped:
    """How many candidates, alignments or reads were dropped, by reason; a job declares its reasons."""

    def __init__(self, *reasons: str):
        self._counts = dict.fromkeys(reasons, 0)

    def add(self, counts: Mapping[str, int]) -> None:
        """Add to the counts; KeyError for a reason that is not declared."""
        for reason, n in counts.items():
            self._counts[reason] += n

    def to_dict(self) -> dict[str, int]:
        """All counts by reason, zeros too."""
        return dict(self._counts)

    def __str__(self) -> str:
        return describe_dropped(self._counts)


def describe_dropped(counts: Mapping[str, int]) -> str:
    """Counts by reason as the log shows them."""
    return ", ".join(f"{n:,} ({reason})" for reason, n in counts.items() if n) or "none"


SomeStage = TypeVar("SomeStage", bound=Stage)


@dataclass(slots=True)
class RunReport:
    """A run.

    command, version : as they were called.  parameters : by group.  estimates, details : records of the job, or None.
    letters : how often every letter other than A, C, G, T, U and N occurs in the reads.
    charts, warnings : to look at, where the run `wants_charts`; what the log warned of.
    wall_s, cpu_s, compile_s, peak_memory_bytes : of the whole run, as in `Stage`.  date : of its beginning.
    """

    command: str = ""
    version: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    estimates: Any = None
    stages: list[Stage] = field(default_factory=list)
    dropped: Dropped = field(default_factory=Dropped)
    devices: Devices = field(default_factory=Devices)
    letters: dict[str, int] = field(default_factory=dict)
    details: Any = None
    charts: Sequence[Chart] = ()
    warnings: list[str] = field(default_factory=list)
    wants_charts: bool = False
    wall_s: float = 0.0
    cpu_s: float = 0.0
    compile_s: float = 0.0
    peak_memory_bytes: int = 0
    date: str = field(default_factory=lambda: datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"))
    _started: float = field(default_factory=time.perf_counter, repr=False)

    @contextmanager
    def stage(self, stage: SomeStage) -> Iterator[SomeStage]:
        """Time a stage; the numbers put into its record go into its line and into the report."""
        start, cpu, compiled = time.perf_counter(), cpu_time(), self.compile_s
        with doing(stage.stage):
            yield stage
        wall = time.perf_counter() - start
        stage.wall_s, stage.cpu_s = round(wall, 3), round(cpu_time() - cpu, 3)
        stage.compile_s, stage.peak_memory_bytes = round(self.compile_s - compiled, 3), peak_memory()
        self.stages.append(stage)
        what = ", ".join(_told(name, value) for name, value in stage.numbers().items())
        logger.info("%s: %s(%.2f s, peak %.0f MB)", stage.stage, what + " " if what else "", wall, peak_memory() / 1e6)

    def count_letters(self, others: dict[str, int], n_bases: int) -> None:
        """Note how often letters other than A, C, G, T, U and N occur in the reads; tell it where that is often."""
        self.letters = others
        if (n := sum(others.values())) > MANY_LETTERS * n_bases:
            most = sorted(others, key=lambda letter: -others[letter])[:SHOWN_LETTERS]
            logger.warning(
                "%.1f %% of the letters are not A, C, G, T, U or N, and match nothing (mostly %s). Is this the right input?",
                100 * n / n_bases, ", ".join(f"{letter}: {others[letter]:,}" for letter in most),
            )  # fmt: skip

    def finish(self) -> None:
        """The last line: version, command, wall and CPU time, peak memory."""
        wall, cpu = time.perf_counter() - self._started, cpu_time()
        self.wall_s, self.cpu_s, self.compile_s = round(wall, 3), round(cpu, 3), round(self.compile_s, 3)
        self.peak_memory_bytes = peak_memory()
        logger.info(
            "bellapy %s: %s; wall %.2f s, CPU %.2f s, peak %.0f MB",
            self.version, self.command, wall, cpu, self.peak_memory_bytes / 1e6,
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it; docs/report.md says what each name means."""
        return {
            "schema": SCHEMA, "program": "bellapy", "version": self.version, "command": self.command,
            "date": self.date, "versions": versions(self.version),
            "parameters": self.parameters, "estimates": _as_dict(self.estimates),
            "stages": [stage.to_dict() for stage in self.stages], "dropped": self.dropped.to_dict(),
            "devices": [asdict(device) for device in self.devices.used()], "letters": self.letters,
            "details": _as_dict(self.details), "warnings": self.warnings, "charts": list(map(_chart_dict, self.charts)),
            "wall_s": self.wall_s, "cpu_s": self.cpu_s, "compile_s": self.compile_s,
            "peak_memory_bytes": self.peak_memory_bytes,
        }  # fmt: skip

    @property
    def job(self) -> str:
        """The command's name."""
        return (self.command.split() + ["run", "run"])[1]

    def to_json(self) -> bytes:
        """The file of `--report`."""
        return (json.dumps(self.to_dict(), indent=1) + "\n").encode()


def versions(own: str) -> dict[str, str]:
    """Versions of the program, of Python and of the packages that results may depend on, by name."""
    found = {"bellapy": own, "Python": platform.python_version()}
    for name in ("numba", "numpy", "pysam"):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _as_dict(record: Any) -> dict[str, Any]:
    """A record, which may hold others, as JSON holds it; None: nothing is known."""
    if record is None:
        return {}
    given = record._asdict() if hasattr(record, "_asdict") else {f.name: getattr(record, f.name) for f in fields(record)}
    return {name: _as_dict(value) if _is_record(value) else value for name, value in given.items()}


def _chart_dict(chart: Chart) -> dict[str, Any]:
    """A chart as JSON holds it, with its kind."""
    told = {name: list(value) if isinstance(value, tuple) else value for name, value in _as_dict(chart).items()}
    for name in {"curves", "marks"} & told.keys():
        told[name] = [item._asdict() for item in told[name]]
    return {"kind": type(chart).__name__.lower(), **told}


def _is_record(value: Any) -> bool:
    return is_dataclass(value) or hasattr(value, "_asdict")


WORDS = {
    "kmers": "{} k-mers", "second_seeds": "{} of them second ones of a pair",
    "second_pieces": "{} of them second ones of a pair",
    "hsps": "{} ungapped alignments", "lower_bound": "at least {}", "upper_bound": "at most {}",
    "cells_forward": "{} cells computed forward", "cells_backward": "{} cells computed backward",
    "matrix_percent_forward": "{} % of the matrix", "matrix_percent_backward": "{} % of the matrix",
    "aligning_cpu_s": "{} s of CPU time", "packing_cpu_s": "{} s of CPU time for packing",
    "extending_cpu_s": "{} s for extending", "tracing_cpu_s": "{} s for paths",
    "over_origin": "{} over an origin", "around": "{} of them round more than once",
    "with_itself": "{} of a read with itself", "twice": "{} written twice", "templates": "{} reads",
    "ranges": "in {} parts",
}  # fmt: skip
"""How the log tells the numbers of a stage whose names do not say it."""


def _told(name: str, value: Any) -> str:
    """A number of a stage in words."""
    shown = f"{value:,}" if isinstance(value, int) else str(value)
    text = WORDS.get(name, "{} " + name.replace("_", " ")).format(shown)
    return text.removesuffix("s") if value == 1 and isinstance(value, int) else text
