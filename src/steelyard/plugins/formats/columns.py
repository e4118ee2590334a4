"""A table of your own, under columns that you name: prompts, pairs, two answers with a label, or rated answers.

Pairs are rows of a better and a worse answer. A label says which of two answers is better: it is a judgment of an
unknown person. A rating is a number for one answer, higher is better: the answers of a prompt are ranked by it, an
answer with several ratings by their mean. Labelled and rated rows of one prompt become one case, wherever they are in
the file; rows of pairs are joined by the conversion. Where the columns of the prompt alone are named, and the table has
neither ``chosen`` nor ``rejected``, each row is a case without responses. A cell is a text, or a list of turns where
the file can hold one.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

from msgspec.structs import replace

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import RecordError, choices
from steelyard.core.protocols import Row
from steelyard.core.types import Case, JsonObject, Judgment, Message, Prompt, Rating, Response, Verdict
from steelyard.curation.format_support import UNKNOWN, carrying, carrying_pairs, count_lost
from steelyard.plugins.formats._column_values import LabelColumn, PromptColumns, check_shape, ranking_by_mean, rating_in
from steelyard.plugins.formats._pairs import SIDES, PairFormat, PairTurns, ParsedPair
from steelyard.plugins.formats._rows import (
    CaseReader,
    RowFormat,
    group_id,
    other_meta,
    split_meta,
    verdict_from,
    without_keys,
)
from steelyard.plugins.formats._turns import answer_turns, field_turns, text_or_list, turn_keys
from steelyard.plugins.formats.prompt_rows import prompt_table

_KIND = "columns"
_TURNS = ("system turns", "earlier turns", "prompt meta", "answers of several turns")
_LABEL, _ROW = "label", "row"
"""The entries of an evidence's ``meta``: the label as it was read, and the cells of single rows."""
_Turns = tuple[Message, ...]


class Config(BaseConfig, frozen=True):
    """The names of the columns. Without answers, pairs under ``chosen`` and ``rejected``, or else prompts alone."""

    prompt_column: str = "prompt"
    """The column of the prompt. It is one of your own table."""
    chosen_column: str | None = None
    """Pairs: the column of the better answer."""
    rejected_column: str | None = None
    """Pairs: the column of the worse answer."""
    first_column: str | None = None
    """Labelled pairs: the column of the first answer."""
    second_column: str | None = None
    """Labelled pairs: the column of the second answer."""
    label_column: str | None = None
    """Labelled pairs: which answer is better. 1, a, left, first; 2, b, right, second; tie, equal, same; or a column."""
    response_column: str | None = None
    """Ratings: the column of the answer, one a row."""
    rating_column: str | None = None
    """Ratings: the column of its number, higher is better."""
    id_column: str | None = None
    """The column of an id, of the prompt or of the row."""
    language_column: str | None = None
    """The column of the prompt's language. It has a code or a name, such as zh or Chinese."""
    category_column: str | None = None
    """The column of the prompt's category."""
    reference_column: str | None = None
    """The column of the prompt's reference. That is an answer, an idea, or criteria."""


def build(config: Config) -> "Columns":
    """Return the format of the columns. Raises ConfigError for columns that contradict each other."""
    shapes = {
        "pairs": {"chosen_column": config.chosen_column, "rejected_column": config.rejected_column},
        "labelled pairs": {
            "first_column": config.first_column,
            "second_column": config.second_column,
            "label_column": config.label_column,
        },
        "ratings": {"response_column": config.response_column, "rating_column": config.rating_column},
    }
    shape = check_shape(shapes, {name: getattr(config, name) for name in config.__struct_fields__})
    columns = PromptColumns(config.id_column, config.language_column, config.category_column, config.reference_column)
    needed = (config.prompt_column, *(name for name in shapes[shape].values() if name is not None))
    if shape == "labelled pairs":
        return Columns(_Labelled(columns, *needed).format(), needed, columns)
    if shape == "ratings":
        return Columns(_Rated(columns, *needed).format(), needed, columns)
    if len(needed) > 1:
        return Columns(_pairs(columns, needed), needed, columns)
    parts = (*needed, *SIDES)
    return Columns(_pairs(columns, parts), parts, columns, prompts=prompt_table(columns, config.prompt_column, SIDES))


