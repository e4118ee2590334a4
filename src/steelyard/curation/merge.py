"""Join cases: two cases with one key, and rows of one better and one worse answer that share a prompt.

The union of two cases joins their evidence; contradictions are refused or counted, never hidden. A prompt with all its
answers in one case trains and scores several times faster than its rows: each answer is read once, the prompt once for
all of them. Facts of single rows stay in the case's ``meta`` under ``rows``, so that the rows come back. `only_kind`
keeps the evidence of one kind, for conversions of a part of a file.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec
import numpy as np
from msgspec.structs import replace

from steelyard.core.checks import UniqueIds
from steelyard.core.errors import RecordError
from steelyard.core.languages import language_key
from steelyard.core.remedies import Advice, Command, Remedy
from steelyard.core.types import Case, JsonObject, Judgment, Kind, Meta, Pair, Prompt, Ranking, Rating, Record, Response
from steelyard.ranking.judgment_table import Edges
from steelyard.ranking.pairs import listed_pairs, pairs_of
from steelyard.ranking.tiers import ranking_of, tiers_of

Evidence = TypeVar("Evidence", Judgment, Rating)
Value = TypeVar("Value", Prompt, Response)
_USUAL_REGION = {"zh": "CN", "zh-Hant": "TW"}
"""The region that says no more than the script."""


def merge_key(case: Case) -> tuple[str, str | None]:
    """Return the id of the prompt and the identity of its language: one for ``zh``, ``zh-CN`` and ``Chinese``.

    Regions stay apart (pt-BR and pt-PT), but those that say no more than the script of Chinese.
    """
    code = case.prompt.language
    if not code:
        return case.prompt.id, code
    identity = language_key(code)
    first, *subtags = code.replace("_", "-").strip().split("-")
    regions = [part.upper() for part in subtags if len(part) == 2 and len(first) < 4 and part.isalpha()]
    region = next((part for part in regions if _USUAL_REGION.get(identity) != part), None)
    return case.prompt.id, identity if region is None else f"{identity}-{region}"


def union(first: Case, second: Case, warnings: Counter[str]) -> Case:
    """Return both cases in one: the responses, judgments, ratings and pairs of either, in order of first appearance.

    Evidence of one judge with one id is one; of two judges, the second gets another id. Evidence without an id is one
    where its content is equal, repeated as often as in the case with more repeats. A field with a value in one case
    only (a category, an author) takes that value. Rankings that differ leave none. Of evidence, authors, meta values
    and spellings of a language that differ, the first stay. All differences are counted in ``warnings``. Raises
    RecordError when the prompts, or the texts of one response id, differ.
    """
    warnings["languages in another spelling"] += first.prompt.language != second.prompt.language
    prompt = _prompt(first.prompt, second.prompt, warnings)
    return msgspec.structs.replace(
        first,
        prompt=prompt,
        responses=_responses(first, second, warnings),
        judgments=_evidence(first.judgments, second.judgments, "judgments of one id that differ", warnings),
        ratings=_evidence(first.ratings, second.ratings, "ratings of one id that differ", warnings),
        ranking=_united_ranking(first, second, warnings),
        pairs=_pairs(first, second, warnings),
        meta=_meta(first.meta, second.meta, warnings) or {},
    )


def _prompt(first: Prompt, second: Prompt, warnings: Counter[str]) -> Prompt:
    if first.messages != second.messages:
        has_sources = first.source and second.source and first.source != second.source
        do = Advice("say ", Remedy("ids", "by_source"), " if each source has ids of its own") if has_sources else None
        raise RecordError(f"prompt {first.id!r} has two different texts", allowed="one text for one key", do=do)
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
    """Return the union; where values differ the first stays, which is counted in ``warnings``."""
    if first is None or second is None:
        return second if first is None else first
    differing = sum(second[key] != value for key, value in first.items() if key in second)
    if differing:
        warnings["meta values that differ"] += differing
    return {**first, **{key: value for key, value in second.items() if key not in first}}


def _evidence(
    first: Sequence[Evidence], second: Sequence[Evidence], differing: str, warnings: Counter[str]
) -> tuple[Evidence, ...]:
    by_id = {(item.id, _author(item)): item for item in first if item.id is not None}
    ids = UniqueIds()
    ids.take_all(dict.fromkeys(item.id for item in (*first, *second) if item.id is not None))
    taken = {item.id for item in first}
    # An id of one judge that another one has, too, was renamed in an earlier union.
    renamed = {_content(replace(item, id=None)) for item in first if item.id is not None}
    # A multiset: two equal judgments without ids are two judgments.
    repeats = Counter(_content(item) for item in first if item.id is None)
    added: list[Evidence] = []
    for item in second:
        if item.id is not None:
            known = by_id.get((item.id, _author(item)))
            if known is not None:
                warnings[differing] += known != item
            elif item.id not in taken:
                added.append(item)
            elif _content(replace(item, id=None)) not in renamed:
                added.append(replace(item, id=ids.take(item.id)))
        elif repeats[_content(item)] > 0:
            repeats[_content(item)] -= 1
        else:
            added.append(item)
    return (*first, *added)


def _author(item: Judgment | Rating) -> tuple[str, Kind]:
    return (item.judge if isinstance(item, Judgment) else item.rater), item.kind


def _content(item: Judgment | Rating) -> bytes:
    """Return the item as bytes that are equal exactly for equal items: their ``meta`` cannot be hashed."""
    return msgspec.json.encode(item, order="deterministic")


def _united_ranking(first: Case, second: Case, warnings: Counter[str]) -> Ranking | None:
    if first.ranking is None or second.ranking is None:
        return first.ranking if second.ranking is None else second.ranking
    if _is_same_ranking(first, second):
        return first.ranking
    warnings["rankings that differ"] += 1
    return None


def _is_same_ranking(first: Case, second: Case) -> bool:
    # The order of ids within a tier carries no information.
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
    """Return the listed pairs, or those of the ranking where there are none, which is counted in ``warnings``."""
    if case.pairs is not None:
        return case.pairs
    warnings["pairs of a ranking, listed beside curated pairs"] += len(pairs_of(case, "tiers"))
    warnings["cases with judgments but no pairs, beside curated pairs"] += bool(case.judgments) and not case.ranking
    return listed_pairs(case, pairs_of(case, "tiers"))


ROWS = "rows"
MOST_ROWS = 256
"""The largest number of rows in one case: a prompt with more becomes several cases."""
_canonical = msgspec.json.Encoder(order="deterministic")
_DIGEST_BYTES = 16


def prompt_key(case: Case) -> bytes | None:
    """Return a digest of a pair row's prompt without id and meta; null for other cases and for empty prompts."""
    has_text = any(message.content.strip() for message in case.prompt.messages)
    if not has_text or not _is_pair_row(case):
        return None
    prompt = _canonical.encode(replace(case.prompt, id="", meta=None))
    return hashlib.blake2b(prompt, digest_size=_DIGEST_BYTES).digest()


