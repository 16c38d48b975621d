"""Circular references: reads over the origin against the same reads on a reference that is turned."""

from __future__ import annotations

import re
from collections import Counter

import naive
import numpy as np
import pysam
import pytest
from cases import roomy, run
from strategies import mutate, random_bases

import bellapy
from bellapy.compute.runs import pack_run
from bellapy.jobs.map import circles
from bellapy.jobs.map.circles import Target, cut_at_origins
from bellapy.jobs.map.join import Paths
from bellapy.params import AffineScoring

CHROMOSOME, PLASMID = 30_000, 3_000
STEP = re.compile(r"(\d+)([MID=X])")


class Bacterium:
    """A round chromosome, a short round plasmid and a line, and reads of both circles: names tell where they begin."""

    def __init__(self, folder):
        rng = np.random.default_rng(5)
        self.folder = folder
        sizes = {"chr": CHROMOSOME, "p": PLASMID, "line": 9000}
        self.sequences = {name: random_bases(rng, size) for name, size in sizes.items()}
        self.reads = {}
        for x in range(120):
            name = ("chr", "p", "chr")[x % 3]
            turn = self.sequences[name]
            begin = int(rng.integers(0, len(turn)))
            if x % 2:
                begin = len(turn) - int(rng.integers(1, 4000)) % len(turn)
            size = int(rng.integers(800, 4000)) if name == "chr" else int(rng.integers(800, 14_000))
            size = min(size, 4000 + size % 7) if name == "chr" else size
            read = mutate(rng, (turn * 8)[begin : begin + size], 0.05)
            strand = "+-"[x % 4 // 2]
            self.reads[f"{name}:{begin}:{size}:{strand}:{x}"] = read if strand == "+" else naive.reverse_complement(read)
        self.write("ref.fa", self.sequences)
        self.write("reads.fa", self.reads)

    def write(self, name, records):
        (self.folder / name).write_text("".join(f">{key}\n{value}\n" for key, value in records.items()))
        return self.folder / name

    def map(self, *options, code=0):
        outcome = run("map", self.folder / "ref.fa", self.folder / "reads.fa", "--preset", "ont", *options)
        assert outcome.code == code, outcome.err
        return outcome


@pytest.fixture(scope="module")
def bacterium(tmp_path_factory):
    return Bacterium(tmp_path_factory.mktemp("circles"))


def lines_of(text):
    """Primary lines of PAF by read, in the order of the file: fields and tags."""
    found = {}
    for line in text.decode().splitlines():
        fields = line.split("\t")
        tags = {field[:2]: field[5:] for field in fields[12:]}
        if tags["tp"] == "P":
            found.setdefault(fields[0], []).append((fields, tags))
    return found


def test_a_read_over_the_origin_scores_as_on_a_turned_reference(bacterium):
    """Score, bases and place are those of one alignment to a reference that begins half a turn from where the read does."""
    found = lines_of(bacterium.map("--circular", "chr,p", "-q").out)
    assert found.keys() == bacterium.reads.keys()
    crossed = 0
    for name, lines in found.items():
        sequence, begin, size, *_ = name.split(":")
        turn, begin, size = bacterium.sequences[sequence], int(begin), int(size)
        before = 500
        reference = (turn * 10)[len(turn) + begin - before :][: size + 1000]
        bacterium.write("turned.fa", {"turned": reference})
        bacterium.write("one.fa", {name: bacterium.reads[name]})
        files = [bacterium.folder / f"{one}.fa" for one in ("turned", "one")]
        one = run("map", *files, "--preset", "ont", "--secondary", "no", "-q")
        (other,) = lines_of(one.out)[name][:1]
        assert {tags["AS"] for _, tags in lines} == {other[1]["AS"]}
        starts, ends = zip(*((int(fields[2]), int(fields[3])) for fields, _ in lines), strict=True)
        assert (min(starts), max(ends)) == (int(other[0][2]), int(other[0][3]))
        assert len({fields[11] for fields, _ in lines}) == 1
        first = min(lines, key=lambda line: int(line[0][2]) if line[0][4] == "+" else -int(line[0][3]))[0]
        assert int(first[7]) == (int(other[0][7]) + begin - before) % len(turn)
        crossed += len(lines) > 1
    assert crossed > 40


def test_parts_of_a_read_round_a_plasmid_follow_each_other(bacterium):
    found = lines_of(bacterium.map("--circular", "all", "-q").out)
    several = 0
    for name, lines in found.items():
        if not name.startswith("p:") or len(lines) < 2:
            continue
        parts = sorted((int(f[2]), int(f[3]), int(f[7]), int(f[8]), f[4]) for f, _ in lines)
        for one, other in zip(parts[:-1], parts[1:], strict=True):
            assert 0 <= other[0] - one[1] < 30
            if one[4] == "+":
                assert PLASMID - one[3] < 30 and other[2] < 30
            else:
                assert one[2] < 30 and PLASMID - other[3] < 30
        for fields, tags in lines:
            sizes = Counter()
            for n, step in STEP.findall(tags["cg"]):
                sizes[step] += int(n)
            assert sizes["M"] + sizes["I"] == int(fields[3]) - int(fields[2])
            assert sizes["M"] + sizes["D"] == int(fields[8]) - int(fields[7]) <= PLASMID
        several += len(lines) > 3
    assert several > 5


def test_the_log_counts_reads_over_origins(bacterium):
    outcome = bacterium.map("--circular", "all")
    over, around = map(int, re.search(r"(\d+) over an origin, (\d+) of them round more than once", outcome.err).groups())
    assert over > around > 20
    plain = bacterium.map()
    assert "origin" not in plain.err
    assert plain.out.count(b"\n") > 0


def test_bam_has_parts_and_depth_has_no_dip(bacterium):
    bacterium.map("--circular", "all", "-q", "-o", bacterium.folder / "out.bam")
    with pysam.AlignmentFile(bacterium.folder / "out.bam") as bam:
        lines = list(bam)
        by_read = {}
        for line in lines:
            by_read.setdefault(line.query_name, []).append(line)
        for name, mine in by_read.items():
            assert [line.is_supplementary or line.is_secondary for line in mine].count(False) == 1
            for line in mine:
                shown = line.get_forward_sequence()
                assert line.is_secondary or shown == bacterium.reads[name]
                others = len(line.get_tag("SA").rstrip(";").split(";")) if line.has_tag("SA") else 0
                assert others == sum(not other.is_secondary for other in mine) - 1
    # reads whose begins are even on the circle, so that only the ends of alignments could make a dip
    rng = np.random.default_rng(8)
    turn = bacterium.sequences["chr"]
    even = {f"e{at}": mutate(rng, (turn * 2)[at : at + 3000], 0.05) for at in range(0, CHROMOSOME, 100)}
    bacterium.write("even.fa", even)
    depth = {}
    for name, options in (("round", ("--circular", "chr")), ("line", ())):
        path = bacterium.folder / f"{name}.bam"
        assert run("map", bacterium.folder / "ref.fa", bacterium.folder / "even.fa", "-q", "-o", path, *options).code == 0
        with pysam.AlignmentFile(path) as bam:
            depth[name] = np.sum(bam.count_coverage("chr", quality_threshold=0), axis=0)
        near = np.concatenate([depth[name][:200], depth[name][-200:]]).mean() / depth[name][200:-200].mean()
        depth[name] = near
    assert depth["round"] >= 0.98 and depth["round"] >= depth["line"]


def test_a_short_rest_beyond_the_origin_is_not_lost(bacterium):
    """Linear, a rest of 40 bases is clipped; on a circle it belongs to the alignment."""
    turn = bacterium.sequences["chr"]
    bacterium.write("rest.fa", {"rest": turn[-2000:] + turn[:40]})
    linear, circle = (
        run("map", bacterium.folder / "ref.fa", bacterium.folder / "rest.fa", "--preset", "ont", "-q", *options).out
        for options in ((), ("--circular", "chr"))
    )
    assert linear.count(b"\n") == 1 and circle.count(b"\n") == 2
    assert {tags["AS"] for _, tags in lines_of(circle)["rest"]} == {str(2 * 2040)}


def test_a_read_that_lies_whole_elsewhere_is_not_split(bacterium):
    turn = bacterium.sequences["chr"]
    joint = turn[-1500:] + turn[:1500]
    bacterium.write("copy.fa", {**bacterium.sequences, "line": bacterium.sequences["line"] + joint})
    rng = np.random.default_rng(1)
    read = mutate(rng, joint, 0.02)
    bacterium.write("joint.fa", {"joint": read})
    for options in ((), ("--circular", "chr")):
        out = run("map", bacterium.folder / "copy.fa", bacterium.folder / "joint.fa", "--preset", "ont", "-q", *options).out
        lines = lines_of(out)["joint"]
        if not options:
            assert [line[0][5] for line in lines] == ["line"]
            continue
        assert len({tags["AS"] for _, tags in lines}) == 1 and {fields[11] for fields, _ in lines} == {"0"}
        rest = [line.split(b"\t") for line in out.splitlines() if b"tp:A:S" in line]
        assert {line[5] for line in rest} | {line[0][5].encode() for line in lines} == {b"chr", b"line"}


def test_output_does_not_depend_on_how_it_is_made(bacterium, monkeypatch):
    whole = bacterium.map("--circular", "all", "-q").out
    assert bacterium.map("--circular", "chr,p,line", "-q", "-t", "3").out == whole
    assert run("index", bacterium.folder / "ref.fa", "-o", bacterium.folder / "ref.bpi", "-q").code == 0
    of_index = run(
        "map", bacterium.folder / "ref.bpi", bacterium.folder / "reads.fa", "--preset", "ont", "--circular", "all", "-q"
    )
    assert of_index.out == whole
    monkeypatch.setattr("bellapy.jobs.map.store.Store.is_needed", lambda *_: True)
    assert bacterium.map("--circular", "all", "-q", *roomy()).out == whole


@pytest.mark.parametrize("unrolled", [1 << 15, 1 << 12])
def test_reads_longer_than_what_is_unrolled_are_counted(bacterium, monkeypatch, unrolled):
    monkeypatch.setattr(circles, "UNROLLED", unrolled)
    outcome = bacterium.map("--circular", "all")
    assert re.search(r"\d+ reads on circles have more than -?\d+ bases", outcome.err)
    assert lines_of(outcome.out).keys() == bacterium.reads.keys()


def test_names_that_are_not_there_and_chains_alone_are_refused(bacterium):
    outcome = bacterium.map("--circular", "chr,q", code=2)
    assert "--circular q: the reference has no sequence of this name; it has chr, p, line" in outcome.err
    assert "leave out --no-align" in bacterium.map("--circular", "chr", "--no-align", code=2).err


def test_python_gives_the_parts(bacterium):
    aligner = bellapy.Aligner(bacterium.sequences, preset="ont", circular=["p"])
    read = (bacterium.sequences["p"] * 3)[2000:7000]
    found = list(aligner.map({"r": read}))
    assert [(part.target_start, part.target_end) for part in found] == [(0, 3000), (2000, 3000), (0, 1000)]
    assert {part.score for part in found} == {2 * 5000}
    assert [part.kind for part in found] == ["primary", "supplementary", "supplementary"]


def pairs_of(paths, row, turn, start):
    """Pairs of bases of a path: read, and place on the circle."""
    found, q, t = set(), int(paths.q_start[row]), int(paths.t_start[row]) - start
    for run_ in paths.runs[int(paths.first[row]) :][: int(paths.n_runs[row])].tolist():
        size, operation = run_ >> 4, run_ & 15
        for _ in range(size):
            if operation == 0:
                found.add((q, t % turn))
            q, t = q + (operation != 2), t + (operation != 1)
    return found


@pytest.mark.parametrize("seed", range(20))
def test_parts_hold_the_pairs_of_the_whole(seed):
    """With gaps of any size, at and over origins, too."""
    rng = np.random.default_rng(seed)
    turn = int(rng.integers(1, 30))
    codes = rng.integers(0, 4, turn).astype(np.uint8)
    begin = int(rng.integers(0, turn))
    runs, last = [], None
    for x in range(int(rng.integers(1, 12))):
        kind = 0 if x == 0 else int(rng.choice([kind for kind in range(3) if kind != last]))
        runs.append((kind, int(rng.integers(1, 2 * turn + 2))))
        last = kind
    if last:
        runs.append((0, 3))
    q_size, t_size = (sum(size for kind, size in runs if kind != alone) for alone in (2, 1))
    query = rng.integers(0, 4, q_size + 5).astype(np.uint8)
    target = Target(
        np.concatenate([codes, np.resize(codes, turn + t_size + 50)]), np.array([0, turn]),
        np.array([turn, turn + t_size + 50]), np.array([0, 0]), np.array([1]),
    )  # fmt: skip
    packed = np.array([pack_run(*one) for one in runs], np.uint32)
    columns = [0, 5, 5 + q_size, turn + begin, turn + begin + t_size, 0, 0, 0, 0, 0, 0, len(runs), 0]
    paths = Paths(*(np.array([value]) for value in columns), runs=packed)
    rows, its_runs = cut_at_origins(query, target, paths, np.array([0]), np.array([[0], [begin]]), AffineScoring())
    parts = Paths(*rows, runs=its_runs)
    found = [pairs_of(parts, row, turn, 0) for row in range(len(parts.source))]
    whole = pairs_of(paths, 0, turn, turn)
    assert set().union(*found) == whole and sum(map(len, found)) == len(whole)
    assert (parts.t_start >= 0).all() and (parts.t_end <= turn).all()
    for row in range(len(parts.source)):
        first, n = int(parts.first[row]), int(parts.n_runs[row])
        assert its_runs[first] & 15 == 0 and its_runs[first + n - 1] & 15 == 0
