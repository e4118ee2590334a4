"""CheemsBench and CheemsPreference JSON lines: responses with annotations and a rank, or flat pairs.

Written from the reading code and the field names of the published repository AlignRM/CheemsRM. An annotation's
preference is kept whatever it says: ``1`` or ``g`` the first is better, ``2``, ``-1`` or ``b`` the second, ``0``,
``s``, ``same`` or ``tie`` neither.

Differs from: the published code, which uses only preference ``1``, never the system prompt, and joins rows whose
prompts have the same text.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from steelyard.core.checks import check_case
from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import Case, Judgment, Message, Ranking, Response, Verdict
from steelyard.plugins.formats._fields import (
    PromptIds,
    answer_ids,
    answer_turns,
    as_turns,
    count_lost,
    list_field,
    response_of,
    rest,
    text_field,
    turns_of,
    with_prompt,
)

_VERDICTS: dict[str, Verdict] = {
    **dict.fromkeys(("1", "g"), "left"),
    **dict.fromkeys(("2", "-1", "b"), "right"),
    **dict.fromkeys(("0", "s", "same", "tie"), "tie"),
}  # fmt: skip
_PREFERENCES = {"left": "1", "right": "2", "tie": "0"}
_KEYS = ("input", "prompt", "category", "responses", "annotations", "rank", "sys_prompt", "id")
_FLAT_KEYS = ("input", "prompt", "category", "answer1", "answer2", "preference", "sys_prompt", "id")


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class Cheems:
    """One row a prompt. Every row that is written has every key: the published reader drops keys that one row lacks."""

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
            try:
                yield check_case(_flat_case(row, ids, noted) if is_flat else _full_case(row, ids, noted))
            except RecordError as error:
                raise (error if error.where else error.at(row.place)) from error

    def write(self, cases: Iterable[Case], lost: Counter[str]) -> Iterator[dict[str, Any]]:
        """Full rows, with all keys in each."""
        for case in cases:
            count_lost(
                case, lost, carried=("category", "prompt meta", "response meta", "judgments", "given ids", "authors")
            )
            yield _row(case, lost)


def build(config: Config) -> Cheems:
    """The format."""
    return Cheems()


def _prompt_fields(row: Row, ids: PromptIds, known: Iterable[str]) -> dict[str, Any]:
    key = "input" if "input" in row.value else "prompt"
    if key not in row.value:
        raise RecordError("the row lacks 'input'", where=row.place, allowed="input (or prompt): a text or turns")
    messages = turns_of(row.value[key], row.place, key, role="user")
    system = text_field(row, "sys_prompt", default="")
    category = row.value.get("category") or ()
    given = row.value.get("id")
    return {
        "messages": ((Message(role="system", content=system),) if system else ()) + messages,
        "id": ids.made(row) if given is None else ids.given(str(given), row),
        "category": (category,) if isinstance(category, str) else tuple(map(str, category)),
        "meta": rest(row, known),
    }


def _full_case(row: Row, ids: PromptIds, noted: Counter[str]) -> Case:
    responses = tuple(_response(row, index, item) for index, item in enumerate(list_field(row, "responses")))
    rank = row.value.get("rank") or {}
    ranking = _tiers(row, rank) if rank else None
    fields = _prompt_fields(row, ids, _KEYS)
    if ranking and rank != _rank(ranking):
        fields["meta"] = {**(fields["meta"] or {}), "rank": rank}  # other numbers that say the same order
    judgments = tuple(_judgment(row, item) for item in list_field(row, "annotations", default=()))
    return Case(prompt=with_prompt(**fields), responses=responses, judgments=judgments, ranking=ranking)


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
    return Response(id=str(item["id"]), text=item["content"], author=author, meta=meta or None)


def _judgment(row: Row, item: Any) -> Judgment:
    if isinstance(item, dict):
        item = [item.get("answer1"), item.get("answer2"), item.get("preference")]
    if not isinstance(item, list) or len(item) != 3:
        raise RecordError(
            "an annotation that is no triple", where=row.place, allowed="[first id, second id, preference]"
        )
    preference = str(item[2])
    if preference not in _VERDICTS:
        raise RecordError(f"unknown preference {preference!r}", where=row.place, allowed=", ".join(_VERDICTS))
    verdict = _VERDICTS[preference]
    meta = None if item[2] == _PREFERENCES[verdict] else {"preference": item[2]}
    return Judgment(left=str(item[0]), right=str(item[1]), verdict=verdict, judge="unknown", kind="human", meta=meta)


def _tiers(row: Row, rank: Any) -> Ranking:
    if not isinstance(rank, dict) or not all(isinstance(place, int | float) for place in rank.values()):
        raise RecordError("a rank that is no map of ids to numbers", where=row.place._replace(path="rank"))
    tiers: dict[float, list[str]] = defaultdict(list)
    for name, place in rank.items():
        tiers[place].append(name)
    return tuple(tuple(tiers[place]) for place in sorted(tiers))


def _rank(ranking: Ranking) -> dict[str, int]:
    return {name: number for number, tier in enumerate(ranking, 1) for name in tier}


def _row(case: Case, lost: Counter[str]) -> dict[str, Any]:
    prompt, meta = case.prompt, dict(case.prompt.meta or {})
    system = "\n".join(turn.content for turn in prompt.messages if turn.role == "system")
    turns = [turn for turn in prompt.messages if turn.role != "system"]
    is_plain = len(turns) == 1 and turns[0].role == "user"
    rank, kept = _rank(case.ranking or ()), meta.pop("rank", None)
    if kept is not None and sorted(kept, key=kept.get) and _same_order(kept, case.ranking or ()):
        rank = kept
    return {
        "id": prompt.id,
        "input": turns[0].content if is_plain else as_turns(turns),
        "category": list(prompt.category),
        "responses": [_written(response, lost) for response in case.responses],
        "annotations": [_annotation(judgment) for judgment in case.judgments if _is_written(judgment, lost)],
        "rank": rank,
        "sys_prompt": system,
        **meta,
    }


def _same_order(rank: dict[str, Any], ranking: Ranking) -> bool:
    tiers: dict[Any, set[str]] = defaultdict(set)
    for name, place in rank.items():
        tiers[place].add(name)
    return [tiers[place] for place in sorted(tiers)] == [set(tier) for tier in ranking]


def _written(response: Response, lost: Counter[str]) -> dict[str, Any]:
    if response.messages is not None:
        lost["earlier turns of an answer"] += len(response.messages) - 1
    text = answer_turns(response)[-1].content
    author = {"model": response.author} if response.author is not None else {}
    return {"id": response.id, "content": text, **author, **(response.meta or {})}


def _is_written(judgment: Judgment, lost: Counter[str]) -> bool:
    if judgment.verdict == "none":
        lost["judgments without a verdict"] += 1
        return False
    is_plain = judgment.judge == "unknown" and judgment.kind == "human"
    lost["judges, kinds and other fields of judgments"] += not is_plain
    return True


def _annotation(judgment: Judgment) -> list[Any]:
    return [judgment.left, judgment.right, (judgment.meta or {}).get("preference", _PREFERENCES[judgment.verdict])]
