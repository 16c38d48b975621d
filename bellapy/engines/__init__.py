"""Alignment engines: exact recurrences, and what runs them on many pairs at a time."""
