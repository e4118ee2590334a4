"""Rankings with ties as choices: the Plackett-Luce model with a discrimination and a tie inclination for each rater.

A ranking is a sequence of choices (Luce, 1959; Plackett, 1975): from the responses that are left, the rater takes those
that are tied for best. Of the responses A, the set S is taken with a probability proportional to

    exp(discrimination * mean of the strengths in S + tie inclination * (|S| - 1)),

the geometric mean of worths with a tie parameter (Davidson, 1970, for pairs; Turner, van Etten, Firth and Kosmidis,
2020, for rankings). Two responses give Davidson's model, three the answer to a triple.

`Differs from:` Turner et al. have a parameter for each size of a tie and raters who are all alike. Here the logarithm
of the parameter grows by one inclination a response, and raters differ.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from steelyard.core.errors import EvidenceError
from steelyard.core.numerics import Booleans, Floats, Integers

MOST_RANKED = 5
"""The most responses of one ranking: a choice among n of them has 2**n - 1 outcomes."""
_BLOCK = 8192
"""Choices of a block: its probabilities stay in the processor's cache."""


class RankingAnswer(NamedTuple):
    """One ranking with ties: the item, the rater, and positions of the item's responses in tiers, best first."""

    item: int
    rater: int
    tiers: Sequence[Sequence[int]]


class Choices(NamedTuple):
    """Choices among equally many responses: item, rater, ``places`` (choice, available), ``chosen`` (choice,).

    ``chosen`` is a row of `alternatives` of the number of available responses.
    """

    item: Integers
    rater: Integers
    places: Integers
    chosen: Integers

    def where(self, mask: Booleans | Integers | slice) -> "Choices":
        """Return the choices for which the mask is true, or those at the positions."""
        return Choices(*(column[mask] for column in self))


class Alternatives(NamedTuple):
    """All sets that can be tied for best: ``share`` (set, response) is 1/size for members, ``ties`` size - 1."""

    share: Floats
    ties: Floats


class Raters(NamedTuple):
    """Parameters of each rater: ``discrimination`` of strengths, and ``tie`` inclination; both (rater,).

    ``rater_item_variance``: the variance of the difference between the strengths that one rater sees in an item and
    those of all.
    """

    discrimination: Floats
    tie: Floats
    rater_item_variance: float = 0.0


@cache
def alternatives(size: int) -> Alternatives:
    """Return the non-empty subsets of ``size`` responses: subset number k - 1 has the members of the bits of k."""
    members = (np.arange(1, 2**size)[:, None] >> np.arange(size)) & 1
    number = members.sum(axis=1)
    return Alternatives(members / number[:, None], (number - 1).astype(np.float64))


def choices_of(answers: Iterable[RankingAnswer]) -> tuple[Choices, ...]:
    """Return the choices of rankings, in blocks of one number of available responses each.

    A choice among one response tells nothing and is left out. Raises EvidenceError for a ranking of more than
    `MOST_RANKED` responses.
    """
    rows: dict[int, list[tuple[int, ...]]] = {}
    for answer in answers:
        left = _ranked(answer)
        for tier in answer.tiers:
            if len(left) > 1:
                # Those of the tier are first among the responses left: their bits are the lowest ones.
                rows.setdefault(len(left), []).append((answer.item, answer.rater, 2 ** len(tier) - 2, *left))
            left = left[len(tier) :]
    return _blocks(rows)


def first_choices(answers: Iterable[RankingAnswer]) -> tuple[Choices, ...]:
    """Return who was shown what, as choices for `draw_choices` that have nothing chosen yet."""
    rows: dict[int, list[tuple[int, ...]]] = {}
    for answer in answers:
        shown = sorted(_ranked(answer))
        rows.setdefault(len(shown), []).append((answer.item, answer.rater, 0, *shown))
    return _blocks({size: shown for size, shown in rows.items() if size > 1})


def _ranked(answer: RankingAnswer) -> list[int]:
    ranked = [place for tier in answer.tiers for place in tier]
    if len(ranked) > MOST_RANKED:
        raise EvidenceError(
            f"a ranking of {len(ranked)} responses",
            where="answers",
            allowed=f"2 to {MOST_RANKED}",
            do="give it as verdicts on pairs",
        )
    return ranked


