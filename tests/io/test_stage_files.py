"""Files between stages: records come back as they were, from the same reads only."""

from __future__ import annotations

import json
import zipfile
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from cases import listing
from scipy import sparse
from strategies import make_reads, make_seeds

from bellapy import records
from bellapy.errors import InputError, OutputError
from bellapy.io.stage_files import KINDS, fingerprint, load_stage, save_stage
from bellapy.records import DepthProfile, Extensions, KmerMatrix
from bellapy.records.kmers import REVERSE, places_of

READS = make_reads(["ACGTACGT", "", "ACGNNACGT"])
ENTRIES = np.array([322 << 2 | 2, 968 << 2 | 1, 323 << 2 | 2], np.uint32)
MATRIX = KmerMatrix(5, 2, ENTRIES, np.append(READS.starts, len(READS.codes)), 8, 5)
PROFILE = DepthProfile(
    256, np.arange(4), np.array([1, 0, 7], np.uint32), np.array([2**31, 0, 7], np.uint32),
    np.array([2.5, 0, 3], np.float32), np.array([0, 2, 1], np.uint8),
)  # fmt: skip
SEEDS = make_seeds([0, 0], [2, 2], [1, -1], [3, 2], [4, 3], 5)
EXTENSIONS = Extensions(*np.array([[6, 5], [0, 2], [8, 7], [1, 3], [9, 8], [1, 0], [3, 0], [0, 0], [0, 0]], np.int32))
RECORDS = {"matrix": MATRIX, "profile": PROFILE, "seeds": SEEDS, "extensions": EXTENSIONS}
META = {"estimate": {"depth": 0.1, "error_rate": None, "given": False, "source": "µ"}}
STEP = {"match": 3, "mismatch": -1, "gap": -2, "xdrop": 7, "tilt": 5, "fall": 0}
META |= {"steps": [STEP, STEP | {"xdrop": 70}], "extension": "homology"}


def save(path, kind: str, reads=READS, **changes) -> str:
    save_stage(str(path), kind, reads, META, **({name: RECORDS[name] for name in KINDS[kind]} | changes))
    return str(path)


def same(one, other) -> bool:
    """Whether two records hold the same, types included."""
    pairs = [(getattr(one, f.name), getattr(other, f.name)) for f in fields(one)]
    return type(one) is type(other) and all(
        type(a) is type(b) and np.array_equal(a, b) and getattr(a, "dtype", 0) == getattr(b, "dtype", 0) for a, b in pairs
    )


@pytest.mark.parametrize("name", ["x.npz", "x", "x.gz"])
@pytest.mark.parametrize("kind", KINDS)
def test_round_trip(tmp_path, kind, name):
    meta, *records = load_stage(save(tmp_path / name, kind), kind, READS)
    assert meta == META
    assert listing(tmp_path) == {name}
    assert len(records) == len(KINDS[kind])
    for record, kept in zip(KINDS[kind], records, strict=True):
        assert same(kept, RECORDS[record])


@pytest.mark.parametrize("kind", KINDS)
def test_round_trip_of_nothing(tmp_path, kind):
    empty = {name: RECORDS[name].take(np.zeros(0, int)) for name in KINDS[kind] if hasattr(RECORDS[name], "take")}
    _, *records = load_stage(save(tmp_path / "x", kind, **empty), kind, READS)
    for name, kept in zip(KINDS[kind], records, strict=True):
        assert same(kept, empty.get(name, RECORDS[name]))


def test_same_arrays_same_file(tmp_path):
    paths = [save(tmp_path / name, "k-mers") for name in "ab"]
    assert Path(paths[0]).read_bytes() == Path(paths[1]).read_bytes()


@pytest.mark.parametrize(
    "other",
    [
        make_reads(["ACGTACGT", "", "ACGNNACGA"]),
        make_reads(["ACGTACGT", "", "ACGNNACG"]),
        make_reads(["ACGTACG", "T", "ACGNNACGT"]),
        make_reads(["ACGTACGT", ""]),
        make_reads(["", "ACGTACGT", "ACGNNACGT"]),
        replace(READS, names=("r0", "r1", "r9")),
    ],
    ids=range(6),
)
def test_other_reads(tmp_path, other):
    with pytest.raises(InputError, match="x: was made from other reads"):
        load_stage(save(tmp_path / "x", "seeds"), "seeds", other)
    assert fingerprint(other) != fingerprint(READS)


