"""What an error tells to do works when it is pasted: names exist, and the commands run that errors lead to."""

import ast
import inspect
import json
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
import tiny
from example_folder import done, invoke
from package_source import ROOT, imports, sources
from recipe_files import small_recipe
from steelyard.api.wording import python_words
from steelyard.cli.main import build_app, verbs_by_name
from steelyard.cli.stage_verb import StageVerb
from steelyard.cli.verb import FunctionVerb, VerbGroup
from steelyard.cli.wording import options_of
from steelyard.core.errors import EXTRAS, UserError
from steelyard.core.plugins import kinds, load
from steelyard.core.remedies import Command, Placeholder, Remedy
from steelyard.core.settings_help import read_parameters, read_settings
from steelyard.io.cases import read_cases
from steelyard.io.verbs import stage_verbs
from steelyard.networks.conversation import Rendering, encode
from steelyard.networks.loading import load_tokenizer

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


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A simulated bench and its training cases, backbones, a model, and evaluations that do not belong together."""
    made = tmp_path_factory.mktemp("remedies")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        done(
            "demo",
            "--data",
            "--out",
            "sim",
            "--set",
            "num_prompts=48",
            "--set",
            "test_share=0.34",
            "--set",
            "llm_share=0.5",
        )
        done("resolve", "sim/cases.jsonl", "--out", "ranked")
        for name, template in (("base", tiny.CHATML), ("bare", None)):
            tiny.save_base(made / name, **({} if name == "base" else {"template": template}))
        tiny.save_classifier(made / "untold", template=None)
        done("train", "ranked/cases.jsonl", "--model", "base", "--out", "model", "--epochs", 1, "--max-length", 2048)
        done("score", "sim/test.jsonl", "--model", "longer", "--out", "scored")
        lines = [json.loads(line) for line in (made / "scored" / "scores.jsonl").read_text("utf-8").splitlines()]
        name = next(iter(lines[0]["scores"]))
        lines[0] |= {"scores": lines[0]["scores"] | {name: None}, "unscored": {name: "lost"}}
        (made / "lost.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
        for name, more in (("cut", ["--over-length", "left"]), ("left-out", [])):
            words = ["--bench", "sim/test.jsonl", "--model", "model", "--set", "num_resamples=20"]
            done("evaluate", *words, "--out", name, "--max-length", limit(made, "sim/test.jsonl"), *more)
        (made / "votes.csv").write_text("Frage,Text A,Text B,Wer?\n问 x,好,坏,a\nq,x,y,tie\n", "utf-8")
        (made / "labels.csv").write_text("q,a,b,winner\n问,好,坏,1\n说,x,y,0\n", "utf-8")
        (made / "texts.csv").write_text("Anfrage,Nummer\n问,3\n", "utf-8")
        (made / "found.jsonl").write_text('{"prompt": "q", "note": "n"}\n')
        small_recipe(made)
        done("run", "small.toml", "--out", "whole")
    return made


def limit(folder, name):
    """One token less than the longest conversation of the cases has."""
    tokenizer = load_tokenizer(str(folder / "base"))
    rendering = Rendering(template=tokenizer.chat_template, max_length=10**6)
    cases = list(read_cases(folder / name))
    return max(encode(tokenizer, rendering, case, one).length for case in cases for one in case.responses) - 1


LONG = "--over-length refuse --max-length LIMIT"
TRAIN = "train ranked/cases.jsonl --epochs 1 --out OUT"
EVALUATE = "evaluate --bench sim/test.jsonl --set num_resamples=20 --out OUT"
# What is refused; what the remedy says to write, as an expression with one group; and what of the command it replaces,
# or ``what => by what`` where the remedy is a sentence.
REFUSED = [
    (f"{TRAIN} --model bare", r"(--chat-template plain)", ""),
    (f"{EVALUATE} --model ./untold", r"(--chat-template plain)", ""),
    ("score sim/test.jsonl --model ./untold --out OUT", r"(--chat-template plain)", ""),
    (f"{TRAIN} --model base {LONG}", r"(--over-length unscored)", "--over-length refuse"),
    (f"{EVALUATE} --model model {LONG}", r"(--over-length left)", "--over-length refuse"),
    (f"{EVALUATE} --model model {LONG}", r"(--max-length \d+)", "--max-length LIMIT"),
    (f"score sim/test.jsonl --model model --no-self-test --out OUT {LONG}",
     r"(--max-length \d+)", "--max-length LIMIT"),
    (f"{TRAIN} --model base --held-out ranked/cases.jsonl", r"(--allow-overlap)", ""),
    ("evaluate --bench ranked/cases.jsonl --model model --set num_resamples=20 --out OUT",
     r"(--set allow_overlap=true)", ""),
    (f"{EVALUATE} --scores lost.jsonl", r"(--allow-unscored)", ""),
    (f"{EVALUATE} --model ngram", r"(--train-cases) FILE", "VALUE ranked/cases.jsonl"),
    ("score sim/test.jsonl --model ngram --out OUT", r"(--set model.train)=FILE", "VALUE=ranked/cases.jsonl"),
    (f"{TRAIN} --model base --set save_adapter=adapter", r"(--adapter lora)", ""),
    (f"{TRAIN} --model base --lr 1e-4", r"(--learning-rate) VALUE", "--lr"),
    (f"{TRAIN} --model base --lr-scheduler-type linear", r"(--set schedule=)VALUE", "--lr-scheduler-type "),
    (f"{TRAIN} --model base --set lr=1e-4", r"did you mean '(learning_rate)'", "lr"),
    ("convert sim/cases.jsonl small.toml.jsonl", r"(--to) KIND", "VALUE cheems"),
    ("convert votes.csv OUT.jsonl", r"steelyard convert votes.csv cases.jsonl (.*)", ""),
    ("convert texts.csv OUT.jsonl", r"steelyard convert texts.csv cases.jsonl (.*)", ""),
    ("convert labels.csv OUT.jsonl --prompt-column q --first-column a --second-column b --label-column winner",
     r"(--set labels.1=left --set labels.0=right)", ""),
    ("convert found.jsonl OUT.jsonl", r"(--from prompts) if", ""),
    ("resolve ranked/cases.jsonl --out scored --only kind=human", r"(--force)", ""),
    ("leaderboard cut left-out --out OUT --set num_resamples=50", r"(--set 'allow_differing=.*?')", ""),
    ("inspect ranked --model model", r"(--id) ID", "VALUE en-understanding-06"),
    ("supervise sim/llm.jsonl --model longer --out OUT --min-margin 0.5 --policy cycles",
     r"(--policy agree)", "--policy cycles"),
    ("train sim/cases.jsonl --model base --out OUT", r"(steelyard resolve .* --out resolved)", "ALL"),
    ("inspect ranked --id en-understanding-06 --model bare --tokens", r"(--set model.chat_template=plain)", ""),
    ("debias ranked/cases.jsonl --out OUT --pairs listed", r"(--pairs tiers)", "--pairs listed"),
    (f"{EVALUATE} --model panel", r"(--set 'model.members=.*?')", ""),
    ("run small.toml --out whole --set made.num_prompts=24", r"(--from made)", ""),
    ("score sim/test.jsonl --model features --set model.cache=kept --out OUT", r"(--set model.path)=FOLDER",
     "VALUE=base --set model.train=ranked/cases.jsonl"),
    ("score sim/test.jsonl --model features --set model.cache=kept --set model.path=base --out OUT",
     r"(--set model.train)=FILE", "VALUE=ranked/cases.jsonl"),
    ("evaluate --bench sim/test.jsonl --set num_resamples=20 --out OUT", r"(--model) M", "VALUE longer"),
    ("evaluate --bench sim/test.jsonl --set num_resamples=20 --out OUT", r"(--scores) FILE",
     "VALUE lost.jsonl --allow-unscored"),
    ("resolve ranked/cases.jsonl --out OUT --only kind", r"--only (kind=)NAME", "--only kind => --only kind=human"),
    ("inspect ranked --id en-understanding-06 --tokens", r"(--model) FOLDER", "VALUE base"),
    ("inspect ranked --id nobody", r"without (--id)", "--id nobody => "),
    ("supervise sim/llm.jsonl --model ngram --out OUT --min-margin 0.5", r"(--set model.train)=FILE",
     "VALUE=ranked/cases.jsonl"),
    ("supervise sim/llm.jsonl --model longer --scores scored/scores.jsonl --out OUT --min-margin 0.5",
     r"give (a reward model)", "--scores scored/scores.jsonl => "),
]  # fmt: skip


def marked(refused):
    """The remedies to paste; those of commands that load a model are slow."""
    for case in refused:
        yield pytest.param(*case, marks=pytest.mark.slow) if re.search(r"--model (?!longer|M\b)", case[0]) else case


@pytest.mark.parametrize(("command", "remedy", "replaced"), list(marked(REFUSED)))
def test_the_remedy_of_an_error_works_when_it_is_pasted(command, remedy, replaced, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    file = "ranked/cases.jsonl" if command.startswith("train") else "sim/test.jsonl"
    values = {"OUT": str(tmp_path / "out"), "LIMIT": str(limit(folder, file)) if "LIMIT" in command else ""}

    def filled(words):
        return words.replace("OUT", values["OUT"]).replace("LIMIT", values["LIMIT"])

    refused = invoke(shlex.split(filled(command)))
    assert isinstance(refused.exception, UserError), (refused.output, refused.exception)
    found = re.search(remedy, f"{refused.exception}\n{refused.output}", flags=re.DOTALL)
    assert found, str(refused.exception)
    if replaced == "ALL":
        again = found[1].removeprefix("steelyard ")
    elif " => " in replaced:
        again = filled(command).replace(*replaced.split(" => "))
    elif replaced.startswith("VALUE"):
        again = f"{filled(command)} {found[1]}{replaced.removeprefix('VALUE')}"
    elif replaced:
        again = filled(command).replace(filled(replaced), found[1])
    else:
        again = f"{filled(command)} {found[1]}"
    pasted = invoke(shlex.split(again))
    assert pasted.exit_code == 0, (again, pasted.output, pasted.exception)
