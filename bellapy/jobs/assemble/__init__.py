"""`bellapy assemble`, from overlaps of reads to contigs: a string graph.

Read `layout` first, then the steps in its order: `slips` (errors that do not count, before it), `hits` (overlaps cut to
what is supported), `graph`, `reduction` (arcs that others imply), `clean` (tips, bubbles, weak arcs), `turns` (reads that
go round a circle), `unitigs`, `contigs` (sequences, their order, strand and start).  `bellapy/api/assembling.py` puts
correction before it and polishing behind it.
"""
