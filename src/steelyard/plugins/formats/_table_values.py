"""The values of a row of a table: its prompt, answers and evidence, by the roles of its columns."""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from steelyard.core.errors import RecordError
from steelyard.core.protocols import Row, parse_number
from steelyard.core.types import JsonObject, Kind, Message, Meta, Verdict
from steelyard.curation.column_names import LISTS
from steelyard.curation.nested_columns import is_nested
from steelyard.io.json_text import decode_list
from steelyard.plugins.formats._column_values import LabelColumns, PromptColumns
from steelyard.plugins.formats._nested_ratings import NestedRating, nested_ratings
from steelyard.plugins.formats._pairs import cut_turns
from steelyard.plugins.formats._turns import are_conversations, count_other_keys, decoded_turns, earlier_turns, turns_of

Shape = Literal["pairs", "labelled pairs", "answers"]
Turns = tuple[Message, ...]
_TEXT_KEYS = ("text", "content", "response", "answer", "output", "completion", "generation")
_AUTHOR_KEYS = ("model", "author", "model_name", "generator")


class AnswerCell(NamedTuple):
    """An answer of a row, with its author and its number; ``nested`` are ratings in an object of its own."""

    turns: Turns
    author: str | None = None
    rating: float | None = None
    nested: tuple[NestedRating, ...] = ()
    meta: Meta | None = None


class RowValues(NamedTuple):
    """The values of a row."""

    prompt: Turns
    fields: JsonObject
    answers: tuple[AnswerCell, ...]
    verdict: Verdict | None = None
    judge: str | None = None
    time: Any = None
    batch: str | None = None