def test_other_kind(tmp_path):
    with pytest.raises(InputError, match=r"x: holds k-mers \(format 4\); seeds are needed here"):
        load_stage(save(tmp_path / "x", "k-mers"), "seeds", READS)


def rewrite(path: str, **arrays) -> None:
    """Replace arrays of a stage file; None removes one."""
    with np.load(path) as stored:
        held = dict(stored)
    held |= arrays
    with open(path, "wb") as stream:
        np.savez(stream, **{name: array for name, array in held.items() if array is not None})


@pytest.mark.parametrize(
    ("arrays", "problem"),
    [
        ({"seeds.strand": None}, "seeds.strand"),
        ({"seeds.strand": np.zeros(2, np.int64)}, "expected contiguous int8"),
        ({"header": None}, "header"),
        ({"header": np.frombuffer(b"{", np.uint8)}, "damaged"),
        ({"header": np.array([{}], object)}, "damaged"),
    ],
)
def test_tampered_file(tmp_path, arrays, problem):
    path = save(tmp_path / "x", "seeds")
    rewrite(path, **arrays)
    with pytest.raises(
        InputError,
        match=f"is not a stage file of this version of bellapy, or damaged.*{'' if problem == 'damaged' else problem}",
    ):
        load_stage(path, "seeds", READS)


def test_later_format(tmp_path):
    path = save(tmp_path / "x", "seeds")
    with np.load(path) as stored:
        header = json.loads(stored["header"].tobytes())
    rewrite(path, header=np.frombuffer(json.dumps({**header, "format": 99}).encode(), np.uint8))
    with pytest.raises(InputError, match=r"holds seeds \(format 99\)"):
        load_stage(path, "seeds", READS)


def test_every_flipped_byte_is_noticed_or_harmless(tmp_path):
    content = Path(save(tmp_path / "x", "seeds")).read_bytes()
    for at in range(0, len(content), 41):
        (tmp_path / "bad").write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        try:
            meta, seeds = load_stage(str(tmp_path / "bad"), "seeds", READS)
        except InputError:
            continue
        assert meta == META and same(seeds, SEEDS), at


# ---------------------------------------------------------------- fields that are wrong, in files that are sound


def changed(column, row, value):
    column = column.copy()
    column[row] = value
    return column


def refused(tmp_path, kind, problem, **arrays):
    path = save(tmp_path / "x", kind)
    rewrite(path, **arrays)
    with pytest.raises(InputError, match=f"x: is not a stage file of this version .*{problem}"):
        load_stage(path, kind, READS)


WRONG = {
    "query_id": (-1, 2, 3, 10**8),
    "target_id": (-1, 0, 3, 2**31 - 1),
    "strand": (0, 2, -2, -128, 127),
    "query_pos": (-1, 4, 2**31 - 1),
    "target_pos": (-1, 5, -(2**31)),
    "query_first": (-1, 4, 1),
    "query_last": (-1, 4),
    "target_first": (-1, 5),
    "target_last": (-1, 5),
    "rank": (-1,),
    "n_support": (-1,),
    "n_shared": (-1,),
    "implied_length": (-1,),
    "copies": (-1, np.nan, np.inf),
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
@pytest.mark.parametrize("row", [0, 1])
def test_seeds_out_of_range(tmp_path, name, value, row):
    for kind in ("seeds", "alignments"):
        column = changed(getattr(SEEDS, name), row, value)
        refused(tmp_path, kind, "out of range", **{f"seeds.{name}": column})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("score", value) for value in (-(2**31), 2**31 - 1, 801)),
        *(("query_start", value) for value in (-1, 4)),
        *(("query_end", value) for value in (6, 9, 10**9)),
        *(("target_start", value) for value in (-1, 5)),
        *(("target_end", value) for value in (7, 10)),
        *(("left_query", value) for value in (-1, 4)),
        *(("left_target", value) for value in (-1, 4)),
        *(("right_query", value) for value in (-1, 1)),
        *(("right_target", value) for value in (-1, 1)),
    ],
)
def test_extensions_out_of_range(tmp_path, name, value):
    column = changed(getattr(EXTENSIONS, name), 0, value)
    refused(tmp_path, "alignments", f"{name}: out of range", **{f"extensions.{name}": column})


