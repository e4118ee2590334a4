"""Which responses are shown together in one task: triples of a design, and the plan after responses were discarded.

Up to five responses the design is the circular one of CHEEMS (section 3.2); beyond, it covers every pair in the fewest
triples. A response that people take out leaves its design with gaps, which as few further tasks as possible close.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Container, Sequence
from functools import cache
from itertools import combinations
from typing import Literal, NamedTuple

from steelyard.core.comparison import Triple, circular_triples
from steelyard.core.errors import ConfigError
from steelyard.core.numerics import generator
from steelyard.core.types import Case

TripleDesign = Literal["covering", "circular"]
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
    """A design after responses have left it.

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
    retiring = tuple(place for place, task in enumerate(design) if any(response in discarded for response in task))
    staying = tuple(sorted(set(range(len(design))) - set(retiring)))
    tasks = [tuple(design[place]) for place in staying]
    open_pairs = set(map(frozenset, combinations(remaining, 2)))
    open_pairs -= {frozenset(pair) for task in tasks for pair in combinations(task, 2)}
    added: list[tuple[str, ...]] = []
    num_shown = Counter(response for task in tasks for response in task)
    while open_pairs:
        task = _best_task(remaining, open_pairs, num_shown)
        added.append(task)
        num_shown.update(task)
        open_pairs -= set(map(frozenset, combinations(task, 2)))
    return Replan(staying, retiring, tuple(added), remaining)


def _best_task(
    remaining: Sequence[str], open_pairs: Collection[frozenset[str]], num_shown: Counter[str]
) -> tuple[str, ...]:
    place = {response: number for number, response in enumerate(remaining)}
    partners: defaultdict[str, set[str]] = defaultdict(set)
    for first, other in open_pairs:
        partners[first].add(other)
        partners[other].add(first)
    # All tasks of hundreds of responses are millions: those with three open pairs, else two, else one.
    tasks = {(*pair, third) for pair in open_pairs for third in set.intersection(*(partners[each] for each in pair))}
    if not tasks:
        tasks = {(*pair, third) for pair in open_pairs for each in pair for third in partners[each] - pair}
    if not tasks:
        # Beside a pair, one of the three least shown: the pair may have two of these itself.
        least = sorted(remaining, key=lambda each: (num_shown[each], place[each]))[:3]
        tasks = {(*pair, *[each for each in least if each not in pair][:1]) for pair in open_pairs}

    def order(task: tuple[str, ...]) -> tuple[int, list[int]]:
        # The first of equals: the plan depends on nothing but the design.
        return sum(num_shown[each] for each in task), sorted(place[each] for each in task)

    return tuple(sorted(min(tasks, key=order), key=place.__getitem__))


@cache
def covering_triples(number: int) -> tuple[Triple, ...]:
    """Return a smallest set of triples with every pair of ``number`` points in at least one of them.

    Their number is Schönheim's bound, ceil(n / 3 * ceil((n - 1) / 2)). Pairs that occur more than once are as few as
    possible: none where ``number`` is 1 or 3 modulo 6, one pair three times where it is 5 modulo 6, else about one for
    every two points. The time is that of writing the triples down.

    Raises ConfigError below three points.
    """
    if number < 3:
        raise ConfigError(f"{number} responses", where="triples", allowed="3 or more: a task shows three")
    odd = number if number % 2 else number - 1
    triples, has_gap = _steiner_triples(odd), odd % 6 == 5
    if has_gap:
        corners = (*range(_LARGEST_CIRCULAR), odd)
        covering = _FIVE if odd == number else _SIX
        triples += [(corners[first], corners[second], corners[third]) for first, second, third in covering]
    if odd != number:
        # The last point beside two others each time; of an odd number of these one comes twice.
        others = range(_LARGEST_CIRCULAR, odd) if has_gap else (*range(odd), 0)
        triples += [(first, other, odd) for first, other in zip(others[::2], others[1::2], strict=True)]
    return tuple(sorted((min(each), sum(each) - min(each) - max(each), max(each)) for each in triples))


_FIVE: tuple[Triple, ...] = ((0, 1, 2), (0, 1, 3), (0, 1, 4), (2, 3, 4))
"""A smallest covering of five points."""
_SIX: tuple[Triple, ...] = ((0, 1, 2), (0, 1, 3), (0, 4, 5), (1, 4, 5), (2, 3, 4), (2, 3, 5))
"""A smallest covering of six points."""


def _steiner_triples(number: int) -> list[Triple]:
    """Return triples that contain every pair of an odd number of points once.

    Where ``number`` is 5 modulo 6 the pairs of the points 0 to 4 are in none of them. The points are three levels of a
    commutative quasigroup and at most two further ones (Bose 1939 for 3 modulo 6, Skolem 1958 for 1, and the design of
    Lindner and Rodger's Design Theory for 5).
    """
    order, num_further = divmod(number, 3)
    half = order // 2

    def point(element: int, level: int) -> int:
        return num_further + 3 * (element % order) + level % 3

    def product(first: int, other: int) -> int:
        total = (first + other) % order
        if order % 2:
            return total * (half + 1) % order  # idempotent
        return total // 2 + half * (total % 2)  # the square of each element and of that ``half`` above it is the lower

    # The third level leads to the first: for 5 modulo 6 each element but 0 to the next one.
    following = [0, *range(2, order), 1] if num_further == 2 else range(order)
    triples: list[Triple] = []
    for first, other in combinations(range(order), 2):
        joined = product(first, other)
        for level, target in enumerate((joined, joined, following[joined])):
            triples.append((point(first, level), point(other, level), point(target, level + 1)))
    if num_further < 2:
        triples += [(point(each, 0), point(each, 1), point(each, 2)) for each in range(half if num_further else order)]
    if num_further == 1:
        triples += [
            (0, point(each + half, level), point(each, level + 1)) for each in range(half) for level in range(3)
        ]
    if num_further == 2:
        # The pairs between levels that are left are a circle of even length: its edges alternate.
        triples += [
            ((3 * each + level) % 2, point(each, level), point(target, level + 1))
            for each in range(1, order)
            for level, target in enumerate((each, each, following[each]))
        ]
    return triples
