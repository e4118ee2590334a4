"""Rankings with ties from the judgments of cases: one ranking for each task of a judge, else one verdict on a pair.

Judgments of one judge and one task were made together: as independent pairs they would count as more evidence than
they are. They become one ranking where they order the responses shown without contradiction.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from steelyard.annotation.plackett_luce import MOST_RANKED, RankingAnswer
from steelyard.core.types import Case, Judgment


class CaseAnswers(NamedTuple):
    """The answers about cases: items by position of the case, raters by position in ``raters``.

    ``width``: the largest number of responses of a case.
    """

    answers: tuple[RankingAnswer, ...]
    raters: tuple[str, ...]
    num_items: int
    width: int


def answers_of_cases(cases: Iterable[Case]) -> CaseAnswers:
    """Return all readable judgments of the cases as rankings, each judge a rater."""
    answers: list[RankingAnswer] = []
    numbers: dict[str, int] = {}
    num_items = width = 0
    for item, case in enumerate(cases):
        place = {response.id: number for number, response in enumerate(case.responses)}
        num_items, width = item + 1, max(width, len(place))
        for judge, group in _groups(case.judgments):
            rater = numbers.setdefault(judge, len(numbers))
            answers += [
                RankingAnswer(item, rater, [[place[name] for name in tier] for tier in tiers])
                for tiers in rankings_of(group)
            ]
    return CaseAnswers(tuple(answers), tuple(numbers), num_items, width)


def rankings_of(judgments: Sequence[Judgment]) -> list[list[list[str]]]:
    """Return the tiers that judgments of one task say together, else those of each judgment alone."""
    verdicts = {
        pair: better
        for each in judgments
        for pair, better in (
            ((each.left, each.right), each.verdict == "left"),
            ((each.right, each.left), each.verdict == "right"),
        )
    }
    names = list(dict.fromkeys(name for each in judgments for name in (each.left, each.right)))
    if 2 < len(names) <= MOST_RANKED and 2 * len(judgments) == len(verdicts) == len(names) * (len(names) - 1):
        beaten_by = {name: sum(verdicts[other, name] for other in names if other != name) for name in names}
        places = sorted(set(beaten_by.values()))
        tiers = [[name for name in names if beaten_by[name] == place] for place in places]
        level = {name: number for number, tier in enumerate(tiers) for name in tier}
        if all(verdicts[left, right] == (level[left] < level[right]) for left, right in verdicts):
            return [tiers]
    return [
        [[each.left, each.right]]
        if each.verdict == "tie"
        else [[each.left], [each.right]]
        if each.verdict == "left"
        else [[each.right], [each.left]]
        for each in judgments
    ]


def _groups(judgments: Iterable[Judgment]) -> list[tuple[str, list[Judgment]]]:
    """Return readable judgments by judge and task; those without a task one by one."""
    groups: dict[tuple[str, str | int], list[Judgment]] = defaultdict(list)
    for number, each in enumerate(judgments):
        if each.verdict != "none":
            groups[each.judge, number if each.task is None else each.task].append(each)
    return [(judge, group) for (judge, _), group in groups.items()]
