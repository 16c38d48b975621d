"""Pictures of a read's overlaps, of a pair of reads, and of the reads that lie on a place."""
