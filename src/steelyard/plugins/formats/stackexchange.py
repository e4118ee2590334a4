"""Stack Exchange preferences: a question with its answers, their scores, and which one the asker accepted.

Written from the card of the data set HuggingFaceH4/stack-exchange-preferences and the features that its copies list:
``pm_score`` is log2(1 + upvotes), rounded, plus 1 for an accepted answer, and -1 where votes are negative. It is a
rating by the site's readers without an upper end; that an answer is ``selected`` is a rating by the asker. Texts are
HTML and stay so. Ids are unique within one site: in a file of several sites a repeated one gets ``~2``.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from steelyard.core.checks import UniqueIds
from steelyard.core.errors import Place, RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.protocols import Row, is_number
from steelyard.core.types import Case, JsonObject, Rating, Response
from steelyard.curation.format_support import carrying, count_lost
from steelyard.plugins.formats._pairs import plain_texts
from steelyard.plugins.formats._ratings import RatingScale, TakenRatings, rating_of, take_ratings
from steelyard.plugins.formats._rows import as_read, form_of, other_meta, question_prompt, with_meta, without_keys

_SCORE = RatingScale("pm_score", None, "stackexchange", "human")
_SELECTED = RatingScale("selected", (0, 1), "asker", "human")
_ANSWER_KEYS = ("answer_id", "text", "author", "pm_score", "selected")


class StackExchange:
    """One row per question, with all its answers."""

    _kind = "stackexchange"
    keys = ("qid", "question", "answers")
    supports = carrying(
        "prompt meta", "prompt ids", "response ids", "authors", "response meta", "more than two responses"
    )

    def matches(self, row: JsonObject) -> bool:
        """Return whether the row has a question with its id, and answers that each have a score."""
        answers = row.get("answers")
        return {"qid", "question"} <= row.keys() and isinstance(answers, list) and bool(answers) and all(
            isinstance(item, dict) and {"answer_id", "pm_score"} <= item.keys() for item in answers
        )  # fmt: skip

    def read(self, rows: Iterable[Row], warnings: Counter[str]) -> Iterator[Case]:
        """Yield cases with two ratings a response."""
        ids = UniqueIds()
        for row in rows:
            question, row_id = row.text("question"), row.value.get("qid")
            if not _is_id(row_id):
                raise RecordError("a question without an id", where=row.at("qid"), allowed="a number")
            items = row.items("answers")
            for place, item in enumerate(items):
                _check(item, row.at(f"answers[{place}]"))
            names = UniqueIds().take_all(str(item["answer_id"]) for item in items)
            name = ids.take(str(row_id))
            warnings["repeated prompt ids"] += name != str(row_id)
            answers = list(zip(names, items, strict=True))
            other_ids = {
                str(place): item["answer_id"] for place, (answer, item) in enumerate(answers) if _is_other(answer, item)
            }
            forms = [_form(item) for item in items]
            yield Case(
                prompt=question_prompt(question, id=name, meta=row.others(self.keys)),
                responses=tuple(_response(*answer) for answer in answers),
                ratings=tuple(rating for answer in answers for rating in _ratings(*answer, warnings)),
                meta=as_read(
                    self._kind,
                    qid=row_id if _written_id(name) != row_id else None,
                    ids=other_ids or None,
                    forms=forms if any(forms) else [],
                ),
            )

    def write(self, cases: Iterable[Case], dropped: Counter[str]) -> Iterator[JsonObject]:
        """Yield a row per case of one question and answers of one turn."""
        for case in cases:
            plain = plain_texts(case, dropped)
            if plain is None:
                continue
            taken, form = take_ratings(case, (_SCORE, _SELECTED), dropped), form_of(case, self._kind)
            count_lost(taken.rest, dropped, self.supports)
            answers = [
                _answer(response, plain.texts[response.id], taken, dropped) | _read_form(place, form)
                for place, response in enumerate(case.responses)
            ]
            row = {"qid": form.get("qid", _written_id(case.prompt.id)), "question": plain.question, "answers": answers}
            yield with_meta(row, case, self.keys, dropped)


def _is_id(value: Any) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool)


def _written_id(name: str) -> int | str:
    """Return an id of digits as the number that it is."""
    return int(name) if name.isascii() and name.isdigit() and str(int(name)) == name else name


def _is_other(name: str, item: JsonObject) -> bool:
    """Return whether the id would be written otherwise than it was read."""
    answer_id, wanted = item["answer_id"], _written_id(name)
    return answer_id != wanted or isinstance(answer_id, int) != isinstance(wanted, int)


def _check(item: Any, where: Place) -> None:
    if not isinstance(item, dict) or not isinstance(item.get("text"), str) or not _is_id(item.get("answer_id")):
        raise RecordError("an answer without id and text", where=where, allowed='{"answer_id": …, "text": …, …}')
    if item.get("pm_score") is not None and not is_number(item["pm_score"]):
        raise RecordError("a pm_score that is not a number", where=where, allowed="a number, or null")
    if not isinstance(item.get("selected"), bool | None):
        raise RecordError("'selected' is neither true nor false", where=where, allowed="true, false or null")
    if not isinstance(item.get("author"), str | None):
        raise RecordError("an author that is not a name", where=where, allowed="author: a text, or null")


def _form(item: JsonObject) -> dict[str, None]:
    return {key: None for key in ("author", "pm_score", "selected") if key in item and item[key] is None}


def _response(name: str, item: JsonObject) -> Response:
    return Response(id=name, text=item["text"], author=item.get("author"), meta=without_keys(item, _ANSWER_KEYS))


def _ratings(name: str, item: JsonObject, warnings: Counter[str]) -> Iterator[Rating]:
    if item.get("pm_score") is not None:
        yield rating_of(name, item["pm_score"], _SCORE, warnings)
    if item.get("selected") is not None:
        yield rating_of(name, float(item["selected"]), _SELECTED, warnings)


def _answer(response: Response, text: str, taken: TakenRatings, dropped: Counter[str]) -> JsonObject:
    score, selected = (taken.value(response.id, scale.dimension) for scale in (_SCORE, _SELECTED))
    optional = {"author": response.author, "pm_score": score}
    fields: JsonObject = {"answer_id": _written_id(response.id), "text": text}
    fields |= {key: value for key, value in optional.items() if value is not None}
    if selected in (0, 1):
        fields["selected"] = bool(selected)
    dropped["values of 'selected' between 0 and 1"] += selected not in (None, 0, 1)
    return fields | other_meta(response.meta, _ANSWER_KEYS, dropped)


def _read_form(place: int, form: JsonObject) -> JsonObject:
    """Return the fields of an answer that the case does not hold: its exact id, and keys that are null."""
    forms: Sequence[JsonObject] = form.get("forms") or ()
    ids = form.get("ids", {})
    fields = {"answer_id": ids[str(place)]} if str(place) in ids else {}
    return fields | (forms[place] if place < len(forms) else {})


KINDS = {"stackexchange": without_settings(StackExchange(), __doc__)}
