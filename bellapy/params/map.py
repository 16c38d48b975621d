"""Parameters of `bellapy map`, `index` and `pairwise`."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

from bellapy.errors import ParameterError
from bellapy.params.fields import ALIGNMENT, INPUT, LARGEST, OUTPUT, SEEDING, About, checked, given_values
from bellapy.params.scoring import AffineScoring, affine_scoring

MAP_FORMATS = ("paf", "sam", "bam", "cram")
PAIR_MODES = ("global", "extend", "local")


class SelectRule(NamedTuple):
    """Which chains and alignments of a read are kept (jobs/map/select.py, choose.py)."""

    mask: Annotated[
        float, About("Share of the shorter one from which on two lie on the same part of a read", source="minimap2")
    ] = 0.5
    ratio: Annotated[float, About("Share of the best score that a secondary one needs", source="minimap2")] = 0.8
    noise: Annotated[
        float, About("Standard deviations by which a chain's number of anchors may fall short to be aligned")
    ] = 3.0
    tried: Annotated[int, About("Chains aligned beside the best for each part of a read")] = 20
    most: Annotated[int, About("Secondary ones written for each part of a read", source="minimap2")] = 5
    min_score: Annotated[int, About("Least score of an alignment", source="minimap2")] = 80
    min_chain: Annotated[int, About("Least score of a chain", source="minimap2")] = 40
    near: Annotated[int, About("Scores that differ by no more count as equal", source="minimap2")] = 8


@dataclass(frozen=True)
class MapParams:
    """How reads are mapped (jobs/map/); the defaults fit reads with many errors, and are minimap2's unless said."""

    k: Annotated[int, About("Length of a minimizer", 4, 28, unit="bases", source="minimap2")] = 15
    window: Annotated[int, About("K-mers of which one is the minimizer", 1, 255, source="minimap2")] = 10
    max_gap: Annotated[int, About("Longest gap between anchors", unit="bases", source="minimap2")] = 5000
    band: Annotated[int, About("How far gaps on read and reference may differ", unit="bases", source="minimap2")] = 500
    long_gap: Annotated[int, About("The same two where a read is left in parts", unit="bases", source="minimap2")] = 20_000
    scoring: AffineScoring = AffineScoring()
    zdrop: Annotated[int, About("A path that falls so far below its best is cut", unit="scores", source="minimap2")] = 400
    end_bonus: Annotated[int, About("Score given up at most to align a read to its end")] = 10
    select: SelectRule = SelectRule()


MAP_PRESETS: dict[str, MapParams] = {
    "clr": MapParams(scoring=AffineScoring(open1=2)),  # finds more of the true base pairs at 15 % errors
    "ont": MapParams(end_bonus=0),  # scores are no lower than minimap2's
    "hq": MapParams(k=19, window=19, max_gap=10_000, end_bonus=0),  # fewer places of repeats, half the index
    "hifi": MapParams(
        k=19, window=19, max_gap=10_000, scoring=AffineScoring(1, -4, 6, 2, 26, 1), select=SelectRule(min_score=200, near=6)
    ),
    **{
        name: MapParams(
            k=19, window=window, max_gap=10_000, scoring=AffineScoring(1, *costs), zdrop=200, end_bonus=0,
            select=SelectRule(min_score=200, near=6),
        )
        for name, window, costs in (
            ("asm5", 19, (-19, 39, 3, 81, 1)), ("asm10", 19, (-9, 16, 2, 41, 1)), ("asm20", 10, (-4, 6, 2, 26, 1))
        )
    },
}  # fmt: skip
"""By name; `map` chooses by the reads' errors: hifi below 1.5 %, hq below 6 %, ont below 10 %, else clr."""

MINIMAP2_READS = (
    ("map-ont", "ont"), ("lr:hq", "hq"), ("map-hifi", "hifi"), ("map-ccs", "hifi"), ("map-pb", "clr"),
)  # fmt: skip
"""What minimap2 calls presets for reads."""
HIFI_ERRORS, HQ_ERRORS, ONT_ERRORS = 0.015, 0.06, 0.1


