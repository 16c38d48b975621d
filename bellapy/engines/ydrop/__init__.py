"""Extension of one anchor with affine gap costs and a score matrix, as far as the score stays within a drop of the best.

Read `rule` first.  `sweep` computes anti-diagonals, `walls` keeps them off earlier alignments, `extend` finds ends (the
inspector) and paths (the executor) of one side.
"""
