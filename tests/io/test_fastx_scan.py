"""Compiled reading beside line-by-line reading: what the one takes, the other takes alike, on sound and on damaged text."""

from __future__ import annotations

import io
import random

import hostile
import numpy as np
import pytest

from bellapy.errors import InputError
from bellapy.io import fastx, fastx_blocks
from bellapy.io.fastx import load_reads, stream_records
from bellapy.io.fastx_blocks import AT_ONCE, Block, blocks_of
from bellapy.io.fastx_lines import chunks_of, take, whole_records
from bellapy.io.fastx_scan import scan
from bellapy.io.pieces import Pieces
from bellapy.records.bases import ENCODE, PAD

INPUTS = 400


def by_lines(block):
    """What the line-by-line rules make of a block; None where they find a fault."""

    def fault(problem, record, line):
        return InputError("x", problem, record, line)

    try:
        return [take(records, [line - 1 for line in lines]) for records, lines in chunks_of([block], fault)]
    except InputError:
        return None


def assert_alike(block, fastq):
    """Returns whether compiled code takes the block."""
    taken = scan(block, fastq)
    if taken is None:
        return False
    expected = by_lines(block)
    assert expected is not None and len(expected) == 1, block
    for name, mine, other in zip(taken._fields, taken, expected[0], strict=True):
        np.testing.assert_array_equal(mine, other, name)
    return True


@pytest.mark.parametrize("maker", [hostile.fasta, hostile.fastq])
def test_damaged_text(maker):
    n_taken = 0
    for i in range(INPUTS):
        data = maker(random.Random(f"{maker.__name__} {i}"))
        if data[:1] in (b">", b"@"):
            n_taken += assert_alike(Block(1, (data,)), data[:1] == b"@")
    assert INPUTS // 20 < n_taken < INPUTS


@pytest.mark.parametrize("maker", [hostile.fasta, hostile.fastq])
def test_whole_records_are_those_of_the_lines(maker):
    n_taken = 0
    for i in range(INPUTS):
        data = maker(random.Random(f"whole {i}"))
        records = whole_records(data, data[:1] == b"@") if data[:1] in (b">", b"@") else None
        if records is not None:
            n_taken += 1
            [(expected, _)] = chunks_of([Block(1, (data,))], InputError)
            assert records == expected
    assert INPUTS // 20 < n_taken < INPUTS


@pytest.mark.parametrize("letter", range(256))
def test_every_letter(letter):
    """At any place of a vector, in sequence and in quality values."""
    for at in (1, 31, 63, 98):
        bases, values = bytearray(b"ACGT" * 25), bytearray(b"I" * 100)
        bases[at] = letter
        taken = assert_alike(Block(1, (b">a\n" + bases + b"\n",)), False)
        assert taken == (bytes([letter]).isalpha() or letter == ord("\n"))
        if taken and letter != ord("\n"):
            assert scan(Block(1, (b">a\n" + bases + b"\n",)), False).codes[at] == ENCODE[letter]
        values[at] = letter
        assert assert_alike(Block(1, (b"@a\n" + b"ACGT" * 25 + b"\n+\n" + values + b"\n",)), True) == (33 <= letter <= 126)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 20, 64, 1 << 19])
@pytest.mark.parametrize("growing", [False, True])
def test_blocks_are_whole_records(size, growing, monkeypatch):
    monkeypatch.setattr(fastx_blocks, "BLOCK_SIZE", size)
    monkeypatch.setattr(fastx_blocks, "GROWTH", 2)
    fastq = b"".join(b"@r%d\n%s\n+\n%s\n" % (i, b"A" * i, b"@" * i) for i in range(20))
    fasta = b"".join(b">r%d x>y\n%s\n" % (i, b"ACG\n" * i) for i in range(20))
    for text, is_fastq in ((fastq, True), (fasta, False)):
        blocks = list(blocks_of(io.BufferedReader(io.BytesIO(text)), is_fastq, growing=growing))
        assert b"".join(block.data for block in blocks) == text
        first = 1
        for block in blocks:
            assert block.first_line == first and block.data[:1] in b"@>"
            first += block.data.count(b"\n")
            assert scan(block, is_fastq) is not None
        assert size > 1000 or len(blocks) > (2 if growing else 5)


