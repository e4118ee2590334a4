"""The columns of a user's table: which are named together, and cells as ids, languages, labels and ratings."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from steelyard.core.errors import Place, RecordError
from steelyard.core.protocols import Row, parse_number
from steelyard.core.remedies import ANY, Advice, Remedy
from steelyard.core.types import JsonObject, Prompt, Verdict
from steelyard.curation.verdict_labels import LABELS, label_word, only_label
from steelyard.plugins.formats._label_phrases import verdict_of_label
from steelyard.plugins.formats._languages import is_unknown_language, language_code, unknown_language

_SHORT: Mapping[Verdict, tuple[str, ...]] = {
    "left": ("1", "a", "left", "first"),
    "right": ("2", "b", "right", "second"),
    "tie": ("tie", "equal", "same"),
}
_EMPTY = (None, "")
_MOST_STEPS = 10
"""The largest number of a scale whose meanings an error proposes."""
_MOST_WORDS = 12
"""The most labels in words whose meanings an error proposes: a column of more has other values."""


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
        value = row.value.get(self.id) if self.id is not None else None
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

    def cells(self, prompt: Prompt) -> JsonObject:
        """Return the cells of a prompt."""
        tiers = prompt.category
        category = None if not tiers else tiers[0] if len(tiers) == 1 else list(tiers)
        cells = ((self.id, prompt.id), (self.language, prompt.language), (self.category, category))
        cells = (*cells, (self.reference, prompt.reference))
        return {name: value for name, value in cells if name is not None}

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
        if value in _EMPTY or (isinstance(value, str) and is_unknown_language(value)):
            return None
        code = language_code(value) if isinstance(value, str) else None
        if code is None:
            raise unknown_language(value, row.at(self.language or ""))
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


_WORDS: Mapping[Verdict, str] = {"left": "the first answer", "right": "the second answer", "tie": "a tie"}


class LabelColumns(NamedTuple):
    """The columns that say which of two answers is better: one with a label, or one for each answer (one-hot).

    ``answers`` are the columns of both answers and ``authors`` those of their models: names of either are labels too.
    ``tie`` is a column that is true for a tie. ``words`` are the user's own labels.
    """

    columns: tuple[str, ...]
    tie: str | None
    answers: tuple[str, ...]
    authors: tuple[str, ...]
    words: Mapping[str, Verdict]

    def names(self) -> tuple[str, ...]:
        """Return the names of the columns."""
        return (*self.columns, *((self.tie,) if self.tie else ()))

    def read(self, row: Row, warnings: Counter[str]) -> Verdict | None:
        """Return the verdict, null where every cell is empty. Raises RecordError for an unknown label."""
        if self.tie and is_true(row, self.tie):
            return "tie"
        if len(self.columns) > 1:
            left, right = (is_true(row, column) for column in self.columns)
            return "left" if left and not right else "right" if right and not left else "tie" if left else None
        column = next(iter(self.columns))
        value = only_label(row.value.get(column))
        if value is None or (isinstance(value, str) and not value.strip()):
            return None
        verdict = self.verdict_of(value, row)
        if verdict is None:
            raise self.unknown(value, row.at(column), (value,))
        if verdict in _WORDS:
            warnings[f"labels {str(value).strip()!r} read as {_WORDS[verdict]}"] += 1
        return verdict

    def verdict_of(self, value: Any, row: Row) -> Verdict | None:
        """Return the verdict of a label, in any case, also the name of a column or model; null for an unknown one."""
        if not isinstance(value, str | int | float):
            return None
        text = value.strip() if isinstance(value, str) else str(value) if isinstance(value, bool) else f"{value:g}"
        if text in self.words:
            return self.words[text]
        names = [[row.value.get(key) for key in self.authors], self.answers, self.authors]
        for pair in names:
            places = [place for place, name in enumerate(pair) if isinstance(name, str) and name == text]
            if len(places) == 1:
                return ("left", "right")[places[0]]
        # Tables with empty cells hold whole numbers as 1.0.
        folded: dict[str, Verdict] = {name.casefold(): verdict for name, verdict in self.words.items()}
        # Where numbers have the user's meanings, 1 and 2 have no others: 1 is the second answer beside -1.
        is_number = parse_number(text) is not None and any(parse_number(name) is not None for name in self.words)
        usual = None if is_number else verdict_of_label(text, self.answers) or LABELS.get(label_word(text))
        return folded.get(text.casefold()) or usual

    def _scale(self, steps: Sequence[float]) -> Remedy:
        """Return the settings of a scale that has these numbers: its lower half is for the first answer.

        It begins at the negative number, at 0 or at 1, as those that have a meaning already. Of 0, 1 and 2, 0 is a tie.
        """
        numbers = [*steps, *(value for name in self.words if (value := parse_number(name)) is not None)]
        high = max(abs(int(value)) for value in numbers)
        low = -high if min(numbers) < 0 else 0 if 0 in numbers else 1
        middle = (low + high) / 2
        sides = {
            step: "left" if step < middle else "right" if step > middle else "tie" for step in range(low, high + 1)
        }
        meanings = {0: "tie", 1: "left", 2: "right"} if (low, high) == (0, 2) else sides
        first, *others = (Remedy(f"labels.{step}", side) for step, side in meanings.items())
        return first._replace(others=tuple(others))

    def unknown(self, value: Any, where: Place | str | None, values: Sequence[Any]) -> "UnknownLabelError":
        """Return the error for an unknown label. ``values`` are the labels of the file, for which it has advice."""
        columns = " or ".join(map(repr, self.answers))
        allowed = "; ".join(", ".join(_SHORT[verdict]) for verdict in _WORDS)
        error = UnknownLabelError(
            f"unknown label {value!r}",
            where=where,
            allowed=f"{allowed}; or a column: {columns}" if columns else allowed,
            do=self._meanings(value, values),
        )
        error.value = value
        return error

    def _meanings(self, value: Any, values: Sequence[Any]) -> str | None:
        """Return the settings that give a meaning to the labels of a file; null for one that no setting can name."""
        if str(value).casefold() in ("true", "false"):
            return Advice(
                "say what true and false mean: ", Remedy("labels.true", "left", (Remedy("labels.false", "right"),))
            )
        texts = list(dict.fromkeys(str(each) for each in values if isinstance(each, str | int | float)))
        numbers = [parse_number(text) for text in texts if "." not in text]
        steps = [number for number in numbers if number is not None and number in range(-_MOST_STEPS, _MOST_STEPS + 1)]
        if len(steps) == len(texts) and {*steps} <= {0, 1} and 0 in steps:
            return Advice(
                "say what 0 and 1 mean, for 0 is the second answer in some tables, the first or a tie in others: ",
                Remedy("labels.1", "left", (Remedy("labels.0", "right"),)),
            )
        if steps and len(steps) == len(texts):
            return Advice("say what the scale means, each number of it, such as: ", self._scale(steps))
        known = [*self.words, *self.answers]
        names = [text for text in texts if text.strip() and "." not in text and label_word(text) not in LABELS]
        names = [name for name in names if name not in known and verdict_of_label(name, self.answers) is None]
        if not 1 < len(names) <= _MOST_WORDS:
            # No meaning is proposed: a wrong one would turn every verdict round.
            meaning = Remedy(f"labels.{value}", ANY) if str(value) in names else None
            return Advice("say what it means (left, right, tie or none): ", meaning) if meaning else None
        first, *others = (Remedy(f"labels.{name}", ANY) for name in names)
        return Advice("say what each means (left, right, tie or none): ", first._replace(others=tuple(others)))


class UnknownLabelError(RecordError):
    """A label without a meaning."""

    value: Any = None
    """The label."""


def is_true(row: Row, column: str) -> bool:
    """Return whether a cell is true. Raises RecordError for a cell that is neither true, false nor empty."""
    value = row.value.get(column)
    word = str(value).strip().casefold().removesuffix(".0")
    if word not in ("true", "1", "yes", "false", "0", "no", "none", "", "nan"):
        raise RecordError(
            f"{value!r} is neither true nor false", where=row.at(column), allowed="1, 0, true, false, or empty"
        )
    return word in ("true", "1", "yes")
