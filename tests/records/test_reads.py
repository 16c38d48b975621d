"""Reads built from text are those that a file holds."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

from bellapy.compute.threads import shared_by
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


@pytest.mark.parametrize("threads", [1, 3, 50])
def test_threads_turn_the_same_reads(threads):
    made, expected = ReadSet.from_sequences(SEQUENCES), ReadSet.from_sequences(SEQUENCES).both_ways
    both_ways = made.turn_by(shared_by(threads))
    np.testing.assert_array_equal(both_ways, expected)
    assert made.both_ways is both_ways is made.turn_by(shared_by(threads)), "GPUs know by the array which bases they have"
    assert not both_ways.flags.writeable


def test_both_ways_can_be_forgotten():
    made, codes = ReadSet.from_sequences(SEQUENCES), ReadSet.from_sequences(SEQUENCES).codes
    known, expected = weakref.ref(made.both_ways), made.both_ways.copy()
    made.forget_both_ways()
    assert known() is None, "what else depends on the array is let go of, too"
    np.testing.assert_array_equal(made.codes, codes)
    np.testing.assert_array_equal(made.both_ways, expected)