def join_rows(rows: Sequence[Case], warnings: Counter[str]) -> Case:
    """Join pair rows of one prompt: equal responses become one, and the ranking is that of all rows together.

    The ranking is CHEEMS, algorithm 1, so that a > b and b > c order a above c. The pairs are those of the rows, listed
    unless they are all pairs of the ranking. Rows in a cycle with others are counted in ``warnings`` and stay listed.
    The case has the id of the first row.
    """
    names, responses = _joined_responses(rows)
    ends = [
        (name[row.ranking[0][0]], name[row.ranking[1][0]]) for name, row in zip(names, rows, strict=True) if row.ranking
    ]
    ids = [response.id for response in responses]
    place = {name: number for number, name in enumerate(ids)}
    better, worse = (np.array([place[end[side]] for end in ends], np.int64) for side in (0, 1))
    edges = Edges(np.zeros(len(ends), np.int64), better, worse)
    ranking = ranking_of(ids, tiers_of(edges, np.array([len(ids)])).tolist()[0])
    tier = {name: number for number, names_of_tier in enumerate(ranking or ()) for name in names_of_tier}
    warnings["rows in a cycle with others of their prompt"] += sum(
        tier[better] == tier[worse] for better, worse in ends
    )
    ratings = [
        tuple(replace(rating, response=name[rating.response]) for rating in row.ratings)
        for name, row in zip(names, rows, strict=True)
    ]
    distinct_ratings = {_canonical.encode(rating): rating for row_ratings in ratings for rating in row_ratings}
    joined = Case(
        prompt=replace(rows[0].prompt, meta=_shared([row.prompt.meta or {} for row in rows]) or None),
        responses=responses,
        ratings=tuple(distinct_ratings.values()),
        ranking=ranking,
        meta=rows[0].meta if all(row.meta == rows[0].meta for row in rows) else {},
    )
    has_values = any(row.pairs for row in rows)
    across = {(responses[pair.better].id, responses[pair.worse].id) for pair in pairs_of(joined, "tiers")}
    if has_values or len(ends) != len(across) or set(ends) != across:
        pairs = tuple(
            replace(row.pairs[0] if row.pairs else Pair(better=better, worse=worse), better=better, worse=worse)
            for row, (better, worse) in zip(rows, ends, strict=True)
        )
        joined = replace(joined, pairs=pairs)
    entries = [_entry(*fields, joined) for fields in zip(rows, ends, ratings, strict=True)]
    return replace(joined, meta={**joined.meta, ROWS: entries}) if any(len(entry) > 2 for entry in entries) else joined


