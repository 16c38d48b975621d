"""The job in a folder: the same bytes however it is cut, stopped and handed out."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from cases import IMPORTS, listing, run, sample_reads
from strategies import random_bases

from bellapy.compute import mapped
from bellapy.io import workdir
from bellapy.jobs.overlap import in_folder, pipeline
from bellapy.jobs.overlap.blocks import Settings, join_columns, own_columns, split_by_block
from bellapy.jobs.overlap.in_folder import choose_plan
from bellapy.jobs.overlap.store import from_arrays, leaves, to_arrays
from bellapy.jobs.overlap.stored_reads import StoredReads, even_blocks
from bellapy.jobs.overlap.work import Round
from bellapy.params import make_params
from bellapy.records import Estimate
from bellapy.records.kmers import places_of
from bellapy.runs import launch

PROGRAM = [sys.executable, "-m", "bellapy"]


@pytest.fixture(scope="module")
def here(tmp_path_factory) -> Path:
    """Reads with a repeat, a circle and a chimera, and their overlaps in one piece."""
    folder = tmp_path_factory.mktemp("tiles")
    rng = np.random.default_rng(5)
    element = random_bases(rng, 1500)
    genome = "".join(random_bases(rng, 4000) + element for _ in range(6)) + random_bases(rng, 12_000)
    parts = [sample_reads(1, genome, depth=14, error=0.08), sample_reads(2, 5000, depth=20, error=0.08, circular=True)]
    sequences = [sequence for part in parts for sequence in part.sequences]
    sequences.append(sequences[0][:1500] + sequences[7][:1500])
    random.Random(3).shuffle(sequences)
    (folder / "reads.fa").write_text("".join(f">r{i}\n{sequence}\n" for i, sequence in enumerate(sequences)))
    assert run("overlap", folder / "reads.fa", "-t1", "-o", folder / "whole.paf").code == 0
    return folder


def same(here: Path, name: str = "tiles.paf", expected: str = "whole.paf") -> bool:
    found = (here / name).read_bytes()
    (here / name).unlink()
    return found == (here / expected).read_bytes()


@pytest.mark.parametrize("n_blocks, threads", [(1, 1), (2, 1), (3, 2), (7, 1)])
def test_any_number_of_blocks(here, monkeypatch, n_blocks, threads):
    monkeypatch.setattr(in_folder, "PART_BYTES", 200_000)  # several parts of the k-mers
    monkeypatch.setattr(mapped, "PIECE", 50_000)
    options = "-t", threads, "--workdir", here / "work", "--blocks", n_blocks, "--report", here / "report.json"
    assert run("overlap", here / "reads.fa", *options, "-o", here / "tiles.paf").code == 0
    assert same(here) and not (here / "work").exists()
    told = json.loads((here / "report.json").read_text())
    assert run("overlap", here / "reads.fa", "-t1", "-o", here / "tiles.paf", "--report", here / "report.json").code == 0
    whole = json.loads((here / "report.json").read_text())
    for name in ("dropped", "details", "estimates"):
        assert told[name] == whole[name], name
    numbers = [
        {key: value for key, value in stage.items() if not key.endswith(("_s", "_bytes"))} for stage in told["stages"]
    ]
    assert numbers == [
        {key: value for key, value in stage.items() if not key.endswith(("_s", "_bytes"))} for stage in whole["stages"]
    ]
    assert same(here)


def numbers_of(report: dict) -> list[dict]:
    """What the stages tell besides time and memory."""
    return [{k: value for k, value in stage.items() if not k.endswith(("_s", "_bytes"))} for stage in report["stages"]]


@pytest.mark.parametrize(
    "options",
    [
        "--skip-alignment", "--cigar --min-identity 0.8", "--homopolymer -k 13", "--sampling minimizer --sampling-window 3",
        "--sampling fraction --sampling-window 2", "--upper 12 --extension best", "--format bella --min-support 1",
    ],
)  # fmt: skip
def test_options(here, options):
    words = [here / "reads.fa", "-t1", *options.split()]
    assert run("overlap", *words, "-o", here / "expected").code == 0
    outcome = run("overlap", *words, "--workdir", here / "work", "--blocks", 3, "-o", here / "tiles.paf")
    assert outcome.code == 0, outcome.err
    assert same(here, expected="expected") and (here / "expected").stat().st_size


@pytest.mark.parametrize("options", ["", "--cigar", "--min-overlap 4000", "--upper 2 --lower 2"])
def test_reads_without_overlaps(tmp_path, rng, options):
    (tmp_path / "reads.fa").write_text("".join(f">r{i}\n{random_bases(rng, 2000)}\n" for i in range(3)))
    words = [tmp_path / "reads.fa", "-t1", *options.split()]
    outcome = run("overlap", *words, "--workdir", tmp_path / "work", "-o", tmp_path / "tiles.paf")
    assert outcome.code == 0, outcome.err
    assert (tmp_path / "tiles.paf").read_bytes() == run("overlap", *words).out == b""


@pytest.mark.parametrize("name", ["tiles.paf", "tiles.sam"])
def test_paths_need_few_reads_at_a_time(here, monkeypatch, name):
    sizes = []

    def some_as_given(self, given, threads=1, made=StoredReads.some_as_given):
        found = made(self, given, threads)
        sizes.append(found.n_bases)
        return found

    monkeypatch.setattr(StoredReads, "some_as_given", some_as_given)
    monkeypatch.setattr(in_folder, "PATHS_BASES", 30_000)
    expected = f"expected{name[5:]}"
    words = here / "reads.fa", "-t1", *(["--cigar"] if name.endswith("paf") else [])
    assert run("overlap", *words, "-o", here / expected).code == 0 and not sizes
    cigar = [] if "--cigar" in words else ["--cigar"]
    planned = run("plan", *words, *cigar, "--workdir", here / "work", "--blocks", 3)
    assert planned.code == 0
    _, first, n = planned.out.decode().splitlines()[-1].split("\t")
    assert run("run-tile", here / "work", 0, "--count", int(first) + int(n)).code == 0
    options = ["--cigar"] if name.endswith("paf") else []
    assert run("gather", here / "work", *options, "-t2", "-o", here / name, "--report", here / "report.json").code == 0
    assert len(sizes) > 10 and max(sizes) <= 30_000
    if name.endswith("sam"):  # the header holds the command
        lines = [[x for x in (here / it).read_text().splitlines() if x[:3] != "@PG"] for it in (name, expected)]
        assert lines[0] == lines[1] and any(x[0] != "@" for x in lines[0])
    else:
        assert same(here, name, expected)


def test_tasks_one_by_one(here, capfd):
    """As an array of a batch system does them, in numbers that have to be shifted, and backwards inside a round."""
    planned = run("plan", here / "reads.fa", "-t1", "--workdir", here / "work", "--blocks", 3)
    assert planned.code == 0
    rows = [line.split("\t") for line in planned.out.decode().splitlines() if not line.startswith("#")]
    assert [int(first) for _, first, _ in rows] == np.cumsum([0] + [int(n) for *_, n in rows])[:-1].tolist()
    assert {name: int(n) for name, _, n in rows}["seeds"] == 6
    again = run("plan", here / "reads.fa", "-t1", "--workdir", here / "work", "--blocks", 2)
    assert again.out == planned.out and "the reads lie in 3 blocks, not in 2" in again.err
    begun, n_tasks = sorted((here / "work").iterdir()), int(rows[-1][1]) + int(rows[-1][2])
    beyond = run("run-tile", here / "work", 0, "--count", n_tasks + 3)
    assert beyond.code == 2 and f"there is no task {n_tasks + 2}; the last one is {n_tasks - 1}" in beyond.err
    assert sorted((here / "work").iterdir()) == begun  # it says so before it works
    early = run("run-tile", here / "work", int(rows[-1][1]))
    assert early.code == 1 and "run the tasks of the rounds before this one first" in early.err
    early = run("gather", here / "work", "-o", here / "tiles.paf")
    assert early.code == 1 and "task 0 is not done yet (round count)" in early.err and not (here / "tiles.paf").exists()
    for name, first, n in rows:
        numbers = list(range(int(n)))[::-1]
        for number in numbers if name != "seeds" else numbers[3:]:
            assert run("run-tile", here / "work", number, "--offset", first, "-t1", "-q").code == 0
        if name == "seeds":
            assert run("run-tile", here / "work", 0, "--offset", first, "--count", 6, "-t1", "-q").code == 0
    for words in ((10_000,), (n_tasks,), (0, "--offset", -1), (0, "--count", 0)):
        assert run("run-tile", here / "work", *words).code == 2
    assert run("run-tile", here / "work", "x").code == run("run-tile", here / "work", "-", stdin=b"x\n").code == 2
    assert run("gather", here / "work", "--cigar", "-o", here / "tiles.paf").code == 2
    assert run("gather", here / "work", "-o", here / "tiles.paf", "--keep-workdir").code == 0
    assert same(here) and (here / "work").exists()
    assert run("gather", here / "work", "-o", here / "tiles.paf").code == 0
    assert same(here) and not (here / "work").exists()


def test_what_cannot_be_done(here):
    work = here / "work"
    for words, problem in (
        (["--blocks", 3], "--blocks: name a folder with --workdir"),
        (["--workdir", work, "--scheduler", "local:0"], "--scheduler local:0: give local:N"),
        (["--workdir", work, "--scheduler", "slurm"], "--scheduler slurm: give local:N"),
        (["--workdir", work, "--blocks", 0], "--blocks 0"),
    ):
        outcome = run("overlap", here / "reads.fa", *words, "-o", here / "tiles.paf")
        assert outcome.code == 2 and problem in outcome.err
    assert run("overlap", "-", "--workdir", work, stdin=b">a\nACGT\n").code == 2
    assert run("run-tile", work, 0).code == 1
    assert not work.exists() and not (here / "tiles.paf").exists()


def test_another_job_is_refused(here):
    words = ["overlap", here / "reads.fa", "-t1", "--workdir", here / "work", "--keep-workdir", "-o", here / "tiles.paf"]
    assert run(*words).code == 0 and same(here)
    before = listing(here)
    outcome = run(*words, "-k", 12)
    assert outcome.code == 1 and "another kmers.k: not given then, 12 now. Name another --workdir" in outcome.err
    assert listing(here) == before
    assert run(*words[:-4], "-t2", "-o", here / "tiles.paf", "--workdir", here / "work").code == 0, "threads may change"
    assert same(here) and not (here / "work").exists()


@pytest.mark.parametrize("scheduler, times", [(None, 4), ("local:2", 2)])
def test_killed_at_any_moment(here, scheduler, times):
    """What was killed goes on, to the same bytes, and nothing stays behind: neither processes nor files."""
    words = ["overlap", "reads.fa", "-t1", "-q", "--workdir", "work", "--blocks", "4", "-o", "tiles.paf"]
    command = [*PROGRAM, *words, *(["--scheduler", scheduler] if scheduler else [])]
    environment = {**os.environ, "PYTHONPATH": IMPORTS}
    usual, rng, killed = 4.0, random.Random(1), 0  # seconds
    while killed < times:
        job = subprocess.Popen(command, cwd=here, env=environment, start_new_session=True)
        try:
            job.wait(rng.uniform(0.2, 1) * usual)
            usual /= 2  # it ended before it could be killed
        except subprocess.TimeoutExpired:
            job.send_signal(signal.SIGKILL)
            job.wait()
            killed += 1
            assert not (here / "tiles.paf").exists() or same(here)
    assert subprocess.run(command, cwd=here, env=environment).returncode == 0
    assert same(here) and not (here / "work").exists()
    deadline = time.monotonic() + 20
    while (left := orphans("work")) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not left


def orphans(folder: str) -> list[str]:
    """Processes that still do tasks of a folder of this name."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"run-tile" in words and folder.encode() in words:
            found.append(entry.parent.name)
    return found


