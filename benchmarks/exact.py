"""Optimal alignment: scores against a table, cells a second, time beside parasail and BiWFA, hard pairs, memory.

    python benchmarks/exact.py GENOMES ORACLE [NAME ...] [-o exact.json]

GENOMES holds NAME.fa.gz; ORACLE is a table with the columns name, a, from, to, b, from, to, mode, match, mismatch, first and
next gap base, score.  NAME: rows of it to align; all if none is named.  One thread; CPU seconds of the work alone, without
the start of the program; the peak is that of the process so far.  parasail and pywfa are used if they can be imported.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from common import describe_machine, finish, table

from bellapy.engines.exact.align import align_one
from bellapy.engines.exact.rule import Scores
from bellapy.jobs.exact.pipeline import read_record
from bellapy.report.log import peak_memory

try:
    import parasail
except ImportError:
    parasail = None
try:
    import pywfa
except ImportError:
    pywfa = None

PARASAIL_CELLS = 4e9  # larger matrices take parasail minutes
WFA_BASES = 1_000_000
SCORES = Scores()
LETTERS = np.frombuffer(b"ACGTN", np.uint8)


def timed(work):
    """CPU seconds, and the result."""
    begin = time.process_time()
    result = work()
    return time.process_time() - begin, result


def text(codes: np.ndarray) -> str:
    return LETTERS[codes].tobytes().decode()


def read_oracle(path: Path, wanted: list[str]) -> list[dict]:
    rows = [line.split("\t") for line in path.read_text().splitlines() if not line.startswith("#")]
    return [
        dict(name=r[0], a=(r[1], int(r[2]), int(r[3])), b=(r[4], int(r[5]), int(r[6])), mode=r[7], score=int(r[12]))
        for r in rows
        if not wanted or r[0] in wanted
    ]


def load(genomes: Path, piece: tuple[str, int, int]) -> np.ndarray:
    name, begin, end = piece
    return read_record(str(genomes / f"{name}.fa.gz"), None, "")[1][begin:end]


def parasail_seconds(query: np.ndarray, target: np.ndarray, mode: str) -> float | None:
    """Score only, 32 bits, striped."""
    if not parasail or len(query) * len(target) > PARASAIL_CELLS:
        return None
    align = {"local": parasail.sw_striped_32, "global": parasail.nw_striped_32}[mode]
    matrix = parasail.matrix_create("ACGT", SCORES.match, SCORES.mismatch)
    return timed(lambda: align(text(query), text(target), SCORES.first, SCORES.gap_extend, matrix))[0]


def wfa_seconds(query: np.ndarray, target: np.ndarray) -> tuple[float, int] | None:
    """Global, with path, in linear memory."""
    if not pywfa or max(len(query), len(target)) > WFA_BASES:
        return None
    aligner = pywfa.WavefrontAligner(
        match=-SCORES.match, mismatch=-SCORES.mismatch, gap_opening=SCORES.gap_open, gap_extension=SCORES.gap_extend,
        distance="affine", span="end-to-end", memory_mode="biwfa", heuristic=None,
    )  # fmt: skip
    seconds, _ = timed(lambda: aligner(text(target), text(query)))
    return seconds, aligner.score


def align(query: np.ndarray, target: np.ndarray, mode: str) -> dict:
    """What one alignment by bellapy takes."""
    seconds, (alignment, work) = timed(lambda: align_one(query, target, SCORES, mode))
    cells = len(query) * len(target)
    return {
        "score": alignment.score if alignment else 0, "lower": work.lower, "upper": work.upper, "seconds": seconds,
        "forward": work.forward / cells, "backward": work.backward / cells, "peak": peak_memory(),
    }  # fmt: skip


def real_pairs(genomes: Path, rows: list[dict]) -> tuple[str, list[dict]]:
    """Every row beside its peers, in turn."""
    header = ["pair", "mode", "score", "right", "lower bound", "upper bound", "forward %", "backward %", "CPU s", "BiWFA s",
              "parasail s (score)", "peak MB"]  # fmt: skip
    lines = []
    for row in rows:
        query, target = load(genomes, row["a"]), load(genomes, row["b"])
        row |= align(query, target, row["mode"]) | {"expected": row["score"]}
        wfa = wfa_seconds(query, target) if row["mode"] == "global" else None
        row["biwfa"], row["parasail"] = wfa and wfa[0], parasail_seconds(query, target, row["mode"])
        if wfa and wfa[1] != row["score"]:
            raise SystemExit(f"{row['name']}: BiWFA has {wfa[1]}, bellapy {row['score']}")
        lines.append([
            row["name"], row["mode"], f"{row['score']:,}", "yes" if row["score"] == row["expected"] else "NO",
            f"{row['lower']:,}", f"{row['upper']:,}", f"{100 * row['forward']:.3f}", f"{100 * row['backward']:.3f}",
            f"{row['seconds']:.2f}", wfa and f"{wfa[0]:.2f}", row["parasail"] and f"{row['parasail']:.2f}",
            round(row["peak"] / 1e6),
        ])  # fmt: skip
        print(lines[-1], flush=True)
    return table(header, lines), rows


def hard_pairs() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Made pairs that are hard in different ways."""
    rng = np.random.default_rng(1)
    base, other = (rng.integers(0, 4, n).astype(np.uint8) for n in (100_000, 80_000))
    million, foreign = rng.integers(0, 4, 1_000_000).astype(np.uint8), rng.integers(0, 4, 100_000).astype(np.uint8)
    unit, nothing = rng.integers(0, 4, 97).astype(np.uint8), np.full(20_000, 4, np.uint8)
    changed = np.where(rng.random(len(base)) < 0.01, rng.integers(0, 4, len(base)), base).astype(np.uint8)
    many = tuple(np.concatenate([x, np.full(80_000, 4, np.uint8), x]) for x in (base, changed))
    return {
        "nothing in common, 100 x 80 kb": (base, other),
        "one base against 100 kb": (base[:1], base),
        "identical, 1 Mb": (million, million),
        "1 % apart, 20 kb of N in both": tuple(np.concatenate([x[:50_000], nothing, x[50_000:]]) for x in (base, changed)),
        "1 % apart, 80 kb of N in both": many,
        "1 % apart, 100 kb inserted": (base, np.concatenate([changed[:50_000], foreign, changed[50_000:]])),
        "tandem repeat of 97 bases, 50 x 40 kb": (np.tile(unit, 515), np.tile(unit, 412)),
        "tandem repeat of 97 bases, 200 x 160 kb": (np.tile(unit, 2060), np.tile(unit, 1650)),
    }


