"""Every default, range and preset, by job; what each of them means stands beside it (fields.py)."""

from bellapy.params.exact import MODES, STRANDS, ExactParams, make_exact_params
from bellapy.params.fields import Range, parse_size
from bellapy.params.map import (
    HIFI_ERRORS,
    HQ_ERRORS,
    MAP_PRESETS,
    ONT_ERRORS,
    MapParams,
    SelectRule,
    map_preset,
)
from bellapy.params.overlap import (
    CHOICES,
    EXTENSIONS,
    PRESETS,
    RANGES,
    SAMPLINGS,
    ExtensionParams,
    FilterParams,
    KmerParams,
    Params,
    SeedParams,
    make_params,
    validate,
)
from bellapy.params.run import DEVICES, RunParams
from bellapy.params.scoring import TILT_UNIT, AffineScoring, Scoring, affine_scoring

__all__ = [
    "CHOICES", "DEVICES", "EXTENSIONS", "HIFI_ERRORS", "HQ_ERRORS", "MAP_PRESETS", "MODES", "ONT_ERRORS", "PRESETS",
    "RANGES", "SAMPLINGS", "STRANDS", "TILT_UNIT", "AffineScoring", "ExactParams", "ExtensionParams",
    "FilterParams", "KmerParams", "MapParams", "Params", "Range", "RunParams", "Scoring", "SeedParams", "SelectRule",
    "affine_scoring", "make_exact_params", "make_params", "map_preset", "parse_size", "validate",
]  # fmt: skip
