"""The union of two cases with one key: evidence is joined; contradictions are refused or counted, never hidden."""

from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

import msgspec

from steelyard.core.errors import RecordError
from steelyard.core.types import Case, Judgment, Meta, Pair, Prompt, Ranking, Rating, Response
from steelyard.ranking.pairs import listed_pairs, pairs_of

Evidence = TypeVar("Evidence", Judgment, Rating)
Value = TypeVar("Value", Prompt, Response)


def union(first: Case, second: Case, warnings: Counter[str]) -> Case:
    """Return both cases in one: the responses, judgments, ratings and pairs of either, in order of first appearance.

    Evidence with one id is one; evidence without an id is one where its content is equal, repeated as often as in the
    case with more repeats. A field with a value in one case only (a category, an author) takes that value. Rankings
    that differ leave none. Of evidence, authors and meta values that differ, the first stay. All differences are
    counted in ``warnings``. Raises RecordError when the prompts, or the texts of one response id, differ.
    """
    prompt = _prompt(first.prompt, second.prompt, warnings)
    return msgspec.structs.replace(
        first,
        prompt=prompt,
        responses=_responses(first, second, warnings),
        judgments=_evidence(first.judgments, second.judgments, "judgments of one id that differ", warnings),
        ratings=_evidence(first.ratings, second.ratings, "ratings of one id that differ", warnings),
        ranking=_ranking(first, second, warnings),
        pairs=_pairs(first, second, warnings),
        meta=_meta(first.meta, second.meta, warnings) or {},
    )


def _prompt(first: Prompt, second: Prompt, warnings: Counter[str]) -> Prompt:
    if first.messages != second.messages:
        raise RecordError(f"prompt {first.id!r} has two different texts", allowed="one text for one key")
    for field in ("category", "source", "subset", "reference"):
        value, other = getattr(first, field), getattr(second, field)
        if value and other and value != other:
            raise RecordError(
                f"prompt {first.id!r} has two different values of {field}: {value!r} and {other!r}",
                allowed="one prompt for one key",
            )
    return _filled(first, second, ("category", "source", "subset", "reference"), warnings)


def _responses(first: Case, second: Case, warnings: Counter[str]) -> tuple[Response, ...]:
    by_id = {response.id: response for response in first.responses}
    for response in second.responses:
        known = by_id.setdefault(response.id, response)
        if (known.text, known.messages) != (response.text, response.messages):
            raise RecordError(
                f"response {response.id!r} of prompt {first.prompt.id!r} has two different texts",
                allowed="one text for one response id",
            )
        if known.author and response.author and known.author != response.author:
            warnings["authors that differ"] += 1
        by_id[response.id] = _filled(known, response, ("author",), warnings)
    return tuple(by_id.values())


def _filled(first: Value, second: Value, fields: Sequence[str], warnings: Counter[str]) -> Value:
    """Return the first value, with the second's fields where it has none, and the meta of both."""
    filled = {field: getattr(first, field) or getattr(second, field) for field in fields}
    return msgspec.structs.replace(first, **filled, meta=_meta(first.meta, second.meta, warnings))


def _meta(first: Meta | None, second: Meta | None, warnings: Counter[str]) -> Meta | None:
    if first is None or second is None:
        return second if first is None else first
    differing = sum(second[key] != value for key, value in first.items() if key in second)
    if differing:
        warnings["meta values that differ"] += differing
    return {**first, **{key: value for key, value in second.items() if key not in first}}


def _evidence(
    first: Sequence[Evidence], second: Sequence[Evidence], differing: str, warnings: Counter[str]
) -> tuple[Evidence, ...]:
    by_id = {item.id: item for item in first if item.id is not None}
    repeats = Counter(_content(item) for item in first if item.id is None)
    added: list[Evidence] = []
    for item in second:
        if item.id is not None:
            if item.id not in by_id:
                added.append(item)
            elif by_id[item.id] != item:
                warnings[differing] += 1
        elif repeats[_content(item)] > 0:
            repeats[_content(item)] -= 1
        else:
            added.append(item)
    return (*first, *added)


def _content(item: Judgment | Rating) -> bytes:
    return msgspec.json.encode(item, order="deterministic")


def _ranking(first: Case, second: Case, warnings: Counter[str]) -> Ranking | None:
    if first.ranking is None or second.ranking is None:
        return first.ranking if second.ranking is None else second.ranking
    if _is_same_ranking(first, second):
        return first.ranking
    warnings["rankings that differ"] += 1
    return None


def _is_same_ranking(first: Case, second: Case) -> bool:
    tiers, others = ([set(tier) for tier in case.ranking or ()] for case in (first, second))
    return tiers == others


def _pairs(first: Case, second: Case, warnings: Counter[str]) -> tuple[Pair, ...] | None:
    """Return the pairs of both cases; of a case without listed pairs, those of its ranking.

    Where both have one ranking, the listed pairs are those that curation kept of it, and no pair is added.
    """
    if (first.pairs is None or second.pairs is None) and _is_same_ranking(first, second):
        return second.pairs if first.pairs is None else first.pairs
    if first.pairs is None and second.pairs is None:
        return None
    both = tuple(dict.fromkeys((*_listed(first, warnings), *_listed(second, warnings))))
    ends = {(pair.better, pair.worse) for pair in both}
    warnings["pairs listed both ways"] += sum((worse, better) in ends for better, worse in ends) // 2
    return both


def _listed(case: Case, warnings: Counter[str]) -> tuple[Pair, ...]:
    if case.pairs is not None:
        return case.pairs
    warnings["pairs of a ranking, listed beside curated pairs"] += len(pairs_of(case, "tiers"))
    warnings["cases with judgments but no pairs, beside curated pairs"] += bool(case.judgments) and not case.ranking
    return listed_pairs(case, pairs_of(case, "tiers"))
