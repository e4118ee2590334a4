"""Every remedy and every command that errors of the source name is one of its verb, and is worded there.

That they work when they are pasted: `tests/contracts/test_remedies.py`.
"""

import ast
import inspect
import re
import shlex
import tomllib
from functools import cache, reduce
from importlib import import_module
from typing import Any, NamedTuple

import msgspec
import pytest
from typer.main import get_command

import steelyard as sy
from package_source import ROOT, imports, sources
from steelyard.api.wording import python_words
from steelyard.cli.main import build_app, verbs_by_name
from steelyard.cli.stage_verb import StageVerb
from steelyard.cli.verb import FunctionVerb, VerbGroup
from steelyard.cli.wording import options_of
from steelyard.core.errors import EXTRAS
from steelyard.core.plugins import kinds, load
from steelyard.core.remedies import Command, Placeholder, Remedy
from steelyard.core.settings_help import read_parameters, read_settings
from steelyard.io.verbs import stage_verbs

BY_NAME = ("evaluate", "score", "supervise", "judge", "train", "convert", "resolve")
"""Verbs that build plug-ins by name."""
TABLES = {"model": "models", "judge": "judges", "chat": "chats", "bench": "benches"}
"""By table of settings the package whose kinds it may have."""
PLAIN = {
    "inspect": ("steelyard.stages.inspect", "Config"),
    "workbench import": ("steelyard.workbench.pipeline.projects", "ProjectSettings"),
}
"""Where the settings of verbs are that declare no stage."""


class Named(NamedTuple):
    """A remedy of the source: its place, the names that its setting may have, and its value."""

    place: str
    settings: tuple[str, ...]
    value: object


class Called(NamedTuple):
    """A command of the source, whose ``changes`` are remedies of its verb."""

    place: str
    verb: str
    num_arguments: int
    changes: tuple[Named, ...]


OPEN = object()
"""A value that is known only when the program runs, or that the user chooses."""
OF_RECIPES = ("demo", "run", "view")
"""Verbs that run others."""
MADE = {
    "max_X": ("max_cost", "max_failed", "max_hours"),
    "X_column": tuple(f"{part}_column" for part in ("prompt", "chosen", "first", "label", "response", "rating")),
    "X.secret": ("chat.secret",),
    "labels.X": ("labels.1",),
    "model.X": ("model.path",),
    **{f"X{name}": (name, f"model.{name}") for name in ("loss", "dimensions", "rating_center")},
    "X": (),
}
"""Settings whose names are made when the program runs, by their form; of none, where they are those of the user."""


def texts_of(node):
    """The texts that an expression may be; ``X`` stands for what is known only when it runs."""
    if isinstance(node, ast.IfExp):
        return [*texts_of(node.body), *texts_of(node.orelse)]
    if isinstance(node, ast.JoinedStr):
        return ["".join(part.value if isinstance(part, ast.Constant) else "X" for part in node.values)]
    return [node.value if isinstance(node, ast.Constant) else "X"]


def value_of(node):
    try:
        return None if node is None else ast.literal_eval(node)
    except ValueError:
        return OPEN


def called(node, name):
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def remedy_of(node, module):
    forms = [one for text in texts_of(node.args[0]) for one in ((text,) if "X" not in text else MADE[text])]
    values = [*node.args[1:2], *(keyword.value for keyword in node.keywords if keyword.arg == "value")]
    return Named(f"{module}:{node.lineno}", tuple(forms), value_of(values[0] if values else None))


@cache
def collected():
    """Every remedy and every command of the source, without those that only word or keep them."""
    remedies, commands = [], []
    for source in sources():
        if source.parts[:1] in (("cli",), ("api",)) or source.module == "steelyard.core.remedies":
            continue
        inner = set()
        for node in source.nodes:
            if called(node, "Command"):
                below = [one for one in ast.walk(node) if called(one, "Remedy")]
                inner |= set(map(id, below))
                changes = tuple(remedy_of(one, source.module) for one in below)
                arguments = [one for part in node.args[1:2] for one in getattr(part, "elts", ())]
                num_arguments = sum(getattr(one, "id", "") != "ANY" for one in arguments)
                place = f"{source.module}:{node.lineno}"
                commands.append(Called(place, value_of(node.args[0]), num_arguments, changes))
        remedies += [
            remedy_of(node, source.module)
            for node in source.nodes if called(node, "Remedy") and id(node) not in inner
        ]  # fmt: skip
    return remedies, commands


@pytest.fixture(scope="module")
def root():
    return get_command(build_app())


