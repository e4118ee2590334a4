"""Questions of tasks in the words of a page: labels, choices with their keys, and choices that a project decides."""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import cast

from steelyard.annotation.questions import TaskQuestion
from steelyard.annotation.task_kinds import Catalogues
from steelyard.core.types import JsonObject, Record
from steelyard.prompts.taxonomy import NameLanguage, taxonomy
from steelyard.workbench.pipeline.projects import ProjectSettings

_DIGITS = "1234567890"


class ChoiceWords(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A choice: the value that is stored, its label, and the key that takes it; no key where there are too many."""

    value: str
    label: str
    key: str | None = None


class QuestionWords(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A question in a language of the pages. Fields are those of `TaskQuestion`; ``ask`` is the step in a sentence."""

    name: str
    input: str
    responses: tuple[str, ...]
    label: str
    ask: str
    choices: tuple[ChoiceWords, ...]
    severities: tuple[ChoiceWords, ...]
    range: tuple[int, int] | None
    condition: tuple[str, str] | None
    exception: tuple[str, str] | None


def catalogues_of(settings: ProjectSettings) -> Catalogues:
    """Return the choices that a project decides: the categories of prompts, and the dimensions of the taxonomy."""
    choices = _choices_of_taxonomy()
    return {**choices, "category": settings.tasks.categories or choices["category"]}


@cache
def _choices_of_taxonomy() -> Catalogues:
    tree = taxonomy()
    dimensions = {name: tuple(dimension.values) for name, dimension in tree.dimensions.items()}
    return {"category": tuple("/".join(tiers) for tiers in tree.paths()), **dimensions}


def question_in_words(question: TaskQuestion, language: str, letters: Sequence[str] | None = None) -> QuestionWords:
    """Return a question as the pages show it in a language; ``letters`` are those of its responses, or their ids."""
    words = _words(question.name, language)
    about = question.responses if letters is None else letters
    by_name = dict(zip(("first", "second"), about, strict=False)) | {"id": "".join(about[:1])}
    return QuestionWords(
        name=question.name,
        input=question.input,
        responses=question.responses,
        label=label_of(question.name, language),
        ask=words.get("ask", question.name).format(**by_name),
        choices=_choices(question, question.choices, language),
        severities=_choices(question, question.severities, language),
        range=question.range,
        condition=question.condition,
        exception=question.exception,
    )


def label_of(question: str, language: str) -> str:
    """Return the label of a question; of one without words its name."""
    return _words(question, language).get("label", question)


def choice_label(question: str, value: str, language: str) -> str:
    """Return the label of a choice: from the words of the question, else from the taxonomy, else the value itself."""
    table = _table().get(question, {}).get("choices", {})
    if value in table:
        return table[value][_known(language)]
    tree, known = taxonomy(), _known(language)
    if question in tree.dimensions and value in tree.dimensions[question].values:
        return getattr(tree.dimensions[question].values[value], known)
    tiers = tuple(value.split("/"))
    return " / ".join(tree.names(tiers, known)) if tree.find(tiers) is not None else value


def category_name(category: str, language: str) -> str:
    """Return the name of a category of items: the taxonomy's in this language for a key of it, else as it is."""
    return " / ".join(taxonomy().names(tuple(category.split("/")), _known(language)))


def category_spellings(text: str) -> tuple[str, ...]:
    """Return what an entered category may be stored as: the text itself, and the key of the category so named."""
    tiers = taxonomy().read_path(text) if text else None
    return (text,) if tiers is None else tuple(dict.fromkeys((text, "/".join(tiers))))


def _choices(question: TaskQuestion, values: tuple[str, ...], language: str) -> tuple[ChoiceWords, ...]:
    keys: tuple[str | None, ...] = question.keys if len(question.keys) == len(values) else tuple(_DIGITS)
    if len(values) > len(keys):
        keys = (None,) * len(values)
    return tuple(
        ChoiceWords(value=value, label=choice_label(question.name, value, language), key=key)
        for value, key in zip(values, keys, strict=False)
    )


def _known(language: str) -> NameLanguage:
    return cast(NameLanguage, language if language in ("en", "zh") else "en")


def _words(question: str, language: str) -> Mapping[str, str]:
    entry = _table().get(question, {})
    return {key: entry[key][_known(language)] for key in ("label", "ask") if key in entry}


@cache
def _table() -> JsonObject:
    return tomllib.loads(Path(__file__).with_name("questions.toml").read_text(encoding="utf-8"))


@cache
def rubric_of(language: str) -> Mapping[str, object]:
    """Return the scale, the dimensions and the lists of reasons in a language of the pages."""
    table = tomllib.loads(Path(__file__).with_name("rubric.toml").read_text(encoding="utf-8"))
    return {name: [_in_language(entry, language) for entry in entries] for name, entries in table.items()}


def _in_language(entry: Mapping[str, object], language: str) -> dict[str, object]:
    return {key: value[language] if isinstance(value, dict) else value for key, value in entry.items()}


def reason_label(reason: str, kind: str, language: str) -> str:
    """Return the label of a stored reason of the rubric, ``discards`` or ``cannot_judge``; any other as it is."""
    entries = cast(Sequence[Mapping[str, str]], rubric_of(language)[kind])
    return next((entry["label"] for entry in entries if entry["value"] == reason), reason)