def test_a_full_disk(here, monkeypatch):
    words = ["overlap", here / "reads.fa", "-t1", "--workdir", here / "work", "--blocks", 3, "-o", here / "tiles.paf"]
    written, write_arrays = [], workdir.write_arrays

    def some(stream, arrays):
        written.append(stream)
        if len(written) > 20:
            raise OSError(28, "No space left on device")
        write_arrays(stream, arrays)

    monkeypatch.setattr(workdir, "write_arrays", some)
    outcome = run(*words)
    assert outcome.code == 1 and "No space left on device. What was done is kept" in outcome.err
    assert not [name for name in listing(here) if name.endswith(workdir.UNFINISHED)] and not (here / "tiles.paf").exists()
    monkeypatch.undo()
    again = run(*words)
    assert again.code == 0 and "work: going on, " in again.err and same(here)


MOST_READ = "codes.bin", "job.json", "reads.arrays"
PLACES = int(os.environ.get("DAMAGED_PLACES", "2"))
"""Places that are damaged in each of the other files; ten take about three minutes."""


@pytest.mark.parametrize("n_saved", [6, 30])
def test_damaged_results(here, monkeypatch, tmp_path, n_saved):
    """A byte that changed in any file of the folder is an error, or does not matter: never other overlaps."""
    words = ["overlap", here / "reads.fa", "-t1", "--blocks", 4, "-o", here / "tiles.paf", "--workdir"]
    saved, write_arrays = [], workdir.write_arrays

    def stop(stream, arrays):
        saved.append(stream)
        if len(saved) > n_saved:
            raise OSError(28, "No space left on device")
        write_arrays(stream, arrays)

    with monkeypatch.context() as patched:
        patched.setattr(workdir, "write_arrays", stop)
        assert run(*words, tmp_path / "sound").code == 1
    rng = random.Random(n_saved)
    for name in sorted(listing(tmp_path / "sound")):
        size = (tmp_path / "sound" / name).stat().st_size
        for place in rng.sample(range(size), min(size, 10 if name in MOST_READ else PLACES)):
            shutil.copytree(tmp_path / "sound", tmp_path / "work")
            with open(tmp_path / "work" / name, "r+b") as stream:
                stream.seek(place)
                byte = stream.read(1)[0]
                stream.seek(place)
                stream.write(bytes([byte ^ 1 << rng.randrange(8)]))
            outcome = run(*words, tmp_path / "work")
            damaged = outcome.code == 1 and "is damaged" in outcome.err and name in outcome.err
            assert damaged or (outcome.code == 0 and same(here)), (name, place, outcome)
            assert damaged or name != "codes.bin"
            shutil.rmtree(tmp_path / "work", ignore_errors=True)


