"""Consensus along a template: every column of a read votes with the reads that are aligned to it.

`symbols` writes base-level paths as one symbol a column, `graph` finds the best path through the tag graph, `realign` aligns
the same reads to the new consensus, `judge` decides about single bases, `columns` counts what the reads show in each column.
`gpu/batch` does many piles on a GPU, with the kernels beside it.
"""