def split_rows(case: Case) -> Iterator[Case]:
    """Yield the rows that a case was joined from, those whose pair is still in it; pairs of no row follow together.

    A case without ``rows`` in its ``meta`` is yielded as it is.
    """
    entries = _entries(case)
    if entries is None:
        yield case
        return
    by_id = {response.id: response for response in case.responses}
    listed = listed_pairs(case, pairs_of(case)) if case.pairs is None else case.pairs
    left = list(listed)
    whole = replace(case, meta={key: value for key, value in case.meta.items() if key != ROWS})
    for entry in entries:
        ends = (entry["better"], entry["worse"])
        pair = next((pair for pair in left if (pair.better, pair.worse) == ends), None)
        if pair is not None:
            left.remove(pair)
            yield _row(whole, entry, pair, by_id)
    if left or not listed:
        yield replace(whole, pairs=tuple(left)) if len(left) < len(listed) else whole


def num_rows_apart(cases: Sequence[Case]) -> tuple[int, int]:
    """Count the pair rows that share a prompt with another row, and their prompts."""
    sizes = Counter(filter(None, map(prompt_key, cases)))
    shared = [number for number in sizes.values() if number > 1]
    return sum(shared), len(shared)


def only_kind(case: Case, kind: Kind, warnings: Counter[str]) -> Case:
    """Return the case with the judgments and ratings of the kind; its prompt and all of its responses stay.

    A ranking or a listed pair does not name its evidence. Both stay only where the case has evidence and all of it is
    of the kind; otherwise they may rest on evidence that is left out. Everything left out, and every case left without
    evidence, is counted in ``warnings``.
    """
    judgments = tuple(judgment for judgment in case.judgments if judgment.kind == kind)
    ratings = tuple(rating for rating in case.ratings if rating.kind == kind)
    num_other = len(case.judgments) - len(judgments) + len(case.ratings) - len(ratings)
    is_of_kind = bool(judgments or ratings) and not num_other
    remaining = replace(
        case,
        judgments=judgments,
        ratings=ratings,
        ranking=case.ranking if is_of_kind else None,
        pairs=case.pairs if is_of_kind else None,
    )
    facts = {
        "judgments of other kinds, left out": len(case.judgments) - len(judgments),
        "ratings of other kinds, left out": len(case.ratings) - len(ratings),
        "rankings on other or unsaid evidence, left out": case.ranking is not None and not is_of_kind,
        "listed pairs on other or unsaid evidence, left out": 0 if is_of_kind else len(case.pairs or ()),
        "cases without evidence of the kind": not judgments and not ratings,
    }
    for name, number in facts.items():
        warnings[name] += int(number)
    return remaining


