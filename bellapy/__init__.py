"""Long-read overlaps: k-mers, a sparse product, seeds, X-drop extension, an adaptive threshold."""

__version__ = "0.1.0"
