"""Recipes: whole pipelines as TOML. A recipe names its stages, the inputs of each, and the settings that differ.

A value whose first part is the name of a stage is an output of that stage: ``resolved/cases.jsonl``, or ``model`` for
the whole folder. Any other file is searched beside the recipe. Inputs and settings of a stage follow from the signature
of its function. The stages are those of the verbs, and those in which people work, which no command has.
"""

import importlib
import inspect
import pkgutil
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import UnionType
from typing import Any, Literal, NamedTuple, get_type_hints

import msgspec

from steelyard import stages
from steelyard.core.config import resolve_config
from steelyard.core.errors import ConfigError, Faults, FileError, choices
from steelyard.core.names import name_key
from steelyard.core.plugins import build
from steelyard.core.remedies import NUMBER, Advice, Remedy
from steelyard.core.types import JsonObject, Run
from steelyard.evaluation.benches import CASE_KINDS, PLAIN_KIND, split_kinds
from steelyard.io.cases import CASE_SUFFIXES
from steelyard.io.data_files import matching_files
from steelyard.io.lines import check_readable, read_toml, toml_places
from steelyard.io.rows import ROW_SUFFIXES
from steelyard.io.run_folder import path_inside
from steelyard.judging.sampling_plans import shipped_plans

Accepts = Literal["file", "files", "name"]
_NO_INPUTS = {"out", "config", "force", "workers", "engine", "builder", "chat", "prices", "tokenizer"}
_BATCH_INPUTS = {"batch", "release_batch"}
"""Parameters of the stages that ask through batch files: a recipe names their folder, but not as an input."""
_SEVERAL_FILES = {
    ("convert", "files"),
    ("describe", "cases"),
    ("evaluate", "benches"),
    ("merge", "files"),
    ("score", "cases"),
}
"""The inputs, by verb and name, that may be folders and patterns."""
PEOPLE_STAGES = "steelyard.workbench.stages"
"""The package of the stages in which people work."""
LiveHashes = Callable[[Mapping[str, Path], Any], dict[str, str]]
_SHIPPED = (Path(__file__).parents[1] / "recipes", Path(__file__).parents[3] / "recipes")
_KEYS = {"about", "seed", "stages"}
EXPERIMENTS = {"ablation": ("steelyard.recipes.ablate", "Ablation"), "sweep": ("steelyard.recipes.sweep", "Sweep")}
"""The module and the Config of each experiment, by the ``experiment`` of its file."""
_CONTENTS = '[stages.NAME] tables with verb = "…", or experiment = "ablation" or "sweep"'
_STAGE_KEYS = {"verb", "config", "num_threads"}


class StageInput(NamedTuple):
    """One input of a stage: a file, several files, or a name that may be a folder (of a model)."""

    name: str
    accepts: Accepts
    is_required: bool


class StageCall(NamedTuple):
    """A stage as a recipe calls it.

    ``live_hashes`` gives the hashes of inputs without a file, by their role in the record: they change while no file
    changes. Null for a stage that reads files alone. ``check_settings`` raises, before anything runs, what the stage
    would refuse of its settings alone. ``waits_for``: what a run that waits is waiting for.
    """

    verb: str
    function: Callable[..., Run]
    config_type: type[msgspec.Struct]
    inputs: Mapping[str, StageInput]
    live_hashes: LiveHashes | None = None
    check_settings: Callable[[Any], None] | None = None
    waits_for: Literal["batch files", "people"] = "batch files"

    @property
    def keys(self) -> set[str]:
        """The keys of the stage's table beside its inputs; ``batch`` where the stage asks through batch files."""
        takes_batch = "batch" in inspect.signature(self.function).parameters
        return _STAGE_KEYS | self.inputs.keys() | ({"batch"} if takes_batch else set())


class Reference(NamedTuple):
    """An input of a stage. ``stage`` is the stage that writes it, null for a file or name from outside the recipe."""

    text: str
    stage: str | None