def test_a_lost_process_costs_its_task(here):
    """A process that dies is replaced; one that fails again and again ends the job with its message."""
    script = """
import sys, os
for line in sys.stdin:
    mark = sys.argv[1] + line.strip()
    if line.strip() == "3" and not os.path.exists(mark):
        open(mark, "w").close()
        os.kill(os.getpid(), 9)
    if line.strip() == "13":
        sys.exit(1)
    print(line.strip(), flush=True)
"""
    processes = launch.Processes(2, [])
    processes._command = [sys.executable, "-c", script, str(here / "mark")]
    with processes:
        for worker in processes._workers[:1]:  # lost before it gets a task
            worker.kill()
            worker.wait()
        assert sorted(processes.run(range(8))) == list(range(8))
        with pytest.raises(Exception, match="task 13 failed in another process"):
            list(processes.run(range(10, 16)))
    assert all(worker.returncode is not None for worker in processes._workers)


def test_plans():
    settings, noisy = Settings(15, 15, 2, 8, "none", 8, 1), Estimate(30.0, 0.12, True, "")
    lengths = np.full(10_000, 10_000, np.int32)
    assert choose_plan(lengths, noisy, settings, make_params()).n_blocks == 1
    small = choose_plan(lengths, noisy, settings, make_params(max_memory=500 * 10**6))
    assert 3 <= small.n_blocks <= 10 and 3 <= small.n_parts <= 10
    accurate = replace(noisy, error_rate=0.001)
    assert choose_plan(lengths, accurate, settings, make_params(max_memory=500 * 10**6)).n_blocks > 2 * small.n_blocks
    assert choose_plan(lengths, noisy, settings, make_params(max_memory=1)).n_blocks < 100
    assert choose_plan(lengths, noisy, settings, make_params(), 4).first_reads.tolist() == [0, 2500, 5000, 7500, 10_000]
    assert len(small.tiles) == small.n_blocks * (small.n_blocks + 1) // 2
    assert choose_plan(lengths[:2], noisy, settings, make_params(), 9).n_blocks == 2
    assert choose_plan(lengths[:0], noisy, settings, make_params(), 9).n_blocks == 1


