"""Every default, range and preset, in one place.

One frozen group per stage; the command line takes its defaults and ranges from here.  None means: chosen from the data (see
jobs/overlap/estimate.py).  Numbers without a source were chosen by measurement; benchmarks/RESULTS.md has the figures.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, NamedTuple

from bellapy.errors import ParameterError

SAMPLINGS = ("auto", "none", "fraction", "minimizer", "syncmer")
EXTENSIONS = ("homology", "best", "longest")
DEVICES = ("auto", "cpu", "cuda")
MODES = ("local", "global", "semiglobal")
STRANDS = ("both", "forward", "reverse")


class Range(NamedTuple):
    """Smallest and largest value an option may have."""

    low: float
    high: float


RANGES: dict[str, Range] = {
    "k": Range(3, 31),
    "lower": Range(2, 10_000),
    "upper": Range(2, 10_000),
    "error_rate": Range(0.0, 0.4),
    "depth": Range(1.0, 100_000.0),
    "sampling_window": Range(2, 1000),
    "min_support": Range(1, 100),
    "min_overlap": Range(1, 2**31 - 1),
    "density": Range(0.0, 1.0),
    "match": Range(1, 100),
    "mismatch": Range(-100, -1),
    "gap": Range(-100, -1),
    "xdrop": Range(0, 16_000),
    "delta": Range(0.0, 1.0),
    "min_identity": Range(0.0, 1.0),
    "trim_identity": Range(0.0, 0.99),
    "max_overhang": Range(0, 2**31 - 1),
    "max_copies": Range(1.0, 1e6),
    "threads": Range(1, 4096),
}

EXACT_RANGES = {
    "match": Range(1, 100),
    "mismatch": Range(-100, -1),
    "gap_open": Range(0, 10_000),
    "gap_extend": Range(1, 1000),
}
"""The same of `bellapy exact`."""

CHOICES = {"sampling": SAMPLINGS, "extension": EXTENSIONS, "device": DEVICES, "mode": MODES, "strand": STRANDS}


MAP_RANGES: dict[str, Range] = {
    "zdrop": Range(1, 1_000_000),
    "end_bonus": Range(0, 1000),
    "most_secondary": Range(0, 10_000),
    "gap_open": Range(0, 10_000),
    "gap_extend": Range(1, 1000),
}
"""Of options that only `map` and `pairwise` have."""


@dataclass(frozen=True)
class KmerParams:
    """Which k-mers link reads (jobs/overlap/estimate.py, seeding/kmers.py, seeding/sampling.py)."""

    k: int | None = None
    lower: int = 2  # a singleton links nothing
    upper: int | None = None  # counts above come from repeats; BELLA's model or 2 to 8
    error_rate: float | None = None  # per base
    depth: float | None = None
    sampling: str = "auto"  # by hash, as much as the error rate allows: not at all for noisy reads
    sampling_window: int | None = None  # one k-mer in so many is kept (minimizers and syncmers: about two)
    homopolymer: bool = False  # count k-mers of homopolymer-compressed reads


class SeedParams(NamedTuple):
    """How shared k-mers become seeds (jobs/overlap/seeds.py); a NamedTuple because compiled code accepts it."""

    min_support: int = 2  # shared k-mers that agree on a diagonal
    min_overlap: int = 1000  # bases of implied overlap; shorter ones are mostly false
    band: int = 100  # diagonals; a band holds the k-mers of one overlap
    band_slope: float = 0.03  # further diagonals per base of overlap
    ranks: int = 2  # seeds kept per candidate, besides one where the reads may overlap at both ends
    density: float = 0.05  # share of the typical number of shared k-mers per base that a candidate needs
    max_copies: float = 2.5  # candidates wholly inside sequence with more copies are taken for repeats


TILT_UNIT = 64
"""Tilted scores are whole numbers of such parts of a score."""


class Scoring(NamedTuple):
    """Linear-gap scores of the extension; a NamedTuple because compiled code accepts it."""

    match: int = 1
    mismatch: int = -1
    gap: int = -1  # per base
    xdrop: int = 15  # a cell dies when its score falls so far below the best
    tilt: int = 0  # what a base of either read costs when the end is chosen, in parts of TILT_UNIT
    fall: int = 0  # stop when the tilted score falls so far below the best tilted one, in the same parts; 0: never


class AffineScoring(NamedTuple):
    """Scores with two-piece affine gap costs: a gap of n bases costs min(open1 + n extend1, open2 + n extend2).

    The defaults are minimap2's for noisy reads.
    """

    match: int = 2
    mismatch: int = -4
    open1: int = 4
    extend1: int = 2
    open2: int = 24
    extend2: int = 1
    unknown: int = -1  # an unknown base against anything


@dataclass(frozen=True)
class ExtensionParams:
    """How seeds are extended (engines/extend.py)."""

    match: int = 1
    mismatch: int = -1
    gap: int = -1
    xdrop: int | None = None
    extension: str = "homology"


@dataclass(frozen=True)
class FilterParams:
    """Which alignments are overlaps (jobs/overlap/filter.py)."""

    delta: float = 0.1  # tolerance of the score threshold; BELLA
    min_overlap: int = 1000  # aligned bases on both reads
    min_identity: float = 0.0  # estimated where there is no path
    trim_identity: float | None = None  # cut ends of paths with a smaller one
    max_overhang: int | None = None  # unaligned bases allowed where both reads go on


@dataclass(frozen=True)
class RunParams:
    """How the work is done; the results do not depend on it."""

    threads: int = 1
    device: str = "auto"  # of the extension; auto: GPUs if there are any
    max_memory: int | None = None  # bytes


@dataclass(frozen=True)
class Params:
    """All parameters of a run."""

    kmers: KmerParams = field(default_factory=KmerParams)
    seeds: SeedParams = field(default_factory=SeedParams)
    extension: ExtensionParams = field(default_factory=ExtensionParams)
    filter: FilterParams = field(default_factory=FilterParams)
    run: RunParams = field(default_factory=RunParams)

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {**asdict(self), "seeds": self.seeds._asdict()}


class SelectRule(NamedTuple):
    """Which chains and alignments of a read are kept (jobs/map/select.py, choose.py); the defaults are minimap2's."""

    mask: float = 0.5  # share of the shorter one from which on two lie on the same part of a read
    ratio: float = 0.8  # of the best score that a secondary one needs
    noise: float = 3.0  # standard deviations by which a chain's number of anchors may fall short to be aligned; own choice
    tried: int = 20  # chains aligned beside the best for each part of a read; own choice
    most: int = 5  # secondary ones written for each part of a read
    min_score: int = 80
    min_chain: int = 40
    near: int = 8  # scores that differ by no more count as equal


