"""Which pairs of responses of a prompt are compared: all of them, some at random, or the doubtful ones.

Every plan is a function of the case, its settings and the seed, so that a run that continues plans the same. Triples of
responses have designs of their own: `steelyard.annotation.triple_designs`.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np

from steelyard.core.errors import ConfigError
from steelyard.core.numerics import generator
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.types import Case, Verdict

Pair = tuple[int, int]
"""Positions of two responses of a case."""
PairChoice = Literal["all", "random", "unsure", "disputed"]


class PairPlan(NamedTuple):
    """The pairs of a prompt that are compared.

    ``random`` draws ``num_pairs`` of them, each response equally often. ``unsure`` takes the pairs whose scores differ
    by less than ``max_margin``, at most the ``num_pairs`` of smallest margin; without scores, the pairs on which a
    judge of the file gave no strict verdict, or several that differ. ``disputed`` takes the pairs on which two judges
    of the file differ. ``judges`` restricts both to these judges.
    """

    choice: PairChoice = "all"
    num_pairs: int | None = None
    max_margin: float | None = None
    judges: tuple[str, ...] = ()

    def check(self, *, has_scores: bool) -> None:
        """Raise ConfigError for a plan that lacks a number, or has one that it would ignore."""
        needs_number = self.choice == "random" or (self.choice == "unsure" and has_scores)
        if needs_number and self.num_pairs is None and self.max_margin is None:
            margin = (Remedy("max_margin", 0.5), ", or ") if self.choice == "unsure" else ()
            do = Advice("say ", *margin, Remedy("num_pairs", 3))
            raise ConfigError(f"pairs={self.choice} needs a number", where="pairs", do=do)
        if self.choice == "disputed" and len(set(self.judges)) == 1:
            do = "name a second judge, or none, for all of the file"
            raise ConfigError("pairs=disputed compares two judges or more", where="judges", do=do)
        ignored = {
            "num_pairs": self.num_pairs is not None and not needs_number,
            "max_margin": self.max_margin is not None and not (self.choice == "unsure" and has_scores),
            "judges": bool(self.judges) and (self.choice in ("all", "random") or has_scores),
            "scores": has_scores and self.choice != "unsure",
        }
        for name, is_ignored in ignored.items():
            if is_ignored:
                need = {"judges": "pairs=unsure without scores, or pairs=disputed", "num_pairs": "pairs=random"}
                allowed = need.get(name, "pairs=unsure with scores")
                raise ConfigError(f"{name} has no effect with pairs={self.choice}", where=name, allowed=allowed)


def choose_pairs(
    case: Case, plan: PairPlan, *, seed: int, scores: Mapping[str, float | None] | None = None
) -> tuple[Pair, ...]:
    """Return the pairs of a case that the plan compares, in the order of the responses."""
    pairs = tuple(combinations(range(len(case.responses)), 2))
    if plan.choice == "random" and plan.num_pairs is not None and plan.num_pairs < len(pairs):
        # A generator for each case: its plan does not depend on the cases before it.
        rng = generator(seed, "pairs", case.prompt.id, case.prompt.language or "")
        return random_pairs(len(case.responses), plan.num_pairs, rng=rng)
    if plan.choice == "unsure":
        unsure = _unsure_by_judges(case, plan) if scores is None else _unsure_by_scores(case, plan, scores, pairs)
        return tuple(pair for pair in pairs if pair in unsure)
    if plan.choice == "disputed":
        verdicts = _verdicts(case, plan)
        return tuple(pair for pair in pairs if len({*verdicts.get(pair, {}).values()} - {"none"}) > 1)
    return pairs


def random_pairs(number: int, num_pairs: int, *, rng: np.random.Generator) -> tuple[Pair, ...]:
    """Return ``num_pairs`` of the pairs of ``number`` responses, each in equally many (within one), by random draw.

    The pairs connect all responses if they are enough for it, ``number - 1`` or more.
    """
    every = set(combinations(range(number), 2))
    if num_pairs > len(every) // 2:
        # The rest of a balanced choice is balanced, and the smaller part is easier to draw.
        return tuple(sorted(every.difference(_balanced(number, len(every) - num_pairs, rng, is_ring=False))))
    return tuple(sorted(_balanced(number, num_pairs, rng, is_ring=True)))


def _balanced(number: int, num_pairs: int, rng: np.random.Generator, *, is_ring: bool) -> set[Pair]:
    """Draw pairs of the responses shown least so far; anew where a dead end leaves them unbalanced."""
    while True:
        order = rng.permutation(number).tolist()
        # Every second edge around a ring, and then the others: at any time the responses are shown equally often.
        starts = (*range(0, number, 2), *range(1, number, 2)) if is_ring else ()
        walk = [(order[start], order[(start + 1) % number]) for start in starts]
        chosen = {_sorted(pair) for pair in walk[:num_pairs]}
        degrees = np.bincount(np.array(sorted(chosen), dtype=int).ravel(), minlength=number)
        while len(chosen) < num_pairs:
            free = [pair for pair in combinations(range(number), 2) if pair not in chosen]
            shown = [sorted((degrees[first], degrees[other]), reverse=True) for first, other in free]
            least = min(shown)
            fitting = [pair for pair, degree in zip(free, shown, strict=True) if degree == least]
            pair = fitting[rng.integers(len(fitting))]
            chosen.add(pair)
            degrees[list(pair)] += 1
        if degrees.max() - degrees.min() <= 1:
            return chosen


def _sorted(pair: Pair) -> Pair:
    return (min(pair), max(pair))


def _unsure_by_scores(
    case: Case, plan: PairPlan, scores: Mapping[str, float | None], pairs: Sequence[Pair]
) -> set[Pair]:
    """Return the pairs of small margin. A pair without a score has none: its margin counts as zero."""
    values = [scores[response.id] for response in case.responses]
    margins = {pair: _margin(values[pair[0]], values[pair[1]]) for pair in pairs}
    below = [pair for pair in pairs if plan.max_margin is None or margins[pair] < plan.max_margin]
    return set(sorted(below, key=lambda pair: margins[pair])[: plan.num_pairs])


def _margin(first: float | None, other: float | None) -> float:
    return 0.0 if first is None or other is None else abs(first - other)


def _unsure_by_judges(case: Case, plan: PairPlan) -> set[Pair]:
    """Return the pairs on which a judge has no strict verdict, or several that differ, as in two orders."""
    return {pair for pair, verdicts in _verdicts(case, plan).items() if {"tie", "none"} & set(verdicts.values())}


def _verdicts(case: Case, plan: PairPlan) -> dict[Pair, dict[str, Verdict]]:
    """Return every judge's verdict on each judged pair, for the response that comes first.

    Verdicts that differ tie; ``none`` only where the judge gave no other, since a failure takes no verdict back.
    """
    place = {response.id: number for number, response in enumerate(case.responses)}
    verdicts: defaultdict[Pair, dict[str, Verdict]] = defaultdict(dict)
    for judgment in case.judgments:
        if plan.judges and judgment.judge not in plan.judges:
            continue
        first, other = place[judgment.left], place[judgment.right]
        turned: dict[Verdict, Verdict] = {"left": "right", "right": "left"}
        verdict = turned.get(judgment.verdict, judgment.verdict) if first > other else judgment.verdict
        of_pair = verdicts[_sorted((first, other))]
        known = of_pair.get(judgment.judge, "none")
        of_pair[judgment.judge] = verdict if known in ("none", verdict) else known if verdict == "none" else "tie"
    return verdicts
