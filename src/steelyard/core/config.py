"""Settings from TOML and ``--set key=value`` into a frozen Config. Errors name key, value and valid values."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import inspect

from steelyard.core.errors import ConfigError, choices
from steelyard.core.remedies import Advice, Placeholder, Remedy, toml_text

Positive = Annotated[int, msgspec.Meta(ge=1)]
"""A count of at least one."""
ConfigType = TypeVar("ConfigType", bound=msgspec.Struct)
_UNKNOWN = re.compile(r"unknown field `(.*)`$")
_MISSING = re.compile(r"missing required field `(.*)`$")
_ERROR_PATH = re.compile(r"^(?P<message>.*?)(?: - at (?P<in_key>`key` in )?`\$(?P<path>.*)`)?$", re.DOTALL)
_PLAIN: dict[type[inspect.Type], str] = {
    inspect.BoolType: "true or false",
    inspect.IntType: "a whole number",
    inspect.FloatType: "a number",
    inspect.StrType: "a text",
    inspect.AnyType: "anything",
    inspect.NoneType: "nothing",
}


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of every configuration: frozen, keyword-only, with sensible defaults."""

    def changed(self, *names: str) -> dict[str, bool]:
        """Return for each of these settings whether it differs from its default, by name."""
        default = type(self)()
        return {name: getattr(self, name) != getattr(default, name) for name in names}


def resolve_config(config_type: type[ConfigType], settings: Mapping[str, Any], *, where: str) -> ConfigType:
    """Return the Config of these settings. Raises ConfigError with the key, its place and the nearest choice."""
    try:
        return msgspec.convert(dict(settings), config_type)
    except msgspec.ValidationError as error:
        raise _config_error(config_type, settings, error, where) from error


def parse_settings(assignments: Iterable[str], *, setting: str = "set") -> dict[str, Any]:
    """Parse ``["epochs=2", "model.path='x'"]`` into nested settings. A value that is not TOML is plain text.

    ``setting`` is the input that has them. Raises ConfigError for anything but ``KEY=VALUE``.
    """
    settings: dict[str, Any] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals or not key.strip():
            raise ConfigError(
                Advice(Remedy(setting), f" {assignment!r} has no key and value"),
                do=Advice("write ", Remedy(setting, Placeholder("KEY=VALUE"))),
            )
        if len(assignment.splitlines()) > 1:
            raise ConfigError(
                Advice(Remedy(setting), f" {assignment!r} has a line break"),
                do=Advice("write ", Remedy(setting), " once for each setting"),
            )
        inner = settings
        *parents, last = key.strip().split(".")
        for parent in parents:
            inner = inner.setdefault(parent, {})
            if not isinstance(inner, dict):
                raise ConfigError(Advice(Remedy(setting), f" {assignment!r}: {parent!r} was set to a value already"))
        inner[last] = _parse_value(value.strip())
    return settings


