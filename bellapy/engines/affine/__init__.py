"""Alignment with two-piece affine gap costs: a gap of n bases costs min(open1 + n extend1, open2 + n extend2).

Read `rule` first.  `lanes` computes many short alignments side by side in bytes, `trace` finds their paths from the stored
scores, `wide` computes one alignment of any size, and `batch_cpu` decides which of them does what.
"""
