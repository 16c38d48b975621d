"""Nets, against their definition base by base."""

from __future__ import annotations

import numpy as np

from bellapy.io.nets import format_nets
from bellapy.jobs.wga.net import LEAST_SPACE, make_nets
from bellapy.records.genomes import PAIR, QUERY_ALONE, TARGET_ALONE, Alignment, Genome

LENGTH = 2000


def genome(name: str, length: int = LENGTH) -> Genome:
    return Genome((name,), np.zeros(length, np.uint8), np.zeros(length, np.bool_), np.array([0]), np.array([length]))


def chain(score: int, t: int, q: int, *runs: tuple[int, int], strand: int = 1) -> Alignment:
    return Alignment(score, 0, 0, strand, t, q, np.array(runs, np.int64))


def test_a_gap_is_filled_by_the_next_chain():
    target, query = genome("t"), genome("q")
    best = chain(90_000, 100, 50, (PAIR, 300), (TARGET_ALONE, 200), (QUERY_ALONE, 40), (PAIR, 400))
    inside = chain(20_000, 380, 500, (PAIR, 400), strand=-1)  # its middle lies in the gap
    beside = chain(10_000, 900, 1000, (PAIR, 300))
    small = chain(4000, 1200, 20, (PAIR, 10))
    nets = make_nets([best, inside, beside, small], target, query)
    text = b"".join(format_nets(nets, target, query)).decode()
    assert text.splitlines() == [
        f"net t {LENGTH}",
        " fill 100 900 q + 50 740 id 1 score 90000 ali 700",
        "  gap 400 200 q + 350 40",
        "   fill 400 200 q - 1280 200 id 2 score 10000 ali 200",
        " fill 1000 200 q + 1100 200 id 3 score 6666 ali 200",
    ]


def owners(fills, owner) -> None:
    """The chain of each base, as a net tells it: the deepest fill that has it in no gap."""
    for fill in fills:
        assert not owner[slice(*fill.t)].any()
        owner[slice(*fill.t)] = fill.chain
        for gap in fill.gaps:
            owner[slice(*gap.t)] = 0
            owners(gap.fills, owner)


def test_every_base_has_the_best_chain_that_spans_it():
    """Without thresholds in the way: chains of high score, gaps large enough to be filled."""
    rng = np.random.default_rng(1)
    target, query = genome("t"), genome("q", 10**6)
    for _ in range(20):
        chains = []
        for rank in range(8):
            sizes = rng.integers(LEAST_SPACE, 200, 2 * int(rng.integers(1, 4)) + 1)
            runs = [(TARGET_ALONE if x % 2 else PAIR, int(size)) for x, size in enumerate(sizes)]
            t = int(rng.integers(0, LENGTH - sizes.sum()))
            chains.append(chain(10**8 - rank, t, int(rng.integers(0, 10**5)), *runs, strand=int(rng.choice([1, -1]))))
        nets = make_nets(chains, target, query)
        owner, expected = np.zeros(LENGTH, np.int64), np.zeros(LENGTH, np.int64)
        owners(nets[0], owner)
        for number in range(8, 0, -1):
            at = chains[number - 1].t_start
            for operation, size in chains[number - 1].runs.tolist():
                if operation == PAIR:
                    expected[at : at + size] = number
                at += size
        differ = expected != owner
        edges = np.flatnonzero(np.diff(np.concatenate(([0], differ.astype(np.int8), [0]))))
        assert (np.diff(edges)[::2] < LEAST_SPACE).all()  # what is too small to be filled
        assert differ.mean() < 0.1
