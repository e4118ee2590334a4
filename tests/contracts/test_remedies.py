"""What an error tells to do works when it is pasted: names exist, and the commands run that errors lead to."""

import ast
import inspect
import json
import re
import shlex
import tomllib
from functools import cache
from importlib import import_module

import msgspec
import pytest
from typer.main import get_command

import tiny
from example_folder import done, invoke
from package_source import ROOT, imports, sources
from recipe_files import small_recipe
from steelyard.cli.main import build_app, verbs_by_name
from steelyard.cli.verb import FunctionVerb, StageVerb, VerbGroup, fitted_remedy
from steelyard.core.errors import EXTRAS, UserError
from steelyard.core.plugins import kinds, load
from steelyard.io.cases import read_cases
from steelyard.networks.conversation import Rendering, encode
from steelyard.networks.loading import load_tokenizer
from steelyard.recipes.recipe import stage_call, stage_verbs

BY_NAME = ("evaluate", "score", "supervise", "judge", "filter-study", "train", "convert", "resolve")
"""Verbs that build plug-ins by name."""
OTHER_PROGRAMS = re.compile(r"`(?!steelyard)[^`]*`|(pip|ray|hf|git|wandb) [^;:,]*")


def words_of(node):
    """The literal words of an expression; ``X`` stands for what is known only when it runs."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(words_of(one) for one in node.values)
    if isinstance(node, ast.BinOp):
        return words_of(node.left) + words_of(node.right)
    if isinstance(node, ast.IfExp):
        return f"{words_of(node.body)} {words_of(node.orelse)}"
    return "X"


def remedies():
    """Every text that is given as ``do=``, or named ``do`` first, with its place."""
    found = {}
    for source in sources():
        for node in source.nodes:
            if isinstance(node, ast.keyword) and node.arg == "do":
                found[f"{source.module}:{node.value.lineno}"] = words_of(node.value)
            elif isinstance(node, ast.Assign) and any(getattr(one, "id", None) == "do" for one in node.targets):
                found[f"{source.module}:{node.lineno}"] = words_of(node.value)
    return {place: OTHER_PROGRAMS.sub("", text) for place, text in found.items()}


@pytest.fixture(scope="module")
def verbs():
    """By verb its options, by group those of all its verbs."""
    commands = get_command(build_app()).commands
    parts = {name: (verb, *getattr(verb, "commands", {}).values()) for name, verb in commands.items()}
    return {name: {option for part in of for own in part.params for option in own.opts} for name, of in parts.items()}


@pytest.fixture(scope="module")
def settings():
    """By verb its settings; and by the table that a kind has in them (``model``, ``judge``, ``chat``) those of all."""
    configs = {verb: stage_call(verb, where="").config_type for verb in stage_verbs()}
    configs["inspect"] = import_module("steelyard.stages.inspect").Config
    configs |= {verb: import_module(declaration.config[0]).Config for verb, declaration in stage_declarations().items()}
    tables = {"model": "models", "judge": "judges", "chat": "chats"}
    own = {verb: fields(config) for verb, config in configs.items()}
    own["convert"] |= set().union(*(fields(load("formats", kind).Config) for kind in kinds("formats")))
    nested = {table: set().union(*(fields(load(room, kind).Config) for kind in kinds(room)))
              for table, room in tables.items()}  # fmt: skip
    return own, nested


def fields(config):
    return {field.encode_name for field in msgspec.structs.fields(config)}


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


def test_every_option_that_a_remedy_names_is_one_of_its_verb(verbs):
    texts = remedies()
    assert len(texts) > 200
    wrong = []
    for place, text in texts.items():
        called = re.findall(r"steelyard ([a-z-]+)", text)
        wrong += [f"{place}: no verb {one}" for one in called if one not in verbs]
        by_verb = verbs_of(place.partition(":")[0])
        of_called = set().union(*(verbs.get(one, set()) for one in called))
        # Every command has --help.
        for option in re.findall(r"(?<![\w-])(--(?!help\b)[a-z][a-z-]+)", text):
            has = [option in of_called or option not in fitted_remedy(text, verbs[one], verb=one)
                   or option in verbs[one] for one in by_verb]  # fmt: skip
            wrong += [] if any(has) else [f"{place}: {option} is no option of {by_verb}"]
        bare = re.findall(r"(?<!--set )(?<!--set ')(?<!--bench )(?<![\w.])((?:model|judge|chat)\.\w+)=", text)
        wrong += [f"{place}: {one} cannot be pasted without --set" for one in bare]
    assert wrong == []


def test_every_setting_that_a_remedy_names_is_one_of_its_verb(verbs, settings):
    own, nested = settings
    wrong = []
    for place, text in remedies().items():
        names = re.findall(r"--set '?([\w.]+)", text)
        for verb in verbs_of(place.partition(":")[0]) if names else ():
            shown = re.findall(r"--set '?([\w.]+)", fitted_remedy(text, verbs[verb], verb=verb))
            if all(known(name, own.get(verb, set()), nested) for name in shown):
                break
        else:
            wrong += [f"{place}: {names}"] if names else []
    assert wrong == []


def known(name, own, nested):
    """Whether a verb has this setting; what is known only when it runs (``X``, ``KEY``, a label) may be any."""
    first, _, rest = name.partition(".")
    if first in ("X", "KEY", "labels"):
        return True
    return first in own and (not rest or rest.rpartition(".")[2] in set().union({"KEY"}, *nested.values()))


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


def test_remedies_are_fitted_to_the_verb():
    model = {"--set", "--out"}
    assert fitted_remedy("name one: --chat-template plain, or a Jinja file", model, verb="inspect") == (
        "name one: --set model.chat_template=plain, or a Jinja file"
    )
    assert fitted_remedy("say --max-length 12", model | {"--max-length"}, verb="evaluate") == "say --max-length 12"
    judge = "say --set judge.max_tokens=N with more, or --set allow_even=true"
    assert fitted_remedy(judge, model, verb="judge") == judge
    assert fitted_remedy(judge, model, verb="evaluate") == (
        "say --set model.judge.max_tokens=N with more, or --set model.allow_even=true"
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A simulated bench and its training cases, backbones, a model, and evaluations that do not belong together."""
    made = tmp_path_factory.mktemp("remedies")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        done(
            "simulate", "--out", "sim", "--set", "num_prompts=48", "--set", "test_share=0.34", "--set", "llm_share=0.5"
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
    (f"{TRAIN} --model base --set save_adapter=adapter", r"(--set adapter=lora)", ""),
    (f"{TRAIN} --model base --lr 1e-4", r"(--learning-rate) VALUE", "--lr"),
    (f"{TRAIN} --model base --lr-scheduler-type linear", r"(--set schedule=)VALUE", "--lr-scheduler-type "),
    (f"{TRAIN} --model base --set lr=1e-4", r"did you mean '(learning_rate)'", "lr"),
    ("convert sim/cases.jsonl small.toml.jsonl", r"(--to) KIND", "VALUE trl"),
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
    ("debias ranked/cases.jsonl --out OUT --pairs listed", r"(--set pairs=tiers)", "--pairs listed"),
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


@pytest.mark.parametrize(("command", "remedy", "replaced"), REFUSED)
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