def map_preset(name: str | None) -> MapParams:
    """The parameters of a preset.

    Raises
    ------
    ParameterError : a name that no preset has.
    """
    if name is not None and name not in MAP_PRESETS:
        raise ParameterError(f"--preset {name}: no preset has this name; choose from {', '.join(MAP_PRESETS)}")
    return MAP_PRESETS[name or "ont"]


class ScoreOptions(NamedTuple):
    """Affine scores as options; None: those of the preset."""

    match: Annotated[int | None, About("Score of a match", 1, 100, unset="of the preset", panel=ALIGNMENT)] = None
    mismatch: Annotated[int | None, About("Score of a mismatch", -100, -1, unset="of the preset", panel=ALIGNMENT)] = None
    gap_open: Annotated[
        str | None,
        About(
            "Cost of opening a gap: one value, or two for two pieces",
            unset="of the preset",
            panel=ALIGNMENT,
            metavar="N[,N]",
        ),
    ] = None
    gap_extend: Annotated[
        str | None,
        About("Cost of each base of a gap, one value or two", unset="of the preset", panel=ALIGNMENT, metavar="N[,N]"),
    ] = None


class MapOptions(NamedTuple):
    """Options of `map` beside its scores; None: as the preset says."""

    preset: Annotated[
        str | None,
        About(
            "Settings for a kind of reads",
            choices=tuple(MAP_PRESETS),
            unset="from the reads",
            panel=INPUT,
            common=True,
            aliases=MINIMAP2_READS,
        ),
    ] = None
    zdrop: Annotated[
        int | None,
        About("Cut an alignment that falls so far below its best", 1, 1_000_000, unset="of the preset", panel=ALIGNMENT),
    ] = None
    end_bonus: Annotated[
        int | None,
        About("Score given up at most to align a read to its end", 0, 1000, unset="of the preset", panel=ALIGNMENT),
    ] = None
    no_align: Annotated[
        bool, About("Only chain seeds, which is fast and leaves rough ends; PAF", panel=ALIGNMENT, common=True)
    ] = False


class ReferenceOptions(NamedTuple):
    """What is known of the reference."""

    circular: Annotated[
        str | None,
        About("Sequences that are circles, by name, or all", unset="none", panel=INPUT, common=True, metavar="NAME[,NAME]"),
    ] = None


class MapWriting(NamedTuple):
    """What is written of each alignment, as options."""

    output_format: Annotated[
        str | None, About("Format", choices=MAP_FORMATS, unset="by name", panel=OUTPUT, flags=("--format",), common=True)
    ] = None
    most_secondary: Annotated[
        int | None,
        About("Secondary lines for one part of a read", 0, 10_000, unset="of the preset, 5", panel=OUTPUT, flags=("-N",)),
    ] = None
    secondary: Annotated[str, About("Write secondary alignments", choices=("yes", "no"), panel=OUTPUT, common=True)] = "yes"
    read_group: Annotated[
        str | None, About(r"Read group, such as '@RG\tID:run1\tSM:sample1'", panel=OUTPUT, flags=("--rg",), common=True)
    ] = None
    cs: Annotated[bool, About("Write differences in cs:Z", panel=OUTPUT, common=True)] = False
    cs_long: Annotated[bool, About("Write cs:Z with equal bases spelled, as --cs=long", panel=OUTPUT)] = False
    ds: Annotated[bool, About("Write ds:Z: cs, with brackets where gaps could stand elsewhere", panel=OUTPUT)] = False
    md: Annotated[
        bool | None, About("Write mismatches in MD:Z", unset="in SAM and BAM", panel=OUTPUT, flags=("--md/--no-md",))
    ] = None
    eqx: Annotated[bool, About("Write = and X in CIGARs instead of M", panel=OUTPUT)] = False
    hard_clip: Annotated[bool, About("Leave clipped bases out of supplementary lines", panel=OUTPUT)] = False
    paf_no_hit: Annotated[bool, About("Write reads that fit nowhere in PAF, too", panel=OUTPUT)] = False
    sam_hit_only: Annotated[bool, About("Leave reads that fit nowhere out of SAM and BAM", panel=OUTPUT)] = False


