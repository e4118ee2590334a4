"""The columns of a user's table: which are named together, and cells as ids, languages, labels and ratings."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from steelyard.core.errors import ConfigError, Place, RecordError
from steelyard.core.protocols import Row, is_number
from steelyard.core.types import JsonObject, Prompt, Ranking, Rating, Verdict
from steelyard.plugins.formats._pairs import parse_number, tiers_of
from steelyard.plugins.formats._rows import language_code

_LABELS: Mapping[Verdict, tuple[str, ...]] = {
    "left": ("1", "a", "left", "first"),
    "right": ("2", "b", "right", "second"),
    "tie": ("tie", "equal", "same"),
}
_EMPTY = (None, "")
_NOWHERE = Place("the row to write")


class PromptColumns(NamedTuple):
    """The columns of a prompt's id, language, category and reference; null where the table has none."""

    id: str | None
    language: str | None
    category: str | None
    reference: str | None = None

    def names(self) -> tuple[str, ...]:
        """Return the names of the columns that the table has."""
        return tuple(name for name in self if name is not None)

    def parts(self) -> tuple[str, ...]:
        """Return the parts of a case that the columns hold."""
        parts = ("prompt ids", "language", "category", "reference")
        return tuple(part for part, name in zip(parts, self, strict=True) if name is not None)

    def prompt_id(self, row: Row) -> str | None:
        """Return the row's id, null for an empty cell."""
        value = row.value.get(self.id) if self.id else None
        if value in _EMPTY:
            return None
        if isinstance(value, bool) or not isinstance(value, str | int):
            where = row.at(self.id or "")
            raise RecordError(f"{value!r} is not an id", where=where, allowed="a text or a whole number")
        return str(value)

    def fields(self, row: Row) -> JsonObject:
        """Return the language, category and reference of the row's prompt, without those that are empty."""
        fields = {"language": self._language(row), "category": self._category(row), "reference": self._reference(row)}
        return {name: value for name, value in fields.items() if value}

    def values(self, row: Row) -> JsonObject:
        """Return the cells of the row as they are, for its recorded form."""
        return {name: row.value[name] for name in self.names() if name in row.value}

    def cells(self, prompt: Prompt, row: Row) -> JsonObject:
        """Return the cells of a prompt: those of the ``row`` that was read where they still hold."""
        tiers = prompt.category
        written: JsonObject = {}
        if self.id:
            written[self.id] = row.value.get(self.id, prompt.id)
        if self.language:
            holds = self.language in row.value and self._language(row) == prompt.language
            written[self.language] = row.value[self.language] if holds else prompt.language
        if self.category:
            holds = self.category in row.value and self._category(row) == tiers
            fresh = None if not tiers else tiers[0] if len(tiers) == 1 else list(tiers)
            written[self.category] = row.value[self.category] if holds else fresh
        if self.reference:
            holds = self.reference in row.value and self._reference(row) == prompt.reference
            written[self.reference] = row.value[self.reference] if holds else prompt.reference
        return written

    def written(self, prompt: Prompt, form: JsonObject) -> JsonObject:
        """Return the cells of a prompt, as the form of its case has them where they still hold."""
        cells = form.get("cells")
        return self.cells(prompt, Row(_NOWHERE, cells if isinstance(cells, dict) else {}))

    def _reference(self, row: Row) -> str | None:
        """Return the text of the row's reference; a number is written out."""
        value = row.value.get(self.reference) if self.reference else None
        if value in _EMPTY:
            return None
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            where = row.at(self.reference or "")
            raise RecordError(f"{value!r} is not a reference", where=where, allowed="a text or a number")
        return str(value)

    def _language(self, row: Row) -> str | None:
        value = row.value.get(self.language) if self.language else None
        if value in _EMPTY:
            return None
        code = language_code(value) if isinstance(value, str) else None
        if code is None:
            where = row.at(self.language or "")
            raise RecordError(f"{value!r} is not a language", where=where, allowed="a code (zh) or a name (Chinese)")
        return code

    def _category(self, row: Row) -> tuple[str, ...]:
        value = row.value.get(self.category) if self.category else None
        if value in _EMPTY:
            return ()
        tiers = value if isinstance(value, list) else [value]
        if not all(isinstance(tier, str) for tier in tiers):
            where = row.at(self.category or "")
            raise RecordError(f"{value!r} is not a category", where=where, allowed="a text, or a list of texts")
        return tuple(tiers)


