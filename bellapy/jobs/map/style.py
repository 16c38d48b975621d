"""What is written of each alignment."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Style:
    """What is written of each alignment.

    cigar : in PAF, as cg:Z.  cs, ds, md : tags; md None: in SAM only.
    cs_long : equal bases in cs and ds are spelled.  eqx : = and X instead of M.
    hard_clip : in supplementary lines, the bases that the primary one holds.
    secondary : secondary ones at all.  read_group : RG of every line.
    paf_no_hit, sam_hit_only : whether reads that fit nowhere have a line in PAF, and none in SAM.
    """

    cigar: bool = True
    cs: bool = False
    cs_long: bool = False
    ds: bool = False
    md: bool | None = None
    eqx: bool = False
    hard_clip: bool = False
    secondary: bool = True
    read_group: bytes | None = None
    paf_no_hit: bool = False
    sam_hit_only: bool = False