def _blocks(rows: dict[int, list[tuple[int, ...]]]) -> tuple[Choices, ...]:
    blocks = []
    for size in sorted(rows):
        table = np.array(rows[size], np.int64)
        whole = Choices(table[:, 0], table[:, 1], table[:, 3:], table[:, 2])
        blocks += [whole.where(slice(start, start + _BLOCK)) for start in range(0, len(table), _BLOCK)]
    return tuple(blocks)


def choice_odds(choices: Choices, strength: Floats, raters: Raters) -> Floats:
    """Return the probability of each alternative, (…, choice, set), given strengths (…, choice, available)."""
    sets = alternatives(choices.places.shape[1])
    worth = raters.discrimination[choices.rater, None] * (strength @ sets.share.T)
    worth = worth + raters.tie[choices.rater, None] * sets.ties
    worth -= worth.max(axis=-1, keepdims=True)
    np.exp(worth, out=worth)
    worth /= worth.sum(axis=-1, keepdims=True)
    return worth


def strength_slopes(
    choices: Choices, strength: Floats, raters: Raters, weights: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return gradient and curvature of each choice's log likelihood in the strengths, averaged over their first axis.

    Shapes (choice, available), and (choice, available, available) of minus the second derivatives. ``strength``:
    (point, choice, available); ``weights`` of the points, equal by default.
    """
    sets = alternatives(choices.places.shape[1])
    odds = choice_odds(choices, strength, raters)
    weights = np.full(len(odds), 1 / len(odds)) if weights is None else weights
    discrimination = raters.discrimination[choices.rater]
    expected = odds @ sets.share
    products = (sets.share[:, :, None] * sets.share[:, None, :]).reshape(len(sets.share), -1)
    size = sets.share.shape[1]
    square = ((expected * weights[:, None, None]).transpose(1, 2, 0)) @ expected.transpose(1, 0, 2)
    spread = (np.tensordot(weights, odds, 1) @ products).reshape(-1, size, size) - square
    gradient = discrimination[:, None] * (sets.share[choices.chosen] - np.tensordot(weights, expected, 1))
    return gradient, discrimination[:, None, None] ** 2 * spread


def choice_gradients(choices: Choices, strength: Floats, raters: Raters) -> tuple[Floats, Floats]:
    """Return log likelihoods, (point, choice), and their derivatives in discrimination and tie inclination.

    ``strength``: (point, choice, available); the derivatives: (point, choice, 2). The model is a conditional logit in
    both parameters: the log likelihood is concave.
    """
    sets = alternatives(choices.places.shape[1])
    odds = choice_odds(choices, strength, raters)
    mean = strength @ sets.share.T
    rows = np.arange(len(choices.chosen))
    first = mean[:, rows, choices.chosen] - (odds * mean).sum(axis=-1)
    second = sets.ties[choices.chosen] - odds @ sets.ties
    log_likelihood = np.log(np.maximum(odds[:, rows, choices.chosen], 1e-300))
    return log_likelihood, np.stack([first, second], axis=-1)


def draw_choices(
    firsts: Sequence[Choices], strength: Floats, raters: Raters, rng: np.random.Generator
) -> list[Choices]:
    """Draw the rankings of the model: choices like `choices_of`, given the first choice of each ranking.

    ``firsts`` say who is shown what; what they chose is not read. ``strength``: (item, response).
    """
    drawn: list[Choices] = []
    waiting = [block for block in firsts if len(block.item)]
    while waiting:
        block = waiting.pop()
        size = block.places.shape[1]
        odds = choice_odds(block, strength[block.item[:, None], block.places][None], raters)[0]
        chosen = (odds.cumsum(axis=1) < rng.random(len(odds))[:, None]).sum(axis=1).clip(max=odds.shape[1] - 1)
        drawn.append(block._replace(chosen=chosen))
        for number in np.unique(chosen).tolist():
            left = np.flatnonzero(alternatives(size).share[number] == 0)
            if len(left) > 1:
                rest = block.where(chosen == number)
                waiting.append(rest._replace(places=rest.places[:, left], chosen=rest.chosen))
    return drawn