@dataclass(frozen=True)
class MapParams:
    """How reads are mapped (jobs/map/); the defaults fit reads with many errors, and are minimap2's unless said."""

    k: int = 15
    window: int = 10  # one minimizer among so many k-mers
    max_gap: int = 5000  # between anchors
    band: int = 500  # how far gaps on read and reference may differ
    long_gap: int = 20_000  # both of these where a read is left in parts
    scoring: AffineScoring = AffineScoring()
    zdrop: int = 400  # a path that falls so far below its best is cut
    end_bonus: int = 10  # given up at most to align a read to its end; own choice
    select: SelectRule = SelectRule()


MAP_PRESETS: dict[str, MapParams] = {
    "clr": MapParams(scoring=AffineScoring(open1=2)),  # finds more of the true base pairs at 15 % errors
    "ont": MapParams(end_bonus=0),  # scores are no lower than minimap2's
    "hifi": MapParams(
        k=19, window=19, max_gap=10_000, scoring=AffineScoring(1, -4, 6, 2, 26, 1), select=SelectRule(min_score=200, near=6)
    ),
}
"""By name; `map` chooses by the reads' errors: hifi below 1.5 %, ont below 10 %, else clr."""

HIFI_ERRORS, ONT_ERRORS = 0.015, 0.1


