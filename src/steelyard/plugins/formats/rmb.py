"""RMB rows: a better and a worse answer, or the best answer with a list of worse ones, of a conversation.

Written from the data in the repository Zhou-Zoey/RMB-Reward-Model-Benchmark (``RMB_dataset``): the pairwise set has
``pair_uid``, ``chosen`` and ``reject``, the best-of-N set ``bon_uid``, ``bon_best`` and ``loser_list``; an answer is
``{llm_name, answer}``, in the pairwise set with a ``score``. ``category_path`` begins with the name of the set, which
becomes the subset; the rest is the category. Ids of the two sets overlap, so a case's id is ``SET/UID``. A score is a
rating by a language model that the rows do not name (of the dimension ``overall``).
"""

from typing import Any, NamedTuple

from steelyard.core.errors import RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.protocols import Row, is_number
from steelyard.core.types import UNKNOWN_JUDGE, Case, JsonObject, Rating, Response
from steelyard.curation.format_support import carrying
from steelyard.plugins.formats._languages import LANGUAGE_CODE
from steelyard.plugins.formats._row_format import (
    CaseReader,
    RowFormat,
    without_keys,
)
from steelyard.plugins.formats._turns import ROLE_AND_CONTENT

KIND = "rmb"
DIMENSION = "overall"
ANSWER_KEYS = ("llm_name", "answer", "score")


class RmbKeys(NamedTuple):
    """The keys of a set: its ids, its better answer, and its worse answer or answers."""

    uid: str
    better: str
    worse: str


PAIRWISE, BEST_OF_N = "Pairwise_set", "BoN_set"
_SET_KEYS = {PAIRWISE: RmbKeys("pair_uid", "chosen", "reject"), BEST_OF_N: RmbKeys("bon_uid", "bon_best", "loser_list")}
KEYS = ("conversation_input", "category_path", *_SET_KEYS[PAIRWISE], *_SET_KEYS[BEST_OF_N])
_LANGUAGES = {
    "Afrikaans": "af", "Arabic": "ar", "Chinese": "zh", "English": "en", "Esperanto": "eo", "Finnish": "fi",
    "French": "fr", "German": "de", "Hebrew": "he", "Hindi": "hi", "Hungarian": "hu", "Irish": "ga", "Italian": "it",
    "Japanese": "ja", "Korean": "ko", "Latin": "la", "Maori": "mi", "Persian": "fa", "Portuguese": "pt",
    "Russian": "ru", "Somali": "so", "Sotho": "st", "Spanish": "es", "Swahili": "sw", "Swedish": "sv", "Tagalog": "tl",
    "Tsonga": "ts", "Tswana": "tn", "Turkish": "tr", "Ukrainian": "uk", "Vietnamese": "vi", "Xhosa": "xh",
    "Yoruba": "yo",
}  # fmt: skip


def _parse(reader: CaseReader) -> Case:
    row = reader.row
    present = [kind for kind, names in _SET_KEYS.items() if any(key in row.value for key in names)]
    if len(present) > 1:
        raise RecordError("keys of both sets in one row", where=row.place, allowed="of the pairwise or best-of-N set")
    kind = present[0] if present else PAIRWISE
    names = _SET_KEYS[kind]
    row.items("conversation_input")
    messages = reader.turns("conversation_input", "user")
    extras = [without_keys(turn, ROLE_AND_CONTENT) or {} for turn in row.value["conversation_input"]]
    row_id = row.value.get(names.uid)
    path = row.text("category_path") if "category_path" in row.value else None
    subset, category = split_path(path or "")
    answers = _answers(row, kind)
    responses = tuple(_response(row, place, value) for place, value in answers)
    return Case(
        prompt=reader.prompt(
            messages,
            name=None if row_id is None else f"{kind}/{row_id}",
            language=language_of(extras),
            subset=subset,
            category=category,
        ),
        responses=responses,
        ratings=tuple(
            Rating(response=rated.id, rater=UNKNOWN_JUDGE, kind="llm", dimension=DIMENSION, value=float(value["score"]))
            for rated, (_, value) in zip(responses, answers, strict=True)
            if _is_scored(value)
        ),
        ranking=((responses[0].id,), tuple(response.id for response in responses[1:])),
    )


def _answers(row: Row, kind: str) -> list[tuple[str, Any]]:
    """Return the answers, the better one first, each with its place in the row."""
    names = _SET_KEYS[kind]
    better = (names.better, row.value.get(names.better))
    if kind != BEST_OF_N:
        return [better, (names.worse, row.value.get(names.worse))]
    worse = row.items(names.worse)
    if not worse:
        raise RecordError("no worse answer", where=row.at(names.worse), allowed="one or more")
    return [better, *((f"{names.worse}[{index}]", value) for index, value in enumerate(worse))]


def _response(row: Row, path: str, value: Any) -> Response:
    is_answer = isinstance(value, dict) and isinstance(value.get("answer"), str)
    if not is_answer or not isinstance(value.get("llm_name"), str | None):
        where = row.at(path)
        raise RecordError("no answer with its text", where=where, allowed='{"llm_name": a text, "answer": a text}')
    known = {key for key in ANSWER_KEYS if value.get(key) is not None and (key != "score" or _is_scored(value))}
    meta = {key: entry for key, entry in value.items() if key not in known}
    return Response(id=path, text=value["answer"], author=value.get("llm_name"), meta=meta or None)


def _is_scored(value: JsonObject) -> bool:
    return is_number(value.get("score"))


def language_of(extras: list[JsonObject]) -> str | None:
    """Return the language that every turn names, as its code; null where they differ or name an unknown one or none."""
    names = [extra.get("language") for extra in extras]
    name = names[0] if names else None
    if not isinstance(name, str) or any(other != name for other in names):
        return None
    return _LANGUAGES.get(name) or (name if LANGUAGE_CODE.fullmatch(name) else None)


def split_path(path: str) -> tuple[str | None, tuple[str, ...]]:
    """Return the subset and the category of a path."""
    subset, *category = path.split("/")
    return subset or None, tuple(category)


_RMB = RowFormat(
    kind=KIND,
    keys=KEYS,
    supports=carrying(
        "system turns", "earlier turns", "language", "category", "subset", "prompt meta", "authors", "response meta",
        "rankings", "ties", "more than two responses", "ratings",
    ),
    matches=lambda row: (
        "conversation_input" in row
        and any({names.better, names.worse} <= row.keys() for names in _SET_KEYS.values())
    ),
    parse=_parse,
)  # fmt: skip

KINDS = {"rmb": without_settings(_RMB, __doc__)}
