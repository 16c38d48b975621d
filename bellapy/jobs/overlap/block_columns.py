"""Columns of the k-mer matrix by blocks of reads: cut apart when they are kept, put together again for a tile.

An entry of a block holds a place in the block, and goes with the number of its column in the part.
"""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit
from bellapy.seeding.entries import is_first, pack_entry, place_of, reverse_of

U = np.uint64


@njit
def count_in_blocks(entries, borders, sizes):
    """Add the entries that lie in each block of reads to sizes, (n_blocks,) int64.

    entries : of a KmerMatrix.  borders : (n_blocks + 1,) int64, places where blocks begin.
    """
    b = 0
    for i in range(entries.size):
        place = place_of(entries[i])
        if is_first(entries[i]):
            b = 0
        while place >= borders[b + 1]:
            b += 1
        sizes[b] += 1


@njit
def split_by_block(entries, borders, at, out, columns):
    """Write each entry, its place counted from the border of its block, to out[at[block]], and the number of its column.

    entries, borders : as in count_in_blocks.  at : (n_blocks,) int64, advanced.
    out : (n_entries,) of entry_type.  columns : (n_entries,) uint32.
    """
    b, column = 0, -1
    for i in range(entries.size):
        entry = entries[i]
        place = place_of(entry)
        if is_first(entry):
            b = 0
            column += 1
        while place >= borders[b + 1]:
            b += 1
        out[at[b]] = pack_entry(place - borders[b], U(0), reverse_of(entry))
        columns[at[b]] = column
        at[b] += 1


@njit
def join_columns(one, one_columns, other, other_columns, shift, out):
    """Write the columns that two blocks share to `out`; return how many entries and columns these are.

    one, other : entries of the blocks.  one_columns, other_columns : (n,) uint32, of each entry, ascending.
    shift : added to the places of the other block.  out : as long as both together.
    """
    a = b = n = n_columns = 0
    while a < one.size and b < other.size:
        column = one_columns[a]
        if column < other_columns[b]:
            a += 1
        elif column > other_columns[b]:
            b += 1
        else:
            first = n
            while a < one.size and one_columns[a] == column:
                out[n] = pack_entry(place_of(one[a]), U(n == first), reverse_of(one[a]))
                n, a = n + 1, a + 1
            while b < other.size and other_columns[b] == column:
                out[n] = pack_entry(place_of(other[b]) + shift, U(0), reverse_of(other[b]))
                n, b = n + 1, b + 1
            n_columns += 1
    return n, n_columns


@njit
def own_columns(one, columns, out):
    """Write the columns with several entries in a block to `out`; return how many entries and columns these are.

    one, columns, out : as in join_columns.
    """
    a = n = n_columns = 0
    while a < one.size:
        last = a + 1
        while last < one.size and columns[last] == columns[a]:
            last += 1
        if last - a > 1:
            for x in range(a, last):
                out[n] = pack_entry(place_of(one[x]), U(x == a), reverse_of(one[x]))
                n += 1
            n_columns += 1
        a = last
    return n, n_columns
