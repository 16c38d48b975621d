"""Overlaps of all reads with each other.  Read `pipeline` first; it calls the other modules in their order."""
