"""How well reported overlaps agree with the truth."""