@dataclass(frozen=True)
class ExactParams:
    """What an optimal alignment of two sequences is (engines/exact/); the scores are those of CUDAlign and MASA."""

    mode: str = "local"
    strand: str = "both"
    match: int = 1
    mismatch: int = -3
    gap_open: int = 3  # a gap of g bases costs gap_open + g * gap_extend
    gap_extend: int = 2


UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
"""Powers of 1000, or with an i of 1024, that units of sizes stand for."""

OPTIONS = {"k": "-k", "most_secondary": "-N"}
"""Options whose names are not those of their fields."""

PRESETS: dict[str, dict[str, Any]] = {
    "clr": {},
    "ont": {},
    "hifi": {"k": 21},
}
"""Differences from the defaults, by name.  Explicit options override them."""


def parse_size(text: str) -> int:
    """Bytes of a size such as 600M, 1.5GB, 2GiB or 1e9: K, M, G and T are powers of 1000, Ki, Mi, Gi and Ti of 1024."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?(?:E[0-9]{1,2})?)(?:([KMGT])(I?))?B?", text.upper())
    if not match:
        raise ParameterError(f"--max-memory {text}: give a number and a unit, such as 600M, 1.5G or 2GiB")
    number, unit, binary = match.groups(default="")
    return int(float(number) * (1024 if binary else 1000) ** UNITS[unit])


def make_params(preset: str | None = None, **options: Any) -> Params:
    """Parameters from a preset and options by name; an option that is None is left at its default.

    `min_overlap` rules both the candidates' implied length and the reported alignments' length.  `max_memory` is text, for
    `parse_size`.
    """
    if preset is not None and preset not in PRESETS:
        raise ParameterError(f"--preset {preset}: there is none of that name; choose from {', '.join(PRESETS)}")
    given = {**PRESETS.get(preset or "", {}), **{name: value for name, value in options.items() if value is not None}}
    if "max_memory" in given:
        given["max_memory"] = parse_size(given["max_memory"])
    params = Params()
    known = set()
    for group in ("kmers", "extension", "filter", "run"):
        record = getattr(params, group)
        names = {f.name for f in fields(record)} & given.keys()
        known |= names
        params = replace(params, **{group: replace(record, **{name: given[name] for name in names})})
    seed_names = set(SeedParams._fields) & given.keys()
    params = replace(params, seeds=params.seeds._replace(**{name: given[name] for name in seed_names}))
    unknown = given.keys() - known - seed_names
    if unknown:
        raise TypeError(f"unknown parameters: {', '.join(sorted(unknown))}")
    validate(given)
    return params


def make_exact_params(**options: Any) -> ExactParams:
    """Parameters of `bellapy exact` by name; an option that is None is left at its default."""
    given = {name: value for name, value in options.items() if value is not None}
    check_values(given, EXACT_RANGES)
    return ExactParams(**given)


def validate(values: dict[str, Any]) -> None:
    """Raise ParameterError, naming the option, for a value out of range or values that contradict each other."""
    check_values(values, RANGES | MAP_RANGES)
    if "lower" in values and "upper" in values and values["upper"] < values["lower"]:
        raise ParameterError(f"--upper {values['upper']}: must not be below --lower {values['lower']}")
    if values.get("sampling_window") and values.get("sampling", "auto") in ("auto", "none"):
        raise ParameterError("--sampling-window: choose a --sampling first (fraction, minimizer or syncmer)")


def check_values(values: dict[str, Any], ranges: dict[str, Range]) -> None:
    for name, value in values.items():
        option = OPTIONS.get(name, "--" + name.replace("_", "-"))
        if name in ranges and not ranges[name].low <= value <= ranges[name].high:
            low, high = ranges[name]
            raise ParameterError(f"{option} {value}: must be from {low:g} to {high:g}")
        if name in CHOICES and value not in CHOICES[name]:
            raise ParameterError(f"{option} {value}: choose from {', '.join(CHOICES[name])}")
