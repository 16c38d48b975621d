"""Input as it should not be: sound files, damaged in every way that disks, transfers, editors and other programs know."""

from __future__ import annotations

import gzip
import json
import random
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pysam

from bellapy.records.bases import ENCODE

Rng = random.Random
LETTERS = "ACGTacgtNnRYU"
WEIGHTS = (20, 20, 20, 20, 2, 2, 2, 2, 1, 1, 0.1, 0.1, 0.1)

# ---------------------------------------------------------------- sound files


def sequence(rng: Rng, length: int) -> str:
    return "".join(rng.choices(LETTERS, WEIGHTS, k=length))


def fastq(rng: Rng, end: str = "\n") -> bytes:
    records = []
    for i in range(rng.randint(0, 8)):
        bases = sequence(rng, rng.choice((0, 1, 5, 50, 300)))
        quality = "".join(map(chr, rng.choices(range(33, 127), k=len(bases))))
        records += [f"@r{i} some text", bases, rng.choice(("+", "+", "+", f"+r{i}")), quality]
    return "".join(line + end for line in records).encode()


def fasta(rng: Rng, end: str = "\n") -> bytes:
    lines = []
    for i in range(rng.randint(0, 8)):
        bases, width = sequence(rng, rng.choice((0, 1, 5, 50, 300))), rng.choice((7, 60, 10**9))
        lines += [f">r{i} text", *(bases[at : at + width] for at in range(0, len(bases), width))]
    return "".join(line + end for line in lines).encode()


def bam(rng: Rng, end: str = "\n") -> bytes:
    """Inflated: what is damaged then are its records."""
    header = pysam.AlignmentHeader.from_dict({"HD": {"VN": "1.6"}, "SQ": [{"SN": "g", "LN": 900}], "RG": [{"ID": "a"}]})
    lines = []
    for i in range(rng.randint(0, 8)):
        bases = sequence(rng, rng.choice((1, 5, 50, 300))).upper().replace("U", "T")
        flag = rng.choice((4, 4, 4, 0, 16, 256, 2048))
        place = "*\t0\t0\t*" if flag == 4 else f"g\t{rng.randint(1, 500)}\t9\t{len(bases)}M"
        quality = rng.choice(("*", "".join(map(chr, rng.choices(range(33, 127), k=len(bases))))))
        lines.append(f"r{i}\t{flag}\t{place}\t*\t0\t0\t{bases}\t{quality}\tRG:Z:a\tMM:Z:C+m,1;\tML:B:C,7")
    with tempfile.NamedTemporaryFile() as file:
        with pysam.AlignmentFile(file.name, "wb", header=header) as written:
            for line in lines:
                written.write(pysam.AlignedSegment.fromstring(line, header))
        return gzip.decompress(Path(file.name).read_bytes())


def paf(rng: Rng, end: str = "\n") -> bytes:
    lines = []
    for _ in range(rng.randint(0, 8)):
        q, t = rng.randrange(9), rng.randrange(9)
        numbers = [rng.choice((0, 5, 900, 10**4)) for _ in range(7)]
        row = [f"r{q}", *numbers[:3], rng.choice("+-"), f"r{t}", *numbers[3:6], 1, 1, 255, "tp:A:S"]
        lines.append("\t".join(map(str, row)))
    return "".join(line + end for line in lines).encode()


def pairs(rng: Rng, end: str = "\n") -> bytes:
    lines = []
    for _ in range(rng.randint(1, 6)):
        sides = [(bases := sequence(rng, rng.choice((4, 5, 50, 90))), rng.randint(0, len(bases) - 4)) for _ in range(2)]
        lines.append("\t".join(map(str, (*sides[0], *sides[1], rng.choice("nc")))))
    return "".join(line + end for line in lines).encode()


def table(rng: Rng, end: str = "\n") -> bytes:
    rows = ["# name ref start end strand"] if rng.random() < 0.3 else []
    for i in range(rng.randint(1, 9)):
        start, size = rng.randrange(10**4), rng.randrange(5000)
        more = f"\t{size}\t0\t{size}" if rng.random() < 0.3 else ""
        rows.append(f"r{i}\tchr{rng.randrange(3)}\t{start}\t{start + size}\t{rng.choice('+-')}{more}")
    return "".join(row + end for row in rows).encode()


def maf(rng: Rng, end: str = "\n") -> bytes:
    rows = ["##maf version=1"] if rng.random() < 0.5 else []
    for i in range(rng.randint(1, 9)):
        size = rng.randrange(1, 30)
        bases = sequence(rng, size)
        rows += [
            "a",
            f"s ref {rng.randrange(99)} {size} + 1000 {bases}",
            f"s S1_{i} 0 {size} {rng.choice('+-')} {size} {bases}",
            "",
        ]
    return "".join(row + end for row in rows).encode()


