"""RMB rows: a better and a worse answer, or the best answer with a list of worse ones, of a conversation.

Written from the data in the repository Zhou-Zoey/RMB-Reward-Model-Benchmark (``RMB_dataset``): the pairwise set has
``pair_uid``, ``chosen`` and ``reject``, the best-of-N set ``bon_uid``, ``bon_best`` and ``loser_list``; an answer is
``{llm_name, answer}``, in the pairwise set with a ``score``. ``category_path`` begins with the name of the set, which
becomes the subset; the rest is the category. Ids of the two sets overlap, so a case's id is ``SET/UID``. A score is a
rating by a language model that the rows do not name (of the dimension ``overall``).
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import Case, Response
from steelyard.plugins.formats._fields import (
    PromptIds,
    as_read,
    is_number,
    list_field,
    rest,
    text_field,
    turns_of,
    with_prompt,
)
from steelyard.plugins.formats._parts import carrying, count_lost
from steelyard.plugins.formats._rmb import (
    ANSWER_KEYS,
    BEST_OF_N,
    KEYS,
    KIND,
    NAMES,
    PAIRWISE,
    language_of,
    own_rating,
    rmb_row,
    split_path,
    without_own_raters,
)
from steelyard.plugins.formats._sides import absent_keys, sides_of


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class Rmb:
    """One row a case of two tiers; a single worse answer is written as of the pairwise set."""

    keys = KEYS
    carries = carrying(
        "system turns", "earlier turns", "language", "category", "subset", "prompt meta", "authors", "response meta",
        "rankings", "ties", "more than two responses", "ratings",
    )  # fmt: skip

    def recognises(self, row: dict[str, Any]) -> bool:
        """A conversation with the two sides of one of the sets."""
        return "conversation_input" in row and any({one.better, one.worse} <= row.keys() for one in NAMES.values())

    def read(self, rows: Iterable[Row], noted: Counter[str]) -> Iterator[Case]:
        """Cases of two tiers, the better one of a single answer."""
        ids = PromptIds(noted)
        for row in rows:
            kind = _set_of(row)
            names = NAMES[kind]
            list_field(row, "conversation_input")
            messages = turns_of(row.value.get("conversation_input"), row.place, "conversation_input", role="user")
            extras = [_other_keys(turn) for turn in row.value["conversation_input"]]
            given, path = row.value.get(names.uid), _path(row)
            subset, category = split_path(path or "")
            answers = _answers(row, kind)
            responses = tuple(_response(row, path, value) for path, value in answers)
            scored = zip(responses, answers, strict=True)
            yield Case(
                prompt=with_prompt(
                    messages,
                    id=ids.made(row) if given is None else ids.given(f"{kind}/{given}", row),
                    language=language_of(extras),
                    subset=subset,
                    category=category,
                    meta=rest(row, KEYS),
                ),
                responses=responses,
                ratings=tuple(own_rating(one.id, value["score"]) for one, (_, value) in scored if _is_scored(value)),
                ranking=((responses[0].id,), tuple(response.id for response in responses[1:])),
                meta=as_read(
                    KIND,
                    uid=given,
                    turns=extras if any(extras) else None,
                    path=path,
                    set=kind,
                    absent=absent_keys(row, (names.uid, "category_path")),
                ),
            )

    def write(self, cases: Iterable[Case], lost: Counter[str]) -> Iterator[dict[str, Any]]:
        """A row a case of one answer above the others; other cases are counted and not written."""
        for case in cases:
            count_lost(without_own_raters(case), lost, self.carries)
            sides = sides_of(case, lost, num_better=1)
            if sides.better:
                yield rmb_row(case, sides, lost)


def build(config: Config) -> Rmb:
    """The format."""
    return Rmb()


def _set_of(row: Row) -> str:
    present = [kind for kind, names in NAMES.items() if any(key in row.value for key in names)]
    if len(present) > 1:
        raise RecordError("keys of both sets in one row", where=row.place, allowed="of the pairwise or best-of-N set")
    return present[0] if present else PAIRWISE


def _other_keys(turn: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in turn.items() if key not in ("role", "content")}


def _path(row: Row) -> str | None:
    return text_field(row, "category_path") if "category_path" in row.value else None


def _answers(row: Row, kind: str) -> list[tuple[str, Any]]:
    """The answers, the better one first, each with its place in the row."""
    names = NAMES[kind]
    better = (names.better, row.value.get(names.better))
    if kind != BEST_OF_N:
        return [better, (names.worse, row.value.get(names.worse))]
    worse = list_field(row, names.worse)
    if not worse:
        raise RecordError("no worse answer", where=row.place._replace(path=names.worse), allowed="one or more")
    return [better, *((f"{names.worse}[{index}]", value) for index, value in enumerate(worse))]


def _response(row: Row, path: str, value: Any) -> Response:
    is_answer = isinstance(value, dict) and isinstance(value.get("answer"), str)
    if not is_answer or not isinstance(value.get("llm_name"), str | None):
        where = row.place._replace(path=path)
        raise RecordError("no answer with its text", where=where, allowed='{"llm_name": a text, "answer": a text}')
    own = {key for key in ANSWER_KEYS if value.get(key) is not None and (key != "score" or _is_scored(value))}
    meta = {key: said for key, said in value.items() if key not in own}
    return Response(id=path, text=value["answer"], author=value.get("llm_name"), meta=meta or None)


def _is_scored(value: dict[str, Any]) -> bool:
    return is_number(value.get("score"))
