"""Formats of tables: cases of the values of rows, and the rows again.

A cell that a fresh row would write in another form (turns as a list, ``1.0`` for 1, a language's name) is in the form
of its case. It is written again where it still means the same.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from steelyard.core.errors import Place, RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import UNKNOWN_JUDGE, Case, JsonObject, Judgment, Prompt, Rating, Response
from steelyard.curation.evidence_rows import ranking_by_mean, text_id
from steelyard.curation.format_support import carrying, carrying_pairs, count_lost
from steelyard.plugins.formats._pairs import NOT_SEPARABLE, pair_rows
from steelyard.plugins.formats._rows import OTHER_SHAPE, CaseReader, RowFormat, other_meta
from steelyard.plugins.formats._table_values import AnswerCell, RowValues, TableColumns, Turns, holds_list, list_cell
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
            rows_of=lambda case, form, dropped: self._rows(case, form, dropped, supports | ids),
            turn_keys=(*self.columns.prompt, *self.columns.answers),
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
        if values.judge and self.columns.judge_kind == "human":
            reader.warnings["judges read as people (of models: judge_kind=llm)"] += 1
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
        responses = reader.responses([answer.turns for answer in values.answers], authors=authors)
        rated = zip(responses, values.answers, strict=True)
        ratings = [
            self._rating(response.id, self.columns.signed(answer.rating), values)
            for response, answer in rated
            if answer.rating is not None
        ]
        first = responses[0].id
        return Case(
            prompt=prompt,
            responses=responses,
            judgments=(self._judgment(row, responses, values),) if self.columns.shape == "labelled pairs" else (),
            ratings=tuple(ratings),
            ranking=((first,), (responses[1].id,)) if self.columns.shape == "pairs" else ranking_by_mean(ratings),
            meta=reader.meta(**self._form(row, values, prompt)),
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

    def _rating(self, response: str, value: float, values: RowValues) -> Rating:
        meta = None if values.time in (None, "") else {_TIME: values.time}
        rater = values.judge or UNKNOWN_JUDGE
        return Rating(
            response=response,
            rater=rater,
            kind=self.columns.judge_kind,
            dimension=self.columns.dimension() or "",
            value=value,
            meta=meta,
        )

    def _form(self, row: Row, values: RowValues, prompt: Prompt) -> JsonObject:
        """Return the cells that a fresh row has not so, the columns that the row lacks, and whether it is a list."""
        is_list = (
            self.columns.shape == "answers"
            and len(self.columns.answers) == 1
            and holds_list(list_cell(row, self.columns.answers[0]))
        )
        fresh = self._fresh(values, prompt, is_list=is_list) or {}
        keys = dict.fromkeys(self.columns.keys())
        cells = {
            key: row.value[key]
            for key in keys
            if key in row.value and not _is_same(fresh.get(key, ...), row.value[key])
        }
        # A joined case has the id of its first row.
        if self.columns.shape == "pairs" and self.columns.fields.id in row.value:
            cells[self.columns.fields.id] = row.value[self.columns.fields.id]
        return {"cells": cells or None, "absent": row.absent(keys), "list": is_list}

    def _rows(
        self, case: Case, form: JsonObject, dropped: Counter[str], supports: frozenset[str]
    ) -> Iterator[JsonObject]:
        """Yield the rows of a case; a row that would not be read as the same values is counted, and not written."""
        if self.columns.shape == "pairs":
            values = self._pairs(case, dropped, supports)
        elif self.columns.shape == "labelled pairs":
            values = self._votes(case, dropped, supports)
        else:
            values = self._answers(case, form, dropped, supports)
        for row_values, meta in values:
            row = self._restored(
                self._fresh(row_values, case.prompt, is_list=form.get("list", False)), row_values, form
            )
            if row is None:
                dropped[OTHER_SHAPE] += 1
                continue
            yield row | other_meta(meta, row, dropped)

    def _pairs(self, case: Case, dropped: Counter[str], supports: frozenset[str]) -> Iterator[tuple[RowValues, Any]]:
        for pair in pair_rows(case, dropped, supports):
            if not self.columns.prompt and not pair.turns(case).is_separable():
                dropped[NOT_SEPARABLE] += 1
            yield self._row_values(case, (pair.better, pair.worse)), None

    def _votes(self, case: Case, dropped: Counter[str], supports: frozenset[str]) -> Iterator[tuple[RowValues, Any]]:
        """Yield the values of each judgment. A row names the judge, and the kind of one like all of the table."""
        by_id = {response.id: response for response in case.responses}
        ends = {name for judgment in case.judgments for name in (judgment.left, judgment.right)}
        dropped["responses in no judgment"] += len(by_id.keys() - ends)
        count_lost(replace(case, judgments=tuple(map(self._uncarried, case.judgments))), dropped, supports)
        for judgment in case.judgments:
            meta = judgment.meta or {}
            dropped["further fields of judgments"] += len(
                meta.keys() - {_LABEL, *((_TIME,) if self.columns.time else ())}
            )
            verdict = None if judgment.verdict == "none" else judgment.verdict
            ends = (judgment.left, judgment.right)
            if self.columns.labels is None and verdict == "right":
                ends, verdict = (judgment.right, judgment.left), "left"
            values = self._row_values(case, [by_id[end] for end in ends])
            values = values._replace(verdict=verdict, judge=judgment.judge, time=meta.get(_TIME), batch=judgment.batch)
            yield values, None

    def _uncarried(self, judgment: Judgment) -> Judgment:
        """Return the judgment without what a row holds of it, so that the rest is counted."""
        has_judge = judgment.kind == self.columns.judge_kind and (self.columns.judge or judgment.judge == UNKNOWN_JUDGE)
        judge = {"judge": UNKNOWN_JUDGE, "kind": "human"} if has_judge else {}
        batch = None if self.columns.batch else judgment.batch
        reason = None if judgment.verdict == "none" and judgment.reason == _NO_LABEL else judgment.reason
        return replace(judgment, **judge, batch=batch, reason=reason)

    def _answers(
        self, case: Case, form: JsonObject, dropped: Counter[str], supports: frozenset[str]
    ) -> Iterator[tuple[RowValues, Any]]:
        """Yield the values of each rating and of each answer without one; of a list or of several columns, of a row."""
        scale = self.columns.dimension()
        carried = [rating for rating in case.ratings if (rating.dimension, rating.range) == (scale, None)]
        others = tuple(rating for rating in case.ratings if rating not in carried)
        for rating in carried:
            has_rater = rating.kind == self.columns.judge_kind and (self.columns.judge or rating.rater == UNKNOWN_JUDGE)
            dropped["raters"] += not has_rater
            left = {key for key in rating.meta or {} if key != _TIME or not self.columns.time}
            dropped["rating details"] += bool(rating.id or rating.task or rating.spans or left)
        tiers, implied = ([set(tier) for tier in ranking or ()] for ranking in (case.ranking, ranking_by_mean(carried)))
        count_lost(replace(case, ratings=others, ranking=None if tiers == implied else case.ranking), dropped, supports)
        by_response: dict[str, list[Rating]] = {response.id: [] for response in case.responses}
        for rating in carried:
            by_response[rating.response].append(rating)
        if len(self.columns.answers) > 1 or form.get("list"):
            numbers = [next(iter(by_response[response.id]), None) for response in case.responses]
            dropped["raters"] += sum(max(0, len(ratings) - 1) for ratings in by_response.values())
            dropped["response meta"] += sum(bool(response.meta) for response in case.responses)
            yield self._row_values(case, case.responses, numbers), None
            return
        for response in case.responses:
            for rating in by_response[response.id] or [None]:
                yield self._row_values(case, (response,), [rating]), response.meta

    def _row_values(
        self, case: Case, responses: Sequence[Response], ratings: Sequence[Rating | None] = ()
    ) -> RowValues:
        """Return the values of a row of these answers, without a verdict."""
        prompt = case.prompt
        every = ratings or [None] * len(responses)
        numbers = [None if rating is None else self.columns.signed(rating.value) for rating in every]
        rated = next((rating for rating in ratings if rating is not None), None)
        texts = {"language": prompt.language, "category": prompt.category, "reference": prompt.reference}
        return RowValues(
            prompt=prompt.messages,
            fields={"id": prompt.id} | {key: value for key, value in texts.items() if value},
            answers=tuple(
                AnswerCell(answer_turns(response), response.author, number)
                for response, number in zip(responses, numbers, strict=True)
            ),
            judge=None if rated is None else rated.rater,
            time=None if rated is None else (rated.meta or {}).get(_TIME),
        )

    def _fresh(self, values: RowValues, prompt: Prompt, *, is_list: bool) -> JsonObject:
        """Return the row of the values in the simplest form: texts where turns can be texts, words for labels."""
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
        row |= self._answer_cells(values.answers, turns, is_list=is_list)
        judge = None if values.judge == UNKNOWN_JUDGE else values.judge
        cells = ((self.columns.judge, judge), (self.columns.time, values.time), (self.columns.batch, values.batch))
        row |= {key: value for key, value in cells if key is not None}
        row |= self.columns.fields.cells(prompt, Row(_NOWHERE, {}))
        return row | (self.columns.labels.cells(values.verdict, row) if self.columns.labels else {})

    def _answer_cells(self, answers: Sequence[AnswerCell], prompt: Turns, *, is_list: bool) -> JsonObject:
        if self.columns.shape != "answers":
            whole = [answer.turns if self.columns.prompt else prompt + answer.turns for answer in answers]
            cells = [text_or_list(turns, "assistant", as_list=not self.columns.prompt) for turns in whole]
            authors = [answer.author for answer in answers][: len(self.columns.authors)]
            return dict(zip(self.columns.answers, cells, strict=False)) | dict(
                zip(self.columns.authors, authors, strict=False)
            )
        cells = [text_or_list(answer.turns, "assistant") for answer in answers]
        authors, numbers = [answer.author for answer in answers], [answer.rating for answer in answers]
        if is_list:
            row: JsonObject = {self.columns.answers[0]: cells}
            row |= dict.fromkeys(self.columns.authors[:1], authors)
            return row | dict.fromkeys(self.columns.ratings[:1], numbers)
        row = dict.fromkeys((*self.columns.answers, *self.columns.authors, *self.columns.ratings))
        free = list(range(len(self.columns.answers)))
        by_place: list[float | None] = [None] * len(free)
        for cell, author, number in zip(cells, authors, numbers, strict=True):
            places = [place for place in free if not self.columns.authors and self.columns.answers[place] == author]
            if not (places or free):
                return {}
            free.remove(place := (places or free)[0])
            row[self.columns.answers[place]] = cell
            row |= dict.fromkeys(self.columns.authors[place : place + 1], author)
            by_place[place] = number
        if len(self.columns.ratings) == 1:
            return row | {self.columns.ratings[0]: by_place if len(by_place) > 1 else by_place[0]}
        return row | dict(zip(self.columns.ratings, by_place, strict=False))

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
        placed = Row(_NOWHERE, row)
        try:
            again = self.columns.values(placed, Counter())
        except RecordError:
            return False
        names = ("id", "language", "category", "reference")
        present = {name for name, column in zip(names, self.columns.fields, strict=True) if column is not None}
        present -= {"id"} if self.columns.shape == "pairs" else set()
        again = again._replace(fields={name: value for name, value in again.fields.items() if name in present})
        fields = {name: value for name, value in values.fields.items() if name in present}
        # The objects of a list can name authors without a column.
        has_authors = self.columns.authors or any(answer.author for answer in again.answers)
        answers = [
            AnswerCell(
                answer.turns, answer.author if has_authors else None, answer.rating if self.columns.ratings else None
            )
            for answer in values.answers
        ]
        judge = values.judge if self.columns.judge and values.judge != UNKNOWN_JUDGE else None
        return again == RowValues(
            prompt=values.prompt,
            fields=fields,
            answers=tuple(answers),
            verdict=values.verdict,
            judge=judge,
            time=values.time if self.columns.time else None,
            batch=values.batch if self.columns.batch else None,
        )


def _is_same(first: Any, second: Any) -> bool:
    """Return whether two cells are equal, also as JSON: 1, 1.0 and true are three."""
    return msgspec.json.encode(first) == msgspec.json.encode(second) if first is not ... else False
