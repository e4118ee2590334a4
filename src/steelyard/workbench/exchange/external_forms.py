"""Contents of the forms of other tools, in both languages, and the parts of a tool: writing and reading."""

import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from steelyard.annotation.answers import HIGHEST_SCORE, LOWEST_SCORE
from steelyard.annotation.external_answers import ExternalAnswer
from steelyard.core.errors import Faults, Place, RecordError
from steelyard.core.remedies import FOLDER, Advice, Remedy
from steelyard.core.types import JsonObject
from steelyard.workbench.exchange.external_tasks import ExternalTasks, ManifestTask
from steelyard.workbench.pipeline.question_words import rubric_of
from steelyard.workbench.views.pages import LANGUAGES

SCORES = tuple(range(LOWEST_SCORE, HIGHEST_SCORE + 1))
_BETWEEN = " / "
WRONG_ANSWERS = "answers are wrong, and nothing was imported"
"""The summary of faults in an export."""


class FormChoice(NamedTuple):
    """A choice of a form: what is stored, and what is shown in both languages."""

    value: str
    text: str


class ReadingLog(NamedTuple):
    """Answers that are none (drafts), counted by reason, and the faults of others."""

    not_answers: Counter[str]
    faults: Faults


class ExternalTool(NamedTuple):
    """A tool that tasks go to.

    ``write`` returns the files of one group of tasks, by their path inside its folder. ``export_files`` finds the files
    with answers in a folder that the tool exported, and ``read`` reads one of them.
    """

    name: str
    write: Callable[[ExternalTasks, str], Mapping[str, str]]
    export_files: Callable[[Path], Sequence[Path]]
    read: Callable[[Path, Mapping[str, ManifestTask], ReadingLog], Iterator[ExternalAnswer]]


def title(key: str, letter: str = "") -> str:
    """Return a title in both languages."""
    return _both({language: _words("titles", language)[key].format(letter=letter) for language in LANGUAGES})


def choices(name: str, values: Sequence[str] | None = None) -> tuple[FormChoice, ...]:
    """Return the choices of a list of the rubric, with labels in both languages where it has the value.

    ``values`` are those of a project; null for all of the list.
    """
    labels: dict[str, dict[str, str]] = {}
    for language in LANGUAGES:
        for entry in _rubric(language, name):
            labels.setdefault(str(entry["value"]), {})[language] = str(entry["label"])
    chosen = labels if values is None else values
    return tuple(FormChoice(value, _both(labels.get(value, {"": value}))) for value in chosen)


def instructions(tasks: ExternalTasks, group: str, *, has_spans: bool) -> str:
    """Return what annotators read first, in both languages, as Markdown, with the guidelines of the project."""
    has_scores = tasks.groups()[group][0].entry.has_scores
    parts: list[str] = []
    for language in LANGUAGES:
        words = _words("instructions", language)
        parts += [words["head"], words["ranking"]]
        if has_scores:
            scale = [f"- {row['value']} {row['label']}: {row['text']}" for row in _rubric(language, "scores")]
            parts += [words["scores"], words["scale"], "\n".join(scale)]
        parts += [words["discard"], words["cannot_judge"], *([words["spans"]] if has_spans else []), words["blind"]]
        if tasks.guidelines.get(language):
            parts.append(tasks.guidelines[language])
    return "\n\n".join(parts) + "\n"


def entry_of(key: object, entries: Mapping[str, ManifestTask], place: Place) -> ManifestTask:
    """Return the exported task of a key. Raises RecordError for one that the manifest lacks."""
    entry = entries.get(key) if isinstance(key, str) else None
    if entry is None:
        raise RecordError(
            f"the task {str(key)[:60]!r} was not exported",
            where=place,
            allowed="tasks of the manifest",
            do=Advice("name the folder that these tasks were exported to: ", Remedy("tasks", FOLDER)),
        )
    return entry


def number_in(value: Any, low: float, high: float, place: Place, what: str) -> int:
    """Return a whole number between two bounds, also one written as text. Raises RecordError for anything else."""
    text = str(value).strip() if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
    number = int(text) if text.isascii() and text.removesuffix(".0").isdigit() and "." not in text else None
    if number is None or not low <= number <= high:
        allowed = f"a whole number from {low:g} to {high:g}"
        raise RecordError(f"{str(value)[:40]!r} as {what}", where=place, allowed=allowed)
    return number


def numbers_by_letter(
    entered: Mapping[str, object], letters: Sequence[str], question: str, bounds: tuple[float, float], place: Place
) -> dict[str, int]:
    """Return what was entered for each letter in questions named ``place_a`` or ``score_a``; others are absent.

    Raises RecordError for anything but a whole number between the bounds.
    """
    return {
        letter: number_in(entered[name], *bounds, place, f"the {question} of {letter}")
        for letter in letters
        if (name := f"{question}_{letter.lower()}") in entered
    }


def moment_in(text: Any) -> float | None:
    """Return a moment in ISO 8601 as seconds since 1970, in UTC where it names no zone; null for anything else."""
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _both(texts: Mapping[str, str]) -> str:
    return _BETWEEN.join(dict.fromkeys(texts.values()))


def _rubric(language: str, name: str) -> list[JsonObject]:
    entries = rubric_of(language)[name]
    assert isinstance(entries, list), "the rubric has lists"
    return entries


@cache
def _words(part: str, language: str) -> Mapping[str, str]:
    table = tomllib.loads(Path(__file__).with_name("exchange.toml").read_text(encoding="utf-8"))
    return {key: entry[language] for key, entry in table[part].items()}
