"""The declaration of a verb, ``VERB`` beside its stage: its command, its Python function and its help are made from it.

The docstring of the stage's function is the help of both. It names settings and inputs as Python does, ``min_margin``;
the command line writes ``--min-margin``. Paragraphs of examples belong to one of the two: "Example: `steelyard …`" to
the command line, ``>>>`` and "Raises …" to Python.
"""

import inspect
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal, NamedTuple

from steelyard.core.errors import ConfigError
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.settings_help import FunctionParameter, read_constant, read_parameters
from steelyard.core.types import JsonObject

_STAGES = "steelyard.stages"
_DECLARATION = re.compile(r"^VERB = (Verb\((?:[^\n]*\)$|.*?^\)$))", re.MULTILINE | re.DOTALL)
Completion = Literal["models", "formats", "benches", "baselines"]
CaseFile = Annotated[Path, "cases"]
"""A case file; in Python also cases in memory."""
ScoreFile = Annotated[Path, "scores"]
"""A file of scores; in Python also scores in memory."""
RunFolder = Annotated[Path, "run"]
"""The folder of a finished run; in Python also its result."""
ModelName = Annotated[str, "model"]
"""A reward model that scores: a folder or a kind; in Python also one that was loaded or trained, or an object."""
BackboneName = Annotated[str, "backbone"]
"""A model to train: a folder or a name on the hub; in Python also the result that made it."""
PlanFile = Annotated[Path, "plan"]
"""A TOML file of tables; in Python also the tables."""
BatchFolder = Annotated[Path, "batch"]
"""The folder of batch files, which outlive a call."""


class Argument(NamedTuple):
    """A positional argument: a parameter of the stage's function. ``metavar`` is its name in the help."""

    name: str
    help: str
    metavar: str | None = None


class Option(NamedTuple):
    """An option for a parameter of the stage's function.

    ``word`` is the option's name where it differs. ``is_text`` passes values on as text: `[KIND=]FILE`.
    ``is_optional``: other options may take its place, which the verb's ``prepare`` checks. ``in_python`` is false for
    what only a command can do.
    """

    name: str
    help: str
    word: str | None = None
    complete: Completion | None = None
    is_text: bool = False
    panel: str | None = None
    is_optional: bool = False
    in_python: bool = True

    @property
    def option(self) -> str:
        """The option as it is typed."""
        return f"--{(self.word or self.name).replace('_', '-')}"


class SettingOption(NamedTuple):
    """An option for a setting. Its type, default and meaning are those of the field.

    ``name`` is a field of the stage's Config, or ``TABLE.FIELD`` of a table in it, whose fields are those of
    ``config``, a module and a name. ``note`` follows the meaning and says how the value is written on the command
    line; ``has_commas``: names with commas between them, or ``none``. ``help`` explains a key without a field.
    """

    name: str
    word: str | None = None
    note: str = ""
    config: tuple[str, str] | None = None
    help: str | None = None
    is_required: bool = False
    has_commas: bool = False
    complete: Completion | None = None
    panel: str | None = None

    @property
    def parameter(self) -> str:
        """The name of the command's parameter."""
        return f"set_{self.name.replace('.', '_')}"

    @property
    def option(self) -> str:
        """The option as it is typed."""
        return f"--{(self.word or self.name.rpartition('.')[2]).replace('_', '-')}"

    @property
    def is_negative(self) -> bool:
        """True for an option that turns off a setting that is on by default."""
        return (self.word or "").startswith("no_")


Part = Argument | Option | SettingOption


class Verb(NamedTuple):
    """A verb that runs one stage, with its inputs and settings that are options, in the order of the help.

    Verbs of a ``group`` are listed by ``order``. ``prepare`` names a function of the stage's module that may change
    the inputs and settings of a command before the Config is made. ``instead`` has switches, such as ``dry_run``, each
    with the function of that module that runs in place of the stage's own, with those of the inputs that it takes.
    Several processes of one ``is_distributed`` verb join before it runs. Without ``is_command`` the verb is a stage of
    recipes and a function of Python only.
    """

    group: str
    order: int
    parts: tuple[Part, ...] = ()
    prepare: str | None = None
    instead: tuple[tuple[str, str], ...] = ()
    is_distributed: bool = False
    is_command: bool = True


def settings(
    *names: str, table: str = "", config: tuple[str, str] | None = None, panel: str | None = None
) -> tuple[SettingOption, ...]:
    """Return plain options for settings, with ``table`` those of a table of that name."""
    return tuple(SettingOption(table + name, config=config, panel=panel) for name in names)


def in_panel(title: str, *options: Option | SettingOption) -> tuple[Option | SettingOption, ...]:
    """Return the options for a panel of the help of its own."""
    return tuple(option._replace(panel=title) for option in options)


