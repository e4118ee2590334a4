"""The labels of one kind of judges: rankings and pairs that follow from their judgments, not from those of others.

`merge` unites the judgments of people and of other judges in a case, `judge` adds its own to a ranking by people, and
`resolve` ranks by all of them. A number that compares people with a judge needs the labels of each alone.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import get_args

from msgspec.structs import replace

from steelyard.core.types import Case, Judgment, Kind, Ranking
from steelyard.ranking.judgment_table import Aggregate, judgment_table
from steelyard.ranking.pairs import pairs_of
from steelyard.ranking.resolution import resolve_table

PEOPLE: tuple[Kind, ...] = ("human",)
JUDGES: tuple[Kind, ...] = ("llm", "model")


class OwnLabels:
    """The labels of cases by some kinds of judges alone.

    Labels that follow from their judgments stay, and so do labels of cases that no other kind judged. Labels that
    follow from the judgments of others, or of all together, become the ranking of their own judgments, null if there
    are none. ``keeps_unexplained``: labels that follow from neither stay; they were made by another rule.
    ``num_judged`` counts the cases with a judgment of these kinds.
    """

    def __init__(self, cases: Iterable[Case], kinds: Collection[Kind], *, keeps_unexplained: bool) -> None:
        self._kinds = kinds
        self._keeps_unexplained = keeps_unexplained
        self._rankings: dict[tuple[str, str | None], Ranking | None] = {}
        self.num_cases = self.num_judged = 0
        by_others: list[Case] = []
        has_other_source = False
        for case in cases:
            self.num_cases += 1
            mine, others = self._evidence(case)
            self.num_judged += bool(mine)
            if not others or (case.ranking is None and case.pairs is None):
                continue
            if mine:
                self._add(case, mine, others)
            elif _aggregates(case, others):
                by_others.append(case)
            else:
                has_other_source = True
        # Labels that one judge wrote by another way than judgments often agree with the judgments of others by chance.
        if not has_other_source:
            self._rankings |= {case.key: None for case in by_others}

    @property
    def num_changed(self) -> int:
        """The number of cases whose labels are replaced."""
        return len(self._rankings)

    def of(self, case: Case) -> Case:
        """Return the case with the judgments and ratings of these kinds alone, and the labels that follow from them."""
        judgments, ratings = (
            tuple(entry for entry in entries if entry.kind in self._kinds) for entries in (case.judgments, case.ratings)
        )
        if case.key in self._rankings:
            case = replace(case, ranking=self._rankings[case.key], pairs=None)
        return replace(case, judgments=judgments, ratings=ratings)

    def _evidence(self, case: Case) -> tuple[list[Judgment], list[Judgment]]:
        readable = [judgment for judgment in case.judgments if judgment.verdict != "none"]
        mine = [judgment for judgment in readable if judgment.kind in self._kinds]
        return mine, [judgment for judgment in readable if judgment.kind not in self._kinds]

    def _add(self, case: Case, mine: Sequence[Judgment], others: Sequence[Judgment]) -> None:
        if _aggregates(case, mine):
            return
        mixed = _aggregates(case, [*mine, *others])
        if mixed or _aggregates(case, others) or not self._keeps_unexplained:
            self._rankings[case.key] = _ranking(case, mine, mixed[0] if mixed else "none")


def _aggregates(case: Case, judgments: Sequence[Judgment]) -> list[Aggregate]:
    """Return the ways of combining verdicts by which the labels of the case follow from these judgments."""
    aggregates: list[Aggregate] = []
    for aggregate in get_args(Aggregate):
        ranking = _ranking(case, judgments, aggregate)
        is_equal = case.ranking is None or list(map(set, ranking or ())) == list(map(set, case.ranking))
        listed = {pair[:2] for pair in pairs_of(case, "listed")} if case.pairs is not None else set()
        ordered = {pair[:2] for pair in pairs_of(replace(case, ranking=ranking), "tiers")}
        if is_equal and listed <= ordered:
            aggregates.append(aggregate)
    return aggregates


def _ranking(case: Case, judgments: Sequence[Judgment], aggregate: Aggregate) -> Ranking | None:
    table = judgment_table([replace(case, judgments=tuple(judgments))])
    return resolve_table(table, aggregate).rankings[0]
