"""Reads built from text are those that a file holds."""

from __future__ import annotations

import numpy as np
import pytest

from bellapy.io.fastx import load_reads
from bellapy.records import ReadSet
from bellapy.records.bases import PAD, UNKNOWN

SEQUENCES = ["ACGTNacgtuRx", "", "A", "GATTACA" * 50]


@pytest.mark.parametrize("kind", [str, str.encode])
def test_reads_from_sequences_are_those_of_a_file(tmp_path, kind):
    names = [f"r{i}" for i in range(len(SEQUENCES))]
    path = tmp_path / "x.fa"
    path.write_text("".join(f">{name}\n{text}\n" for name, text in zip(names, SEQUENCES, strict=True)))
    loaded, made = load_reads([path]), ReadSet.from_sequences([kind(text) for text in SEQUENCES], names)
    assert made.names == loaded.names
    for name in ("codes", "starts", "lengths", "both_ways"):
        np.testing.assert_array_equal(getattr(made, name), getattr(loaded, name))
        assert getattr(made, name).dtype == getattr(loaded, name).dtype


def test_no_reads_and_no_names():
    none = ReadSet.from_sequences([])
    assert len(none) == none.n_bases == 0
    np.testing.assert_array_equal(none.codes, np.full(PAD, UNKNOWN, np.uint8))
    assert ReadSet.from_sequences(["A", "C"]).names == ("0", "1")
    with pytest.raises(ValueError, match="differ in number"):
        ReadSet.from_sequences(["A", "C"], ["a"])
