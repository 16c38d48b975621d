"""Damaged input and crafted stage files: a message and an end, whatever is in them; and no read is misread.

Here a few hundred of each, always the same.  The whole sweep, 100,000 inputs for each reader (reads, truth, overlaps, pairs)
and 5,000 stage files (a thousand for each of five ways to use them), takes about half an hour of one core:

    HOSTILE_INPUTS=100000 HOSTILE_STAGES=1000 HOSTILE_SEED=1 pytest tests/test_hostile.py

A crash or a hang (of ten seconds) ends Python with a dump of where it was; the input is the last one written to the folder
that `pytest --basetemp` names.
"""

from __future__ import annotations

import faulthandler
import os
import random
from collections import Counter

import hostile
import numpy as np
import pytest
from cases import parse_paf, run, sample_reads

from bellapy.errors import BellapyError
from bellapy.io.fastx import load_reads
from bellapy.jobs.evaluate.pipeline import evaluate_overlaps
from bellapy.jobs.evaluate.truth import read_truth
from bellapy.jobs.extend import extend_pairs
from bellapy.params import make_params
from bellapy.records.bases import UNKNOWN
from bellapy.report.run_report import RunReport

INPUTS = int(os.environ.get("HOSTILE_INPUTS", 300))
STAGES = int(os.environ.get("HOSTILE_STAGES", 60))
SEED = int(os.environ.get("HOSTILE_SEED", 20240))
HANG = 10  # seconds


def outcome_of(read, *arguments):
    """What a reader gives, or BellapyError; anything else that it raises is a failure."""
    faulthandler.dump_traceback_later(HANG, exit=True)
    try:
        return read(*arguments)
    except BellapyError as error:
        assert str(error)
        return error
    finally:
        faulthandler.cancel_dump_traceback_later()


def sweep(tmp_path, makers, read, ending="", check=lambda data, outcome: None, share=1):
    """Read damaged files, a share of INPUTS; returns how many were accepted."""
    path, scratch, accepted = tmp_path / f"input{ending}", str(tmp_path / "scratch"), 0
    n = -(-INPUTS // share)
    for i in range(n):
        rng = random.Random(f"{SEED} {i}")
        data = hostile.wrapped(rng, rng.choice(makers), scratch)
        path.write_bytes(data)
        outcome = outcome_of(read, str(path))
        if not isinstance(outcome, BellapyError):
            accepted += 1
            check(data, outcome)
    assert 0 < accepted < n
    return accepted


def test_reads(tmp_path):
    def check(data, reads):
        expected = hostile.plainly_read(data)
        found = [
            (name, reads.codes[start : start + length].tobytes())
            for name, start, length in zip(reads.names, reads.starts, reads.lengths, strict=True)
        ]
        assert found == expected

    sweep(tmp_path, (hostile.fasta, hostile.fastq), lambda path: load_reads([path]), check=check)


def test_aligned_reads(tmp_path):
    """As BAM: an error, or reads that can be."""

    def check(data, reads):
        assert len(set(reads.names)) == len(reads.names)
        assert reads.codes.max() <= UNKNOWN and reads.lengths.min(initial=0) >= 0

    sweep(tmp_path, (hostile.bam,), lambda path: load_reads([path]), ".bam", check)


@pytest.mark.parametrize("maker", [hostile.table, hostile.maf, hostile.sam], ids=["table", "maf", "sam"])
@pytest.mark.parametrize("named", [True, False])
def test_truth(tmp_path, maker, named):
    def check(data, truth):
        assert len(truth) and (truth.starts <= truth.ends).all()

    sweep(tmp_path, (maker,), read_truth, f".{maker.__name__.replace('table', 'tsv')}" if named else "", check, 6)


@pytest.mark.parametrize("overlap_format", ["paf", "bella"])
def test_overlaps(tmp_path, overlap_format):
    (tmp_path / "truth.tsv").write_text("".join(f"r{i}\tg\t{i}000\t{i}900\t+\n" for i in range(9)))
    truth = read_truth(tmp_path / "truth.tsv")
    sweep(tmp_path, (hostile.paf,), lambda path: evaluate_overlaps(truth, path, overlap_format=overlap_format), share=2)


def test_pairs(tmp_path):
    params = make_params(match=1, xdrop=7, device="cpu", extension="best")

    def read(path):
        return list(extend_pairs(path, 4, params, RunReport(), cigar=True))

    sound = tmp_path / "sound.tsv"
    sound.write_bytes(hostile.pairs(random.Random(SEED)))
    read(str(sound))  # compiles, which takes longer than reading may
    sweep(tmp_path, (hostile.pairs,), read)


# ---------------------------------------------------------------- stage files


@pytest.fixture(scope="module")
def stages(tmp_path_factory):
    """A folder of reads and the files of all stages made from them."""
    folder = tmp_path_factory.mktemp("stages")
    (folder / "reads.fa").write_text(sample_reads(5, genome=2500, depth=8, mean=600, error=0.04).fasta())
    for command in (
        ["count", "-k", "11", "-o", "kmers.npz"],
        ["candidates", "--kmers", "kmers.npz", "-o", "seeds.npz", "--min-overlap", "150"],
        ["align", "--seeds", "seeds.npz", "-o", "alignments.npz"],
    ):
        words = [folder / word if word.endswith(".npz") else word for word in command[1:]]
        assert run(command[0], folder / "reads.fa", *words).code == 0
    return folder


FILTER = ("filter", "--alignments", "alignments.npz", "--min-overlap", "150")
COMMANDS = (
    ("candidates", "--kmers", "kmers.npz", "--min-overlap", "150"),
    ("align", "--seeds", "seeds.npz"),
    FILTER,
    (*FILTER, "--cigar", "--cs"),
    (*FILTER, "--format", "sam"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=["candidates", "align", "filter", "cigar", "sam"])
def test_stage_files(stages, tmp_path, command):
    name, _, good, *options = command
    with np.load(stages / good) as stored:
        held = {name: stored[name] for name in stored if "." in name or name == "header"}  # the rest is for SciPy
    ends, path = Counter(), tmp_path / "crafted"
    for i in range(STAGES):
        arrays = hostile.crafted(random.Random(f"{SEED} {command} {i}"), held)
        with open(path, "wb") as stream:
            np.savez(stream, **arrays)
        words = name, stages / "reads.fa", command[1], path, "-o", tmp_path / "x", "-t", 1, *options
        outcome = outcome_of(run, *words)
        assert outcome.code in (0, 1), (i, outcome.err)
        ends[outcome.code] += 1
        if outcome.code:
            assert f"{path}: " in outcome.err.splitlines()[-1], (i, outcome.err)
            assert not (tmp_path / "x").exists()
        elif name == "filter" and "sam" not in options:
            for line in parse_paf((tmp_path / "x").read_bytes()):
                assert 0 <= line.query_start <= line.query_end <= line.query_length
                assert 0 <= line.target_start <= line.target_end <= line.target_length
        (tmp_path / "x").unlink(missing_ok=True)
    assert ends[1] > ends[0] > 0
