"""Settings in words: ``steelyard VERB --settings`` prints every setting with its type, default and meaning."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import inspect

from steelyard.cli.output import echo_lines, echo_record, page_width
from steelyard.core.config import describe_type
from steelyard.core.settings_help import REQUIRED, Setting, default_text
from steelyard.io.terminal_text import Line, Span, hanging

SETTINGS_OPTION = "--settings"


def print_settings(settings: Sequence[Setting], *, as_json: bool) -> None:
    """Print every setting with type, default and meaning."""
    if as_json:
        echo_record([_record(setting) for setting in settings])
        return
    width = page_width()
    lines: list[Line] = []
    for setting in settings:
        default = default_of(setting)
        title = Span(f"{setting.name} = {default}" if default else setting.name, "title")
        lines += hanging([title], f"  {type_text(setting)}", width)
        lines += hanging([Span("  ")], setting.meaning, width)
    echo_lines(lines)


def type_text(setting: Setting) -> str:
    """Describe the values of a setting: ``a whole number``, ``tiers, judged``."""
    return describe_type(inspect.type_info(setting.type))


def default_of(setting: Setting) -> str:
    """Return the default as text, ``required`` where there is none; empty where the meaning says it."""
    if setting.default is REQUIRED:
        return "required"
    if setting.default is None and "Default: " in setting.meaning:
        return ""
    return default_text(setting.default) or '""'


def _record(setting: Setting) -> dict[str, Any]:
    is_required = setting.default is REQUIRED
    default = {} if is_required else {"default": msgspec.to_builtins(setting.default)}
    return {"name": setting.name, "type": type_text(setting), **default, "meaning": setting.meaning}