def _is_pair_row(case: Case) -> bool:
    if (
        len(case.responses) != 2
        or case.judgments
        or case.ranking is None
        or len(case.ranking) != 2
        or ROWS in case.meta
    ):
        return False
    first, second = (_body(response) for response in case.responses)
    better, worse = case.ranking[0][0], case.ranking[1][0]
    is_listed = case.pairs is None or [(pair.better, pair.worse) for pair in case.pairs] == [(better, worse)]
    return first != second and is_listed


def _body(response: Response) -> bytes:
    """Return the response without its id as bytes, by which equal responses of two rows are found."""
    return _canonical.encode(replace(response, id=""))


def _joined_responses(rows: Sequence[Case]) -> tuple[list[dict[str, str]], tuple[Response, ...]]:
    """Return the new id of each response of each row, and all different responses."""
    ids, known = UniqueIds(), dict[bytes, Response]()
    names: list[dict[str, str]] = []
    for row in rows:
        name: dict[str, str] = {}
        for response in row.responses:
            body = _body(response)
            if body not in known:
                known[body] = replace(response, id=ids.take(response.id))
            name[response.id] = known[body].id
        names.append(name)
    return names, tuple(known.values())


def _shared(metas: Sequence[Meta]) -> Meta:
    """Return the entries that all have with equal values."""
    return {
        key: value for key, value in metas[0].items() if all(key in other and other[key] == value for other in metas)
    }


def _entry(row: Case, end: tuple[str, str], ratings: tuple[Rating, ...], joined: Case) -> JsonObject:
    """Return the two ends of a row and the facts of it that the joined case does not hold."""
    entry: JsonObject = {"better": end[0], "worse": end[1]}
    shared = joined.prompt.meta or {}
    meta = {key: value for key, value in (row.prompt.meta or {}).items() if key not in shared}
    if meta:
        entry["meta"] = meta
    if row.meta != joined.meta:
        entry["case"] = row.meta
    if ratings != tuple(rating for rating in joined.ratings if rating.response in end):
        entry["ratings"] = msgspec.to_builtins(ratings)
    if joined.pairs is not None and row.pairs is None and any(pair.margin is not None for pair in joined.pairs):
        entry["listed"] = False
    return entry


def _row(whole: Case, entry: JsonObject, pair: Pair, by_id: dict[str, Response]) -> Case:
    """Return the row of an entry; ``whole`` is the joined case without ``rows``."""
    ends = (pair.better, pair.worse)
    meta = {**(whole.prompt.meta or {}), **entry.get("meta", {})}
    ratings = tuple(rating for rating in whole.ratings if rating.response in ends)
    is_plain = entry.get("listed") is False or (pair.margin is None and pair.weight is None)
    return replace(
        whole,
        prompt=replace(whole.prompt, meta=meta or None),
        responses=(by_id[pair.better], by_id[pair.worse]),
        ratings=_stored_ratings(entry, whole) if "ratings" in entry else ratings,
        ranking=((pair.better,), (pair.worse,)),
        pairs=None if is_plain else (pair,),
        meta=entry.get("case", whole.meta),
    )


def _stored_ratings(entry: JsonObject, case: Case) -> tuple[Rating, ...]:
    try:
        return msgspec.convert(entry["ratings"], tuple[Rating, ...])
    except msgspec.ValidationError as error:
        problem = f"meta.{ROWS} of prompt {case.prompt.id!r} has invalid ratings ({error})"
        raise RecordError(problem, allowed=Advice("what `", Command("convert"), "` wrote there")) from error


def _entries(case: Case) -> list[JsonObject] | None:
    """Return the entries that `join_rows` wrote; null where ``meta`` holds nothing of that shape."""
    entries = case.meta.get(ROWS)
    is_record = isinstance(entries, list) and all(
        isinstance(entry, dict)
        and {"better", "worse"} <= entry.keys()
        and isinstance(entry.get("meta", {}), dict)
        and isinstance(entry.get("case", {}), dict)
        for entry in entries
    )
    return entries if is_record else None


class MergeSummary(Record, frozen=True):
    """The number of cases after the merge."""

    num_cases: int
