"""The Typer parameters that are made from the declaration of a verb, and their shell completion.

Types, defaults and explanations of settings come from the stage's ``Config``, types and defaults of inputs from the
signature of its function. Both are read from source: importing a stage for its help would import torch.
"""

import inspect
import re
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union

import msgspec
import typer

from steelyard.core.config import parse_settings
from steelyard.core.errors import ConfigError
from steelyard.core.plugins import kinds, packages
from steelyard.core.settings_help import REQUIRED, FunctionParameter, Setting, default_text, read_settings
from steelyard.io.verbs import Argument, Option, SettingOption

BASELINES = ("longer", "shorter", "random", "first", "ngram")
SETTINGS_OPTION = "--settings"
_SENTENCE = re.compile(r"(?<=\.) (?=[A-Z])")
Values = dict[str, Any]
"""Inputs of a stage by parameter, or settings by key, nested."""


_TEXTS = [str, tuple[str, ...]]
"""The types of a setting of one text or several, whose option is repeated."""


def input_parameter(part: Argument | Option, declared: FunctionParameter) -> inspect.Parameter:
    """Return the Typer parameter of an input of the stage's function."""
    (declared_type,) = _alternatives(declared.type)
    is_sequence = typing.get_origin(declared_type) is not None
    option_type: Any = list[Path] if is_sequence else declared_type
    if isinstance(part, Argument):
        info = typer.Argument(help=part.help, metavar=part.metavar)
        return _parameter(part.name, option_type, info, is_required=declared.default is REQUIRED)
    default = "" if declared.default in (REQUIRED, None, False, ()) else f" Default: {declared.default}."
    complete = _COMPLETIONS.get(part.complete or "")
    info = typer.Option(part.option, help=part.help + default, autocompletion=complete, rich_help_panel=part.panel)
    is_required = declared.default is REQUIRED and not part.is_optional
    text_type = list[str] if is_sequence else str
    return _parameter(part.name, text_type if part.is_text else option_type, info, is_required=is_required)


def setting_parameter(part: SettingOption, module: str) -> inspect.Parameter:
    """Return the Typer parameter of a setting of the stage in ``module``."""
    setting = _setting(part, module)
    info = typer.Option(
        part.option,
        help=_help(part, setting),
        show_default=False,
        autocompletion=_COMPLETIONS.get(part.complete or ""),
        rich_help_panel=part.panel,
    )
    option_type = str if part.has_commas else _option_type(setting.type)
    return _parameter(part.parameter, option_type, info, is_required=part.is_required)


def general_parameters(*, has_settings: bool) -> list[inspect.Parameter]:
    """Return the Typer parameters that every stage verb has, with those for settings where it has any."""
    options: list[tuple[str, Any, Any]] = []
    if has_settings:
        set_help = "Any setting, as KEY=VALUE; repeat."
        options += [
            ("settings", list[str], typer.Option("--set", help=set_help)),
            ("config", Path, typer.Option("--config", help="A TOML file of settings.")),
        ]
    options += [
        ("force", bool, typer.Option("--force", help="Replace another run's output.")),
        ("verbose", bool, typer.Option("--verbose", help="Print every figure.")),
        ("as_json", bool, typer.Option("--json", help="Print the record as JSON.")),
    ]
    listed = [LIST_SETTINGS] if has_settings else []
    return listed + [_parameter(name, option_type, info, is_required=False) for name, option_type, info in options]


def _parameter(name: str, option_type: Any, info: Any, *, is_required: bool = True) -> inspect.Parameter:
    annotation = Annotated[option_type if is_required else option_type | None, info]
    default = inspect.Parameter.empty if is_required else None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


LIST_SETTINGS = _parameter(
    "lists_settings", bool, typer.Option(SETTINGS_OPTION, help="Explain every setting in full."), is_required=False
)
"""The option that prints the settings of a verb: `VerbCommand` answers it before it parses the others."""


@cache
def _setting(part: SettingOption, module: str) -> Setting:
    """Return the field behind an option. Raises LookupError for a field that its Config lacks."""
    field = part.name.rpartition(".")[2]
    if part.help is not None:
        return Setting(field, str, None, part.help)
    fields = {setting.name: setting for setting in read_settings(*(part.config or (module, "Config")))}
    return fields[field]


def _alternatives(union: Any) -> list[Any]:
    """Return the members of a union without None and without their metadata; any other type is its only member."""
    is_union = typing.get_origin(union) in (Union, UnionType)
    members = [member for member in (typing.get_args(union) if is_union else (union,)) if member is not type(None)]
    return [typing.get_args(member)[0] if typing.get_origin(member) is Annotated else member for member in members]


