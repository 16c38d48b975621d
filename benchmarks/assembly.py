#!/usr/bin/env python3
"""What assemblers make of the overlaps: miniasm's unitigs from every tool's PAF, and racon on bellapy's.

    python benchmarks/assembly.py unitigs READS [--tools NAMES] [-o RESULT.json]
    python benchmarks/assembly.py racon READS REFERENCE [-o RESULT.json]

`unitigs` needs miniasm.  `racon` needs racon, miniasm and minimap2: it corrects reads by all-vs-all overlaps (racon -f),
with the PAF as it is and with every line also the other way round, and polishes miniasm's draft by reads aligned to it, as
PAF and as SAM: by minimap2, and by bellapy as overlaps of reads and draft, of which those with the draft are taken.
Identity is matching bases by alignment columns of minimap2 -c against the reference, over all primary lines.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import asdict
from pathlib import Path
from shlex import quote

from common import describe_machine, finish, programs_of, run_tool, table
from measure import Usage, measure
from peers import Job, choose_tools, program_of_bellapy, read_records

DEFAULT_TOOLS = "minimap2 ava-pb,daligner,bella"


def unitigs(gfa: Path) -> dict[str, str]:
    """Sequences of the S lines of a GFA file."""
    lines = (line.split("\t") for line in open(gfa) if line.startswith("S\t"))
    return {columns[1]: columns[2].strip() for columns in lines}


def n50(lengths: list[int]) -> int:
    """Length of the sequence that brings the sum, longest first, to half of the total."""
    done = 0
    for length in sorted(lengths, reverse=True):
        done += length
        if 2 * done >= sum(lengths):
            return length
    return 0


def mirror(paf: Path, to: Path) -> None:
    """Every line of a PAF file, then the same with query and target exchanged."""
    lines = [line.rstrip("\n").split("\t") for line in open(paf)]
    with open(to, "w") as stream:
        for line in lines:
            print(*line, sep="\t", file=stream)
            print(*line[5:9], line[4], *line[:4], *line[9:], sep="\t", file=stream)


def run(command: str, log: Path) -> Usage:
    usage = measure(command, log)
    if usage.status:
        raise SystemExit(f"{command}\nexit status {usage.status}\n{log.read_text()[-2000:]}")
    return usage


def describe(path: Path, reference: Path, folder: Path) -> dict:
    """Number, bases and identity of sequences."""
    lengths = [len(bases) for _, bases in read_records(path)]
    paf = folder / "identity.paf"
    run(f"minimap2 -cx map-ont {quote(str(reference))} {quote(str(path))} > {paf}", folder / "log")
    primary = [line.split("\t") for line in open(paf) if "tp:A:P" in line]
    columns = sum(int(line[10]) for line in primary)
    identity = sum(int(line[9]) for line in primary) / columns if columns else None
    return {"sequences": len(lengths), "bases": sum(lengths), "identity": identity}


def assemble(reads: Path, tools: dict, folder: Path) -> tuple[list[list], dict]:
    rows, runs = [], {}
    for name, tool in tools.items():
        job = Job(reads, folder / name.replace(" ", "_"), reads.name.split(".")[0])
        usage, _ = run_tool(tool, job)
        if usage.status:
            rows.append([name, f"exit status {usage.status}", None, None])
            continue
        gfa = job.folder / "unitigs.gfa"
        run(f"miniasm -f {quote(str(reads))} {quote(str(job.paf))} > {gfa}", job.folder / "miniasm.log")
        lengths = [len(bases) for bases in unitigs(gfa).values()]
        runs[name] = {"usage": asdict(usage), "unitigs": sorted(lengths, reverse=True)}
        rows.append([name, len(lengths), f"{sum(lengths):,}", f"{n50(lengths):,}"])
    return rows, runs


def align_to_draft(read_file: str, draft: dict[str, str], at: dict[str, Path]) -> None:
    """PAF and SAM of the reads on the draft: it is the last of the reads, hence a target."""
    program = quote(program_of_bellapy())
    for name, column in (("overlaps.paf", 5), ("overlaps.sam", 2)):
        every = at[name].with_name(f"every.{name}")
        run(f"{program} overlap {read_file} {at['draft.fa']} -t 1 -o {every}", at["log"])
        with open(every) as lines, open(at[name], "w") as kept:
            kept.writelines(line for line in lines if line[0] == "@" or line.split("\t")[column] in draft)


def correct(reads: Path, reference: Path, folder: Path) -> tuple[list[list], dict]:
    job = Job(reads, folder / "bellapy", reads.name.split(".")[0])
    usage, _ = run_tool(choose_tools("")["bellapy"], job)
    if usage.status:
        raise SystemExit((job.folder / "log").read_text()[-2000:])
    names = ("both.paf", "draft.gfa", "draft.fa", "map.paf", "map.sam", "overlaps.paf", "overlaps.sam", "log")
    at = {name: folder / name for name in names}
    mirror(job.paf, at["both.paf"])
    read_file, paf = quote(str(reads)), quote(str(job.paf))
    run(f"miniasm -f {read_file} {paf} > {at['draft.gfa']}", at["log"])
    at["draft.fa"].write_text("".join(f">{name}\n{bases}\n" for name, bases in unitigs(at["draft.gfa"]).items()))
    run(f"minimap2 -x map-ont {at['draft.fa']} {read_file} > {at['map.paf']}", at["log"])
    run(f"minimap2 -ax map-ont {at['draft.fa']} {read_file} > {at['map.sam']}", at["log"])
    align_to_draft(read_file, unitigs(at["draft.gfa"]), at)
    made = {"reads": reads, "miniasm's draft": at["draft.fa"]}
    for what, command in {
        "racon -f, PAF as it is": f"racon -f {read_file} {paf} {read_file}",
        "racon -f, lines both ways": f"racon -f {read_file} {at['both.paf']} {read_file}",
        **{
            f"draft polished by {whose}": f"racon {read_file} {at[name]} {at['draft.fa']}"
            for whose, name in {
                "minimap2's PAF": "map.paf",
                "minimap2's SAM": "map.sam",
                "bellapy's PAF": "overlaps.paf",
                "bellapy's SAM": "overlaps.sam",
            }.items()
        },
    }.items():
        made[what] = folder / f"racon{len(made)}.fa"
        run(f"{command} > {made[what]}", at["log"])
    found = {what: describe(path, reference, folder) for what, path in made.items()}
    shown = {what: f"{100 * one['identity']:.2f} %" if one["identity"] else None for what, one in found.items()}
    return [[what, one["sequences"], f"{one['bases']:,}", shown[what]] for what, one in found.items()], found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job", choices=("unitigs", "racon"))
    parser.add_argument("reads", type=Path)
    parser.add_argument("reference", type=Path, nargs="?", help="for racon")
    parser.add_argument("--tools", default=DEFAULT_TOOLS, help=f"for unitigs, comma-separated [default: {DEFAULT_TOOLS}]")
    parser.add_argument("-o", "--output", help="write the results as JSON")
    options = parser.parse_args()
    if options.job == "racon" and not options.reference:
        parser.error("racon needs a reference")
    with tempfile.TemporaryDirectory() as temporary:
        reads, folder = options.reads.resolve(), Path(temporary)
        if options.job == "unitigs":
            tools = choose_tools(options.tools)
            programs, header = [*programs_of(tools), "miniasm"], ["overlaps of", "unitigs", "bases", "N50"]
            rows, runs = assemble(reads, tools, folder)
        else:
            programs, header = ["miniasm", "minimap2", "racon"], ["what", "sequences", "bases", "identity"]
            rows, runs = correct(reads, options.reference.resolve(), folder)
    results = {"benchmark": options.job, "reads": reads.name, "machine": describe_machine(programs), "runs": runs}
    finish([table(header, rows)], results, options.output)


if __name__ == "__main__":
    main()