def test_the_places_that_are_right():
    SEEDS.check(READS)
    EXTENSIONS.check(READS, SEEDS)
    MATRIX.check(READS)
    PROFILE.check(READS)


@pytest.mark.parametrize(
    ("arrays", "problem"),
    [
        *(({"matrix.entries": changed(ENTRIES, 1, place << 2)}, "out of range") for place in (0, 967, 973, 648, 2**30 - 1)),
        *(({"matrix.entries": changed(ENTRIES, 0, place << 2 | 2)}, "out of range") for place in (319, 324)),
        ({"matrix.entries": changed(ENTRIES, 1, 322 << 2)}, "entries: not in order"),
        ({"matrix.entries": changed(ENTRIES, 1, 321 << 2)}, "entries: not in order"),
        ({"matrix.entries": changed(ENTRIES, 0, 322 << 2)}, "entries: not in order"),
        ({"matrix.entries": ENTRIES.astype(np.uint64)}, "expected contiguous uint32"),
        ({"matrix.entries": ENTRIES.reshape(1, 3)}, "entries: not a column"),
        ({"matrix.n_kmers": np.array(3)}, "n_kmers: not the number"),
        ({"matrix.n_kmers": np.array(2.0)}, "n_kmers: no whole number"),
        *(({"matrix.k": np.array(k)}, "k: out of range") for k in (-5, 0, 32)),
        *(({"matrix.upper": np.array(upper)}, "upper: out of range") for upper in (-1, 0, 2**31)),
        *(({"matrix.seed_length": np.array(k)}, "seed_length: out of range") for k in (-1, 0, 6)),
        ({"matrix.starts": MATRIX.starts + 1}, "starts: not those of the reads"),
        ({"matrix.starts": MATRIX.starts[:0]}, ""),
        ({"profile.width": np.array(0)}, "width: out of range"),
        ({"profile.width": np.array(4)}, "offsets: not those"),
        ({"profile.offsets": PROFILE.offsets * 1000}, "offsets: not those"),
        ({"profile.offsets": PROFILE.offsets[:-1]}, "offsets: "),
        ({"profile.n_kmers": PROFILE.n_kmers[:-1]}, "n_kmers: "),
        ({"profile.copies": np.append(PROFILE.copies, PROFILE.copies)}, "copies: "),
        ({"profile.reference": np.array([1, np.nan, 2], np.float32)}, "reference: out of range"),
        ({"profile.reference": PROFILE.reference[:-1]}, "reference: "),
        ({"profile.repeats": np.array([0, 3, 1], np.uint8)}, "repeats: out of range"),
    ],
    ids=range(34),
)
def test_matrix_and_profile_out_of_range(tmp_path, arrays, problem):
    refused(tmp_path, "k-mers", problem, **arrays)


def test_check_looks_at_all_pieces(monkeypatch):
    for module in (records.table, records.kmers):
        monkeypatch.setattr(module, "CHECKED", 1)
    MATRIX.check(READS)
    for i, value in ((0, 322 << 2), (1, 322 << 2), (2, 967 << 2 | 2)):
        with pytest.raises(ValueError, match="entries"):
            replace(MATRIX, entries=changed(ENTRIES, i, value)).check(READS)
    with pytest.raises(ValueError, match="strand"):
        replace(SEEDS, strand=changed(SEEDS.strand, 1, 0)).check(READS)


@pytest.mark.parametrize("name", [f.name for f in fields(SEEDS) if f.name != "length"])
@pytest.mark.parametrize("change", ["short", "long", "square", "none", "other kind", "by columns"])
def test_columns_of_another_shape(tmp_path, name, change):
    column = getattr(SEEDS, name)
    arrays = {
        "short": column[:1],
        "long": np.append(column, column),
        "square": column.reshape(2, 1),
        "none": np.array(1, column.dtype),
        "other kind": column.astype(np.float64),
        "by columns": np.asfortranarray(np.stack([column, column])),
    }
    refused(tmp_path, "seeds", "", **{f"seeds.{name}": arrays[change]})


