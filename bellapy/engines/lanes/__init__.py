"""Alignments side by side in the vector lanes of a CPU: windows and bases, for any rule."""