class Step(NamedTuple):
    """One stage of a recipe, checked: its call, its settings and its inputs.

    ``num_threads`` bounds torch's threads; null leaves them as they are. ``batch`` is the folder of batch files, below
    the folder of the recipe's results; null where requests are sent.
    """

    name: str
    call: StageCall
    config: msgspec.Struct
    inputs: Mapping[str, tuple[Reference, ...]]
    num_threads: int | None
    batch: str | None = None

    def references(self) -> Iterator[tuple[str, Reference]]:
        """Yield every input with its key."""
        for key, references in self.inputs.items():
            for reference in references:
                yield key, reference

    def files(self, key: str, path: Path) -> tuple[Path, ...]:
        """Return the files that an input stands for: itself, the data files of a folder or pattern, a shipped plan."""
        if path.is_file():
            return (path,)
        if (self.call.verb, key) == ("sample", "plan"):
            return tuple(plan for name, plan in shipped_plans().items() if name == str(path))
        if (self.call.verb, key) not in _SEVERAL_FILES:
            return ()
        reads_rows = self.call.verb == "convert"
        if self.call.verb == "evaluate":
            config: Any = self.config
            is_foreign = config.bench_kind not in CASE_KINDS
            reads_rows = is_foreign and build("benches", config.bench_kind, config.bench).source_format is not None
        return matching_files(path, ROW_SUFFIXES if reads_rows else CASE_SUFFIXES)

    def reference(self, key: str) -> Reference | None:
        """Return the first input of a key, null without one."""
        return next(iter(self.inputs.get(key, ())), None)


class Recipe(NamedTuple):
    """A recipe: its steps, each after the steps whose outputs it reads."""

    path: Path
    about: str
    steps: tuple[Step, ...]

    def step(self, name: str) -> Step:
        """Return the step of this name. Raises ConfigError with the nearest name."""
        for step in self.steps:
            if step.name == name:
                return step
        names = [step.name for step in self.steps]
        raise ConfigError(f"the recipe has no stage {name!r}", where=str(self.path), allowed=choices(name, names))

    def after(self, name: str) -> tuple[str, ...]:
        """Return the stage and every stage that depends on it, directly or through others."""
        dependent = [self.step(name).name]
        for step in self.steps:
            if any(reference.stage in dependent for _, reference in step.references()):
                dependent.append(step.name)
        return tuple(dependent)

    def locate(self, reference: Reference, out: Path) -> Path:
        """Return the path of an input: below ``out`` if a stage writes it, else beside the recipe or as written.

        Raises FileError for an output of a stage outside ``out``.
        """
        if reference.stage is not None:
            return path_inside(out, reference.text)
        beside_recipe = self.path.parent / reference.text
        is_there = beside_recipe.exists() or bool(matching_files(beside_recipe, ROW_SUFFIXES))
        return beside_recipe if is_there else Path(reference.text)


def stage_verbs() -> tuple[str, ...]:
    """Return the verbs that a recipe can name: the stages that read and write files and leave a record."""
    verbs = (name.replace("_", "-") for _, name, _ in pkgutil.iter_modules(stages.__path__))
    # Those of people need packages that may be absent: their names alone are read.
    return tuple(sorted({*people_stages(), *(verb for verb in verbs if _stage_function(verb) is not None)}))


def people_stages() -> tuple[str, ...]:
    """Return the names of the stages in which people work."""
    modules = pkgutil.iter_modules(importlib.import_module(PEOPLE_STAGES).__path__)
    return tuple(sorted(name for _, name, _ in modules if not name.startswith("_")))


def stage_call(verb: str, *, where: str) -> StageCall:
    """Return the stage of a verb. Raises ConfigError with the nearest verb for one that does not exist."""
    function = _stage_function(verb)
    if function is None:
        raise ConfigError(f"there is no stage {verb!r}", where=where, allowed=choices(verb, stage_verbs()))
    hints = get_type_hints(function)
    inputs = {
        name: StageInput(name, _accepts(hints[name]), parameter.default is inspect.Parameter.empty)
        for name, parameter in inspect.signature(function).parameters.items()
        if name not in _NO_INPUTS | _BATCH_INPUTS and not _is_of_one_run(hints[name])
    }
    hooks = vars(importlib.import_module(function.__module__))
    check_settings = hooks.get("check_settings")
    if check_settings is not None and check_settings.__module__ != function.__module__:
        check_settings = None  # imported, for the stage itself
    if verb not in people_stages():
        return StageCall(verb, function, hints["config"], inputs, check_settings=check_settings)
    live_hashes = hooks.get("live_hashes")
    return StageCall(verb, function, hints["config"], inputs, live_hashes, check_settings, waits_for="people")