class TableColumns(NamedTuple):
    """The roles of a table's columns. Without ``prompt`` columns the prompt is the turns that both answers share."""

    shape: Shape
    prompt: tuple[str, ...]
    system: str | None
    history: str | None
    answers: tuple[str, ...]
    labels: LabelColumns | None
    ratings: tuple[str, ...]
    lower_is_better: bool
    authors: tuple[str, ...]
    judge: str | None
    judge_kind: Kind
    time: str | None
    batch: str | None
    fields: PromptColumns

    def needed(self) -> tuple[str, ...]:
        """Return the columns that every row must have."""
        labels = self.labels.columns if self.labels else ()
        # Of several fields of an object, as of a post or an article, each row may have another one.
        prompt = () if len(self.prompt) > 1 and is_nested(self.prompt[0]) else self.prompt[:1]
        return (*prompt, *self.answers, *labels, *self.ratings)

    def keys(self) -> tuple[str, ...]:
        """Return all columns."""
        labels = self.labels.names() if self.labels else ()
        others = (self.system, self.history, self.judge, self.time, self.batch)
        return (
            *self.prompt,
            *self.answers,
            *labels,
            *self.ratings,
            *self.authors,
            *filter(None, others),
            *self.fields.names(),
        )

    def dimension(self) -> str | None:
        """Return the dimension of the ratings: the name of their first column, without the objects around it."""
        return self.ratings[0].rpartition(".")[2] if self.ratings else None

    def signed(self, number: float) -> float:
        """Return a cell's number as a rating, higher is better, or a rating as the number of a cell."""
        return 0.0 - number if self.lower_is_better else number

    def values(self, row: Row, warnings: Counter[str]) -> RowValues:
        """Return the values of a row. Raises RecordError for a cell that cannot be read."""
        if self.shape == "answers":
            prompt, answers = self._prompt(row), self._all_answers(row, warnings)
        else:
            sides = self._exchanges(row) or decoded_turns([row.value.get(key) for key in self.answers])
            turns = [
                turns_of(side, row.place, key, role="assistant") for side, key in zip(sides, self.answers, strict=True)
            ]
            if not self.prompt or are_conversations(sides):
                shared, *turns = cut_turns(*turns)
                if not shared:
                    raise RecordError(f"{' and '.join(self.answers)} share no turn", where=row.place)
                prompt = (*self._system(row), *shared)
            else:
                prompt = self._prompt(row)
            authors = [self._name(row, key) for key in self.authors] or [None, None]
            answers = tuple(AnswerCell(tuple(side), author) for side, author in zip(turns, authors, strict=True))
        own_id = self.fields.prompt_id(row)
        time = row.value.get(self.time) if self.time else None
        # A number in a text, as tables without types have it, is a number.
        number = parse_number(time) if isinstance(time, str) else None
        return RowValues(
            prompt=prompt,
            fields={**({"id": own_id} if own_id else {}), **self.fields.fields(row)},
            answers=answers,
            # A pair of a judge is a judgment for the better answer.
            verdict=self.labels.read(row, warnings)
            if self.labels
            else "left"
            if self.shape == "labelled pairs"
            else None,
            judge=self._name(row, self.judge),
            time=time if number is None else number,
            batch=self._name(row, self.batch),
        )

    def _prompt(self, row: Row) -> Turns:
        """Return the turns of the prompt: those of the system, and the cells of its columns as one turn, or turns."""
        first, *others = self.prompt
        if not others:
            (value,) = decoded_turns([row.value.get(first)])
            if self.shape == "labelled pairs" and self._exchanges(row) is not None:
                value = (text_list(value) or [""])[0]
            return (*self._before(row), *turns_of(value, row.place, first, role="user"))
        texts = [row.text(key, default="") for key in self.prompt]
        return (*self._before(row), Message(role="user", content="\n\n".join(filter(None, texts))))

    def _exchanges(self, row: Row) -> list[list[JsonObject]] | None:
        """Return both answers with the later questions between their turns, where all cells are lists of texts.

        The lists are JSON or its text, one entry for each exchange.
        """
        keys = (*self.prompt[:1], *self.answers)
        lists = [text_list(row.value.get(key)) for key in keys] if len(self.prompt) == 1 else [None]
        if None in lists or len({len(texts) for texts in lists if texts is not None}) != 1:
            return None
        questions, *answers = (texts for texts in lists if texts is not None)
        return [
            [
                {"role": role, "content": text}
                for question, answer in zip(questions, texts, strict=True)
                for role, text in (("user", question), ("assistant", answer))
            ][1:]
            for texts in answers
        ]

    def _before(self, row: Row) -> Turns:
        """Return the turns before the prompt: the system's and the earlier ones."""
        history = earlier_turns(row.value.get(self.history), row.place, self.history) if self.history else ()
        return (*self._system(row), *history)

    def _system(self, row: Row) -> Turns:
        text = row.optional_text(self.system) if self.system else None
        return (Message(role="system", content=text),) if text else ()

    def _all_answers(self, row: Row, warnings: Counter[str]) -> tuple[AnswerCell, ...]:
        """Return the answers of a row: one, those of a list, or one for each column that is not empty."""
        for name in self.answers:
            count_other_keys([item for item in as_list(row.value.get(name)) if not answer_fields(item)], warnings)
        if len(self.answers) > 1:
            authors = [self._name(row, key) for key in self.authors] or self.answers
            if len(self.ratings) > 1:
                numbers = [row.number(key) for key in self.ratings]
            else:
                numbers = [self._number(row, number) for number in self._listed(row, self.ratings, len(self.answers))]
            cells = zip(self.answers, authors, numbers, strict=True)
            return tuple(
                AnswerCell(turns_of(row.value[key], row.place, key, role="assistant"), author, number)
                for key, author, number in cells
                if row.value.get(key) not in (None, "")
            )
        key = next(iter(self.answers))
        value = list_cell(row, key)
        if not isinstance(value, list) or not holds_list(value):
            (turns,) = decoded_turns([value])
            author = self._name(row, self.authors[0]) if self.authors else None
            rating = row.number(self.ratings[0]) if self.ratings else None
            return (AnswerCell(turns_of(turns, row.place, key, role="assistant"), author, rating),)
        authors = self._listed(row, self.authors, len(value))
        numbers = self._listed(row, self.ratings, len(value))
        return tuple(
            self._item(row, f"{key}[{place}]", item, author, number)
            for place, (item, author, number) in enumerate(zip(value, authors, numbers, strict=True))
        )

    def _item(self, row: Row, key: str, item: Any, author: Any, number: Any) -> AnswerCell:
        """Return an answer of a list: a text, turns, or an object with a text, and perhaps its author and its ratings.

        Numbers of the object are ratings where no column has one. Other fields are kept.
        """
        fields = answer_fields(item)
        text = next((name for name in _TEXT_KEYS if isinstance(fields.get(name), str)), None)
        model = next((name for name in _AUTHOR_KEYS if isinstance(fields.get(name), str)), None)
        rated = nested_ratings({} if self.ratings else fields)
        turns = turns_of(fields[text] if text else item, row.place, key, role="assistant")
        value = Row(row.place, {"author": fields[model] if author is None and model else author})
        return AnswerCell(
            turns,
            self._name(value, "author"),
            self._number(row, number),
            nested=rated.ratings,
            meta={name: field for name, field in fields.items() if name not in (text, model, rated.field)} or None,
        )

    def _number(self, row: Row, value: Any) -> float | None:
        """Return a number of a list; true and false are 1 and 0 there."""
        number = int(value) if isinstance(value, bool) else value
        return Row(row.place, {self.ratings[0]: number}).number(self.ratings[0]) if self.ratings else None

    def _listed(self, row: Row, columns: Sequence[str], number: int) -> Sequence[Any]:
        """Return the cell of a column beside a list of answers: as many values, or one for all."""
        value = decoded_list(row.value.get(columns[0])) if columns else None
        if not isinstance(value, list):
            return [value] * number
        if len(value) != number:
            problem = f"{len(value)} values beside {number} answers"
            raise RecordError(problem, where=row.at(columns[0]), allowed=f"{number} values")
        return value

    def _name(self, row: Row, column: str | None) -> str | None:
        value = row.value.get(column) if column else None
        if isinstance(value, dict):
            # Label Studio's annotator is a number, or an object.
            value = next((value[key] for key in ("email", "username", "id") if value.get(key)), value)
        if value is None or value == "":
            return None
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise RecordError(f"{value!r} is not a name", where=row.at(column or ""), allowed="a text or a number")
        # One person stays one: with a blank at the end, or in the decomposed form of a Mac.
        text = unicodedata.normalize("NFC", value).strip() if isinstance(value, str) else ""
        return text or None if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)


