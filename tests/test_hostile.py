"""Damaged input and crafted stage files: a message and an end, whatever is in them; and no read is misread.

Here a few hundred of each, always the same.  The whole sweep, with inputs that nobody has seen:

    HOSTILE_INPUTS=100000 HOSTILE_STAGES=5000 HOSTILE_SEED=1 pytest tests/test_hostile.py

A crash or a hang (of ten seconds) ends Python with a dump of where it was; the input is the last one written to the folder
that `pytest --basetemp` names.
"""

from __future__ import annotations

import faulthandler
import os
import random

import hostile
import pytest

from bellapy.errors import BellapyError
from bellapy.evaluate import evaluate_overlaps
from bellapy.extend import extend_pairs
from bellapy.log import Report
from bellapy.params import make_params
from bellapy.reads import load_reads
from bellapy.truth import read_truth

INPUTS = int(os.environ.get("HOSTILE_INPUTS", 300))
STAGES = int(os.environ.get("HOSTILE_STAGES", 150))
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


def sweep(tmp_path, makers, read, ending="", check=lambda data, outcome: None):
    """Read damaged files; returns how many were accepted."""
    path, scratch, accepted = tmp_path / f"input{ending}", str(tmp_path / "scratch"), 0
    for i in range(INPUTS):
        rng = random.Random(f"{SEED} {i}")
        data = hostile.wrapped(rng, rng.choice(makers), scratch)
        path.write_bytes(data)
        outcome = outcome_of(read, str(path))
        if not isinstance(outcome, BellapyError):
            accepted += 1
            check(data, outcome)
    assert 0 < accepted < INPUTS
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


@pytest.mark.parametrize("maker", [hostile.table, hostile.maf, hostile.sam], ids=["table", "maf", "sam"])
@pytest.mark.parametrize("named", [True, False])
def test_truth(tmp_path, maker, named):
    def check(data, truth):
        assert len(truth) and (truth.starts <= truth.ends).all()

    sweep(tmp_path, (maker,), read_truth, f".{maker.__name__.replace('table', 'tsv')}" if named else "", check)


@pytest.mark.parametrize("overlap_format", ["paf", "bella"])
def test_overlaps(tmp_path, overlap_format):
    (tmp_path / "truth.tsv").write_text("".join(f"r{i}\tg\t{i}000\t{i}900\t+\n" for i in range(9)))
    truth = read_truth(tmp_path / "truth.tsv")
    sweep(tmp_path, (hostile.paf,), lambda path: evaluate_overlaps(truth, path, overlap_format=overlap_format))


def test_pairs(tmp_path):
    params = make_params(match=1, xdrop=7, device="cpu")

    def read(path):
        return list(extend_pairs(path, 4, params, Report("", ""), cigar=True))

    sweep(tmp_path, (hostile.pairs,), read)
