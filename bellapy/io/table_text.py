"""Tab-separated text from columns of numbers, many lines at a time: formatting them one by one in Python takes longer than
some of the stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bellapy.compute.jit import njit_entry, njit_inner

NUMBER, OPTIONAL, LETTER, SHARE, NAME, TEXT = range(6)
"""What a column holds: a whole number; one that is left out where it is negative; the code of a letter; ten thousandths,
shown as 0.1234; the index of a name; text of its own in every row."""

MAX_DIGITS = 20
TAB, NEWLINE, MINUS, ZERO, POINT = (np.uint8(ord(letter)) for letter in "\t\n-0.")


@dataclass(frozen=True)
class NameTable:
    """Names end to end: text (n_bytes,) uint8; offsets (n_names + 1,) int64."""

    text: np.ndarray
    offsets: np.ndarray

    def __post_init__(self):
        self.text.flags.writeable = self.offsets.flags.writeable = False  # one type for compiled code

    @classmethod
    def of(cls, names: Sequence[str] | Sequence[bytes]) -> NameTable:
        encoded = [name if isinstance(name, bytes) else name.encode() for name in names]
        offsets = np.zeros(len(names) + 1, np.int64)
        np.cumsum([len(name) for name in encoded], out=offsets[1:])
        return cls(np.frombuffer(b"".join(encoded), np.uint8), offsets)

    def to_list(self) -> list[bytes]:
        """The names one by one."""
        whole, ends = self.text.tobytes(), self.offsets.tolist()
        return [whole[a:b] for a, b in zip(ends[:-1], ends[1:], strict=True)]


@njit_inner
def write_digits(out, at, value, least):
    """Write a number, value, with at least `least` digits to out, uint8, from `at` on; return where it ends."""
    if value < 0:
        out[at] = MINUS
        at, value = at + 1, -value
    n, rest = 1, value // 10
    while rest > 0:
        n, rest = n + 1, rest // 10
    n = max(n, least)
    for i in range(n - 1, -1, -1):
        out[at + i] = ZERO + np.uint8(value % 10)
        value //= 10
    return at + n


@njit_inner
def _write_bytes(out, at, text, begin, end):
    """Copy text[begin:end] to out, uint8 both, from `at` on; return where it ends."""
    for i in range(begin, end):
        out[at] = text[i]
        at += 1
    return at


@njit_entry
def write_rows(columns, kinds, prefixes, prefix_at, texts, text_at, out):
    """Write all rows to `out`, each column after its prefix, tabs between, a newline at the end; return the length.

    columns : (n_columns, n_rows) int64.
    kinds : (n_columns,) int64; NAME + i stands for the index of a text in texts[i].
    prefixes, prefix_at : text before the value of each column, end to end as in NameTable.
    texts, text_at : tuples of what NameTables hold.
    """
    at = 0
    for r in range(columns.shape[1]):
        for c in range(columns.shape[0]):
            value, kind = columns[c, r], kinds[c]
            if kind == OPTIONAL and value < 0:
                continue
            at = _write_bytes(out, at, prefixes, prefix_at[c], prefix_at[c + 1])
            if kind >= NAME:
                offsets = text_at[kind - NAME]
                at = _write_bytes(out, at, texts[kind - NAME], offsets[value], offsets[value + 1])
            elif kind <= OPTIONAL:
                at = write_digits(out, at, value, 1)
            elif kind == LETTER:
                out[at] = np.uint8(value)
                at += 1
            else:
                at = write_digits(out, at, value // 10_000, 1)
                out[at] = POINT
                at = write_digits(out, at + 1, value % 10_000, 4)
            out[at] = TAB
            at += 1
        out[at - 1] = NEWLINE
    return at


NO_NAMES = NameTable.of([])

Column = tuple[int, str, np.ndarray | NameTable]
"""Kind, text before every value, values (n_rows,); a NameTable for TEXT."""


def format_rows(columns: Sequence[Column], names: NameTable) -> bytes:
    """Lines of tab-separated text.

    Parameters
    ----------
    columns : kind, text before every value, values (n_rows,) for each column; a NameTable for TEXT.
    """
    tables, kinds, values = [names], [], []
    for kind, _, column in columns:
        if isinstance(column, NameTable):
            kind, tables = NAME + len(tables), [*tables, column]
            column = np.arange(len(column.offsets) - 1)
        kinds.append(kind)
        values.append(column)
    numbers = np.array(values, np.int64)
    prefixes = NameTable.of([prefix for _, prefix, _ in columns])
    widths = [int(np.diff(names.offsets).max(initial=0)) if kind == NAME else MAX_DIGITS for kind in kinds if kind <= NAME]
    longest = sum(widths) + len(prefixes.text) + len(columns)
    out = np.empty(numbers.shape[1] * longest + sum(len(table.text) for table in tables[1:]), np.uint8)
    texts, text_at = tuple(table.text for table in tables), tuple(table.offsets for table in tables)
    n = write_rows(numbers, np.array(kinds, np.int64), prefixes.text, prefixes.offsets, texts, text_at, out)
    return out[:n].tobytes()
