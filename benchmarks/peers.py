"""bellapy and the programs it is compared with: how each is run, and how its output becomes PAF.

Programs are looked for on PATH; a missing one is named and left out.  What is timed is the program's own work, from reads to
its own output: fasta2DB, DBsplit, daligner and LAshow for daligner.  Changing formats before and after is not timed.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

BELLA_OPTIONS = {"ecq20": "-e 0.03", "hifi20": "-e 0.005 -u 30", "elba": "-e 0.005 -u 60", "lambda": "-e 0.20 -x 25"}
BELLA_DEFAULTS = "-e 0.15 -k 17 -l 2 -u 8 -x 7"


@dataclass(frozen=True)
class Job:
    """reads : FASTA or FASTQ.  folder : for the program's files, with the PAF at the end.  name : of the set."""

    reads: Path
    folder: Path
    name: str = ""
    threads: int = 1
    options: str = ""

    @property
    def paf(self) -> Path:
        return self.folder / "overlaps.paf"


@dataclass(frozen=True)
class Tool:
    """programs : have to be on PATH.  command : the shell command that is timed.  prepare, convert : not timed."""

    programs: tuple[str, ...]
    command: Callable[[Job], str]
    prepare: Callable[[Job], None] = lambda job: None
    convert: Callable[[Job], None] = lambda job: None

    @property
    def missing(self) -> list[str]:
        return [program for program in self.programs if not shutil.which(program)]


def program_of_bellapy() -> str:
    """The `bellapy` beside the Python that runs this, else the one on PATH."""
    beside = Path(sys.executable).parent / "bellapy"
    return str(beside) if beside.is_file() else "bellapy"


def _bellapy(job: Job) -> str:
    report = quote(str(job.folder / "report.json"))
    program, reads, paf = (quote(str(word)) for word in (program_of_bellapy(), job.reads, job.paf))
    return f"{program} overlap {reads} -o {paf} -t {job.threads} --report {report} {job.options}"


def _minimap2(options: str) -> Callable[[Job], str]:
    def command(job: Job) -> str:
        reads = quote(str(job.reads))
        return f"minimap2 {options} -t {job.threads} {reads} {reads} > {quote(str(job.paf))}"

    return command


def _daligner(options: str) -> Callable[[Job], str]:
    def command(job: Job) -> str:
        align = f"daligner -T{job.threads} {options} X X"
        steps = ("fasta2DB X X.fasta", "DBsplit -s400 -x0 X", align, "LAshow X *.las > X.txt")
        return f"cd {quote(str(job.folder))}; rm -f *.las X.db .X.*; " + "; ".join(steps)

    return command


def read_records(path: Path) -> Iterator[tuple[str, str]]:
    """Name and bases of every record of a FASTA or four-line FASTQ file, plain or gzip."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else open(path) as lines:
        name, bases, is_fasta = "", [], True
        for line in lines:
            if line.startswith("@") and (not name or not is_fasta):
                is_fasta = False
                name = line[1:].split()[0]
                yield name, next(lines).strip()
                next(lines), next(lines)
            elif line.startswith(">"):
                if name:
                    yield name, "".join(bases)
                name, bases = line[1:].split()[0], []
            else:
                bases.append(line.strip())
        if name and is_fasta:
            yield name, "".join(bases)


def _prepare_daligner(job: Job) -> None:
    """FASTA with the headers that fasta2DB wants: movie/well/start_end; wells are numbered from 1 in order."""
    with open(job.folder / "X.fasta", "w") as fasta, open(job.folder / "names.tsv", "w") as names:
        for well, (name, bases) in enumerate(read_records(job.reads), 1):
            rows = "\n".join(bases[at : at + 80] for at in range(0, len(bases), 80))
            fasta.write(f">reads/{well}/0_{len(bases)} RQ=0.850\n{rows}\n")
            names.write(f"{name}\t{len(bases)}\n")


LASHOW_LINE = re.compile(
    r"\s*(?P<query>[\d,]+)\s+(?P<target>[\d,]+)\s+(?P<strand>[nc])\s+[\[<]\s*(?P<start>[\d,]+)\.\.\s*(?P<end>[\d,]+)[\]>]"
    r"\s+x\s+[\[<]\s*(?P<first>[\d,]+)\.\.\s*(?P<last>[\d,]+)[\]>].*~\s*(?P<error>[\d.]+)\s*%"
)


def _convert_daligner(job: Job) -> None:
    """LAshow's lines as PAF; of each pair, which daligner gives both ways, the line whose query comes first in the file."""
    reads = [line.rstrip("\n").split("\t") for line in open(job.folder / "names.tsv")]
    with open(job.folder / "X.txt") as lines, open(job.paf, "w") as paf:
        for line in lines:
            if (found := LASHOW_LINE.match(line)) is None:
                if re.match(r"\s*[\d,]+\s+[\d,]+\s+[nc]\s", line):
                    raise ValueError(f"a line of LAshow that is not understood: {line!r}")
                continue
            field = {key: value.replace(",", "") for key, value in found.groupdict().items()}
            query, target, *ends = (int(field[key]) for key in ("query", "target", "start", "end", "first", "last"))
            if query > target:
                continue
            span = ends[1] - ends[0]
            matches = round(span * (1 - float(field["error"]) / 100))
            strand = "+" if field["strand"] == "n" else "-"
            on_target = sorted(ends[2:])  # descending where the strands are opposite
            columns = (*reads[query - 1], *ends[:2], strand, *reads[target - 1], *on_target, matches, span, 255)
            print(*columns, sep="\t", file=paf)


