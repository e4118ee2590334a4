"""Remedies in the words of Python: ``over_length="left"``, ``sy.resolve("cases.jsonl", out="resolved")``."""

import inspect
import json
import shlex
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from steelyard.core.errors import UserError
from steelyard.core.remedies import ANY, Command, Placeholder, Remedy, Wording, toml_text
from steelyard.core.types import JsonObject

Parameters = Mapping[str, inspect.Parameter]
RENAMED = {"model_settings": "model", "bench_settings": "bench"}
"""Keywords for settings whose names are those of inputs."""
_KEYWORDS = {setting: keyword for keyword, setting in RENAMED.items()}
_MODEL = "model_settings"


def python_words(parameters: Parameters, places: Mapping[str, str] | None = None) -> Wording:
    """Return the wording of remedies for a function with these parameters.

    ``places``: the names of values in memory by the files that they were written to.
    """
    return partial(_words, parameters, places or {})


def in_python(error: UserError, places: Mapping[str, str], parameters: Parameters | None = None) -> UserError:
    """Return the error with remedies as Python, and with names for the files of values in memory."""
    error = error.worded(python_words(parameters or {}, places))
    texts: list[Any] = [error.problem, error.where, error.allowed, error.do]
    for path, name in places.items():
        texts = [text and str(text).replace(path, name) for text in texts]
    problem, where, allowed, do = texts
    return type(error)(problem, where=where, allowed=allowed, do=do)


def _words(parameters: Parameters, places: Mapping[str, str], part: Remedy | Command) -> str:
    if isinstance(part, Remedy):
        return _keywords(part.changes, parameters)
    function = _function_of(part.verb)
    if function is None:
        return _in_terminal(part)
    signature = inspect.signature(function).parameters
    inputs = [_argument(text, places) for text in part.arguments]
    if part.verb == "convert" and places.keys() & set(part.arguments[:1]):
        # Values in memory become cases in memory.
        inputs = inputs[:1]
    keywords = _keywords(part.changes, signature)
    return f"sy.{function.__name__}({', '.join([*inputs, *([keywords] if keywords else [])])})"


def _function_of(verb: str) -> Any:
    import steelyard

    name = verb.replace("-", "_")
    return getattr(steelyard, name) if name in steelyard.__all__ else None


def _in_terminal(command: Command) -> str:
    """Return the command line of a verb that Python lacks."""
    words = ["steelyard", command.verb, *(text if isinstance(text, Placeholder) else shlex.quote(text)
                                          for text in command.arguments)]  # fmt: skip
    for change in command.changes:
        words.append(f"--{change.setting.replace('_', '-')}")
        words += [] if change.value in (None, True) else [toml_text(change.value)]
    return " ".join(words)


def _argument(text: str, places: Mapping[str, str]) -> str:
    if text in places:
        name = places[text]
        return name if name.isidentifier() else "rows"
    return _literal(text)


def _keywords(changes: Iterable[Remedy], parameters: Parameters) -> str:
    """Return changes as keywords; those of one table are one dictionary."""
    keywords: JsonObject = {}
    for change in changes:
        if change.setting == "bench" and isinstance(change.value, str) and "=" in change.value:
            # The command line names the kind with the file.
            keywords["bench_kind"] = change.value.partition("=")[0]
            continue
        *tables, name = _path(change.setting, parameters)
        inner = keywords
        for table in tables:
            inner = inner.setdefault(table, {})
        is_named_alone = change.value is None
        inner[name] = (ANY if tables else None) if is_named_alone else change.value
    return ", ".join(name if value is None else f"{name}={_literal(value)}" for name, value in keywords.items())


def _path(setting: str, parameters: Parameters) -> list[str]:
    """Return the keyword of a setting, with the keys below it; what a function lacks is a setting of its model."""
    if setting in parameters:
        return [setting]
    if setting == "id" and "prompt" in parameters:
        return ["prompt"]
    top, *inner = setting.split(".")
    keyword = _KEYWORDS.get(top, top) if inner else top
    if keyword == _MODEL and parameters and _MODEL not in parameters and inner[0] in parameters:
        return inner
    if keyword in parameters:
        return [keyword, *inner]
    table = next(
        (table for table in (_MODEL, "settings") if table in parameters and "redo_from" not in parameters), None
    )
    return [keyword, *inner] if table is None else [table, top, *inner]


def _literal(value: Any) -> str:
    """Return a value as Python writes it."""
    if isinstance(value, Placeholder):
        return str(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(key)}: {_literal(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_literal, value)) + "]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
