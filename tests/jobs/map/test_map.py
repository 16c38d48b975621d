"""Mapping: places, paths and tags against the truth of simulated reads, and the command line."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import weakref
from dataclasses import replace
from pathlib import Path

import naive
import naive_map
import numpy as np
import pysam
import pytest
from cases import roomy, run
from strategies import make_reads, mutate, random_bases

from bellapy.errors import InputError
from bellapy.io.fastx import Records, load_reads, stream_records
from bellapy.io.index_files import MAGIC, load_index, save_index
from bellapy.jobs.map import rounds
from bellapy.jobs.map.bases import pack_both_ways
from bellapy.jobs.map.batches import batches
from bellapy.jobs.map.pipeline import Mapper
from bellapy.params import AffineScoring, map_preset
from bellapy.records.bases import ENCODE
from bellapy.seeding.anchors import MOST_PER_BASE, RESCUE_SPAN, find_anchors, layout_for
from bellapy.seeding.index import build_index

SCORES = AffineScoring()


class World:
    """A reference of two sequences and reads from it: names tell sequence, start, end and strand."""

    def __init__(self, folder: Path):
        rng = np.random.default_rng(7)
        self.folder = folder
        self.sequences = {"one": random_bases(rng, 60_000), "two": random_bases(rng, 25_000)}
        self.reads = {}
        for x in range(40):
            name = "one" if x % 3 else "two"
            start = int(rng.integers(0, len(self.sequences[name]) - 3000))
            end = start + int(rng.integers(1500, 3000))
            strand = "+-"[x % 2]
            read = mutate(rng, self.sequences[name][start:end], 0.1)
            self.reads[f"{name}:{start}:{end}:{strand}:{x}"] = read if strand == "+" else naive.reverse_complement(read)
        self.write("ref.fa", self.sequences)
        self.fastq("reads.fq", self.reads)

    def write(self, name: str, records: dict[str, str]) -> Path:
        (self.folder / name).write_text("".join(f">{key}\n{value}\n" for key, value in records.items()))
        return self.folder / name

    def fastq(self, name: str, records: dict[str, str], comment: str = "") -> Path:
        rng = np.random.default_rng(3)
        lines = []
        for key, value in records.items():
            quality = "".join(map(chr, rng.integers(40, 60, len(value))))
            lines.append(f"@{key}{comment}\n{value}\n+\n{quality}\n")
        (self.folder / name).write_text("".join(lines))
        return self.folder / name

    def map(self, *options, reads="reads.fq", output="out.sam") -> list[pysam.AlignedSegment]:
        outcome = run("map", self.folder / "ref.fa", self.folder / reads, "-o", self.folder / output, "-q", *options)
        assert outcome.code == 0, outcome.err
        with pysam.AlignmentFile(str(self.folder / output), check_sq=False) as file:
            return list(file)


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> World:
    return World(tmp_path_factory.mktemp("map"))


def test_a_path_begins_and_ends_with_a_pair(world):
    """A bonus for the end of a read must not be earned by a gap."""
    one = world.sequences["one"]
    world.write(
        "gap.fa", {f"r{x}": "ACGT"[x % 4] * (1 + x % 3) + one[3000 + x : 5000] + "CATG"[x % 4] * (x % 5) for x in range(40)}
    )
    for record in world.map("--preset", "clr", reads="gap.fa"):
        aligned = [op for op, _ in record.cigartuples if op != 4]
        assert aligned[0] == aligned[-1] == 0


def check_record(record: pysam.AlignedSegment, sequences: dict[str, str], bases: str, scoring=SCORES) -> None:
    """CIGAR, NM, MD and AS of a record, from its bases and the reference alone."""
    reference = sequences[record.reference_name]
    assert record.query_sequence == (naive.reverse_complement(bases) if record.is_reverse else bases)
    score = distance = 0
    q, t = 0, record.reference_start
    md, same = [], 0
    for operation, size in record.cigartuples:
        if operation in (4, 5):
            q += size
        elif operation in (0, 7, 8):
            for x in range(size):
                equal = record.query_sequence[q + x] == reference[t + x] in "ACGT"
                score += scoring.match if equal else scoring.mismatch
                distance += not equal
                same += equal
                if not equal:
                    md += [str(same), reference[t + x]]
                    same = 0
            q, t = q + size, t + size
        else:
            score -= min(scoring.open1 + size * scoring.extend1, scoring.open2 + size * scoring.extend2)
            distance += size
            if operation == 1:
                q += size
            else:
                md += [str(same), "^" + reference[t : t + size]]
                same, t = 0, t + size
    assert record.get_tag("AS") == score and record.get_tag("NM") == distance
    assert record.get_tag("MD") == "".join(md) + str(same)


def test_reads_come_back_to_their_places(world):
    records = world.map("--preset", "ont")
    assert [record.query_name for record in records] == list(world.reads)
    for record in records:
        name, start, end, strand, _ = record.query_name.split(":")
        assert (record.reference_name, "+-"[record.is_reverse], record.mapping_quality) == (name, strand, 60)
        assert abs(record.reference_start - int(start)) < 20 and abs(record.reference_end - int(end)) < 20
        check_record(record, world.sequences, world.reads[record.query_name])


def test_paf_tells_the_same(world):
    sam = world.map("--preset", "ont", "--cs", "--eqx")
    outcome = run(
        "map", world.folder / "ref.fa", world.folder / "reads.fq", "-q", "--preset", "ont", "--cs", "--eqx", "--md"
    )
    lines = [line.split("\t") for line in outcome.out.decode().splitlines()]
    assert len(lines) == len(sam)
    for line, record in zip(lines, sam, strict=True):
        tags = dict((tag[:2], tag[5:]) for tag in line[12:])
        assert line[0] == record.query_name and line[5] == record.reference_name
        assert (int(line[7]), int(line[8])) == (record.reference_start, record.reference_end)
        assert re.sub(r"\d+S", "", record.cigarstring) == tags["cg"] and tags["cs"] == record.get_tag("cs")
        assert tags["MD"] == record.get_tag("MD")
        assert int(tags["AS"]) == record.get_tag("AS")
        equal = sum(int(n) for n in re.findall(r"(\d+)=", tags["cg"]))
        assert int(line[9]) == equal == sum(int(n) for n in re.findall(r":(\d+)", tags["cs"]))
        assert int(line[10]) == sum(int(n) for n in re.findall(r"\d+", tags["cg"]))


def best_part(query, target, cigar):
    """The highest score of any part of a path, and the columns with an unknown base, from their definition."""
    score = best = unknown = q = t = 0
    for size, step in ((int(n), step) for n, step in re.findall(r"(\d+)([MID])", cigar)):
        if step == "M":
            for x in range(size):
                letters = query[q + x], target[t + x]
                unknown += "N" in letters
                score = max(0, score + (-1 if "N" in letters else 2 if letters[0] == letters[1] else -4))
                best = max(best, score)
            q, t = q + size, t + size
            continue
        unknown += (query[q : q + size] if step == "I" else target[t : t + size]).count("N")
        score = max(0, score - min(4 + 2 * size, 24 + size))
        q, t = q + size * (step == "I"), t + size * (step == "D")
    return best, unknown


def test_tags_of_best_part_unknown_and_repeated_bases(world):
    """ms and nn by their definitions; rl is one number for all lines of a read, and 0 without repeats."""
    rng = np.random.default_rng(9)
    reads = {name: bases for name, bases in list(world.reads.items())[:12]}
    for x, name in enumerate(reads):
        bases = list(reads[name])
        for at in rng.integers(0, len(bases), x):
            bases[at] = "N"
        middle = len(bases) // 2
        reads[name] = "".join(bases[:middle]) + random_bases(rng, 60 * x) + "".join(bases[middle:])
    world.write("tags.fa", reads)
    for form in ((), ("--format", "sam")):
        out = run(
            "map", world.folder / "ref.fa", world.folder / "tags.fa", "-q", "--preset", "ont", "--secondary", "no", *form
        ).out
        seen = 0
        for line in out.decode().splitlines():
            fields = line.split("\t")
            if line.startswith("@") or form:
                assert line.startswith("@") or re.search("\tms:i:\\d+\tAS:i:\\d+\tnn:i:\\d+\ttp:A:P.*\trl:i:0", line)
                continue
            tags = {tag[:2]: tag[5:] for tag in fields[12:]}
            read = reads[fields[0]]
            read = read if fields[4] == "+" else naive.reverse_complement(read)
            q_start = int(fields[2]) if fields[4] == "+" else int(fields[1]) - int(fields[3])
            target = world.sequences[fields[5]][int(fields[7]) : int(fields[8])]
            assert best_part(read[q_start:], target, tags["cg"]) == (int(tags["ms"]), int(tags["nn"]))
            assert int(tags["ms"]) >= int(tags["AS"]) and tags["rl"] == "0"
            seen += int(tags["nn"])
        assert form or seen > 20


def test_repeated_bases_are_told(world):
    rng = np.random.default_rng(3)
    element = random_bases(rng, 600)
    genome = "".join(element + random_bases(rng, 100) for _ in range(400))
    world.write("rl.fa", {"r": genome})
    world.write("rl.reads.fa", {"r": genome[5000:9000], "none": random_bases(rng, 3000)})
    out = run("map", world.folder / "rl.fa", world.folder / "rl.reads.fa", "-q", "--preset", "ont", "--paf-no-hit").out
    lines = out.decode().splitlines()
    numbers = {int(re.search(r"rl:i:(\d+)", line)[1]) for line in lines if line.startswith("r\t")}
    assert len(numbers) == 1 and 1000 < numbers.pop() < 4000


def test_the_long_form_of_cs_spells_what_the_short_one_counts(world):
    short, long = (
        run("map", world.folder / "ref.fa", world.folder / "reads.fq", "-q", "--preset", "ont", option).out.decode()
        for option in ("--cs", "--cs=long")
    )
    texts = [re.findall(r"cs:Z:(\S+)", out) for out in (short, long)]
    assert len(texts[0]) == len(texts[1]) == len(world.reads)
    assert [re.sub(r"=([ACGTN]+)", lambda found: f":{len(found[1])}", text) for text in texts[1]] == texts[0]
    lines = [line.split("\t") for line in long.splitlines()]
    for line, text in zip(lines, texts[1], strict=True):
        target = "".join(
            bases.upper() if mark in "=-" else bases[0].upper() if mark == "*" else ""
            for mark, bases in re.findall(r"([=*+-])([A-Za-z]+)", text)
        )
        assert target == world.sequences[line[5]][int(line[7]) : int(line[8])]


def test_ds_tells_where_gaps_could_stand(world):
    """As by its definition; without brackets it is cs."""
    rng = np.random.default_rng(4)
    reads = {}
    for x, (name, bases) in enumerate(list(world.reads.items())[:10]):
        for at in rng.integers(400, len(bases) - 400, 12).tolist():  # repeated pieces come and go
            size, n = rng.integers(1, 9, 2).tolist()
            bases = bases[:at] + bases[at : at + size] * n + bases[at + size * (at % 3) :]
        reads[f"{x}:{name}"] = bases
    world.write("gaps.fa", reads)
    options = "-q", "--preset", "ont", "--ds", "--cs", "--secondary", "no"
    out = run("map", world.folder / "ref.fa", world.folder / "gaps.fa", *options).out.decode()
    brackets = 0
    for line in out.splitlines():
        fields = line.split("\t")
        tags = {tag[:2]: tag[5:] for tag in fields[12:]}
        read, reverse = reads[fields[0]][int(fields[2]) : int(fields[3])], fields[4] == "-"
        target = world.sequences[fields[5]][int(fields[7]) : int(fields[8])]
        assert tags["ds"] == naive_map.ds(naive.reverse_complement(read) if reverse else read, target, tags["cg"])
        assert re.sub(r"[][]", "", tags["ds"]) == tags["cs"]
        brackets += tags["ds"].count("[")
    assert brackets > 100
    sam = run("map", world.folder / "ref.fa", world.folder / "gaps.fa", *options, "--format", "sam").out.decode()
    assert re.findall(r"\tds:Z:\S+", sam) == re.findall(r"\tds:Z:\S+", out)


def test_bam_is_sorted_and_indexed_and_the_same(world):
    sam = world.map("--preset", "ont", "--rg", "@RG\\tID:a\\tSM:b")
    bam = world.map("--preset", "ont", "--rg", "@RG\\tID:a\\tSM:b", output="out.bam")
    assert sorted(record.to_string() for record in sam) == sorted(record.to_string() for record in bam)
    with pysam.AlignmentFile(str(world.folder / "out.bam")) as file:
        header = file.header.to_dict()
        assert header["HD"]["SO"] == "coordinate" and header["RG"] == [{"ID": "a", "SM": "b"}]
        assert header["PG"][0]["ID"] == "bellapy" and "map" in header["PG"][0]["CL"]
        assert file.has_index() and sum(1 for _ in file.fetch("two")) == sum(r.reference_name == "two" for r in sam)
    assert all(record.get_tag("RG") == "a" for record in bam)


def test_sorting_begins_when_the_index_is_gone_and_its_memory_given_back(world, monkeypatch):
    """Sorting needs room of its own: together they would be the peak of a run."""
    indexes, happened = [], []

    def keep_in_sight(*arguments):
        index = build_index(*arguments)
        indexes.append(weakref.ref(index))
        return index

    def sort(*arguments):
        happened.extend("held" if index() else "free" for index in indexes)
        return real_sort(*arguments)

    real_sort = pysam.sort
    monkeypatch.setattr("bellapy.jobs.map.run.build_index", keep_in_sight)
    monkeypatch.setattr("bellapy.io.sam.give_back_freed", lambda: happened.append("given back"))
    monkeypatch.setattr(pysam, "sort", sort)
    world.map("--preset", "ont", output="out.bam")
    assert happened == ["given back", "free"]


def test_output_does_not_depend_on_threads_or_batches(world, monkeypatch):
    def mapped(*options) -> bytes:
        outcome = run("map", world.folder / "ref.fa", world.folder / "reads.fq", "-q", "--format", "sam", *options)
        assert outcome.code == 0, outcome.err
        return re.sub(rb"@PG[^\n]*", b"", outcome.out)

    want = mapped("--preset", "clr", "-t", "1")
    assert mapped("--preset", "clr", "-t", "3") == want
    monkeypatch.setattr("bellapy.seeding.anchors.REACH", 1 << 17)
    monkeypatch.setattr("bellapy.seeding.anchors.Layout.most_reads", 7)
    assert mapped("--preset", "clr", "-t", "2") == want


def test_batches_join_and_cut(world):
    stream = list(stream_records([world.folder / "reads.fq", world.folder / "ref.fa"]))
    found = list(batches(stream, most_reads=3))
    assert [name.decode() for records in found for name in records.names] == [*world.reads, "one", "two"]
    assert [records.qualities is None for records in found] == [False, True]


def test_an_index_file_gives_the_same(world):
    assert run("index", world.folder / "ref.fa", "-o", world.folder / "ref.bpi", "--preset", "ont", "-q").code == 0
    built = build_index(load_reads([world.folder / "ref.fa"]), 15, 10)
    loaded = load_index(str(world.folder / "ref.bpi"))
    assert loaded.names == built.names and loaded.lookup.cutoff == built.lookup.cutoff
    assert (loaded.lookup.words == built.lookup.words).all() and (loaded.codes == built.codes).all()
    fresh = run("map", world.folder / "ref.fa", world.folder / "reads.fq", "--preset", "ont", "-q")
    again = run("map", world.folder / "ref.bpi", world.folder / "reads.fq", "--preset", "ont", "-q")
    assert again.code == 0 and fresh.out == again.out
    cut = world.folder / "cut.bpi"
    cut.write_bytes((world.folder / "ref.bpi").read_bytes()[:-100])
    outcome = run("map", cut, world.folder / "reads.fq")
    assert outcome.code == 1 and "cut short" in outcome.err


@pytest.mark.parametrize("options", [(), ("--preset", "clr"), ("--no-align",)])
def test_an_index_in_parts_gives_the_same(world, monkeypatch, options):
    """In several rounds of reads and ranges of hashes, with repeats that are left out or taken for want of others."""
    rng = np.random.default_rng(4)
    element = random_bases(rng, 2000)
    genome = "".join(mutate(rng, element, 0.01) + random_bases(rng, 1000) for _ in range(120))
    world.write("many.fa", {"r": genome, "one": world.sequences["one"]})
    starts = rng.integers(0, len(genome) - 5000, 30)
    world.write("many.reads.fa", {f"r{x}": mutate(rng, genome[at : at + 5000], 0.04) for x, at in enumerate(starts)})
    seen = []
    monkeypatch.setattr("bellapy.jobs.map.store.Store.is_needed", lambda *_: True)
    monkeypatch.setattr("bellapy.jobs.map.rounds._rounds", lambda stream, budget: ([records] for records in stream))
    monkeypatch.setattr("bellapy.jobs.map.run.batches", lambda stream: batches(stream, most_reads=11))
    monkeypatch.setattr("bellapy.jobs.map.store.LEAST_WORDS", 5000)
    real = rounds.look_up

    def noted(lookup, found, low, high):
        seen.append((int(low), int(high)))
        real(lookup, found, low, high)

    def in_parts(lookup, k, budget):
        edges = [(1 << 2 * k) * x // 5 for x in range(6)]
        return [(np.uint64(a), np.uint64(b - 1)) for a, b in zip(edges[:-1], edges[1:], strict=True)]

    monkeypatch.setattr("bellapy.jobs.map.rounds.look_up", noted)
    monkeypatch.setattr("bellapy.jobs.map.rounds._ranges", in_parts)
    monkeypatch.setattr("bellapy.jobs.map.store.Budget.items", lambda *_, least, **__: least)
    whole, parts = (
        run("map", world.folder / "many.fa", world.folder / "many.reads.fa", "-t", "2", *options, *bound)
        for bound in ((), roomy())
    )
    assert whole.code == parts.code == 0 and whole.out.count(b"\n") >= 30
    assert parts.out == whole.out and "in a file" in parts.err
    assert len(set(seen)) == 5 and len(seen) in (10, 15)


def test_an_index_file_is_the_same_however_it_is_made(world, monkeypatch):
    monkeypatch.setattr("bellapy.jobs.map.store.Store.is_needed", lambda *_: True)
    monkeypatch.setattr("bellapy.jobs.map.store.Store.room", lambda self, n: (np.zeros(n, np.uint64), n // 7))
    made = []
    for x, bound in enumerate(((), roomy())):
        path = world.folder / f"made{x}.bpi"
        assert run("index", world.folder / "ref.fa", "-o", path, "-q", "-t", "3", *bound).code == 0
        made.append(path.read_bytes())
    assert made[0] == made[1]


def test_a_bound_on_memory_that_nothing_fits_is_told(world):
    outcome = run("map", world.folder / "ref.fa", world.folder / "reads.fq", "--max-memory", "10M")
    assert outcome.code == 1 and "--max-memory 10M" in outcome.err and outcome.out == b""


def same_index(a, b):
    arrays = ((x.codes, x.starts, x.lengths, x.lookup.words, x.lookup.starts) for x in (a, b))
    numbers = [(x.names, x.k, x.window, *x.lookup[2:]) for x in (a, b)]
    return numbers[0] == numbers[1] and all(map(np.array_equal, *arrays))


def test_an_index_file_that_is_not_sound_is_refused(world, monkeypatch):
    monkeypatch.setattr("bellapy.io.index_files.PIECE", 1 << 14)
    index, damaged = build_index(load_reads([world.folder / "ref.fa"]), 15, 10), world.folder / "damaged.bpi"
    save_index(index, str(damaged), threads=2)
    data, refused, taken = damaged.read_bytes(), 0, 0
    for at in [*range(len(MAGIC), 600, 7), *range(600, len(data), 2999), len(data) - 1]:
        damaged.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        try:
            assert same_index(load_index(str(damaged), threads=2), index)  # what changed lies between arrays
            taken += 1
        except InputError as error:
            assert re.search(r"damaged\.bpi: the index is (damaged|cut short); make it again", str(error))
            refused += 1
    assert refused > 100 > 10 > taken
    damaged.write_bytes(b"bellapy-index-2\n" + data[len(MAGIC) :])
    with pytest.raises(InputError, match="another version"):
        load_index(str(damaged))


def test_a_preset_is_chosen_from_the_reads(world):
    rng = np.random.default_rng(1)
    for error, preset in ((0.002, "hifi"), (0.03, "hq"), (0.08, "ont"), (0.16, "clr")):
        reads = {f"r{x}": mutate(rng, world.sequences["one"][x * 5000 : x * 5000 + 4000], error) for x in range(10)}
        world.write("some.fa", reads)
        outcome = run("map", world.folder / "ref.fa", world.folder / "some.fa")
        assert outcome.code == 0 and f"preset {preset}" in outcome.err
        assert outcome.out.count(b"\n") == 10


@pytest.mark.parametrize(
    "error, quality, tried", [(0.002, "?", 1), (0.03, "I", 1), (0.16, "?", 2), (0.16, "+#", 1), (0.01, "+#", 2)]
)
def test_the_index_is_rarely_made_twice(world, error, quality, tried):
    """Of long minimizers first, unless qualities tell of noisy reads; reads are mapped by what fits them in any case."""
    rng = np.random.default_rng(1)
    lines = []
    for x in range(10):
        read = mutate(rng, world.sequences["one"][x * 5000 : x * 5000 + 4000], error)
        lines.append(f"@r{x}\n{read}\n+\n{(quality * len(read))[: len(read)]}\n")
    (world.folder / "told.fq").write_text("".join(lines))
    outcome = run("map", world.folder / "ref.fa", world.folder / "told.fq")
    assert outcome.err.count("] index: ") == tried
    wanted = "hifi" if error < 0.015 else "hq" if error < 0.06 else "clr"
    assert f"preset {wanted}" in outcome.err
    assert outcome.out == run("map", world.folder / "ref.fa", world.folder / "told.fq", "--preset", wanted).out


def test_what_is_learnt_does_not_depend_on_how_reads_are_shared_out(world, monkeypatch):
    """Nor is anything learnt twice where two presets cut the same pieces."""
    index = build_index(load_reads([world.folder / "ref.fa"]), 15, 10)
    records = next(batches(stream_records([world.folder / "reads.fq"])))
    learnt = []
    for part, threads in ((200, 1), (3, 2)):
        monkeypatch.setattr("bellapy.jobs.map.pipeline.SAMPLE_PART", part)
        monkeypatch.setattr("bellapy.jobs.map.pipeline.SAMPLE_PIECES", 50)
        mapper = Mapper(index, map_preset("ont"))
        sample = mapper.sample(records, threads)
        learnt.append((sum(len(some.pieces.q_at) for some in sample), mapper.learn(sample, threads), mapper.effort))
    assert len(sample) > 1 and learnt[0] == learnt[1] and 25 < learnt[0][0] <= 50
    clr = Mapper(index, map_preset("clr"))
    assert clr.chains_like(mapper) and not clr.chains_like(Mapper(index, map_preset("hifi")))
    for mine, other in zip(clr.sample(records), sample, strict=True):
        assert np.array_equal(np.stack(mine.pieces), np.stack(other.pieces))


def test_chains_alone(world):
    outcome = run("map", world.folder / "ref.fa", world.folder / "reads.fq", "-q", "--preset", "ont", "--no-align")
    lines = [line.split("\t") for line in outcome.out.decode().splitlines()]
    assert len(lines) == len(world.reads)
    for line in lines:
        name, start, end, strand, _ = line[0].split(":")
        assert (line[5], line[4]) == (name, strand) and abs(int(line[7]) - int(start)) < 250 and int(line[11]) > 20


# ---------------------------------------------------------------- splits, clips, tags


def test_parts_of_a_read_from_two_places_are_supplementary(world):
    one, two = world.sequences["one"], world.sequences["two"]
    read = one[5000:8000] + naive.reverse_complement(two[10_000:12_000])
    world.fastq("split.fq", {"split": read}, " MM:Z:C+m,5;\tML:B:C,200\tXX:i:3")
    for options, clipped in (([], "S"), (["--hard-clip"], "H")):
        first, second = world.map("--preset", "ont", *options, reads="split.fq")
        assert (first.flag, second.flag) == (0, 2048 + 16)
        assert (first.reference_name, first.reference_start, first.reference_end) == ("one", 5000, 8000)
        assert (second.reference_name, second.reference_start) == ("two", 10_000)
        size = second.reference_end - 10_000  # chance may add some bases to the 2,000
        assert (
            abs(size - 2000) < 5
            and first.cigarstring == "3000M2000S"
            and second.cigarstring == f"{size}M{5000 - size}{clipped}"
        )
        assert first.get_tag("SA") == f"two,10001,-,{size}M{5000 - size}S,{second.mapping_quality},{second.get_tag('NM')};"
        assert second.get_tag("SA") == f"one,5001,+,3000M2000S,{first.mapping_quality},0;"
        assert first.get_tag("MM") == "C+m,5;" and list(first.get_tag("ML")) == [200]
        assert second.get_tag("XX") == 3
        assert (second.get_tag("MM") == "C+m;") == (clipped == "H"), "the modified base is one of the other part"
        assert list(second.get_tag("ML")) == ([200] if clipped == "S" else [])
        assert len(second.query_sequence) == (5000 if clipped == "S" else size)
        assert len(second.query_qualities) == len(second.query_sequence)
        check_record(first, world.sequences, read)


def modified_on_reference(records) -> set[tuple]:
    """Places of modified bases on the reference, with their probabilities."""
    found = set()
    for record in records:
        places = dict(record.get_aligned_pairs(matches_only=True))
        for kind, bases in (record.modified_bases or {}).items():
            found |= {(record.query_name, record.reference_name, places.get(at), kind, chance) for at, chance in bases}
    return {row for row in found if row[2] is not None}


def test_modified_bases_and_read_groups_of_bam(world):
    """On both strands, soft and hard clips: those of FASTQ with the same tags, and no others."""
    one, two = world.sequences["one"], world.sequences["two"]
    turned = naive.reverse_complement
    reads = {
        "forward": one[100:3000], "reverse": turned(one[4000:7000]), "split": one[5000:8000] + turned(two[10_000:12_000]),
        "nowhere": "ACGT" * 50,
    }  # fmt: skip
    header = pysam.AlignmentHeader.from_dict({"HD": {"VN": "1.6"}, "RG": [{"ID": "run1", "SM": "s"}]})
    with (
        pysam.AlignmentFile(str(world.folder / "u.bam"), "wb", header=header) as bam,
        open(world.folder / "u.fq", "w") as fastq,
    ):
        for name, bases in reads.items():
            chosen = [i % 5 == 2 for i in range(bases.count("C"))]
            skips = [2, *([4] * (sum(chosen) - 1))]
            tags = f"RG:Z:run1\tMM:Z:C+m?,{','.join(map(str, skips))};\tML:B:C" + "".join(
                f",{i % 256}" for i in range(len(skips))
            )
            line = f"{name}\t4\t*\t0\t0\t*\t*\t0\t0\t{bases}\t{'5' * len(bases)}\t{tags}"
            bam.write(pysam.AlignedSegment.fromstring(line, header))
            fastq.write(f"@{name}\t{tags}\n{bases}\n+\n{'5' * len(bases)}\n")
    soft, hard = (world.map("--preset", "ont", *options, reads="u.bam") for options in ([], ["--hard-clip"]))
    assert [record.to_string() for record in soft] == [
        record.to_string() for record in world.map("--preset", "ont", reads="u.fq")
    ]
    primary = [record for record in soft if record.query_name != "split"]
    expected = modified_on_reference(soft)
    assert len(expected) > 500 and {row[1] for row in expected} == {"one", "two"}
    assert modified_on_reference(hard) == expected and all(record.get_tag("RG") == "run1" for record in soft + hard)
    for record in primary:
        assert record.get_tag("MM").startswith("C+m?,2,4")
    lines = run("map", world.folder / "ref.fa", world.folder / "u.bam", "-q", "--format", "sam").out.decode().splitlines()
    assert "@RG\tID:run1\tSM:s" in lines
    given = run("map", world.folder / "ref.fa", world.folder / "u.bam", "-q", "--format", "sam", "--rg", "@RG\\tID:x")
    groups = [line for line in given.out.decode().splitlines() if line.startswith("@RG") or "RG:Z:" in line]
    assert groups[0] == "@RG\tID:x" and all(line.count("RG:Z:x") == 1 and "run1" not in line for line in groups[1:])


def test_reads_that_fit_nowhere(world):
    world.write("some.fa", {"a": "ACGGT" * 80, "b": world.sequences["one"][:2000], "c": "ACTTG" * 90})
    words = "map", world.folder / "ref.fa", world.folder / "some.fa", "-q", "--preset", "ont"
    usual = run(*words).out.decode().splitlines()
    assert [line.split("\t")[0] for line in usual] == ["b"]
    every = run(*words, "--paf-no-hit").out.decode().splitlines()
    assert every == ["a\t400" + "\t0" * 2 + "\t*" * 2 + "\t0" * 6, *usual, "c\t450" + "\t0" * 2 + "\t*" * 2 + "\t0" * 6]
    sam = run(*words, "--format", "sam", "--sam-hit-only").out.decode().splitlines()
    assert [line.split("\t")[0] for line in sam if not line.startswith("@")] == ["b"]


def test_short_and_poor_reads_are_left_out(world):
    one = world.sequences["one"]
    rows = {"long": (2000, "5"), "short": (900, "5"), "poor": (2000, "#"), "mixed": (2000, "I")}
    text = "".join(
        f"@{name}\n{one[:size]}\n+\n{letter * (size - 400 * (name == 'mixed'))}{'#' * 400 * (name == 'mixed')}\n"
        for name, (size, letter) in rows.items()
    )
    (world.folder / "kinds.fq").write_text(text)
    words = "map", world.folder / "ref.fa", world.folder / "kinds.fq", "--preset", "ont", "--report", world.folder / "r.json"
    for options, kept, dropped in (
        ([], ["long", "short", "poor", "mixed"], [0, 0]),
        (["--min-length", 1000], ["long", "poor", "mixed"], [1, 0]),
        (["--min-quality", 8], ["long", "short", "mixed"], [0, 1]),
        (["--min-quality", 10, "--min-length", 901], ["long"], [1, 2]),  # a fifth at 50 % are 10 %: Q9
    ):
        outcome = run(*words, *options)
        assert [line.split("\t")[0] for line in outcome.out.decode().splitlines()] == kept, outcome.err
        assert list(json.loads((world.folder / "r.json").read_text())["dropped"].values()) == dropped
        assert ("left out: " in outcome.err) == any(dropped)
    outcome = run("map", world.folder / "ref.fa", world.folder / "ref.fa", "--min-quality", 5)
    assert outcome.code == 2 and "reads of FASTA have no quality values" in outcome.err


def lines_of(path) -> list[str]:
    with pysam.AlignmentFile(str(path), check_sq=False) as file:
        return [segment.to_string() for segment in file.fetch(until_eof=True)]


def test_bam_on_standard_output_and_cram(world):
    """The same records as SAM has; in CRAM, htslib puts some tags in another place."""
    folder, words = world.folder, ["map", world.folder / "ref.fa", world.folder / "reads.fq", "-q", "--preset", "ont"]
    (folder / "out.bam").write_bytes(run(*words, "--format", "bam").out)
    (folder / "out.sam").write_bytes(run(*words, "--format", "sam").out)
    assert lines_of(folder / "out.bam") == lines_of(folder / "out.sam")
    assert run(*words, "-o", folder / "out.cram").code == run(*words, "-o", folder / "sorted.bam").code == 0
    assert (folder / "out.cram").read_bytes()[:4] == b"CRAM" and (folder / "out.cram.crai").exists()
    (folder / "ref.fa").rename(folder / "away.fa")  # what it needs of the reference is in it
    fields = [[sorted(line.split("\t")) for line in lines_of(folder / name)] for name in ("out.cram", "sorted.bam")]
    (folder / "away.fa").rename(folder / "ref.fa")
    assert fields[0] == fields[1] and len(fields[0]) >= len(world.reads)
    os.mkfifo(folder / "pipe")
    with open(folder / "piped.bam", "wb") as piped:  # by another process: pysam keeps Python's lock while it closes a file
        with subprocess.Popen(["cat", folder / "pipe"], stdout=piped) as reader:
            assert run(*words, "--format", "bam", "-o", folder / "pipe").code == 0
        assert reader.returncode == 0
    assert lines_of(folder / "piped.bam") == lines_of(folder / "out.sam")


def test_tags_that_are_written_are_not_taken_from_comments(world):
    world.fastq("tags.fq", {"r": world.sequences["one"][:3000]}, " NM:i:77\tcs:Z:x\tXX:i:3\tSA:Z:x")
    (record,) = world.map("--preset", "ont", reads="tags.fq")
    assert record.get_tag("NM") == 0 and record.get_tag("XX") == 3 and not record.has_tag("SA") and not record.has_tag("cs")


def test_a_gap_that_costs_more_than_a_side_is_worth_splits(world):
    one = world.sequences["one"]
    world.write("far.fa", {"far": one[20_000:22_000] + one[31_000:33_500]})
    records = world.map("--preset", "ont", reads="far.fa")
    assert [(r.flag, r.reference_start, r.cigarstring) for r in records] == [
        (0, 31_000, "2000S2500M"), (2048, 20_000, "2000M2500S")
    ]  # fmt: skip


@pytest.mark.parametrize("size", [60, 400, 3000])
def test_deletions_and_insertions_of_any_size(world, size):
    one = world.sequences["one"]
    deletion = one[20_000:22_000] + one[22_000 + size : 24_000 + size]
    insertion = one[30_000:32_000] + random_bases(np.random.default_rng(size), size) + one[32_000:34_000]
    world.write("large.fa", {"deletion": deletion, "insertion": insertion})
    records = world.map("--preset", "ont", reads="large.fa")
    for name, operation in (("deletion", 2), ("insertion", 1)):
        its = [record for record in records if record.query_name == name]
        assert len(its) == 1
        gaps = [(op, n) for op, n in its[0].cigartuples if op in (1, 2) and n > 20]
        assert gaps == [(operation, size)]


@pytest.mark.parametrize("preset", ["hifi", "ont"])
def test_a_path_goes_straight_through_a_tandem_repeat(world, preset):
    """Each read has one other base in the repeat; beside it the best chain leads through other units, there and back."""
    rng = np.random.default_rng(12)
    repeats = {str(size): (random_bases(rng, size) * 100)[:200] for size in (2, 3, 4, 7, 12, 24)}
    sequences = {name: random_bases(rng, 2000) + repeat + random_bases(rng, 2000) for name, repeat in repeats.items()}
    reads = {
        f"{name}_{at}": text[:at] + "ACGT"["CGTA".index(text[at])] + text[at + 1 :]
        for name, text in sequences.items()
        for at in range(2005, 2195, 10)
    }
    world.write("tandem.fa", sequences)
    world.write("tandem_reads.fa", reads)
    files = (world.folder / name for name in ("tandem.fa", "tandem_reads.fa"))
    outcome = run("map", *files, "-o", world.folder / "tandem.sam", "-q", "--preset", preset)
    assert outcome.code == 0, outcome.err
    with pysam.AlignmentFile(str(world.folder / "tandem.sam")) as file:
        records = list(file)
    assert len(records) == len(reads)
    assert {record.query_name: record.get_tag("NM") for record in records if record.get_tag("NM") != 1} == {}


@pytest.mark.parametrize("size", [7, 24])
def test_noisy_reads_go_straight_through_units_that_differ(world, size):
    """Their errors are of one base each; words of other units differ from those on the straight way, also in length."""
    rng = np.random.default_rng(12)
    repeat = mutate(rng, (random_bases(rng, size) * 50)[:300], 0.02)
    sequence = random_bases(rng, 600) + repeat + random_bases(rng, 600)
    world.write("units.fa", {"units": sequence})
    world.write("units_reads.fa", {str(number): mutate(rng, sequence, 0.06) for number in range(150)})
    files = (world.folder / name for name in ("units.fa", "units_reads.fa"))
    outcome = run("map", *files, "-o", world.folder / "units.sam", "-q", "--preset", "ont")
    assert outcome.code == 0, outcome.err
    with pysam.AlignmentFile(str(world.folder / "units.sam")) as file:
        gaps = {record.query_name: max(n for op, n in record.cigartuples if op in (1, 2)) for record in file}
    assert len(gaps) == 150 and {name: gap for name, gap in gaps.items() if gap > 10} == {}


def test_an_insertion_that_is_a_copy_of_another_place_stays_an_insertion(world):
    one, two = world.sequences["one"], world.sequences["two"]
    world.write("copied.fa", {"read": one[20_000:23_000] + two[5000:10_000] + one[23_000:26_000]})
    first = world.map("--preset", "ont", reads="copied.fa")[0]
    assert (first.reference_name, first.reference_start, first.reference_end) == ("one", 20_000, 26_000)
    assert first.cigarstring == "3000M5000I3000M"


def test_the_best_part_is_kept_however_low(world):
    one, junk = world.sequences["one"], random_bases(np.random.default_rng(6), 500)
    world.write("low.fa", {"read": one[5000:5090] + junk + one[5590:5625]})
    record = world.map("--preset", "ont", reads="low.fa")[0]
    assert abs(record.reference_start - 5000) <= 5 and abs(record.reference_end - 5090) <= 30


@pytest.mark.parametrize("size", [100, 200, 400, 1500, 4000, 6500])
def test_an_inversion_has_a_line_of_its_own(world, size):
    one = world.sequences["one"]
    read = one[10_000:13_000] + naive.reverse_complement(one[13_000 : 13_000 + size]) + one[13_000 + size : 16_000 + size]
    world.write("inverted.fa", {"read": read})
    records = world.map("--preset", "ont", reads="inverted.fa")
    turned = [record for record in records if record.is_reverse]
    assert len(turned) == 1
    assert abs(turned[0].reference_start - 13_000) <= 20 and abs(turned[0].reference_end - 13_000 - size) <= 20
    straight = sorted((r.reference_start, r.reference_end) for r in records if not r.is_reverse)
    assert abs(straight[0][1] - 13_000) <= 20 and abs(straight[-1][0] - 13_000 - size) <= 20


def test_a_copy_of_a_repeat_in_a_gap_of_a_chain_is_not_aligned(world, monkeypatch):
    """Where repeats are left out, a chain has gaps, and each copy of the repeat a chain of its own."""
    rng = np.random.default_rng(12)
    element = random_bases(rng, 4000)
    sides = [random_bases(rng, 3000) for _ in range(61)]
    genome = sides[0] + "".join(mutate(rng, element, 0.002) + side for side in sides[1:])
    place = genome.index(sides[30])
    read = mutate(rng, genome[place : place + 10_000], 0.02)
    index = build_index(make_reads([genome]), 19, 19)
    index = replace(index, lookup=index.lookup._replace(cutoff=30))
    mapper, aligned = Mapper(index, map_preset("hq")), []
    real = Mapper._align

    def counted(self, reads, chains, anchors, some):
        aligned.append((len(some), len(chains.read)))
        return real(self, reads, chains, anchors, some)

    monkeypatch.setattr(Mapper, "_align", counted)
    [mapped] = mapper.map(Records([b"read"], [b""], [read.encode()], None))
    assert aligned[0][0] < 5 and aligned[0][1] > 20 and len(aligned) == 1
    assert abs(int(mapped.hits.t_start[0]) - place) < 20 and mapped.hits.quality[0] == 60


def test_copies_are_secondary_and_of_no_quality(world):
    rng = np.random.default_rng(5)
    copy = random_bases(rng, 5000)
    ref = {"r": random_bases(rng, 4000) + copy + random_bases(rng, 4000) + copy + random_bases(rng, 3000)}
    world.write("copies.fa", ref)
    world.write("copy.fa", {"read": mutate(rng, copy[500:4500], 0.05)})
    for options, flags in (([], [0, 256]), (["--secondary", "no"], [0]), (["-N", "0"], [0])):
        outcome = run(
            "map", world.folder / "copies.fa", world.folder / "copy.fa", "-q", "--preset", "ont", "--format", "sam", *options
        )
        lines = [line.split("\t") for line in outcome.out.decode().splitlines() if line[0] != "@"]
        assert [int(line[1]) & ~16 for line in lines] == flags and int(lines[0][4]) <= 3
        assert all(line[9] == "*" for line in lines[1:])


def test_few_differences_between_copies_tell_them_apart(world):
    """Where a read has few errors, some differences say where it comes from."""
    rng = np.random.default_rng(11)
    copy = random_bases(rng, 5000)
    bases = list(copy)
    for at in rng.choice(5000, 20, replace=False):
        bases[at] = "ACGT"["ACGT".index(bases[at]) ^ 1]
    other = "".join(bases)
    world.write(
        "alike.fa", {"r": random_bases(rng, 4000) + copy + random_bases(rng, 4000) + other + random_bases(rng, 3000)}
    )
    world.write("alike.fq.fa", {"read": mutate(rng, copy[500:4500], 0.03)})
    outcome = run("map", world.folder / "alike.fa", world.folder / "alike.fq.fa", "-q", "--preset", "ont")
    first, second = (line.split("\t") for line in outcome.out.decode().splitlines())
    assert abs(int(first[7]) - 4500) < 5 and abs(int(second[7]) - 13_500) < 5
    assert int(first[11]) == 60 and int(second[11]) == 0


def test_what_fits_nowhere_is_unmapped_and_keeps_its_bases(world):
    noise = random_bases(np.random.default_rng(9), 800)
    world.fastq("noise.fq", {"noise": noise, "empty": "", "short": "ACGT"}, " a comment")
    records = world.map(reads="noise.fq")
    assert [record.flag for record in records] == [4, 4, 4]
    assert records[0].query_sequence == noise and records[0].get_tag("CO") == "a comment"
    assert run("map", world.folder / "ref.fa", world.folder / "noise.fq", "-q").out == b""


def test_unknown_bases_and_ends_of_sequences(world):
    one = world.sequences["one"]
    reads = {"n": one[1000:1500] + "N" * 30 + one[1530:2500], "edge": "GATTACAGAT" + one[:1500], "tail": one[-1500:] + "CCC"}
    world.write("edges.fa", reads)
    records = {record.query_name: record for record in world.map("--preset", "ont", reads="edges.fa")}
    assert records["n"].cigarstring == "1500M" and records["n"].get_tag("NM") == 30
    assert records["edge"].reference_start == 0 and records["tail"].reference_end == len(one)


def test_a_read_of_nothing_but_repeats_has_few_anchors(world):
    """Otherwise chaining them would take hours."""
    rng = np.random.default_rng(8)
    unit = random_bases(rng, 171)
    copies = "".join(mutate(rng, unit, 0.01) for _ in range(200))
    world.write("satellite.fa", {"r": random_bases(rng, 3000) + copies + random_bases(rng, 3000)})
    index = build_index(load_reads([world.folder / "satellite.fa"]), 15, 10)
    read = mutate(rng, copies, 0.02).encode()
    codes, at, lengths = pack_both_ways([read], ENCODE)
    lookup = index.lookup._replace(cutoff=200)
    anchors, _ = find_anchors(lookup, 15, 10, codes, at, lengths, layout_for(len(read), len(index.codes)))
    assert len(anchors) <= MOST_PER_BASE * len(read) + len(read) // RESCUE_SPAN * 200


# ---------------------------------------------------------------- the command line


@pytest.mark.parametrize(
    "options, code, message",
    [
        (["--preset", "sr"], 2, "choose from clr, ont, hq, hifi"),
        (["--secondary", "maybe"], 2, "choose from yes, no"),
        (["--rg", "ID:a"], 2, "a line of a SAM header"),
        (["--no-align", "--format", "sam"], 2, "--no-align"),
        (["--format", "cram"], 2, "--format cram: name a file with -o"),
        (["--zdrop", "0"], 2, "--zdrop 0: must be from"),
        (["-N", "-1"], 2, "-N -1: must be from"),
        (["--gap-open", "4"], 2, "as many values"),
        (["-o", "out.cram.gz"], 2, "--format cram: name a file that does not end in .gz"),
    ],
)
def test_wrong_options_are_refused(world, options, code, message):
    outcome = run("map", world.folder / "ref.fa", world.folder / "reads.fq", *options)
    assert outcome.code == code and message in outcome.err and outcome.out == b"" and "Traceback" not in outcome.err


def test_bad_input_is_told_and_leaves_no_file(world, tmp_path):
    (tmp_path / "bad.fq").write_text("@a\nACGT\n+\nII\n")
    (tmp_path / "empty.fa").write_text("")
    (tmp_path / "tiny.fa").write_text(">a\nACGT\n")
    (tmp_path / "at.fq").write_text("@@a\nACGT\n+\nIIII\n")
    (tmp_path / "star.fa").write_text(f">*a\n{world.sequences['one']}\n")
    ref, reads = world.folder / "ref.fa", world.folder / "reads.fq"
    for arguments, message in (
        ((tmp_path / "star.fa", reads), "reference sequence '*a': SAM does not allow this name"),
        ((tmp_path / "no.fa", reads), "No such file"),
        ((ref, tmp_path / "no.fq"), "No such file"),
        ((ref, tmp_path / "bad.fq"), "4 bases but 2 quality values"),
        ((ref, tmp_path / "empty.fa"), "the file is empty"),
        ((tmp_path / "tiny.fa", reads), "no sequence long enough"),
        ((ref, tmp_path / "at.fq"), "SAM does not allow this name"),
    ):
        for ending in ("sam", "bam"):
            outcome = run("map", *arguments, "-o", tmp_path / f"out.{ending}", "-t", 1)
            assert outcome.code == 1 and message in outcome.err and "Traceback" not in outcome.err
            assert not list(tmp_path.glob("out*"))


@pytest.mark.parametrize(
    "first, message", [(b"MMI\2abc", "minimap2"), (b"bellapy-index-2\n", "bellapy"), (b"BZh9", "damaged")]
)
def test_other_files_are_told(world, first, message):
    (world.folder / "other").write_bytes(first + bytes(100))
    outcome = run("map", world.folder / "ref.fa", world.folder / "other")
    assert outcome.code == 1 and message in outcome.err


def test_the_name_tells_the_format_in_any_case(world):
    assert run("map", world.folder / "ref.fa", world.folder / "reads.fq", "-q", "-o", world.folder / "OUT.BAM").code == 0
    assert (world.folder / "OUT.BAM").read_bytes()[:4] == b"\x1f\x8b\x08\x04"


def test_one_standard_input_for_reference_and_reads_is_refused(world):
    outcome = run("map", "-", "-", stdin=(world.folder / "ref.fa").read_bytes())
    assert outcome.code == 2 and "name a file for the other" in outcome.err and outcome.out == b""


def test_an_index_of_another_preset_is_used_with_a_warning(world):
    index = world.folder / "hifi.bpi"
    assert run("index", world.folder / "ref.fa", "--preset", "hifi", "-o", index).code == 0
    for options, wanted in ((["--preset", "clr"], True), ([], True), (["--preset", "hifi"], False)):
        outcome = run("map", index, world.folder / "reads.fq", *options)
        assert outcome.code == 0 and ("an index with k 19 and window 19 is used" in outcome.err) == wanted
        assert outcome.out.count(b"tp:A:P") >= 38


def test_compressed_output_and_standard_input(world):
    plain = run("map", world.folder / "ref.fa", world.folder / "reads.fq", "-q", "--preset", "ont")
    given = (world.folder / "reads.fq").read_bytes()
    piped = run("map", world.folder / "ref.fa", "-", "-q", "--preset", "ont", "-o", world.folder / "o.paf.gz", stdin=given)
    assert piped.code == 0 and gzip.decompress((world.folder / "o.paf.gz").read_bytes()) == plain.out


def test_auto_asks_for_gpus_where_there_is_much_to_do(world, monkeypatch):
    """By the size of files for each thread; an index is nearly free, and nobody knows how much comes through a pipe."""
    reference, reads, index = (str(world.folder / name) for name in ("ref.fa", "reads.fq", "ready.bpi"))
    assert run("index", reference, "-o", index).code == 0
    asked = []
    monkeypatch.setattr("bellapy.compute.resources.choose_device", lambda wanted: asked.append(wanted) or "cpu")
    whole = os.path.getsize(reference) + os.path.getsize(reads)
    for least, against, of, wanted in (
        (whole // 2, reference, reads, "auto"), (whole // 2 + 1, reference, reads, "cpu"),
        (whole // 2, index, reads, "cpu"), (whole, index, "-", "auto"),
    ):  # fmt: skip
        monkeypatch.setattr("bellapy.jobs.map.run.LEAST_WORK", least)
        assert run("map", against, of, "-q", "-t", 2, stdin=Path(reads).read_bytes()).code == 0
        assert asked.pop() == wanted and not asked
    assert run("index", reference, "-o", index, "-t", 1, "--device", "cuda").code == 0 and asked == ["cuda"]
