"""Reads by name: through an index as by a search."""

from __future__ import annotations

import gzip
import os

import pyfastx
import pytest

from bellapy.errors import InputError
from bellapy.io import named_reads
from bellapy.io.named_reads import sequences_of

READS = {f"r{i}": "ACGTTGCAN"[: i + 1] * 30 for i in range(9)}
FASTA = "".join(f">{name} more\n{text[:50]}\n{text[50:]}\n" for name, text in READS.items())
FASTQ = "".join(f"@{name} more\n{text}\n+\n{'I' * len(text)}\n" for name, text in READS.items())


@pytest.fixture(params=["x.fa", "x.fq", "x.fa.gz", "x.fq.gz"])
def path(request, tmp_path) -> str:
    text = (FASTQ if "fq" in request.param else FASTA).encode()
    (tmp_path / request.param).write_bytes(gzip.compress(text) if request.param.endswith("gz") else text)
    return str(tmp_path / request.param)


def make_index(path: str) -> None:
    (pyfastx.Fastq if "fq" in path else pyfastx.Fasta)(path)


def test_index_and_search_find_the_same(path, monkeypatch):
    wanted = {"r0", "r7"}
    expected = {name: READS[name] for name in wanted}
    assert sequences_of(path, wanted) == expected
    make_index(path)
    monkeypatch.setattr(named_reads, "_search", None)
    assert sequences_of(path, wanted) == expected
    with pytest.raises(InputError, match="no read is named r10"):
        sequences_of(path, {"r1", "r10"})


def test_an_index_older_than_the_file_is_left_alone(path, monkeypatch):
    make_index(path)
    os.utime(path + ".fxi", (1, 1))
    monkeypatch.setattr(named_reads, "_look_up", None)
    assert sequences_of(path, {"r3"}) == {"r3": READS["r3"]}


def test_a_damaged_index_is_told(path):
    with open(path + ".fxi", "wb") as index:
        index.write(b"nothing of use" * 99)
    with pytest.raises(InputError, match="cannot be used.*make it again"):
        sequences_of(path, {"r3"})
