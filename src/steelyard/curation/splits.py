"""Splits by prompt: related cases stay in one part, and every part has its share of every stratum."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from steelyard.core.types import Case
from steelyard.curation.near_duplicates import Links, near_duplicates, plain_form

Stratum = Literal["category", "source", "language"]
STRATA: tuple[Stratum, ...] = ("category", "source", "language")


class RelatedCases(NamedTuple):
    """Groups of positions of cases that stay in one part, and how many groups near-duplicates joined to others."""

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
        by_stratum[min(_stratum(cases[index], strata) for index in members)].append(members)
    overall: Counter[str] = Counter()
    chosen = [""] * len(cases)
    for stratum in sorted(by_stratum):
        here: Counter[str] = Counter()
        for members in sorted(by_stratum[stratum], key=lambda group: _order(cases, group, seed)):
            part = _neediest(parts, here, overall, len(members))
            here[part] += len(members)
            overall[part] += len(members)
            for index in members:
                chosen[index] = part
    return tuple(chosen)


def group_related(cases: Sequence[Case], near: float | None = None) -> RelatedCases:
    """Group cases with one first user turn (branches of a conversation) or one prompt id (several languages).

    ``near``, above 0 and at most 1, adds first turns that are near-duplicates: the Jaccard similarity of their
    character shingles is at least ``near``. The relation is transitive.
    """
    links = Links(len(cases))
    first: dict[tuple[str, str], int] = {}
    for index, case in enumerate(cases):
        for key in (("root", root_text(case)), ("id", case.prompt.id)):
            links.join(index, first.setdefault(key, index))
    num_before = len(links.groups())
    if near is not None:
        roots = [(text, index) for (kind, text), index in first.items() if kind == "root"]
        for pair in near_duplicates([text for text, _ in roots], near):
            links.join(roots[pair.first][1], roots[pair.second][1])
    groups = links.groups()
    return RelatedCases(tuple(map(tuple, groups)), num_before - len(groups))


def root_text(case: Case) -> str:
    """Return the conversation's first user turn, without differences of case, width and white space."""
    return plain_form(next((turn.content for turn in case.prompt.messages if turn.role == "user"), ""))


def _stratum(case: Case, strata: Sequence[Stratum]) -> tuple[str, ...]:
    prompt = case.prompt
    values = {
        "category": prompt.category[0] if prompt.category else "",
        "source": prompt.source or "",
        "language": prompt.language or "",
    }
    return tuple(values[name] for name in STRATA if name in strata)


def _order(cases: Sequence[Case], group: Sequence[int], seed: int) -> str:
    name = min(f"{cases[index].prompt.id}\x1f{cases[index].prompt.language}" for index in group)
    return hashlib.sha256(f"{seed}\x1f{name}".encode()).hexdigest()


def _neediest(parts: Mapping[str, float], here: Counter[str], overall: Counter[str], size: int) -> str:
    """Return the part that lags furthest behind its share of the stratum, then of the whole."""

    def lag(name: str, taken: Counter[str]) -> float:
        return round(parts[name] * (taken.total() + size) - taken[name], 9)

    return max(parts, key=lambda name: (lag(name, here), lag(name, overall)))
