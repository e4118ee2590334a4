import json
from importlib import import_module

import msgspec
import pytest
from msgspec import inspect
from typer.main import get_command
from typer.testing import CliRunner

from package_source import ROOT
from steelyard.cli.main import build_app, verb_names
from steelyard.cli.settings_page import page
from steelyard.cli.stage_verb import SettingOption, StageVerb
from steelyard.core.config import describe_type
from steelyard.core.plugins import kinds, load, packages
from steelyard.core.settings_help import REQUIRED, read_settings
from steelyard.recipes.recipe import stage_call, stage_verbs

STAGE_VERBS = {
    name: verb
    for name in verb_names()
    if isinstance(verb := import_module(f"steelyard.cli.verbs.{name}").command, StageVerb)
}
CONFIGS = [
    *(stage_call(verb, where="").config_type for verb in stage_verbs()),
    *(import_module(verb.module).Config for verb in STAGE_VERBS.values()),
    *(load(package, kind).Config for package in packages() for kind in kinds(package)),
]


def invoke(*words, **environment):
    return CliRunner().invoke(build_app(), words, env=environment)


@pytest.mark.parametrize("config", {(one.__module__, one.__name__): one for one in CONFIGS}.values(), ids=str)
def test_settings_read_from_source_are_those_of_the_config(config):
    fields = {field.name: field for field in msgspec.structs.fields(config)}
    settings = read_settings(config.__module__, config.__name__)
    assert {setting.name for setting in settings} == set(fields)
    for setting in settings:
        field = fields[setting.name]
        default = field.default if field.default_factory is REQUIRED else field.default_factory()
        assert setting.default is default or msgspec.to_builtins(setting.default) == msgspec.to_builtins(default)
        assert describe_type(inspect.type_info(setting.type)) == describe_type(inspect.type_info(field.type))
        assert setting.meaning.endswith("."), setting.name


def test_the_page_of_the_docs_is_the_generated_one():
    assert (ROOT / "docs" / "settings.md").read_text(encoding="utf-8") == page(), "run `make settings`"


@pytest.mark.parametrize("name", STAGE_VERBS)
def test_every_setting_is_listed_whatever_else_is_missing(name):
    verb = name.rstrip("_").replace("_", "-")
    settings = read_settings(STAGE_VERBS[name].module)
    result = invoke(verb, "--settings", "--json")
    assert result.exit_code == 0, result.output
    assert [row["name"] for row in json.loads(result.stdout)] == [setting.name for setting in settings]
    shown = " ".join(invoke(verb, "--settings", COLUMNS="60").stdout.split())
    for setting in settings:
        assert setting.name in shown
        assert setting.meaning in shown


def test_a_setting_has_its_default_its_values_and_its_meaning():
    lines = invoke("split", "--settings", COLUMNS="100").stdout.splitlines()
    assert lines[:2] == [
        "parts = {train = 0.8, test = 0.2}  KEY=VALUE pairs; each value: a number",
        "  The share of each part by its name; the shares sum to 1.",
    ]
    seed = json.loads(invoke("split", "--settings", "--json").stdout)[-1]
    assert seed == {"name": "seed", "type": "a whole number", "default": 0, "meaning": "The seed of the split."}


@pytest.mark.parametrize("name", STAGE_VERBS)
def test_the_help_of_an_option_is_the_meaning_of_its_setting(name):
    command = get_command(build_app()).commands[name.rstrip("_").replace("_", "-")]
    helps = {parameter.name: parameter.help for parameter in command.params}
    for part in STAGE_VERBS[name].parts:
        if isinstance(part, SettingOption) and part.help is None and not part.is_negative:
            table = part.config or (STAGE_VERBS[name].module, "Config")
            (setting,) = (one for one in read_settings(*table) if one.name == part.name.rpartition(".")[2])
            assert helps[part.parameter].startswith(setting.meaning)


def test_an_experiment_lists_the_keys_of_its_file():
    names = [row["name"] for row in json.loads(invoke("sweep", "--settings", "--json").stdout)]
    assert {"benches", "seeds", "training", "models", "vary"} <= {*names}
