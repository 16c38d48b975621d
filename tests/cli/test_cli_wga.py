"""`bellapy wga` from files to files: formats that agree, threads, masks, options, errors."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import naive_wga
import numpy as np
import pysam
import pytest
from cases import roomy, run
from strategies import mutate, random_bases

from bellapy.compute.gpu import devices
from bellapy.engines.ydrop.foresight import none_known
from bellapy.errors import DeviceError
from bellapy.io.genomes import load_genome
from bellapy.io.maf import Layout
from bellapy.io.workdir import Workdir
from bellapy.jobs.wga import gapped, kept, pipeline
from bellapy.jobs.wga.means import Means
from bellapy.jobs.wga.pipeline import align_genomes
from bellapy.jobs.wga.plot import plot_lines
from bellapy.params.wga import DEFAULT_SCORES, HOXD70, make_wga_params
from bellapy.records.bases import encode
from bellapy.records.genomes import PAIR, QUERY_ALONE, TARGET_ALONE
from bellapy.report.run_report import RunReport

SEED = 21


def reverse_complement(text: str) -> str:
    return text[::-1].translate(str.maketrans("ACGTacgt", "TGCAtgca"))


def write_fasta(path, **sequences: str) -> str:
    path.write_text("".join(f">{name} and more\n{text}\n" for name, text in sequences.items()))
    return str(path)


@pytest.fixture(scope="module")
def genomes(tmp_path_factory):
    """Two sequences each; one pair on the same strand, one on opposite strands with unrelated sequence between."""
    folder = tmp_path_factory.mktemp("genomes")
    rng = np.random.default_rng(SEED)
    one, two, three = (random_bases(rng, 1500) for _ in range(3))
    other = mutate(rng, three, 0.1)
    target = write_fasta(folder / "t.fa", t1=one + two, t2=random_bases(rng, 300) + three[:700] + three[700:].lower())
    noise = random_bases(rng, 900)
    query = write_fasta(
        folder / "q.fa", q1=mutate(rng, one, 0.1) + noise + mutate(rng, two, 0.15), q2=reverse_complement(other) + "NNNACGT"
    )
    return target, query


def read_maf(text: bytes) -> list[tuple]:
    """Score, then of both rows name, start, size, strand, length, letters."""
    blocks = []
    for block in text.decode().split("\n\n"):
        lines = [line for line in block.splitlines() if line and not line.startswith("#")]
        if lines:
            rows = [line.split() for line in lines[1:]]
            assert [row[0] for row in rows] == ["s", "s"]
            score = int(lines[0].removeprefix("a score="))
            blocks.append((score, *((r[1], int(r[2]), int(r[3]), r[4], int(r[5]), r[6]) for r in rows)))
    return blocks


def runs_of(target_row: str, query_row: str) -> list[tuple[int, int]]:
    columns = zip(target_row, query_row, strict=True)
    kinds = [QUERY_ALONE if a == "-" else TARGET_ALONE if b == "-" else PAIR for a, b in columns]
    runs: list[list[int]] = []
    for kind in kinds:
        if runs and runs[-1][0] == kind:
            runs[-1][1] += 1
        else:
            runs.append([kind, 1])
    return [tuple(r) for r in runs]


def identity(target_row: str, query_row: str) -> float:
    pairs = [(a, b) for a, b in zip(target_row, query_row, strict=True) if "-" not in (a, b)]
    return sum(a == b for a, b in pairs) / len(pairs)


def sequences(path: str) -> dict[str, str]:
    entries = Path(path).read_text().split(">")[1:]
    return {entry.split()[0]: "".join(entry.splitlines()[1:]) for entry in entries}


def test_maf_holds_what_the_files_hold(genomes, tmp_path):
    outcome = run("wga", *genomes, "-o", tmp_path / "out.maf", "-t", 1)
    assert outcome.code == 0, outcome.err
    blocks = read_maf((tmp_path / "out.maf").read_bytes())
    targets, queries = (sequences(path) for path in genomes)
    assert [(b[1][0], b[2][0], b[2][3]) for b in blocks] == [("t1", "q1", "+"), ("t1", "q1", "+"), ("t2", "q2", "-")]
    for score, (t_name, t_at, t_size, _, t_length, t_row), (q_name, q_at, q_size, strand, q_length, q_row) in blocks:
        target, query = targets[t_name], queries[q_name]
        query = query if strand == "+" else reverse_complement(query)
        assert (t_length, q_length) == (len(target), len(query))
        assert t_row.replace("-", "") == target[t_at : t_at + t_size]  # lower case too
        assert q_row.replace("-", "") == query[q_at : q_at + q_size]
        path = runs_of(t_row, q_row)
        assert naive_wga.path_score(encode(target), encode(query), t_at, q_at, path, DEFAULT_SCORES) == score >= 3000
    assert {1200 < b[1][2] < 1520 for b in blocks} == {True}  # the unrelated sequence belongs to none


def test_formats_agree(genomes, tmp_path):
    texts = {}
    for kind in ("maf", "axt", "paf", "sam", "chain", "psl"):
        outcome = run(
            "wga", *genomes, "-o", tmp_path / f"out.{kind}.gz" if kind == "axt" else tmp_path / f"out.{kind}", "-t", 1
        )
        assert outcome.code == 0, outcome.err
    for path in tmp_path.iterdir():
        data = path.read_bytes()
        texts[path.suffixes[0][1:]] = gzip.decompress(data) if path.suffix == ".gz" else data
    blocks = read_maf(texts["maf"])
    for block, axt in zip(blocks, texts["axt"].decode().strip().split("\n\n"), strict=True):
        score, (t, t_at, t_size, _, _, t_row), (q, q_at, q_size, strand, _, q_row) = block
        head, *rows = axt.splitlines()
        assert head.split()[1:] == list(map(str, (t, t_at + 1, t_at + t_size, q, q_at + 1, q_at + q_size, strand, score)))
        assert rows == [t_row, q_row]
    for block, line in zip(blocks, texts["paf"].decode().splitlines(), strict=True):
        score, (t, t_at, t_size, _, t_length, t_row), (q, q_at, q_size, strand, q_length, q_row) = block
        fields = line.split("\t")
        begin = q_at if strand == "+" else q_length - q_at - q_size
        same = sum(a == b for a, b in zip(t_row.upper(), q_row.upper(), strict=True))
        places = q, q_length, begin, begin + q_size, strand, t, t_length, t_at, t_at + t_size, same, len(t_row)
        assert fields[:11] == list(map(str, places))
        assert "".join(f"{n}{'MID'[k]}" for k, n in runs_of(t_row, q_row)) == fields[-1].removeprefix("cg:Z:")
        assert f"AS:i:{score}" in fields and f"NM:i:{len(t_row) - same}" in fields
    for block, line in zip(blocks, texts["psl"].decode().splitlines(), strict=True):
        _, (t, t_at, t_size, _, t_length, t_row), (q, q_at, q_size, strand, q_length, q_row) = block
        matches, others, _, unknown, q_gaps, q_alone, t_gaps, t_alone, *names = line.split("\t")
        columns = list(zip(t_row.upper(), q_row.upper(), strict=True))
        pairs = [pair for pair in columns if "-" not in pair]
        n_unknown = sum("N" in pair for pair in pairs)
        same = sum(a == b != "N" for a, b in pairs)
        assert list(map(int, (matches, others, unknown))) == [same, len(pairs) - same - n_unknown, n_unknown]
        assert (int(q_alone), int(t_alone)) == (t_row.count("-"), q_row.count("-")) and int(q_gaps) + int(t_gaps) > 0
        begin = q_at if strand == "+" else q_length - q_at - q_size
        places = strand, q, q_length, begin, begin + q_size, t, t_length, t_at, t_at + t_size
        assert names[:9] == list(map(str, places))
        sizes, q_starts, t_starts = (list(map(int, text.rstrip(",").split(","))) for text in names[10:])
        shown = [(x + n, y + n) for n, x, y in zip(sizes, t_starts, q_starts, strict=True)]
        expected, place = [], [t_at, q_at]
        for size, in_t, in_q in naive_wga.ungapped_blocks(runs_of(t_row, q_row)):
            expected.append((place[0] + size, place[1] + size))
            place = [place[0] + size + in_t, place[1] + size + in_q]
        assert shown == expected and int(names[9]) == len(expected)
    with pysam.AlignmentFile(tmp_path / "out.sam") as sam:
        records = list(sam)
    for block, record in zip(blocks, records, strict=True):
        assert (record.reference_name, record.reference_start) == block[1][:2] and record.reference_length == block[1][2]
        assert record.query_name == block[2][0] and record.is_reverse == (block[2][3] == "-")
        assert record.query_sequence == block[2][5].replace("-", "") and record.infer_read_length() == block[2][4]
    assert sorted(record.flag & 2048 for record in records) == [0, 0, 2048]
    for block, chain in zip(sorted(blocks, key=lambda b: -b[0]), texts["chain"].decode().strip().split("\n\n"), strict=True):
        head, *lines = chain.splitlines()
        score, (t, t_at, t_size, _, t_length, _), (q, q_at, q_size, strand, q_length, _) = block
        words = f"chain {score} {t} {t_length} + {t_at} {t_at + t_size} {q} {q_length} {strand} {q_at} {q_at + q_size}"
        assert head.rsplit(" ", 1)[0] == words
        numbers = [list(map(int, line.split())) for line in lines]
        assert sum(n[0] + (n[1] if len(n) > 1 else 0) for n in numbers) == t_size
        assert sum(n[0] + (n[2] if len(n) > 1 else 0) for n in numbers) == q_size and len(numbers[-1]) == 1


def test_threads_change_nothing(genomes):
    for more in ((), ("--preset", "close"), ("--preset", "distant")):
        one, three = (run("wga", *genomes, "-t", threads, "-q", *more) for threads in (1, 3))
        assert one.code == 0 and one.out == three.out and len(one.out) > 1000


def test_masked_bases_give_no_seeds(genomes, tmp_path):
    targets = sequences(genomes[0])
    masked = write_fasta(tmp_path / "m.fa", **{name: text.lower() for name, text in targets.items()})
    assert read_maf(run("wga", masked, genomes[1], "-q").out) == []
    outcome = run("wga", masked, genomes[1])
    assert "lower case" in outcome.err and "no alignment" in outcome.err and outcome.code == 0
    unmasked = read_maf(run("wga", masked, genomes[1], "-q", "--unmask").out)
    assert len(unmasked) == 3


def test_a_genome_with_itself_tells_each_pair_once(tmp_path):
    rng = np.random.default_rng(SEED)
    copy = random_bases(rng, 800)
    first, second = random_bases(rng, 500) + copy + random_bases(rng, 400), reverse_complement(mutate(rng, copy, 0.05))
    path = write_fasta(tmp_path / "self.fa", a=first + mutate(rng, copy, 0.05), b=random_bases(rng, 100) + second)
    blocks = read_maf(run("wga", path, "--self", "-q").out)
    found = sorted((b[1][0], b[2][0], b[2][3], 700 < b[1][2] < 900) for b in blocks)
    assert found == [("a", "a", "+", True), ("a", "b", "-", True), ("a", "b", "-", True)]
    assert all(b[1][1:3] != b[2][1:3] for b in blocks)


def test_options_change_what_they_say(genomes, tmp_path):
    whole = read_maf(run("wga", *genomes, "-q", "--no-cut", "--all-copies").out)
    assert sum(b[0] for b in whole) > 0
    high = read_maf(run("wga", *genomes, "-q", "--gappedthresh", "100000").out)
    assert [b[0] >= 100_000 for b in high] == [True] * len(high) and len(high) < 3
    scores = tmp_path / "scores.txt"
    rows = "\n".join(" ".join(map(str, 2 * row[:4])) for row in HOXD70[:4])
    scores.write_text(f"# doubled\ngap_open_penalty = 800\ngap_extend_penalty = 60\nhsp_threshold = 6000\nA C G T\n{rows}\n")
    doubled = read_maf(run("wga", *genomes, "-q", "--scores", scores).out)
    plain = read_maf(run("wga", *genomes, "-q").out)
    assert [(2 * b[0], *b[1:]) for b in plain] == doubled
    shares = sorted(identity(b[1][5].upper(), b[2][5].upper()) for b in plain)
    identical = read_maf(run("wga", *genomes, "-q", "--identity", f"{(shares[0] + shares[1]) / 2:.6f}").out)
    assert sorted(identity(b[1][5].upper(), b[2][5].upper()) for b in identical) == shares[1:]
    single = read_maf(run("wga", *genomes, "-q", "--one-to-one").out)
    places = [(b[1][0], b[1][1] + x) for b in single for x in range(b[1][2])]
    assert len(set(places)) == len(places) and len(single) == len(plain)
    seeds = "--sensitive", "--seed", "14of22", "--notransition", "--step", "5"
    sensitive = read_maf(run("wga", *genomes, "-q", *seeds).out)
    assert {(b[1][0], b[2][0], b[2][3]) for b in sensitive} == {(b[1][0], b[2][0], b[2][3]) for b in plain}
    assert sum(b[0] for b in sensitive) > 0.99 * sum(b[0] for b in plain)


def test_chains_plot_and_report(genomes, tmp_path):
    names = [tmp_path / name for name in ("out.chain", "dots.png", "run.json", "out.net")]
    options = ["--chain", "-o", names[0], "--plot", names[1], "--report", names[2], "--net", names[3]]
    outcome = run("wga", *genomes, *options, "-t", 1)
    assert outcome.code == 0, outcome.err
    heads = re.findall(r"chain \d+ (\S+) .* (\S+) \d+ [+-] ", names[0].read_text())
    assert sorted(heads) == [("t1", "q1"), ("t2", "q2")]  # both alignments of the first pair are one chain
    assert names[1].read_bytes().startswith(b"\x89PNG")
    nets = [line.split() for line in names[3].read_text().splitlines()]
    assert [words[:2] for words in nets if words[0] == "net"] == [["net", "t1"], ["net", "t2"]]
    assert [words[3:5] for words in nets if words[0] == "fill"] == [["q1", "+"], ["q2", "-"]]
    data = json.loads(names[2].read_text())
    assert data["parameters"]["ydrop"] == 9400 and "seed hits in repeats" in data["dropped"]


def test_plot_lines_stand_where_the_alignments_do(genomes):
    target, query = (load_genome(path) for path in genomes)
    found = align_genomes(target, query, make_wga_params({}), Means(RunReport()))
    same, opposite = (plot_lines(target, query, found, strand) for strand in (1, -1))
    assert len(same) == 2 and len(opposite) == 1
    assert (opposite[0, 0, 0] > 3000) and opposite[0, 0, 1] > opposite[0, 1, 1] >= query.lengths[0]
    assert Layout(target, query).counts(found[0])[0] > 1000


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["{t}"], 2, "--self"),
        (["{t}", "{q}", "--self"], 2, "--self"),
        (["-", "-"], 2, "standard input"),
        (["{t}", "{q}", "-o", "{d}/out.txt"], 2, "tells no format"),
        (["{t}", "{q}", "--format", "bam"], 2, "--format bam"),
        (["{t}", "{q}", "--chain", "-o", "{d}/x.maf"], 2, "--chain"),
        (["{t}", "{q}", "-o", "{d}"], 1, "is a folder"),
        (["{t}", "{q}", "-o", "{q}"], 1, "is read as input"),
        (["{t}", "{q}", "--seed", "12of18"], 2, "--seed"),
        (["{t}", "{q}", "--ydrop", "0"], 2, "--ydrop"),
        (["{t}", "{q}", "--identity", "1.5"], 2, "--identity"),
        (["{t}", "{q}", "--one-to-one", "--all-copies"], 2, "--one-to-one"),
        (["{t}", "{q}", "--preset", "asm5", "--all-copies"], 2, "--preset close and --all-copies"),
        (["{t}", "{q}", "--preset", "near"], 2, "--preset near"),
        (["{t}", "{q}", "--plot", "{d}/dots.txt"], 2, "--plot"),
        (["{t}", "{d}/none.fa"], 1, "none.fa"),
        (["{t}", "{empty}"], 1, "empty"),
        (["{t}", "{protein}"], 1, "protein"),
        (["{t}", "{twice}"], 1, "two sequences have the name x"),
        (["{n}", "{q}"], 1, "no base that is known"),
        (["{t}", "{odd}", "-o", "{d}/x.sam"], 1, "SAM allows no name"),
        (["{t}", "{q}", "--scores", "{empty}"], 1, "matrix"),
    ],
)
def test_errors_are_told(genomes, tmp_path, arguments, code, words):
    texts = {
        "empty": "", "protein": ">x\nMKVLEFILPQERDWFILEPQ\n", "twice": ">x\nACGT\n>x\nACGT\n", "n": ">x\nNNNNNN\n",
        "odd": ">a,b\nACGTACGT\n",
    }  # fmt: skip
    names = {"t": genomes[0], "q": genomes[1], "d": str(tmp_path)}
    for name, text in texts.items():
        names[name] = str(tmp_path / f"{name}.fa")
        (tmp_path / f"{name}.fa").write_text(text)
    before = set(tmp_path.iterdir())
    outcome = run("wga", *(argument.format(**names) for argument in arguments))
    assert outcome.code == code and words in outcome.err and "Traceback" not in outcome.err, outcome.err
    assert set(tmp_path.iterdir()) == before


def test_a_stopped_run_goes_on(genomes, tmp_path, monkeypatch):
    """Stopped twice while anchors are extended; what is there is not made again, and the output is the same."""
    monkeypatch.setattr(kept, "SAVE_S", -1.0)
    whole = run("wga", *genomes, "-q").out
    folder, stop_after = tmp_path / "work", iter((1, 1, 99))
    n_saved = []

    def stopping(work, name, arrays, save=Workdir.save):
        if name.startswith("aligned"):
            n_saved.append(name)
            if len(n_saved) > left:
                raise KeyboardInterrupt
        save(work, name, arrays)

    monkeypatch.setattr(Workdir, "save", stopping)
    for left in stop_after:
        n_saved.clear()
        command = [*genomes, "-q", "-t", "1", "--workdir", str(folder), "-o", str(tmp_path / "out.maf")]
        outcome = run("wga", *command)
        assert (outcome.code == 0) == (left == 99) == (tmp_path / "out.maf").exists()
        assert folder.exists() == (left < 99)
        if left < 99:
            hsps = {path.name for path in folder.glob("hsps.*")}
            assert len(hsps) == 2
    assert (tmp_path / "out.maf").read_bytes() == whole
    run("wga", *genomes, "-q", "--workdir", str(folder), "--keep-workdir", "-o", str(tmp_path / "again.maf"))
    other = run("wga", *genomes, "-q", "--workdir", str(folder), "--ydrop", "5000")
    assert other.code == 1 and "ydrop" in other.err
    n_saved.clear()
    again = run("wga", *genomes, "-q", "-t", "1", "--workdir", str(folder))
    assert again.out == whole


def test_the_bound_on_memory_is_kept(genomes):
    outcome = run("wga", *genomes, "-q", "--max-memory", "1M")
    assert outcome.code == 1 and "memory" in outcome.err and "Traceback" not in outcome.err
    assert run("wga", *genomes, "-q", *roomy()).out == run("wga", *genomes, "-q").out


def test_the_device_is_used_or_refused(genomes, monkeypatch, tmp_path):
    asked = []

    def noting(sequences, t, q, scores, ydrop, means):
        asked.append(means.device)
        return none_known(len(t))

    monkeypatch.setattr(gapped, "foresee", noting)
    monkeypatch.setattr(devices, "known_gpus", lambda: [devices.Gpu(0, "one", 1 << 34, 1 << 34)])
    assert run("wga", *genomes, "-q", "--device", "cuda").code == 0 and set(asked) == {"cuda"}
    asked.clear()
    assert run("wga", *genomes, "-q", "--device", "auto").code == 0 and set(asked) == {"cpu"}
    asked.clear()
    sensitive = ("wga", *genomes, "-q", "--sensitive", "-t", "2", "-o", str(tmp_path / "out.maf"))
    assert run(*sensitive).code == 0 and set(asked) == {"cpu"}
    asked.clear()
    monkeypatch.setattr(pipeline, "HITS_FOR_GPU", 0)
    assert run(*sensitive).code == 0 and set(asked) == {"cuda"}

    def none_there():
        raise DeviceError("there is none")

    monkeypatch.setattr(devices, "known_gpus", none_there)
    outcome = run("wga", *genomes, "--device", "cuda")
    assert outcome.code == 1 and "there is none" in outcome.err