def test_blocks_hold_queries_or_targets():
    """None holds both, each has some bases, and every pair of a query's and a target's block is a tile."""
    settings, noisy = Settings(15, 15, 2, 8, "none", 8, 1), Estimate(30.0, 0.12, True, "")
    lengths = np.full(1000, 2000, np.int32)
    for n_blocks, n_queries, n_first in ((4, 250, 1), (4, 500, 2), (None, 3, 1), (2, 999, 1), (9, 999, 8)):
        plan = choose_plan(lengths, noisy, settings, make_params(), n_blocks, n_queries)
        assert plan.n_query_blocks == n_first and plan.first_reads[n_first] == n_queries
        assert plan.n_blocks == (n_blocks or 2) and (np.diff(plan.first_reads) > 0).all()
        assert plan.tiles == [(i, j) for i in range(n_first) for j in range(n_first, plan.n_blocks)]
        seen = np.concatenate([plan.reads_of(tile) for tile in range(len(plan.tiles))])
        assert set(seen.tolist()) == set(range(1000))
    assert even_blocks(np.array([1, 1, 1, 97], np.int32), 2).tolist() == [0, 3, 4]


def test_columns_by_blocks(rng):
    """Entries that are cut into blocks and joined again, against lists."""
    borders = np.array([0, 40, 90, 200])
    columns = [sorted(rng.choice(200, int(rng.integers(2, 9)), replace=False).tolist()) for _ in range(60)]
    entries = np.array(
        [(place << 2) | ((i == 0) << 1) | (place % 3 == 0) for column in columns for i, place in enumerate(column)],
        np.uint32,
    )
    sizes = [sum(borders[b] <= place < borders[b + 1] for column in columns for place in column) for b in range(3)]
    at = np.concatenate(([0], np.cumsum(sizes)))
    out, numbers = np.empty(len(entries), np.uint32), np.empty(len(entries), np.uint32)
    split_by_block(entries, borders, at[:-1].copy(), out, numbers)
    blocks = [(out[a:b], numbers[a:b]) for a, b in zip(at[:-1], at[1:], strict=True)]
    for i in range(3):
        for j in range(i, 3):
            room = np.empty(len(entries), np.uint32)
            shift = 50
            if i == j:
                n, n_columns = own_columns(*blocks[i], room)
            else:
                n, n_columns = join_columns(*blocks[i], *blocks[j], shift, room)
            expected = []
            for column in columns:
                mine = [place - borders[i] for place in column if borders[i] <= place < borders[i + 1]]
                theirs = [place - borders[j] + shift for place in column if borders[j] <= place < borders[j + 1]]
                whole = mine if i == j else mine + theirs
                if (len(mine) > 1) if i == j else (mine and theirs):
                    expected.append(whole)
            got = np.split(places_of(room[:n]), np.flatnonzero(room[:n] & 2)[1:])
            assert [part.tolist() for part in got if len(part)] == expected and n_columns == len(expected)


