"""Reading FASTA and FASTQ: everything that must load, and everything that must not load in silence."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pysam
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from bellapy.errors import InputError, ParameterError
from bellapy.io import compressed, fastx_blocks
from bellapy.io import fastx as reads
from bellapy.io.fastx import load_reads
from bellapy.records import ReadSet
from bellapy.records.bases import PAD, UNKNOWN

FASTQ = b"@a first\nACGT\n+\nIIII\n@b\nGG\n+b\n@+\n"


def naive_codes(sequences):
    """Packed codes and starts, one letter after the other."""
    codes, starts = [UNKNOWN] * PAD, []
    for sequence in sequences:
        starts.append(len(codes))
        codes += ["ACGT".find(letter) if letter in "ACGT" else UNKNOWN for letter in sequence.upper().replace("U", "T")]
        codes += [UNKNOWN] * PAD
    return codes, starts


def assert_reads(read_set, expected):
    """`expected` maps names to sequences."""
    codes, starts = naive_codes(expected.values())
    assert read_set.names == tuple(expected)
    np.testing.assert_array_equal(read_set.codes, np.array(codes, np.uint8))
    np.testing.assert_array_equal(read_set.starts, starts)
    np.testing.assert_array_equal(read_set.lengths, [len(sequence) for sequence in expected.values()])


def bgzip(data, path):
    with pysam.BGZFile(str(path), "wb") as out:
        out.write(data)
    return path.read_bytes()


def load_bytes(data, folder):
    path = folder / "reads.in"
    path.write_bytes(data)
    return load_reads([path])


def error_of(data, folder):
    with pytest.raises(InputError) as caught:
        load_bytes(data, folder)
    assert caught.value.path == str(folder / "reads.in")
    assert str(caught.value).startswith(str(folder / "reads.in"))
    return caught.value


OTHERS = {"bzip2": bz2.compress, "xz": lzma.compress, "zstd": zstandard.ZstdCompressor().compress}
GOOD = {
    "fasta": (b">a\nACGT\n>b\nGG\n", {"a": "ACGT", "b": "GG"}),
    "wrapped": (b">a\nACG\nTAC\nG\n>b\nGG\n", {"a": "ACGTACG", "b": "GG"}),
    "wrapped unevenly, blank lines": (b">a\nA\n\nCGT\n\n>b\n\nGG\n", {"a": "ACGT", "b": "GG"}),
    "fastq": (FASTQ, {"a": "ACGT", "b": "GG"}),
    "lower case": (b">a\nacgtn\n", {"a": "ACGTN"}),
    "letters outside ACGT": (b">a\nARYKMSWBDHVNUuXC\n", {"a": "ANNNNNNNNNNNTTNC"}),
    "CRLF fasta": (b">a x\r\nAC\r\nGT\r\n>b\r\n\r\n", {"a": "ACGT", "b": ""}),
    "CRLF fastq": (FASTQ.replace(b"\n", b"\r\n"), {"a": "ACGT", "b": "GG"}),
    "no final newline, fasta": (b">a\nACGT", {"a": "ACGT"}),
    "no final newline, fastq": (FASTQ[:-1], {"a": "ACGT", "b": "GG"}),
    "blank lines at the end, fasta": (b">a\nACGT\n\n\r\n\n", {"a": "ACGT"}),
    "blank lines at the end, fastq": (FASTQ + b"\n" * 7, {"a": "ACGT", "b": "GG"}),
    "empty fasta records": (b">a\n>b\nAC\n>c", {"a": "", "b": "AC", "c": ""}),
    "empty fastq records": (b"@a\n\n+\n\n@b\nA\n+\nI\n@c\n\n+\n\n", {"a": "", "b": "A", "c": ""}),
    "empty fastq record, blank lines": (b"@a\n\n+\n\n\n\n\n\n\n\n", {"a": ""}),
    "empty fastq record, no final newline": (b"@a\n\n+", {"a": ""}),
    "quality starts with @": (b"@a\nAC\n+\n@@\n@b\nA\n+\n@\n", {"a": "AC", "b": "A"}),
    "quality starts with > and +": (b"@a\nAC\n+\n>I\n@b\nA\n+\n+\n", {"a": "AC", "b": "A"}),
    "name repeated after +": (b"@a x y\nAC\n+a x y\nII\n@b z\nA\n+b\nI\n", {"a": "AC", "b": "A"}),
    "comments": (b">a/1 x>y @ + \xc3\xb5\nAC\n>b\tz\nA\n>c \nA\n", {"a/1": "AC", "b": "A", "c": "A"}),
    "wrapped fastq": (b"@a x\nACG\nTA\n+\n@II\n+I\n@b\nC\n+\n>\n", {"a": "ACGTA", "b": "C"}),
    "wrapped fastq, blank lines": (b"@a\n\nACG\n\nTA\n+\n\n@II\n\n+I\n\n@b\nC\n+\n>\n", {"a": "ACGTA", "b": "C"}),
    "empty wrapped fastq": (b"@a\n+\n@b\nC\nC\n+\n>\n>\n@c\n\n\n+\n\n\n", {"a": "", "b": "CC", "c": ""}),
    "blank lines first": (b"\n\r\n \n" + b"\n" * 40 + FASTQ, {"a": "ACGT", "b": "GG"}),
    "blank lines first, fasta": (b"\n\n>a\nACGT\n", {"a": "ACGT"}),
    "blank lines between": (FASTQ + b"\n\n \n\t\n\r\n@c\nA\n+\nI\n", {"a": "ACGT", "b": "GG", "c": "A"}),
    "many blank lines between": (FASTQ + b"\n" * 8 + b"@c\nA\n+\nI\n", {"a": "ACGT", "b": "GG", "c": "A"}),
    "another name after +": (b"@a x\nAC\n+1/2 length=2\nII\n@b z\nA\n+ \nI\n", {"a": "AC", "b": "A"}),
    "names beyond ASCII": (">\xe9\u4e2d x\nAC\n@b\xf6\nA\n+\nI\n".encode(), {"\xe9\u4e2d": "AC", "b\xf6": "A"}),
    "blanks before names": (b"> a x\nAC\n>\tb\nA\n@ c\nG\n+\nI\n", {"a": "AC", "b": "A", "c": "G"}),
    "fasta after fastq": (FASTQ + b">c\nA\nC\n\n@d\nG\n+\nI\n", {"a": "ACGT", "b": "GG", "c": "AC", "d": "G"}),
    "fastq after fasta": (b">c\nA\nC\n" + FASTQ + b">d\nG\n", {"c": "AC", "a": "ACGT", "b": "GG", "d": "G"}),
    "odd but printable names": (b">>a|~!\nAC\n>@b\nA\n", {">a|~!": "AC", "@b": "A"}),
}


@pytest.mark.parametrize("compress", ["plain", "gzip", "bgzip", "members", *OTHERS])
@pytest.mark.parametrize("data, expected", GOOD.values(), ids=GOOD.keys())
def test_good(data, expected, compress, tmp_path):
    if compress == "gzip":
        data = gzip.compress(data)
    elif compress == "members":  # the second one is empty; tapes had zeros at the end
        data = gzip.compress(data[:9]) + gzip.compress(b"") + gzip.compress(data[9:]) + bytes(700)
    elif compress == "bgzip":
        data = bgzip(data, tmp_path / "in.gz")
    elif compress in OTHERS:  # of two files behind each other
        data = OTHERS[compress](data[:9]) + OTHERS[compress](data[9:])
    assert_reads(load_bytes(data, tmp_path), expected)


@pytest.mark.parametrize("batch_size", [1, 2, 3, 5, 7, 11, 16, 40])
@pytest.mark.parametrize("data, expected", GOOD.values(), ids=GOOD.keys())
def test_batch_size_changes_nothing(data, expected, batch_size, tmp_path, monkeypatch):
    monkeypatch.setattr(fastx_blocks, "BLOCK_SIZE", batch_size)
    monkeypatch.setattr(compressed, "READ_SIZE", batch_size + 1)
    assert_reads(load_bytes(data, tmp_path), expected)


def test_u_is_t(tmp_path):
    """RNA is read as the DNA that it was made from."""
    rna, dna = (load_bytes(f">a\n{letters}\n".encode(), tmp_path) for letters in ("ACGUuGAnUU", "ACGTtGAnTT"))
    np.testing.assert_array_equal(rna.codes, dna.codes)
    assert rna.other_letters == dna.other_letters == {}


@pytest.mark.parametrize("batch_size", [1, 7, 1 << 19])
def test_other_letters_are_counted(tmp_path, monkeypatch, batch_size):
    monkeypatch.setattr(fastx_blocks, "BLOCK_SIZE", batch_size)
    first, second = tmp_path / "1.fa", tmp_path / "2.fq"
    first.write_bytes(b">x\nACGTUNacgtunRrYxX\n>y\n" + b"ACGT" * 9 + b"\n>z\nX\n")
    second.write_bytes(b"@a\nRACGT\n+\nIIIII\n@b\n\n+\n\n")
    assert load_reads([first, second]).other_letters == {"R": 3, "X": 3, "Y": 1}


PROTEIN = "MSTNPKPQRKTKRNTNRRPQDVKFPGGGQIVGGVYLLPRRGPRLGVRATRKTSERSQPRGRRQPIPKARRPEGRTWAQPGYPWPLYGNEGCGWAGWLLSPR"


@pytest.mark.parametrize("batch_size", [1, 1 << 19])
@pytest.mark.parametrize("sequence", [PROTEIN, PROTEIN.lower(), PROTEIN + "ACGT" * 20], ids=range(3))
def test_protein_is_refused(sequence, batch_size, tmp_path, monkeypatch):
    monkeypatch.setattr(fastx_blocks, "BLOCK_SIZE", batch_size)
    error = error_of(f">a\nACGT\n>b\n{sequence}\n>c\n\n".encode(), tmp_path)
    assert re.search(r"looks like protein: \d+ of \d+ letters \(E, F, I, L, P, Q\).* Give DNA or RNA", error.problem)
    (tmp_path / "dna.fa").write_text(">r\n" + "ACGT" * 10_000 + "\n")
    with pytest.raises(InputError, match="protein"):  # told of the file, whatever the others hold
        load_reads([tmp_path / "dna.fa", tmp_path / "reads.in"])


@pytest.mark.parametrize("letters", ["RYKMSWBDHVN", "X", "ACGTEF"])
def test_what_is_no_protein(letters, tmp_path):
    assert load_bytes(f">a\n{letters * 3}{'ACGT' * 20}\n".encode(), tmp_path).n_bases == 80 + 3 * len(letters)


def test_several_files_in_order(tmp_path):
    first, second = tmp_path / "1.fa", tmp_path / "2.fq"
    first.write_bytes(b">x\nAC\n>y\nG\n")
    second.write_bytes(gzip.compress(FASTQ))
    expected = {"a": "ACGT", "b": "GG", "x": "AC", "y": "G"}
    assert_reads(load_reads([str(second), first]), expected)


def test_long_reads(tmp_path):
    long = "".join(np.random.default_rng(1).choice(list("ACGT"), 3_000_000))
    wrapped = "\n".join(long[i : i + 60] for i in range(0, len(long), 60))
    assert_reads(load_bytes(f">a\n{wrapped}\n>b\n{long}\n>c\nA\n".encode(), tmp_path), {"a": long, "b": long, "c": "A"})


# what is wrong: (data, part of the message, record, line)
BAD = {
    "empty": (b"", "empty", None, None),
    "only blank lines": (b"\n\r\n" + b"\n" * 40, "empty", None, None),
    "gzip of nothing": (gzip.compress(b""), "empty", None, None),
    "binary": (b"\0\1\2\3", "binary", None, 1),
    "xz": (b"\xfd7zXZ\0", "compressed data are damaged", None, None),
    "zstd": (b"\x28\xb5\x2f\xfd\0", "compressed data are damaged", None, None),
    "bzip2": (b"BZh9", "compressed data are damaged", None, None),
    "BAM": (b"BAM\1\0\0\0\0", "as SAM, BAM or CRAM", None, None),
    "compressed BAM": (gzip.compress(b"BAM\1\0\0\0\0"), "as SAM, BAM or CRAM", None, None),
    "CRAM": (b"CRAM\3\0", "as SAM, BAM or CRAM", None, None),
    "text before the first record": (b"hello\n>a\nACGT\n", "text before the first record: starts with 'hello", None, 1),
    "table": (b"a\t1\n", "before the first record", None, 1),
    "fasta, digit": (b">a\nAC\nGT\n>b\nAC\nA1C\n", "'1' at column 2 is not a letter", 2, 6),
    "fasta, gap": (b">a\nAC-GT\n", "'-' at column 3 is not a letter", 1, 2),
    "fasta, stop": (b">a\nACGT*\n", r"'\*' at column 5 is not a letter", 1, 2),
    "fasta, space": (b">a\nAC GT\n", "' ' at column 3 is not a letter", 1, 2),
    "fasta, space at the end": (b">a\nACGT \n", "' ' at column 5 is not a letter", 1, 2),
    "fasta, tab": (b">a\nAC\tGT\n", r"'\\t' at column 3 is not a letter", 1, 2),
    "fasta, NUL": (b">a\nAC\0GT\n", r"'\\x00' at column 3 is not a letter", 1, 2),
    "fasta, not ASCII": (b">a\nAC\xc3\xa9\n", r"'\\xc3' at column 3 is not a letter", 1, 2),
    "fasta, @ record": (b">a\nAC\n@b\nAC\n", r"expected '\+'.*found nothing", 2, 5),
    "fasta, + line": (b">a\nAC\n+\nII\n", r"'\+' at column 1 is not a letter", 1, 3),
    "fasta, empty name": (b">a\nAC\n>\nAC\n", "the name is empty", 2, 3),
    "fasta, name not UTF-8": (b">a\xe9\nAC\n", "not printable", 1, 1),
    "fasta, NUL in a comment": (b">a x\0\nAC\n", "not printable", 1, 1),
    "fasta, old Mac line ends": (b">a\rACGT\r>b\rACGT\r", "line end not LF or CRLF", 1, 1),
    "fasta, same name": (b">a\nA\nC\n>b\nA\n>a x\nA\n", "has the same name 'a' as record 1. ", 3, 6),
    "same name twice running": (b">a\nA\n>a\nA\n", "has the same name 'a' as record 1. ", 2, 3),
    "fastq, same name": (FASTQ + b"@b\nA\n+\nI\n", "has the same name 'b' as record 2. ", 3, 9),
    "fastq, empty name": (b"@\nA\n+\nI\n", "the name is empty", 1, 1),
    "fastq, name not ASCII": (FASTQ + b"@\xff\nA\n+\nI\n", "not printable", 3, 9),
    "fastq, quality too short": (FASTQ + b"@c\nACG\n+\nII\n", "3 bases but 2 quality values", 3, 12),
    "fastq, quality too long": (b"@c\nACG\n+\nIIII\n" + FASTQ, "3 bases but 4 quality values", 1, 4),
    "fastq, quality missing": (b"@c\nACG\n+\n" + FASTQ, "3 bases but 8 quality values", 1, 4),
    "fastq, + line missing": (b"@c\nACG\nIII\n" + FASTQ, r"expected '\+'.*found '@a first'", 1, 4),
    "fastq, no header": (FASTQ + b"c\nA\n+\nI\n", "expected '>' or '@' and a name, found 'c'", 3, 9),
    "fastq, digit": (FASTQ + b"@c\nA1\n+\nII\n", "'1' at column 2 is not a letter", 3, 10),
    "fastq, sequence starts with @": (b"@c\n@C\n+\nII\n", "'@' at column 1 is not a letter", 1, 2),
    "fastq, sequence starts with >": (b"@c\n>C\n+\nII\n", "'>' at column 1 is not a letter", 1, 2),
    "fastq, space in quality": (FASTQ + b"@c\nAC\n+\nI I\n", "2 bases but 3 quality values", 3, 12),
    "fastq, quality out of range": (FASTQ + b"@c\nAC\n+\nI \n", "quality value", 3, 12),
    "fastq, quality not ASCII": (FASTQ + b"@c\nAC\n+\nI\xff\n", "quality value", 3, 12),
    "fastq, ends in a header": (FASTQ + b"@c", r"expected '\+'.*found nothing", 3, 10),
    "fastq, wrapped, quality short": (b"@c\nACG\nACG\n+\nIII\n" + FASTQ, "6 bases but 11 quality values", 1, 6),
    "fastq, wrapped, cut short": (b"@c\nACG\nACG\n+\nIII\n", "6 bases but 3 quality values.*cut short", 1, 5),
    "fastq, - line": (b"@c\nACG\n-\nIII\n", r"expected '\+' after the bases, found '-'", 1, 3),
    "fasta, then a table": (b">a\nAC\n@b\nA\n+\nI\nb 1\n", "expected '>' or '@' and a name, found 'b 1'", 3, 7),
    "line of a name alone": (b">a\nAC\n@ \nA\n+\nI\n", "the name is empty", 2, 3),
    "name with a blank of another alphabet": ("@a\u00a0b\nA\n+\nI\n".encode(), "not printable", 1, 1),
    "blank lines before a table": (b"\n \n\r\na 1\n", "before the first record", None, 4),
    "fastq, ends in a sequence": (FASTQ + b"@c\nACG", r"expected '\+'.*found nothing", 3, 11),
    "fastq, ends at the quality": (FASTQ + b"@c\nACG\n+\n", "3 bases but 0 quality values.*cut short", 3, 12),
}


@pytest.mark.parametrize("batch_size", [1, 1 << 19])
@pytest.mark.parametrize("data, message, record, line", BAD.values(), ids=BAD.keys())
def test_bad(data, message, record, line, batch_size, tmp_path, monkeypatch):
    monkeypatch.setattr(fastx_blocks, "BLOCK_SIZE", batch_size)
    error = error_of(data, tmp_path)
    assert re.search(message, error.problem)
    assert (error.record, error.line) == (record, line)


@pytest.mark.parametrize("crlf", [False, True])
def test_fastq_cut_anywhere(crlf, tmp_path):
    records = [b"@a x\nACGT\n+\nIIII\n", b"@b\n\n+\n\n", b"@c\nGG\n+c\n@+\n", b"@d\nT\n+\n@\n"]
    sequences = {"a": "ACGT", "b": "", "c": "GG", "d": "T"}
    whole = b"".join(records)
    # The file may end behind the last quality value of a record, or behind that line's end.
    borders = [len(b"".join(records[:n])) for n in range(1, 5)]
    ends = {end: n for n, border in enumerate(borders, 1) for end in (border - 1, border)}
    ends[borders[1] - 2] = 2  # behind the "+" of the empty read b: this is all it has
    for size in range(len(whole) + 1):
        data = whole[:size].replace(b"\n", b"\r\n") if crlf else whole[:size]
        if size in ends:
            assert_reads(load_bytes(data, tmp_path), dict(list(sequences.items())[: ends[size]]))
        else:
            error_of(data, tmp_path)


RANDOM = "".join(np.random.default_rng(2).choice(list("ACGT"), 200_000)).encode()
BIG = b"@a\n" + RANDOM + b"\n+\n" + b"I" * len(RANDOM) + b"\n@b\nAC\n+\nII\n"


@pytest.mark.parametrize("kept", [1, 5, 10, 11, 1000, -9, -8, -4, -1])
def test_cut_gzip(kept, tmp_path):
    assert "compressed data are damaged" in error_of(gzip.compress(BIG)[:kept], tmp_path).problem


@pytest.mark.parametrize("kept", [7, 1000, -1])
@pytest.mark.parametrize("compress", OTHERS)
def test_cut_or_changed(compress, kept, tmp_path):
    whole = OTHERS[compress](BIG)
    assert len(load_bytes(whole, tmp_path)) == 2
    assert "compressed data are damaged" in error_of(whole[:kept], tmp_path).problem
    if compress != "zstd":  # which has no checksum unless asked for
        changed = whole[: len(whole) // 2] + bytes([whole[len(whole) // 2] ^ 4]) + whole[len(whole) // 2 + 1 :]
        assert "compressed data are damaged" in error_of(changed, tmp_path).problem


@pytest.mark.parametrize("at", [100, 20_000, -8, -5, -4, -1], ids=str)
def test_damaged_gzip(at, tmp_path):
    data = bytearray(gzip.compress(BIG))
    data[at] ^= 4
    assert "compressed data are damaged" in error_of(bytes(data), tmp_path).problem


def test_damaged_gzip_is_blamed_before_its_text(tmp_path):
    text = BIG.replace(b"\n+\n", b"\n-\n", 1)
    data = bytearray(gzip.compress(text))
    assert "expected '+'" in error_of(bytes(data), tmp_path).problem
    data[-8] ^= 1
    assert "compressed data are damaged" in error_of(bytes(data), tmp_path).problem


@pytest.mark.parametrize("garbage", [b"@c\nA\n+\nI\n", b"\x1f", b"\x1f\x8b", b"\0\0x"], ids=repr)
def test_garbage_after_gzip(garbage, tmp_path):
    assert "compressed data are damaged" in error_of(gzip.compress(FASTQ) + garbage, tmp_path).problem


def bgzf_blocks(data):
    """Lengths of the blocks of a bgzip file, from their headers."""
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at + 16 : at + 18], "little") + 1
        yield size
        at += size


def test_bgzip_cut_between_blocks(tmp_path):
    text = b">a\n" + RANDOM + b"\n"  # FASTA, where the text alone does not tell
    data = bgzip(text, tmp_path / "x.gz")
    *sizes, last = bgzf_blocks(data)
    assert len(sizes) > 2 and last == 28
    for n_blocks in range(1, len(sizes) + 1):
        assert "end-of-file block of bgzip" in error_of(data[: sum(sizes[:n_blocks])], tmp_path).problem
    assert len(load_bytes(data, tmp_path)) == 1
    assert len(load_bytes(data + bgzip(b">b\nA\n", tmp_path / "y.gz"), tmp_path)) == 2


def test_bgzip_cut_in_a_block(tmp_path):
    data = bgzip(BIG, tmp_path / "x.gz")
    assert "compressed data are damaged" in error_of(data[: len(data) // 2], tmp_path).problem


@pytest.mark.parametrize("threads", [1, 3])
def test_blocks_of_bgzip_are_inflated_side_by_side(threads, tmp_path, monkeypatch):
    monkeypatch.setattr(compressed, "_GROUP_SIZE", 1)  # each block for itself
    data = bgzip(BIG, tmp_path / "x.gz")
    assert len(list(bgzf_blocks(data))) > 5
    path = tmp_path / "y.gz"
    for tail, names in ((b"", ("a", "b")), (bytes(1000), ("a", "b")), (gzip.compress(b"@c\nA\n+\nI\n"), ("a", "b", "c"))):
        path.write_bytes(data + tail)
        if tail:  # the last block of bgzip does not stand at the end, which looks like a cut
            with pytest.raises(InputError, match="end-of-file block"):
                load_reads([path], threads=threads)
            path.write_bytes(data + tail + data[-28:])
        reads = load_reads([path], threads=threads)
        assert reads.names == names and reads.lengths[0] == len(RANDOM)
    for at in (20, 20_000, -40):
        path.write_bytes(data[:at] + bytes([data[at] ^ 4]) + data[at:][1:])
        with pytest.raises(InputError, match="compressed data are damaged"):
            load_reads([path], threads=threads)


def test_missing_file(tmp_path):
    with pytest.raises(InputError, match=r"none\.fq: No such file") as caught:
        load_reads([tmp_path / "none.fq"])
    assert caught.value.path == str(tmp_path / "none.fq")


def test_folder(tmp_path):
    with pytest.raises(InputError, match="Is a directory"):
        load_reads([tmp_path])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_no_permission(tmp_path):
    path = tmp_path / "x.fq"
    path.write_bytes(FASTQ)
    path.chmod(0)
    with pytest.raises(InputError, match="Permission denied"):
        load_reads([path])


def test_same_name_in_two_files(tmp_path):
    first, second, third = (tmp_path / name for name in ("1.fa", "2.fq", "3.fa"))
    first.write_bytes(b">x\nA\n>y\nA\n")
    second.write_bytes(FASTQ)
    third.write_bytes(b">z\nA\n>b\nA\n")
    with pytest.raises(InputError, match=f"same name 'b' as record 2 of {second}") as caught:
        load_reads([first, second, third])
    assert (caught.value.path, caught.value.record, caught.value.line) == (str(third), 2, 3)
    with pytest.raises(InputError, match=f"same name 'x' as record 1 of {first}"):
        load_reads([first, first])


@pytest.mark.parametrize("paths", [[], ["-", "-"], ["-", "x.fq", "-"]], ids=str)
def test_paths_that_make_no_sense(paths):
    with pytest.raises(ParameterError, match="standard input"):
        load_reads(paths)


@pytest.mark.parametrize("data", [FASTQ, gzip.compress(FASTQ)], ids=["plain", "gzip"])
def test_standard_input(data):
    code = "import sys; from bellapy.io.fastx import load_reads; r = load_reads(['-']); print(*r.names, r.n_bases)"
    root = Path(reads.__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, cwd=root, check=True)
    assert done.stdout == b"a b 6\n"


def test_standard_input_in_process(monkeypatch):
    stdin = io.TextIOWrapper(io.BytesIO(FASTQ[:-4]))
    monkeypatch.setattr(sys, "stdin", stdin)
    with pytest.raises(InputError, match=r"standard input: record 2 \(line 8\)"):
        load_reads(["-"])
    assert not stdin.buffer.closed


def test_cut_bgzip_from_a_pipe(tmp_path, monkeypatch):
    data = bgzip(b">a\nAC\n", tmp_path / "x.gz")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data[:-28])))
    with pytest.raises(InputError, match="standard input: the end-of-file block"):
        load_reads(["-"])


@pytest.mark.parametrize(
    "qualities, expected",
    [
        (["+5"], (0.1 + 0.01) / 2),
        (["+++", "5"], (3 * 0.1 + 0.01) / 4),
        (["", '!"~'], (1 + 10**-0.1 + 10**-9.3) / 3),
        (["IIII", "II"], None),
        (['!""', "!"], None),
        ([""], None),
    ],
)
def test_error_rate(qualities, expected, tmp_path):
    data = "".join(f"@r{i}\n{'A' * len(q)}\n+\n{q}\n" for i, q in enumerate(qualities)).encode()
    rate = load_bytes(data, tmp_path).error_rate
    assert rate == (None if expected is None else pytest.approx(expected))


def test_error_rate_of_a_sample(tmp_path):
    values = np.random.default_rng(3).integers(33 + 5, 33 + 30, 600_000).astype(np.uint8)
    cuts = [0, 10, 300_000, 590_000, len(values)]
    records = [values[a:b].tobytes() for a, b in zip(cuts, cuts[1:], strict=False)]
    data = b"".join(b"@r%d\n%s\n+\n%s\n" % (i, b"A" * len(q), q) for i, q in enumerate(records))
    rate = load_bytes(data, tmp_path).error_rate
    assert rate == pytest.approx(np.mean(10 ** ((33.0 - values) / 10)), rel=0.02)
    assert load_bytes(gzip.compress(data), tmp_path).error_rate == rate


def test_no_error_rate_with_fasta(tmp_path):
    fastq, fasta = tmp_path / "x.fq", tmp_path / "x.fa"
    fastq.write_bytes(FASTQ)
    fasta.write_bytes(b">x\nA\n")
    assert load_reads([fastq]).error_rate is not None
    assert load_reads([fasta]).error_rate is None
    assert load_reads([fastq, fasta]).error_rate is None
    assert load_reads([fasta, fastq]).error_rate is None


def test_progress(tmp_path, monkeypatch):
    monkeypatch.setattr(fastx_blocks, "BLOCK_SIZE", 1)
    monkeypatch.setattr(reads, "_PROGRESS_STEP", 15)
    path, calls = tmp_path / "x.fa", []
    path.write_bytes(b"".join(b">%d\nACGTA\n" % i for i in range(10)))
    load_reads([path], lambda *args: calls.append(args))
    assert calls == [(3, 15), (6, 30), (9, 45)]


LETTERS = "ACGTacgtNnRYKMSWBDHVUu"


@st.composite
def files(draw):
    """Sequences, and a file that holds them: FASTA, wrapped or not, or FASTQ; LF or CRLF; plain, gzip or bgzip."""
    sequences = draw(st.lists(st.text(LETTERS, max_size=40), min_size=1, max_size=8))
    width = draw(st.sampled_from([1, 2, 7, 60]))
    is_fastq = draw(st.booleans())
    lines = []
    for i, sequence in enumerate(sequences):
        lines.append(("@" if is_fastq else ">") + f"r{i}" + draw(st.sampled_from(["", " x", "\t@ > +"])))
        if is_fastq:
            quality = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=len(sequence))
            lines += [sequence, draw(st.sampled_from(["+", f"+r{i}"])), draw(quality)[: len(sequence)]]
        else:
            lines += [sequence[j : j + width] for j in range(0, len(sequence), width)]
    end = draw(st.sampled_from(["\n", "\r\n"]))
    text = end.join(lines) + draw(st.sampled_from([end, "", end * 3]))
    return sequences, text.encode(), draw(st.sampled_from(["plain", "gzip", "bgzip"])), draw(st.integers(1, 100))


@settings(deadline=None, max_examples=300)
@given(files())
def test_random_files(tmp_path_factory, case):
    sequences, data, compress, batch_size = case
    folder = tmp_path_factory.getbasetemp()
    if compress != "plain":
        data = gzip.compress(data) if compress == "gzip" else bgzip(data, folder / "in.gz")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fastx_blocks, "BLOCK_SIZE", batch_size)
        read_set = load_bytes(data, folder)
    assert_reads(read_set, {f"r{i}": sequence for i, sequence in enumerate(sequences)})


@pytest.mark.parametrize("half", [0, 1])
def test_codes_from_elsewhere_are_copied(half):
    """Half of an array that owns its memory is not taken for room in both directions."""
    array = np.tile(np.arange(4, dtype=np.uint8), 20).copy()
    before, codes = array.copy(), array[40 * half : 40 * half + 40]
    both = ReadSet(("a",), codes, np.array([8]), np.array([20], np.int32)).both_ways
    assert both.tolist() == [*codes.tolist(), *codes[::-1].tolist()]
    assert not np.shares_memory(both, array) and (array == before).all()