def test_blocks_grow_up_to_a_size(monkeypatch):
    monkeypatch.setattr(fastx_blocks, "BLOCK_SIZE", 80)
    monkeypatch.setattr(fastx_blocks, "GROWTH", 3)
    text = b">r\nACGTAC\n" * 8 * 100  # records of ten bytes
    sizes = [len(block.data) for block in blocks_of(io.BufferedReader(io.BytesIO(text)), False, growing=True)]
    grown = [80 * min(AT_ONCE, 1 + n // 3) for n in range(len(sizes))]
    assert sizes[1:-2] == grown[1:-2] and max(sizes) == 80 * AT_ONCE and sum(sizes) == len(text)


@pytest.mark.parametrize("is_fastq", [True, False])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 20, 64, 1000])
def test_a_file_read_by_several_threads_gives_the_same_blocks(size, is_fastq, tmp_path, monkeypatch):
    monkeypatch.setattr(fastx_blocks, "BLOCK_SIZE", size)
    fastq = b"".join(b"@r%d\n%s\n+\n%s\n" % (i, b"A" * i, b"@" * i) for i in range(20))
    fasta = b"".join(b">r%d x>y\n%s\n" % (i, b"ACG\n" * i) for i in range(20))
    path, preadv, reads = tmp_path / "x", fastx_blocks.os.preadv, []

    def few(file, views, at):  # the system may give less than it is asked for
        reads.append(at)
        return preadv(file, [views[0][: (len(views[0]) + 1) // 2]], at)

    monkeypatch.setattr(fastx_blocks.os, "preadv", few)
    for text in (whole := fastq if is_fastq else fasta, whole[:-1], whole + b"\n\n", whole[:1]):
        path.write_bytes(text)
        expected = list(blocks_of(io.BufferedReader(io.BytesIO(text)), is_fastq))
        with open(path, "rb") as stream:
            blocks = list(blocks_of(stream, is_fastq, 3))
            assert [(block.first_line, block.data) for block in blocks] == [(b.first_line, b.data) for b in expected]
            for block, other in zip(blocks, expected, strict=True):
                (mine, n), (its, size_of_it) = block.text(), other.text()
                assert bytes(mine[:n]) == its[:size_of_it] and its.endswith(b"\n")
    assert reads, "several threads read the file itself"
    with open(path, "rb") as stream:
        path.write_bytes(whole)
        blocks = blocks_of(stream, is_fastq, 3)
        path.write_bytes(whole[:30])  # shorter before it is read
        assert b"".join(block.data for block in blocks) == whole[:30]


def test_rooms_of_codes_are_apart():
    pieces = Pieces()
    rooms = [pieces.room(n) for n in (3, 0, 5, 1 << 26, 2)]
    for i, room in enumerate(rooms):
        room[:] = i
    assert [len(room) for room in rooms] == [3, 0, 5, 1 << 26, 2] and all((room == i).all() for i, room in enumerate(rooms))
    for room in (rooms[2], rooms[0][:2]):  # in the order in which they are added, and as much as is used
        pieces.add(room)
    assert pieces.size == 7
    assert np.concatenate([piece for some in pieces.drain() for piece in some]).tolist() == [2] * 5 + [0] * 2
    pieces.let_go()
    pieces.add(pieces.room(4))
    assert pieces.size == 11 and not list(pieces.drain())


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_change_nothing(threads, tmp_path, monkeypatch):
    monkeypatch.setattr(fastx_blocks, "BLOCK_SIZE", 1000)
    rng = np.random.default_rng(1)
    letters = np.frombuffer(b"ACGTNacgtRU", np.uint8)
    texts = [rng.choice(letters, n).tobytes() for n in rng.integers(0, 300, 200)]
    path = tmp_path / "x.fq"
    named = {150: b"+r150"}
    path.write_bytes(
        b"".join(b"@r%d c\n%s\n%s\n%s\n" % (i, s, named.get(i, b"+"), b"I" * len(s)) for i, s in enumerate(texts))
    )
    reads = load_reads([path], threads=threads)
    expected = b"".join(bytes([4]) * PAD + ENCODE[np.frombuffer(s, np.uint8)].tobytes() for s in texts) + bytes([4]) * PAD
    assert reads.codes.tobytes() == expected and reads.names == tuple(f"r{i}" for i in range(200))
    path.write_bytes(path.read_bytes().replace(b"+r150", b"*r151"))
    with pytest.raises(InputError, match=r"record 151 \(line 603\): expected '\+'"):
        load_reads([path], threads=threads)


@pytest.mark.parametrize(("each", "threads", "expected"), [(1 << 20, 30, 12), (5, 30, 20), (5, 16, 16), (5, 4, 4)])
def test_more_threads_read_a_large_file(each, threads, expected, tmp_path, monkeypatch):
    (path := tmp_path / "reads.fa").write_bytes(b">a\nACGT\n>b\n" + b"C" * 89 + b"\n")
    seen = []
    monkeypatch.setattr(fastx, "BYTES_EACH", each)
    monkeypatch.setattr(fastx, "map_in_order", lambda do, items, at_once: (seen.append(at_once), *map(do, items))[1:])
    assert len(load_reads([path], threads=threads)) == 2 and seen == [expected]


@pytest.mark.parametrize("unusual", [False, True])
def test_qualities_are_sampled_alike_by_any_number_of_threads(unusual, tmp_path, monkeypatch):
    """In every block anew, also where a thread takes several blocks for one."""
    monkeypatch.setattr(fastx_blocks, "BLOCK_SIZE", 900)
    monkeypatch.setattr(fastx_blocks, "QUALITY_SAMPLE", 64)
    rng, path = np.random.default_rng(3), tmp_path / "x.fq"
    values = [(33 + rng.integers(1, 60, n).astype(np.uint8)).tobytes() for n in rng.integers(0, 300, 120)]
    records = [b"@r%d\n%s\n+\n%s\n" % (i, b"A" * len(its), its) for i, its in enumerate(values)]
    path.write_bytes(b"".join(records) + b"\n\n" * unusual)  # blank lines are looked at line by line
    rates = [load_reads([path], threads=threads).error_rate for threads in (1, 2, 5)]
    assert rates[0] is not None and rates == rates[:1] * 3
    every = np.frombuffer(b"".join(values), np.uint8)
    assert rates[0] != np.mean(10.0 ** ((33.0 - every) / 10)), "not all are counted"


@pytest.mark.parametrize("size", [1, 40, 1000, 1 << 19])
@pytest.mark.parametrize("threads", [1, 3])
def test_any_form_of_records(size, threads, tmp_path, monkeypatch):
    """Of both formats, wrapped and not, with blank lines: by any number of threads, and as a stream."""
    monkeypatch.setattr(fastx_blocks, "BLOCK_SIZE", size)
    rng, path, parts, expected = random.Random(size), tmp_path / "x", [], []
    for i in range(300):
        bases = "".join(rng.choices("ACGT", k=rng.choice((0, 1, 5, 60, 200))))
        width, usual = rng.choice((7, 60, 500)), i < 200 or rng.random() < 0.5
        values = "".join(map(chr, rng.choices(range(33, 127), k=len(bases))))
        if usual and size % 3:
            parts.append(f"@r{i} c\n{bases}\n+\n{values}\n")
        elif rng.random() < 0.5:
            parts.append(f"@r{i} c\n{wrapped(bases, width)}+r{i}\n{wrapped(values, width)}")
        else:
            parts.append(f">r{i} c\n{wrapped(bases, width)}")
            values = None
        parts.append("\n" * rng.choice((0, 0, 0, 1, 9)) * (not usual))
        expected.append((f"r{i}".encode(), b"c", bases.encode(), values if values is None else values.encode()))
    path.write_text("".join(parts))
    reads = load_reads([path], threads=threads)
    assert reads.names == tuple(name.decode() for name, *_ in expected)
    assert (
        reads.codes.tobytes()
        == b"".join(bytes([4]) * PAD + encoded(bases) for _, _, bases, _ in expected) + bytes([4]) * PAD
    )
    found = [
        row for some in stream_records([path])
        for row in zip(some.names, some.comments, some.sequences, some.qualities or [None] * len(some.names), strict=True)
    ]  # fmt: skip
    assert found == expected


def wrapped(text: str, width: int) -> str:
    return "".join(text[at : at + width] + "\n" for at in range(0, len(text), width))


def encoded(bases: bytes) -> bytes:
    return ENCODE[np.frombuffer(bases, np.uint8)].tobytes()


def test_protein_is_told_by_the_first_records_of_a_stream(tmp_path):
    path = tmp_path / "x.fa"
    path.write_text(">p\n" + "MKVLAAGIVGLLLLQPSTEF" * 9 + "\n")
    with pytest.raises(InputError, match="looks like protein"):
        list(stream_records([path]))
