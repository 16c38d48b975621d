"""Stage 5, continued: seeds as CPU and GPU choose them, some at a time, become records, and these one."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TypeVar

import numpy as np

from bellapy.compute.jit import njit_entry, njit_vector_entry
from bellapy.compute.threads import map_threads
from bellapy.records import Extensions, Seeds

Record = TypeVar("Record", Seeds, Extensions)
U = np.uint64
U1 = U(1)
N_COLUMNS = 13  # of Seeds that are chosen; the others follow


def seeds_from_rows(rows: np.ndarray, seed_length: int) -> Seeds:
    """Seeds from the (n, N_COLUMNS) int32 table that the kernel writes: the first columns of Seeds, in their order."""
    return seeds_from_columns(rows.T.copy(), seed_length)


def seeds_from_columns(columns: np.ndarray, seed_length: int) -> Seeds:
    """Seeds from the first columns of Seeds, (N_COLUMNS, n) int32."""
    names = [f.name for f in fields(Seeds)][:N_COLUMNS]
    types = {"strand": np.int8, "rank": np.int8}
    typed = {name: column.astype(types.get(name, np.int32), copy=False) for name, column in zip(names, columns, strict=True)}
    return Seeds(**typed, copies=np.ones(columns.shape[1], np.float32), length=seed_length)


def join_seeds(parts: list[Seeds], seed_length: int, threads: int = 1) -> Seeds:
    """Seeds of consecutive groups of queries as one record."""
    if not parts:
        return seeds_from_rows(np.empty((0, N_COLUMNS), np.int32), seed_length)
    some = [part for part in parts if len(part)] or parts[:1]
    if len(some) == 1:
        return some[0]
    names = [f.name for f in fields(Seeds) if f.name != "length"]
    columns = map_threads(lambda name: np.concatenate([getattr(part, name) for part in parts]), names, threads)
    return Seeds(**dict(zip(names, columns, strict=True)), length=seed_length)


def take_by(record: Record, rows: np.ndarray, threads: int) -> Record:
    """The given rows of a record of columns, Seeds or Extensions, by so many threads."""
    names = [f.name for f in fields(record) if f.name != "length"]
    columns = map_threads(lambda name: getattr(record, name)[rows], names, threads)
    return replace(record, **dict(zip(names, columns, strict=True)))


def first_of_candidate(seeds: Seeds) -> np.ndarray:
    """Mask of the first row of every candidate (query, target, strand)."""
    return starts_of_candidates(seeds.query_id, seeds.target_id, seeds.strand)


def starts_of_candidates(query_id: np.ndarray, target_id: np.ndarray, strand: np.ndarray) -> np.ndarray:
    """Mask of the rows that differ from the row before, the first one included."""
    first = np.empty(len(query_id), bool)
    _mark_first(query_id, target_id, strand, first)
    return first


@njit_vector_entry
def _mark_first(query_id, target_id, strand, first):
    """first[i] = whether row i of query_id, target_id and strand, (n,) each, differs from the row before."""
    first[:1] = True
    for i in range(U1, U(len(first))):
        before = i - U1
        first[i] = (query_id[i] != query_id[before]) | (target_id[i] != target_id[before]) | (strand[i] != strand[before])


def has_any(seeds: Seeds, mask: np.ndarray) -> np.ndarray:
    """Whether any of its seeds is in the mask, for every candidate in order."""
    candidate = np.cumsum(first_of_candidate(seeds)) - 1
    return np.bincount(candidate, mask, minlength=int(candidate[-1]) + 1 if len(candidate) else 0) > 0


def in_candidate_order(seeds: Seeds) -> np.ndarray | None:
    """The rows in the order of candidates, those of one as they stand; None: they are in it, which is usual."""
    if are_in_order(seeds.query_id, seeds.target_id, seeds.strand):
        return None
    return np.argsort(candidate_keys(seeds), kind="stable")


def candidate_keys(seeds: Seeds) -> np.ndarray:
    """A number for the candidate (query, target, strand) of every row, (n,) int64."""
    key = seeds.query_id.astype(np.int64)
    for bits, column in ((31, seeds.target_id), (1, seeds.strand > 0)):  # in place: new memory takes longer
        key <<= bits
        key |= column
    return key


@njit_entry
def are_in_order(query_id, target_id, strand):
    """Whether the rows of each candidate lie together, in the order of pairs of reads; (n,) each, as in Seeds."""
    turned = False
    for i in range(1, len(query_id)):
        if query_id[i] == query_id[i - 1] and target_id[i] == target_id[i - 1]:
            if strand[i] != strand[i - 1]:
                if turned:
                    return False
                turned = True
            continue
        turned = False
        if query_id[i] < query_id[i - 1] or (query_id[i] == query_id[i - 1] and target_id[i] < target_id[i - 1]):
            return False
    return True