class Columns(NamedTuple):
    """The format of a table: of its rows ``needed`` must be there, and the other columns somewhere in the file.

    ``prompts`` is the format of a table without answers, where the settings name none.
    """

    rows: RowFormat
    needed: tuple[str, ...]
    optional: PromptColumns
    prompts: RowFormat | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that the settings name."""
        return self.rows.keys

    @property
    def supports(self) -> frozenset[str]:
        """The parts of a case that a row of these columns carries."""
        return self.rows.supports

    def matches(self, row: JsonObject) -> bool:
        """Return false: nobody but the user knows what the columns mean."""
        return False

    def read(self, rows: Iterable[Row], warnings: Counter[str]) -> Iterator[Case]:
        """Yield the cases of the rows. Raises RecordError for a column that the file lacks."""
        rows = iter(rows)
        first = list(islice(rows, 1))
        rows = chain(first, rows)
        if self.prompts is not None and first and not first[0].value.keys() & set(SIDES):
            return self._prompt_cases(self.prompts, rows, warnings)
        checked = self._checked(rows)
        return self.rows.read(checked if self.rows.group_key is None else self._by_prompt(checked, warnings), warnings)

    def write(self, cases: Iterable[Case], dropped: Counter[str]) -> Iterator[JsonObject]:
        """Yield the rows of the cases; a case without responses is a row of a prompt where no answers are named."""
        for case in cases:
            yield from (self.rows if case.responses else self.prompts or self.rows).write([case], dropped)

    def _prompt_cases(self, prompts: RowFormat, rows: Iterable[Row], warnings: Counter[str]) -> Iterator[Case]:
        """Yield a case per row. Raises RecordError for a row that has answers where the first has none."""
        without_answers = self._replace(rows=prompts, needed=self.needed[:1], prompts=None)
        for case in prompts.read(without_answers._checked(rows), warnings):
            warnings["prompts without answers"] += 1
            yield case

    def _checked(self, rows: Iterable[Row]) -> Iterator[Row]:
        unseen, columns, place = set(self.optional.names()), dict[str, None](), None
        for row in rows:
            for name in self.needed:
                if name not in row.value:
                    raise RecordError(f"no column {name!r}", where=row.place, allowed=choices(name, row.value))
            if unseen:
                columns |= dict.fromkeys(row.value)
                unseen -= row.value.keys()
            place = row.place
            yield row
        if unseen and place is not None:
            name = min(unseen)
            raise RecordError(f"no column {name!r} in any row", where=place.file, allowed=choices(name, columns))

    def _by_prompt(self, rows: Iterable[Row], warnings: Counter[str]) -> Iterator[Row]:
        """Yield the rows of one prompt after each other, in order of its first row. All rows are kept in memory."""
        groups: defaultdict[Hashable, list[Row]] = defaultdict(list)
        for row in rows:
            groups[_prompt_key(row, self.needed[0], self.optional)].append(row)
        for group in groups.values():
            warnings["rows joined to an earlier row of the prompt"] += len(group) - 1
            yield from group


def _prompt_key(row: Row, column: str, columns: PromptColumns) -> Hashable:
    fields = columns.fields(row)
    return field_turns(row, column, role="user"), fields.get("language"), fields.get("category")


def _pairs(columns: PromptColumns, parts: tuple[str, ...]) -> RowFormat:
    """Return the format of pairs. Its rows are joined by their prompts, so that one id is lost where rows have many."""
    keys = (*parts, *columns.names())
    supports = carrying_pairs("answers of several turns", *columns.parts())

    def parse(row: Row, warnings: Counter[str]) -> ParsedPair:
        turns = PairTurns(*(field_turns(row, key, role=_role(key, parts)) for key in parts))
        return ParsedPair(turns, {"turns": turn_keys(row, parts), "cells": columns.values(row) or None})

    def row_of(turns: PairTurns, form: JsonObject, dropped: Counter[str]) -> JsonObject | None:
        lists = form.get("turns", ())
        return {
            key: text_or_list(part, _role(key, parts), as_list=key in lists)
            for key, part in zip(parts, turns, strict=True)
        }

    # Rows with ids of their own would not be joined by their prompts: the id is a cell here, and so not lost.
    pair = PairFormat(
        kind=_KIND,
        keys=keys,
        supports=supports,
        matches=lambda row: False,
        parse=parse,
        row_of=row_of,
        turn_keys=parts,
        fits=lambda case: bool(case.prompt.messages),
    ).format()

    def parse_case(reader: CaseReader) -> Case:
        case, name = pair.parse(reader), columns.prompt_id(reader.row)
        made = {} if name is None else {"id": reader.ids.take_shared(name)}
        return replace(case, prompt=replace(case.prompt, **made, **columns.fields(reader.row)))

    def rows_of(case: Case, form: JsonObject, dropped: Counter[str]) -> Iterator[JsonObject]:
        for row in pair.rows_of(case, form, dropped):
            yield row | columns.written(case.prompt, form)

    return pair._replace(supports=supports - {"prompt ids"}, parse=parse_case, rows_of=rows_of)


def _role(key: str, parts: Sequence[str]) -> str:
    return "user" if key == parts[0] else "assistant"


class _Group(NamedTuple):
    """The rows of one prompt: its case without answers, and the cells that only single rows have."""

    prompt: Prompt
    metas: list[JsonObject]
    meta: JsonObject


def _group(reader: CaseReader, columns: PromptColumns, column: str) -> _Group:
    """Read what the rows of a prompt share. An id that differs between them is a cell of each row."""
    rows, first = reader.rows, reader.row
    shared, metas = split_meta(rows, [key for key in reader.keys if key != columns.id])
    name, fields = columns.prompt_id(first), columns.fields(first)
    # Rows of one prompt may have an id each: the case has that of the first.
    own_id = name is not None and reader.ids.take(first, name, language=fields.get("language"))
    prompt = reader.prompt(
        field_turns(first, column, role="user"),
        id=own_id or group_id(rows, reader.ids),
        meta=without_keys(shared, (columns.id,) if columns.id else ()),
        **fields,
    )
    return _Group(prompt, [meta or {} for meta in metas], reader.meta(cells=columns.values(first) or None))


class _Labelled(NamedTuple):
    """Rows of two answers and a label: a judgment each."""

    columns: PromptColumns
    prompt: str
    first: str
    second: str
    label: str

    def format(self) -> RowFormat:
        """Return the format of the rows."""
        keys = (self.prompt, self.first, self.second, self.label, *self.columns.names())
        return RowFormat(
            kind=_KIND,
            keys=keys,
            supports=carrying(*_TURNS, *self.columns.parts(), "judgments", "more than two responses"),
            matches=lambda row: False,
            parse=self._case,
            rows_of=self._rows,
            list_keys=(self.prompt, self.first, self.second),
            group_key=lambda row: _prompt_key(row, self.prompt, self.columns),
        )

    @property
    def _labels(self) -> LabelColumn:
        return LabelColumn(self.label, self.first, self.second)

    def _case(self, reader: CaseReader) -> Case:
        """Return a case of the different answers, with a judgment a row. Two equal answers of a row stay two."""
        group = _group(reader, self.columns, self.prompt)
        verdicts: list[Verdict] = [self._labels.verdict(row) for row in reader.rows]
        pairs = [self._answers(row) for row in reader.rows]
        answers = list(dict.fromkeys(answer for pair in pairs for answer in pair))
        responses = reader.responses([turns for turns, _ in answers])
        names = dict(zip(answers, (response.id for response in responses), strict=True))
        judgments = tuple(
            Judgment(
                left=names[left],
                right=names[right],
                verdict=verdict,
                judge=UNKNOWN,
                kind="human",
                meta={_LABEL: row.value[self.label]} | ({_ROW: meta} if meta else {}),
            )
            for (left, right), verdict, row, meta in zip(pairs, verdicts, reader.rows, group.metas, strict=True)
        )
        return Case(prompt=group.prompt, responses=responses, judgments=judgments, meta=group.meta)

    def _answers(self, row: Row) -> tuple[tuple[_Turns, bool], tuple[_Turns, bool]]:
        left, right = (field_turns(row, key, role="assistant") for key in (self.first, self.second))
        return (left, False), (right, left == right)

    def _rows(self, case: Case, form: JsonObject, dropped: Counter[str]) -> Iterator[JsonObject]:
        """Yield a row per judgment with a verdict."""
        supports, lists = self.format().supports, form.get("turns", ())
        count_lost(case, dropped, supports)
        metas = [without_keys(judgment.meta, (_LABEL, _ROW)) for judgment in case.judgments]
        dropped["further fields of judgments"] += sum(map(bool, metas))
        by_id = {response.id: response for response in case.responses}
        ends = {name for judgment in case.judgments for name in (judgment.left, judgment.right)}
        dropped["responses in no judgment"] += len(by_id.keys() - ends)
        shared = {self.prompt: text_or_list(case.prompt.messages, "user", as_list=self.prompt in lists)}
        shared |= self.columns.written(case.prompt, form)
        for judgment in case.judgments:
            if judgment.verdict == "none":
                dropped["judgments without a verdict"] += 1
                continue
            meta = judgment.meta or {}
            row = shared | {
                key: _answer(by_id[name], key, lists)
                for key, name in ((self.first, judgment.left), (self.second, judgment.right))
            }
            row[self.label] = self._labels.label(verdict_from(judgment.left, judgment), meta.get(_LABEL))
            yield row | _own_cells(meta.get(_ROW), row, self.columns)


class _Rated(NamedTuple):
    """Rows of an answer and its rating."""

    columns: PromptColumns
    prompt: str
    response: str
    rating: str

    def format(self) -> RowFormat:
        """Return the format of the rows."""
        return RowFormat(
            kind=_KIND,
            keys=(self.prompt, self.response, self.rating, *self.columns.names()),
            supports=carrying(*_TURNS, *self.columns.parts(), "response meta", "more than two responses"),
            matches=lambda row: False,
            parse=self._case,
            rows_of=self._rows,
            list_keys=(self.prompt, self.response),
            group_key=lambda row: _prompt_key(row, self.prompt, self.columns),
        )

    def _case(self, reader: CaseReader) -> Case:
        """Return a case of the different answers with their ratings, ranked by the mean rating of each."""
        group = _group(reader, self.columns, self.prompt)
        rows: defaultdict[_Turns, list[tuple[float | None, JsonObject]]] = defaultdict(list)
        for row, meta in zip(reader.rows, group.metas, strict=True):
            rows[field_turns(row, self.response, role="assistant")].append((rating_in(row, self.rating), meta))
        reader.warnings["rows of an answer beyond its first"] += len(reader.rows) - len(rows)
        # The cells of an answer with one row belong to the answer, those of other rows to the rating.
        metas = [cells[0][1] or None if len(cells) == 1 else None for cells in rows.values()]
        responses = reader.responses(list(rows), metas=metas)
        ratings = tuple(
            Rating(
                response=response.id,
                rater=UNKNOWN,
                kind="human",
                dimension=self.rating,
                value=value,
                meta={_ROW: meta} if meta and len(cells) > 1 else None,
            )
            for response, cells in zip(responses, rows.values(), strict=True)
            for value, meta in cells
            if value is not None
        )
        ranking = ranking_by_mean(ratings)
        return Case(prompt=group.prompt, responses=responses, ratings=ratings, ranking=ranking, meta=group.meta)

    def _rows(self, case: Case, form: JsonObject, dropped: Counter[str]) -> Iterator[JsonObject]:
        """Yield a row per rating of the column's dimension, and one for an answer without."""
        lists, written = form.get("turns", ()), defaultdict[str, list[Rating]](list)
        others: list[Rating] = []
        for rating in case.ratings:
            fits = (rating.dimension, rating.range) == (self.rating, None)
            (written[rating.response] if fits else others).append(rating)
        for rating in (rating for ratings in written.values() for rating in ratings):
            dropped["raters"] += (rating.rater, rating.kind) != (UNKNOWN, "human")
            details = (rating.id, rating.task, rating.spans, without_keys(rating.meta, (_ROW,)))
            dropped["rating details"] += any(details)
        implied = ranking_by_mean([rating for ratings in written.values() for rating in ratings])
        is_implied = [set(tier) for tier in case.ranking or ()] == [set(tier) for tier in implied or ()]
        rest = replace(case, ratings=tuple(others), ranking=None if is_implied else case.ranking)
        count_lost(rest, dropped, self.format().supports)
        shared = {self.prompt: text_or_list(case.prompt.messages, "user", as_list=self.prompt in lists)}
        shared |= self.columns.written(case.prompt, form)
        for response in case.responses:
            for rating in written.get(response.id) or [None]:
                value = None if rating is None else rating.value
                row = shared | {self.response: _answer(response, self.response, lists), self.rating: value}
                row |= other_meta(response.meta, row.keys() - {self.columns.id}, dropped)
                cells = {} if rating is None else (rating.meta or {}).get(_ROW)
                yield row | _own_cells(cells, row, self.columns)


def _answer(response: Response, key: str, lists: Sequence[str]) -> str | list[JsonObject]:
    return text_or_list(answer_turns(response), "assistant", as_list=key in lists)


def _own_cells(cells: object, row: JsonObject, columns: PromptColumns) -> JsonObject:
    """Return the cells that only this row has: an own id, and those of columns that the settings do not name."""
    values = cells if isinstance(cells, dict) else {}
    return {key: value for key, value in values.items() if key == columns.id or key not in row}
