"""Published judgments as answers to draw from, with a reference for each item: what `rater_replay.py` replays."""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import msgspec
import numpy as np

from steelyard.annotation.case_answers import answers_of_cases
from steelyard.annotation.plackett_luce import Choices, RankingAnswer, Raters, choices_of, first_choices
from steelyard.annotation.psychometrics import PanelFit, fit_raters
from steelyard.annotation.strengths import ItemStrengths, item_strengths
from steelyard.annotation.triple_designs import covering_triples
from steelyard.core.numerics import Booleans, Floats, Integers, generator
from steelyard.core.types import Case, Judgment

CALIBRATION = 0.1
"""The share of the items that all people answer, by which raters are known: as in the workbench."""
DIGITS = 3
"""Digits of strengths within which two are equal: steps toward strengths end within 0.0004 of the result."""


class Pool(NamedTuple):
    """Answers to draw from: ``choices`` and ``shown`` number the answer where they have an item; arrays by answer.

    ``free`` are verdicts that cost nothing (`committee_evidence`); ``reference`` (item, response) orders each item;
    ``prior`` (item, response) are the strengths before any answer.
    """

    choices: tuple[Choices, ...]
    shown: tuple[Choices, ...]
    free: tuple[Choices, ...]
    item: Integers
    task: Integers
    rater: Integers
    num_items: int
    num_raters: int
    width: int
    reference: Floats
    prior: Floats

    @property
    def sizes(self) -> Integers:
        """The number of answers about each item, (item,)."""
        return np.bincount(self.item, minlength=self.num_items)

    def people(self, is_used: Booleans) -> list[Choices]:
        """Return the choices of the answers used."""
        used = [block.where(is_used[block.item]) for block in self.choices]
        return [block._replace(item=self.item[block.item]) for block in used]

    def fit(self, is_used: Booleans) -> PanelFit:
        """Fit raters to the answers used."""
        return fit_raters(self.people(is_used), num_raters=self.num_raters, num_items=self.num_items, width=self.width)

    def ranked(self, raters: Raters, is_used: Booleans, start: ItemStrengths | None = None) -> ItemStrengths:
        """Return the strengths that the answers of people give, with known raters: the ranking that is delivered."""
        choices = self.people(is_used)
        return item_strengths(
            choices, raters, num_items=self.num_items, width=self.width, start=start, prior=self.prior
        )

    def believed(self, raters: Raters, is_used: Booleans, start: ItemStrengths | None = None) -> ItemStrengths:
        """Return the strengths that people and free verdicts give together: what decides who is asked."""
        choices = [*self.free, *self.people(is_used)]
        return item_strengths(
            choices, raters, num_items=self.num_items, width=self.width, start=start, prior=self.prior
        )

    def believed_after(
        self, raters: Raters, is_used: Booleans, start: ItemStrengths, changed: Integers
    ) -> ItemStrengths:
        """Return the same where only the items ``changed`` have further answers: theirs alone are taken anew."""
        if not len(changed):
            return start
        place = np.full(self.num_items, -1)
        place[changed] = np.arange(len(changed))
        choices = [*self.free, *self.people(is_used & (place[self.item] >= 0))]
        mine = [block.where(place[block.item] >= 0) for block in choices]
        mine = [block._replace(item=place[block.item]) for block in mine]
        first = ItemStrengths(start.mean[changed], start.covariance[changed])
        found = item_strengths(
            mine, raters, num_items=len(changed), width=self.width, start=first, prior=self.prior[changed]
        )
        mean, covariance = start.mean.copy(), start.covariance.copy()
        mean[changed], covariance[changed] = found
        return ItemStrengths(mean, covariance)

    def taus(self, items: ItemStrengths) -> Floats:
        """Return Kendall's tau-b of each item's mean strengths with the reference; 1 where both order nothing."""
        first, second = np.triu_indices(self.width, 1)
        signs = [np.sign(np.round(each[:, first] - each[:, second], DIGITS)) for each in (items.mean, self.reference)]
        sizes = [(sign**2).sum(axis=1) for sign in signs]
        scale = np.sqrt(sizes[0] * sizes[1])
        nothing = (sizes[0] == 0) & (sizes[1] == 0)
        return np.where(nothing, 1.0, (signs[0] * signs[1]).sum(axis=1) / np.where(scale > 0, scale, 1.0))

    def calibration(self, seed: int) -> Booleans:
        """Return which answers are about the tenth of the items that get all of them, drawn at random."""
        items = generator(seed, "calibration").permutation(self.num_items)[: round(CALIBRATION * self.num_items)]
        return np.isin(self.item, items)


