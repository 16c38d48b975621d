#!/usr/bin/env python3
"""Make the sets of reads of the benchmarks, each with its truth table, outside the repository.

    python benchmarks/simulate.py GENOMES OUT SET...

GENOMES holds ecoli_mds42.fa[.gz] (NC_020518.1) for ec5, ec30, ecq20, hifi20 and ul5, yeast_s288c.fa[.gz] (R64-4-1,
chromosomes named chrI to chrXVI and chrM) for yeast10, and elba/reads.fa[.gz] and elba/reference.fa[.gz] (the example of
the repository PASSIONLab/ELBA) for elba.  lambda comes from data/.  The simulator's seed is fixed, so that everyone gets
the same reads.  Needs pbsim (version 1), samtools and minimap2.
"""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
import subprocess
import tempfile
from dataclasses import fields
from pathlib import Path

from bellapy.jobs.evaluate.truth import read_truth

DATA = Path(__file__).resolve().parent.parent / "data"
MODEL = os.environ.get("PBSIM_MODEL", "/usr/share/pbsim/models/model_qc_clr")
SLICE = "1000001-1500000"  # of E. coli, from 1


def lengths(mean: int, sd: int, low: int, high: int) -> dict:
    return {"length-mean": mean, "length-sd": sd, "length-min": low, "length-max": high}


def accuracy(mean: float, sd: float, low: float, high: float) -> dict:
    return {"accuracy-mean": mean, "accuracy-sd": sd, "accuracy-min": low, "accuracy-max": high}


USUAL = lengths(7000, 4000, 1000, 25000)
CLR = accuracy(0.85, 0.02, 0.75, 0.95)
SIMULATED: dict[str, tuple[str, int, int, dict]] = {  # genome, seed, depth, options of pbsim
    "ec5": ("slice", 5, 30, USUAL | CLR),
    "ec30": ("ecoli_mds42", 1, 30, USUAL | CLR),
    "ecq20": ("ecoli_mds42", 20, 15, USUAL | accuracy(0.975, 0.01, 0.9, 1.0)),
    "hifi20": ("ecoli_mds42", 21, 20, lengths(15000, 3000, 5000, 30000) | accuracy(0.997, 0.002, 0.98, 1.0)),
    "yeast10": ("yeast_s288c", 10, 10, USUAL | CLR),
    "ul5": ("slice", 7, 20, lengths(60000, 35000, 10000, 150000) | CLR),
}
MAPPED = {"lambda": "map-ont", "elba": "map-hifi"}


def unpack(source: Path, to: Path) -> Path:
    """A plain copy of a file that may be stored compressed, with or without .gz in its name."""
    packed = source.with_name(source.name + ".gz")
    if not (source.is_file() or packed.is_file()):
        raise SystemExit(f"{source}[.gz]: there is no such file")
    with open(source, "rb") if source.is_file() else gzip.open(packed, "rb") as stream, open(to, "wb") as out:
        shutil.copyfileobj(stream, out)
    return to


def genome(genomes: Path, name: str, folder: Path) -> Path:
    if name != "slice":
        return unpack(genomes / f"{name}.fa", folder / f"{name}.fa")
    whole = unpack(genomes / "ecoli_mds42.fa", folder / "ecoli_mds42.fa")
    region = open(whole).readline()[1:].split()[0] + ":" + SLICE
    with open(folder / "slice.fa", "wb") as stream:
        subprocess.run(["samtools", "faidx", whole, region], stdout=stream, check=True)
    return folder / "slice.fa"


def write_truth(source: Path, to: Path) -> None:
    """As `bellapy evaluate` reads it: read, reference, start, end, strand; length, start and end on the read."""
    truth = read_truth(source)
    columns = [getattr(truth, field.name) for field in fields(truth)[1:]]
    with open(to, "w") as stream:
        for name, ref, start, end, strand, *on_read in zip(truth.names, *(c.tolist() for c in columns), strict=True):
            print(name, f"sequence{ref + 1}", start, end, "+" if strand > 0 else "-", *on_read, sep="\t", file=stream)


def simulate(name: str, genomes: Path, out: Path) -> None:
    source, seed, depth, options = SIMULATED[name]
    with tempfile.TemporaryDirectory(dir=out) as temporary:
        folder = Path(temporary)
        options = {"data-type": "CLR", "model_qc": MODEL, "depth": depth, "seed": seed, "prefix": "r"} | options
        flags = [word for key, value in options.items() for word in (f"--{key}", str(value))]
        reference = genome(genomes, source, folder)
        with open(folder / "log", "wb") as log:
            subprocess.run(["pbsim", *flags, reference.name], cwd=folder, stdout=log, stderr=log, check=True)
        for suffix, to in ((".fastq", out / f"{name}.fastq"), (".maf", folder / "all.maf")):
            with open(to, "wb") as stream:
                for part in sorted(folder.glob(f"r_*{suffix}")):
                    stream.write(part.read_bytes())
        write_truth(folder / "all.maf", out / f"{name}.truth.tsv")


def map_reads(name: str, genomes: Path, out: Path) -> None:
    if name == "lambda":
        reads = unpack(DATA / "lambda_reads.fastq", out / "lambda.fastq")
        reference = DATA / "lambda_reference.fasta.gz"
    else:
        reads, reference = unpack(genomes / name / "reads.fa", out / f"{name}.fa"), genomes / name / "reference.fa"
        reference = reference if reference.is_file() else reference.with_name("reference.fa.gz")
    with tempfile.TemporaryDirectory(dir=out) as temporary:
        sam = Path(temporary) / "reads.sam"
        with open(sam, "wb") as stream, open(os.devnull, "wb") as log:
            subprocess.run(["minimap2", "-ax", MAPPED[name], reference, reads], stdout=stream, stderr=log, check=True)
        write_truth(sam, out / f"{name}.truth.tsv")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("genomes", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("sets", nargs="+", choices=[*SIMULATED, *MAPPED], metavar="SET")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.sets:
        (simulate if name in SIMULATED else map_reads)(name, options.genomes, options.out.resolve())
        print(f"made {name}")


if __name__ == "__main__":
    main()