def made_pairs() -> tuple[str, list[dict]]:
    header = [
        "pair",
        "mode",
        "score",
        "parasail agrees",
        "forward %",
        "backward %",
        "G cells/s",
        "CPU s",
        "parasail s (score)",
    ]
    lines, results = [], []
    for name, (query, target) in hard_pairs().items():
        for mode in ("local", "global"):
            row = {"name": name, "mode": mode} | align(query, target, mode)
            agrees = seconds = None
            if parasail and len(query) * len(target) < 3 * PARASAIL_CELLS:
                method = {"local": parasail.sw_striped_32, "global": parasail.nw_striped_32}[mode]
                matrix = parasail.matrix_create("ACGTNM", SCORES.match, SCORES.mismatch)
                texts = text(query), text(target).replace("N", "M")
                seconds, found = timed(lambda: method(*texts, SCORES.first, SCORES.gap_extend, matrix))  # noqa: B023
                agrees = found.score == row["score"]
            speed = (row["forward"] + row["backward"]) * len(query) * len(target) / row["seconds"] / 1e9
            lines.append([
                name, mode, f"{row['score']:,}", {True: "yes", False: "NO", None: None}[agrees],
                f"{100 * row['forward']:.3f}", f"{100 * row['backward']:.3f}", f"{speed:.1f}", f"{row['seconds']:.2f}",
                seconds and f"{seconds:.2f}",
            ])  # fmt: skip
            print(lines[-1], flush=True)
            results.append(row)
    return table(header, lines), results


def compile_all() -> None:
    """Run every way of computing once, before anything is timed."""
    rng = np.random.default_rng(2)
    base, other = (rng.integers(0, 4, 20_000).astype(np.uint8) for _ in range(2))
    changed = np.where(rng.random(len(base)) < 0.05, other, base)
    for mode in ("local", "global"):
        for query, target in ((base, base), (base, changed), (base, other)):
            align_one(query, target, SCORES, mode)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("genomes", type=Path)
    parser.add_argument("oracle", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("-o", "--output")
    arguments = parser.parse_args()
    compile_all()
    real, rows = real_pairs(arguments.genomes, read_oracle(arguments.oracle, arguments.names))
    made, others = made_pairs()
    finish([real, made], {"machine": describe_machine([]), "real": rows, "made": others}, arguments.output)


if __name__ == "__main__":
    main()