def pool_of(cases: Sequence[Case], held_out: Sequence[str] | None, seed: int) -> Pool:
    """Return the answers of all people, or of all but one of each case, who is then the reference.

    Without anybody held out the reference is the ranking that all answers give, by raters known from the calibration.
    """
    people = [
        case
        if held_out is None
        else _with_judgments(case, [own for own in case.judgments if own.judge != held_out[number]])
        for number, case in enumerate(cases)
    ]
    of_people = answers_of_cases(map(triples_of, people))
    answers = of_people.answers
    tasks: dict[tuple[int, frozenset[int]], int] = {}
    keys = [(each.item, frozenset(place for tier in each.tiers for place in tier)) for each in answers]
    numbered = [RankingAnswer(number, each.rater, each.tiers) for number, each in enumerate(answers)]
    pool = Pool(
        choices=choices_of(numbered),
        shown=first_choices(numbered),
        free=(),
        item=np.array([each.item for each in answers]),
        task=np.array([tasks.setdefault(key, len(tasks)) for key in keys]),
        rater=np.array([each.rater for each in answers]),
        num_items=len(cases),
        num_raters=len(of_people.raters),
        width=of_people.width,
        reference=np.zeros((len(cases), of_people.width)),
        prior=np.zeros((len(cases), of_people.width)),
    )
    if held_out is None:
        raters = pool.fit(pool.calibration(seed)).raters
        return pool._replace(reference=pool.ranked(raters, np.ones(len(answers), np.bool_)).mean)
    values = [_values(*each, of_people.width) for each in zip(cases, held_out, strict=True)]
    return pool._replace(reference=np.stack(values))


def one_judge(case: Case, seed: int, number: int) -> str:
    """Return the person of a case who is held out, by the seed and the number of the case."""
    names = sorted({each.judge for each in case.judgments})
    return names[int(generator(seed, "held out", number).integers(len(names)))]


def triples_of(case: Case) -> Case:
    """Return the case with the judgments of each judge as answers to the triples of the covering design."""
    if len(case.responses) < 3:
        return case
    verdict = {(each.judge, frozenset((each.left, each.right))): each for each in case.judgments}
    names = [response.id for response in case.responses]
    judgments: list[Judgment] = []
    for judge in dict.fromkeys(each.judge for each in case.judgments):
        for number, triple in enumerate(covering_triples(len(names))):
            pairs = [frozenset((names[one], names[other])) for one, other in combinations(triple, 2)]
            if all((judge, pair) in verdict for pair in pairs):
                judgments += [msgspec.structs.replace(verdict[judge, pair], task=str(number)) for pair in pairs]
    return _with_judgments(case, judgments)


def _with_judgments(case: Case, judgments: Sequence[Judgment]) -> Case:
    return msgspec.structs.replace(case, judgments=tuple(judgments))


def _values(case: Case, judge: str, width: int) -> Floats:
    """Return how many responses each one beats by one judge, minus how many beat it: the judge's ranking with ties."""
    place = {response.id: number for number, response in enumerate(case.responses)}
    values = np.zeros(width)
    for each in case.judgments:
        if each.judge == judge and each.verdict in ("left", "right"):
            sign = 1 if each.verdict == "left" else -1
            values[place[each.left]] += sign
            values[place[each.right]] -= sign
    return values
