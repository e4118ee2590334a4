"""Plug-in lookup: each package in `plugins` holds one sort of part; a kind is a file or an entry of a ``KINDS`` table.

A plug-in file has a frozen ``Config`` and ``build(config, …)``; a file of several kinds has a module-level dictionary
``KINDS`` of `Plugin` values instead. Nothing is registered anywhere else. A dotted kind (``my_lab.my_model``) is a
module from outside with ``Config`` and ``build``.
"""

import ast
import importlib
import pkgutil
import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from steelyard.core.config import Config, resolve_config
from steelyard.core.errors import KindError, choices
from steelyard.core.types import JsonObject

_ROOT = "steelyard.plugins"
_BUILD = re.compile(r"^def build\(", re.MULTILINE)
_TABLE = re.compile(r"^KINDS\b[^\n]*?= (\{[^\n]*\}|\{\n.*?^\})", re.MULTILINE | re.DOTALL)


class NoSettings(Config, frozen=True):
    """A configuration without settings."""


class Plugin(NamedTuple):
    """One kind: the type of its settings, the function that builds it, and a description in one line."""

    Config: type[Config]
    build: Callable[..., Any]
    about: str


def without_settings(part: Any, about: str | None) -> Plugin:
    """Return the kind whose ``build`` always gives this part. ``about`` may be a docstring: its first line counts."""
    return Plugin(NoSettings, lambda config: part, _first_line(about))


def kinds(package: str) -> tuple[str, ...]:
    """Return the kinds in a plug-in package, sorted. A file named ``_part`` holds no kinds."""
    return tuple(sorted(_files(package)))


def packages() -> tuple[str, ...]:
    """Return the names of the plug-in packages, sorted."""
    root = importlib.import_module(_ROOT)
    return tuple(sorted(name for _, name, is_package in pkgutil.iter_modules(root.__path__) if is_package))


def describe(package: str, kind: str) -> str:
    """Return the first line of the plug-in's description."""
    return load(package, kind).about


def load(package: str, kind: str) -> Plugin:
    """Return the plug-in. Raises KindError for a kind that does not exist, with the nearest that does."""
    if "." not in kind and kind not in _files(package):
        raise KindError(f"there is no {kind!r} in {package}", allowed=choices(kind, kinds(package)))
    name = kind if "." in kind else f"{_ROOT}.{package}.{_files(package)[kind]}"
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):
            raise
        raise KindError(f"cannot import {name!r}", do="check the spelling, or install the package") from error
    except Exception as error:
        if "." not in kind:
            raise
        raise KindError(f"{name!r} fails when it is imported ({type(error).__name__}: {error})") from error
    table: Mapping[str, Plugin] = vars(module).get("KINDS", {})
    if kind in table:
        return table[kind]
    missing = [part for part in ("Config", "build") if not hasattr(module, part)]
    if missing:
        raise KindError(f"{name} is no plug-in: it lacks {' and '.join(missing)}")
    return Plugin(module.Config, module.build, _first_line(module.__doc__))


def build(package: str, kind: str, settings: JsonObject | None = None, **parts: Any) -> Any:
    """Build the plug-in from its settings; ``parts`` are other plug-ins that it needs, already built."""
    plugin = load(package, kind)
    return plugin.build(resolve_config(plugin.Config, settings or {}, where=f"{package}.{kind}"), **parts)


@cache
def _files(package: str) -> Mapping[str, str]:
    """Return the file of each kind. Files are read and not imported: a list of kinds must not load a library."""
    module = importlib.import_module(f"{_ROOT}.{package}")
    places: dict[str, str] = {}
    for _, name, _ in pkgutil.iter_modules(module.__path__):
        if name.startswith("_"):
            continue
        source = files(module).joinpath(f"{name}.py").read_text(encoding="utf-8")
        if _BUILD.search(source):
            places[name] = name
        places |= dict.fromkeys(_table_keys(source), name)
    return places


def _table_keys(source: str) -> list[str]:
    """Return the keys of a file's ``KINDS`` table, which must be written as plain text in one dictionary."""
    table = _TABLE.search(source)
    if table is None:
        return []
    display = ast.parse(table[1], mode="eval").body
    assert isinstance(display, ast.Dict)
    keys = [key.value for key in display.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
    assert len(keys) == len(display.keys), "a key of KINDS is not a plain text"
    return keys


def _first_line(text: str | None) -> str:
    return (text or "").strip().split("\n")[0]
