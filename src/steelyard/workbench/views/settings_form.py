"""The settings of a project as the fields of a form, explained in the words of their definitions, and back.

Nothing about a setting is written twice: names, types, defaults and explanations come from `ProjectSettings`, so that a
setting that is added there has its field in the form.
"""

import typing
import unicodedata
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from steelyard.core.config import Config, resolve_config
from steelyard.core.errors import ConfigError
from steelyard.core.settings_help import default_text, read_settings
from steelyard.core.types import JsonObject
from steelyard.workbench.pipeline.projects import ProjectSettings

_ARABIC_POINT = "\N{ARABIC DECIMAL SEPARATOR}"


class SettingField(NamedTuple):
    """A field of the form. ``name`` is the path of the setting; ``choices`` are empty where anything may be entered.

    ``kind``: ``lines`` is a text with one value a line, ``choice`` one of the choices, ``text`` any text as it is,
    ``value`` a number or a word.
    """

    name: str
    kind: Literal["lines", "choice", "text", "value"]
    value: str
    choices: tuple[str, ...]
    default: str
    meaning: str


def setting_fields(settings: ProjectSettings) -> tuple[SettingField, ...]:
    """Return the fields of the form with the values of a project, in the order of the definition."""
    return tuple(_fields(settings, ""))


def settings_from(entered: Mapping[str, str]) -> ProjectSettings:
    """Return the settings that a form sent; what it lacks has its default.

    Raises ConfigError with the name of the setting for a value that does not fit.
    """
    values: JsonObject = {}
    for field in setting_fields(ProjectSettings()):
        if field.name not in entered:
            continue
        *tables, name = field.name.split(".")
        table: Any = values
        for each in tables:
            table = table.setdefault(each, {})
        text = entered[field.name].strip()
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if field.kind == "text":
            table[name] = text or None
        else:
            table[name] = lines if field.kind == "lines" else _value(field.name, text)
    return resolve_config(ProjectSettings, values, where="settings")


def _fields(settings: Config, path: str) -> typing.Iterator[SettingField]:
    kind = type(settings)
    types = typing.get_type_hints(kind)
    for setting in read_settings(kind.__module__, kind.__name__):
        value, declared = getattr(settings, setting.name), types[setting.name]
        if isinstance(value, Config):
            yield from _fields(value, f"{path}{setting.name}.")
            continue
        choices = _choices(declared)
        is_list = isinstance(value, tuple)
        yield SettingField(
            name=path + setting.name,
            kind="lines" if is_list else "choice" if choices else "text" if declared == str | None else "value",
            value="\n".join(map(str, value)) if is_list else _text(value),
            choices=choices,
            default=", ".join(map(str, setting.default)) if is_list else default_text(setting.default),
            meaning=setting.meaning,
        )


def _choices(declared: Any) -> tuple[str, ...]:
    if declared is bool:
        return ("true", "false")
    return typing.get_args(declared) if typing.get_origin(declared) is Literal else ()


def _text(value: Any) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _value(name: str, text: str) -> Any:
    """Return the value of a text: a number, in any script's digits, a truth value, nothing, else the text itself."""
    if text in ("true", "false", "", "none"):
        return {"true": True, "false": False}.get(text)
    digits = unicodedata.normalize("NFKC", text).replace(_ARABIC_POINT, ".")
    try:
        value = msgspec.json.decode("".join(str(unicodedata.decimal(each, each)) for each in digits))
    except msgspec.DecodeError:
        return text
    if isinstance(value, list | dict):
        raise ConfigError(f"{text[:50]!r} is not one value", where=name, allowed="a number or a word")
    return value
