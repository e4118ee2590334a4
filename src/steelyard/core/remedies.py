"""Remedies as values inside a sentence: a setting to change, a command to run.

A sentence with remedies is an `Advice`. Its text is neutral, ``say over_length=left``, and is what records keep and
pages show. The command line and Python write each remedy in their own words (`worded`): ``--over-length left``,
``over_length="left"``.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple


class Placeholder(str):
    """The name of a value that the user chooses: ``FILE``."""

    __slots__ = ()


Value = str | float | list[Any] | tuple[str, ...] | None
"""The value of a setting: a `Placeholder`, or as in TOML. A tuple is an option that is repeated."""
ANY = Placeholder("…")
CASES, CODE, FILE, FOLDER, ID, KIND, NAME, NUMBER = map(
    Placeholder, ("CASES", "CODE", "FILE", "FOLDER", "ID", "KIND", "NAME", "N")
)


class Remedy(NamedTuple):
    """A setting or an input of the verb that runs, by its name in TOML, with the value that helps.

    Without a value it names the setting: ``lower learning_rate``. ``others`` are changed along with it.
    """

    setting: str
    value: Value = None
    others: tuple["Remedy", ...] = ()

    @property
    def changes(self) -> tuple["Remedy", ...]:
        """Every setting that changes, each as a remedy of its own."""
        return (self._replace(others=()), *self.others)

    def __str__(self) -> str:
        return ", ".join(
            change.setting if change.value is None else f"{change.setting}={toml_text(change.value)}"
            for change in self.changes
        )


class Command(NamedTuple):
    """Another verb to run, with its arguments in their order and its settings."""

    verb: str
    arguments: tuple[str, ...] = ()
    changes: tuple[Remedy, ...] = ()

    def __str__(self) -> str:
        words = " ".join(["steelyard", self.verb, *self.arguments])
        return f"{words} with {', '.join(map(str, self.changes))}" if self.changes else words


Wording = Callable[[Remedy | Command], str]
"""Writes a remedy in the words of one interface."""


class Advice(str):
    """A sentence of texts, remedies and commands. As a text it has their neutral words."""

    parts: tuple["str | Remedy | Command", ...]

    def __new__(cls, *parts: "str | Remedy | Command") -> "Advice":
        """Return the sentence of these parts, which follow each other without further spaces."""
        advice = super().__new__(cls, "".join(map(str, parts)))
        advice.parts = tuple(inner for part in parts for inner in (part.parts if isinstance(part, Advice) else (part,)))
        return advice


def worded(text: str, wording: Wording) -> str:
    """Return a text with its remedies in the words of an interface."""
    if not isinstance(text, Advice):
        return text
    return "".join(wording(part) if isinstance(part, Remedy | Command) else part for part in text.parts)


def joined(separator: str, texts: Iterable[str]) -> Advice:
    """Join texts and sentences with remedies."""
    parts = [part for text in texts for part in (separator, text)]
    return Advice(*parts[1:])


def toml_text(value: Any, *, is_inner: bool = False) -> str:
    """Return a value as it follows ``KEY=`` on the command line: TOML, and text without quotation marks."""
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}={toml_text(inner, is_inner=True)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(toml_text(inner, is_inner=True) for inner in value) + "]"
    if isinstance(value, str) and not is_inner:
        return str(value)
    return json.dumps(value, ensure_ascii=False)
