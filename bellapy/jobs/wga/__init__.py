"""Whole-genome alignment; pipeline.py has the steps in order."""
