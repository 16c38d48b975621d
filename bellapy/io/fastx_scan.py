"""Blocks of FASTA and FASTQ by compiled code: lines are checked and bases packed in one pass, without Python's lock.

What is in any way unusual is refused here, sound or not: `fastx_lines` reads it then, and says what is wrong.  So messages
and rare forms stand there alone, and what is taken here is what it would take.

Indices into text are unsigned: LLVM makes vector code of loops only where no index can be negative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bellapy.compute.jit import njit_entry, njit_inner, njit_vector
from bellapy.io.fastx_blocks import Block, FileBlock, Taken, read_only, spacing_of
from bellapy.io.fastx_ends import CAPITAL, FIRST, LESS, LETTERS, N_SEEN, count_lines, list_lines, look_at
from bellapy.io.fastx_form import LINES
from bellapy.records.bases import PAD, UNKNOWN

NO_LETTER = 128  # a bit that no code has
CR, TAB, BLANK, PLUS, AT, N = (ord(c) for c in "\r\t +@N")
REFUSED = -1

U, U8 = np.uint64, np.uint8
BASES = U8(ord("A")), U8(ord("C")), U8(ord("G")), U8(ord("T")), U8(ord("U"))
LEAST, RANGE = U8(ord("!")), U8(ord("~") - ord("!"))  # of names and quality values


@njit_inner
def _line_end(text, begin, end):
    """Where the line text[begin:end], uint8, ends without the CR that may stand before its LF."""
    return end - 1 if end > begin and text[end - 1] == CR else end


@njit_inner
def _name_end(text, begin, end):
    """Where the name of the header text[begin:end], uint8, ends, or REFUSED."""
    at = begin + 1
    while at < end and U8(text[at] - LEAST) <= RANGE:
        at += 1
    if at <= begin + 1 or (at < end and text[at] != BLANK and text[at] != TAB):
        return REFUSED
    for x in range(at, end):
        if text[x] == 0 or text[x] == CR:
            return REFUSED
    return at


@njit_inner
def _repeats(text, begin, end, header, n):
    """Whether text[begin:end], uint8, are the n bytes from `header` on."""
    if end - begin != n:
        return False
    for x in range(n):
        if text[begin + x] != text[header + x]:
            return False
    return True


@njit_vector
def _encode(text, begin, n, codes, at):
    """Write the codes of n bases, text[begin:], uint8, to codes[at:], uint8; returns all of them joined by "or".

    What is no letter has the bit NO_LETTER there.  It is what ENCODE says, in arithmetic that vector units do.
    """
    seen = U8(0)
    for x in range(U(n)):
        letter = U8(text[U(begin) + U(x)] & CAPITAL)
        known = (letter == BASES[0]) | (letter == BASES[1]) | (letter == BASES[2]) | (letter == BASES[3])
        code = U8(U8(letter >> U8(1)) & U8(3))  # of A, C, T or U, G: 0, 1, 2, 3
        code = U8(code ^ U8(code >> U8(1))) if known | (letter == BASES[4]) else U8(UNKNOWN)
        codes[U(at) + U(x)] = code
        seen = U8(seen | code | (U8(NO_LETTER) if U8(letter - FIRST) > LETTERS else U8(0)))
    return seen


@njit_inner
def _count_letters(text, begin, end, letters):
    """Count the letters of text[begin:end], uint8, that are not A, C, G, T, U or N in letters, (256,) int64, of Taken."""
    for x in range(begin, end):
        letter = U8(text[x] & CAPITAL)
        known = (letter == BASES[0]) | (letter == BASES[1]) | (letter == BASES[2]) | (letter == BASES[3])
        if not known and letter != BASES[4] and letter != N:
            letters[letter] += 1


@njit_inner
def _pack(text, begin, end, codes, at, letters):
    """Write the codes of text[begin:end], uint8, to codes[at:], uint8; returns whether all are letters.

    letters : (256,) int64, of Taken, added to.
    """
    seen = _encode(text, begin, end - begin, codes, at)
    if seen & NO_LETTER:
        return False
    if seen & UNKNOWN:
        _count_letters(text, begin, end, letters)
    return True


@njit_inner
def _put_gap(codes, at):
    """Write the unknown bases behind a read to codes[at:], uint8."""
    for x in range(at, at + PAD):
        codes[x] = UNKNOWN


@njit_vector
def _are_qualities(text, begin, end):
    """Whether text[begin:end], uint8, are values from '!' to '~'."""
    odd = U8(0)
    for x in range(U(end - begin)):
        odd = U8(odd | U8(U8(text[U(begin) + U(x)] - LEAST) > RANGE))
    return odd == 0


@njit_entry
def scan_fastq(text, ends, blocks, codes, records, letters, qualities):
    """Records of FASTQ; returns how many codes they have, or REFUSED.

    text : (any,) uint8.  ends : (4 n,) int64, where its lines end.  codes : (any,) uint8, written.
    records : (n, 4) int64, written: where the name begins and ends, bases, line.
    letters, qualities : (256,) int64, as in Taken, added to.
    blocks : (n_blocks, 2) int64, of each block the record after its last one, and its spacing: of so many bases the quality
        of one is counted, from the first base of the block on.
    """
    at, begin, skip, b = np.int64(0), np.int64(0), 0, 0
    for r in range(len(records)):
        while r == blocks[b, 0]:
            b, skip = b + 1, 0
        spacing = blocks[b, 1]
        plus, quality = ends[4 * r + 1] + 1, ends[4 * r + 2] + 1
        bases = ends[4 * r] + 1
        header_end, bases_end = _line_end(text, begin, bases - 1), _line_end(text, bases, plus - 1)
        plus_end, quality_end = _line_end(text, plus, quality - 1), _line_end(text, quality, ends[4 * r + 3])
        if header_end == begin or text[begin] != AT or plus_end == plus or text[plus] != PLUS:
            return REFUSED
        name_end, n = _name_end(text, begin, header_end), bases_end - bases
        if name_end == REFUSED or quality_end - quality != n:
            return REFUSED
        named = plus_end > plus + 1
        if named and not _repeats(text, plus + 1, plus_end, begin + 1, name_end - begin - 1):
            if not _repeats(text, plus + 1, plus_end, begin + 1, header_end - begin - 1):
                return REFUSED
        if not _pack(text, bases, bases_end, codes, at, letters) or not _are_qualities(text, quality, quality_end):
            return REFUSED
        for x in range(quality + skip, quality_end, spacing):
            qualities[text[x]] += spacing
        skip = (skip - n) % spacing
        _put_gap(codes, at + n)
        at += n + PAD
        records[r, 0], records[r, 1], records[r, 2], records[r, 3] = begin + 1, name_end, n, 4 * r
        begin = ends[4 * r + 3] + 1
    return at


@njit_entry
def scan_fasta(text, ends, codes, records, letters):
    """Records of FASTA; returns how many codes they have, or REFUSED.  Arguments as of `scan_fastq`."""
    at, begin, r = np.int64(0), np.int64(0), -1
    for line in range(len(ends)):
        end = _line_end(text, begin, ends[line])
        if end > begin and text[begin] == LESS:
            name_end = _name_end(text, begin, end)
            if name_end == REFUSED:
                return REFUSED
            if r >= 0:
                _put_gap(codes, at)
                at += PAD
            r += 1
            records[r, 0], records[r, 1], records[r, 2], records[r, 3] = begin + 1, name_end, 0, line
        elif end > begin:
            if r < 0 or not _pack(text, begin, end, codes, at, letters):
                return REFUSED
            records[r, 2] += end - begin
            at += end - begin
        begin = ends[line] + 1
    _put_gap(codes, at)
    return at + PAD


def _new_room(n: int) -> np.ndarray:
    return np.empty(n, np.uint8)


def scan(block: Block | FileBlock, fastq: bool, room: Callable[[int], np.ndarray] = _new_room) -> Taken | None:
    """The records of a block; None where `fastx_lines` has to look at it.

    room : gives memory for so many codes, (n,) uint8.
    """
    text = read_only(*block.text())
    return _scan(text, [len(text)], fastq, room)


def scan_all(
    blocks: Sequence[Block | FileBlock], fastq: bool, room: Callable[[int], np.ndarray]
) -> list[tuple[Block | FileBlock, Taken | None]]:
    """Blocks and what `scan` gives of them; those that follow each other in a file are taken for one, unless one is unusual.

    Threads ask for Python's lock for each block that they give, so there should be few.
    """
    first, last = blocks[0], blocks[-1]
    if isinstance(first, FileBlock) and isinstance(last, FileBlock):
        whole = first._replace(end=last.end)
        text = read_only(*whole.text())
        ends = [block.end - first.begin for block in blocks[:-1] if isinstance(block, FileBlock)]
        taken = _scan(text, [*ends, len(text)], fastq, room)
        if taken is not None or len(blocks) == 1:
            return [(whole, taken)]
    return [(block, scan(block, fastq, room)) for block in blocks]


def _scan(text: np.ndarray, block_ends: list[int], fastq: bool, room: Callable[[int], np.ndarray]) -> Taken | None:
    """The records of some blocks, which end at these places of the text."""
    ends = np.empty(count_lines(text), np.int64)
    list_lines(text, ends)
    if fastq and len(ends) % LINES:
        return None
    n_records = len(ends) // LINES if fastq else int((text[:1] == LESS).sum() + (text[ends[:-1] + 1] == LESS).sum())
    records = np.empty((n_records, 4), np.int64)
    letters, qualities = np.zeros((2, 256), np.int64)
    if fastq:
        bases = np.concatenate(([0], np.cumsum(ends[1::4] - ends[::4] - 1)))
        last_lines = np.searchsorted(ends, block_ends)
        if (last_lines % LINES).any():
            return None
        spacings = map(spacing_of, np.diff(bases[last_lines // LINES], prepend=0).tolist())
        blocks = np.array(list(zip((last_lines // LINES).tolist(), spacings, strict=True)), np.int64)
        codes = room(int(bases[-1]) + PAD * len(records))
        n = scan_fastq(text, ends, blocks, codes, records, letters, qualities)
    else:
        codes = room(len(text) + PAD * len(records))
        n = scan_fasta(text, ends, codes, records, letters)
    if n == REFUSED:
        return None
    view = memoryview(text.data)
    names = [str(view[begin:end], "ascii") for begin, end in records[:, :2].tolist()]
    return Taken(names, records[:, 2], codes[:n], records[:, 3], letters, qualities)


def load() -> None:
    """Compile, or load, the code that reads: by one read of each format."""
    for fastq, text in ((True, b"@r\nA\n+\n!\n"), (False, b">r\nA\n")):
        scan(Block(1, (text,)), fastq)
        look_at(read_only(text, len(text)), len(text), fastq, np.empty((1, N_SEEN), np.int64))
