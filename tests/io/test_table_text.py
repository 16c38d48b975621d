"""Lines from columns, written by compiled code."""

import numpy as np

from bellapy.io.table_text import LETTER, NAME, NUMBER, OPTIONAL, SHARE, TEXT, NameTable, format_rows


def test_each_kind_of_column():
    columns = [
        (NAME, "", np.array([1, 0])), (LETTER, "", np.array([ord("+"), ord("-")])), (NUMBER, "n:", np.array([-12, 1 << 40])),
        (OPTIONAL, "s2:i:", np.array([0, -1])), (TEXT, "cg:Z:", NameTable.of([b"3M", b""])),
        (SHARE, "", np.array([438, 10_000])),
    ]  # fmt: skip
    names = NameTable.of(["one", "two"])
    assert format_rows(columns, names) == b"two\t+\tn:-12\ts2:i:0\tcg:Z:3M\t0.0438\none\t-\tn:1099511627776\tcg:Z:\t1.0000\n"


def test_a_row_may_end_without_an_optional_number():
    columns = [(NUMBER, "", np.array([1, 2])), (OPTIONAL, "", np.array([-1, 5]))]
    assert format_rows(columns, NameTable.of([])) == b"1\n2\t5\n"


def test_no_rows():
    assert format_rows([(NUMBER, "", np.zeros(0, np.int64))], NameTable.of(["x"])) == b""
