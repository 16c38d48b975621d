"""Which reads are taken: options of every job that reads them."""

from dataclasses import dataclass
from typing import Annotated

from bellapy.params.fields import INPUT, LARGEST, About

SHORT, POOR = "reads too short", "reads of low quality"
"""Why reads are left out, as reports have it."""


@dataclass(frozen=True)
class ReadParams:
    """Which reads are taken (io/read_filter.py)."""

    min_length: Annotated[int, About("Leave out shorter reads", 0, LARGEST, unit="bases", panel=INPUT)] = 0
    min_quality: Annotated[
        float, About("Leave out reads whose base qualities tell more errors", 0, 60, unit="Phred", panel=INPUT)
    ] = 0.0

    @property
    def leave_out(self) -> bool:
        """Whether any read may be left out."""
        return self.min_length > 0 or self.min_quality > 0
