"""Partial-order alignment against full tables in plain Python, and against spoa where it is installed."""

from __future__ import annotations

import naive_poa as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from poa_windows import SCORINGS, windows

from bellapy.engines.poa.windows import GAP_LETTER, Aligner
from bellapy.params.correct import PoaScoring


def align(sequences, scoring=PoaScoring(), with_alignment=False, aligner=None):  # noqa: B008
    codes = [np.array(sequence, np.uint8) for sequence in sequences]
    offsets = np.concatenate(([0], np.cumsum([len(sequence) for sequence in codes]))).astype(np.int64)
    aligner = aligner or Aligner(scoring, with_alignment)
    return aligner.align(np.concatenate([*codes, np.empty(0, np.uint8)]), offsets)


@given(windows(), st.sampled_from(SCORINGS))
def test_scores_and_consensus_are_those_of_full_tables(sequences, scoring):
    found = align(sequences, scoring)
    consensus, scores, _ = naive.window(sequences, *scoring)
    assert found.scores.tolist() == scores
    assert found.consensus.tolist() == consensus


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.sampled_from([60, 64, 65, 130, 200]))
def test_sequences_of_several_stretches(seed, length):
    rng = np.random.default_rng(seed)
    true = rng.integers(0, 4, length)
    sequences = []
    for _ in range(4):
        keep = rng.random(length) > 0.07
        copy = np.where(rng.random(length) < 0.05, rng.integers(0, 4, length), true)[keep]
        sequences.append(np.insert(copy, rng.integers(0, len(copy), 6), rng.integers(0, 4, 6)).tolist())
    sequences.append(true[length // 2 :].tolist())  # half of it: a long gap
    found = align(sequences)
    consensus, scores, _ = naive.window(sequences, *PoaScoring())
    assert found.scores.tolist() == scores
    assert found.consensus.tolist() == consensus


def test_a_window_does_not_depend_on_those_before_it():
    rng = np.random.default_rng(1)
    groups = [[rng.integers(0, 4, n).tolist() for _ in range(3)] for n in (90, 5, 200, 64, 0, 1)]
    aligner = Aligner(PoaScoring())
    for group in groups:
        assert align(group, aligner=aligner).consensus.tolist() == align(group).consensus.tolist()


@pytest.mark.parametrize("lengths", [(100, 100, 100), (20, 25, 100, 20)])
def test_wide_scores_are_the_same(lengths):
    """Too steep for 16 bits, for all sequences or from the third one on."""
    from bellapy.engines.poa import windows as module

    rng = np.random.default_rng(2)
    steep = PoaScoring(60, -50, -55)
    sequences = [rng.integers(0, 4, n).tolist() for n in lengths]
    least, most = (steep.match * (lengths[0] + 2 * n + 2 * module.LANES) for n in (lengths[1], max(lengths)))
    assert (least <= module.MOST_SHORT) == (lengths[1] < 100) and most > module.MOST_SHORT
    assert align(sequences, steep).scores.tolist() == naive.window(sequences, *steep)[1]


def test_the_layout_shows_every_sequence_and_aligned_bases_in_columns():
    found = align([[0, 1, 2, 3], [0, 2, 3], [0, 1, 1, 2, 3], []], with_alignment=True)
    shown = ["".join("ACGT"[c] if c != GAP_LETTER else "-" for c in row) for row in found.alignment]
    assert [row.replace("-", "") for row in shown] == ["ACGT", "AGT", "ACCGT", ""]
    assert len({len(row) for row in shown}) == 1
    assert len({row[-1] for row in shown[:3]}) == 1


def test_no_sequences():
    assert len(align([[], []]).consensus) == 0


def spoa_score(rows, scoring):
    """The score of the last row of spoa's alignment on the graph of the rows before it, and that graph's best."""
    graph, letters = naive.Graph(), "ACGTN"
    before = [{} for _ in rows[0]]
    for row in rows[:-1]:
        mates = []
        for i, letter in enumerate(row):
            if letter != "-":
                mates.append(i)
        last = None
        for i in mates:
            base = letters.index(row[i])
            if base not in before[i]:
                before[i][base] = len(graph.base)
                graph.base.append(base)
                graph.edges[before[i][base]] = {}
            node = before[i][base]
            if last is not None:
                graph.edges[node][last] = 1
            last = node
    graph.columns = [column for column in before if column]
    place = {i: column for i, column in enumerate(before) if column}
    sequence = [letters.index(letter) for letter in rows[-1] if letter != "-"]
    best, _ = naive.align(graph, sequence, *scoring)
    # the same table, but every base has to stand in the column that spoa chose
    table = {None: [0] + [None] * len(sequence)}
    columns = [i for i, letter in enumerate(rows[-1]) if letter != "-"]
    where = {node: i for i, column in place.items() for node in column.values()}
    for j, i in enumerate(columns, 1):
        if i not in place and table[None][j - 1] is not None:
            table[None][j] = table[None][j - 1] + scoring.gap
    for node in graph.order():
        row = table[node] = []
        for j in range(len(sequence) + 1):
            tails, ways = list(graph.edges[node]) or [None], []
            if j and columns[j - 1] not in place and row[j - 1] is not None:
                ways.append(row[j - 1] + scoring.gap)
            for tail in tails:
                if table[tail][j] is not None:
                    ways.append(table[tail][j] + scoring.gap)
                if j and columns[j - 1] == where[node] and table[tail][j - 1] is not None:
                    same = graph.base[node] == sequence[j - 1]
                    ways.append(table[tail][j - 1] + (scoring.match if same else scoring.mismatch))
            row.append(max(ways, default=None))
    return max(table[n][-1] for n in graph.ends() if table[n][-1] is not None), best


@settings(max_examples=30)
@given(st.integers(0, 10**6))
def test_the_optimum_is_spoas_score_on_the_same_graph(seed):
    spoa = pytest.importorskip("spoa")
    rng, scoring = np.random.default_rng(seed), PoaScoring()
    true = rng.integers(0, 4, 25)
    texts = []
    for _ in range(4):
        copy = np.where(rng.random(25) < 0.1, rng.integers(0, 4, 25), true)[rng.random(25) > 0.1]
        texts.append("".join("ACGT"[c] for c in copy))
    match, mismatch, gap = scoring
    _, rows = spoa.poa(texts, algorithm=1, genmsa=True, m=match, n=mismatch, g=gap, e=gap, q=gap, c=gap)
    score, best = spoa_score(rows[:4], scoring)
    assert score == best
