"""What PAF, SAM, MAF and their kin write for strands, operations of paths, flags and unknown qualities."""

SIGN = {1: "+", -1: "-"}
"""Of strands."""

OPERATIONS = "MID"
"""Of paths, by the codes of compute/runs.py."""

UNMAPPED, REVERSE, SECONDARY, SUPPLEMENTARY = 4, 16, 256, 2048
"""Flags of SAM."""

UNKNOWN_QUALITY = 255
"""The mapping quality of an alignment that has none."""
