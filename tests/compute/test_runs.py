"""The codec of runs against its definition."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bellapy.compute.runs import PAIR, QUERY_ALONE, TARGET_ALONE, length_of, lengthened, operation_of, pack_run

OPERATIONS = st.sampled_from([PAIR, QUERY_ALONE, TARGET_ALONE])
LENGTHS = st.integers(0, 2**28 - 1)


@given(operation=OPERATIONS, length=LENGTHS, other=LENGTHS)
def test_a_run_holds_what_was_packed(operation, length, other):
    run = pack_run(operation, length)
    assert int(run) == 16 * length + operation  # as BAM has it
    assert (operation_of(run), length_of(run)) == (operation, length)
    assert lengthened(run, other - length) == pack_run(operation, other)


def test_the_longest_run_has_32_bits():
    runs = np.array([pack_run(TARGET_ALONE, 2**28 - 1)], np.uint32)
    assert (operation_of(runs[0]), length_of(runs[0])) == (TARGET_ALONE, 2**28 - 1)
