"""k-mers and their places: of reads, counted and as a sparse matrix; of a reference, as an index with anchors and chains."""
