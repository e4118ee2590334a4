"""Remedies in the words of the command line: ``--over-length left``, ``steelyard resolve CASES --out resolved``."""

import shlex
from collections.abc import Mapping, Sequence
from functools import partial, reduce
from typing import Any

from steelyard.core.remedies import Command, Placeholder, Remedy, Value, Wording, toml_text
from steelyard.core.settings_help import read_settings

_MODEL = "model"
Parameter = Any
"""An argument or option of the parser, whose classes Typer does not publish."""


def command_line(context: Any) -> Wording:
    """Return the wording of remedies while a verb runs, by its context of the parser."""
    return options_of(context.command, context.find_root().command)


def options_of(command: Any, root: Any) -> Wording:
    """Return the wording of remedies for the command of a verb: its options, else ``--set``.

    ``root`` has the commands of all verbs.
    """
    return partial(_words, command, root)


def _words(command: Any, root: Any, part: Remedy | Command) -> str:
    if isinstance(part, Remedy):
        return " ".join(_option(command, change.setting, change.value) for change in part.changes)
    other = reduce(lambda group, word: group.commands[word], part.verb.split(), root)
    options = [_option(other, change.setting, change.value) for change in part.changes]
    return " ".join(["steelyard", part.verb, *map(_shell_text, part.arguments), *options])


def _option(command: Any, setting: str, value: Value) -> str:
    parameters = _parameters(command)
    inner = setting.removeprefix(f"{_MODEL}.")
    parameter = next((parameters[name] for name in (setting.replace(".", "_"), inner) if name in parameters), None)
    if parameter is None:
        return _assignment(command, setting, value)
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or setting.upper())
    option = str(parameter.opts[0])
    if isinstance(value, bool):
        is_written = parameter.is_flag and value != option.startswith("--no-")
        return option if is_written else _assignment(command, setting, value)
    values: Sequence[Value] = value if isinstance(value, tuple) else () if value is None else (value,)
    return " ".join(f"{option} {_shell_text(toml_text(value), value)}" for value in values) or option


def _parameters(command: Any) -> Mapping[str, Parameter]:
    """Return arguments and options by the names of their settings, and by those that are typed."""
    by_option = {option[2:].replace("-", "_"): parameter for parameter in command.params for option in parameter.opts}
    return by_option | {parameter.name.removeprefix("set_").rstrip("_"): parameter for parameter in command.params}


def _assignment(command: Any, setting: str, value: Value) -> str:
    """Return ``--set KEY=VALUE`` with the key of the verb, or neutral words where it has no ``--set`` of its own.

    A verb that uses a model has settings that training has for it, and those of a judge and its chat, below ``model``.
    """
    options = {option for parameter in command.params for option in parameter.opts}
    runs_stages = "redo_from" in _parameters(command)
    if "--set" not in options or runs_stages:
        return str(Remedy(setting, value))
    known = setting_names(command)
    top, _, inner = setting.partition(".")
    if top not in known and _MODEL in known:
        setting = f"{_MODEL}.{setting}"
    elif top == _MODEL and _MODEL not in known and inner.partition(".")[0] in known:
        setting = inner
    text = "" if value is None else f"={toml_text(value)}"
    return f"--set {_shell_text(f'{setting}{text}', value)}"


def setting_names(command: Any) -> set[str]:
    """Return the names of the settings of a verb; of a function with ``--set`` they are those of its model."""
    config = command.verb.config
    return {_MODEL} if config is None else {setting.name for setting in read_settings(*config)}


def _shell_text(text: str, value: Value = None) -> str:
    """Quote a text for a shell; a placeholder stays as it is, but for the spaces of its key."""
    is_open = isinstance(text, Placeholder) or isinstance(value, Placeholder)
    return str(text) if is_open and " " not in text else shlex.quote(text)