@cache
def settings_of(verb):
    """The types of the settings of a verb by dotted name; in the table of a kind they are those of all kinds."""
    if verb in PLAIN:
        config = import_module(PLAIN[verb][0]).__dict__[PLAIN[verb][1]]
    elif verb in stage_declarations():
        config = import_module(stage_declarations()[verb].config[0]).Config
    else:
        return {}
    types = {}
    for name, kind in fields(config):
        types.setdefault(name, []).append(kind)
    more = [(f"{table}.{name}", kind) for table in TABLES if table in types for name, kind in kinds_of_table(table)]
    if verb == "convert":
        more = [one for kind in kinds("formats") for one in fields(load("formats", kind).Config)]
    for name, kind in more:
        types.setdefault(name, []).append(kind)
    return types


def kinds_of_table(table):
    """The settings of every kind that a table may have, with those of the judge and the chat of a model."""
    own = [one for kind in kinds(TABLES[table]) for one in fields(load(TABLES[table], kind).Config)]
    below = ("judge", "chat") if table == "model" else ()
    return [*own, *((f"{one}.{name}", kind) for one in below for name, kind in kinds_of_table(one))]


def fields(config, prefix=""):
    """The settings of a Config with their types, and those of Configs in it."""
    for field in msgspec.structs.fields(config):
        yield f"{prefix}{field.encode_name}", field.type
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            yield from fields(field.type, f"{prefix}{field.encode_name}.")


@cache
def stage_declarations():
    """By verb what it declares of its stage."""
    return {name: verb for name, verb in verbs_by_name().items() if isinstance(verb, StageVerb)}


@cache
def reached():
    """By verb the modules that its stage or its function imports, directly or through others."""
    by_module = {source.module: source for source in sources()}
    direct = {}
    for module, source in by_module.items():
        targets = {one.target for one in imports(source)}
        direct[module] = {name for one in targets for name in (one, one.rpartition(".")[0]) if name in by_module}
    found = {}
    for name, verb in verbs_by_name().items():
        waiting, seen = imported_by(verb), set()
        while waiting:
            module = waiting.pop()
            waiting += direct.get(module, set()) - seen
            seen.add(module)
        found[name] = seen
    return found


def imported_by(verb):
    """The module of a verb's settings, or those that its function imports."""
    if isinstance(verb, VerbGroup):
        return [module for inner in verb.verbs for module in imported_by(inner)]
    if verb.config is not None:
        return [verb.config[0]]
    function = ast.parse(inspect.getsource(verb.run))
    return [node.module for node in ast.walk(function) if isinstance(node, ast.ImportFrom)]


def verbs_of(module):
    """The verb of a stage, the verbs of a file of the command line, or the group of which it has a part.

    Of what verbs share: those that import it.

    Plug-ins are built by name, by any verb that scores or asks.
    """
    parts = module.split(".")
    if parts[1:3] == ["cli", "verbs"]:
        values = vars(import_module(module)).values()
        own = [value.name for value in values if isinstance(value, StageVerb | FunctionVerb | VerbGroup)]
        groups = [verb for verb in verbs_by_name().values() if isinstance(verb, VerbGroup)]
        return own or [group.name for group in groups if module in {inner.run.__module__ for inner in group.verbs}]
    if parts[1] == "stages" and (own := parts[2].replace("_", "-")) in reached():
        return [own]
    found = [verb for verb, modules in reached().items() if module in modules]
    return [*found, *BY_NAME] if parts[1] == "plugins" else found or list(reached())


def problem_of(named, verb, root):
    """Why a remedy is none of the verb; null if its setting exists there, its value is allowed and both are worded."""
    command = command_of(verb, root)
    setting = named.settings[0]
    value = Placeholder("VALUE") if named.value is OPEN else named.value
    words = shlex.split(options_of(command, root)(Remedy(setting, value)))
    options = {option for parameter in command.params for option in parameter.opts}
    arguments = {parameter.metavar or parameter.name.upper() for parameter in command.params}
    if words[0] == "--set":
        key = words[1].partition("=")[0]
        if key.startswith("labels."):
            key, _, label = key.partition(".")
            named = named if named.value is OPEN else named._replace(value={label: named.value})
        types = settings_of(verb).get(key)
    elif words[0] in options or words[0] in arguments:
        names = (setting, f"model.{setting}", setting.removeprefix("model."))
        types = next((settings_of(verb)[name] for name in names if name in settings_of(verb)), [object])
    else:
        return f"{words} is no option"
    if types is None:
        return f"{words} is no setting"
    is_open = named.value in (OPEN, None)
    return None if is_open or any(fits(named.value, kind) for kind in types) else f"{words}: {named.value!r} is refused"


