"""Formats of tables: cases of the values of rows, and the rows of pairs again.

A cell that a fresh row would write in another form (turns as a list, ``1.0`` for 1, a language's name) is in the form
of its case. It is written again where it still means the same.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec

from steelyard.core.errors import Place, RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import UNKNOWN_JUDGE, Case, JsonObject, Judgment, Prompt, Ranking, Rating, Response
from steelyard.curation.evidence_rows import ranking_by_mean, text_id
from steelyard.curation.format_support import carrying, carrying_pairs
from steelyard.plugins.formats._nested_ratings import NestedRating
from steelyard.plugins.formats._pairs import NOT_SEPARABLE, pair_rows
from steelyard.plugins.formats._row_format import (
    OTHER_SHAPE,
    CaseReader,
    RowFormat,
)
from steelyard.plugins.formats._table_values import AnswerCell, RowValues, TableColumns
from steelyard.plugins.formats._turns import answer_turns, as_turns, text_or_list

_NOWHERE = Place("the row to write")
_TIME, _LABEL = "time", "label"
_NO_LABEL = "no label"


class TableFormat(NamedTuple):
    """The format of a table."""

    kind: str
    columns: TableColumns

    def format(self, matches: Callable[[JsonObject], bool] = lambda row: False) -> RowFormat:
        """Return the format of the rows."""
        authors = ("authors",) if self.columns.authors else ()
        turns = ("system turns", "earlier turns", "prompt meta", "answers of several turns")
        parts = (*authors, *(part for part in self.columns.fields.parts() if part != "prompt ids"))
        # Rows with ids of their own would not be joined by their prompts: the id is a cell here, and so not lost.
        ids = frozenset({"prompt ids"} if self.columns.fields.id else ())
        if self.columns.shape == "pairs":
            supports = carrying_pairs("answers of several turns", *parts)
        elif self.columns.shape == "labelled pairs":
            supports = carrying(*turns, *parts, "judgments")
        else:
            supports = carrying(*turns, *parts, "response meta", "more than two responses")
        return RowFormat(
            kind=self.kind,
            keys=tuple(dict.fromkeys(self.columns.keys())),
            supports=supports,
            matches=matches,
            parse=self._case,
            rows_of=partial(self._rows, supports | ids) if self.columns.shape == "pairs" else None,
            # Answers alone may be objects, whose other fields are kept: they are counted where they are read.
            turn_keys=(*self.columns.prompt, *(() if self.columns.shape == "answers" else self.columns.answers)),
            better_keys=self.columns.answers[:1] if self.columns.shape == "pairs" else (),
            worse_keys=self.columns.answers[1:] if self.columns.shape == "pairs" else (),
            has_evidence_rows=self.columns.shape != "pairs",
        )

    def _case(self, reader: CaseReader) -> Case:
        """Return the case of a row: a ranking of two, a judgment, or answers with their numbers."""
        row = reader.row
        values = self.columns.values(row, reader.warnings)
        if not values.answers:
            raise RecordError("the row has no answer", where=row.place, allowed="at least one")
        raters = sum(rating.rater is not None for answer in values.answers for rating in answer.nested)
        if (values.judge or raters) and self.columns.judge_kind == "human":
            reader.warnings["judges read as people (of models: judge_kind=llm)"] += max(1, raters)
        fields = dict(values.fields)
        own_id, category = fields.pop("id", None), fields.get("category", ())
        if self.columns.shape == "pairs":
            prompt_id = reader.ids.take_shared(own_id) if own_id else reader.ids.take(row)
        else:
            language = fields.get("language")
            prompt_id = own_id and reader.ids.take(row, own_id, language=language, messages=values.prompt)
            prompt_id = prompt_id or text_id(values.prompt, category)
        prompt = reader.prompt(values.prompt, id=prompt_id, **fields)
        authors = [answer.author for answer in values.answers]
        metas = [answer.meta for answer in values.answers]
        responses = reader.responses([answer.turns for answer in values.answers], authors=authors, metas=metas)
        rated = zip(responses, values.answers, strict=True)
        ratings = [each for response, answer in rated for each in self._ratings(response.id, answer, values)]
        first = responses[0].id
        return Case(
            prompt=prompt,
            responses=responses,
            judgments=(self._judgment(row, responses, values),) if self.columns.shape == "labelled pairs" else (),
            ratings=tuple(ratings),
            ranking=((first,), (responses[1].id,)) if self.columns.shape == "pairs" else _ranking(ratings),
            meta=reader.meta(**self._form(row, values, prompt)) if self.columns.shape == "pairs" else {},
        )

    def _judgment(self, row: Row, responses: Sequence[Response], values: RowValues) -> Judgment:
        label = (
            row.value.get(self.columns.labels.columns[0])
            if self.columns.labels and len(self.columns.labels.columns) == 1
            else None
        )
        facts = {_LABEL: label, _TIME: values.time}
        return Judgment(
            left=responses[0].id,
            right=responses[1].id,
            verdict=values.verdict or "none",
            judge=values.judge or UNKNOWN_JUDGE,
            kind=self.columns.judge_kind,
            batch=values.batch,
            reason=_NO_LABEL if values.verdict is None else None,
            meta={key: value for key, value in facts.items() if value not in (None, "")} or None,
        )

    def _ratings(self, response: str, answer: AnswerCell, values: RowValues) -> Iterator[Rating]:
        """Yield the ratings of an answer: that of its column, and those in its own object."""
        judge = values.judge or UNKNOWN_JUDGE
        of_column = self.columns.signed(answer.rating or 0.0), self.columns.dimension() or ""
        time = None if values.time in (None, "") else {_TIME: values.time}
        for rating in (*answer.nested, *(() if answer.rating is None else (NestedRating(*of_column),))):
            yield Rating(
                response=response,
                rater=rating.rater or judge,
                kind=self.columns.judge_kind,
                dimension=rating.dimension,
                value=rating.value,
                meta={**(time or {}), **(rating.meta or {})} or None,
            )

    def _form(self, row: Row, values: RowValues, prompt: Prompt) -> JsonObject:
        """Return the cells of a pair that a fresh row has not so, and the columns that the row lacks."""
        fresh = self._fresh(values, prompt)
        keys = dict.fromkeys(self.columns.keys())
        cells = {
            key: row.value[key]
            for key in keys
            if key in row.value and not _is_same(fresh.get(key, ...), row.value[key])
        }
        # A joined case has the id of its first row.
        if self.columns.fields.id in row.value:
            cells[self.columns.fields.id] = row.value[self.columns.fields.id]
        return {"cells": cells or None, "absent": row.absent(keys)}

    def _rows(
        self, supports: frozenset[str], case: Case, form: JsonObject, dropped: Counter[str]
    ) -> Iterator[JsonObject]:
        """Yield the rows of pairs; a row that would not be read as the same values is counted, and not written."""
        texts = {name: getattr(case.prompt, name) for name in ("language", "category", "reference")}
        fields = {"id": case.prompt.id} | {key: value for key, value in texts.items() if value}
        for pair in pair_rows(case, dropped, supports):
            if not self.columns.prompt and not pair.turns(case).is_separable():
                dropped[NOT_SEPARABLE] += 1
            answers = tuple(AnswerCell(answer_turns(each), each.author) for each in (pair.better, pair.worse))
            values = RowValues(prompt=case.prompt.messages, fields=fields, answers=answers)
            row = self._restored(self._fresh(values, case.prompt), values, form)
            if row is None:
                dropped[OTHER_SHAPE] += 1
            else:
                yield row

    def _fresh(self, values: RowValues, prompt: Prompt) -> JsonObject:
        """Return the row of a pair in the simplest form: texts where turns can be texts."""
        turns, row = values.prompt, {}
        if self.columns.system:
            has_system = bool(turns) and turns[0].role == "system"
            row[self.columns.system] = turns[0].content if has_system else None
            turns = turns[has_system:]
        if self.columns.history:
            row[self.columns.history] = as_turns(turns[:-1]) or None
            turns = turns[-1:]
        row |= dict.fromkeys(self.columns.prompt, "") | (
            {self.columns.prompt[0]: text_or_list(turns, "user")} if self.columns.prompt else {}
        )
        whole = [answer.turns if self.columns.prompt else turns + answer.turns for answer in values.answers]
        cells = [text_or_list(turns, "assistant", as_list=not self.columns.prompt) for turns in whole]
        row |= dict(zip(self.columns.answers, cells, strict=True))
        row |= dict(zip(self.columns.authors, (answer.author for answer in values.answers), strict=False))
        cells = ((self.columns.time, values.time), (self.columns.batch, values.batch))
        row |= {key: value for key, value in cells if key is not None}
        return row | self.columns.fields.cells(prompt)

    def _restored(self, row: JsonObject, values: RowValues, form: JsonObject) -> JsonObject | None:
        """Return the row with the cells that were read where they mean the same; null if it is read as other values."""
        if not self._means(row, values):
            return None
        cells, absent = form.get("cells") or {}, form.get("absent") or ()
        whole = {key: value for key, value in (row | cells).items() if key not in absent}
        if self._means(whole, values):
            return whole
        for key in (*cells, *absent):
            trial = {name: value for name, value in row.items() if name != key}
            trial |= {key: cells[key]} if key in cells else {}
            row = trial if self._means(trial, values) else row
        return row

    def _means(self, row: JsonObject, values: RowValues) -> bool:
        """Return whether a row is read as the values that the table has columns for."""
        try:
            again = self.columns.values(Row(_NOWHERE, row), Counter())
        except RecordError:
            return False
        names = ("language", "category", "reference")
        held = [name for name in names if getattr(self.columns.fields, name) is not None]
        answers = [answer if self.columns.authors else answer._replace(author=None) for answer in values.answers]
        same = values._replace(
            fields={name: values.fields[name] for name in held if name in values.fields}, answers=tuple(answers)
        )
        return again._replace(fields={name: again.fields[name] for name in held if name in again.fields}) == same


def _ranking(ratings: Sequence[Rating]) -> Ranking | None:
    """Return the answers by the mean of their ratings; null for ratings of several dimensions, which have no mean."""
    return ranking_by_mean(ratings) if len({rating.dimension for rating in ratings}) == 1 else None


def _is_same(first: Any, second: Any) -> bool:
    """Return whether two cells are equal, also as JSON: 1, 1.0 and true are three."""
    return msgspec.json.encode(first) == msgspec.json.encode(second) if first is not ... else False