def _stage_function(verb: str) -> Callable[..., Run] | None:
    """Return the function of a stage with an output folder and a Run as result; null for other stages."""
    name = verb.replace("-", "_")
    if verb in people_stages():
        package = PEOPLE_STAGES
    elif "_" in verb or name not in {name for _, name, _ in pkgutil.iter_modules(stages.__path__)}:
        return None
    else:
        package = stages.__name__
    module = importlib.import_module(f"{package}.{name}")
    # A verb whose command writes a single file has a function of its own for the folder of a stage.
    function = getattr(module, f"{name}_stage", getattr(module, name, None))
    if not inspect.isfunction(function):
        return None
    hints = get_type_hints(function)
    returned = hints.get("return")
    # A stage with a dry run returns a run, or what the run would do.
    members = typing.get_args(returned) if typing.get_origin(returned) in (typing.Union, UnionType) else (returned,)
    returns_run = any(Run in (member, typing.get_origin(member)) for member in members)
    return function if returns_run and {"out", "config"} <= hints.keys() else None


def _is_of_one_run(hint: Any) -> bool:
    """Return whether a parameter is a switch or a number, as the ceilings of `judge`: they belong to the command."""
    return not {hint, *typing.get_args(hint)}.isdisjoint({bool, int, float})


def _accepts(hint: Any) -> Accepts:
    args = typing.get_args(hint)
    (kind,) = [arg for arg in args if arg is not type(None)] if type(None) in args else [hint]
    if kind is str:
        return "name"
    if kind is Path:
        return "file"
    assert typing.get_origin(kind) is Sequence, f"a recipe cannot give {kind}"
    return "files"


def find_recipe(name: str) -> Path:
    """Return the file of this name, or the installed recipe. Raises FileError naming those recipes.

    A folder of that name does not count: it holds an earlier run of the recipe.
    """
    if Path(name).is_file() or Path(name).suffix.lower() == ".toml":
        check_readable(Path(name))
        return Path(name)
    shipped = {path.stem: path for folder in _SHIPPED for path in sorted(folder.glob("*.toml"))}
    if name not in shipped:
        raise FileError("there is no such recipe", where=name, allowed=f"a .toml file, or {choices(name, shipped)}")
    return shipped[name]


def experiment_config(path: Path) -> tuple[str, str] | None:
    """Return the module and the name of the Config of the experiment that a file describes; null for a recipe.

    Raises ConfigError with the nearest name for an unknown experiment.
    """
    name = read_toml(path).get("experiment")
    if name is not None and name not in EXPERIMENTS:
        raise ConfigError(f"there is no experiment {name!r}", where=str(path), allowed=choices(str(name), EXPERIMENTS))
    return None if name is None else EXPERIMENTS[name]


def read_recipe(path: Path, settings: JsonObject | None = None, *, seed: int | None = None) -> Recipe:
    """Return the recipe of a file. ``settings`` (stage, then key) override its own; ``seed`` overrides its seed.

    A key is a setting of the stage, or the name of an input (``model`` of a training).

    Raises ConfigError for unknown stages, verbs, inputs or settings, with the line of each, and for stages that wait
    for each other.
    """
    with toml_places(path):
        return build_recipe(read_toml(path), path, settings, seed=seed)


