"""How sure a consensus is."""

from __future__ import annotations

import numpy as np
import pytest

from bellapy.engines.tags.graph import Terms, find_consensus
from bellapy.engines.tags.margins import ALONE, GROWTH, PARTS, find_differing, find_margins
from bellapy.engines.tags.symbols import GAP, INSERTED, Pile

SHARE = 0.5


def pack(reads: list[list[int]]) -> Pile:
    offsets = np.cumsum([0] + [len(read) for read in reads])
    return Pile(np.array(sum(reads, []), np.uint8), offsets, np.zeros(len(reads), np.int64))


def expected(reads_beyond: float, n: int) -> int:
    return round(PARTS * reads_beyond / (min(n, ALONE) ** GROWTH * max(1, n / ALONE)))


@pytest.mark.parametrize("n", [4, 16, 81])
def test_margins_are_what_speaks_for_a_base_beyond_what_it_needs(n):
    template = [0, 1, 2, 3, 0, 1]
    plain, other = template, [0, 1, 3, GAP, 0, INSERTED + 2, 1]
    few = n // 4  # show a wrong base, a gap, and a base more
    pile = pack([template] + [plain] * (n - few) + [other] * few)
    found = find_consensus(np.array(template, np.uint8), pile, Terms(), 3, with_template=False)
    assert found.codes.tolist() == template
    whole, part = expected(n - SHARE * n, n), expected(n - few - SHARE * n, n)
    assert find_margins(pile, found, SHARE).tolist() == [whole, whole, part, part, part, part]


def test_bases_that_are_left_out_count_for_those_beside_them_and_inserted_ones_for_themselves():
    n, more = 16, 10  # most reads lack a base and have another one between two columns
    template = [0, 1, 2, 3]
    pile = pack([template] + [[0, GAP, 2, INSERTED + 0, 3]] * more + [template] * (n - more))
    found = find_consensus(np.array(template, np.uint8), pile, Terms(), 3, with_template=False)
    assert found.codes.tolist() == [0, 2, 0, 3]
    sure, unsure = expected(n - SHARE * n, n), expected(more - SHARE * n, n)
    assert find_margins(pile, found, SHARE).tolist() == [unsure, unsure, unsure, sure]


def test_what_differs_from_a_template_is_found_with_the_base_beside_it():
    pile = pack([[0, 1, 2, 3, 0], [0, 3, INSERTED + 1, GAP, 3, 0]])
    assert find_differing(pile, np.array([0, 1, 2, 3, 0], np.uint8)).tolist() == [-1, 2, 2, -1, -1]
