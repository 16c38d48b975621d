"""Optimal affine-gap alignments of two long sequences, with most of the matrix proven unnecessary (docs/exact.md)."""
