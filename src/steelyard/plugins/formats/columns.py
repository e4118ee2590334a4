"""A table under columns that are named: prompts, pairs, two answers with a label, or answers with or without ratings.

Pairs are rows of a better and a worse answer, or of several worse ones in a list. A label says which of two answers is
better: it is a judgment of the row's judge. A rating is a number for one answer, higher is better: the answers of a
prompt are ranked by it, an answer with several ratings by their mean. The conversion joins the rows of one prompt,
wherever they are in the file. Where the columns of the prompt alone are named, and the table has neither ``chosen`` nor
``rejected``, each row is a case without responses. A cell is a text, or turns as a list, one turn or JSON text. A
column may be nested: ``info.post`` is the field ``post`` of ``info``, and ``summaries.0.text`` is in the first item of
a list. ``annotations.preference`` is in all items of a list: each is a row of its own, with its own judge.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain, islice
from typing import Any, NamedTuple

import msgspec

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError, RecordError, UserError, choices
from steelyard.core.protocols import Row
from steelyard.core.remedies import NAME, Advice, Remedy, joined
from steelyard.core.types import Case, JsonObject, Kind, Verdict
from steelyard.curation.nested_columns import rows_of_items, with_nested, without_nested
from steelyard.curation.verdict_labels import only_label
from steelyard.plugins.formats._column_values import LabelColumns, PromptColumns, UnknownLabelError
from steelyard.plugins.formats._pairs import SIDES
from steelyard.plugins.formats._row_format import (
    RowFormat,
)
from steelyard.plugins.formats._table_values import Shape, TableColumns, table_names
from steelyard.plugins.formats._tables import TableFormat
from steelyard.plugins.formats.prompt_rows import prompt_table


class Config(BaseConfig, frozen=True):
    """The names of the columns. Without answers, pairs under ``chosen`` and ``rejected``, or else prompts alone."""

    prompt_column: str | tuple[str, ...] = "prompt"
    """The column of the prompt. It can be repeated: several are one prompt, with blank lines between them."""
    system_column: str | None = None
    """The column of a system prompt."""
    history_column: str | None = None
    """The column of earlier turns: a list of turns, or of pairs of a question and its answer."""
    chosen_column: str | None = None
    """Pairs: the column of the better answer."""
    rejected_column: str | None = None
    """Pairs: the column of the worse answer. A list holds several worse answers."""
    first_column: str | None = None
    """Labelled pairs: the column of the first answer."""
    second_column: str | None = None
    """Labelled pairs: the column of the second answer."""
    label_column: str | tuple[str, ...] | None = None
    """Labelled pairs: which answer is better. 1, a, left, first; 2, b, right, second; tie, equal, same; or a column.
    Two columns are a vote for each answer."""
    tie_column: str | None = None
    """Labelled pairs: a column that is true for a tie."""
    response_column: str | tuple[str, ...] | None = None
    """Answers: the column of one answer, or of a list. Several columns have an answer each."""
    rating_column: str | tuple[str, ...] | None = None
    """Ratings: the column of its number, higher is better. There are as many as columns of answers, or one
    of lists."""
    lower_is_better: bool = False
    """Ratings are ranks, or other numbers whose lower values are better. They are stored with the other sign."""
    author_column: str | tuple[str, ...] | None = None
    """The column of an answer's author. Pairs have one for each answer."""
    judge_column: str | tuple[str, ...] | None = None
    """The column of the annotator or judge. Without columns of labels or ratings several have one each: the labels
    or ratings of those they are named after."""
    judge_kind: Kind = "human"
    """The judge: human, llm or model."""
    time_column: str | None = None
    """The column of the time of a judgment or rating: seconds since 1970, or a date."""
    batch_column: str | None = None
    """The column of the batch of a judgment."""
    labels: dict[str, Verdict] = {}  # noqa: RUF012  msgspec copies the default
    """Labels of your own, such as labels.左=left. A label means left, right, tie or none."""
    id_column: str | None = None
    """The column of an id, of the prompt or of the row."""
    language_column: str | None = None
    """The column of the prompt's language. It has a code or a name, such as zh or Chinese."""
    category_column: str | None = None
    """The column of the prompt's category."""
    reference_column: str | None = None
    """The column of the prompt's reference. That is an answer, an idea, or criteria."""


_MOST_VALUES = 100
"""The most labels of a file that are gathered for an error."""
_NAME_OF, _LABEL_OF, _RATING_OF = "annotator's name", "annotator's label", "annotator's rating"
"""The columns of a table with a row for each annotator, made of one with a column for each."""


