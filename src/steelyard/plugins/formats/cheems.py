"""CheemsBench and CheemsPreference JSON lines: responses with annotations and a rank, or flat pairs.

Written from the reading code and the field names of the published repository AlignRM/CheemsRM. An annotation's
preference is kept whatever it says: ``1`` or ``g`` the first is better, ``2``, ``-1`` or ``b`` the second, ``0``,
``s``, ``same`` or ``tie`` neither.

Differs from: the published code, which uses only preference ``1``, never the system prompt, and joins rows whose
prompts have the same text.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from steelyard.core.checks import check_case
from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import Case, Judgment, Message, Response
from steelyard.plugins.formats._cheems import (
    ANNOTATION_KEYS,
    KEYS,
    KIND,
    PREFERENCES,
    VERDICTS,
    cheems_row,
    rank_of,
    tiers_of,
)
from steelyard.plugins.formats._fields import (
    PromptIds,
    answer_ids,
    as_read,
    count_other_keys,
    is_number,
    list_field,
    response_of,
    rest,
    text_field,
    turns_of,
    with_prompt,
)
from steelyard.plugins.formats._parts import UNKNOWN, carrying, count_lost

_FLAT_KEYS = ("input", "prompt", "category", "answer1", "answer2", "preference", "sys_prompt", "id")


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class Cheems:
    """One row a prompt. Every row that is written has every key: the published reader drops keys that one row lacks."""

    keys = KEYS
    carries = carrying(
        "system turns", "earlier turns", "category", "prompt meta", "prompt ids", "response ids", "authors",
        "response meta", "rankings", "ties", "more than two responses", "judgments",
    )  # fmt: skip

    def recognises(self, row: dict[str, Any]) -> bool:
        """Responses with a rank or annotations beside a textual prompt, or a flat pair with its preference."""
        is_full = isinstance(row.get("responses"), list) and ("rank" in row or "annotations" in row)
        is_flat = {"answer1", "answer2", "preference"} <= row.keys()
        return (is_full or is_flat) and not isinstance(row.get("prompt"), dict)

    def read(self, rows: Iterable[Row], noted: Counter[str]) -> Iterator[Case]:
        """Cases with judgments and ranking; other keys go into ``prompt.meta``."""
        ids = PromptIds(noted)
        for row in rows:
            is_flat = "responses" not in row.value and "answer1" in row.value
            for key in ("input", "prompt", *(ANNOTATION_KEYS[:2] if is_flat else ())):
                count_other_keys(row.value.get(key), ("role", "content"), noted)
            try:
                yield check_case(_flat_case(row, ids, noted) if is_flat else _full_case(row, ids, noted))
            except RecordError as error:
                raise (error if error.where else error.at(row.place)) from error

    def write(self, cases: Iterable[Case], lost: Counter[str]) -> Iterator[dict[str, Any]]:
        """Full rows, with all keys in each."""
        for case in cases:
            count_lost(case, lost, self.carries)
            yield cheems_row(case, lost)


def build(config: Config) -> Cheems:
    """The format."""
    return Cheems()


def _prompt_fields(row: Row, ids: PromptIds, known: Iterable[str]) -> dict[str, Any]:
    key = "input" if "input" in row.value else "prompt"
    if key not in row.value:
        raise RecordError("the row lacks 'input'", where=row.place, allowed="input (or prompt): a text or turns")
    messages = turns_of(row.value[key], row.place, key, role="user")
    system = text_field(row, "sys_prompt", default="")
    given = row.value.get("id")
    return {
        "messages": ((Message(role="system", content=system),) if system else ()) + messages,
        "id": ids.made(row) if given is None else ids.given(_name(given, row, "id"), row),
        "category": _category(row),
        "meta": rest(row, known),
    }


def _full_case(row: Row, ids: PromptIds, noted: Counter[str]) -> Case:
    responses = tuple(_response(row, index, item) for index, item in enumerate(list_field(row, "responses")))
    rank = _given_rank(row)
    ranking = tiers_of(rank) if rank else None
    fields = _prompt_fields(row, ids, KEYS)
    # Other numbers can say the same order, and a single category can stand without its list.
    other = rank if ranking and rank != rank_of(ranking) else None
    meta = as_read(KIND, rank=other, category=isinstance(row.value.get("category"), str))
    judgments = tuple(_judgment(row, item) for item in list_field(row, "annotations", default=()))
    return Case(prompt=with_prompt(**fields), responses=responses, judgments=judgments, ranking=ranking, meta=meta)


def _flat_case(row: Row, ids: PromptIds, noted: Counter[str]) -> Case:
    turns = [turns_of(row.value.get(key), row.place, key, role="assistant") for key in ("answer1", "answer2")]
    names = answer_ids(turns, noted)
    responses = tuple(response_of(name, one) for name, one in zip(names, turns, strict=True))
    judgment = _judgment(row, [*names, row.value.get("preference")])
    return Case(prompt=with_prompt(**_prompt_fields(row, ids, _FLAT_KEYS)), responses=responses, judgments=(judgment,))


def _response(row: Row, index: int, item: Any) -> Response:
    where = row.place._replace(path=f"responses[{index}]")
    if not isinstance(item, dict) or not isinstance(item.get("content"), str) or item.get("id") is None:
        raise RecordError("a response without id and content", where=where, allowed='{"id": …, "content": …}')
    meta = {key: value for key, value in item.items() if key not in ("id", "content", "model")}
    author = item.get("model")
    if author is not None and not isinstance(author, str):
        meta, author = {**meta, "model": author}, None
    return Response(
        id=_name(item["id"], row, f"responses[{index}]"), text=item["content"], author=author, meta=meta or None
    )


def _judgment(row: Row, item: Any) -> Judgment:
    other: dict[str, Any] = {}
    if isinstance(item, dict):
        other = {key: value for key, value in item.items() if key not in ANNOTATION_KEYS}
        item = [item.get(key) for key in ANNOTATION_KEYS]
    if not isinstance(item, list) or len(item) != 3:
        raise RecordError(
            "an annotation that is no triple", where=row.place, allowed="[first id, second id, preference]"
        )
    preference = str(item[2])
    if preference not in VERDICTS:
        raise RecordError(f"unknown preference {preference!r}", where=row.place, allowed=", ".join(VERDICTS))
    verdict = VERDICTS[preference]
    meta = other if item[2] == PREFERENCES[verdict] else {**other, "preference": item[2]}
    return Judgment(
        left=str(item[0]), right=str(item[1]), verdict=verdict, judge=UNKNOWN, kind="human", meta=meta or None
    )


def _name(value: Any, row: Row, path: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise RecordError("an id that is neither a text nor a whole number", where=row.place._replace(path=path))
    return str(value)


def _category(row: Row) -> tuple[str, ...]:
    category = row.value.get("category") or []
    if isinstance(category, str):
        return (category,)
    if not isinstance(category, list) or not all(isinstance(name, str) for name in category):
        where = row.place._replace(path="category")
        raise RecordError("'category' is neither a text nor a list of texts", where=where, allowed='["…", "…"]')
    return tuple(category)


def _given_rank(row: Row) -> dict[str, float]:
    rank = row.value.get("rank") or {}
    # In Parquet every row has the ids of all rows: what is null there was not ranked.
    placed = {name: place for name, place in rank.items() if place is not None} if isinstance(rank, dict) else None
    if placed is None or not all(map(is_number, placed.values())):
        raise RecordError("a rank that is no map of ids to numbers", where=row.place._replace(path="rank"))
    return placed
