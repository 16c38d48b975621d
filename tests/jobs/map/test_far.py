"""Reads of genomes with rearrangements: joined chains, alignments that break off, inversions, parts that stand together."""

from __future__ import annotations

import naive
import numpy as np
import pytest
from cases import run
from strategies import mutate, random_bases

from bellapy.jobs.map.choose import weigh_together
from bellapy.jobs.map.far import WINDOW, find_leaders
from bellapy.jobs.map.select import NONE
from bellapy.seeding.anchors import layout_for
from bellapy.seeding.chain import Chains

K = 15


def paf_of(folder, reference: str, read: str, *options) -> list[list[str]]:
    """The primary and supplementary lines of a read on a reference."""
    for name, bases in (("reference", reference), ("read", read)):
        (folder / f"{name}.fa").write_text(f">{name}\n{bases}\n")
    outcome = run("map", folder / "reference.fa", folder / "read.fa", "-q", "--secondary", "no", *options)
    assert outcome.code == 0, outcome.err
    return sorted((line.split("\t") for line in outcome.out.decode().splitlines()), key=lambda line: int(line[2]))


def satellite(rng, n_units: int, apart: float) -> str:
    """Units of 2 kb, each of 12 monomers of 171 bases."""
    monomer = random_bases(rng, 171)
    unit = "".join(mutate(rng, monomer, 0.2) for _ in range(12))
    return "".join(mutate(rng, unit, apart) for _ in range(n_units))


@pytest.mark.parametrize("seed", [1, 3])
def test_a_contig_goes_straight_through_a_satellite(tmp_path, seed):
    """The chains of other copies, a unit of 2 kb off, are far more than those of the same place."""
    rng = np.random.default_rng(seed)
    array = satellite(rng, 60, 0.015)
    sequence = random_bases(rng, 5000) + array + random_bases(rng, 5000)
    contig = mutate(rng, sequence[:40_000] + random_bases(rng, 1500) + sequence[40_000:], 0.005)
    [line] = paf_of(tmp_path, sequence, contig, "--preset", "asm5")
    [distance] = (int(tag[5:]) for tag in line[12:] if tag.startswith("NM:i:"))
    assert int(line[3]) - int(line[2]) > 0.999 * len(contig) and distance < 1500 + 0.006 * len(contig)


@pytest.mark.parametrize("seed", range(4))
def test_a_read_that_lacks_a_part_of_a_satellite_goes_to_its_place_on_both_sides(tmp_path, seed):
    """All along the read a chain of another copy is longer than the two of the right place."""
    rng = np.random.default_rng(seed)
    reference = random_bases(rng, 3000) + satellite(rng, 40, 0.03) + random_bases(rng, 3000)
    at = 30_000
    read = mutate(rng, reference[at : at + 7000] + reference[at + 9500 : at + 17_000], 0.05)
    lines = paf_of(tmp_path, reference, read, "--preset", "ont")
    assert abs(int(lines[0][7]) - at) < 50 and abs(int(lines[-1][8]) - at - 17_000) < 50
    covered = sum(int(line[3]) - int(line[2]) for line in lines)
    matches = sum(int(line[9]) for line in lines)
    assert covered > 0.98 * len(read) and matches > 0.93 * len(read)


@pytest.mark.parametrize("size, n_lines", [(4000, 1), (7000, 2)])
def test_an_alignment_breaks_off_where_much_lies_between_its_anchors(tmp_path, size, n_lines):
    """Every twelfth base differs there, so that there are no anchors."""
    rng = np.random.default_rng(5)
    sides, between = (random_bases(rng, 9000), random_bases(rng, 9000)), random_bases(rng, size)
    changed = "".join(base if x % 12 else "TGAC"["ACTG".index(base)] for x, base in enumerate(between))
    lines = paf_of(tmp_path, between.join(sides), changed.join(sides), "--preset", "ont")
    assert len(lines) == n_lines and [lines[0][7], lines[-1][8]] == ["0", str(18_000 + size)]
    for before, after in zip(lines[:-1], lines[1:], strict=True):
        assert 0 <= int(after[2]) - int(before[3]) < 20 and 0 <= int(after[7]) - int(before[8]) < 20


