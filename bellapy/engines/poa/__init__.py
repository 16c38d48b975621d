"""Partial-order alignment: sequences are aligned one by one to the graph of those before them.

`graph` holds the graph and adds a path to it, `align` aligns a sequence to the graph, `bundle` finds the consensus.
`windows` does all of it for groups of sequences.

Source: Lee, Grasso, Sharlow 2002 (alignment); Lee 2003 (heaviest bundle).
"""
