"""RMB's names for its two sets, and writing a case of two tiers as a row of one of them."""

import re
from collections import Counter
from typing import Any, NamedTuple

from msgspec.structs import replace

from steelyard.core.types import Case, Rating, Response
from steelyard.plugins.formats._fields import as_turns, form_of, with_meta
from steelyard.plugins.formats._pairwise import answer_text
from steelyard.plugins.formats._parts import UNKNOWN
from steelyard.plugins.formats._sides import Sides

KIND = "rmb"
DIMENSION = "overall"
ANSWER_KEYS = ("llm_name", "answer", "score")


class Names(NamedTuple):
    """What a set calls its ids, its better answer, and its worse one or ones."""

    uid: str
    better: str
    worse: str


PAIRWISE, BEST_OF_N = "Pairwise_set", "BoN_set"
NAMES = {PAIRWISE: Names("pair_uid", "chosen", "reject"), BEST_OF_N: Names("bon_uid", "bon_best", "loser_list")}
KEYS = ("conversation_input", "category_path", *NAMES[PAIRWISE], *NAMES[BEST_OF_N])
_LANGUAGES = {
    "Afrikaans": "af", "Arabic": "ar", "Chinese": "zh", "English": "en", "Esperanto": "eo", "Finnish": "fi",
    "French": "fr", "German": "de", "Hebrew": "he", "Hindi": "hi", "Hungarian": "hu", "Irish": "ga", "Italian": "it",
    "Japanese": "ja", "Korean": "ko", "Latin": "la", "Maori": "mi", "Persian": "fa", "Portuguese": "pt",
    "Russian": "ru", "Somali": "so", "Sotho": "st", "Spanish": "es", "Swahili": "sw", "Swedish": "sv", "Tagalog": "tl",
    "Tsonga": "ts", "Tswana": "tn", "Turkish": "tr", "Ukrainian": "uk", "Vietnamese": "vi", "Xhosa": "xh",
    "Yoruba": "yo",
}  # fmt: skip
_NAMES_OF_LANGUAGES = {code: name for name, code in _LANGUAGES.items()}
_CODE = re.compile(r"[a-z]{2,3}([-_][A-Za-z0-9]+)*")


def language_of(extras: list[dict[str, Any]]) -> str | None:
    """The language that every turn names, as its code; null where they differ, name none, or name an unknown one."""
    said = {extra.get("language") for extra in extras}
    (name,) = said if len(said) == 1 else (None,)
    if not isinstance(name, str):
        return None
    return _LANGUAGES.get(name) or (name if _CODE.fullmatch(name) else None)


def own_rating(response: str, score: float) -> Rating:
    """A score of the pairwise set: of an unnamed language model."""
    return Rating(response=response, rater=UNKNOWN, kind="llm", dimension=DIMENSION, value=float(score))


def without_own_raters(case: Case) -> Case:
    """The case without what a bare score says of its rater: what is left of raters is lost."""
    ratings = tuple(
        replace(rating, kind="human") if (rating.rater, rating.kind) == (UNKNOWN, "llm") else rating
        for rating in case.ratings
    )
    return replace(case, ratings=ratings)


def rmb_row(case: Case, sides: Sides, lost: Counter[str]) -> dict[str, Any]:
    """The case as a row of the set it was read from; else of the pairwise set where it has one worse answer."""
    prompt, form = case.prompt, form_of(case, KIND)
    fitting = PAIRWISE if len(sides.worse) == 1 else BEST_OF_N
    kind = fitting if form.get("set") != BEST_OF_N else BEST_OF_N
    names, scores = NAMES[kind], _scores(case, lost)
    written = [_answer(response, scores, lost) for side in sides for response in side]
    languages = form.get("turns") or [{} for _ in prompt.messages]
    if len(languages) != len(prompt.messages) or language_of(languages) != prompt.language:
        name = _NAMES_OF_LANGUAGES.get(prompt.language or "", prompt.language)
        languages = [{"language": name} if name else {} for _ in prompt.messages]
    turns = zip(as_turns(prompt.messages), languages, strict=True)
    row = {
        names.uid: form.get("uid", prompt.id),
        "conversation_input": [{**said, **turn} for turn, said in turns],
        names.better: written[0],
        names.worse: written[1] if kind == PAIRWISE else written[1:],
        "category_path": _path(case, kind, form.get("path"), lost),
    }
    silent = set(form.get("absent", ())) - ({"category_path"} if prompt.category or prompt.subset else set())
    return with_meta({key: value for key, value in row.items() if key not in silent}, case, KEYS, lost)


def split_path(path: str) -> tuple[str | None, tuple[str, ...]]:
    """The subset and the category of a path."""
    subset, *category = path.split("/")
    return subset or None, tuple(category)


def _path(case: Case, kind: str, read: str | None, lost: Counter[str]) -> str:
    wanted = (case.prompt.subset, case.prompt.category)
    if read is not None and split_path(read) == wanted:
        return read
    path = "/".join([case.prompt.subset or kind, *case.prompt.category])
    if any("/" in name for name in (case.prompt.subset or "", *case.prompt.category)):
        lost["categories with a slash in them"] += 1
    return path


def _scores(case: Case, lost: Counter[str]) -> dict[str, float]:
    scores: dict[str, float] = {}
    for rating in case.ratings:
        if rating.dimension == DIMENSION and rating.response not in scores:
            scores[rating.response] = rating.value
        else:
            lost["ratings of other dimensions, or beyond one a response"] += 1
    return scores


def _answer(response: Response, scores: dict[str, float], lost: Counter[str]) -> dict[str, Any]:
    meta = response.meta or {}
    own: dict[str, Any] = {"llm_name": response.author} if response.author is not None else {}
    own["answer"] = answer_text(response, lost)
    if response.id in scores:
        own["score"] = scores[response.id]
    clashing = len(meta.keys() & own.keys())
    if clashing:
        lost["response meta under the format's own names"] += clashing
    return {**meta, **own}
