"""Alignments in the registers of a GPU's threads: windows, bases and queues, for any rule."""
