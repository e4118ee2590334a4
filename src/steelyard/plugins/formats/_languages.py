"""Languages in rows: codes and names, in English and in the languages themselves; a row's language and category."""

import re
from collections.abc import Collection
from typing import Any

from steelyard.core.errors import Place, RecordError
from steelyard.core.languages import LANGUAGE_NAMES, language_named, nearest_languages
from steelyard.core.types import JsonObject, Prompt

LANGUAGE_CODE = re.compile(r"[a-z]{2,3}([-_][A-Za-z0-9]+)*")
_UNKNOWN = ("unknown", "unk", "und", "other", "others", "undetermined", "unspecified", "none", "n/a", "null", "nan")
_REGIONAL_CODE = re.compile(r"[A-Za-z]{2}([-_][A-Za-z0-9]+)*|[A-Z]{3}([-_][A-Za-z0-9]+)*")


def language_code(name: str | None) -> str | None:
    """Return the code of a language's name in any case, or the code itself; null for anything else."""
    text = (name or "").strip()
    if is_unknown_language(text):
        return None
    is_code = LANGUAGE_CODE.fullmatch(text) or _REGIONAL_CODE.fullmatch(text)
    return language_named(text) or (text if is_code else None)


def is_unknown_language(name: str) -> bool:
    """Return whether a text says that the language is not known."""
    return name.strip().casefold() in _UNKNOWN


def unknown_language(value: Any, where: Place) -> RecordError:
    """Return the error for a cell that names no language, with the nearest codes."""
    near = ", ".join(f"{code} ({LANGUAGE_NAMES[code]})" for code in nearest_languages(str(value)))
    return RecordError(f"{value!r} is not a language", where=where, allowed=f"a code or a name, such as {near}")


def prompt_fields(row: JsonObject, known: Collection[str]) -> dict[str, tuple[str, str | tuple[str, ...]]]:
    """Return the prompt's language and category that a row states as texts, each with its key.

    Keys that are ``known`` have their own meaning in the format, and are left out.
    """
    texts = {key: text for key, text in row.items() if key not in known and isinstance(text, str) and text}
    codes = [(key, code) for key in ("language", "lang") if (code := language_code(texts.get(key)))]
    fields: dict[str, tuple[str, str | tuple[str, ...]]] = {"language": codes[0]} if codes else {}
    return fields | ({"category": ("category", (texts["category"],))} if "category" in texts else {})


def prompt_cells(prompt: Prompt, read: JsonObject, known: Collection[str]) -> JsonObject:
    """Return the cells of a prompt's language and category, as they were ``read`` where they still hold.

    A category of several tiers has none: a column has values of one type.
    """
    texts = {"language": prompt.language, "category": prompt.category[0] if len(prompt.category) == 1 else None}
    held = {field: key for field, (key, value) in prompt_fields(read, known).items() if value == getattr(prompt, field)}
    cells = {held.get(field, field): text for field, text in texts.items() if text and field not in known}
    return cells | {key: read[key] for key in held.values()}