def parse_toml(text: str, *, where: str) -> dict[str, Any]:
    """Parse a TOML text. Raises ConfigError with the invalid line."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"not valid TOML: {error}", where=where, do=_quotes_advice(text, str(error))) from error


def _quotes_advice(text: str, problem: str) -> str | None:
    """Return advice where the wrong line begins with a name in letters that TOML takes in quotes alone."""
    place = re.search(r"at line (\d+), column", problem)
    line = "" if place is None else text.splitlines()[int(place[1]) - 1]
    name = re.match(r"\s*\[*(?:\w+\s*\.\s*)*?([\w \-]*[^\W\x00-\x7f][\w \-]*)", line)
    return None if name is None else f'write names with other letters than A to Z in quotes: "{name[1].strip()}"'


def toml_line(text: str, name: str) -> int | None:
    """Return the 1-based line of a TOML text that begins the table or key of a dotted name, or of the nearest."""
    table: tuple[str, ...] = ()
    longest, line = 0, None
    for number, content in enumerate(text.split("\n"), 1):
        if content.lstrip().startswith("["):
            table = _key_path(content) or table
            path = table
        else:
            key, equals, _ = content.partition("=")
            path = (*table, *_key_path(f"{key}= 0")) if equals else ()
        written, length = ".".join(path) + ".", 0
        if f"{name}.".startswith(written):
            length = len(path)
        elif written.startswith(f"{name}."):
            length = name.count(".") + 1
        if longest < length:
            longest, line = length, number
    return line


def _key_path(line: str) -> tuple[str, ...]:
    """Return the keys of a line that is the head of a table, or a key with a value; empty for any other."""
    try:
        inner: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return ()
    path: list[str] = []
    while inner and isinstance(inner, dict | list):
        name, inner = next(iter(inner.items())) if isinstance(inner, dict) else ("", inner[0])
        path += [name] if name else []
    return tuple(path)


def describe_type(setting: inspect.Type) -> str:
    """Describe the values of a type: ``a number``, ``tiers, judged``, ``a list; each item: a text``."""
    match setting:
        case inspect.Metadata():
            text = describe_type(setting.type)
        case inspect.LiteralType():
            text = ", ".join(map(str, setting.values))
        case inspect.UnionType():
            members = [member for member in setting.types if not isinstance(member, inspect.NoneType)]
            text = " or ".join(map(describe_type, members))
        case inspect.VarTupleType() | inspect.ListType():
            text = f"a list; each item: {describe_type(setting.item_type)}"
        case inspect.TupleType():
            items = [describe_type(item) for item in setting.item_types]
            text = (
                f"a list of {len(items)}, each {items[0]}" if len({*items}) == 1 else f"a list of {' and '.join(items)}"
            )
        case inspect.DictType():
            text = f"KEY=VALUE pairs; each value: {describe_type(setting.value_type)}"
        case inspect.StructType():
            text = f"settings of its own: {', '.join(_keys(setting))}"
        case inspect.IntType(ge=int(least)):
            text = f"a whole number of {least} or more"
        case inspect.FloatType():
            text = f"a number{_bounds(setting)}"
        case _:
            text = _PLAIN.get(type(setting), type(setting).__name__.removesuffix("Type").lower())
    return text


def _config_error(
    config_type: type[msgspec.Struct], settings: Mapping[str, Any], error: msgspec.ValidationError, where: str
) -> ConfigError:
    """Return the error for an invalid value: which setting, its value, and what it may be."""
    parts = _ERROR_PATH.match(str(error))
    assert parts is not None
    message, path = parts["message"], parts["path"] or ""
    names = [name for name in re.sub(r"\[.*", "", path).split(".") if name]
    setting: inspect.Type = inspect.type_info(config_type)
    value: Any = settings
    for name in names:
        table = _table(setting)
        fields = {field.encode_name: field.type for field in table.fields} if table else {}
        setting, value = fields.get(name, inspect.AnyType()), value[name]
    if parts["in_key"] and (of_keys := _mapping(setting)):
        key = next((str(key) for key in value if not _fits(of_keys.key_type, key)), "")
        allowed = _nearest_first(of_keys.key_type, key)
        name = ".".join(names)
        return ConfigError(f"{name} has the key {key!r}", where=where, allowed=allowed, key=name)
    setting, value, item = _invalid_item(setting, value)
    names += [item] if item else []
    unknown = _UNKNOWN.search(message)
    table = _table(setting)
    if unknown and table:
        key = ".".join([*names, unknown[1]])
        allowed = choices(unknown[1], _keys(table))
        return ConfigError(f"unknown setting {key!r}", where=where, allowed=allowed, key=key)
    if missing := _MISSING.search(message):
        problem = f"{'.'.join([*names, missing[1]])} is missing"
        return ConfigError(problem, where=where, allowed=describe_type(setting))
    key = ".".join(names)
    if not names or unknown:
        problem = f"{key}: {message}" if names else message
        return ConfigError(problem, where=where, allowed=describe_type(setting), key=key or None)
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    is_list = isinstance(setting, inspect.VarTupleType | inspect.ListType)
    do = None
    if is_list and isinstance(value, str) and isinstance(setting.item_type, inspect.StrType):
        listed = toml_text([item.strip() for item in value.strip("[]").split(",")])
        do = f"write the list with quotation marks: {key}={listed}"
    return ConfigError(f"{key} is {text}", where=where, allowed=_nearest_first(setting, value), do=do, key=key)


def _nearest_first(setting: inspect.Type, value: Any) -> str:
    """Describe the valid values; of names the nearest comes first."""
    for member in setting.types if isinstance(setting, inspect.UnionType) else (setting,):
        if isinstance(member, inspect.LiteralType) and all(isinstance(name, str) for name in member.values):
            hint = choices(str(value), map(str, member.values)).partition("? ")
            return f"{hint[0]}? {describe_type(setting)}" if hint[1] else describe_type(setting)
    return describe_type(setting)


def _invalid_item(setting: inspect.Type, value: Any) -> tuple[inspect.Type, Any, str | None]:
    """Return the first invalid name of a list, or value of a table with its key; any other value unchanged."""
    if isinstance(setting, inspect.VarTupleType | inspect.ListType) and isinstance(value, list | tuple):
        allowed = setting.item_type
        if isinstance(allowed, inspect.LiteralType):
            return next(((allowed, item, None) for item in value if item not in allowed.values), (setting, value, None))
    if (table := _mapping(setting)) and isinstance(value, dict):
        kind = table.value_type
        for key, item in value.items():
            if not _fits(kind, item):
                inner, wrong, name = _invalid_item(kind, item)
                return inner, wrong, ".".join(filter(None, (str(key), name)))
    return setting, value, None


def _fits(kind: inspect.Type, value: Any) -> bool:
    """Return whether a value is of a plain type, of a table of them, or of one of several; true for other types."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match kind:
        case inspect.UnionType():
            fits = any(_fits(member, value) for member in kind.types)
        case inspect.LiteralType():
            fits = isinstance(value, str | int) and value in kind.values
        case inspect.FloatType():
            fits = is_number and (kind.ge is None or value >= kind.ge) and (kind.le is None or value <= kind.le)
            fits = fits and (kind.gt is None or value > kind.gt)
        case inspect.IntType():
            fits = isinstance(value, int) and is_number and (kind.ge is None or value >= kind.ge)
        case inspect.StrType():
            fits = isinstance(value, str)
        case inspect.DictType():
            fits = isinstance(value, dict) and all(_fits(kind.value_type, item) for item in value.values())
        case _:
            fits = True
    return fits


def _bounds(number: inspect.FloatType) -> str:
    """Describe the bounds of a number: `` from 0 to 1``, `` of 0 or more``, `` above 0, up to 1``; empty without."""
    least, above, most = number.ge, number.gt, number.le
    if least is not None:
        return f" of {least:,g} or more" if most is None else f" from {least:,g} to {most:,.12g}"
    if above is not None:
        return f" above {above:,g}" + ("" if most is None else f", up to {most:,.12g}")
    return "" if most is None else f" up to {most:,.12g}"


def _table(setting: inspect.Type) -> inspect.StructType | None:
    members = setting.types if isinstance(setting, inspect.UnionType) else (setting,)
    return next((member for member in members if isinstance(member, inspect.StructType)), None)


def _mapping(setting: inspect.Type) -> inspect.DictType | None:
    members = setting.types if isinstance(setting, inspect.UnionType) else (setting,)
    return next((member for member in members if isinstance(member, inspect.DictType)), None)


def _keys(table: inspect.StructType) -> list[str]:
    return [field.encode_name for field in table.fields]


def _parse_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return text
