"""Which responses of a prompt are compared: all pairs, some at random, the doubtful ones, or triples of a design.

Every plan is a function of the case, its settings and the seed, so that a run that continues plans the same.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import combinations, count
from typing import Literal, NamedTuple

import numpy as np

from steelyard.core.comparison import Triple, circular_triples
from steelyard.core.errors import ConfigError
from steelyard.core.numerics import generator
from steelyard.core.types import Case, Judgment, Verdict

Pair = tuple[int, int]
"""Positions of two responses of a case."""
PairChoice = Literal["all", "random", "unsure", "disputed"]
TripleDesign = Literal["covering", "circular"]

_LARGEST_CIRCULAR = 5
"""Up to this number of responses circular triples compare every pair."""


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
            do = "--set max_margin=0.5, or --set num_pairs=3" if self.choice == "unsure" else "--num-pairs 3"
            raise ConfigError(f"pairs={self.choice} needs a number", where="pairs", do=f"say {do}")
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
                allowed = need.get(name, "pairs=unsure with --scores")
                raise ConfigError(f"{name} has no effect with pairs={self.choice}", where=name, allowed=allowed)


def choose_pairs(
    case: Case, plan: PairPlan, *, seed: int, scores: Mapping[str, float | None] | None = None
) -> tuple[Pair, ...]:
    """Return the pairs of a case that the plan compares, in the order of the responses."""
    pairs = tuple(combinations(range(len(case.responses)), 2))
    if plan.choice == "random" and plan.num_pairs is not None and plan.num_pairs < len(pairs):
        return random_pairs(len(case.responses), plan.num_pairs, rng=_rng(case, seed, "pairs"))
    if plan.choice == "unsure":
        unsure = _unsure_by_judges(case, plan) if scores is None else _unsure_by_scores(case, plan, scores, pairs)
        return tuple(pair for pair in pairs if pair in unsure)
    if plan.choice == "disputed":
        verdicts = _verdicts(case, plan)
        return tuple(pair for pair in pairs if len({*verdicts.get(pair, {}).values()} - {"none"}) > 1)
    return pairs


def choose_triples(case: Case, design: TripleDesign, *, seed: int) -> tuple[Triple, ...]:
    """Return the triples of a case: circular up to five responses (CHEEMS, section 3.2), then those of the design.

    ``covering`` compares every pair, in the smallest number of triples; which response has which place in the design
    is drawn for each case.

    Differs from: CHEEMS, whose circular triples compare no two responses that are more than two apart. Of six responses
    that leaves 3 of 15 pairs uncompared, of ten 25 of 45. ``circular`` is its design at any number.
    """
    number = len(case.responses)
    if design == "circular" or number <= _LARGEST_CIRCULAR:
        return circular_triples(number)
    place = _rng(case, seed, "triples").permutation(number).tolist()
    return tuple((place[first], place[second], place[third]) for first, second, third in covering_triples(number))


@cache
def covering_triples(number: int) -> tuple[Triple, ...]:
    """Return a smallest set of triples with every pair of ``number`` points in at least one of them.

    Their number is Schönheim's bound, ceil(n / 3 * ceil((n - 1) / 2)). Pairs that occur more than once are as few as
    possible: none where ``number`` is 1 or 3 modulo 6, one pair three times where it is 5 modulo 6, else about one for
    every two points. The multigraph of all pairs and these repeats is
    divided into triangles by hill climbing: a triple is added, and the one that it contradicts is removed (Stinson
    1985, for Steiner triple systems).

    Raises ConfigError below three points.
    """
    if number < 3:
        raise ConfigError(f"{number} responses", where="triples", allowed="3 or more: a task shows three")
    for attempt in count():
        climb = _Climb(number, generator(0, "covering triples", number, attempt))
        if climb.run(max_steps=100 * number * number):
            return tuple(sorted(climb.triples()))
    raise AssertionError("attempts do not end")


class _Climb:
    """Divide a multigraph into triangles. ``need`` counts for each pair how often it is still to be covered."""

    def __init__(self, number: int, rng: np.random.Generator) -> None:
        self.number, self.rng = number, rng
        self.need = [[int(first != other) for other in range(number)] for first in range(number)]
        for first, other in _repeated_pairs(number):
            self._change(first, other, 1)
        self.left = sum(map(sum, self.need)) // 2
        self.of_pair: defaultdict[Pair, list[Triple]] = defaultdict(list)

    def run(self, *, max_steps: int) -> bool:
        """Climb until every pair is covered. Returns whether that was reached."""
        for _ in range(max_steps):
            if not self.left:
                return True
            self._step()
        return False

    def triples(self) -> list[Triple]:
        """Return the triples; one that covers pairs twice occurs twice."""
        return [triple for pair, triples in self.of_pair.items() for triple in triples if pair == triple[:2]]

    def _step(self) -> None:
        live = [point for point in range(self.number) if any(self.need[point])]
        point = live[self.rng.integers(len(live))]
        partners = [other for other in range(self.number) if self.need[point][other] > 0]
        if len(partners) < 2:
            # A repeated pair alone is left here: a triple of this point makes room.
            pairs = [pair for pair, triples in self.of_pair.items() if point in pair and triples]
            if pairs:
                self._remove(self.of_pair[pairs[self.rng.integers(len(pairs))]][0])
            return
        first, other = (partners[place] for place in self.rng.permutation(len(partners))[:2])
        if not self.need[first][other]:
            contradicting = self.of_pair[_sorted((first, other))]
            self._remove(contradicting[self.rng.integers(len(contradicting))])
        self._add(tuple(sorted((point, first, other))))  # pyright: ignore[reportArgumentType] - three points

    def _add(self, triple: Triple) -> None:
        for pair in combinations(triple, 2):
            self._change(*pair, -1)
            self.of_pair[pair].append(triple)
        self.left -= 3

    def _remove(self, triple: Triple) -> None:
        for pair in combinations(triple, 2):
            self._change(*pair, 1)
            self.of_pair[pair].remove(triple)
        self.left += 3

    def _change(self, first: int, other: int, by: int) -> None:
        self.need[first][other] += by
        self.need[other][first] += by


def _repeated_pairs(number: int) -> tuple[Pair, ...]:
    """Return the pairs beyond one each of a smallest covering by triples: every point needs an even number of pairs."""
    if number % 6 in (1, 3):
        return ()
    if number % 6 == 5:
        return ((0, 1), (0, 1))
    matching = tuple((first, first + 1) for first in range(0, number, 2))
    # The number of pairs must be a multiple of three: one point takes the partners of another edge, too.
    return matching if number % 6 == 0 else ((0, 1), (0, 2), (0, 3), *matching[2:])


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


def _rng(case: Case, seed: int, purpose: str) -> np.random.Generator:
    # A generator for each case: its plan does not depend on the cases before it.
    return generator(seed, purpose, case.prompt.id, case.prompt.language or "")


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
        verdict = _oriented(judgment, is_turned=first > other)
        of_pair = verdicts[_sorted((first, other))]
        known = of_pair.get(judgment.judge, "none")
        of_pair[judgment.judge] = verdict if known in ("none", verdict) else known if verdict == "none" else "tie"
    return verdicts


def _oriented(judgment: Judgment, *, is_turned: bool) -> Verdict:
    turned: dict[Verdict, Verdict] = {"left": "right", "right": "left"}
    return turned.get(judgment.verdict, judgment.verdict) if is_turned else judgment.verdict
