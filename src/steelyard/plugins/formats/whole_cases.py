"""Rows of whole cases: Steelyard's own case files, CheemsBench and CheemsPreference.

CHEEMS's rows are written from the reading code and the field names of the published repository AlignRM/CheemsRM. An
annotation's preference is kept in its form: ``1`` or ``g`` the first is better, ``2``, ``-1`` or ``b`` the second,
``0``, ``s``, ``same`` or ``tie`` neither.

Differs from: the published code, which uses only preference ``1``, never the system prompt, and joins rows whose
prompts have the same text.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from steelyard.core.checks import check_case
from steelyard.core.errors import Place, RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.protocols import Row, is_number
from steelyard.core.types import UNKNOWN_JUDGE, Case, JsonObject, Judgment, Message, Prompt, Response, Verdict
from steelyard.curation.format_support import PARTS, carrying, count_lost
from steelyard.io.cases import decode_case
from steelyard.plugins.formats._pairs import rank_of, tiers_of
from steelyard.plugins.formats._row_format import (
    CaseReader,
    RowFormat,
    other_meta,
    present,
)
from steelyard.plugins.formats._turns import answer_text, count_other_keys, system_text, text_or_list

VERDICTS: dict[str, Verdict] = {
    **dict.fromkeys(("1", "g"), "left"),
    **dict.fromkeys(("2", "-1", "b"), "right"),
    **dict.fromkeys(("0", "s", "same", "tie"), "tie"),
}  # fmt: skip
PREFERENCES = {"left": "1", "right": "2", "tie": "0"}
ANNOTATION_KEYS = ("answer1", "answer2", "preference")
KEYS = ("input", "prompt", "category", "responses", "annotations", "rank", "sys_prompt", "id")
_FLAT_KEYS = ("input", "prompt", "category", "answer1", "answer2", "preference", "sys_prompt", "id")


def _parse(reader: CaseReader) -> Case:
    is_flat = "responses" not in reader.row.value and "answer1" in reader.row.value
    try:
        return check_case(_flat_case(reader) if is_flat else _full_case(reader))
    except RecordError as error:
        raise (error if error.where else error.at(reader.row.place)) from error


def _prompt(reader: CaseReader, known: Iterable[str]) -> Prompt:
    row = reader.row
    key = "input" if "input" in row.value else "prompt"
    if key not in row.value:
        raise RecordError("the row lacks 'input'", where=row.place, allowed="input (or prompt): a text or turns")
    messages = reader.turns(key, "user")
    system = row.text("sys_prompt", default="")
    row_id = row.value.get("id")
    return reader.prompt(
        ((Message(role="system", content=system),) if system else ()) + messages,
        name=None if row_id is None else _name(row_id, row, "id"),
        category=_category(row),
        meta=row.others(known),
    )


def _full_case(reader: CaseReader) -> Case:
    row = reader.row
    responses = tuple(_response(row, index, item) for index, item in enumerate(row.items("responses")))
    places = row.value.get("rank") or {}
    # In Parquet every row has the ids of all rows: null means unranked.
    rank = {name: place for name, place in places.items() if place is not None} if isinstance(places, dict) else None
    if rank is None or not all(map(is_number, rank.values())):
        raise RecordError("a rank that is not a map of ids to numbers", where=row.at("rank"))
    ranking = tiers_of(rank) if rank else None
    prompt = _prompt(reader, KEYS)
    # Other numbers can express the same order, and a single category can come without its list.
    other = rank if ranking and rank != rank_of(ranking) else None
    meta = reader.meta(rank=other, category=isinstance(row.value.get("category"), str))
    judgments = tuple(_judgment(row, item) for item in row.items("annotations", default=()))
    return Case(prompt=prompt, responses=responses, judgments=judgments, ranking=ranking, meta=meta)


def _flat_case(reader: CaseReader) -> Case:
    answers = [reader.turns(key, "assistant") for key in ANNOTATION_KEYS[:2]]
    for key in ANNOTATION_KEYS[:2]:
        count_other_keys(reader.row.value[key], reader.warnings)
    responses = reader.responses(answers)
    judgment = _judgment(reader.row, [*(item.id for item in responses), reader.row.value.get("preference")])
    return Case(prompt=_prompt(reader, _FLAT_KEYS), responses=responses, judgments=(judgment,))


def _response(row: Row, index: int, item: Any) -> Response:
    where = row.at(f"responses[{index}]")
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
    other: JsonObject = {}
    if isinstance(item, dict):
        other = {key: value for key, value in item.items() if key not in ANNOTATION_KEYS}
        item = [item.get(key) for key in ANNOTATION_KEYS]
    if not isinstance(item, list) or len(item) != 3:
        raise RecordError(
            "an annotation that is not a triple", where=row.place, allowed="[first id, second id, preference]"
        )
    preference = str(item[2])
    if preference not in VERDICTS:
        raise RecordError(f"unknown preference {preference!r}", where=row.place, allowed=", ".join(VERDICTS))
    verdict = VERDICTS[preference]
    meta = other if item[2] == PREFERENCES[verdict] else {**other, "preference": item[2]}
    return Judgment(
        left=str(item[0]), right=str(item[1]), verdict=verdict, judge=UNKNOWN_JUDGE, kind="human", meta=meta or None
    )


def _name(value: Any, row: Row, path: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise RecordError("an id that is neither a text nor a whole number", where=row.at(path))
    return str(value)


def _category(row: Row) -> tuple[str, ...]:
    category = row.value.get("category") or []
    if isinstance(category, str):
        return (category,)
    if not isinstance(category, list) or not all(isinstance(name, str) for name in category):
        where = row.at("category")
        raise RecordError("'category' is neither a text nor a list of texts", where=where, allowed='["…", "…"]')
    return tuple(category)


def _rows(case: Case, form: JsonObject, dropped: Counter[str]) -> Iterator[JsonObject]:
    """Yield a row with every key: the published reader drops keys that one row lacks."""
    count_lost(case, dropped, _CHEEMS.supports)
    prompt = case.prompt
    system = system_text(prompt.messages, dropped)
    turns = [turn for turn in prompt.messages if turn.role != "system"]
    readable = [judgment for judgment in case.judgments if judgment.verdict != "none"]
    dropped["judgments without a verdict"] += len(case.judgments) - len(readable)
    rank, read_rank = rank_of(case.ranking or ()), form.get("rank")
    is_one_name = form.get("category", False) and len(prompt.category) == 1
    yield {
        "id": prompt.id,
        "input": text_or_list(turns, "user"),
        "category": prompt.category[0] if is_one_name else list(prompt.category),
        "responses": [_written(response, dropped) for response in case.responses],
        "annotations": [_annotation(judgment) for judgment in readable],
        "rank": read_rank if read_rank and tiers_of(read_rank) == case.ranking else rank,
        "sys_prompt": system or "",
    }


def _written(response: Response, dropped: Counter[str]) -> JsonObject:
    fields = present({"model": response.author, "id": response.id, "content": answer_text(response, dropped)})
    return other_meta(response.meta, fields, dropped) | fields


def _annotation(judgment: Judgment) -> list[Any] | JsonObject:
    """Return a triple; where the judgment has more fields, an object, which the published reader takes as well."""
    meta = judgment.meta or {}
    read_preference = meta.get("preference")
    preference = (
        read_preference if VERDICTS.get(str(read_preference)) == judgment.verdict else PREFERENCES[judgment.verdict]
    )
    triple = [judgment.left, judgment.right, preference]
    if meta.keys() <= {"preference"}:
        return triple
    return meta | dict(zip(ANNOTATION_KEYS, triple, strict=True))


_CHEEMS = RowFormat(
    kind="cheems",
    keys=KEYS,
    supports=carrying(
        "system turns", "earlier turns", "category", "prompt meta", "prompt ids", "response ids", "authors",
        "response meta", "rankings", "ties", "more than two responses", "judgments",
    ),
    matches=lambda row: (
        not isinstance(row.get("prompt"), dict)
        and (
            (isinstance(row.get("responses"), list) and ("rank" in row or "annotations" in row))
            or set(ANNOTATION_KEYS) <= row.keys()
        )
    ),
    parse=_parse,
    rows_of=_rows,
    turn_keys=("input", "prompt"),
)  # fmt: skip


class WholeCases:
    """Case files. Nothing is lost either way."""

    keys = ("format", "prompt", "responses", "judgments", "ratings", "ranking", "pairs", "meta")
    has_evidence_rows = False
    is_written = True
    supports = carrying(*PARTS)

    def matches(self, row: JsonObject) -> bool:
        """Return whether the row has a prompt that is an object, and a list of responses."""
        return isinstance(row.get("prompt"), dict) and isinstance(row.get("responses"), list)

    def read(self, rows: Iterable[Row], warnings: Counter[str]) -> Iterator[Case]:
        """Yield the rows as checked cases. Raises RecordError for a repeated key."""
        places: dict[tuple[str, str | None], Place] = {}
        for row in rows:
            case = decode_case(msgspec.json.encode(row.value), row.place)
            if places.setdefault(case.key, row.place) is not row.place:
                problem = f"prompt id {case.prompt.id!r} is already used at {places[case.key]}"
                raise RecordError(problem, where=row.place, allowed="ids that are unique in a language")
            yield case

    def write(self, cases: Iterable[Case], dropped: Counter[str]) -> Iterator[JsonObject]:
        """Yield the cases as they are."""
        for case in cases:
            yield msgspec.to_builtins(case)


KINDS = {
    "cases": without_settings(
        WholeCases(),
        "Steelyard's case files, so that a conversion can change the file type alone: JSON lines to Parquet and back.",
    ),
    "cheems": without_settings(
        _CHEEMS, "CheemsBench and CheemsPreference JSON lines: responses with annotations and a rank, or flat pairs."
    ),
}
