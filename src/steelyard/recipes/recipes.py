"""Recipes: whole pipelines as TOML. A recipe names its stages, what each reads, and the settings that differ.

A value whose first part is the name of a stage is what that stage wrote: ``resolved/cases.jsonl``, or ``model`` for the
whole folder. Any other file is looked for beside the recipe.
"""

from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from steelyard.core.config import resolve_config
from steelyard.core.errors import ConfigError, FileError, choices
from steelyard.io.lines import check_readable
from steelyard.io.settings import read_toml
from steelyard.recipes.callables import Parameter, StageCall, stage_call

_SHIPPED = (Path(__file__).parents[1] / "recipes", Path(__file__).parents[3] / "recipes")
_KEYS = {"about", "seed", "stages"}
_STAGE_KEYS = {"verb", "config", "num_threads"}


class Reference(NamedTuple):
    """What a stage reads. ``stage`` is the one that writes it, null for what was there before the recipe ran."""

    text: str
    stage: str | None


class Step(NamedTuple):
    """One stage of a recipe, checked: what it calls, with which settings, on what.

    ``num_threads`` bounds torch's threads; null leaves them as they are.
    """

    name: str
    call: StageCall
    config: msgspec.Struct
    inputs: Mapping[str, Reference | tuple[Reference, ...]]
    num_threads: int | None

    def references(self) -> Iterator[tuple[str, Reference]]:
        """Every input with the key under which it stands."""
        for key, value in self.inputs.items():
            for one in (value,) if isinstance(value, Reference) else value:
                yield key, one


class Recipe(NamedTuple):
    """A recipe: its steps in an order in which each comes after what it reads."""

    path: Path
    about: str
    steps: tuple[Step, ...]

    def step(self, name: str) -> Step:
        """The step of this name. Raises ConfigError with the nearest name."""
        for step in self.steps:
            if step.name == name:
                return step
        names = [step.name for step in self.steps]
        raise ConfigError(f"the recipe has no stage {name!r}", where=str(self.path), allowed=choices(name, names))

    def after(self, name: str) -> tuple[str, ...]:
        """The stage and every stage that reads, over any number of steps, what it writes."""
        found = [self.step(name).name]
        for step in self.steps:
            if any(reference.stage in found for _, reference in step.references()):
                found.append(step.name)
        return tuple(found)


def find_recipe(name: str) -> Path:
    """The file of this name, or the recipe that comes with Steelyard. Raises FileError naming those that do.

    A folder of that name is none of these: it is where an earlier run of the recipe lies.
    """
    if Path(name).is_file() or Path(name).suffix == ".toml":
        check_readable(Path(name))
        return Path(name)
    shipped = {path.stem: path for folder in _SHIPPED for path in sorted(folder.glob("*.toml"))}
    if name not in shipped:
        raise FileError("there is no such recipe", where=name, allowed=f"a .toml file, or {choices(name, shipped)}")
    return shipped[name]


def read_recipe(path: Path, settings: Mapping[str, Any] | None = None, *, seed: int | None = None) -> Recipe:
    """The recipe in a file. ``settings`` (stage, then key) stand over its own; ``seed`` over its seed.

    A key is a setting of the stage, or the name of what it reads (``model`` of a training).

    Raises ConfigError for an unknown stage, verb, input or setting, and for stages that wait for each other.
    """
    content = read_toml(path)
    return build_recipe(content, path, settings, seed=seed)


def build_recipe(
    content: Mapping[str, Any], path: Path, settings: Mapping[str, Any] | None = None, *, seed: int | None = None
) -> Recipe:
    """The recipe from what its file says, or what a file of another kind comes to; ``path`` is where files are sought.

    Raises as `read_recipe` does.
    """
    _check_keys(content, _KEYS, str(path))
    tables = content.get("stages")
    if not isinstance(tables, dict) or not tables or not all(isinstance(one, dict) for one in tables.values()):
        raise ConfigError("a recipe without stages", where=str(path), allowed='[stages.NAME] tables with verb = "…"')
    for name in tables:
        _check_stage_name(name, f"{path} at stages")
    given = dict(settings or {})
    for name in given:
        if name not in tables:
            raise ConfigError(f"the recipe has no stage {name!r}", where="--set", allowed=choices(name, tables))
    shared = content.get("seed") if seed is None else seed
    steps = {
        name: _step(name, table, given.get(name, {}), stages=tables, seed=shared, where=f"{path} at stages.{name}")
        for name, table in tables.items()
    }
    return Recipe(path, str(content.get("about", "")), tuple(steps[name] for name in _ordered(steps, path)))


