import json
import subprocess
import sys
from importlib import import_module

import msgspec
import pytest
from msgspec import inspect
from typer.main import get_command
from typer.testing import CliRunner

from each_value import each
from package_source import ROOT
from steelyard.cli.main import build_app, verbs_by_name
from steelyard.cli.output import type_text
from steelyard.cli.stage_verb import StageVerb
from steelyard.core.config import describe_type
from steelyard.core.plugins import build, kinds, load, packages
from steelyard.core.settings_help import REQUIRED, read_nested_settings, read_settings
from steelyard.io.verbs import SettingOption
from steelyard.plugins.judges._texts import styles
from steelyard.recipes.recipe import stage_call, stage_verbs
from steelyard.training.losses import LOSSES
from steelyard.workbench.pipeline.projects import ProjectSettings

STAGE_VERBS = {name: verb for name, verb in verbs_by_name().items() if isinstance(verb, StageVerb)}
CONFIGS = [
    *(stage_call(verb, where="").config_type for verb in stage_verbs()),
    *(import_module(verb.config[0]).Config for verb in STAGE_VERBS.values()),
    *(load(package, kind).Config for package in packages() for kind in kinds(package)),
]


def invoke(*words, **environment):
    return CliRunner().invoke(build_app(), words, env=environment)


@each("config", {(one.__module__, one.__name__): one for one in CONFIGS}.values())
def test_settings_read_from_source_match_the_config(config):
    fields = {field.name: field for field in msgspec.structs.fields(config)}
    settings = read_settings(config.__module__, config.__name__)
    assert {setting.name for setting in settings} == set(fields)
    for setting in settings:
        field = fields[setting.name]
        default = field.default if field.default_factory is REQUIRED else field.default_factory()
        assert setting.default is default or msgspec.to_builtins(setting.default) == msgspec.to_builtins(default)
        assert describe_type(inspect.type_info(setting.type)) == describe_type(inspect.type_info(field.type))
        assert setting.meaning.endswith("."), setting.name


@pytest.mark.parametrize(("verb", "name", "table"), [("train", "loss", LOSSES)])
def test_a_setting_that_is_a_name_of_a_table_lists_the_names(verb, name, table):
    rows = json.loads(invoke(verb, "--settings", "--json").stdout)
    assert {row["name"]: row["type"] for row in rows}[name] == ", ".join(table)


def test_a_setting_that_is_a_kind_lists_the_kinds():
    rows = {
        (verb, row["name"]): row["type"]
        for verb in ("convert", "evaluate", "train")
        for row in json.loads(invoke(verb, "--settings", "--json").stdout)
    }
    assert rows["convert", "from_kind"] == ", ".join(kinds("formats"))
    written = [kind for kind in kinds("formats") if build("formats", kind).is_written]
    assert rows["convert", "to_kind"] == ", ".join(written)
    assert rows["evaluate", "bench_kind"] == ", ".join(kinds("benches"))
    assert rows["evaluate", "baselines"] == f"a list; each item: {', '.join(kinds('models'))}"
    assert rows["train", "trackers"].startswith(f"a list; each item: {', '.join(kinds('trackers'))} or ")
    assert rows["train", "trainable"] == "all, head, or last:N"
    style = next(
        setting
        for setting in read_settings("steelyard.plugins.judges.tasks", "PairwiseConfig")
        if setting.name == "style"
    )
    assert type_text(style) == ", ".join(styles())


def test_docs_settings_page_is_up_to_date():
    generator = subprocess.run([sys.executable, ROOT / "docs" / "settings_page.py"], capture_output=True, check=True)
    assert (ROOT / "docs" / "settings.md").read_text(encoding="utf-8") == generator.stdout.decode(), (
        "run `make settings`"
    )


@each("name", STAGE_VERBS)
def test_settings_option_lists_every_setting_without_required_options(name):
    settings = read_nested_settings(*STAGE_VERBS[name].config)
    result = invoke(name, "--settings", "--json")
    assert result.exit_code == 0, result.output
    assert [row["name"] for row in json.loads(result.stdout)] == [setting.name for setting in settings]
    shown = " ".join(invoke(name, "--settings", COLUMNS="60").stdout.split())
    for setting in settings:
        assert setting.name in shown
        assert setting.meaning in shown


def test_nested_settings_are_the_fields_of_the_config():
    def fields(config, path=""):
        for name, value in msgspec.structs.asdict(config).items():
            if isinstance(value, msgspec.Struct):
                yield from fields(value, f"{path}{name}.")
            else:
                yield path + name, value

    settings = read_nested_settings("steelyard.workbench.pipeline.projects", "ProjectSettings")
    assert [(setting.name, setting.default) for setting in settings] == list(fields(ProjectSettings()))
    assert all(setting.meaning for setting in settings)


def test_settings_show_type_default_and_meaning():
    lines = invoke("split", "--settings", COLUMNS="100").stdout.splitlines()
    assert lines[:2] == [
        "parts = {train = 0.8, test = 0.2}  KEY=VALUE pairs; each value: a number",
        "  The share of each part by its name; the shares sum to 1.",
    ]
    seed = json.loads(invoke("split", "--settings", "--json").stdout)[-1]
    assert seed == {"name": "seed", "type": "a whole number", "default": 0, "meaning": "The seed of the split."}


@each("name", STAGE_VERBS)
def test_option_help_is_the_meaning_of_its_setting(name):
    command = get_command(build_app()).commands[name]
    helps = {parameter.name: parameter.help for parameter in command.params}
    for part in STAGE_VERBS[name].verb.parts:
        if isinstance(part, SettingOption) and part.help is None and not part.is_negative:
            table = part.config or STAGE_VERBS[name].config
            (setting,) = (one for one in read_settings(*table) if one.name == part.name.rpartition(".")[2])
            # The first sentence: what follows is in --settings.
            assert helps[part.parameter].startswith(setting.meaning.split(". ")[0].removesuffix("."))


def test_the_keys_of_an_experiment_s_file_are_listed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sweep.toml").write_text('experiment = "sweep"', encoding="utf-8")
    names = [row["name"] for row in json.loads(invoke("run", "sweep.toml", "--explain", "--json").stdout)]
    assert {"benches", "seeds", "training", "models", "vary"} <= {*names}
