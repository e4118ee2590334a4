"""The texts of judges' prompts, from the TOML files of this package: texts, criteria, names of languages."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec

from steelyard.core.checks import content_id
from steelyard.core.errors import ConfigError, choices
from steelyard.core.languages import language_key
from steelyard.core.types import JsonObject, Prompt
from steelyard.judging.reply_parsing import Form
from steelyard.prompts.taxonomy import taxonomy

TextLanguage = Literal["en", "zh"]


class Style(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of ``styles.toml``, whose head explains the columns."""

    form: Form
    reason: bool
    system: bool
    max_tokens: int
    orders: Literal["both", "one"] = "both"
    ties: bool = False
    criteria: bool = True
    own_marks: bool = True
    factors: bool = False
    about: str


class FormTexts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The texts that request a form of answer; null where the form cannot carry the task.

    ``reason`` is the part of the JSON object that holds the reasons; ``coded`` is a verdict with the request's code.
    """

    choice: str
    pair: str = msgspec.field(name="one")
    best: str
    tie: str
    answer: str
    ranking: str | None = None
    rating: str | None = None
    reason: str = ""
    coded: str | None = None


class Texts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of texts: ``task`` by kind of judge, ``instructions`` by name, ``form`` by form, ``part`` by section."""

    task: dict[str, str]
    instructions: dict[str, str] = msgspec.field(name="told")
    form: dict[str, FormTexts]
    part: dict[str, str]
    criteria: dict[str, tuple[str, ...]]
    languages: dict[str, str] = {}


@cache
def _read(name: str) -> JsonObject:
    return tomllib.loads((files("steelyard") / name).read_text(encoding="utf-8"))


@cache
def styles() -> dict[str, Style]:
    """Return the styles by name."""
    return msgspec.convert(_read("plugins/judges/styles.toml"), dict[str, Style])


def style_named(name: str) -> Style:
    """Return the style of that name. Raises ConfigError with the nearest name that exists."""
    style = styles().get(name)
    if style is None:
        raise ConfigError(f"there is no style {name!r}", where="judge.style", allowed=choices(name, styles()))
    return style


@cache
def texts_in(language: TextLanguage) -> Texts:
    """Return the texts in English or Chinese."""
    return msgspec.convert(_read(f"plugins/judges/texts.{language}.toml"), Texts)


@cache
def texts_hash() -> str:
    """Return a hash of all texts, which identifies their version."""
    names = ("plugins/judges/texts.en.toml", "plugins/judges/texts.zh.toml", "data/taxonomy.toml")
    return content_id({name: _read(name) for name in names})


@cache
def _names_of_codes() -> dict[str, str]:
    codes = [(code, name) for name, row in _read("data/languages.toml").items() for code in row["codes"]]
    # A code with its script keeps the name that says the script, as of Simplified Chinese.
    return {language_key(code): name for code, name in reversed(codes)} | {_plain(code): name for code, name in codes}


def _plain(code: str) -> str:
    return code.casefold().replace("_", "-")


def language_of(code: str | None) -> str | None:
    """Return the name of the language in ``languages.toml``; null for a code that is not in it."""
    names = _names_of_codes()
    return None if code is None else names.get(_plain(code)) or names.get(language_key(code))


def language_name(code: str, language: TextLanguage) -> str:
    """Return the language's name in the prompt's own language; an unknown code stays as it is."""
    name = language_of(code)
    if name is None:
        return code
    main, _, script = name.partition("_")
    return texts_in(language).languages.get(name) or main.capitalize() + (f" ({script})" if script else "")


def is_chinese(code: str | None) -> bool:
    """Return whether the language is Chinese, in either script."""
    return (language_of(code) or "").startswith("chinese")


def criterion_of(prompt: Prompt) -> str:
    """Return the name of the criteria that a prompt is judged by (the categories of CHEEMS, figures 13 and 14)."""
    return taxonomy().criteria_named(prompt.category, prompt.subset)
