"""Lines and paths by several threads: the same as by one, whatever parts begin with; parasail confirms the scores."""

from __future__ import annotations

import os

import numpy as np
import parasail
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bellapy.engines.exact import align, band, bounds, cpu, guess, line_parts, line_paths, lines, sweeps
from bellapy.engines.exact.align import align_one
from bellapy.engines.exact.rule import Scores, as_target

EXAMPLES = int(os.environ.get("EXACT_EXAMPLES", "0"))
SCORES = Scores(), Scores(2, -4, 4, 2), Scores(100, -100, 900, 100), Scores(4, -8, 5, 1)
PEERS = {"local": parasail.sw_striped_32, "global": parasail.nw_striped_32, "semiglobal": parasail.sg_striped_32}
KINDS = "related", "repeats", "inverted", "gap", "flanked"


def text(codes) -> str:
    return "".join("ACGTNM"[code] for code in codes)


def pair_of(kind: str, seed: int, n: int = 2500) -> tuple[np.ndarray, np.ndarray]:
    """A query and its relative: with short tandem repeats, an inverted piece, a long gap, or other bases around both."""
    rng = np.random.default_rng(seed)
    query = rng.integers(0, 4, n).astype(np.uint8)
    if kind == "repeats":
        query[n // 5 : -n // 5] = np.resize(rng.integers(0, 4, rng.integers(1, 40)), n // 5 * 3 + n % 5)
    changed = np.where(rng.random(n) < 0.02, rng.integers(0, 4, n), query)[rng.random(n) >= 0.01].astype(np.uint8)
    middle = len(changed) // 2
    if kind == "inverted":
        changed[middle - 200 : middle] = 3 - changed[middle - 200 : middle][::-1]
    if kind == "gap":
        changed = np.delete(changed, slice(middle, middle + 300))
    if kind == "flanked":
        query, changed = (np.concatenate([rng.integers(0, 4, 400), x, rng.integers(0, 4, 400)]) for x in (query, changed))
    return query.astype(np.uint8), changed.astype(np.uint8)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Parts of short sequences, wherever they are possible; line by line; a list of how many each leap has had."""
    for name, value in {"PART_LINES": 256, "SEAM": 256, "GAIN": 0}.items():
        monkeypatch.setattr(line_parts, name, value)
    for module, name, value in ((band, "SEAM", 256), (band, "STRETCH", 128), (line_paths, "STRETCH", 2)):
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(sweeps, "EVERY_LINE", 256)
    monkeypatch.setattr(align, "solve", lambda *_: None)
    monkeypatch.setattr(sweeps, "is_narrow", lambda task, *_: band.is_connected(task.bounds.first, task.bounds.last))
    made, leap = [], band.leap
    monkeypatch.setattr(band, "leap", lambda *given: made.append(len(parts := leap(*given))) or parts)
    return made


def assert_same(one, other):
    assert one[:5] == other[:5]
    np.testing.assert_array_equal(one.runs, other.runs)


@settings(max_examples=EXAMPLES or 20, deadline=None)
@given(
    st.sampled_from(KINDS), st.integers(0, 2**32 - 1), st.sampled_from(SCORES), st.sampled_from(list(PEERS)),
    st.sampled_from([2, 3]), st.booleans(),
)  # fmt: skip
def test_alignments_by_parts_are_those_of_one_thread(kind, seed, scores, mode, threads, is_close):
    """From a good lower bound, or from one that leaves nearly the whole matrix: parasail's score, and one path."""
    query, target = pair_of(kind, seed)
    matrix = parasail.matrix_create("ACGTNM", scores.match, scores.mismatch)
    with pytest.MonkeyPatch.context() as patch:
        if not is_close:
            nothing = 1 if mode != "global" else -int(scores.gap(len(query)) + scores.gap(len(target)))
            patch.setattr(align, "lower_bound", lambda *_: nothing)
        one, _ = align_one(query, target, scores, mode)
        other, work = align_one(query, target, scores, mode, sweeper=sweeps.Sweeper(threads))
    assert one.score == PEERS[mode](text(query), text(target), scores.first, scores.gap_extend, matrix).score
    assert_same(one, other)
    assert work.backward > 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", list(PEERS))
def test_parts_are_made(kind, mode, small_parts, monkeypatch):
    """And none of them begins with rows that the matrix does not have: its last block of rows is not full."""
    query, target = pair_of(kind, 7, 6000)
    beyond, starts = [], line_parts._starts

    def begin(frame, *given):
        found = starts(frame, *given)
        beyond.extend(line.first + line.size - len(frame.row_bound) for line in found)
        return found

    monkeypatch.setattr(line_parts, "_starts", begin)
    align_one(query, target, Scores(), mode, sweeper=sweeps.Sweeper(3))
    assert small_parts and min(small_parts) >= 2
    assert max(beyond) <= 0


def swept_task(query, target, every=256):
    """A backward task within a band around a chain, from a corner."""
    n, m = len(query), len(target)
    chain = guess.find_chain(query, target, Scores())
    limits = bounds.open_bounds(guess.chain_corridor(chain, n, m), n, m, Scores())
    return cpu.Task(
        query, as_target(target), Scores(), cpu.end_borders(Scores(), n, m), limits, -(1 << 28), False, False, 32, every
    )


@settings(max_examples=EXAMPLES or 20, deadline=None)
@given(st.sampled_from(KINDS), st.integers(0, 2**32 - 1), st.integers(2, 9))
@example("repeats", 3, 9)
def test_parts_hold_the_lines_of_one_run(kind, seed, n):
    """Every kept line, and all that is known of it; repeats keep some parts from ever being true."""
    task = swept_task(*pair_of(kind, seed))
    sweep = band.BandSweep(task)
    while sweep._state.now[lines.LINE] < 1024:
        lines.run_lines(sweep._frame, sweep._state, sweep._kept, 1024)
        sweep._make_room()
    start, stop = sweep._line(), 4096
    cuts = [start.line, *(start.line + (stop - start.line) * (k + 1) // n // 256 * 256 for k in range(n))]
    parts = line_parts.leap(sweep._frame, start, cuts, 2)
    run = line_parts._Run(sweep._frame, start, stop)
    assert run.go_to(stop)
    whole, k = run.done(), 0
    for part in parts:
        for at in range(len(part.about)):
            one, other = part.line(at), whole.line(k)
            assert one[:4] == other[:4]
            np.testing.assert_array_equal(one.values, other.values)
            k += 1
    assert k == len(whole.about)
    reach = line_parts.no_reach(len(task.query) + 1)
    for part in parts:
        line_parts.add_reach(reach[part.row :], part.reach)
    its = reach[whole.row : whole.row + len(whole.reach)]
    assert (its[:, 0] <= whole.reach[:, 0]).all() and (its[:, 1] >= whole.reach[:, 1])[whole.reach[:, 1] >= 0].all()


@pytest.mark.parametrize("guess_from", ["highest", "another cell", "another score"])
def test_a_path_is_the_same_wherever_threads_begin(guess_from, monkeypatch):
    true = line_paths._highest

    def highest(values, n, score):
        k, best = true(values, n, score)
        return {"another cell": (k // 2, best), "another score": (k, best + 1)}.get(guess_from, (k, best))

    monkeypatch.setattr(line_paths, "_highest", highest)
    for kind in KINDS:
        query, target = pair_of(kind, 5, 6000)
        one, other = (align_one(query, target, Scores(), "local", sweeper=sweeps.Sweeper(n))[0] for n in (1, 3))
        assert_same(one, other)


def test_steps_without_room_are_walked_alone(monkeypatch):
    query, target = pair_of("gap", 1, 6000)
    one, _ = align_one(query, target, Scores(), "global")
    for name, value in (("MOVES", 30_000), ("RUNS", 600), ("MOST_LINES", 100)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(line_paths, name, value)
            for threads in (1, 3):
                assert_same(one, align_one(query, target, Scores(), "global", sweeper=sweeps.Sweeper(threads))[0])


@pytest.mark.parametrize("kind", KINDS)
def test_a_sweep_by_threads_goes_on_where_it_was(kind):
    """Kept after each leap or stretch, and continued by any number of threads: the same best cell, and the same path."""
    query, target = pair_of(kind, 11, 6000)
    task = swept_task(query, target)
    whole = band.BandSweep(task)
    whole.run()
    n, m = len(query), len(target)
    path = whole.trace(n, m, int(whole.last_row[-1]), lambda _: None)
    first, states = band.BandSweep(task), []
    while not first.done:
        first.run(3, 0)
        states.append({name: np.copy(value) for name, value in first.state().items()})
    for k, state in enumerate(states[:: max(1, len(states) // 6)]):
        second = band.BandSweep(task)
        second.restore(state)
        second.run(1 + k % 3)
        assert second.last_row[-1] == whole.last_row[-1]
        np.testing.assert_array_equal(second.trace(n, m, int(second.last_row[-1]), lambda _: None, 2), path)


def test_lines_are_kept_within_their_room():
    query, target = pair_of("related", 2, 6000)
    task = swept_task(query, target)
    sweeps_of = [band.BandSweep(task, budget) for budget in (1 << 28, 10_000)]
    for sweep in sweeps_of:
        sweep.run(2)
        assert sweep._kept.used[1] <= sweep._budget
    paths = [sweep.trace(len(query), len(target), int(sweep.last_row[-1]), lambda _: None, 2) for sweep in sweeps_of]
    np.testing.assert_array_equal(*paths)
    assert sweeps_of[1]._kept.used[0] < sweeps_of[0]._kept.used[0]
