"""RMB rows: a better and a worse answer, or the best answer with a list of worse ones, of a conversation.

Written from the data in the repository Zhou-Zoey/RMB-Reward-Model-Benchmark (``RMB_dataset``): the pairwise set has
``pair_uid``, ``chosen`` and ``reject``, the best-of-N set ``bon_uid``, ``bon_best`` and ``loser_list``; an answer is
``{llm_name, answer}``, in the pairwise set with a ``score``. ``category_path`` begins with the name of the set, which
becomes the subset; the rest is the category. Ids of the two sets overlap, so a case's id is ``SET/UID``. A score is a
rating by a language model that the rows do not name (of the dimension ``overall``).
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec.structs import replace

from steelyard.core.errors import RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.protocols import Row, is_number
from steelyard.core.types import UNKNOWN_JUDGE, Case, JsonObject, Rating, Response
from steelyard.curation.format_support import carrying, count_lost
from steelyard.plugins.formats._languages import LANGUAGE_CODE
from steelyard.plugins.formats._pairs import sides_of
from steelyard.plugins.formats._rows import (
    CaseReader,
    RowFormat,
    other_meta,
    present,
    with_each,
    without_keys,
)
from steelyard.plugins.formats._turns import ROLE_AND_CONTENT, answer_text, as_turns

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
_NAMES_OF_LANGUAGES = {code: name for name, code in _LANGUAGES.items()}


def _parse(reader: CaseReader) -> Case:
    row = reader.row
    kind = _set_of(row)
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
        meta=reader.meta(
            uid=row_id,
            turns=extras if any(extras) else None,
            path=path,
            set=kind,
            absent=row.absent((names.uid, "category_path")),
        ),
    )


def _set_of(row: Row) -> str:
    present = [kind for kind, names in _SET_KEYS.items() if any(key in row.value for key in names)]
    if len(present) > 1:
        raise RecordError("keys of both sets in one row", where=row.place, allowed="of the pairwise or best-of-N set")
    return present[0] if present else PAIRWISE


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


def _rows(case: Case, form: JsonObject, dropped: Counter[str]) -> Iterator[JsonObject]:
    """Yield a row of the set that it was read from; else of the pairwise set for a single worse answer.

    Cases without one answer above the others are counted and not written.
    """
    count_lost(with_each(case, rating=_without_unnamed_rater), dropped, _RMB.supports)
    sides = sides_of(case, dropped, num_better=1)
    if not sides.better:
        return
    prompt = case.prompt
    kind = PAIRWISE if len(sides.worse) == 1 and form.get("set") != BEST_OF_N else BEST_OF_N
    names, scores = _SET_KEYS[kind], _scores(case, dropped)
    written = [_answer(response, scores, dropped) for side in sides for response in side]
    languages = form.get("turns") or [{} for _ in prompt.messages]
    if len(languages) != len(prompt.messages) or language_of(languages) != prompt.language:
        name = _NAMES_OF_LANGUAGES.get(prompt.language or "", prompt.language)
        languages = [{"language": name} if name else {} for _ in prompt.messages]
    turns = zip(as_turns(prompt.messages), languages, strict=True)
    row = {
        names.uid: form.get("uid", prompt.id),
        "conversation_input": [{**extra, **turn} for turn, extra in turns],
        names.better: written[0],
        names.worse: written[1] if kind == PAIRWISE else written[1:],
        "category_path": _written_path(case, kind, form.get("path"), dropped),
    }
    if "category_path" in form.get("absent", ()) and not (prompt.category or prompt.subset):
        del row["category_path"]
    yield row


def _without_unnamed_rater(rating: Rating) -> Rating:
    """Return the rating without the rater that a bare score implies: only other raters are dropped."""
    return replace(rating, kind="human") if (rating.rater, rating.kind) == (UNKNOWN_JUDGE, "llm") else rating


def split_path(path: str) -> tuple[str | None, tuple[str, ...]]:
    """Return the subset and the category of a path."""
    subset, *category = path.split("/")
    return subset or None, tuple(category)


def _written_path(case: Case, kind: str, read: str | None, dropped: Counter[str]) -> str:
    wanted = (case.prompt.subset, case.prompt.category)
    if read is not None and split_path(read) == wanted:
        return read
    path = "/".join([case.prompt.subset or kind, *case.prompt.category])
    if any("/" in name for name in (case.prompt.subset or "", *case.prompt.category)):
        dropped["categories with a slash in them"] += 1
    return path


def _scores(case: Case, dropped: Counter[str]) -> dict[str, float]:
    scores: dict[str, float] = {}
    for rating in case.ratings:
        if rating.dimension == DIMENSION and rating.response not in scores:
            scores[rating.response] = rating.value
        else:
            dropped["ratings of other dimensions, or beyond one per response"] += 1
    return scores


def _answer(response: Response, scores: dict[str, float], dropped: Counter[str]) -> JsonObject:
    text, score = answer_text(response, dropped), scores.get(response.id)
    fields = present({"llm_name": response.author, "answer": text, "score": score})
    return other_meta(response.meta, fields, dropped) | fields


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
    rows_of=_rows,
    made_keys=tuple(names.uid for names in _SET_KEYS.values()),
)  # fmt: skip

KINDS = {"rmb": without_settings(_RMB, __doc__)}
