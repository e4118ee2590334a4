"""Splitting by prompt: what belongs together falls on one side, and every part has its share of every stratum."""

import hashlib
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from steelyard.core.types import Case


def split_cases(cases: Sequence[Case], parts: Mapping[str, float], *, seed: int) -> tuple[str, ...]:
    """The name of the part that each case falls into; ``parts`` maps names to shares that sum to 1.

    Cases with the same first user turn (branches of one conversation) or the same prompt id (the item in several
    languages) stay together. Shares hold within every stratum of first-tier category, source and language, as nearly
    as whole groups allow. The result depends on the seed and on the set of cases, not on their order.
    """
    groups = _groups(cases)
    strata: dict[tuple[str, str, str], list[list[int]]] = defaultdict(list)
    for members in groups:
        strata[min(_stratum(cases[index]) for index in members)].append(members)
    overall: Counter[str] = Counter()
    chosen = [""] * len(cases)
    for stratum in sorted(strata):
        here: Counter[str] = Counter()
        for members in sorted(strata[stratum], key=lambda group: _order(cases, group, seed)):
            part = _neediest(parts, here, overall, len(members))
            here[part] += len(members)
            overall[part] += len(members)
            for index in members:
                chosen[index] = part
    return tuple(chosen)


def root_text(case: Case) -> str:
    """The conversation's first user turn, without differences of case, width and white space."""
    first = next((turn.content for turn in case.prompt.messages if turn.role == "user"), "")
    return " ".join(unicodedata.normalize("NFKC", first).casefold().split())


def _groups(cases: Sequence[Case]) -> list[list[int]]:
    """Connected components of the cases under an equal root or an equal prompt id, by union-find."""
    parent = list(range(len(cases)))

    def find(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    first: dict[tuple[str, str], int] = {}
    for index, case in enumerate(cases):
        for key in (("root", root_text(case)), ("id", case.prompt.id)):
            parent[find(index)] = find(first.setdefault(key, index))
    members: dict[int, list[int]] = defaultdict(list)
    for index in range(len(cases)):
        members[find(index)].append(index)
    return list(members.values())


def _stratum(case: Case) -> tuple[str, str, str]:
    prompt = case.prompt
    return (prompt.category[0] if prompt.category else "", prompt.source or "", prompt.language or "")


def _order(cases: Sequence[Case], group: Sequence[int], seed: int) -> str:
    name = min(f"{cases[index].prompt.id}\x1f{cases[index].prompt.language}" for index in group)
    return hashlib.sha256(f"{seed}\x1f{name}".encode()).hexdigest()


def _neediest(parts: Mapping[str, float], here: Counter[str], overall: Counter[str], size: int) -> str:
    """The part that lags furthest behind its share of the stratum, and where equal, of the whole."""

    def lag(name: str, taken: Counter[str]) -> float:
        return round(parts[name] * (taken.total() + size) - taken[name], 9)

    return max(parts, key=lambda name: (lag(name, here), lag(name, overall)))