def _option_type(setting_type: Any) -> Any:
    """Return the type that Typer parses: a number, a switch, text, or text that is repeated."""
    members = _alternatives(setting_type)
    if members == _TEXTS:
        return list[str]
    if len(members) > 1:
        return str
    (member,) = members
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
    words = [_gist(setting.meaning)]
    if any(value not in setting.meaning for value in values):
        words.append(f"One of {', '.join(values)}.")
    words.append(part.note)
    if setting.default not in (REQUIRED, None, "", (), [], {}) and not isinstance(setting.default, bool):
        words.append(f"Default: {default_text(setting.default)}.")
    return " ".join(filter(None, words))


def _gist(meaning: str) -> str:
    """Return the first sentence, and the one on the default: the others are in ``--settings``."""
    first, *others = _SENTENCE.split(meaning)
    return " ".join([first, *(sentence for sentence in others if sentence.startswith("Default"))])


def add_setting(settings: Values, part: SettingOption, value: Any, module: str) -> None:
    """Add the value of an option to nested settings. A value that its setting refuses is added as it is.

    Raises ConfigError where the table of the setting is set to another value.
    """
    *tables, name = part.name.split(".")
    for table in tables:
        settings = settings.setdefault(table, {})
        if not isinstance(settings, dict):
            raise ConfigError(f"{table} is {settings!r}", where="--set", do=f"write --set {table}.KEY=VALUE")
    settings[name] = _parse(part, _setting(part, module), value)


def _parse(part: SettingOption, setting: Setting, value: Any) -> Any:
    if setting.name == "only":
        from steelyard.ranking.judgment_table import parse_only

        return parse_only(value)
    if part.has_commas or part.is_negative:
        names = value.split(",") if part.has_commas and value != "none" else ()
        return [name.strip() for name in names] if part.has_commas else not value
    if _alternatives(setting.type) == _TEXTS and len(value) == 1:
        return value[0]
    if any(typing.get_origin(member) is dict for member in _alternatives(setting.type)):
        _check_unique(part, value)
        return parse_settings(value, setting=part.name)
    try:
        return msgspec.convert(value, setting.type, strict=False)
    except msgspec.ValidationError:
        return value


def _check_unique(part: SettingOption, assignments: Sequence[str]) -> None:
    names = [assignment.partition("=")[0] for assignment in assignments]
    if len(set(names)) < len(names):
        noun = part.option.removeprefix("--")
        problem = f"a {noun} is given twice: {', '.join(names)}"
        raise ConfigError(problem, where=part.option, do=f"give each {noun} once")


def merge_settings(lower: Values, upper: Values) -> Values:
    """Return both settings. Where both have a value the upper one counts; tables are merged key by key."""
    merged = dict(lower)
    for key, value in upper.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = merge_settings(merged[key], value) if both else value
    return merged


def complete_package(incomplete: str) -> list[str]:
    """Complete a plug-in package."""
    return _beginning(incomplete, packages())


def complete_format(incomplete: str) -> list[str]:
    """Complete a data format."""
    return _beginning(incomplete, kinds("formats"))


def complete_model(incomplete: str) -> list[str]:
    """Complete a kind of reward model, or a folder."""
    return [*_beginning(incomplete, kinds("models")), *(path for path in _paths(incomplete) if path.endswith("/"))]


def complete_bench(incomplete: str) -> list[str]:
    """Complete ``KIND=``, a file, or ``KIND=FILE``."""
    kind, equals, file = incomplete.partition("=")
    if equals:
        return [f"{kind}={path}" for path in _paths(file)]
    return [*_beginning(incomplete, (f"{kind}=" for kind in kinds("benches"))), *_paths(incomplete)]


def complete_baselines(incomplete: str) -> list[str]:
    """Complete the last of the names between commas, each at most once; or ``none``."""
    *before, last = incomplete.split(",")
    left = [name for name in (*BASELINES, *(() if before else ("none",))) if name not in before]
    return [",".join([*before, name]) for name in _beginning(last, left)]


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def _paths(incomplete: str) -> Iterator[str]:
    """Yield the paths that begin with the text. Folders end with ``/``; hidden files are completed after a dot."""
    folder, slash, start = incomplete.rpartition("/")
    parent = Path(f"{folder}/") if slash else Path()
    if not parent.is_dir():
        return
    for path in sorted(parent.iterdir()):
        if path.name.startswith(start) and (start or not path.name.startswith(".")):
            yield f"{folder}{slash}{path.name}{'/' if path.is_dir() else ''}"


_COMPLETIONS: dict[str, Callable[[str], list[str]]] = {
    "models": complete_model,
    "formats": complete_format,
    "benches": complete_bench,
    "baselines": complete_baselines,
}
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Print every figure.")]
StageSettings = Annotated[
    list[str] | None, typer.Option("--set", help="STAGE.KEY=VALUE over that of the recipe: model.epochs=2; repeat.")
]
RedoFrom = Annotated[str | None, typer.Option("--from", help="Run this stage and all that follow from it again.")]
