"""Files: reads in; overlaps, alignments and stage files out."""
