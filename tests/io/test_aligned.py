"""SAM, BAM and CRAM as reads: the same as from FASTQ, each once and in its own direction, with its own tags."""

from __future__ import annotations

import io
import os
import random
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pysam
import pytest

from bellapy.errors import InputError
from bellapy.io.aligned import open_reads, read_groups
from bellapy.io.fastx import load_reads, stream_records
from bellapy.records.bases import reverse_complement

HEADER = {"HD": {"VN": "1.6"}, "SQ": [{"SN": "g", "LN": 9000}], "RG": [{"ID": "a", "SM": "s"}, {"ID": "b", "SM": "t"}]}
TAGS = b"MM:Z:C+m?,1,0;\tML:B:C,7,200\tqs:f:12.5\tRG:Z:a"


def made_reads(n: int = 30) -> list[tuple[bytes, bytes, bytes]]:
    """Names, bases and qualities."""
    rng = random.Random(n)
    sizes = [0, 1, 2, *(rng.randrange(3, 400) for _ in range(n - 3))]
    rows = [("".join(rng.choices("ACGTN", k=size)), "".join(map(chr, rng.choices(range(33, 90), k=size)))) for size in sizes]
    return [(f"r{i}".encode(), bases.encode(), values.encode()) for i, (bases, values) in enumerate(rows)]


def write(path, reads, flags=lambda i: 4, mode="wb", header=HEADER, values=True, cigar="{}M", tags=TAGS) -> str:
    """A file of alignments, whose reverse ones hold the read's other strand."""
    header = pysam.AlignmentHeader.from_dict(header)
    with pysam.AlignmentFile(str(path), mode, header=header) as file:
        for i, (name, bases, quality) in enumerate(reads):
            flag = flags(i)
            if flag & 16:
                bases, quality = reverse_complement(bases), quality[::-1]
            place = "*\t0\t0\t*" if flag & 4 else f"g\t{i + 1}\t60\t{cigar.format(len(bases)) if bases else '*'}"
            quality = (quality if values else b"") or b"*"
            line = f"{name.decode()}\t{flag}\t{place}\t*\t0\t0\t{bases.decode() or '*'}\t{quality.decode()}\t{tags.decode()}"
            file.write(pysam.AlignedSegment.fromstring(line, header))
    return str(path)


def text_of(path: str, threads: int = 1) -> bytes:
    with open_reads(path, threads) as stream:
        return stream.read()


def fastq(reads, tags=TAGS) -> bytes:
    return b"".join(b"@%b\t%b\n%b\n+\n%b\n" % (name, tags, *rest) for name, *rest in reads)


KINDS = {"bam": "wb", "sam": "wh", "cram": "wc", "ubam": "wbu"}


@pytest.mark.parametrize("kind", KINDS)
def test_unaligned_reads_are_those_of_fastq(tmp_path, kind):
    reads = made_reads() if kind != "cram" else made_reads()[1:]  # htslib gives an empty read of CRAM one base
    path = write(tmp_path / "reads", reads, mode=KINDS[kind])
    assert text_of(path) == text_of(path, 3) == fastq(reads)
    (tmp_path / "x.fq").write_bytes(fastq(reads))
    one, other = load_reads([path]), load_reads([tmp_path / "x.fq"])
    assert one.names == other.names and one.codes.tobytes() == other.codes.tobytes()
    assert one.error_rate == other.error_rate is not None
    assert [*stream_records([path])] == [*stream_records([tmp_path / "x.fq"])]


