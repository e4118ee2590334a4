"""What a recipe can call: every stage as a function, its inputs told from its signature."""

import importlib
import inspect
import pkgutil
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_type_hints

import msgspec

from steelyard import stages
from steelyard.core.errors import ConfigError, choices
from steelyard.core.types import Run

Accepts = Literal["file", "files", "name"]
_NO_INPUTS = {"out", "config", "force", "workers", "engine"}


class Parameter(NamedTuple):
    """One input of a stage: a file, several files, or a name that may be a folder (of a model)."""

    name: str
    accepts: Accepts
    is_required: bool


class StageCall(NamedTuple):
    """A stage as a recipe calls it."""

    verb: str
    function: Callable[..., Run]
    config_type: type[msgspec.Struct]
    parameters: Mapping[str, Parameter]


def stage_verbs() -> tuple[str, ...]:
    """The verbs that a recipe can name: the stages that read and write files and leave a record."""
    names = (name for _, name, _ in pkgutil.iter_modules(stages.__path__))
    return tuple(name for name in sorted(names) if _function(name) is not None)


def stage_call(verb: str, *, where: str) -> StageCall:
    """The stage behind a verb. Raises ConfigError with the nearest verb for one that does not exist."""
    function = _function(verb)
    if function is None:
        raise ConfigError(f"there is no stage {verb!r}", where=where, allowed=choices(verb, stage_verbs()))
    hints = get_type_hints(function)
    parameters = inspect.signature(function).parameters.values()
    inputs = {
        one.name: Parameter(one.name, _accepts(hints[one.name]), one.default is inspect.Parameter.empty)
        for one in parameters
        if one.name not in _NO_INPUTS and hints[one.name] is not bool  # switches are the command line's
    }
    return StageCall(verb, function, hints["config"], inputs)


def _function(verb: str) -> Callable[..., Run] | None:
    """The function of a stage that takes an output folder and gives a Run; null for stages that do something else."""
    if verb not in {name for _, name, _ in pkgutil.iter_modules(stages.__path__)}:
        return None
    module = importlib.import_module(f"{stages.__name__}.{verb}")
    function = getattr(module, f"{verb}_into", None) or getattr(module, verb, None)
    if not inspect.isfunction(function):
        return None
    hints = get_type_hints(function)
    gives_run = Run in (hints.get("return"), typing.get_origin(hints.get("return")))
    return function if gives_run and {"out", "config"} <= hints.keys() else None


def _accepts(hint: Any) -> Accepts:
    args = [one for one in typing.get_args(hint) if one is not type(None)] if _is_union(hint) else [hint]
    (wanted,) = args
    if wanted is str:
        return "name"
    if wanted is Path:
        return "file"
    assert typing.get_origin(wanted) is Sequence, f"a recipe cannot give {wanted}"
    return "files"


def _is_union(hint: Any) -> bool:
    return type(None) in typing.get_args(hint)
