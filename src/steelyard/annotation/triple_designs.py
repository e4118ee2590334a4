"""Which responses are shown together in one task: triples of a design, and the plan after responses were discarded.

Up to five responses the design is the circular one of CHEEMS (section 3.2); beyond, it covers every pair in the fewest
triples. A response that people take out leaves its design with gaps, which as few further tasks as possible close.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Container, Sequence
from functools import cache
from itertools import combinations, count
from typing import Literal, NamedTuple

import numpy as np

from steelyard.core.comparison import Triple, circular_triples
from steelyard.core.errors import ConfigError
from steelyard.core.numerics import generator
from steelyard.core.types import Case

TripleDesign = Literal["covering", "circular"]
_Pair = tuple[int, int]
_LARGEST_CIRCULAR = 5
"""Up to this number of responses circular triples compare every pair."""


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
    place = generator(seed, "triples", case.prompt.id, case.prompt.language or "").permutation(number).tolist()
    return tuple((place[first], place[second], place[third]) for first, second, third in covering_triples(number))


class Replan(NamedTuple):
    """What becomes of a design when responses leave it.

    ``staying`` and ``retiring`` are places in the design; ``added`` are new tasks, three responses each, or two where
    no more remain; ``remaining`` are the responses that are left, in the order in which the design names them first.
    """

    staying: tuple[int, ...]
    retiring: tuple[int, ...]
    added: tuple[tuple[str, ...], ...]
    remaining: tuple[str, ...]


def replan(design: Sequence[Sequence[str]], discarded: Container[str]) -> Replan:
    """Return the tasks over the responses that remain: a task stays, with its answers, if all that it shows remain.

    Pairs that no staying task compares are covered by new ones. Each new task is the one that covers the most of them,
    among these the one whose responses were shown least so far. Two remaining responses are one task of two; a single
    one has nothing to be compared with.
    """
    every = tuple(dict.fromkeys(response for task in design for response in task))
    remaining = tuple(response for response in every if response not in discarded)
    staying = [place for place, task in enumerate(design) if all(response in remaining for response in task)]
    retiring = tuple(place for place in range(len(design)) if place not in staying)
    tasks = [tuple(design[place]) for place in staying]
    open_pairs = set(map(frozenset, combinations(remaining, 2)))
    open_pairs -= {frozenset(pair) for task in tasks for pair in combinations(task, 2)}
    added: list[tuple[str, ...]] = []
    while open_pairs:
        task = _best_task(remaining, open_pairs, Counter(response for task in (*tasks, *added) for response in task))
        added.append(task)
        open_pairs -= set(map(frozenset, combinations(task, 2)))
    return Replan(tuple(staying), retiring, tuple(added), remaining)


def _best_task(
    remaining: Sequence[str], open_pairs: Collection[frozenset[str]], num_shown: Counter[str]
) -> tuple[str, ...]:
    place = {response: number for number, response in enumerate(remaining)}
    # Only tasks with an open pair: all of them, for hundreds of responses, are millions.
    tasks = {
        tuple(sorted({*pair, third}, key=place.__getitem__))
        for pair in open_pairs
        for third in remaining
        if third not in pair or len(remaining) == 2
    }

    def merit(task: tuple[str, ...]) -> tuple[int, int]:
        num_open = sum(frozenset(pair) in open_pairs for pair in combinations(task, 2))
        return num_open, -sum(num_shown[response] for response in task)

    # The first of equals: the plan depends on nothing but the design.
    return max(sorted(tasks, key=lambda task: [place[response] for response in task]), key=merit)


@cache
def covering_triples(number: int) -> tuple[Triple, ...]:
    """Return a smallest set of triples with every pair of ``number`` points in at least one of them.

    Their number is Schönheim's bound, ceil(n / 3 * ceil((n - 1) / 2)). Pairs that occur more than once are as few as
    possible: none where ``number`` is 1 or 3 modulo 6, one pair three times where it is 5 modulo 6, else about one for
    every two points. The multigraph of all pairs and these repeats is divided into triangles by hill climbing: a triple
    is added, and the one that it contradicts is removed (Stinson 1985, for Steiner triple systems).

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
        self.of_pair: defaultdict[_Pair, list[Triple]] = defaultdict(list)

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
            contradicting = self.of_pair[(min(first, other), max(first, other))]
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


def _repeated_pairs(number: int) -> tuple[_Pair, ...]:
    """Return the pairs beyond one each of a smallest covering by triples: every point needs an even number of pairs."""
    if number % 6 in (1, 3):
        return ()
    if number % 6 == 5:
        return ((0, 1), (0, 1))
    matching = tuple((first, first + 1) for first in range(0, number, 2))
    # The number of pairs must be a multiple of three: one point takes the partners of another edge, too.
    return matching if number % 6 == 0 else ((0, 1), (0, 2), (0, 3), *matching[2:])
