"""Check the arguments of a public function by its annotations, before anything is read or written.

Settings, which are fields of a stage's Config, are checked where they become one (`config_of`).
"""

import inspect
import math
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from os import PathLike, fspath
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from steelyard.core.errors import ConfigError
from steelyard.io.system_errors import system_error

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
_MOST_CHARACTERS = 60
_LONGEST_NAME = 255
_PLAIN: Mapping[object, str] = {
    bool: "True or False",
    int: "a whole number",
    float: "a finite number",
    str: "a text",
    PathLike: "a path or a name",
    types.NoneType: "None",
}
_NAMES = {
    "ArrowStream": "a table",
    "ArrowDataset": "a table",
    "CaseScorer": "an object that scores cases",
    "Callable": "a function",
    "Case": "cases",
    "HoldsCases": "a result with cases",
    "LoadedModel": "a loaded model",
    "Mapping": "rows",
    "Outcome": "the result of a run",
    "Scores": "scores",
    "TrainedModel": "a trained model",
    "dict": "a dictionary",
}


def checked(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Return the function with a check of its annotated arguments, which raises ConfigError for the first wrong one."""

    @wraps(function)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        return called(function, args, kwargs)

    return call


def called(function: Callable[..., Result], args: tuple[Any, ...], kwargs: Mapping[str, object]) -> Result:
    """Call the function with arguments that were checked; errors of the operating system are raised as ours."""
    check_arguments(function, args, kwargs)
    try:
        return function(*args, **kwargs)
    except OSError as error:
        refusal = system_error(error)
        if refusal is None:
            raise
        raise refusal from error


def check_arguments(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, object]) -> None:
    """Raise ConfigError for the first argument that its annotation does not allow; settings are not looked at."""
    signature, hints = _annotations(function)
    positional = [each.name for each in signature.parameters.values() if each.kind is each.POSITIONAL_OR_KEYWORD]
    if twice := [name for name in positional[: len(args)] if name in kwargs]:
        names = ", ".join(f"{name}=..." for name in positional if name in (*twice, *positional[: len(args) + 1]))
        raise ConfigError(
            f"{twice[0]} is there twice: the argument without a keyword is {twice[0]}, too",
            where=function.__name__,
            do=f"give keywords for both: {function.__name__}({names})",
        )
    for name, value in signature.bind(*args, **kwargs).arguments.items():
        kind = signature.parameters[name].kind
        if name not in hints or kind is inspect.Parameter.VAR_KEYWORD:
            continue
        many = kind is inspect.Parameter.VAR_POSITIONAL
        items: Iterable[Any] = value if many else [value]
        for place, item in enumerate(items):
            check_value(f"{name}[{place}]" if many else name, item, hints[name], where=function.__name__)


def check_value(name: str, value: object, hint: Any, *, where: str) -> None:
    """Raise ConfigError for a value that the annotation does not allow, naming it, its type and what is allowed."""
    if not _allows(hint, value):
        raise ConfigError(f"{name} is {_shown(value)}", where=where, allowed=", ".join(dict.fromkeys(_words(hint))))


@cache
def _annotations(function: Callable[..., Any]) -> tuple[inspect.Signature, Mapping[str, object]]:
    return inspect.signature(function), get_type_hints(function)


_TEXTS = (str, bytes, bytearray, memoryview)
_TESTS: Mapping[object, Callable[[Any], bool]] = {
    Any: lambda value: True,
    float: lambda value: isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value),
    int: lambda value: isinstance(value, int) and not isinstance(value, bool),
    Iterable: lambda value: isinstance(value, Iterable) and not isinstance(value, (*_TEXTS, Mapping)),
}
"""Tests of annotations that allow less, or other values, than `isinstance`."""


def _allows(hint: Any, value: Any) -> bool:
    members = _members(hint)
    if len(members) > 1:
        is_broken_path = isinstance(value, str | PathLike) and PathLike in map(_base, members) and not _is_path(value)
        return not is_broken_path and any(_allows(member, value) for member in members)
    base, parts = _base(hint), get_args(hint)
    if base is Literal:
        return value in parts
    if base is Sequence:
        is_list = isinstance(value, Sequence) and not isinstance(value, _TEXTS)
        return is_list and all(_allows(parts[0], item) for item in value)
    return _TESTS[base](value) if base in _TESTS else isinstance(value, base)


def _members(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _base(hint: Any) -> Any:
    return get_origin(hint) or hint


def _is_path(value: str | PathLike[Any]) -> bool:
    """Return whether a file system takes the text as a path."""
    text = fspath(value)
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        return False
    return max(len(part.encode(errors="replace")) for part in text.split("/")) <= _LONGEST_NAME


def _words(hint: Any) -> list[str]:
    """Return the words for each kind of value that the annotation allows."""
    members = _members(hint)
    if len(members) > 1:
        has_paths = PathLike in map(_base, members)
        return [word for member in members if not (has_paths and member is str) for word in _words(member)]
    base, parts = _base(hint), get_args(hint)
    if base is Literal:
        return [repr(part) for part in parts]
    if base is Sequence:
        return [f"a list, each item: {' or '.join(dict.fromkeys(_words(parts[0])))}"]
    if base is Iterable:
        return _words(parts[0])
    name = getattr(base, "__name__", str(base))
    return [_PLAIN.get(base, _NAMES.get(name, name))]


def _shown(value: object) -> str:
    """Return the type of a value and its beginning."""
    if value is None:
        return "None"
    if isinstance(value, str) and not value.strip():
        return "an empty text"
    text = repr(value)
    short = text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"
    return f"{type(value).__name__} ({' '.join(short.split())})"
