"""Parameters, presets and ranges, and that the command line offers just these."""

from __future__ import annotations

import re
from dataclasses import is_dataclass

import pytest
from cases import COMMANDS, options_of

from bellapy import params
from bellapy.cli.app import load_command
from bellapy.errors import ParameterError
from bellapy.params import (
    PRESETS,
    RANGES,
    ExactParams,
    Params,
    evaluate,
    exact,
    make_params,
    overlap,
    reads,
    run,
    scoring,
    validate,
)
from bellapy.params import assemble as assembling
from bellapy.params import correct as correcting
from bellapy.params import map as mapping
from bellapy.params.fields import PANELS, fields_of
from bellapy.params.fields import options_of as options_from
from bellapy.params.overlap import WritingParams
from bellapy.params.run import LogParams

MODULES = (scoring, run, reads, overlap, mapping, exact, evaluate, correcting, assembling)


def is_group(value) -> bool:
    """Whether something is a group of parameters."""
    return isinstance(value, type) and (is_dataclass(value) or hasattr(value, "_fields")) and value.__module__ in NAMES


NAMES = {module.__name__ for module in MODULES}
FOLDER = {"workdir", "keep_workdir", "blocks", "scheduler"}
NO_PARAMETER = {
    "output", "targets", "skip_alignment", "preset", "help_all", "help", *FOLDER, *WritingParams._fields, *LogParams._fields,
}  # fmt: skip
NOT_OFFERED = {"band", "band_slope", "ranks"}  # of the seeds: nobody needs to change them
CHOICES = {"sampling": params.SAMPLINGS, "extension": params.EXTENSIONS, "device": params.DEVICES}
GROUPS = [group for module in MODULES for group in vars(module).values() if is_group(group)]
STAGES = ("count", "candidates", "align", "filter")


def default_values() -> dict:
    """Name of every field of every group -> its default."""
    return {name: field.default for group in overlap.GROUPS.values() for name, field in fields_of(group).items()}


DEFAULTS = default_values()
OPTIONS = {name: option for name, option in options_of("overlap").items() if name not in NO_PARAMETER}


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.__name__)
def test_every_field_says_what_it_is(group):
    """Groups within groups apart: their own fields do."""
    told = fields_of(group)
    for name, hint in group.__annotations__.items():
        assert name in told or isinstance(hint, type) and is_group(hint), name
    for field in told.values():
        assert field.about.help[0].isupper() or field.about.help.split()[0] in field.about.choices, field.name
        assert field.about.help[-1] not in ".]"
        assert field.about.panel in ("", *PANELS)
        assert field.kind in (int, float, str, bool)


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.__name__)
def test_defaults_are_in_range(group):
    for field in fields_of(group).values():
        if field.default is not None:
            field.check(field.default)


def test_what_is_no_field_cannot_be_made():
    with pytest.raises(TypeError):
        ExactParams(matches=1)


def test_every_field_is_an_option_and_every_option_a_field():
    assert set(OPTIONS) == set(DEFAULTS) - NOT_OFFERED


def test_stages_offer_options_of_overlap_only():
    for name in STAGES:
        own = set(options_of(name)) - NO_PARAMETER - {"kmers", "seeds", "alignments"}
        assert own <= set(OPTIONS), name


def test_every_option_belongs_to_a_stage():
    staged = {option for name in STAGES for option in options_of(name)}
    assert set(OPTIONS) <= staged


def test_every_number_has_a_range_and_every_range_an_option():
    numbers = {name for name, option in OPTIONS.items() if option.kind in (int, float)}
    assert numbers == set(RANGES)


def test_every_field_that_is_a_word_has_its_choices():
    assert {name for name, value in DEFAULTS.items() if isinstance(value, str)} == set(CHOICES)
    for name, choices in CHOICES.items():
        assert overlap.FIELDS[name].about.choices == choices


@pytest.mark.parametrize("command", COMMANDS)
def test_help_tells_default_range_and_choices(command):
    """Of every option that a group declares, in every command that has it."""
    for name, field in load_command(command).fields.items():
        text = options_of(command)[name].help
        about = field.about
        assert text.startswith(about.help)
        if about.unset:
            assert f"default: {about.unset}]" in text
        elif isinstance(field.default, str) and field.default:
            assert f"default: {field.default}]" in text
        elif field.default not in (None, False, ""):
            assert re.search(rf"default: {field.default:g}\]", text), text
        for choice in about.choices:
            assert re.search(rf"\b{choice}\b", text)
        if about.low is not None:
            assert f"{about.low:g} to " in text or f"at least {about.low:g}" in text


@pytest.mark.parametrize("name", sorted(set(OPTIONS) & set(RANGES)))
def test_help_of_every_stage_is_the_same(name):
    stages = [options_of(command) for command in ("overlap", *STAGES)]
    assert {options[name].help for options in stages if name in options} == {OPTIONS[name].help}


def test_what_is_said_of_one_option_in_two_groups_is_the_same():
    seen = {}
    for group in overlap.GROUPS.values():
        for name, field in options_from(group).items():
            assert seen.setdefault(name, (field.default, field.about)) == (field.default, field.about)


def test_help_of_presets():
    for preset in PRESETS:
        assert preset in options_of("overlap")["preset"].help


def test_presets_name_real_fields_with_values_in_range():
    for name, values in PRESETS.items():
        assert set(values) <= set(DEFAULTS) - NOT_OFFERED, name
        validate(values)
        made = make_params(name).to_dict()
        flat = {key: value for group in made.values() for key, value in group.items()}
        assert {**flat, **values} == flat


def test_shared_names_have_one_default():
    for name in ("match", "mismatch", "gap"):
        assert getattr(Params().extension, name) == params.Scoring._field_defaults[name]
    assert Params().seeds.min_overlap == Params().filter.min_overlap


@pytest.mark.parametrize("name", sorted(RANGES))
def test_both_ends_of_a_range_are_allowed(name):
    for value in RANGES[name]:
        others = {"sampling": "minimizer"} if name == "sampling_window" else {}
        made = make_params(**{name: OPTIONS[name].kind(value)}, **others)
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
        assert f" {end:.10g}" in str(caught.value)


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