def build_recipe(
    content: JsonObject, path: Path, settings: JsonObject | None = None, *, seed: int | None = None
) -> Recipe:
    """Return the recipe of a decoded file, or one made from an experiment; files are searched beside ``path``.

    Raises as `read_recipe` does.
    """
    _check_keys(content, _KEYS, str(path))
    tables = content.get("stages")
    if not isinstance(tables, dict) or not tables or not all(isinstance(table, dict) for table in tables.values()):
        raise ConfigError("a recipe without stages", where=str(path), allowed=_CONTENTS)
    folders: dict[str, str] = {}
    for name in tables:
        # A stage's name is a folder directly in --out.
        if not name or name.startswith(".") or "/" in name or "\\" in name or not name.isprintable():
            allowed = "the name of a folder, which begins with no ."
            raise ConfigError(f"a stage named {name!r}", where=f"{path} at stages", allowed=allowed)
        # Windows and macOS keep one folder for names that differ in case or Unicode form alone.
        first = folders.setdefault(name_key(name), name)
        if first != name:
            problem = f"stages {first!r} and {name!r} differ in case or Unicode form alone"
            raise ConfigError(problem, where=f"{path} at stages", do="give one of them another name")
    overrides = dict(settings or {})
    for name in overrides:
        if name not in tables:
            do = Advice("write ", Remedy("seed", NUMBER)) if name == "seed" else None
            do = "write STAGE.KEY=VALUE, without stages and config" if name == "stages" else do
            problem = f"the recipe has no stage {name!r}"
            raise ConfigError(problem, where="settings", allowed=choices(name, tables), do=do)
    shared = content.get("seed") if seed is None else seed
    steps: dict[str, Step] = {}
    faults = Faults("stages of the recipe are wrong", ConfigError, is_once=True)
    for name, table in tables.items():
        where = f"{path} at stages.{name}"
        changed = overrides.get(name, {})
        with faults.gathered(), toml_places(path):
            if table.get("verb") == "evaluate":
                table, changed = _with_bench_kind(table, changed, tables, path.parent, where)  # noqa: PLW2901
            steps[name] = _step(name, table, changed, stages=tables, seed=shared, where=where)
    faults.check()
    return Recipe(path, str(content.get("about", "")), tuple(steps[name] for name in _ordered(steps, path)))


def _step(name: str, table: JsonObject, settings: Any, *, stages: JsonObject, seed: int | None, where: str) -> Step:
    if not isinstance(table.get("verb"), str):
        raise ConfigError("a stage without a verb", where=where, do='add verb = "resolve", or another stage')
    call = stage_call(table["verb"], where=where)
    changed = settings if isinstance(settings, dict) else {}
    # An override may name an input. A setting of that name, such as the model's, has settings of its own.
    keys = {field.name for field in msgspec.structs.fields(call.config_type)}
    names = call.inputs.keys() | {"batch"}
    changed_inputs = {
        key: value for key, value in changed.items() if key in names and not (key in keys and isinstance(value, dict))
    }
    for key in changed:
        if key not in keys | names:
            do = f"write {name}.KEY=VALUE, without config" if key == "config" else None
            problem = f"unknown setting or input {key!r}"
            raise ConfigError(problem, where=where, allowed=choices(key, keys | names), do=do)
    table = {**table, **changed_inputs}
    _check_keys(table, call.keys, where)
    absent = [key for key, stage_input in call.inputs.items() if stage_input.is_required and key not in table]
    if absent:
        is_name = call.inputs[absent[0]].accepts == "name"
        example = '"STAGE", a folder or a kind' if is_name else '"STAGE/cases.jsonl", or a file'
        problem = f"the stage {call.verb!r} needs {' and '.join(absent)}"
        raise ConfigError(problem, where=where, do=f"add {absent[0]} = {example}")
    inputs = {
        key: _references(stage_input, table[key], stages, where)
        for key, stage_input in call.inputs.items()
        if key in table
    }
    shared = {"seed": seed} if seed is not None and "seed" in keys else {}
    changed_settings = {key: value for key, value in changed.items() if key not in changed_inputs}
    values = shared | _config_table(table, where) | changed_settings
    config = resolve_config(call.config_type, values, where=f"{where}.config")
    return Step(name, call, config, inputs, _num_threads(table, where), _batch_folder(table, stages, where))


