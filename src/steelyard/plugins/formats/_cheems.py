"""Writing cases as CheemsBench rows, and the words that reading and writing share."""

from collections import Counter, defaultdict
from typing import Any

from steelyard.core.types import Case, Judgment, Ranking, Response, Verdict
from steelyard.plugins.formats._fields import as_turns, form_of, with_meta
from steelyard.plugins.formats._pairwise import answer_text, system_text

KIND = "cheems"
VERDICTS: dict[str, Verdict] = {
    **dict.fromkeys(("1", "g"), "left"),
    **dict.fromkeys(("2", "-1", "b"), "right"),
    **dict.fromkeys(("0", "s", "same", "tie"), "tie"),
}  # fmt: skip
PREFERENCES = {"left": "1", "right": "2", "tie": "0"}
ANNOTATION_KEYS = ("answer1", "answer2", "preference")
KEYS = ("input", "prompt", "category", "responses", "annotations", "rank", "sys_prompt", "id")


def tiers_of(rank: dict[str, float]) -> Ranking:
    """The ids by their number, smallest first; equal numbers are one tier."""
    tiers: dict[float, list[str]] = defaultdict(list)
    for name, place in rank.items():
        tiers[place].append(name)
    return tuple(tuple(tiers[place]) for place in sorted(tiers))


def rank_of(ranking: Ranking) -> dict[str, int]:
    """The number of each id's tier, from 1."""
    return {name: number for number, tier in enumerate(ranking, 1) for name in tier}


def cheems_row(case: Case, lost: Counter[str]) -> dict[str, Any]:
    """The case as a row with every key; what the row cannot say is counted."""
    prompt, form = case.prompt, form_of(case, KIND)
    system = system_text(prompt.messages, lost)
    turns = [turn for turn in prompt.messages if turn.role != "system"]
    is_plain = len(turns) == 1 and turns[0].role == "user"
    rank, kept = rank_of(case.ranking or ()), form.get("rank")
    is_one_name = form.get("category", False) and len(prompt.category) == 1
    row = {
        "id": prompt.id,
        "input": turns[0].content if is_plain else as_turns(turns),
        "category": prompt.category[0] if is_one_name else list(prompt.category),
        "responses": [_written(response, lost) for response in case.responses],
        "annotations": [_annotation(judgment) for judgment in case.judgments if _is_written(judgment, lost)],
        "rank": kept if kept and tiers_of(kept) == case.ranking else rank,
        "sys_prompt": system or "",
    }
    return with_meta(row, case, KEYS, lost)


def _written(response: Response, lost: Counter[str]) -> dict[str, Any]:
    text, meta = answer_text(response, lost), response.meta or {}
    # The row's own keys stand last: another format's meta must not replace them.
    own = {"id": response.id, "content": text}
    author = {"model": response.author} if response.author is not None else {}
    clashing = len(meta.keys() & {*own, *author})
    if clashing:
        lost["response meta under the format's own names"] += clashing
    return {**meta, **author, **own}


def _is_written(judgment: Judgment, lost: Counter[str]) -> bool:
    if judgment.verdict == "none":
        lost["judgments without a verdict"] += 1
        return False
    return True


def _annotation(judgment: Judgment) -> list[Any] | dict[str, Any]:
    """A triple; where the judgment says more, an object, which the published reader takes as well."""
    meta = judgment.meta or {}
    said = meta.get("preference")
    preference = said if VERDICTS.get(str(said)) == judgment.verdict else PREFERENCES[judgment.verdict]
    triple = [judgment.left, judgment.right, preference]
    if meta.keys() <= {"preference"}:
        return triple
    return meta | dict(zip(ANNOTATION_KEYS, triple, strict=True))