def sam(rng: Rng, end: str = "\n") -> bytes:
    rows = ["@HD\tVN:1.6", "@SQ\tSN:chr1\tLN:100000"]
    for i in range(rng.randint(1, 9)):
        bases = sequence(rng, 20).upper()
        cigar = rng.choice(("20M", "5S15M", "10M2D10M", "10M2I8M", "3H20M", "4=1X15M", "*"))
        rows.append("\t".join((f"r{i}", rng.choice(("0", "16", "4", "256")), "chr1", str(rng.randint(1, 900)), "60", cigar,
                               "*", "0", "0", bases, "*")))  # fmt: skip
    return "".join(row + end for row in rows).encode()


# ---------------------------------------------------------------- damage


def _flip(rng: Rng, data: bytearray) -> None:
    for _ in range(rng.randint(1, 10)):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _replace(rng: Rng, data: bytearray) -> None:
    data[rng.randrange(len(data))] = rng.randrange(256)


def _truncate(rng: Rng, data: bytearray) -> None:
    del data[rng.randrange(len(data)) :]


def _cut(rng: Rng, data: bytearray) -> None:
    at = rng.randrange(len(data))
    del data[at : at + rng.randint(1, 200)]


def _double(rng: Rng, data: bytearray) -> None:
    at = rng.randrange(len(data))
    data[at:at] = data[at : at + rng.randint(1, 200)]


def _insert(*choices: bytes) -> Callable[[Rng, bytearray], None]:
    def insert(rng: Rng, data: bytearray) -> None:
        at = rng.randint(0, len(data))
        data[at:at] = rng.choice(choices) * rng.choice((1, 1, 2, 5)) if choices else rng.randbytes(rng.randint(1, 20))

    return insert


def _prefix(rng: Rng, data: bytearray) -> None:
    data[:0] = rng.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"\n", b" ", b"\0"))


def _line_ends(rng: Rng, data: bytearray) -> None:
    data[:] = data.replace(b"\n", rng.choice((b"\r", b"\r\n", b"\n\r", b"\r\r\n", b"\n\n", b"")))


def _lose_line_end(rng: Rng, data: bytearray) -> None:
    ends = [i for i, byte in enumerate(data) if byte == 10]
    if ends:
        del data[rng.choice(ends)]


def _swap_lines(rng: Rng, data: bytearray) -> None:
    lines = data.split(b"\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[i], lines[j] = lines[j], lines[i]
    data[:] = b"\n".join(lines)


def _columns(rng: Rng, data: bytearray) -> None:
    """A field of a table becomes something else."""
    lines = data.split(b"\n")
    i = rng.randrange(len(lines))
    columns = lines[i].split(b"\t")
    columns[rng.randrange(len(columns))] = rng.choice(
        (b"", b"-1", b"x", b"1e9", b"nan", b"99999999999999999999", b"9223372036854775807", b"2147483648", b" 7", b"0x7",
         b"\xd9\xa3", b"1_0", b"*", b"+", "é".encode(), b"\xff")
    )  # fmt: skip
    lines[i] = b"\t".join(columns)
    data[:] = b"\n".join(lines)


def _noise(rng: Rng, data: bytearray) -> None:
    data[:] = rng.randbytes(rng.randint(0, 300))


def _long_line(rng: Rng, data: bytearray) -> None:
    data[:] = rng.choice((b">", b"@", b"")) + b"x" * rng.choice((1000, 100_000)) + b"\nACGT\n+\nIIII\n"


def _nothing(rng: Rng, data: bytearray) -> None:
    pass


DAMAGE = (
    _flip, _replace, _truncate, _cut, _double, _insert(), _insert(b"\0"), _insert(b"\n"), _insert(b"\r"),
    _insert(b"@", b">", b"\n>", b"\n@", b"\n+\n", b"+"), _insert(b" ", b"\t", b"  \t"), _prefix, _line_ends,
    _lose_line_end, _swap_lines, _columns, _noise, _long_line, _nothing,
)  # fmt: skip


def damaged(rng: Rng, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2))):
        if changed:
            rng.choice(DAMAGE)(rng, changed)
    return bytes(changed)


def bgzip(data: bytes, path: str) -> bytes:
    with pysam.BGZFile(path, "wb") as stream:
        stream.write(data)
    with open(path, "rb") as stream:
        return stream.read()