def table_names(value: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the names of a setting of one or several columns."""
    return () if value is None else (value,) if isinstance(value, str) else tuple(value)


def list_cell(row: Row, column: str) -> Any:
    """Return a cell of answers; in a column with the name of a list, JSON text is its list."""
    value = row.value.get(column)
    return decoded_list(value) if column.strip().casefold() in LISTS else value


def decoded_list(value: Any) -> Any:
    """Return the list that a text holds, any other value as it is."""
    decoded = decode_list(value) if isinstance(value, str) else None
    return value if decoded is None else decoded


def text_list(value: Any) -> list[str] | None:
    """Return a list of texts, or of its JSON text; null for anything else. A null entry is an empty text."""
    value = decoded_list(value)
    is_list = isinstance(value, list) and value and all(isinstance(item, str | None) for item in value)
    return [item or "" for item in value] if is_list else None


def answer_fields(item: Any) -> JsonObject:
    """Return the fields of an answer that is an object; none for a text or a turn."""
    return item if isinstance(item, dict) and "role" not in item and "from" not in item else {}


def as_list(value: Any) -> list[Any]:
    """Return a list as it is, and any other value as the only item of one."""
    return value if isinstance(value, list) else [value]


def holds_list(value: Any) -> bool:
    """Return whether a cell is a list of answers rather than turns."""
    return isinstance(value, list) and not (
        value and all(isinstance(item, dict) and ("role" in item or "from" in item) for item in value)
    )
