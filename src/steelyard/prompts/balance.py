"""Balance to wanted shares by category and language: the largest choice of prompts that meets them.

With shares of one kind the total is bounded by the group that is short of its share. With both kinds every category has
its share and every language has its share; how many prompts of a category are in a language is free, and the largest
total is a maximum flow from categories to languages through the prompts that there are. Within a category and language
prompts are chosen by a hash of the seed and their ids, so that the choice does not depend on the order of the file.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import floor
from typing import NamedTuple

import numpy as np

from steelyard.core.errors import ConfigError
from steelyard.core.languages import language_key
from steelyard.core.text import common_spellings, name_form
from steelyard.core.types import Prompt, Record
from steelyard.ranking.judgment_table import NO_LANGUAGE
from steelyard.statistics.groups import UNCATEGORISED


class WantedShares(NamedTuple):
    """The wanted share of each first-tier category and language; a kind without shares is free."""

    category: Mapping[str, float]
    language: Mapping[str, float]

    @property
    def are_given(self) -> bool:
        """True where any share is wanted."""
        return bool(self.category or self.language)


class GroupShare(Record, frozen=True, kw_only=True):
    """A group of one ``kind`` (category or language): its wanted share, its prompts before, and after balancing."""

    kind: str
    name: str
    wanted: float | None
    num_before: int
    num_after: int


def check_shares(shares: WantedShares) -> None:
    """Raise ConfigError for shares that are not above 0, or do not sum to 1."""
    for kind, wanted in (("category", shares.category), ("language", shares.language)):
        place = f"{kind}_shares"
        for name, share in wanted.items():
            if not share > 0:
                do = f"leave {name} out: what has no share is dropped" if share == 0 else None
                raise ConfigError(f"the share of {name} is {share:g}", where=place, allowed="a number above 0", do=do)
        if wanted and not abs(sum(wanted.values()) - 1) <= 1e-6:
            problem = f"the shares sum to {sum(wanted.values()):g}"
            raise ConfigError(problem, where=place, allowed="shares that sum to 1")


def _category_names(prompts: Sequence[Prompt], shares: WantedShares) -> list[str]:
    """Return the first-tier category of each prompt, spelled as in the shares, else as most often."""
    names = [prompt.category[0] if prompt.category else UNCATEGORISED for prompt in prompts]
    return _spelled(names, shares.category, name_form)


def _language_names(prompts: Sequence[Prompt], shares: WantedShares) -> list[str]:
    """Return the language of each prompt, spelled as in the shares, else as most often."""
    return _spelled([prompt.language or NO_LANGUAGE for prompt in prompts], shares.language, language_key)


def _spelled(names: Sequence[str], wanted: Iterable[str], identity: Callable[[str], str]) -> list[str]:
    common, chosen = common_spellings(names, identity), {identity(name): name for name in wanted}
    return [chosen.get(identity(name), common[name]) for name in names]


def balanced(prompts: Sequence[Prompt], shares: WantedShares, *, seed: int) -> frozenset[int]:
    """Return the places of the prompts that stay: as many as the shares allow.

    A share is met to the nearest whole prompt. Groups without a share are left out where others of their kind have one.
    Raises ConfigError where a group that has a share has no prompt.
    """
    cells: dict[tuple[str, str], list[int]] = defaultdict(list)
    categories, languages = _category_names(prompts, shares), _language_names(prompts, shares)
    for place, (category, language) in enumerate(zip(categories, languages, strict=True)):
        cells[category if shares.category else "", language if shares.language else ""].append(place)
    rows, columns = dict(shares.category) or {"": 1.0}, dict(shares.language) or {"": 1.0}
    counts = np.array([[len(cells.get((row, column), ())) for column in columns] for row in rows])
    _check_present(rows, counts.sum(1), "category")
    _check_present(columns, counts.sum(0), "language")
    chosen: list[int] = []
    for (row, column), number in zip(
        ((row, column) for row in rows for column in columns), _largest_table(counts, rows, columns).flat, strict=True
    ):
        ordered = sorted(cells.get((row, column), ()), key=lambda place: _shuffled(prompts[place], seed))
        chosen += ordered[: int(number)]
    return frozenset(chosen)


def group_shares(before: Sequence[Prompt], after: Sequence[Prompt], shares: WantedShares) -> tuple[GroupShare, ...]:
    """Return the prompts of every category and language before and after, those with the most prompts first."""
    rows: list[GroupShare] = []
    for kind, names_of, wanted in (
        ("category", _category_names, shares.category),
        ("language", _language_names, shares.language),
    ):
        names = names_of([*before, *after], shares)
        starts, ends = Counter(names[: len(before)]), Counter(names[len(before) :])
        numbers = {name: (starts[name], ends[name]) for name in {*starts, *ends, *wanted}}
        rows += [
            GroupShare(kind=kind, name=name, wanted=wanted.get(name), num_before=start, num_after=end)
            for name, (start, end) in sorted(numbers.items(), key=lambda item: (-item[1][0], item[0]))
        ]
    return tuple(rows)


def _check_present(wanted: Mapping[str, float], numbers: np.ndarray, kind: str) -> None:
    for name, number in zip(wanted, numbers, strict=True):
        if not number:
            raise ConfigError(
                f"no prompt is left of {kind} {name!r}, which has a share of {wanted[name]:g}",
                where=f"{kind}_shares",
                do="leave the group out of the shares, or add prompts of it",
            )


def _largest_table(counts: np.ndarray, rows: Mapping[str, float], columns: Mapping[str, float]) -> np.ndarray:
    """Return the number of prompts of each category and language for the largest total that meets the shares.

    Rounding to whole prompts makes totals fail between others that succeed, so that no bisection finds the largest:
    totals are tried downwards from the largest with fractions of prompts, and what rounding may add to it.
    """
    slack = max(1 / share for share in (*rows.values(), *columns.values())) + len(rows) + len(columns)
    for total in range(min(int(counts.sum()), floor(_largest_fraction(counts, rows, columns) + slack)), 0, -1):
        table = _table(counts, _quotas(rows, total), _quotas(columns, total))
        if table is not None:
            return table
    return np.zeros_like(counts)


def _largest_fraction(counts: np.ndarray, rows: Mapping[str, float], columns: Mapping[str, float]) -> float:
    """Return the largest total that meets the shares with fractions of prompts: a linear programme."""
    from scipy.optimize import linprog

    num_rows, num_columns = counts.shape
    sums = np.zeros((num_rows + num_columns, counts.size + 1))
    for row in range(num_rows):
        sums[row, row * num_columns : (row + 1) * num_columns] = 1
    for column in range(num_columns):
        sums[num_rows + column, column:-1:num_columns] = 1
    sums[:, -1] = [-share / sum(each.values()) for each in (rows, columns) for share in each.values()]
    goal = np.zeros(counts.size + 1)
    goal[-1] = -1
    bounds = [*((0, int(count)) for count in counts.flat), (0, int(counts.sum()))]
    return float(-linprog(goal, A_eq=sums, b_eq=np.zeros(len(sums)), bounds=bounds).fun)


def _quotas(wanted: Mapping[str, float], total: int) -> list[int]:
    """Return whole numbers with this total, next to the shares: the largest remainders are rounded up."""
    exact = [share * total / sum(wanted.values()) for share in wanted.values()]
    whole = [floor(value + 1e-9) for value in exact]
    order = sorted(range(len(exact)), key=lambda place: (whole[place] - exact[place], place))
    for place in order[: total - sum(whole)]:
        whole[place] += 1
    return whole


def _table(counts: np.ndarray, rows: Sequence[int], columns: Sequence[int]) -> np.ndarray | None:
    """Return a table with these sums and no cell above its count, as a maximum flow; null if there is none."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    num_rows, num_columns = counts.shape
    size, sink = num_rows + num_columns + 2, num_rows + num_columns + 1
    capacity = np.zeros((size, size), np.int32)
    capacity[0, 1 : num_rows + 1] = rows
    capacity[1 : num_rows + 1, num_rows + 1 : sink] = counts
    capacity[num_rows + 1 : sink, sink] = columns
    flow = maximum_flow(csr_array(capacity), 0, sink)
    if flow.flow_value < sum(rows):
        return None
    return np.maximum(flow.flow.toarray()[1 : num_rows + 1, num_rows + 1 : sink], 0)


def _shuffled(prompt: Prompt, seed: int) -> str:
    return hashlib.sha256(f"{seed}\x1f{prompt.id}\x1f{prompt.language}".encode()).hexdigest()
