"""Verbs that run one stage: a verb declares which inputs and settings are options, and the rest is generated.

Types, defaults and explanations of settings come from the stage's ``Config``, types and defaults of inputs from the
signature of its function. A verb declares them in the order of its help; ``--set``, ``--config``, ``--settings``,
``--force`` and ``--json`` follow. The docstring of a verb's file is the text of its help.
"""

import importlib
import inspect
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache, cached_property
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union

import msgspec
import typer

from steelyard.cli.completion import complete_model
from steelyard.cli.output import TerminalTable, show
from steelyard.cli.settings import SETTINGS_OPTION
from steelyard.cli.verb import Verb
from steelyard.core.config import parse_settings, resolve_config
from steelyard.core.errors import ConfigError
from steelyard.core.settings_help import (
    REQUIRED,
    FunctionParameter,
    Setting,
    default_text,
    read_parameters,
    read_settings,
)

Completion = Callable[[str], list[str]]
Values = dict[str, Any]
"""Inputs of a stage by parameter, or settings by key, nested."""
SET_HELP = "Any setting, as KEY=VALUE; repeat. --settings lists them."
FORCE_HELP = "Replace what another run left in the output."
JSON_HELP = "Print the record as JSON."


class StageArgument(NamedTuple):
    """A positional argument: a parameter of the stage's function. ``metavar`` is its name in the help."""

    name: str
    help: str
    metavar: str | None = None


class StageOption(NamedTuple):
    """An option for a parameter of the stage's function.

    ``flag`` differs from the parameter's name where given. ``is_text`` passes values on as text: `[KIND=]FILE`.
    """

    name: str
    help: str
    flag: str | None = None
    complete: Completion | None = None
    is_text: bool = False


class SettingOption(NamedTuple):
    """An option for a setting. Its type, default and meaning are those of the field.

    ``name`` is a field of the stage's Config, or ``TABLE.FIELD`` of a table in it, whose fields are those of
    ``config``, a module and a name. ``note`` follows the meaning and says how the value is written on the command
    line, where ``parse`` reads it, with ``is_text`` from one text. ``help`` explains a key without a field.
    """

    name: str
    flag: str | None = None
    note: str = ""
    config: tuple[str, str] | None = None
    help: str | None = None
    is_required: bool = False
    is_text: bool = False
    complete: Completion | None = None
    parse: Callable[[Any], Any] | None = None

    @property
    def parameter(self) -> str:
        """The name of the command's parameter."""
        return f"set_{self.name.replace('.', '_')}"

    @property
    def option(self) -> str:
        """The option as it is typed."""
        return self.flag or f"--{self.name.rpartition('.')[2].replace('_', '-')}"

    @property
    def is_negative(self) -> bool:
        """Whether the option turns off a setting that is on by default."""
        return self.option.startswith("--no-")


class StageVerb(NamedTuple):
    """A verb that runs one stage.

    ``stage`` is a module of ``steelyard.stages`` with a ``Config`` and a function of the module's name. ``lines`` turns
    the result and ``--out`` into what is printed. ``prepare`` may change inputs and settings before the Config is
    made, and raise a UserError; the whole run lies inside ``around``.
    """

    stage: str
    parts: Sequence[StageArgument | StageOption | SettingOption]
    lines: Callable[[Any, Path], Iterable[str | TerminalTable]]
    prepare: Callable[[Values, Values], None] | None = None
    around: Callable[[], AbstractContextManager[Any]] = nullcontext

    @property
    def module(self) -> str:
        """The module of the stage."""
        return f"steelyard.stages.{self.stage}"

    def command(self, about: str | None) -> Callable[..., None]:
        """Return a function with the verb's parameters, as Typer reads them."""
        parameters = [_typed(part, self.module, self.stage) for part in self.parts]
        parameters += _general_options(has_settings=bool(read_settings(self.module)))

        def command(**values: Any) -> None:
            self.run(values)

        command.__doc__ = about
        command.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return command

    def run(self, values: Values) -> None:
        """Run the stage with the values of the command line, and print its result."""
        inputs = {
            part.name: values[part.name]
            for part in self.parts
            if not isinstance(part, SettingOption) and values[part.name] is not None
        }
        with self.around():
            settings = self._settings(values)
            if self.prepare is not None:
                self.prepare(inputs, settings)
            stage = importlib.import_module(self.module)
            config = resolve_config(stage.Config, settings, where=self.stage)
            out = inputs["out"]
            result = getattr(stage, self.stage)(**inputs, config=config, force=values["force"])
            show(result, self.lines(result, out), as_json=values["as_json"])

    def _settings(self, values: Values) -> Values:
        """Return the settings of the file, those of ``--set`` over them, and those of options over both."""
        settings: Values = {}
        if (path := values.get("config")) is not None:
            from steelyard.io.lines import read_toml

            settings = read_toml(path)
        settings = _merge(settings, parse_settings(values.get("settings") or ()))
        for part in self.parts:
            if isinstance(part, SettingOption) and values[part.parameter] not in (None, []):
                _assign(settings, part, _parse(part, _setting(part, self.module), values[part.parameter]))
        return settings