def build(config: Config) -> "Columns":
    """Return the format of the columns. Raises ConfigError for columns that contradict each other."""
    annotators = table_names(config.judge_column)
    if len(annotators) > 1:
        shape = _shape(config)
        if (
            shape == "pairs"
            or config.label_column
            or config.rating_column
            or len(table_names(config.response_column)) > 1
        ):
            problem = Advice(f"{len(annotators)} columns of ", Remedy("judge_column"), ", which hold labels or ratings")
            allowed = "beside two answers without a column of labels, or one answer without a column of ratings"
            raise ConfigError(problem, allowed=allowed, do="name one column, that of the annotators' names")
        cells = {"label_column": _LABEL_OF} if shape == "labelled pairs" else {"rating_column": _RATING_OF}
        config = msgspec.structs.replace(config, judge_column=_NAME_OF, **cells)
    table = table_of(config)
    has_answers = config.chosen_column is not None or table.shape != "pairs"
    prompt = prompt_table(table.fields, table.prompt[0], SIDES) if table.prompt and not has_answers else None
    needed = tuple(name for name in table.needed() if name not in (_LABEL_OF, _RATING_OF))
    rows = TableFormat("columns", table).format()
    return Columns(rows, needed, prompt, annotators if len(annotators) > 1 else (), table.labels)


def table_of(config: Config) -> TableColumns:
    """Return the columns by their roles. Raises ConfigError for columns that contradict each other."""
    shape = _shape(config)
    answers = {
        "pairs": (config.chosen_column or SIDES[0], config.rejected_column or SIDES[1]),
        "labelled pairs": (config.first_column or "", config.second_column or ""),
        "answers": table_names(config.response_column),
    }[shape]
    authors = table_names(config.author_column)
    wanted = {"pairs": (0, 2), "labelled pairs": (0, 2), "answers": (0, len(answers))}[shape]
    if len(authors) not in wanted:
        problem = f"{len(authors)} columns of authors beside {len(answers)} of answers"
        raise ConfigError(problem, where="author_column", allowed="one for each column of answers")
    ratings = table_names(config.rating_column)
    if ratings and len(ratings) not in (1, len(answers)):
        problem = f"{len(ratings)} columns of ratings beside {len(answers)} of answers"
        raise ConfigError(problem, where="rating_column", allowed="one for each column of answers, or one of lists")
    if config.lower_is_better and not ratings:
        raise ConfigError(
            "no column has ratings",
            where="lower_is_better",
            do=Advice("name their column: ", Remedy("rating_column", NAME)),
        )
    labels = LabelColumns(table_names(config.label_column), config.tie_column, answers, authors, config.labels)
    return TableColumns(
        # A pair of a known judge is a judgment.
        shape="labelled pairs" if shape == "pairs" and config.judge_column else shape,
        prompt=table_names(config.prompt_column),
        system=config.system_column,
        history=config.history_column,
        answers=answers,
        labels=labels if shape == "labelled pairs" else None,
        ratings=ratings,
        lower_is_better=config.lower_is_better,
        authors=authors,
        judge=next(iter(table_names(config.judge_column)), None),
        judge_kind=config.judge_kind,
        time=config.time_column,
        batch=config.batch_column,
        fields=PromptColumns(config.id_column, config.language_column, config.category_column, config.reference_column),
    )


_SHAPES: Mapping[Shape, tuple[str, ...]] = {
    "pairs": ("chosen_column", "rejected_column"),
    "labelled pairs": ("first_column", "second_column", "label_column"),
    "answers": ("response_column", "rating_column"),
}


def _shape(config: Config) -> Shape:
    """Return the shape whose columns are set, pairs where none is. Raises ConfigError for columns of two shapes."""
    names = {key: table_names(getattr(config, key)) for key in config.__struct_fields__ if key.endswith("_column")}
    chosen: list[Shape] = [shape for shape, keys in _SHAPES.items() if any(names[key] for key in keys)]
    texts = {
        shape: Advice(Remedy(first, NAME)._replace(others=tuple(Remedy(key, NAME) for key in others)))
        for shape, (first, *others) in _SHAPES.items()
    }
    if len(chosen) > 1:
        used = [Advice(Remedy(key)) for shape in chosen for key in _SHAPES[shape] if names[key]]
        problem = Advice(joined(", ", used), f" contradict each other: a table has {' or '.join(_SHAPES)}")
        raise ConfigError(problem, allowed=joined("; or ", texts.values()))
    shape: Shape = chosen[0] if chosen else "pairs"
    optional = {"rating_column", *(["label_column"] if len(names["judge_column"]) > 1 else ())}
    missing = [key for key in _SHAPES[shape] if not names[key] and key not in optional] if chosen else []
    if missing:
        what = "ratings" if shape == "answers" else shape
        needed = joined(" and ", [Advice(Remedy(key)) for key in missing])
        raise ConfigError(Advice(f"{what} need ", needed, " too"), allowed=texts[shape])
    by_name: dict[str, str] = {}
    for key, columns in names.items():
        for name in columns:
            if name in by_name:
                problem = Advice(Remedy(by_name[name]), " and ", Remedy(key), f" are both {name!r}")
                raise ConfigError(problem, do="name two columns")
            by_name[name] = key
    return shape