CASES = Argument("cases", "The case file.")
BATCH_OPTIONS = (
    Option("batch", "A folder for batch files and their results."),
    Option("release_batch", "Ask the requests of this batch file (or: all) again."),
    Option("any_batch_model", "Read results under another model's name."),
)
"""Use of batch files by a verb that asks models."""
CEILINGS = (
    Option("max_cost", "Stop when the replies cost this much."),
    Option("max_failed", "Stop when more requests than this failed."),
    Option("max_hours", "Stop after so many hours."),
)
"""Limits at which a verb that asks models stops."""
ONLY = SettingOption("only", note="As kind=, judge= or batch=NAME, or evidence=aligned; repeat.")
MODEL = Option("model", "A trained model's folder, or a kind: steelyard list models.", complete="models")
MODEL_SETTINGS = settings(
    "over_length",
    "max_length",
    "chat_template",
    table="model.",
    config=("steelyard.plugins.models.classifier", "Config"),
)
"""Settings by which a scored model reads text, under the names that training has for it."""
SERVER_SETTINGS = tuple(
    SettingOption(f"chat.{name}", word, config=("steelyard.plugins.chats.openai_compatible", "Config"), panel="Server")
    for name, word in (("base_url", "base_url"), ("model", "chat_model"), ("secret", "api_key_variable"))
)
"""The OpenAI-compatible server of a chat."""


@cache
def stage_verbs() -> Mapping[str, Verb]:
    """Return the verb of every stage that declares one, by the name of the stage, in the order of the help.

    No stage is imported, and of its source only the declaration is parsed: a list of verbs is shown at once.
    """
    verbs: dict[str, Verb] = {}
    for file in files(_STAGES).iterdir():
        stage = file.name.removesuffix(".py")
        if stage != file.name and (match := _DECLARATION.search(_source(stage))) is not None:
            try:
                verbs[stage] = eval(match[1], dict(globals()))
            except NameError:  # it uses a constant of the stage
                verbs[stage] = read_constant(f"{_STAGES}.{stage}", "VERB")
    return dict(sorted(verbs.items(), key=lambda item: item[1].order))


def verb_parameters(stage: str) -> Mapping[str, FunctionParameter]:
    """Return the parameters of a verb by name: those of its function, of the functions instead, and the switches."""
    module, verb = f"{_STAGES}.{stage}", stage_verbs()[stage]
    parameters = {each.name: each for each in read_parameters(module, stage)}
    for switch, function in verb.instead:
        parameters |= {each.name: each for each in read_parameters(module, function) if each.name not in parameters}
        parameters[switch] = FunctionParameter(switch, bool, default=False, is_keyword_only=True)
    return parameters


def run_verb(module: ModuleType, verb: Verb, inputs: JsonObject, config: Any, *, force: bool) -> Any:
    """Call the function of a stage's module, or the one that a switch among the inputs asks for.

    Raises ConfigError for an input that only such a switch uses, without the switch.
    """
    stage = module.__name__.rpartition(".")[2]
    chosen = [function for switch, function in verb.instead if inputs.pop(switch, False)]
    function = getattr(module, (*chosen, stage)[0])
    values = {**inputs, "config": config, "force": force}
    taken = inspect.signature(function).parameters
    if not chosen and (ignored := next((name for name in inputs if name not in taken), None)):
        uses = ((switch, inspect.signature(getattr(module, other)).parameters) for switch, other in verb.instead)
        switch = Remedy(next(switch for switch, parameters in uses if ignored in parameters), value=True)
        refuse_ignored({ignored: True}, Advice("without ", switch), Advice("add ", switch))
    return function(**{name: value for name, value in values.items() if name in taken})


def refuse_ignored(names: Mapping[str, bool], when: str, otherwise: str | Remedy) -> None:
    """Raise ConfigError for the first of these inputs and settings that has a value, which would have no effect.

    ``when`` says beside what, ``otherwise`` what to do where it is meant.
    """
    for name, is_given in names.items():
        if is_given:
            do = Advice("leave out ", Remedy(name), ", or ", otherwise)
            raise ConfigError(Advice(Remedy(name), " has no effect ", when), where=name, do=do)


def paragraphs(stage: str) -> Sequence[str]:
    """Return the paragraphs of the docstring of a stage's function."""
    match = re.search(rf'^def {stage}\(.*?"""(.*?)"""', _source(stage), re.MULTILINE | re.DOTALL)
    return inspect.cleandoc(match[1]).split("\n\n") if match is not None else ()


@cache
def _source(stage: str) -> str:
    return files(_STAGES).joinpath(f"{stage}.py").read_text(encoding="utf-8")
