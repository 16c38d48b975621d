"""`--max-memory`: what is planned fits the bound, what is held keeps to it, and the output is the same."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tracemalloc
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from cases import listing, run, sample_reads
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from strategies import make_reads, simulate_reads

from bellapy.compute import memory, own_process, resources
from bellapy.compute.columns import join_rows
from bellapy.compute.memory import RESERVE, Budget, resident
from bellapy.errors import MemoryLimitError, ParameterError
from bellapy.io import fastx as reads_module
from bellapy.io import workdir
from bellapy.jobs.overlap import align, candidates, counting, pipeline
from bellapy.jobs.overlap.products import PRODUCT_BYTES, multiply, symbolic_product
from bellapy.jobs.overlap.seeds import SEED_BYTES, choose_seeds
from bellapy.params import SeedParams, make_params, parse_size
from bellapy.seeding import kmers
from bellapy.seeding.kmer_matrix import build_kmer_matrix
from bellapy.seeding.kmers import count_kmers

# ---------------------------------------------------------------- sizes


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("600M", 600 * 10**6), ("2G", 2 * 10**9), ("1.5g", 15 * 10**8), ("750k", 750_000), ("1T", 10**12), ("4096", 4096),
        ("2GB", 2 * 10**9), ("2GiB", 2 << 30), ("1.5gib", 3 << 29), ("2Ki", 2048), ("4096B", 4096), ("1e9", 10**9),
        ("1.5e9", 15 * 10**8), ("1E3K", 10**6), ("3tb", 3 * 10**12),
    ],
)  # fmt: skip
def test_sizes(text, size):
    assert parse_size(text) == size
    assert make_params(max_memory=text).run.max_memory == size


@pytest.mark.parametrize(
    "text",
    [
        "",
        "M",
        "-5M",
        "600 M",
        "6OOM",
        "nan",
        "2P",
        "1,5G",
        "٣M",
        "1e",
        "e9",
        "1e999",
        "1e-3",
        "B",
        "GiB",
        "2iB",
        "2BB",
        "inf",
    ],
)
def test_what_is_no_size(text, tmp_path):
    with pytest.raises(ParameterError, match=re.escape(f"--max-memory {text}: ") + ".*such as 600M, 1.5G or 2GiB"):
        parse_size(text)
    (tmp_path / "x.fa").write_text(">x\nACGT\n")
    outcome = run("overlap", tmp_path / "x.fa", f"--max-memory={text}")
    assert (outcome.code, outcome.out) == (2, b"") and "such as 600M, 1.5G or 2GiB" in outcome.err


# ---------------------------------------------------------------- planning


@given(
    limit=st.integers(0, 10**9), held=st.integers(0, 10**9), reused=st.integers(0, 10**8), size=st.integers(1, 10**6),
    least=st.integers(1, 1000), more=st.integers(0, 10**6),
)  # fmt: skip
def test_plans_keep_to_the_limit(limit, held, reused, size, least, more):
    reused, most = min(reused, held), least + more
    ask = {"least": least, "most": most, "reused": reused}
    fixed = held - reused + RESERVE
    try:
        n = Budget(limit, lambda: held).items("sorting", size, **ask)
    except MemoryLimitError as error:
        assert fixed + size * least > limit
        told = re.search(r"--max-memory \d\S*(?: bytes|M): sorting needs more. Allow (\d+)M for", str(error))[1]
        assert least <= Budget(parse_size(told + "M"), lambda: held).items("sorting", size, **ask) <= most
    else:
        assert least <= n <= most
        assert fixed + size * n <= limit
        assert n == most or fixed + size * (n + 1) > limit


def test_what_can_do_without_is_never_refused():
    assert Budget(RESERVE + 100, lambda: 40).items("writing", 7, least=0, most=100) == 8
    assert Budget(100, lambda: 10**9).items("writing", 7, least=0, most=100) == 0


def test_no_limit():
    assert Budget().items("sorting", 1 << 60, least=2, most=7) == 7
    Budget().require("everything", 1 << 60)


def test_require(monkeypatch):
    monkeypatch.setattr(MemoryLimitError, "likely", 0)  # as before anything is read
    budget = Budget(RESERVE + 100, lambda: 40)
    budget.require("a little", 60)
    with pytest.raises(MemoryLimitError, match="a little more needs more. Allow 28M for"):
        budget.require("a little more", 61)


@pytest.mark.parametrize("there", [True, False])
def test_memory_without_proc(monkeypatch, there):
    """By psutil; without that the peak stands in, which is never less."""
    psutil = pytest.importorskip("psutil")
    block = np.ones(1 << 27, np.uint8)
    held = resident()
    monkeypatch.setattr(memory.os.path, "exists", lambda _: False)
    monkeypatch.setitem(sys.modules, "psutil", psutil if there else None)
    found = resident()
    assert abs(found - held) < 20 << 20 if there else found >= held - (1 << 20)
    assert len(block) < found


def test_resident_memory_follows_what_is_held():
    before = resident()
    block = np.ones(1 << 27, np.uint8)
    held = resident()
    assert abs(held - before - len(block)) < 20 << 20
    del block
    assert abs(resident() - before) < 20 << 20


# ---------------------------------------------------------------- what is held


@pytest.fixture
def traced(monkeypatch):
    """A function that gives a Budget of so many bytes beyond what tracemalloc says is held: every array counts in full."""
    monkeypatch.setattr(memory, "RESERVE", 30_000)  # for Python's own objects
    tracemalloc.start()

    def budget(more: int) -> Budget:
        tracemalloc.reset_peak()
        return Budget(tracemalloc.get_traced_memory()[0] + more, lambda: tracemalloc.get_traced_memory()[0])

    yield budget
    tracemalloc.stop()


def peak() -> int:
    return tracemalloc.get_traced_memory()[1]


@pytest.fixture(scope="module")
def reads():
    rng = np.random.default_rng(17)
    return make_reads([sequence for _ in range(4) for sequence in simulate_reads(rng)])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("share", [0.3, 0.6, 1.5])
def test_counting_keeps_to_the_limit(reads, traced, monkeypatch, share, threads):
    """The limit allows for a share of the words beside the entries."""
    monkeypatch.setattr(kmers, "PARTITION_WORDS", 256)
    monkeypatch.setattr(kmers, "SPECTRUM_SIZE", 100)
    monkeypatch.setattr(kmers, "LEAST_PASSES", 1)
    passes = []
    monkeypatch.setattr(kmers, "_scatter_pass", lambda *args, of=kmers._scatter_pass: passes.append(args) or of(*args))
    expected = count_kmers(reads.codes, 15, 2, 20)
    n_words = len(passes[0][-2])
    count_kmers(reads.codes[:500], 15, 2, 20, threads=threads)  # makes threads that stay; they let go of its words late
    passes.clear()
    budget = traced(60_000 + expected.entries.nbytes + int(8 * share * n_words))
    counts = count_kmers(reads.codes, 15, 2, 20, threads=threads, budget=budget)
    assert peak() <= budget.limit
    assert len(passes) == 1 if share > 1 else len(passes) > 1
    assert_array_equal(counts.entries, expected.entries)
    assert counts.n_kmers == expected.n_kmers
    assert_array_equal(counts.spectrum, expected.spectrum)


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux tells the peak of a part of a run")
def test_counting_keeps_to_the_limit_as_the_system_sees_it():
    """What grows has to be moved by the system, not copied, which tracemalloc would not see."""
    half = np.random.default_rng(1).integers(0, 4, 6_000_000).astype(np.uint8)
    codes = np.concatenate((half, np.full(1, 4, np.uint8), half))
    count_kmers(codes[:100_000], 17, 2, 8)  # loads the code
    budget = Budget(resident() + RESERVE + (60 << 20))  # of 96 MB of words; 48 MB of entries come of them
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far
    counts = count_kmers(codes, 17, 2, 8, budget=budget)
    peak_kb = int(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1])
    assert len(counts.entries) > 11_900_000
    assert 1024 * peak_kb <= budget.limit


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("min_support", [1, 2])
@pytest.mark.parametrize("share", [0.2, 0.5, 2])
def test_the_product_keeps_to_the_limit(reads, traced, share, min_support, threads):
    """The limit allows for a share of all products and what may be made of them, beside the seeds."""
    params = SeedParams(min_support=min_support, min_overlap=0)
    matrix = build_kmer_matrix(count_kmers(reads.codes, 15, 2, 20), reads, 15, 20)
    work = symbolic_product(matrix, threads)

    def seeds_of(**options):
        parts, n_groups = [], 0
        for products in multiply(matrix, work, block_products=500, threads=threads, **options):
            parts += choose_seeds(products, matrix, reads, params, threads)[0]
            n_groups += 1
            del products
        return parts, n_groups

    expected, result_bytes = join_rows(seeds_of()[0]), SEED_BYTES // min_support
    size = PRODUCT_BYTES + result_bytes
    budget = traced(100_000 + 60 * len(expected) + int(share * size * work.sum()))
    parts, n_groups = seeds_of(budget=budget, result_bytes=result_bytes)
    assert peak() <= budget.limit
    assert n_groups == 1 if share > 1 else n_groups > 1
    seeds = join_rows(parts)
    for name in ("query_id", "target_id", "strand", "query_pos", "target_pos", "n_support"):
        assert_array_equal(getattr(seeds, name), getattr(expected, name), err_msg=name)


# ---------------------------------------------------------------- whole runs


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    path = tmp_path_factory.mktemp("memory") / "reads.fa"
    path.write_text(sample_reads(12, error=0.1).fasta())
    return path, run("overlap", path, "-t", 1).out


@pytest.mark.parametrize("options", [(), ("--homopolymer",), ("--sampling", "minimizer"), ("--skip-alignment",)], ids=str)
@pytest.mark.parametrize(("limit", "threads"), [("300K", 1), ("300K", 2), ("3M", 2)])
def test_any_limit_gives_the_same(reference, monkeypatch, options, limit, threads):
    """Memory as counted from nothing, so that small limits make many small pieces of small data."""
    expected = run("overlap", reference[0], "-t", 1, *options).out
    monkeypatch.setattr(memory, "RESERVE", 0)
    monkeypatch.setattr(kmers, "PARTITION_WORDS", 64)
    monkeypatch.setattr(kmers, "SCRATCH_WORDS", 0)
    monkeypatch.setattr(candidates, "multiply", partial(multiply, block_products=100))
    monkeypatch.setattr(memory, "fits_in_one_piece", lambda *_: True)
    monkeypatch.setattr(Budget, "require", lambda *_: None)
    for module in (pipeline, counting, candidates, align, memory, resources):
        monkeypatch.setattr(module, "Budget", partial(Budget, measure=lambda: 0))
    assert run("overlap", reference[0], "-t", threads, "--max-memory", limit, *options).out == expected


def allowed(outcome) -> str:
    """What a refusal names."""
    assert outcome.code == 1 and outcome.out == b""
    return re.search(r"--max-memory \S+: .* needs more\. Allow (\d+M) for the whole job", outcome.err)[1]


@pytest.mark.parametrize("limit", ["1M", "150M", "PROGRAM", "RESIDENT"])
def test_what_is_told_is_enough(reference, limit):
    """Wherever the first run is refused, the second is not."""
    path, expected = reference
    limit = {"PROGRAM": str(memory.PROGRAM), "RESIDENT": str(resident() + 2 * RESERVE)}.get(limit, limit)
    outcome = run("overlap", path, "--max-memory", limit)
    if outcome.code:
        outcome = run("overlap", path, "--max-memory", allowed(outcome))
    assert outcome.out == expected


IN_TILES = "in one piece the job needs more than --max-memory; it is done in tiles"


@pytest.mark.parametrize("options", [(), ("--skip-alignment",), ("--cigar",)], ids=str)
def test_tiles_where_one_piece_is_too_large(reference, tmp_path, monkeypatch, options):
    """Said to be too large while the reads are read: the same bytes, and nothing stays behind."""
    expected = run("overlap", reference[0], "-t", 1, *options).out
    monkeypatch.setattr(memory, "PIECE_BASE_BYTES", 10**6)
    words = "overlap", reference[0], "-t", 1, "--max-memory", "8G", *options
    outcome = run(*words, "-o", tmp_path / "x.paf", "--report", tmp_path / "report.json")
    assert outcome.code == 0 and f"{IN_TILES}, in the folder {tmp_path}/" in outcome.err
    assert (tmp_path / "x.paf").read_bytes() == expected and listing(tmp_path) == {"report.json", "x.paf"}
    stages = [stage["stage"] for stage in json.loads((tmp_path / "report.json").read_text())["stages"]]
    assert len(set(stages)) == len(stages)
    outcome = run(*words)
    assert outcome.out == expected and IN_TILES in outcome.err
    piped = run("overlap", "-", *words[2:], stdin=reference[0].read_bytes())
    assert piped.out == expected and IN_TILES not in piped.err


def test_tiles_where_the_alignment_is_refused(reference, tmp_path, monkeypatch):
    """Found to be too large later: all is done again in tiles, if the files can be read again."""
    require, refused = Budget.require, []

    def refuse_once(budget, what, size):
        if "the alignment, with" in what and not refused:
            refused.append(what)
            raise MemoryLimitError(budget.limit, what, 10**9)
        require(budget, what, size)

    monkeypatch.setattr(Budget, "require", refuse_once)
    outcome = run("overlap", reference[0], "-t", 1, "--max-memory", "8G", "-o", tmp_path / "x.paf")
    assert outcome.code == 0 and IN_TILES in outcome.err and refused
    assert (tmp_path / "x.paf").read_bytes() == reference[1] and listing(tmp_path) == {"x.paf"}
    refused.clear()
    outcome = run("overlap", "-", "-t", 1, "--max-memory", "8G", stdin=reference[0].read_bytes())
    assert outcome.code == 1 and "both directions, needs more" in outcome.err


def test_no_room_on_the_disk_of_tiles(reference, tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "PIECE_BASE_BYTES", 10**6)
    monkeypatch.setattr(workdir, "write_arrays", full_disk)
    outcome = run("overlap", reference[0], "-t", 1, "--max-memory", "8G", "-o", tmp_path / "x.paf")
    assert outcome.code == 1 and "No space left on device. The work needs room on this disk; --workdir names" in outcome.err
    assert not listing(tmp_path)


def full_disk(stream, arrays):
    raise OSError(28, "No space left on device")


def test_all_reads_are_counted_but_not_held(reference, monkeypatch):
    """The first ones show that there is no room; the message is about all of them.  A pipe cannot be read again."""
    monkeypatch.setattr("bellapy.io.fastx._PROGRESS_STEP", 1000)
    monkeypatch.setattr("bellapy.io.fastx_blocks.BLOCK_SIZE", 5000)
    monkeypatch.setattr(memory, "BASE_BYTES", 10**6)
    n_bases = sum(len(line) for line in reference[0].read_text().splitlines() if line[0] != ">")
    outcome = run("overlap", "-", "--max-memory", "1M", stdin=reference[0].read_bytes())
    assert "the program itself needs more" in outcome.err
    assert n_bases - 1000 <= int(allowed(outcome)[:-1]) <= n_bases + 1500
    monkeypatch.setattr(memory, "PROGRAM", 0)
    monkeypatch.setattr(Budget, "require", lambda budget, what, size: pytest.fail(what) if "direction" in what else (
        Budget.items(budget, what, size, least=1, most=1) if what == "holding the reads" else None))  # fmt: skip
    monkeypatch.setattr(reads_module.Pieces, "add", counted(reads_module.Pieces.add, held := []))
    outcome = run("overlap", "-", "--max-memory", "1M", stdin=reference[0].read_bytes())
    assert "holding the reads needs more" in outcome.err
    assert n_bases - 1000 <= int(allowed(outcome)[:-1]) <= n_bases + 1500
    assert held[-1] == 0 and max(held) < n_bases / 2


def counted(add, held):
    """`Pieces.add`, which notes how many codes are held."""

    def note(pieces, codes):
        add(pieces, codes)
        held.append(sum(map(len, pieces._pieces)))

    return note


LIMITED = """
import resource, subprocess, sys
limit = int(sys.argv[1]) << 20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
sys.exit(subprocess.run([sys.executable, "-m", "bellapy", *sys.argv[2:]]).returncode)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux heeds ulimit -v")
@pytest.mark.parametrize(
    ("space", "threads", "enough"), [(300, 1, False), (500, 2, False), (700, 1, False), (1500, 2, True)]
)
def test_limited_addresses(reference, tmp_path, space, threads, enough):
    """An error, not an abort: libraries that get no memory end the program, as `ulimit -v` makes them."""
    path, expected = reference
    command = [sys.executable, "-c", LIMITED, str(space), "overlap", path, "-t", str(threads), "-o", tmp_path / "x"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(memory.__file__).parents[1])
    assert done.returncode == (0 if enough else 1), done.stderr
    if enough:
        assert (tmp_path / "x").read_bytes() == expected and "ulimit -v: works as with --max-memory" in done.stderr
    else:
        assert re.search(r"^bellapy: error: ulimit -v \d+: .* Allow \d+ for \d threads", done.stderr, re.M)
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("limit", [None, 1 << 33])
def test_addresses_are_spared_where_they_have_a_limit(reference, monkeypatch, limit):
    spared = []
    monkeypatch.setattr(memory, "address_limit", lambda: limit)
    monkeypatch.setattr(own_process, "spare_addresses", lambda: spared.append(limit))
    assert run("count", reference[0], "-o", "/dev/null", "-t", 1).code == 0
    assert spared == [limit] * (limit is not None)


def test_stages_take_a_limit(reference, tmp_path):
    path, expected = reference
    limit = ("--max-memory", "8G")
    assert run("count", path, "-o", tmp_path / "k", *limit).code == 0
    assert run("candidates", path, "--kmers", tmp_path / "k", "-o", tmp_path / "s", *limit).code == 0
    assert run("align", path, "--seeds", tmp_path / "s", "-o", tmp_path / "a", *limit).code == 0
    assert run("filter", path, "--alignments", tmp_path / "a").out == expected
    for command in (["candidates", path, "--kmers", tmp_path / "k"], ["align", path, "--seeds", tmp_path / "s"]):
        outcome = run(*command, "-o", tmp_path / "x", "--max-memory", "1M")
        assert outcome.code == 1 and f"loading {command[-1]} needs more" in outcome.err or "itself" in outcome.err
    assert not (tmp_path / "x").exists()


def test_a_bound_of_a_few_bytes_is_told_as_it_was_given():
    assert str(MemoryLimitError(5, "the program itself", 10**8)).startswith("--max-memory 5 bytes: ")
    assert str(MemoryLimitError(6 * 10**8, "sorting", 10**9)).startswith("--max-memory 600M: ")