def _with_bench_kind(
    table: JsonObject, changed: Any, stages: JsonObject, folder: Path, where: str
) -> tuple[JsonObject, JsonObject]:
    """Return the table and the overrides of an evaluation with plain files, and the kind of ``[KIND=]FILE`` as setting.

    Raises ConfigError for two kinds: a bench of one kind has one headline.
    """
    changed = changed if isinstance(changed, dict) else {}
    values = {key: changed.get(key, table.get(key)) for key in ("benches", "human", "judged")}
    lists = {key: value if isinstance(value, list) else [value] for key, value in values.items() if value}
    if not all(isinstance(text, str) for texts in lists.values() for text in texts):
        return table, changed

    def is_path(text: str) -> bool:
        return text.split("/", maxsplit=1)[0] in stages or (folder / text).exists() or Path(text).exists()

    by_key = {key: split_kinds(texts, is_path=is_path) for key, texts in lists.items()}
    files = {key: [file for texts in by_kind.values() for file in texts] for key, by_kind in by_key.items()}
    kinds = {kind for by_kind in by_key.values() for kind in by_kind}
    if files == lists and kinds <= {PLAIN_KIND}:
        return table, changed
    config = _config_table(table, where) | changed
    set_kind = config.get("bench_kind")
    kinds = (kinds - {PLAIN_KIND} if set_kind else kinds) | ({set_kind} if set_kind else set())
    if len(kinds) > 1:
        problem = f"two kinds of bench in one stage: {', '.join(sorted(kinds))}"
        raise ConfigError(problem, where=where, do="make a stage for each kind")
    plain = {key: texts if isinstance(values[key], list) else texts[0] for key, texts in files.items()}
    (kind,) = kinds
    return table | plain, {key: value for key, value in changed.items() if key not in plain} | {"bench_kind": kind}


def _references(stage_input: StageInput, value: Any, stages: JsonObject, where: str) -> tuple[Reference, ...]:
    texts = value if stage_input.accepts == "files" and isinstance(value, list) else [value]
    if not texts or not all(isinstance(text, str) and text for text in texts):
        allowed = "texts in a list" if stage_input.accepts == "files" else "one text"
        raise ConfigError(f"{stage_input.name} names no files", where=where, allowed=allowed)
    return tuple(Reference(text, first if (first := text.split("/")[0]) in stages else None) for text in texts)


def _config_table(table: JsonObject, where: str) -> JsonObject:
    value = table.get("config", {})
    if not isinstance(value, dict):
        problem = f"config must be a table, got {value!r}"
        raise ConfigError(problem, where=where, do="write [stages.NAME.config] and the settings below it")
    return value


def _batch_folder(table: JsonObject, stages: JsonObject, where: str) -> str | None:
    """Return the name of a stage's folder of batch files. Raises ConfigError for a name that a folder cannot have."""
    name = table.get("batch")
    if name is None:
        return None
    if not isinstance(name, str) or not name or name.startswith(".") or "/" in name or name in stages:
        allowed = "a name that no stage has; the folder is beside the stages' folders"
        raise ConfigError(f"batch files in a folder {name!r}", where=where, allowed=allowed)
    return name


def _num_threads(table: JsonObject, where: str) -> int | None:
    number = table.get("num_threads")
    if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
        raise ConfigError(f"num_threads must be a positive integer, got {number!r}", where=where)
    return number


def _ordered(steps: Mapping[str, Step], path: Path) -> list[str]:
    """Return the names in the order of the recipe, each after its dependencies. Raises ConfigError naming a circle."""
    before = {
        name: [reference.stage for _, reference in step.references() if reference.stage] for name, step in steps.items()
    }
    try:
        TopologicalSorter(before).prepare()
    except CycleError as error:
        circle = " reads ".join(reversed(error.args[1]))
        raise ConfigError(f"stages that wait for each other: {circle}", where=str(path)) from error
    ordered: list[str] = []
    while len(ordered) < len(before):
        ordered.append(next(name for name in before if name not in ordered and {*before[name]} <= {*ordered}))
    return ordered


def _check_keys(table: JsonObject, allowed: set[str], where: str) -> None:
    for key in table:
        if key not in allowed:
            raise ConfigError(f"unknown key {key!r}", where=where, allowed=choices(key, allowed), key=key)
