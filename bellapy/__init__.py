"""Long-read overlaps: k-mers, a sparse product, seeds, X-drop extension, an adaptive threshold.

Read `pipeline` first, then the stages in its order: `reads`, `kmers` (with `estimate` and `sampling`), `kmer_matrix`,
`candidates`, `seeds`, `candidate_filter`, `xdrop`, `filter`, `paths`, and `writer` with `paf` and `sam`.  `records` holds
what flows between them, `params` every default, `stage_files` the form in which stages hand over files.  `extend`,
`evaluate` and `info` are commands of their own.  `output` makes files that are whole or not there, `stopping` ends the
program in order.
"""

__version__ = "0.1.0"