class Inner(NamedTuple):
    """A record in a record."""

    a: np.ndarray
    n: int


@dataclass(frozen=True)
class Outer:
    """One field of every kind that is kept."""

    a: np.ndarray
    joined: list[np.ndarray]
    records: list[Inner]
    apart: tuple[np.ndarray, ...]
    scores: tuple[Inner, ...]
    inner: Inner
    some: Inner | None
    none: Inner | None
    told: dict[str, list[int | None]]
    words: list[str]


def test_records_as_arrays():
    one, two = Inner(np.arange(2), 7), Inner(np.arange(3), 7)
    given = Outer(
        np.arange(3), [np.arange(2), np.arange(3)], [one, two], (np.arange(1), np.arange(4)), (one, two), one, two, None,
        {"x": [1, None]}, ["a", "b"],
    )  # fmt: skip
    back = from_arrays(Outer, to_arrays(given))
    ends = np.array([0, 1, 0, 1, 2])
    wanted = replace(given, joined=[ends], records=[Inner(ends, 7)])
    for (name, value), (its_name, its_value) in zip(leaves(wanted), leaves(back), strict=True):
        assert name == its_name
        if name == "records":
            assert [its.n for its in its_value] == [7] and its_value[0].a.tolist() == ends.tolist()
        else:
            np.testing.assert_array_equal(its_value, value, name)


def test_all_rounds_have_names_of_their_own():
    flow = pipeline.flow_of(False)
    names = [step.result.name for step in flow]
    assert len(set(names)) == len(names)
    for i, step in enumerate(flow):
        if isinstance(step, Round):
            assert {spent.name for spent in step.spends} <= set(names[:i]), "what is spent was made before"