class StageCommand(Verb):
    """A stage verb as a command. Its options are read from source when they are needed: a list of verbs needs none."""

    def __init__(self, *, declaration: StageVerb, callback: Callable[..., Any], **arguments: Any) -> None:
        self._declaration = declaration
        self._about = callback.__doc__
        super().__init__(callback=callback, config=(declaration.module, "Config"), **arguments)

    @cached_property
    def _generated(self) -> Any:
        app = typer.Typer(add_completion=False)
        app.command()(self._declaration.command(self._about))
        return typer.main.get_command(app)

    @property
    def params(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The arguments and options."""
        return self._generated.params

    @params.setter
    def params(self, params: Any) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Ignore those of the placeholder that Typer registers."""

    @property
    def callback(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The function that runs the verb."""
        return self._generated.callback

    @callback.setter
    def callback(self, callback: Any) -> None:
        """Ignore that of the placeholder that Typer registers."""


def _typed(part: StageArgument | StageOption | SettingOption, module: str, function: str) -> inspect.Parameter:
    if isinstance(part, SettingOption):
        return _setting_parameter(part, _setting(part, module))
    declared = _parameters(module, function)[part.name]
    if isinstance(part, StageArgument):
        info = typer.Argument(help=part.help, metavar=part.metavar)
        return _parameter(part.name, _input_type(declared), info)
    default = "" if declared.default in (REQUIRED, None, False) else f" Default: {declared.default}."
    flags = [part.flag or f"--{part.name.replace('_', '-')}"]
    info = typer.Option(*flags, help=part.help + default, autocompletion=part.complete)
    wanted = list[str] if part.is_text else _input_type(declared)
    return _parameter(part.name, wanted, info, is_required=declared.default is REQUIRED)


def _setting_parameter(part: SettingOption, setting: Setting) -> inspect.Parameter:
    info = typer.Option(part.option, help=_help(part, setting), show_default=False, autocompletion=part.complete)
    wanted = str if part.is_text else _option_type(setting.type)
    return _parameter(part.parameter, wanted, info, is_required=part.is_required)


def _parameter(name: str, wanted: Any, info: Any, *, is_required: bool = True) -> inspect.Parameter:
    annotation = Annotated[wanted if is_required else wanted | None, info]
    default = inspect.Parameter.empty if is_required else None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _general_options(*, has_settings: bool) -> list[inspect.Parameter]:
    options: list[tuple[str, Any, Any]] = []
    if has_settings:
        options += [
            ("settings", list[str] | None, typer.Option("--set", help=SET_HELP)),
            ("config", Path | None, typer.Option("--config", help="A TOML file of settings.")),
            ("lists_settings", bool, typer.Option(SETTINGS_OPTION, help="Print every setting and stop.")),
        ]
    options += [
        ("force", bool, typer.Option("--force", help=FORCE_HELP)),
        ("as_json", bool, typer.Option("--json", help=JSON_HELP)),
    ]
    kind = inspect.Parameter.KEYWORD_ONLY
    return [
        inspect.Parameter(name, kind, default=False if wanted is bool else None, annotation=Annotated[wanted, info])
        for name, wanted, info in options
    ]


@cache
def _parameters(module: str, function: str) -> Mapping[str, FunctionParameter]:
    return {parameter.name: parameter for parameter in read_parameters(module, function)}


@cache
def _setting(part: SettingOption, module: str) -> Setting:
    """Return the field behind an option. Raises LookupError for a field that its Config lacks."""
    field = part.name.rpartition(".")[2]
    if part.help is not None:
        return Setting(field, str, None, part.help)
    fields = {setting.name: setting for setting in read_settings(*(part.config or (module, "Config")))}
    return fields[field]


def _alternatives(wanted: Any) -> list[Any]:
    """Return the members of a union without None; any other type is its only member."""
    is_union = typing.get_origin(wanted) in (Union, UnionType)
    return [member for member in (typing.get_args(wanted) if is_union else (wanted,)) if member is not type(None)]


def _input_type(declared: FunctionParameter) -> Any:
    (wanted,) = _alternatives(declared.type)
    return list[Path] if typing.get_origin(wanted) is not None else wanted


def _option_type(wanted: Any) -> Any:
    """Return the type that Typer parses: a number, a switch, text, or text that is repeated."""
    members = _alternatives(wanted)
    if len(members) > 1:
        return str
    (member,) = members
    while typing.get_origin(member) is Annotated:
        member = typing.get_args(member)[0]
    if member in (int, float, bool):
        return member
    is_repeated = typing.get_origin(member) in (tuple, list, dict) or (
        isinstance(member, type) and issubclass(member, msgspec.Struct)
    )
    return list[str] if is_repeated else str


def _help(part: SettingOption, setting: Setting) -> str:
    """Return the meaning, the values that it does not name, the note and the default."""
    if part.is_negative:
        return f"Turn off: {setting.meaning[0].lower()}{setting.meaning[1:]}"
    (member, *_) = _alternatives(setting.type)
    values = [str(value) for value in typing.get_args(member)] if typing.get_origin(member) is Literal else []
    words = [setting.meaning]
    if any(value not in setting.meaning for value in values):
        words.append(f"One of {', '.join(values)}.")
    words.append(part.note)
    is_shown = setting.default not in (REQUIRED, None, "") and not isinstance(setting.default, bool)
    if is_shown:
        words.append(f"Default: {default_text(setting.default)}.")
    return " ".join(filter(None, words))


def _parse(part: SettingOption, setting: Setting, value: Any) -> Any:
    """Return the value of an option as its setting takes it; one that the setting refuses is returned as it is."""
    if part.parse is not None:
        return part.parse(value)
    if part.is_negative:
        return not value
    if any(typing.get_origin(member) is dict for member in _alternatives(setting.type)):
        _check_unique(part, value)
        return parse_settings(value, option=part.option)
    try:
        return msgspec.convert(value, setting.type, strict=False)
    except msgspec.ValidationError:
        return value


def _check_unique(part: SettingOption, assignments: Sequence[str]) -> None:
    names = [assignment.partition("=")[0] for assignment in assignments]
    if len(set(names)) < len(names):
        noun = part.option.removeprefix("--")
        problem = f"a {noun} is named twice: {', '.join(names)}"
        raise ConfigError(problem, where=part.option, do=f"name each {noun} once")


def _assign(settings: Values, part: SettingOption, value: Any) -> None:
    """Set a value, creating its table. Raises ConfigError where the table is set to another value."""
    *tables, name = part.name.split(".")
    for table in tables:
        settings = settings.setdefault(table, {})
        if not isinstance(settings, dict):
            raise ConfigError(f"{table} is {settings!r}", where="--set", do=f"write --set {table}.KEY=VALUE")
    settings[name] = value


def _merge(lower: Values, upper: Mapping[str, Any]) -> Values:
    """Return both settings; where both have a value the upper one, and tables are merged key by key."""
    merged = dict(lower)
    for key, value in upper.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merge(merged[key], value) if both else value
    return merged


def parse_only(values: Sequence[str]) -> dict[str, list[str]]:
    """Parse the values of ``--only``. Raises ConfigError for an unknown key."""
    from steelyard.ranking import judgment_table

    return judgment_table.parse_only(values)


CASES = StageArgument("cases", "The case file.")
ONLY = SettingOption("only", note="As kind=, judge= or batch=NAME; repeat.", parse=parse_only)
MODEL = StageOption("model", "A trained model's folder, or a kind: steelyard list models.", complete=complete_model)
MODEL_SETTINGS = tuple(
    SettingOption(f"model.{name}", config=("steelyard.plugins.models.classifier", "Config"))
    for name in ("over_length", "max_length", "chat_template")
)
"""How a scored model reads text, under the names that training has for it."""
