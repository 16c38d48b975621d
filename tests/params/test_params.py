"""Parameters, presets and ranges, and that the command line offers just these."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass

import pytest
from cases import COMMANDS, options_of

from bellapy import params
from bellapy.errors import ParameterError
from bellapy.params import PRESETS, RANGES, Params, make_params, validate

NO_PARAMETER = {
    "output",
    "skip_alignment",
    "overlap_format",
    "report_file",
    "quiet",
    "debug",
    "preset",
    "cigar",
    "cs",
    "sort",
}
NOT_OFFERED = {"band", "band_slope", "ranks"}  # of the seeds: nobody needs to change them
CHOICES = {"sampling": params.SAMPLINGS, "extension": params.EXTENSIONS, "device": params.DEVICES}


def default_values() -> dict:
    """Name of every field of every group -> its default."""
    groups = [getattr(Params(), group.name) for group in fields(Params)]
    names = [[f.name for f in fields(group)] if is_dataclass(group) else group._fields for group in groups]
    return {name: getattr(group, name) for group, of_group in zip(groups, names, strict=True) for name in of_group}


DEFAULTS = default_values()
OPTIONS = {name: option for name, option in options_of("overlap").items() if name not in NO_PARAMETER}


def test_every_field_is_an_option_and_every_option_a_field():
    assert set(OPTIONS) == set(DEFAULTS) - NOT_OFFERED


def test_stages_offer_options_of_overlap_only():
    for name in ("count", "candidates", "align", "filter"):
        own = set(options_of(name)) - NO_PARAMETER - {"kmers", "seeds", "alignments"}
        assert own <= set(OPTIONS), name


def test_every_option_belongs_to_a_stage():
    staged = {option for name in ("count", "candidates", "align", "filter") for option in options_of(name)}
    assert set(OPTIONS) <= staged


def test_every_number_has_a_range_and_every_range_an_option():
    numbers = {name for name, option in OPTIONS.items() if {int, float} & set(option.types)}
    assert numbers == set(RANGES)


def test_every_field_that_is_a_word_has_its_choices():
    assert {name for name, value in DEFAULTS.items() if isinstance(value, str)} == set(CHOICES)
    for name, choices in CHOICES.items():
        assert DEFAULTS[name] in choices


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_help_tells_the_default(name):
    shown = re.search(r"\[default: (.*?)\]", OPTIONS[name].help)
    default = DEFAULTS[name]
    if name == "threads" or default is False:
        return
    assert shown, OPTIONS[name].help
    if name == "sampling_window":
        from bellapy.jobs.overlap.pipeline import DEFAULT_SAMPLING_WINDOW as default
    if default is None:
        assert shown[1] in ("from the data", "any", "from depth and error rate")
    else:
        assert shown[1] == (default if isinstance(default, str) else f"{default:g}")


@pytest.mark.parametrize("name", sorted(set(OPTIONS) & set(RANGES)))
def test_help_of_every_stage_is_the_same(name):
    stages = [options_of(command) for command in COMMANDS if command not in ("extend", "evaluate")]
    assert {options[name].help for options in stages if name in options} == {OPTIONS[name].help}


def test_help_tells_the_choices():
    for name, choices in {**CHOICES, "preset": tuple(PRESETS)}.items():
        for choice in choices:
            assert re.search(rf"\b{choice}\b", options_of("overlap")[name].help), (name, choice)


def test_help_tells_the_range_of_k():
    assert "3 to 31" in OPTIONS["k"].help
    assert tuple(RANGES["k"]) == (3, 31)


def test_presets_name_real_fields_with_values_in_range():
    for name, values in PRESETS.items():
        assert set(values) <= set(DEFAULTS) - NOT_OFFERED, name
        validate(values)
        made = make_params(name).to_dict()
        flat = {key: value for group in made.values() for key, value in group.items()}
        assert {**flat, **values} == flat


def test_defaults_are_in_range():
    validate({name: value for name, value in DEFAULTS.items() if value is not None})


def test_shared_names_have_one_default():
    for name in ("match", "mismatch", "gap"):
        assert getattr(Params().extension, name) == params.Scoring._field_defaults[name]
    assert Params().seeds.min_overlap == Params().filter.min_overlap


@pytest.mark.parametrize("name", sorted(RANGES))
def test_both_ends_of_a_range_are_allowed(name):
    for value in RANGES[name]:
        others = {"sampling": "minimizer"} if name == "sampling_window" else {}
        made = make_params(**{name: type(DEFAULTS[name] or value)(value)}, **others)
        assert value in [group.get(name) for group in made.to_dict().values()]


@pytest.mark.parametrize("name", sorted(RANGES))
@pytest.mark.parametrize("beyond", ["below", "above", "nan"])
def test_values_out_of_range_name_the_option(name, beyond):
    low, high = RANGES[name]
    value = {"below": low - 1e-6, "above": high + 1e-6 * max(1, high), "nan": float("nan")}[beyond]
    with pytest.raises(ParameterError, match=rf"^-?-{name.replace('_', '-')} .*must be from") as caught:
        make_params(**{name: value})
    assert caught.value.exit_code == 2
    for end in (low, high):
        assert f"{end:g}" in str(caught.value)


def test_options_override_presets_and_presets_override_defaults():
    assert make_params("hifi").kmers.k == PRESETS["hifi"]["k"]
    assert make_params("hifi", k=15).kmers.k == 15
    assert make_params("hifi", k=None).kmers.k == PRESETS["hifi"]["k"]
    assert make_params() == Params() == make_params(k=None, xdrop=None)


def test_min_overlap_rules_candidates_and_alignments():
    made = make_params(min_overlap=77)
    assert made.seeds.min_overlap == made.filter.min_overlap == 77


def test_unknown_names_are_refused():
    with pytest.raises(TypeError, match="kmer_length"):
        make_params(kmer_length=3)
    with pytest.raises(ParameterError, match="--preset sequel: .*clr, ont, hifi"):
        make_params("sequel")


@pytest.mark.parametrize("name", sorted(CHOICES))
def test_unknown_choices_are_refused(name):
    with pytest.raises(ParameterError, match=f"--{name} nope: choose from {', '.join(CHOICES[name])}"):
        make_params(**{name: "nope"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lower": 9, "upper": 8}, "--upper 8: must not be below --lower 9"),
        ({"sampling_window": 4}, "--sampling-window: choose a --sampling first"),
        ({"sampling_window": 4, "sampling": "none"}, "--sampling-window: choose a --sampling first"),
    ],
)
def test_contradictions_are_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        make_params(**options)


def test_the_record_holds_what_json_can():
    import json

    made = make_params("ont", threads=3, min_support=4)
    assert json.loads(json.dumps(made.to_dict())) == made.to_dict()
    assert made.to_dict()["seeds"]["min_support"] == 4
