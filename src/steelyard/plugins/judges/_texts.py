"""The words of judges' prompts, from the files beside this one: texts, criteria by category, names of languages."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import msgspec

from steelyard.core.errors import ConfigError, choices
from steelyard.core.identity import content_id
from steelyard.core.types import Prompt
from steelyard.methods.annotation.reading import Form

Tongue = Literal["en", "zh"]


class Style(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of ``styles.toml``, whose head says what the columns mean."""

    form: Form
    reason: bool
    system: bool
    max_tokens: int
    about: str


class FormTexts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a form of answer is asked for; null where the form cannot carry the task."""

    choice: str
    one: str
    best: str
    tie: str
    answer: str
    ranking: str | None = None
    rating: str | None = None


class Texts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of texts: ``task`` by kind of judge, ``told`` by what is told, ``form`` by form, ``part`` by section."""

    task: dict[str, str]
    told: dict[str, str]
    form: dict[str, FormTexts]
    part: dict[str, str]
    criteria: dict[str, tuple[str, ...]]
    languages: dict[str, str] = {}


class _Category(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    names: tuple[str, ...]
    parts: tuple[str, ...]


@cache
def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((files("steelyard") / name).read_text(encoding="utf-8"))


@cache
def styles() -> dict[str, Style]:
    """Every named style."""
    return msgspec.convert(_read("plugins/judges/styles.toml"), dict[str, Style])


def style_named(name: str) -> Style:
    """The style of that name. Raises ConfigError with the nearest name that there is."""
    found = styles().get(name)
    if found is None:
        raise ConfigError(f"there is no style {name!r}", where="judge.style", allowed=choices(name, styles()))
    return found


@cache
def texts_in(tongue: Tongue) -> Texts:
    """The texts in English or Chinese."""
    return msgspec.convert(_read(f"plugins/judges/texts.{tongue}.toml"), Texts)


@cache
def texts_hash() -> str:
    """What tells two versions of all texts apart."""
    names = ("texts.en.toml", "texts.zh.toml", "categories.toml")
    return content_id({name: _read(f"plugins/judges/{name}") for name in names})


@cache
def _names_of_codes() -> dict[str, str]:
    table = _read("data/languages.toml")
    return {code.casefold(): name for name, row in table.items() for code in row["codes"]}


def language_name(code: str, tongue: Tongue) -> str:
    """What the language is called in the prompt's own language; a code that is not known stays as it is."""
    name = _names_of_codes().get(code.casefold())
    if name is None:
        return code
    main, _, script = name.partition("_")
    return texts_in(tongue).languages.get(name) or main.capitalize() + (f" ({script})" if script else "")


def is_chinese(code: str | None) -> bool:
    """Whether the language is Chinese, in either script."""
    return code is not None and _names_of_codes().get(code.casefold(), "").startswith("chinese")


def criterion_of(prompt: Prompt) -> str:
    """The name of the criteria that a prompt is judged by (the categories of CHEEMS, figures 13 and 14)."""
    table = msgspec.convert(_read("plugins/judges/categories.toml"), dict[str, _Category])
    # A subset says more than the section that it is in: code inside reasoning is judged as code.
    told = [name.casefold() for name in ([prompt.subset] if prompt.subset else []) + [*prompt.category]]
    for own in told:
        for name, category in table.items():
            if own in category.names:
                return name
    for own in told:
        for name, category in table.items():
            if any(part in own for part in category.parts):
                return name
    return "general"