@pytest.mark.parametrize("length", [0, -1, 32, 10**6, 2**62])
def test_length_of_seeds(tmp_path, length):
    refused(tmp_path, "seeds", "length: out of range", **{"seeds.length": np.array(length)})


@pytest.mark.parametrize(
    "change",
    [
        lambda header: [header],
        lambda header: "seeds",
        lambda header: None,
        lambda header: {name: value for name, value in header.items() if name != "kind"},
        lambda header: {name: value for name, value in header.items() if name != "reads"},
        lambda header: {**header, "meta": {}},
        lambda header: {**header, "meta": [1]},
        *(
            lambda header, more=more: {**header, "meta": {**META, "estimate": {**META["estimate"], **more}}}
            for more in ({"new": 1}, {"depth": "x"}, {"depth": -1}, {"error_rate": 2}, {"error_rate": float("nan")},
                         {"given": 1}, {"source": None}, {"depth": [1]}, {"depth": True})
        ),
        *(
            lambda header, more=more: {**header, "meta": {**META, **more}}
            for more in (*({"steps": [STEP | step]} for step in (
                             {"match": 0}, {"gap": 1}, {"xdrop": -1}, {"xdrop": 10**9}, {"xdrop": 7.0}, {"match": None},
                             {"tilt": -1}, {"fall": 2**40}, {"new": 1})),
                         {"steps": []}, {"steps": [STEP] * 3}, {"steps": [STEP, STEP | {"gap": -1}]}, {"steps": STEP},
                         {"extension": "bogus"}, {"extension": ["best"]}, {"extension": None})
        ),
    ],
    ids=range(32),
)  # fmt: skip
def test_header_of_another_form(tmp_path, change):
    path = save(tmp_path / "x", "alignments")
    with np.load(path) as stored:
        header = json.loads(stored["header"].tobytes())
    rewrite(path, header=np.frombuffer(json.dumps(change(header)).encode(), np.uint8))
    with pytest.raises(InputError, match="x: is not a stage file of this version"):
        load_stage(path, "alignments", READS)


def test_a_file_that_would_grow(tmp_path):
    """A small file cannot ask for much memory: not by compression, nor by the size that it claims."""
    path = save(tmp_path / "x", "seeds")
    with np.load(path) as stored:
        held = dict(stored)
    np.savez_compressed(tmp_path / "x.npz", **held)
    with pytest.raises(InputError, match="compressed"):
        load_stage(str(tmp_path / "x.npz"), "seeds", READS)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = "seeds.query_pos.npy"
    members[name] = members[name].replace(b"(2,), }" + b" " * 14, b"(200000000000000,), }")
    assert b"200000000" in members[name]
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    with pytest.raises(InputError, match=r"query_pos: no array"):
        load_stage(path, "seeds", READS)


def test_nothing_stays_after_an_error(tmp_path):
    with pytest.raises(TypeError):
        save_stage(str(tmp_path / "x"), "seeds", READS, {"not JSON": {1, 2}}, seeds=SEEDS)
    with pytest.raises(OutputError):
        save(tmp_path / "nowhere" / "x", "seeds")
    assert listing(tmp_path) == set()


def test_scipy_reads_the_matrices(tmp_path):
    """Positions from 1, negative where the k-mer is turned; the k-mers that pairs share, of the best seeds."""
    kmers = sparse.load_npz(save(tmp_path / "kmers.npz", "k-mers"))
    assert kmers.format == "csc" and kmers.shape == (3, 2)
    places, starts = places_of(ENTRIES), READS.starts
    reads = np.searchsorted(starts, places, side="right") - 1
    assert kmers.indices.tolist() == reads.tolist() and kmers.indptr.tolist() == [0, 2, 3]
    turned = np.where(ENTRIES & np.uint8(REVERSE), -1, 1)
    assert kmers.data.tolist() == (turned * (places - starts[reads] + 1)).tolist()
    seeds = sparse.load_npz(save(tmp_path / "seeds.npz", "seeds"))
    assert seeds.shape == (3, 3) and seeds.format == "csr" and seeds[0, 2] == SEEDS.n_shared.sum()
    with np.load(tmp_path / "seeds.npz") as file:
        assert file["names"].tobytes().decode().split("\n") == list(READS.names)