def adjusted(params: MapParams, options: Mapping[str, Any]) -> MapParams:
    """The parameters of a preset with those options that were given, and are not None, in their place.

    Raises
    ------
    ParameterError : scores out of range, or costs of gaps that do not go together.
    """
    scoring = affine_scoring(params.scoring, **given_values(options, ScoreOptions._fields))
    most = options.get("most_secondary")
    select = params.select if most is None else params.select._replace(most=most)
    return replace(params, scoring=scoring, select=select, **given_values(options, ("zdrop", "end_bonus")))


class IndexOptions(NamedTuple):
    """Options of `index`; None: as the preset says."""

    preset: Annotated[
        str,
        About("Kind of reads that will be mapped", choices=tuple(MAP_PRESETS), panel=INPUT, aliases=MINIMAP2_READS),
    ] = "ont"
    k: Annotated[
        int | None, About("Length of a minimizer", unit="bases", unset="of the preset", panel=SEEDING, flags=("-k",))
    ] = None
    window: Annotated[
        int | None, About("K-mers of which one is the minimizer", unset="of the preset", panel=SEEDING, flags=("-w",))
    ] = None


_SCORES = AffineScoring()


class PairParams(NamedTuple):
    """How `pairwise` aligns; the scores are those of AffineScoring."""

    mode: Annotated[
        str,
        About(
            "extend aligns from both beginnings to the best end, local the best parts", choices=PAIR_MODES, panel=ALIGNMENT
        ),
    ] = "global"
    match: Annotated[int, About("Score of a match", 1, 100, panel=ALIGNMENT)] = _SCORES.match
    mismatch: Annotated[int, About("Score of a mismatch", -100, -1, panel=ALIGNMENT)] = _SCORES.mismatch
    gap_open: Annotated[
        str, About("Cost of opening a gap: one value, or two for two pieces", panel=ALIGNMENT, metavar="N[,N]")
    ] = f"{_SCORES.open1},{_SCORES.open2}"
    gap_extend: Annotated[str, About("Cost of each base of a gap, one value or two", panel=ALIGNMENT, metavar="N[,N]")] = (
        f"{_SCORES.extend1},{_SCORES.extend2}"
    )
    zdrop: Annotated[
        int | None, About("End an extension that falls so far below its best", 0, LARGEST, unset="never", panel=ALIGNMENT)
    ] = None
    band: Annotated[
        int | None,
        About("Align in a band of at least so many diagonals", 1, LARGEST, unset="all that can matter", panel=ALIGNMENT),
    ] = None
    cigar: Annotated[bool, About("Write the path in cg:Z", panel=OUTPUT)] = False

    @property
    def scoring(self) -> AffineScoring:
        """The scores.

        Raises
        ------
        ParameterError : as of `affine_scoring`.
        """
        return affine_scoring(_SCORES, self.match, self.mismatch, self.gap_open, self.gap_extend)


def make_pair_params(values: Mapping[str, Any]) -> PairParams:
    """Parameters by name; a value that is missing or None is left at its default.

    Raises
    ------
    ParameterError : a value out of range, or options that contradict each other.
    """
    made = PairParams(**checked(values, PairParams))
    if made.zdrop is not None and made.mode != "extend":
        raise ParameterError("--zdrop: only extensions end early; leave it out, or choose --mode extend")
    if made.band is not None and made.mode == "local":
        raise ParameterError("--band: local alignments may lie on any diagonal; leave it out, or choose another --mode")
    _ = made.scoring  # what is wrong with it is told now
    return made