@pytest.mark.parametrize("errors, preset", [(0.01, "hifi"), (0.05, "hq"), (0.12, "ont")])
def test_inversions_without_chains_have_lines_of_their_own(tmp_path, errors, preset):
    """Of 300 bases each, in reads of both strands; random bases in their place have none."""
    rng = np.random.default_rng(3)
    reference, reads = random_bases(rng, 60_000), {}
    for x in range(20):
        start = 2000 * x
        middle = naive.reverse_complement(reference[start + 3000 : start + 3300]) if x % 4 else random_bases(rng, 300)
        read = mutate(rng, reference[start : start + 3000] + middle + reference[start + 3300 : start + 6000], errors)
        reads[f"{start}:{x}"] = read if x % 2 else naive.reverse_complement(read)
    (tmp_path / "reference.fa").write_text(f">r\n{reference}\n")
    (tmp_path / "reads.fa").write_text("".join(f">{name}\n{read}\n" for name, read in reads.items()))
    outcome = run("map", tmp_path / "reference.fa", tmp_path / "reads.fa", "-q", "--secondary", "no", "--preset", preset)
    assert outcome.code == 0, outcome.err
    turned = {}
    for line in outcome.out.decode().splitlines():
        name, _, _, _, strand, _, _, begin, end, _, _, quality, *_ = line.split("\t")
        if (strand == "+") != bool(int(name.split(":")[1]) % 2):
            turned.setdefault(name, []).append((int(begin) - int(name.split(":")[0]), int(end), int(quality)))
    assert sorted(turned) == sorted(name for name in reads if int(name.split(":")[1]) % 4)
    for name, lines in turned.items():
        [(begin, end, quality)] = lines
        assert abs(begin - 3000) < 20 and abs(end - int(name.split(":")[0]) - 3300) < 20 and quality > 30


def test_leaders_are_those_of_the_definition():
    rng = np.random.default_rng(2)
    lengths = np.array([5200, 3000, 900, 4000])
    layout = layout_for(int(lengths.max()), 1 << 20)
    rows, anchors = [], []
    for read in range(4):
        for score in sorted(rng.integers(50, 500, [12, 5, 1, 1][read]), reverse=True):
            strand, place = int(rng.integers(0, 2)), int(rng.integers(0, 1 << 19))
            low, high = sorted(rng.integers(0, lengths[read] - K, 2))
            queries = np.unique(rng.integers(low, high + 1, rng.integers(3, 60)))
            rows.append((read, strand, score, len(queries), len(anchors), queries))
            head = (read << 1 | strand) << layout.place_bits
            anchors += [(head | place + int(q)) << layout.q_bits | int(q) for q in queries]
    read, strand, score, n_anchors, first = (np.array([row[x] for row in rows], np.int64) for x in range(5))
    none = np.zeros(len(rows), np.int64)
    chains = Chains(read, strand, score, n_anchors, none, none, none, none, first)
    found = find_leaders(chains, np.array(anchors, np.uint64), layout, K, lengths)

    expected = np.full(len(anchors), NONE)
    for of in range(4):
        own = [x for x in range(len(rows)) if read[x] == of]
        windows = {x: (lengths[of] - rows[x][5] - K if strand[x] else rows[x][5]) // WINDOW for x in own}
        best = {}
        for window in range(lengths[of] // WINDOW + 1):
            covered = [
                len({base for q in rows[x][5][windows[x] == window] for base in range(q, q + K)}) for x in own
            ]  # fmt: skip
            if max(covered):
                best[window] = own[int(np.argmax(covered))]
        for x in own:
            near = [any(best.get(window + step) == x for step in (-1, 0, 1)) for window in windows[x]]
            if set(best.values()) != {own[0]}:
                expected[first[x] : first[x] + n_anchors[x]] = np.where(near, x, NONE)
    assert found.tolist() == expected.tolist()
    assert 100 < (expected != NONE).sum() < len(anchors) - 100 and (expected[first[-2] :] == NONE).all()


def test_parts_of_a_chain_stand_together_against_an_alignment_that_they_beat():
    """Read 0: parts of chain 0 against chain 1, and chain 2 on one part alone; read 1: together they are worth less."""
    read, chain = np.array([0, 0, 0, 0, 1, 1, 1]), np.array([0, 0, 1, 2, 3, 3, 4])
    q_start, q_end = np.array([0, 600, 0, 0, 0, 600, 0]), np.array([500, 1000, 1000, 500, 500, 1000, 1000])
    weights = np.array([800, 700, 1300, 850, 800, 700, 1450])
    assert weigh_together(weights, read, chain, q_start, q_end, 100).tolist() == [1400, 1400, 1300, 850, 800, 700, 1450]
    assert weigh_together(weights, read, chain, q_start, q_end, 300).tolist() == weights.tolist()
