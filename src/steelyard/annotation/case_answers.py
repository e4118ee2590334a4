"""Rankings with ties from the judgments of cases, and how reliable the raters are who gave them.

Judgments of one judge and one task were made together: as independent pairs they would count as more evidence than
they are. They become one ranking where they order the responses shown without contradiction, else each is an answer.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from typing import NamedTuple

import msgspec

from steelyard.annotation.plackett_luce import MOST_RANKED, RankingAnswer
from steelyard.annotation.rater_reliability import fit_panel, reliability_of
from steelyard.core.types import Case, Judgment, Kind, Record
from steelyard.statistics.intervals import Estimate


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
        # Judgments without a task are groups of their own.
        groups: dict[tuple[str, str | int], list[Judgment]] = defaultdict(list)
        for number, each in enumerate(case.judgments):
            if each.verdict != "none":
                groups[each.judge, number if each.task is None else each.task].append(each)
        for (judge, _), group in groups.items():
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


class CaseRater(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A rater: answers to prompts that others judged too, the accuracy of strict verdicts, and the share of ties.

    An answer is one ranking (the judgments of one task), else one verdict. ``kinds``: those of the rater's judgments.
    """

    rater: str
    kinds: tuple[Kind, ...]
    num_answers: int
    accuracy: Estimate
    ties: Estimate


class RatersSummary(Record, frozen=True, kw_only=True, omit_defaults=False):
    """All raters, the most accurate first, those without an estimate last; and what the fit stands on."""

    num_cases: int
    num_shared: int
    num_answers: int
    raters: tuple[CaseRater, ...]


def summarise_raters(
    cases: Sequence[Case], admits: Callable[[Sequence[Judgment]], Sequence[bool]]
) -> RatersSummary | None:
    """Return the reliability of the raters of cases, from the judgments that ``admits`` takes.

    It is null where no prompt has verdicts of two raters.
    """
    admitted = [
        msgspec.structs.replace(case, judgments=tuple(compress(case.judgments, admits(case.judgments))))
        for case in cases
    ]
    read = answers_of_cases(admitted)
    panel = None
    if len(read.raters) > 1:
        panel = fit_panel(read.answers, read.raters, num_items=read.num_items, width=read.width)
    if panel is None or not panel.num_shared_items:
        return None
    kinds: dict[str, dict[Kind, None]] = {}
    for case in admitted:
        for judgment in case.judgments:
            kinds.setdefault(judgment.judge, {})[judgment.kind] = None
    rows = []
    for name, rater in panel.raters.items():
        reliability = reliability_of(rater)
        row = CaseRater(
            rater=name,
            kinds=tuple(kinds[name]),
            num_answers=rater.num_answers,
            accuracy=reliability.accuracy,
            ties=reliability.ties,
        )
        rows.append(row)
    rows.sort(key=lambda row: (row.accuracy.value is None, -(row.accuracy.value or 0.0), row.rater))
    return RatersSummary(
        num_cases=len(cases), num_shared=panel.num_shared_items, num_answers=panel.num_answers, raters=tuple(rows)
    )