@pytest.mark.parametrize("kind", ["bam", "sam", "cram"])
def test_pipes(tmp_path, kind):
    reads = made_reads(2000)[1:]
    path = write(tmp_path / "reads", reads, mode=KINDS[kind])
    reader, writer = os.pipe()
    data = Path(path).read_bytes()

    def feed():
        with open(writer, "wb") as pipe:
            pipe.write(data)

    thread = Thread(target=feed)
    thread.start()
    assert text_of(f"/dev/fd/{reader}") == fastq(reads)
    thread.join()
    os.close(reader)
    code = (
        "import sys\nfrom bellapy.io.aligned import open_reads\n"
        "with open_reads('-') as stream:\n sys.stdout.buffer.write(stream.read())"
    )
    for cut in (len(data), len(data) * 2 // 3) if kind == "bam" else (len(data),):
        done = subprocess.run([sys.executable, "-c", code], input=data[:cut], capture_output=True)
        assert (done.stdout == fastq(reads)) == (cut == len(data))
        assert cut == len(data) or b"standard input: " in done.stderr


def test_aligned_reads_once_and_as_they_were_sequenced(tmp_path, said):
    reads = [(f"r{i // 3}".encode(), *rest) for i, (_, *rest) in enumerate(made_reads(93)[3:])]
    flags = {0: (0, 16), 1: (256, 272), 2: (2048, 2064)}
    tags = TAGS.replace(b"\tRG", b"\tNM:i:3\tAS:i:7\tts:i:5\tRG") + b"\tSA:Z:g,1,+,3M,60,0;\ttp:A:P"
    path = write(tmp_path / "x.bam", reads, lambda i: flags[i % 3][i % 2], tags=tags)
    assert text_of(path) == fastq(reads[::3], TAGS.removesuffix(b"RG:Z:a") + b"ts:i:5\tRG:Z:a")
    assert "30 secondary and 30 supplementary alignments passed over" in said.text


def test_reads_that_were_clipped_for_good(tmp_path, said):
    """MM counts bases that are not there any more."""
    path = write(tmp_path / "x.bam", made_reads(9), lambda i: 0, cigar="5H{}M")
    assert (
        b"MM:Z" not in text_of(path).replace(fastq(made_reads(9)[:1]), b"") and "bases of 8 reads were clipped" in said.text
    )


def test_reads_without_qualities(tmp_path):
    reads = [(b"e", b"", b""), *made_reads(9)[1:]]
    path = write(tmp_path / "x.bam", reads, values=False)
    found = load_reads([path])
    assert found.names == tuple(name.decode() for name, *_ in reads) and found.error_rate is None
    assert text_of(path) == b"@e\t%b\n\n+\n\n" % TAGS + b"".join(
        b">%b\t%b\n%b\n" % (name, TAGS, bases) for name, bases, _ in reads[1:]
    )


def test_read_groups(tmp_path):
    path = write(tmp_path / "x.bam", made_reads(5))
    assert read_groups(path) == {"a": "@RG\tID:a\tSM:s", "b": "@RG\tID:b\tSM:t"}
    (tmp_path / "x.fq").write_text("@a\nA\n+\nI\n")
    assert read_groups(str(tmp_path / "x.fq")) == {}


@pytest.mark.parametrize("threads", [1, 2])
def test_damaged_files(tmp_path, threads):
    data = Path(write(tmp_path / "x.bam", made_reads(2000))).read_bytes()
    for damaged in (data[:-28], data[:-40], data[: len(data) // 2], data[:30], data[:5000] + b"x" * 9 + data[5009:]):
        (tmp_path / "y.bam").write_bytes(damaged)
        with pytest.raises(InputError, match=r"y\.bam: .*fetch it again"):
            load_reads([tmp_path / "y.bam"], threads=threads)


def test_errors_name_records_and_no_lines_that_are_not_there(tmp_path):
    path = write(tmp_path / "x.bam", [*made_reads(5), *made_reads(5)[:1]])
    with pytest.raises(InputError, match=r"x\.bam: record 6: has the same name 'r0' as record 1\."):
        load_reads([path])


def test_fastq_is_left_as_it_is(tmp_path):
    (tmp_path / "x.fq").write_bytes(fastq(made_reads()))
    with open_reads(str(tmp_path / "x.fq")) as stream:
        assert isinstance(stream.raw, io.FileIO)