def wrapped(rng: Rng, make: Callable[[Rng, str], bytes], scratch: str) -> bytes:
    """A damaged file: plain, damaged and then compressed, or compressed and then damaged."""
    sound = make(rng, rng.choice(("\n",) * 5 + ("\r\n",)))
    kind = rng.choice(("plain",) * 4 + ("gzip", "bgzip", "damaged gzip", "damaged bgzip", "members", "trailing"))
    if kind.startswith("damaged"):
        return damaged(rng, gzip.compress(sound, 1) if kind == "damaged gzip" else bgzip(sound, scratch))
    data = damaged(rng, sound)
    if kind == "gzip":
        return gzip.compress(data, 1)
    if kind == "bgzip":
        return bgzip(data, scratch)
    if kind == "members":
        at = len(data) // 2
        return gzip.compress(data[:at], 1) + gzip.compress(data[at:], 1)
    if kind == "trailing":
        rest = (bytes(rng.randint(1, 600)), rng.randbytes(20), b"\x1f", b"\x1f\x8b", b"\x1f\x8b\x08\0")
        return gzip.compress(data, 1) + rng.choice(rest)
    return data


# ---------------------------------------------------------------- what is in a file, read in the plainest way


def plainly_read(data: bytes) -> list[tuple[str, bytes]]:
    """Names and codes of the reads in a FASTA or FASTQ file that was accepted."""
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    lines = [text for line in data.split(b"\n") if (text := line.removesuffix(b"\r")) and not text.isspace()]
    records = []
    while lines:
        header, bases = lines.pop(0), []
        while lines and lines[0][:1] not in (b">", b"@", b"+"):
            bases.append(lines.pop(0))
        if header[:1] == b"@":
            del lines[: 1 + len(bases)]
        codes = ENCODE[np.frombuffer(b"".join(bases), np.uint8)].tobytes()
        records.append((header[1:].split()[0].decode(), codes))
    return records


# ---------------------------------------------------------------- stage files that are sound archives


def _value(rng: Rng, column: np.ndarray):
    """A value that a column might hold, or might not."""
    if column.dtype.kind == "f":
        return rng.choice((0.0, -1.0, 1e30, float("nan"), float("inf"), rng.random()))
    info = np.iinfo(column.dtype)
    near = int(rng.choice(column.ravel())) + rng.choice((-1, 1, -17, 17)) if column.size else 0
    any_value = rng.choice((-1, 0, 1, 2, near, near, near, 10**6, info.min, info.max, rng.randint(info.min, info.max)))
    return max(info.min, min(info.max, any_value))


def _changed(rng: Rng, column: np.ndarray, others: list[np.ndarray]) -> np.ndarray | None:
    """What stands in the place of a column; None: nothing."""
    kind = rng.choice(
        ("value",) * 6 + ("values", "all", "shift", "roll", "turn", "other", "short", "long", "shape", "kind", "none")
    )
    column = column.copy()
    flat = column.reshape(-1)
    if kind == "value" and column.size:
        flat[rng.randrange(column.size)] = _value(rng, column)
    elif kind == "values" and column.size:
        for _ in range(20):
            flat[rng.randrange(column.size)] = _value(rng, column)
    elif kind == "all":
        flat[:] = _value(rng, column)
    elif kind == "shift":
        with np.errstate(all="ignore"):
            flat += np.asarray(rng.choice((1, 3, 100)), column.dtype)
    elif kind == "roll":
        column = np.roll(column, rng.randint(1, 9))
    elif kind == "turn":
        column = column.ravel()[::-1].copy()
    elif kind == "other":
        column = rng.choice(others).copy()
    elif kind == "short":
        column = flat[: rng.randint(0, column.size)].copy()
    elif kind == "long":
        column = np.append(flat, flat)
    elif kind == "shape":
        column = column.reshape(rng.choice(((1, -1), (-1, 1))) if column.ndim else (1,))
    elif kind == "kind":
        column = column.astype(rng.choice((np.int64, np.float64, np.uint8, np.int32, "S4", bool)))
    return None if kind == "none" else column


def _changed_value(rng: Rng, value):
    """What stands in the place of something in a header."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        name = rng.choice(sorted(value))
        if rng.random() < 0.1:
            return {other: value[other] for other in value if other != name}
        return {**value, name: _changed_value(rng, value[name])}
    return rng.choice((None, -1, 0, 1, 2.5, 10**30, True, "x", [], {}, [1], float("nan"), "best"))


def crafted(rng: Rng, held: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays of a stage file, some of them changed, or all rows in another order, doubled or dropped."""
    held, names = dict(held), sorted(name for name in held if name != "header")
    if rng.random() < 0.1:
        header = _changed_value(rng, json.loads(held["header"].tobytes()))
        return {**held, "header": np.frombuffer(json.dumps(header).encode(), np.uint8)}
    if rng.random() < 0.1:
        n = max(held[name].size for name in names)
        rows = np.array(rng.choices(range(n), k=rng.randint(0, n)), int)
        return {name: column[rows] if column.shape == (n,) else column for name, column in held.items()}
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        name = rng.choice(names)
        changed = _changed(rng, held[name], [held[other] for other in names if other in held])
        if changed is None:
            del held[name]
            return held
        held[name] = changed
    return held