def _prepare_bella(job: Job) -> None:
    """BELLA reads a list of plain FASTQ files."""
    fastq = job.reads
    if fastq.suffix not in (".fastq", ".fq"):
        fastq = job.folder / "X.fastq"
        fastq.write_text("".join(f"@{name}\n{bases}\n+\n{'5' * len(bases)}\n" for name, bases in read_records(job.reads)))
    (job.folder / "X.fofn").write_text(f"{fastq}\n")


def _bella(job: Job) -> str:
    options = f"{BELLA_DEFAULTS} {job.options or BELLA_OPTIONS.get(job.name, '')}"
    return f"cd {quote(str(job.folder))}; rm -f X.out; OMP_NUM_THREADS={job.threads} bella -f X.fofn -o X --paf {options}"


def _convert_bella(job: Job) -> None:
    """Left as it is: the score stands in column 10 and an estimate of the overlap in column 11."""
    (job.folder / "X.out").replace(job.paf)


DALIGNER = ("fasta2DB", "DBsplit", "daligner", "LAshow")
TOOLS: dict[str, Tool] = {
    "bellapy": Tool((program_of_bellapy(),), _bellapy),
    "minimap2 ava-pb": Tool(("minimap2",), _minimap2("-x ava-pb")),
    "minimap2 ava-pb -c": Tool(("minimap2",), _minimap2("-x ava-pb -c")),
    "minimap2 ava-ont": Tool(("minimap2",), _minimap2("-x ava-ont")),
    "minimap2 ava-ont -c": Tool(("minimap2",), _minimap2("-x ava-ont -c")),
    "daligner": Tool(DALIGNER, _daligner("-k14 -h35 -e.70 -l500"), _prepare_daligner, _convert_daligner),
    "bella": Tool(("bella",), _bella, _prepare_bella, _convert_bella),
}


def choose_tools(names: str) -> dict[str, Tool]:
    """Tools by comma-separated names, bellapy first; missing ones are named on standard error and left out."""
    chosen = [name for name in names.split(",") if name]
    if unknown := set(chosen) - TOOLS.keys():
        raise SystemExit(f"unknown tools: {', '.join(sorted(unknown))}; choose from {', '.join(TOOLS)}")
    wanted = {name: TOOLS[name] for name in ("bellapy", *chosen)}
    for name, tool in wanted.items():
        if tool.missing:
            print(f"{name} is left out: not on PATH: {', '.join(tool.missing)}", file=sys.stderr)
    return {name: tool for name, tool in wanted.items() if not tool.missing}


def version_of(program: str) -> str:
    """What the program says of its version, else the start of its checksum."""
    path = shutil.which(program)
    if not path:
        return "not found"
    options = {"minimap2": "--version", "racon": "--version", "samtools": "--version", "miniasm": "-V"}
    if option := options.get(Path(program).name):
        return subprocess.run([path, option], capture_output=True, text=True, errors="replace").stdout.split("\n")[0].strip()
    return "sha256 " + hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12]
