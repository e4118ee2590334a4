"""Join rows of one judgment, rating or answer each into one case per prompt.

Several people's votes on one pair are judgments of one case, and equal answers of one author are one response. What a
row holds beside its evidence (other cells, an id of its own) stays in the ``meta`` of that evidence: it survives a
merge with other files.
"""

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from steelyard.core.checks import UniqueIds, content_id
from steelyard.core.languages import language_key
from steelyard.core.types import Case, JsonObject, Judgment, Message, Meta, Ranking, Rating, Response

ROW = "row"
"""The entry of an evidence's ``meta`` with the other cells of its row."""
ROW_ID = "row_id"
"""The entry of an evidence's ``meta`` with the id of its row, where that is not the prompt's."""
_canonical = msgspec.json.Encoder(order="deterministic")


def text_id(messages: Sequence[Message], category: Sequence[str] = ()) -> str:
    """Return an id for a prompt by its text: the rows of several people about one prompt have one id, in any file."""
    content: JsonObject = {"messages": [[message.role, message.content] for message in messages]}
    return content_id(content | ({"category": list(category)} if category else {}))


def evidence_key(case: Case, *, by_id: bool) -> bytes | None:
    """Return a digest of a row's prompt without meta (and without id, unless ``by_id``); null for other cases."""
    has_text = any(message.content.strip() for message in case.prompt.messages)
    if not has_text or case.ranking is not None or case.pairs is not None or len(case.judgments) > 1:
        return None
    language = language_key(case.prompt.language) if case.prompt.language else None
    prompt = replace(case.prompt, id=case.prompt.id if by_id else "", meta=None, language=language)
    return hashlib.blake2b(_canonical.encode(prompt), digest_size=16).digest()


def join_evidence(rows: Sequence[Case], warnings: Counter[str]) -> Case:
    """Join rows of one prompt, also a single one, so that files merge. Rated answers are ranked by their means."""
    are_lists = any(len(row.responses) > 1 and not row.judgments for row in rows)
    if are_lists and len(rows) == 1:
        return rows[0]
    metas = [row.prompt.meta or {} for row in rows]
    # The cells of a single row are not known to belong to its prompt.
    shared = {
        key: value for key, value in metas[0].items() if all(key in meta and meta[key] == value for meta in metas[1:])
    }
    shared = shared if len(rows) > 1 else {}
    are_answers = all(len(row.responses) == 1 and not row.judgments for row in rows)
    names, responses = _joined_responses(rows)
    num_rows = Counter(name for row_names in names for name in row_names.values()) if are_answers else Counter[str]()
    warnings["rows of an answer beyond its first"] += num_rows.total() - len(num_rows)
    judgments: list[Judgment] = []
    ratings: list[Rating] = []
    for row, name in zip(rows, names, strict=True):
        facts = _facts(row, rows[0].prompt.id, shared)
        for judgment in row.judgments:
            shown = None if judgment.shown is None else tuple(name[end] for end in judgment.shown)
            ends = {"left": name[judgment.left], "right": name[judgment.right], "shown": shown}
            judgments.append(replace(judgment, **ends, meta=_united(judgment.meta, facts)))
        ids = list(name.values())
        # The cells of an answer with one row belong to the answer, those of other rows to the rating.
        in_ratings = bool(row.ratings) and num_rows[ids[0]] > 1
        for rating in row.ratings:
            meta = _united(rating.meta, facts if in_ratings else {})
            ratings.append(replace(rating, response=name[rating.response], meta=meta))
        if are_lists:
            warnings["cells of repeated answers, left out"] += ROW in facts
        elif facts and not row.judgments and not in_ratings:
            known = responses[ids[0]]
            warnings["cells of repeated answers, left out"] += bool({ROW, ROW_ID} & (known.meta or {}).keys())
            responses[ids[0]] = replace(known, meta=_united(facts, known.meta or {}))
    return Case(
        prompt=replace(rows[0].prompt, meta=shared or None),
        responses=tuple(responses.values()),
        judgments=tuple(judgments),
        ratings=tuple(ratings),
        ranking=ranking_by_mean(ratings) if are_answers else None,
        meta=rows[0].meta if are_lists else {},
    )


def ranking_by_mean(ratings: Sequence[Rating]) -> Ranking | None:
    """Return the answers by the mean of their ratings, highest first; null for fewer than two rated answers."""
    values: defaultdict[str, list[float]] = defaultdict(list)
    for rating in ratings:
        values[rating.response].append(rating.value)
    tiers: defaultdict[float, list[str]] = defaultdict(list)
    for name, numbers in values.items():
        tiers[math.fsum(numbers) / len(numbers)].append(name)
    return tuple(tuple(tiers[mean]) for mean in sorted(tiers, reverse=True)) if len(values) > 1 else None


def with_unique_ids(cases: Iterable[Case], warnings: Counter[str]) -> Iterator[Case]:
    """Yield the cases with ids that are unique within a language; a repeated one gets ``~2`` and is counted."""
    ids: defaultdict[str | None, UniqueIds] = defaultdict(UniqueIds)
    for case in cases:
        free = ids[case.prompt.language].take(case.prompt.id)
        warnings["repeated prompt ids"] += free != case.prompt.id
        yield case if free == case.prompt.id else replace(case, prompt=replace(case.prompt, id=free))


def _joined_responses(rows: Sequence[Case]) -> tuple[list[dict[str, str]], dict[str, Response]]:
    """Return the new id of each response of each row, and the responses that differ in text or author by their ids.

    Two equal responses of one row stay two.
    """
    ids = UniqueIds()
    known: defaultdict[bytes, list[str]] = defaultdict(list)
    responses: dict[str, Response] = {}
    names: list[dict[str, str]] = []
    for row in rows:
        used: Counter[bytes] = Counter()
        name: dict[str, str] = {}
        for response in row.responses:
            body = _canonical.encode([response.text, response.messages, response.author])
            if used[body] == len(known[body]):
                known[body].append(ids.take(response.id.partition("~")[0]))
                responses[known[body][-1]] = replace(response, id=known[body][-1])
            name[response.id] = known[body][used[body]]
            used[body] += 1
        names.append(name)
    return names, responses


def _facts(row: Case, prompt_id: str, shared: Meta) -> Meta:
    """Return what a row holds beside its evidence and its prompt."""
    cells = {key: value for key, value in (row.prompt.meta or {}).items() if key not in shared}
    own_id = {} if row.prompt.id == prompt_id else {ROW_ID: row.prompt.id}
    return ({ROW: cells} if cells else {}) | own_id


def _united(first: Meta | None, second: Meta) -> Meta | None:
    return {**(first or {}), **second} or None
