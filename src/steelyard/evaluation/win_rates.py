"""Win rates of the authors of responses: the share of pairs with another author that an author wins, a tie one half.

The pairs are those of a case's ranking, in which equal tiers are a tie; without one its listed pairs; without both the
plurality of the judgments on each pair.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from steelyard.core.numerics import Integers
from steelyard.core.types import Case
from steelyard.ranking.judgment_table import distinct_judgments

MOST_AUTHORS = 200
"""Authors beyond these, in the order of their first case, have no win rate."""
_Credit = tuple[str, str, int]
_VOTES = {"left": 2, "tie": 1, "right": 0}


class Credits(NamedTuple):
    """Twice the pairs won and all pairs of each author: shape (case, author) both."""

    authors: tuple[str, ...]
    won: Integers
    pairs: Integers

    def of(self, authors: Sequence[str]) -> "Credits":
        """Return the columns of some authors, zeros for those without a pair."""
        place = {author: index for index, author in enumerate(self.authors)}
        columns = np.array([place.get(author, -1) for author in authors], np.int64)
        won, pairs = (np.where(columns >= 0, _padded(table)[:, columns], 0) for table in (self.won, self.pairs))
        return Credits(tuple(authors), won, pairs)


class CreditCounter:
    """Count the credits of cases as they come."""

    def __init__(self) -> None:
        self._place: dict[str, int] = {}
        self._cells: list[tuple[int, int, int, int]] = []
        self._num_cases = 0

    def add(self, case: Case) -> None:
        """Count one case."""
        won: Counter[str] = Counter()
        pairs: Counter[str] = Counter()
        for first, second, credit in credits_of(case):
            won[first] += credit
            won[second] += 2 - credit
            pairs.update((first, second))
        for author, number in pairs.items():
            place = self._place.setdefault(author, len(self._place)) if len(self._place) < MOST_AUTHORS else None
            place = self._place.get(author) if place is None else place
            if place is not None:
                self._cells.append((self._num_cases, place, won[author], number))
        self._num_cases += 1

    def credits(self) -> Credits:
        """Return the credits of all cases, the authors sorted by name."""
        tables = np.zeros((2, self._num_cases, len(self._place)), np.int64)
        if self._cells:
            case, author, won, pairs = np.array(self._cells, np.int64).T
            tables[0, case, author], tables[1, case, author] = won, pairs
        # Sorted, so that the draws do not depend on the order of the cases.
        return Credits(tuple(self._place), *tables).of(sorted(self._place))


def credits_of(case: Case) -> Iterator[_Credit]:
    """Yield each pair of two authors with twice the credit of the first: 2 if it wins, 1 for a tie."""
    author = {response.id: response.author for response in case.responses}
    for first, second, credit in _pairs_of(case):
        names = author[first], author[second]
        if names[0] is not None and names[1] is not None and names[0] != names[1]:
            yield names[0], names[1], credit


def _pairs_of(case: Case) -> Iterator[_Credit]:
    if case.ranking is not None:
        placed = [(tier, name) for tier, names in enumerate(case.ranking) for name in names]
        for (tier, first), (other, second) in combinations(placed, 2):
            yield first, second, 2 if tier < other else 1
    elif case.pairs is not None:
        yield from ((pair.better, pair.worse, 2) for pair in case.pairs)
    else:
        votes: defaultdict[tuple[str, str], Counter[int]] = defaultdict(Counter)
        for judgment in distinct_judgments(case.judgments):
            if judgment.verdict != "none":
                is_turned = judgment.left > judgment.right
                credit = _VOTES[judgment.verdict]
                pair = (judgment.right, judgment.left) if is_turned else (judgment.left, judgment.right)
                votes[pair][2 - credit if is_turned else credit] += 1
        for (first, second), counts in sorted(votes.items()):
            most = max(counts.values())
            leading = [credit for credit, number in counts.items() if number == most]
            yield first, second, leading[0] if len(leading) == 1 else 1


def _padded(table: Integers) -> Integers:
    """Return the table with a last column of zeros, which stands for an author without a pair."""
    return np.concatenate([table, np.zeros((len(table), 1), np.int64)], axis=1)
