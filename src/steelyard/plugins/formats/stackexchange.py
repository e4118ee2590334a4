"""Stack Exchange preferences: a question with its answers, their scores, and which one the asker accepted.

Written from the card of the data set HuggingFaceH4/stack-exchange-preferences and the features that its copies list:
``pm_score`` is log2(1 + upvotes), rounded, plus 1 for an accepted answer, and -1 where votes are negative. It is a
rating by the site's readers without an upper end; that an answer is ``selected`` is a rating by the asker. Texts are
HTML and stay so. Ids are unique within one site: where several stand in one file, a repeated one gets ``~2``.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import RecordError
from steelyard.core.identity import UniqueIds
from steelyard.core.protocols import Row
from steelyard.core.types import Case, Message, Rating, Response
from steelyard.plugins.formats._fields import (
    as_read,
    form_of,
    is_number,
    list_field,
    rest,
    text_field,
    with_meta,
    with_prompt,
)
from steelyard.plugins.formats._parts import carrying, count_lost
from steelyard.plugins.formats._plain import plain_of
from steelyard.plugins.formats._ratings import Scale, Taken, rating_of, take_ratings

_KIND = "stackexchange"
_KEYS = ("qid", "question", "answers")
_SCORE = Scale("pm_score", None, "stackexchange", "human")
_SELECTED = Scale("selected", (0, 1), "asker", "human")
_ANSWER_KEYS = ("answer_id", "text", "author", "pm_score", "selected")


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class StackExchange:
    """One row a question, with all its answers."""

    keys = _KEYS
    carries = carrying(
        "prompt meta", "prompt ids", "response ids", "authors", "response meta", "more than two responses"
    )

    def recognises(self, row: dict[str, Any]) -> bool:
        """A question with its id, and answers that each have a score."""
        answers = row.get("answers")
        return {"qid", "question"} <= row.keys() and isinstance(answers, list) and bool(answers) and all(
            isinstance(item, dict) and {"answer_id", "pm_score"} <= item.keys() for item in answers
        )  # fmt: skip

    def read(self, rows: Iterable[Row], noted: Counter[str]) -> Iterator[Case]:
        """Cases with two ratings a response."""
        ids = UniqueIds()
        for row in rows:
            question, given = text_field(row, "question"), row.value.get("qid")
            if not _is_id(given):
                raise RecordError("a question without an id", where=row.place._replace(path="qid"), allowed="a number")
            items = list_field(row, "answers")
            for place, item in enumerate(items):
                _check(item, row, place)
            names = UniqueIds().take_all(str(item["answer_id"]) for item in items)
            wanted = str(given)
            name = ids.take(wanted)
            noted["repeated prompt ids"] += name != wanted
            said = zip(names, items, strict=True)
            meta = as_read(
                _KIND,
                qid=given if _written_id(name) != given else None,
                ids={str(place): item["answer_id"] for place, item in enumerate(items) if _is_other(names[place], item)}
                or None,
                forms=[_form(item) for item in items] if any(map(_form, items)) else [],
            )
            yield Case(
                prompt=with_prompt((Message(role="user", content=question),), id=name, meta=rest(row, _KEYS)),
                responses=tuple(_response(one, item) for one, item in zip(names, items, strict=True)),
                ratings=tuple(rating for one, item in said for rating in _ratings(one, item, noted)),
                meta=meta,
            )

    def write(self, cases: Iterable[Case], lost: Counter[str]) -> Iterator[dict[str, Any]]:
        """A row a case of one question and answers of one turn."""
        for case in cases:
            plain = plain_of(case, lost)
            if plain is None:
                continue
            taken, form = take_ratings(case, (_SCORE, _SELECTED), lost), form_of(case, _KIND)
            count_lost(taken.rest, lost, self.carries)
            answers = [
                _answer(response, plain.texts[response.id], taken, lost) | _kept(place, form)
                for place, response in enumerate(case.responses)
            ]
            row = {"qid": form.get("qid", _written_id(case.prompt.id)), "question": plain.question, "answers": answers}
            yield with_meta(row, case, _KEYS, lost)


def build(config: Config) -> StackExchange:
    """The format."""
    return StackExchange()


def _is_id(value: Any) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool)


def _written_id(name: str) -> int | str:
    """An id of digits as the number that it is."""
    return int(name) if name.isascii() and name.isdigit() and str(int(name)) == name else name


def _is_other(name: str, item: dict[str, Any]) -> bool:
    """Whether the id would be written otherwise than it was read."""
    given, wanted = item["answer_id"], _written_id(name)
    return given != wanted or isinstance(given, int) != isinstance(wanted, int)


def _check(item: Any, row: Row, place: int) -> None:
    where = row.place._replace(path=f"answers[{place}]")
    if not isinstance(item, dict) or not isinstance(item.get("text"), str) or not _is_id(item.get("answer_id")):
        raise RecordError("an answer without id and text", where=where, allowed='{"answer_id": …, "text": …, …}')
    if item.get("pm_score") is not None and not is_number(item["pm_score"]):
        raise RecordError("a pm_score that is no number", where=where, allowed="a number, or null")
    if not isinstance(item.get("selected"), bool | None):
        raise RecordError("'selected' is neither true nor false", where=where, allowed="true, false or null")
    if not isinstance(item.get("author"), str | None):
        raise RecordError("an author that is no name", where=where, allowed="author: a text, or null")


def _form(item: dict[str, Any]) -> dict[str, None]:
    return {key: None for key in ("author", "pm_score", "selected") if key in item and item[key] is None}


def _response(name: str, item: dict[str, Any]) -> Response:
    meta = {key: value for key, value in item.items() if key not in _ANSWER_KEYS}
    return Response(id=name, text=item["text"], author=item.get("author"), meta=meta or None)


def _ratings(name: str, item: dict[str, Any], noted: Counter[str]) -> Iterator[Rating]:
    if item.get("pm_score") is not None:
        yield rating_of(name, item["pm_score"], _SCORE, noted)
    if item.get("selected") is not None:
        yield rating_of(name, float(item["selected"]), _SELECTED, noted)


def _answer(response: Response, text: str, taken: Taken, lost: Counter[str]) -> dict[str, Any]:
    score, selected = (taken.value(response.id, scale.dimension) for scale in (_SCORE, _SELECTED))
    said = {"author": response.author, "pm_score": score}
    own: dict[str, Any] = {"answer_id": _written_id(response.id), "text": text}
    own |= {key: value for key, value in said.items() if value is not None}
    if selected in (0, 1):
        own["selected"] = bool(selected)
    lost["values of 'selected' between 0 and 1"] += selected not in (None, 0, 1)
    meta = response.meta or {}
    lost["response meta under the format's own names"] += len(meta.keys() & set(_ANSWER_KEYS))
    return own | {key: value for key, value in meta.items() if key not in _ANSWER_KEYS}


def _kept(place: int, form: dict[str, Any]) -> dict[str, Any]:
    """What was read of an answer beyond what the case says: its very id, and keys that are null."""
    forms: Sequence[dict[str, Any]] = form.get("forms") or ()
    ids = form.get("ids", {})
    own = {"answer_id": ids[str(place)]} if str(place) in ids else {}
    return own | (forms[place] if place < len(forms) else {})
