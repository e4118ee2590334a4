r"""Nectar: a prompt as a transcript that ends where the assistant is to answer, and seven answers ranked by GPT-4.

Written from the card of the data set berkeley-nest/Nectar: ``prompt`` is ``\n\nHuman: …\n\nAssistant: ``, an answer has
``answer``, ``model`` and ``rank`` (1 is best), ``source`` lists where prompt and answers came from. The card calls the
number of answers ``num_response`` and the files ``num_responses``: either is read. Answers of one rank are one tier.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from steelyard.core.errors import RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.protocols import Row, is_number
from steelyard.core.types import Case, JsonObject, Message, Response
from steelyard.curation.format_support import carrying, count_lost
from steelyard.plugins.formats._conversations import HUMAN, text_of, turns_in
from steelyard.plugins.formats._fields import (
    OTHER_SHAPE,
    PromptIds,
    answer_ids,
    answer_of,
    answer_or_none,
    as_read,
    form_of,
    other_meta,
    response_of,
    with_meta,
    with_prompt,
)
from steelyard.plugins.formats._ratings import rank_of, tiers_of

_KIND = "nectar"
_ANSWER_KEYS = ("answer", "model", "rank")
_NUMBERS = ("turns", "num_responses", "num_response")
_KEYS = ("prompt", "answers", *_NUMBERS, "source")
_END = "\n\nAssistant: "


class Nectar:
    """One row a prompt, with all its answers."""

    keys = _KEYS
    supports = carrying(
        "system turns", "earlier turns", "source", "prompt meta", "authors", "response meta", "rankings", "ties",
        "more than two responses",
    )  # fmt: skip

    def matches(self, row: JsonObject) -> bool:
        """Return whether the row has a prompt with a list of answers that each have a rank."""
        answers = row.get("answers")
        return isinstance(row.get("prompt"), str) and isinstance(answers, list) and bool(answers) and all(
            isinstance(item, dict) and {"answer", "rank"} <= item.keys() for item in answers
        )  # fmt: skip

    def read(self, rows: Iterable[Row], warnings: Counter[str]) -> Iterator[Case]:
        """Yield cases with a tier for each rank; answers without a rank are not ranked."""
        ids = PromptIds(warnings)
        for row in rows:
            text = row.text("prompt")
            end = next((end for end in (_END, _END.rstrip(" ")) if text.endswith(end)), "")
            prompt = turns_in(text.removesuffix(end), HUMAN)
            items = _items(row)
            names = answer_ids([_turns(item) for item in items], warnings)
            places = {name: item["rank"] for name, item in zip(names, items, strict=True) if _is_ranked(item)}
            ranking = tiers_of(places) or None
            numbers = {key: row.value[key] for key in _NUMBERS if key in row.value}
            wanted = _numbers(prompt.turns, len(items))
            sources = row.value.get("source")
            meta = as_read(
                _KIND,
                end=end if end != _END else None,
                bare=prompt.bare,
                ranks=list(places.values()) if ranking and not _are_plain(places, rank_of(ranking)) else None,
                bare_answers=[place for place, item in enumerate(items) if "rank" not in item],
                models=[place for place, item in enumerate(items) if item.get("model", ...) is None],
                numbers=None if numbers == wanted else [numbers],
                source=[sources] if "source" in row.value and sources != [_source(sources)] else None,
                absent=row.absent(("source",)),
            )
            yield Case(
                prompt=with_prompt(prompt.turns, id=ids.take(row), source=_source(sources), meta=row.others(_KEYS)),
                responses=tuple(_response(name, item) for name, item in zip(names, items, strict=True)),
                ranking=ranking,
                meta=meta,
            )

    def write(self, cases: Iterable[Case], dropped: Counter[str]) -> Iterator[JsonObject]:
        """Yield a row a case; one whose turns would not be read again from a transcript is counted and not written."""
        for case in cases:
            form = form_of(case, _KIND)
            text = text_of(case.prompt.messages, HUMAN, form.get("bare", ()))
            texts = [answer_or_none(response) for response in case.responses]
            if text is None or None in texts or text.endswith((_END, _END.rstrip(" "))):
                dropped[OTHER_SHAPE] += 1
                continue
            count_lost(case, dropped, self.supports)
            row = {"prompt": text + form.get("end", _END), "answers": _answers(case, texts, form, dropped)}
            (numbers,) = form.get("numbers") or [_numbers(case.prompt.messages, len(texts))]
            yield with_meta(row | numbers | _source_field(case, form), case, _KEYS, dropped)


KINDS = {"nectar": without_settings(Nectar(), __doc__)}


def _items(row: Row) -> Sequence[JsonObject]:
    items = row.items("answers")
    for place, item in enumerate(items):
        where = row.at(f"answers[{place}]")
        if not isinstance(item, dict) or not isinstance(item.get("answer"), str):
            raise RecordError("an answer without a text", where=where, allowed='{"answer": …, "model": …, "rank": …}')
        if not (item.get("model") is None or isinstance(item["model"], str)):
            raise RecordError("a model that is not a name", where=where, allowed="model: a text")
        if not (item.get("rank") is None or is_number(item["rank"])):
            raise RecordError("a rank that is not a number", where=where, allowed="rank: a number, 1 is best")
    return items


def _turns(item: JsonObject) -> tuple[Message, ...]:
    return answer_of(item["answer"])


def _is_ranked(item: JsonObject) -> bool:
    return item.get("rank") is not None


def _are_plain(places: JsonObject, wanted: dict[str, int]) -> bool:
    return places == wanted and all(isinstance(place, int) for place in places.values())


def _response(name: str, item: JsonObject) -> Response:
    meta = {key: value for key, value in item.items() if key not in _ANSWER_KEYS}
    return response_of(name, _turns(item), author=item.get("model"), meta=meta or None)


def _numbers(turns: Sequence[Message], num_responses: int) -> dict[str, int]:
    return {"turns": sum(turn.role == "user" for turn in turns), "num_responses": num_responses}


def _source(value: Any) -> str | None:
    """Return the names of the sources as one text."""
    names = value if isinstance(value, list) else [value]
    return ", ".join(names) if names and all(isinstance(name, str) for name in names) else None


def _source_field(case: Case, form: JsonObject) -> JsonObject:
    source = case.prompt.source
    for value in form.get("source", ()):
        if _source(value) == source:
            return {"source": value}
    if source is None and "source" in form.get("absent", ()):
        return {}
    return {"source": [source] if source is not None else []}


def _answers(case: Case, texts: Sequence[str | None], form: JsonObject, dropped: Counter[str]) -> list[JsonObject]:
    ranks: JsonObject = rank_of(case.ranking or ())
    ranked = [response.id for response in case.responses if response.id in ranks]
    read_ranks = dict(zip(ranked, form.get("ranks", ()), strict=False))
    if read_ranks.keys() == ranks.keys() and tiers_of(read_ranks) == tuple(case.ranking or ()):
        ranks = read_ranks
    rows: list[JsonObject] = []
    for place, (response, text) in enumerate(zip(case.responses, texts, strict=True)):
        fields: JsonObject = {"answer": text}
        if response.author is not None or place in form.get("models", ()):
            fields["model"] = response.author
        if response.id in ranks or place not in form.get("bare_answers", ()):
            fields["rank"] = ranks.get(response.id)
        rows.append(fields | other_meta(response.meta, _ANSWER_KEYS, dropped))
    return rows
