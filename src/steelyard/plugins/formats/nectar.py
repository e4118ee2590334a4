r"""Nectar: a prompt as a transcript that ends where the assistant is to answer, and seven answers ranked by GPT-4.

Written from the card of the data set berkeley-nest/Nectar: ``prompt`` is ``\n\nHuman: …\n\nAssistant: ``, an answer has
``answer``, ``model`` and ``rank`` (1 is best), ``source`` lists where prompt and answers came from. The card calls the
number of answers ``num_response`` and the files ``num_responses``: either is read. Answers of one rank are one tier.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import Case, Message, Response
from steelyard.plugins.formats._cheems import rank_of, tiers_of
from steelyard.plugins.formats._fields import (
    PromptIds,
    answer_ids,
    as_read,
    form_of,
    is_number,
    list_field,
    response_of,
    rest,
    text_field,
    with_meta,
    with_prompt,
)
from steelyard.plugins.formats._parts import carrying, count_lost
from steelyard.plugins.formats._plain import answer_or_none
from steelyard.plugins.formats._sides import OTHER_SHAPE, absent_keys
from steelyard.plugins.formats._transcripts import HUMAN, text_of, turns_in

_KIND = "nectar"
_ANSWER_KEYS = ("answer", "model", "rank")
_NUMBERS = ("turns", "num_responses", "num_response")
_KEYS = ("prompt", "answers", *_NUMBERS, "source")
_END = "\n\nAssistant: "


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class Nectar:
    """One row a prompt, with all its answers."""

    keys = _KEYS
    carries = carrying(
        "system turns", "earlier turns", "source", "prompt meta", "authors", "response meta", "rankings", "ties",
        "more than two responses",
    )  # fmt: skip

    def recognises(self, row: dict[str, Any]) -> bool:
        """A prompt with a list of answers that each have a rank."""
        answers = row.get("answers")
        return isinstance(row.get("prompt"), str) and isinstance(answers, list) and bool(answers) and all(
            isinstance(item, dict) and {"answer", "rank"} <= item.keys() for item in answers
        )  # fmt: skip

    def read(self, rows: Iterable[Row], noted: Counter[str]) -> Iterator[Case]:
        """Cases with a tier for each rank; answers without a rank are not ranked."""
        ids = PromptIds(noted)
        for row in rows:
            text = text_field(row, "prompt")
            end = next((end for end in (_END, _END.rstrip(" ")) if text.endswith(end)), "")
            prompt = turns_in(text.removesuffix(end), HUMAN)
            items = _items(row)
            names = answer_ids([_turns(item) for item in items], noted)
            places = {name: item["rank"] for name, item in zip(names, items, strict=True) if _is_ranked(item)}
            ranking = tiers_of(places) or None
            numbers = {key: row.value[key] for key in _NUMBERS if key in row.value}
            wanted = _numbers(prompt.turns, len(items))
            said = row.value.get("source")
            meta = as_read(
                _KIND,
                end=end if end != _END else None,
                bare=prompt.bare,
                ranks=list(places.values()) if ranking and not _are_plain(places, rank_of(ranking)) else None,
                bare_answers=[place for place, item in enumerate(items) if "rank" not in item],
                models=[place for place, item in enumerate(items) if item.get("model", ...) is None],
                numbers=None if numbers == wanted else [numbers],
                source=[said] if "source" in row.value and said != [_source(said)] else None,
                absent=absent_keys(row, ("source",)),
            )
            yield Case(
                prompt=with_prompt(prompt.turns, id=ids.made(row), source=_source(said), meta=rest(row, _KEYS)),
                responses=tuple(_response(name, item) for name, item in zip(names, items, strict=True)),
                ranking=ranking,
                meta=meta,
            )

    def write(self, cases: Iterable[Case], lost: Counter[str]) -> Iterator[dict[str, Any]]:
        """A row a case; one whose turns would not be read again from a transcript is counted and not written."""
        for case in cases:
            form = form_of(case, _KIND)
            text = text_of(case.prompt.messages, HUMAN, form.get("bare", ()))
            texts = [answer_or_none(response) for response in case.responses]
            if text is None or None in texts or text.endswith((_END, _END.rstrip(" "))):
                lost[OTHER_SHAPE] += 1
                continue
            count_lost(case, lost, self.carries)
            row = {"prompt": text + form.get("end", _END), "answers": _answers(case, texts, form, lost)}
            (numbers,) = form.get("numbers") or [_numbers(case.prompt.messages, len(texts))]
            yield with_meta(row | numbers | _said_source(case, form), case, _KEYS, lost)


def build(config: Config) -> Nectar:
    """The format."""
    return Nectar()


def _items(row: Row) -> Sequence[dict[str, Any]]:
    items = list_field(row, "answers")
    for place, item in enumerate(items):
        where = row.place._replace(path=f"answers[{place}]")
        if not isinstance(item, dict) or not isinstance(item.get("answer"), str):
            raise RecordError("an answer without a text", where=where, allowed='{"answer": …, "model": …, "rank": …}')
        if not (item.get("model") is None or isinstance(item["model"], str)):
            raise RecordError("a model that is no name", where=where, allowed="model: a text")
        if not (item.get("rank") is None or is_number(item["rank"])):
            raise RecordError("a rank that is no number", where=where, allowed="rank: a number, 1 is best")
    return items


def _turns(item: dict[str, Any]) -> tuple[Message, ...]:
    return (Message(role="assistant", content=item["answer"]),)


def _is_ranked(item: dict[str, Any]) -> bool:
    return item.get("rank") is not None


def _are_plain(places: dict[str, Any], wanted: dict[str, int]) -> bool:
    return places == wanted and all(isinstance(place, int) for place in places.values())


def _response(name: str, item: dict[str, Any]) -> Response:
    meta = {key: value for key, value in item.items() if key not in _ANSWER_KEYS}
    return response_of(name, _turns(item), author=item.get("model"), meta=meta or None)


def _numbers(turns: Sequence[Message], num_responses: int) -> dict[str, int]:
    return {"turns": sum(turn.role == "user" for turn in turns), "num_responses": num_responses}


def _source(said: Any) -> str | None:
    """The names of the sources as one text."""
    names = said if isinstance(said, list) else [said]
    return ", ".join(names) if names and all(isinstance(name, str) for name in names) else None


def _said_source(case: Case, form: dict[str, Any]) -> dict[str, Any]:
    source = case.prompt.source
    for said in form.get("source", ()):
        if _source(said) == source:
            return {"source": said}
    if source is None and "source" in form.get("absent", ()):
        return {}
    return {"source": [source] if source is not None else []}


def _answers(case: Case, texts: Sequence[str | None], form: dict[str, Any], lost: Counter[str]) -> list[dict[str, Any]]:
    ranks: dict[str, Any] = rank_of(case.ranking or ())
    ranked = [response.id for response in case.responses if response.id in ranks]
    kept = dict(zip(ranked, form.get("ranks", ()), strict=False))
    if kept.keys() == ranks.keys() and tiers_of(kept) == tuple(case.ranking or ()):
        ranks = kept
    rows: list[dict[str, Any]] = []
    for place, (response, text) in enumerate(zip(case.responses, texts, strict=True)):
        own: dict[str, Any] = {"answer": text}
        if response.author is not None or place in form.get("models", ()):
            own["model"] = response.author
        if response.id in ranks or place not in form.get("bare_answers", ()):
            own["rank"] = ranks.get(response.id)
        meta = response.meta or {}
        clashing = len(meta.keys() & set(_ANSWER_KEYS))
        lost["response meta under the format's own names"] += clashing
        rows.append(own | {key: value for key, value in meta.items() if key not in _ANSWER_KEYS})
    return rows
