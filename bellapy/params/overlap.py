"""Parameters of `bellapy overlap` and its stages, one group for each.

None means: chosen from the data (see jobs/overlap/counting.py).  Numbers without a source were chosen by measurement;
benchmarks/NOTEBOOK.md has the figures.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, NamedTuple

from bellapy.errors import ParameterError
from bellapy.params.fields import (
    ALIGNMENT,
    FILTER,
    INPUT,
    LARGEST,
    OUTPUT,
    SEEDING,
    About,
    check,
    fields_of,
    given_values,
    options_of,
    parse_size,
    ranges_of,
)
from bellapy.params.reads import ReadParams
from bellapy.params.run import DEVICES, RunParams
from bellapy.params.scoring import Gap, Match, Mismatch, Scoring

SAMPLINGS = ("auto", "none", "fraction", "minimizer", "syncmer")
EXTENSIONS = ("homology", "best", "longest")
FORMATS = ("paf", "sam", "bam", "bella")

PRESETS: dict[str, dict[str, Any]] = {
    "clr": {},
    "ont": {},
    "hifi": {"k": 21},
}
"""Differences from the defaults, by name.  Explicit options override them."""

MINIMAP2_OVERLAPS = (("ava-ont", "ont"), ("ava-pb", "clr"))
"""What minimap2 calls presets for overlaps."""

DEFAULT_SAMPLING_WINDOW = 8

SHORTEST_OVERLAP = 1000  # bases; shorter ones are mostly false
SHORT_READS = 3  # where reads are short, so many times shorter than those that hold half of the bases
MinOverlap = Annotated[
    int | None,
    About(
        "Shortest overlap",
        1,
        LARGEST,
        unit="bases",
        unset=f"{SHORTEST_OVERLAP}, less for short reads",
        panel=FILTER,
        flags=("--min-overlap",),
        common=True,
    ),
]


class PresetParams(NamedTuple):
    """What comes before all other parameters."""

    preset: Annotated[
        str | None,
        About("Settings for a kind of reads", choices=tuple(PRESETS), panel=INPUT, common=True, aliases=MINIMAP2_OVERLAPS),
    ] = None


@dataclass(frozen=True)
class KmerParams:
    """Which k-mers link reads (jobs/overlap/counting.py, seeding/kmers.py, seeding/sampling.py)."""

    k: Annotated[
        int | None,
        About("Length of k-mers", 3, 31, unit="bases", unset="from the data", panel=SEEDING, flags=("-k",), common=True),
    ] = None
    lower: Annotated[
        int,
        About("Smallest count of a k-mer that links reads", 2, 10_000, panel=SEEDING, source="a singleton links nothing"),
    ] = 2
    upper: Annotated[
        int | None,
        About(
            "Largest count of a k-mer that links reads",
            2,
            10_000,
            unset="from depth and error rate",
            panel=SEEDING,
            source="BELLA's model",
        ),  # fmt: skip
    ] = None
    error_rate: Annotated[
        float | None,
        About(
            "Errors per base of the reads",
            0.0,
            0.4,
            unset="from the data",
            panel=INPUT,
            flags=("-e", "--error-rate"),
        ),  # fmt: skip
    ] = None
    depth: Annotated[float | None, About("Sequencing depth", 1.0, 100_000.0, unset="from the data", panel=INPUT)] = None
    sampling: Annotated[
        str,
        About(
            "Which k-mers are counted: all (none), or some; auto takes a fraction where reads are accurate",
            choices=SAMPLINGS,
            panel=SEEDING,
        ),  # fmt: skip
    ] = "auto"
    sampling_window: Annotated[
        int | None,
        About("Keep about one k-mer in so many", 2, 1000, unset=f"{DEFAULT_SAMPLING_WINDOW}", panel=SEEDING),
    ] = None  # minimizers and syncmers keep about two
    homopolymer: Annotated[
        bool,
        About("Count k-mers of homopolymer-compressed reads", panel=SEEDING, flags=("--homopolymer",)),
    ] = False


class SeedParams(NamedTuple):
    """How shared k-mers become seeds (jobs/overlap/seeds.py); a NamedTuple because compiled code accepts it."""

    min_support: Annotated[int, About("Shared k-mers that have to agree on a diagonal", 1, 100, panel=SEEDING)] = 2
    min_overlap: MinOverlap = None
    band: Annotated[int, About("Width of a band, which holds the k-mers of one overlap", unit="diagonals")] = 100
    band_slope: Annotated[float, About("Further width for each base of overlap", unit="diagonals")] = 0.03
    ranks: Annotated[int, About("Seeds kept of a candidate, besides one where the reads may overlap at both ends")] = 2
    density: Annotated[
        float, About("Share of the typical k-mer density that a candidate needs", 0.0, 1.0, panel=SEEDING)
    ] = 0.05
    max_copies: Annotated[float, About("Copies of a sequence from which on it is a repeat", 1.0, 1e6, panel=SEEDING)] = (
        2.5  # candidates wholly inside such sequence are dropped
    )


@dataclass(frozen=True)
class ExtensionParams:
    """How seeds are extended (engines/extend.py)."""

    match: Match = Scoring._field_defaults["match"]
    mismatch: Mismatch = Scoring._field_defaults["mismatch"]
    gap: Gap = Scoring._field_defaults["gap"]
    xdrop: Annotated[
        int | None,
        About(
            "Stop where the score falls so far below the best",
            0,
            16_000,
            unset="15, then 130; 25 with --extension best or longest",
            panel=ALIGNMENT,
            flags=("-x", "--xdrop"),
            common=True,
        ),  # fmt: skip
    ] = None
    extension: Annotated[
        str,
        About(
            "Where an alignment ends: where homology does, at the best score, or where the extension stopped, as in SeqAn",
            choices=EXTENSIONS,
            panel=ALIGNMENT,
        ),  # fmt: skip
    ] = "homology"


@dataclass(frozen=True)
class FilterParams:
    """Which alignments are overlaps (jobs/overlap/filter.py)."""

    delta: Annotated[float, About("Tolerance of the score threshold", 0.0, 1.0, panel=FILTER, source="BELLA")] = 0.1
    min_overlap: MinOverlap = None  # aligned bases on both reads
    min_identity: Annotated[
        float, About("Least identity; that of the path where one is made", 0.0, 1.0, panel=FILTER, common=True)
    ] = 0.0  # estimated where there is no path
    trim_identity: Annotated[
        float | None, About("Cut ends of paths with a smaller identity", 0.0, 0.99, unset="none is cut", panel=FILTER)
    ] = None
    max_overhang: Annotated[
        int | None,
        About("Unaligned bases allowed where both reads go on", 0, LARGEST, unset="any", panel=FILTER),
    ] = None
    drop_contained: Annotated[
        bool,
        About("Drop overlaps of reads that lie in a longer one", panel=FILTER, flags=("--drop-contained",)),
    ] = False
    max_overlaps_per_read: Annotated[
        int | None,
        About("Keep so many overlaps of a read, those with the highest scores", 1, LARGEST, unset="all", panel=FILTER),
    ] = None


class WritingParams(NamedTuple):
    """What is written of overlaps (io/overlap_writer.py)."""

    overlap_format: Annotated[
        str | None,
        About(
            "Format; bella stands for the 12 columns of BELLA",
            choices=FORMATS,
            unset="by name",
            panel=OUTPUT,
            flags=("--format",),
            common=True,
        ),
    ] = None
    cigar: Annotated[bool, About("Write base-level paths, as CIGAR in cg:Z", panel=OUTPUT, common=True)] = False
    cs: Annotated[bool, About("Write base-level paths, as differences in cs:Z", panel=OUTPUT)] = False
    sort: Annotated[bool, About("Sort BAM by target and index it", panel=OUTPUT)] = False
    both_directions: Annotated[
        bool, About("Write every overlap twice in PAF, once from each read, as racon wants it", panel=OUTPUT)
    ] = False


@dataclass(frozen=True)
class Params:
    """All parameters of a run."""

    reads: ReadParams = field(default_factory=ReadParams)
    kmers: KmerParams = field(default_factory=KmerParams)
    seeds: SeedParams = field(default_factory=SeedParams)
    extension: ExtensionParams = field(default_factory=ExtensionParams)
    filter: FilterParams = field(default_factory=FilterParams)
    run: RunParams = field(default_factory=RunParams)

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {**asdict(self), "seeds": self.seeds._asdict()}


GROUPS: dict[str, type] = {
    "reads": ReadParams,
    "kmers": KmerParams,
    "seeds": SeedParams,
    "extension": ExtensionParams,
    "filter": FilterParams,
    "run": RunParams,
}
"""The fields of `Params`."""

FIELDS = options_of(*GROUPS.values())
"""Every parameter that has an option, by name."""

RANGES = ranges_of(*GROUPS.values())
CHOICES = {"sampling": SAMPLINGS, "extension": EXTENSIONS, "device": DEVICES}


def make_params(preset: str | None = None, **options: Any) -> Params:
    """Parameters from a preset and options by name; an option that is None is left at its default.

    `min_overlap` rules both the candidates' implied length and the reported alignments' length.  `max_memory` is a number of
    bytes, or text for `parse_size`.

    Raises
    ------
    ParameterError : a value out of range, values that contradict each other, or an unknown preset.
    """
    if preset is not None and preset not in PRESETS:
        raise ParameterError(f"--preset {preset}: no preset has this name; choose from {', '.join(PRESETS)}")
    given = {**PRESETS.get(preset or "", {}), **given_values(options, options)}
    if unknown := given.keys() - FIELDS.keys():
        raise TypeError(f"unknown parameters: {', '.join(sorted(unknown))}")
    if isinstance(given.get("max_memory"), str):
        given["max_memory"] = parse_size(given["max_memory"])
    made = {name: group(**given_values(given, fields_of(group))) for name, group in GROUPS.items()}
    validate(given)
    return Params(**made)


def validate(values: Mapping[str, Any]) -> None:
    """Raise ParameterError, naming the option, for a value out of range or values that contradict each other."""
    check(values, FIELDS)
    if "lower" in values and "upper" in values and values["upper"] < values["lower"]:
        raise ParameterError(f"--upper {values['upper']}: must not be below --lower {values['lower']}")
    if values.get("sampling_window") and values.get("sampling", "auto") in ("auto", "none"):
        raise ParameterError("--sampling-window: choose a --sampling first (fraction, minimizer or syncmer)")