class LabelColumn(NamedTuple):
    """The column that says which of two answers is better, and the columns of both."""

    column: str
    first: str
    second: str

    def verdict(self, row: Row) -> Verdict:
        """Return the verdict of the row's label. Raises RecordError for an unknown label."""
        value = row.value.get(self.column)
        verdict = self.verdict_of(value)
        if verdict is None:
            columns = f"{self.first!r} or {self.second!r}"
            allowed = "; ".join(", ".join(words) for words in _LABELS.values())
            problem = f"unknown label {value!r}"
            raise RecordError(
                problem,
                where=row.at(self.column),
                allowed=f"{allowed}; or a column: {columns}",
                do=f"write these words in the column {self.column!r}: 0 is the first answer in some tables, a tie in "
                "others"
                if value in (0, "0")
                else None,
            )
        return verdict

    def verdict_of(self, value: Any) -> Verdict | None:
        """Return the verdict of a label, in any case; null for an unknown one. The name of a column comes first."""
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            return None
        word = value.strip().casefold() if isinstance(value, str) else f"{value:g}"
        columns: dict[str, Verdict] = {self.second.casefold(): "right", self.first.casefold(): "left"}
        if word in columns:
            return columns[word]
        # Tables with empty cells hold whole numbers as 1.0.
        word = word.removesuffix(".0")
        return next((verdict for verdict, words in _LABELS.items() if word in words), None)

    def label(self, verdict: Verdict, value: Any) -> Any:
        """Return the value that was read where it still means the verdict, else a new label."""
        if self.verdict_of(value) == verdict:
            return value
        # A word can be the name of the other column: the first that means the verdict is written.
        words = (*_LABELS[verdict], self.second if verdict == "right" else self.first)
        return next(word for word in words if self.verdict_of(word) == verdict)


def rating_in(row: Row, column: str) -> float | None:
    """Return the number under the column, also of a text; null for an empty cell."""
    value = row.value.get(column)
    if isinstance(value, str):
        value = parse_number(value) if value.strip() else None
        if value is None and row.value[column].strip():
            raise RecordError(f"{row.value[column]!r} is not a number", where=row.at(column), allowed="a number")
        return value
    if value is not None and not is_number(value):
        raise RecordError(f"{value!r} is not a number", where=row.at(column), allowed="a number, or null")
    return None if value is None else float(value)


def ranking_by_mean(ratings: Sequence[Rating]) -> Ranking | None:
    """Return the answers by the mean of their ratings, highest first; null for fewer than two rated answers."""
    values: defaultdict[str, list[float]] = defaultdict(list)
    for rating in ratings:
        values[rating.response].append(rating.value)
    means = {name: math.fsum(numbers) / len(numbers) for name, numbers in values.items()}
    return tiers_of({name: -mean for name, mean in means.items()}) if len(means) > 1 else None


def check_shape(shapes: Mapping[str, Mapping[str, str | None]], names: Mapping[str, str | None]) -> str:
    """Return the shape whose columns are set; the first where none is.

    ``shapes`` has the columns of each shape by setting, ``names`` every column by setting. Raises ConfigError for
    columns of two shapes, a shape without one of its columns, and one name for two columns.
    """
    chosen = [shape for shape, columns in shapes.items() if any(value is not None for value in columns.values())]
    texts = {shape: " ".join(f"{_option(key)} NAME" for key in columns) for shape, columns in shapes.items()}
    if len(chosen) > 1:
        used = [_option(key) for shape in chosen for key, value in shapes[shape].items() if value is not None]
        problem = f"{', '.join(used)} contradict each other: a table has {' or '.join(shapes)}"
        raise ConfigError(problem, allowed="; or ".join(texts.values()))
    shape = chosen[0] if chosen else next(iter(shapes))
    missing = [_option(key) for key, value in shapes[shape].items() if value is None] if chosen else []
    if missing:
        raise ConfigError(f"{shape} need {' and '.join(missing)} too", allowed=texts[shape])
    by_name: dict[str, str] = {}
    for key, name in names.items():
        if name is not None and name in by_name:
            raise ConfigError(f"{_option(by_name[name])} and {_option(key)} are both {name!r}", do="name two columns")
        if name is not None:
            by_name[name] = key
    return shape


def _option(key: str) -> str:
    return f"--{key.replace('_', '-')}"
