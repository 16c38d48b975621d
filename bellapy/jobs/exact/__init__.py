"""`bellapy exact`: the optimal alignment of two records, from files to files."""
