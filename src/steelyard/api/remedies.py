"""Errors in the words of Python: the options that an error names are keywords, and values in memory have no path."""

import inspect
import json
import re
import shlex
from collections.abc import Mapping
from functools import partial
from typing import Any

from steelyard.core.errors import UserError
from steelyard.core.types import JsonObject

Parameters = Mapping[str, inspect.Parameter]

_COMMAND = re.compile(r"(`[a-z]+ [^`]*`|\bsteelyard [a-z-]+(?: [^;,()`]+)?)")
"""A whole command, which works as it is."""
_CONVERSION = re.compile(r"\bsteelyard convert (.+)$")
_INLINE_KEY = re.compile(r"([{,] ?)(\w+) ?= ?")
_ONE_SET = r"--set (?:'[\w.]+=[^']*'|[\w.]+=[^\s;]*[^\s;,:)])"
_SETS = re.compile(rf"(?<![\w-]){_ONE_SET}(?: {_ONE_SET})*")
_ASSIGNMENT = re.compile(r"--set (?:'([\w.]+)=([^']*)'|([\w.]+)=([^\s;]*[^\s;,:)]))")
_SET_NAME = re.compile(r"(?<![\w-])--set (\w+)")
_WORDS = {
    "by": "author",
    "chat-template": "plain",
    "ids": "by_source",
    "model": r"[a-z_]+(?= --set)",
    "only": r"\w+=\w+",
    "over-length": "unscored|left|right|refuse",
    "policy": "agree|weight",
    "release-batch": "all",
    "rows": "joined",
    "task": "pairs|best|ratings",
    "to": r"[a-z_]+",
}
"""The values of options that are words."""
_GROUPS = {name: name.replace("-", "_") for name in _WORDS}
_VALUE = r"[A-Z][A-Z_]*=[A-Z]+\b|[a-z]+=FILE\b|[A-Z][A-Z_]*\b|[0-9.]*[0-9]"
_OPTION = re.compile(
    r"(?<![\w-])--(?:"
    + "|".join(rf"(?P<{key}>{name}) (?P<{key}_word>{_WORDS[name]})(?![\w=])" for name, key in _GROUPS.items())
    + rf"|(?P<name>(?!set )[a-z][a-z-]*)(?: (?P<value>{_VALUE}))?(?![\w-]))"
)
_FLAGS = {
    "force",
    "allow_failed",
    "allow_overlap",
    "allow_even",
    "allow_unscored",
    "any_batch_model",
    "any_language",
    "keep_ties",
    "tokens",
}
_NAMES = {"from": "from_kind", "to": "to_kind"}
_MODULE_NAMES = {"model": "model_settings", "bench": "bench_settings"}
"""Keywords whose names are not those of the options."""
_LITERALS = {"true": "True", "false": "False", "null": "None"}
_PLAIN_VALUE = re.compile(r"-?[0-9.]+(?:e-?[0-9]+)?|[A-Z][A-Z_]*|…|[\[{\"].*", re.DOTALL)


def in_python(error: UserError, places: Mapping[str, str], parameters: Parameters | None = None) -> UserError:
    """Return the error with options as keywords, and with names for the files of values in memory.

    ``parameters`` are those of the function: an option that it lacks is a setting of its model.
    """
    texts: list[Any] = [error.problem, error.where, error.allowed, error.do]
    for path, name in places.items():
        texts = [text and _CONVERSION.sub(partial(_call_of, path, name), str(text)) for text in texts]
        texts = [text and str(text).replace(path, name) for text in texts]
    problem, where, allowed, do = texts
    problem, allowed, do = (text and with_keywords(text, parameters or {}) for text in (problem, allowed, do))
    return type(error)(problem, where=where, allowed=allowed, do=do)


def _call_of(path: str, name: str, command: re.Match[str]) -> str:
    """Return a command that names the columns of values in memory as the call of the function."""
    file, _, *words = shlex.split(command[1])
    if file != path:
        return command[0]
    columns: dict[str, list[str]] = {}
    settings: JsonObject = {}
    for option, value in zip(words[::2], words[1::2], strict=True):
        if option == "--set":
            setting, _, text = value.partition("=")
            key, _, inner = setting.partition(".")
            settings[key] = settings.get(key, {}) | {inner: text} if inner else text == "true"
        else:
            columns.setdefault(option.removeprefix("--").replace("-", "_"), []).append(value)
    called = {key: values if len(values) > 1 else values[0] for key, values in columns.items()} | settings
    keywords = (
        f"{key}={value if isinstance(value, bool) else json.dumps(value, ensure_ascii=False)}"
        for key, value in called.items()
    )
    return f"sy.convert({name if name.isidentifier() else 'rows'}, {', '.join(keywords)})"


def with_keywords(text: str, parameters: Parameters) -> str:
    """Return a text with the options of the command line as keywords: ``--force`` as ``force=True``."""
    parts = _COMMAND.split(text)
    parts[::2] = [_translated(part, parameters) for part in parts[::2]]
    return "".join(parts).replace("the same command", "the same call")


def _translated(text: str, parameters: Parameters) -> str:
    text = text.replace("--out folder", "out= folder")
    text = _OPTION.sub(lambda option: _keyword_of(option, parameters), text)
    return _SET_NAME.sub(r"\1=", _SETS.sub(_keywords_of, text))


def _keywords_of(settings: re.Match[str]) -> str:
    """Return assignments as keywords; those of one table are one dictionary."""
    keywords: dict[str, str] = {}
    tables: dict[str, dict[str, str]] = {}
    for quoted, quoted_value, bare, bare_value in _ASSIGNMENT.findall(settings[0]):
        table, _, key = str(quoted or bare).partition(".")
        value = _literal(quoted_value if quoted else bare_value)
        if key:
            tables.setdefault(_MODULE_NAMES.get(table, table), {})[key] = value
        else:
            keywords[table] = value
    keywords |= {name: _table(values) for name, values in tables.items()}
    return ", ".join(f"{name}={value}" for name, value in keywords.items())


def _keyword_of(option: re.Match[str], parameters: Parameters) -> str:
    groups = {name: value for name, value in option.groupdict().items() if value is not None}
    value = groups.get("value")
    if "name" not in groups:
        name, word = (groups[key] for key in sorted(groups, key=len))
        value = json.dumps([word] if name == "only" else word)
    else:
        name = groups["name"]
    name = name.replace("-", "_")
    if name == "bench" and value and "=" in value:
        return f'bench_kind="{value.partition("=")[0]}"'
    if name.startswith("no_"):
        return f"{name.removeprefix('no_')}=False"
    keyword = _NAMES.get(name, name)
    is_known = keyword in parameters
    if keyword in _FLAGS or (is_known and parameters[keyword].annotation is bool):
        return f"{keyword}=True"
    if not is_known and "model_settings" in parameters and keyword in _OF_MODELS:
        return f"model_settings={_table({keyword: value or '…'})}"
    return f"{keyword}={value or '…'}"


_OF_MODELS = {"chat_template", "dtype", "max_length", "over_length"}
"""Options of a training that are settings of the model everywhere else."""


def _table(values: Mapping[str, str]) -> str:
    return "{" + ", ".join(f'"{name}": {value}' for name, value in values.items()) + "}"


def _literal(value: str) -> str:
    """Return a value of the command line as Python writes it; placeholders such as FILE stay."""
    if value[:1] in ("[", "{"):  # TOML's tables become dictionaries
        return _INLINE_KEY.sub(r'\1"\2": ', value)
    return _LITERALS.get(value) or (value if _PLAIN_VALUE.fullmatch(value) else json.dumps(value, ensure_ascii=False))