class Columns(NamedTuple):
    """The format of a table: of its rows ``needed`` must be there, and the other columns somewhere in the file.

    ``prompts`` is the format of a table without answers, where the settings name none. ``annotators`` are columns of
    labels or ratings, one for each person, and ``labels`` the columns of labels.
    """

    rows: RowFormat
    needed: tuple[str, ...]
    prompts: RowFormat | None = None
    annotators: tuple[str, ...] = ()
    labels: LabelColumns | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that the settings name."""
        made = {_NAME_OF, _LABEL_OF, _RATING_OF} if self.annotators else set[str]()
        return (*(key for key in self.rows.keys if key not in made), *self.annotators)

    @property
    def supports(self) -> frozenset[str]:
        """The parts of a case that a row of these columns carries."""
        return self.rows.supports

    @property
    def has_evidence_rows(self) -> bool:
        """True for a row that is a judgment, a rating or an answer."""
        return self.rows.has_evidence_rows

    @property
    def is_written(self) -> bool:
        """True for a row that is a pair: labels and ratings are only read."""
        return self.rows.is_written

    def matches(self, row: JsonObject) -> bool:
        """Return false: the columns are guessed for a whole file (`ColumnGuess`)."""
        return False

    def read(self, rows: Iterable[Row], warnings: Counter[str]) -> Iterator[Case]:
        """Yield the cases of the rows. Raises RecordError for a column that the file lacks."""
        rows = iter(rows)
        first = list(islice(rows, 1))
        rows = chain(first, rows)
        if self.prompts is not None and first and not first[0].value.keys() & set(SIDES):
            return self._prompt_cases(self.prompts, rows, warnings)
        return self._cases(rows, warnings)

    def write(self, cases: Iterable[Case], dropped: Counter[str]) -> Iterator[JsonObject]:
        """Yield the rows of the cases' pairs."""
        return (without_nested(row, self.keys) for row in self.rows.write(cases, dropped))

    def _cases(self, rows: Iterable[Row], warnings: Counter[str]) -> Iterator[Case]:
        """Yield the cases. Raises UnknownLabelError with advice for all labels of the file, not for the first alone."""
        labels: dict[Any, None] = {}
        checked = self._checked(rows)

        def read() -> Iterator[Row]:
            for row in checked:
                if self.labels and len(labels) < _MOST_VALUES:
                    cell = only_label(row.value.get(self.labels.columns[0]))
                    labels.setdefault(cell if isinstance(cell, str | int | float) else None)
                yield row

        try:
            yield from self.rows.read(read(), warnings)
        except UnknownLabelError as error:
            assert self.labels is not None
            with suppress(UserError):
                deque(read(), maxlen=0)
            raise self.labels.unknown(error.value, error.where, [*labels]) from error

    def _prompt_cases(self, prompts: RowFormat, rows: Iterable[Row], warnings: Counter[str]) -> Iterator[Case]:
        """Yield a case per row. Raises RecordError for a row that has answers where the first has none."""
        without_answers = self._replace(rows=prompts, needed=prompts.keys[:1], prompts=None)
        for case in prompts.read(without_answers._checked(rows), warnings):
            warnings["prompts without answers"] += 1
            yield case

    def _by_annotator(self, row: Row) -> Iterator[Row]:
        """Yield the row once for each annotator whose cell is filled; once without a label where all are empty."""
        others = {name: cell for name, cell in row.value.items() if name not in self.annotators}
        cells = {name: row.value.get(name) for name in self.annotators}
        filled = {name: cell for name, cell in cells.items() if cell is not None and str(cell).strip()}
        key = _LABEL_OF if _LABEL_OF in self.rows.keys else _RATING_OF
        for name, cell in (filled or {"": None}).items():
            yield Row(row.place, others | {_NAME_OF: name, key: cell})

    def _checked(self, rows: Iterable[Row]) -> Iterator[Row]:
        unseen = set(self.keys) - {*self.needed}
        columns, place = dict[str, None](), None
        of_items = ((row.place, cells) for row in rows for cells in rows_of_items(row.value, self.keys))
        for place, row in of_items:
            cells = with_nested(row, self.keys)
            for name in self.needed:
                if name not in cells:
                    raise RecordError(f"no column {name!r}", where=place, allowed=choices(name, row))
            if unseen:
                columns |= dict.fromkeys(row)
                unseen -= cells.keys()
            yield from self._by_annotator(Row(place, cells)) if self.annotators else (Row(place, cells),)
        if unseen and place is not None:
            name = min(unseen)
            raise RecordError(f"no column {name!r} in any row", where=place.file, allowed=choices(name, columns))