def _check_stage_name(name: str, where: str) -> None:
    """Raises ConfigError for a name that cannot be that of a folder in ``--out``: stages write nowhere else."""
    if not name or name.startswith(".") or "/" in name or "\\" in name or not name.isprintable():
        raise ConfigError(
            f"a stage named {name!r}", where=where, allowed="the name of a folder, which begins with no ."
        )


def _step(
    name: str, table: Mapping[str, Any], settings: Any, *, stages: Mapping[str, Any], seed: int | None, where: str
) -> Step:
    if not isinstance(table.get("verb"), str):
        raise ConfigError("a stage without a verb", where=where, do='say verb = "resolve", or another stage')
    call = stage_call(table["verb"], where=where)
    changed = settings if isinstance(settings, dict) else {}
    # What a stage reads can be named too, as long as no setting of its own has that name.
    of_config = {field.name for field in msgspec.structs.fields(call.config_type)}
    read = {key: value for key, value in changed.items() if key in call.parameters and key not in of_config}
    table = {**table, **read}
    _check_keys(table, _STAGE_KEYS | call.parameters.keys(), where)
    absent = [one.name for one in call.parameters.values() if one.is_required and one.name not in table]
    if absent:
        found = f"the stage {call.verb!r} needs {' and '.join(absent)}"
        is_name = call.parameters[absent[0]].accepts == "name"
        example = '"STAGE", a folder or a kind' if is_name else '"STAGE/cases.jsonl", or a file'
        raise ConfigError(found, where=where, do=f"say {absent[0]} = {example}")
    inputs = {key: _input(one, table[key], stages, where) for key, one in call.parameters.items() if key in table}
    own = {"seed": seed} if seed is not None and "seed" in of_config else {}
    asked = {key: value for key, value in changed.items() if key not in read}
    config = resolve_config(call.config_type, own | _table(table, "config", where) | asked, where=f"{where}.config")
    return Step(name, call, config, inputs, _num_threads(table, where))


def _input(
    parameter: Parameter, value: Any, stages: Mapping[str, Any], where: str
) -> Reference | tuple[Reference, ...]:
    texts = value if parameter.accepts == "files" and isinstance(value, list) else [value]
    if not texts or not all(isinstance(text, str) and text for text in texts):
        allowed = "texts in a list" if parameter.accepts == "files" else "one text"
        raise ConfigError(f"{parameter.name} names no files", where=where, allowed=allowed)
    found = [Reference(text, first if (first := text.split("/")[0]) in stages else None) for text in texts]
    return tuple(found) if parameter.accepts == "files" else found[0]


def _table(table: Mapping[str, Any], key: str, where: str) -> dict[str, Any]:
    value = table.get(key, {})
    if not isinstance(value, dict):
        raise ConfigError(f"{key} is no table", where=where, do=f"write [stages.NAME.{key}] and the settings below it")
    return value


def _num_threads(table: Mapping[str, Any], where: str) -> int | None:
    number = table.get("num_threads")
    if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
        raise ConfigError("num_threads is no number of threads", where=where, allowed="1 or more")
    return number


def _ordered(steps: Mapping[str, Step], path: Path) -> list[str]:
    """The names in the recipe's own order where it can be kept. Raises ConfigError naming a circle."""
    before = {name: [one.stage for _, one in step.references() if one.stage] for name, step in steps.items()}
    try:
        TopologicalSorter(before).prepare()
    except CycleError as error:
        circle = " reads ".join(reversed(error.args[1]))
        raise ConfigError(f"stages that wait for each other: {circle}", where=str(path)) from error
    ordered: list[str] = []
    while len(ordered) < len(before):
        ordered.append(next(name for name in before if name not in ordered and {*before[name]} <= {*ordered}))
    return ordered


def _check_keys(table: Mapping[str, Any], allowed: set[str], where: str) -> None:
    for key in table:
        if key not in allowed:
            raise ConfigError(f"unknown key {key!r}", where=where, allowed=choices(key, allowed))
