"""Qualities of corrected bases."""


class Qualities: ...