def fits(value, kind):
    try:
        msgspec.convert(list(value) if isinstance(value, tuple) else value, kind if kind is not object else Any)
    except msgspec.ValidationError:
        return "=" in str(value)  # KEY=VALUE, which the option reads itself
    return True


def command_of(verb, root):
    return reduce(lambda group, word: group.commands[word], verb.split(), root)


def spelled(verb):
    """The verbs themselves, or those of a group."""
    declared = verbs_by_name()[verb]
    return [f"{verb} {inner.name}" for inner in declared.verbs] if isinstance(declared, VerbGroup) else [verb]


def test_every_remedy_of_the_source_is_one_of_its_verb(root):
    remedies, _ = collected()
    assert len(remedies) > 200
    wrong = []
    for named in remedies:
        module = named.place.partition(":")[0]
        verbs = [inner for verb in verbs_of(module) for inner in spelled(verb)]
        name = module.rpartition(".")[2]
        if (stage := stage_verbs().get(name)) is not None and not stage.is_command:
            place = f"steelyard.stages.{name}"  # worded in recipes and Python alone
            known = {each.name for each in (*read_settings(place), *read_parameters(place, name))}
            wrong += [f"{named.place} {each}" for each in named.settings if each.partition(".")[0] not in known]
            continue
        for setting in named.settings:
            problems = {verb: problem_of(named._replace(settings=(setting,)), verb, root) for verb in verbs}
            wrong += [] if None in problems.values() else [f"{named.place} {setting}: {problems}"]
    assert not wrong, "\n".join(wrong)


def test_every_command_of_the_source_is_one_of_its_verb(root):
    _, commands = collected()
    assert len(commands) > 10
    wrong = []
    for command in commands:
        for change in command.changes:
            problem = problem_of(change, command.verb, root)
            wrong += [] if problem is None else [f"{command.place}: {problem}"]
        num_inputs = sum(one.param_type_name == "argument" for one in command_of(command.verb, root).params)
        wrong += [] if command.num_arguments == 0 or num_inputs else [f"{command.place}: no arguments"]
    assert not wrong, "\n".join(wrong)


def test_every_remedy_of_a_function_is_one_of_its_keywords(root):
    remedies, commands = collected()
    wrong, num_worded = [], 0
    for named in remedies:
        for verb in verbs_of(named.place.partition(":")[0]):
            name = verb.replace("-", "_")
            if (
                not named.settings
                or name not in sy.__all__
                or verb in OF_RECIPES
                or problem_of(named, verb, root) is not None
            ):
                continue
            value = Placeholder("VALUE") if named.value is OPEN else named.value
            signature = inspect.signature(getattr(sy, name)).parameters
            text = python_words(signature)(Remedy(named.settings[0], value))
            given = ast.parse(f"f({text.replace('…', '...')})", mode="eval").body
            keywords = {one.arg for one in given.keywords} | {one.id for one in given.args}
            num_worded += 1
            wrong += [] if keywords <= {*signature} else [f"{named.place}: {name}({text})"]
    assert (wrong, num_worded > 500) == ([], True)
    for command in commands:
        changes = tuple(
            Remedy(one.settings[0], Placeholder("X") if one.value is OPEN else one.value) for one in command.changes
        )
        text = python_words({})(Command(command.verb, tuple("x" * command.num_arguments), changes))
        if text.startswith("sy."):
            call = ast.parse(text, mode="eval").body
            signature = inspect.signature(getattr(sy, call.func.attr))
            signature.bind_partial(*call.args, **{one.arg: one.value for one in call.keywords})


def test_errors_name_a_function_of_python_by_a_command_and_not_by_text():
    functions = [verb for verb in verbs_by_name() if verb.replace("-", "_") in sy.__all__]
    as_text = re.compile(rf"steelyard ({'|'.join(functions)})\b")
    assert as_text.search("rank the cases first: steelyard resolve")
    wrong = [
        f"{source.module}:{node.lineno} {node.value!r}"
        for source in sources()
        if source.parts[:1] not in (("cli",), ("workbench",))
        for statement in source.nodes if isinstance(statement, ast.Raise)
        for node in ast.walk(statement)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and as_text.search(node.value)
    ]  # fmt: skip
    assert wrong == [], "Python would name a command of the terminal"


def test_every_group_that_a_remedy_installs_is_one_of_the_package():
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    named = {
        one
        for source in sources()
        for own in re.findall(r"steelyard\[([a-z,-]+)\]", "\n".join(source.lines))
        for one in own.split(",")
    }
    assert named | set(EXTRAS.values()) <= set(groups)
    assert named
