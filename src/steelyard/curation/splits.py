"""Splits by prompt: related cases stay in one part, and every part has its share of every stratum.

Cases are related by one first user turn, by one prompt id, or by near-duplicates: of first turns or conversations.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from steelyard.core.languages import language_key
from steelyard.core.text import name_form, normal_form
from steelyard.core.types import Case, Record
from steelyard.prompts.near_duplicates import Links, conversation_text, near_duplicates
from steelyard.ranking.judgment_table import NO_LANGUAGE
from steelyard.statistics.groups import cell_of, common_cells

Stratum = Literal["category", "source", "language"]
STRATA: tuple[Stratum, ...] = ("category", "source", "language")


class RelatedCases(NamedTuple):
    """Groups of cases, by position, that stay in one part.

    ``num_near_duplicates``: the number of groups that near-duplicates joined to others.
    """

    groups: tuple[tuple[int, ...], ...]
    num_near_duplicates: int


def split_cases(
    cases: Sequence[Case],
    parts: Mapping[str, float],
    *,
    seed: int,
    related: RelatedCases | None = None,
    strata: Sequence[Stratum] = STRATA,
) -> tuple[str, ...]:
    """Return the part of each case; ``parts`` maps names to shares that sum to 1.

    Related cases (see `group_related`) stay in one part; ``related`` passes their groups if they are computed already.
    Shares hold within every stratum of first-tier category, source and language, or of those in ``strata``, as nearly
    as whole groups allow. The result depends on the seed and on the set of cases, not on their order.
    """
    by_stratum: dict[tuple[str, ...], list[Sequence[int]]] = defaultdict(list)
    for members in (related or group_related(cases)).groups:
        # A group across strata counts in the first of them by name, for any order of the cases.
        by_stratum[min(_stratum(cases[index], strata) for index in members)].append(members)
    overall: Counter[str] = Counter()
    chosen = [""] * len(cases)
    for stratum in sorted(by_stratum):
        here: Counter[str] = Counter()
        for members in sorted(by_stratum[stratum], key=lambda group: _shuffled_order(cases, group, seed)):
            part = _furthest_behind(parts, here, overall, len(members))
            here[part] += len(members)
            overall[part] += len(members)
            for index in members:
                chosen[index] = part
    return tuple(chosen)


def group_related(cases: Sequence[Case], near: float | None = None) -> RelatedCases:
    """Group cases with one first user turn (branches of a conversation) or one prompt id (several languages).

    ``near``, above 0 and at most 1, adds near-duplicates: first turns or whole conversations, both without system
    prompts, whose Jaccard similarity of character shingles is at least ``near``. The relation is transitive.
    """
    links = Links(len(cases))
    first: dict[tuple[str, str], int] = {}
    for index, case in enumerate(cases):
        for key in (("root", root_text(case)), ("id", case.prompt.id)):
            # Cases without a text have no other relation than their ids.
            if key[1]:
                links.join(index, first.setdefault(key, index))
    num_before = len(links.groups())
    if near is not None:
        places = {text: index for (kind, text), index in first.items() if kind == "root"}
        # Conversations may open with short turns that differ, such as a number, and go on alike for pages.
        for index, case in enumerate(cases):
            if text := normal_form(conversation_text(case.prompt)):
                places.setdefault(text, index)
        texts = list(places)
        for pair in near_duplicates(texts, near):
            links.join(places[texts[pair.first]], places[texts[pair.second]])
    groups = links.groups()
    return RelatedCases(tuple(map(tuple, groups)), num_before - len(groups))


def root_text(case: Case) -> str:
    """Return the conversation's first user turn in its normal form."""
    return normal_form(next((turn.content for turn in case.prompt.messages if turn.role == "user"), ""))


def _stratum(case: Case, strata: Sequence[Stratum]) -> tuple[str, ...]:
    prompt = case.prompt
    values = {
        "category": name_form(prompt.category[0]) if prompt.category else "",
        "source": prompt.source or "",
        "language": language_key(prompt.language or ""),
    }
    return tuple(values[name] for name in STRATA if name in strata)


def _shuffled_order(cases: Sequence[Case], group: Sequence[int], seed: int) -> str:
    """Return a sort key that shuffles groups by the seed and their smallest key, not by their place in a file."""
    name = min(f"{cases[index].prompt.id}\x1f{cases[index].prompt.language}" for index in group)
    return hashlib.sha256(f"{seed}\x1f{name}".encode()).hexdigest()


def _furthest_behind(parts: Mapping[str, float], here: Counter[str], overall: Counter[str], size: int) -> str:
    """Return the part that lags furthest behind its share of the stratum, then of the whole."""

    def lag(name: str, taken: Counter[str]) -> float:
        # Rounded, so that equal lags tie in spite of rounding errors; the first part by order then takes the group.
        return round(parts[name] * (taken.total() + size) - taken[name], 9)

    return max(parts, key=lambda name: (lag(name, here), lag(name, overall)))


class SplitSummary(Record, frozen=True, kw_only=True):
    """The cases of each part, in all and by first-tier category and language, and the groups that stay together.

    ``num_joined_as_near_duplicates``: groups that near-duplicates joined to others.
    """

    parts: dict[str, int]
    by_category: dict[str, dict[str, int]]
    by_language: dict[str, dict[str, int]]
    num_groups: int
    largest_group: int
    num_joined_as_near_duplicates: int


def summarize_split(
    prompts: Sequence[Case], chosen: Sequence[str], parts: Iterable[str], related: RelatedCases
) -> SplitSummary:
    """Return the sizes of the parts; ``chosen`` has the part of each case."""
    by_category: dict[str, dict[str, int]] = {}
    by_language: dict[str, dict[str, int]] = {}
    cells = common_cells([cell_of(case) for case in prompts])
    for (category, _, language), part in zip(cells, chosen, strict=True):
        for groups, name in ((by_category, category), (by_language, language or NO_LANGUAGE)):
            numbers = groups.setdefault(name, {})
            numbers[part] = numbers.get(part, 0) + 1
    return SplitSummary(
        parts={name: chosen.count(name) for name in parts},
        by_category=by_category,
        by_language=by_language,
        num_groups=len(related.groups),
        largest_group=max(map(len, related.groups)),
        num_joined_as_near_duplicates=related.num_near_duplicates,
    )
