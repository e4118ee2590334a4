"""The pairs of a case for training or testing, by the consumer's choice."""

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Literal, NamedTuple

from steelyard.core.errors import EvidenceError
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.types import Case, Pair, Response

PairChoice = Literal["tiers", "reachable", "judged", "listed"]
UNLISTED = "pairs that curation left out, added by the choice of pairs"
TIES = "ties"
"""The name under which consumers count pairs that are not among a case's listed pairs."""


class IndexedPair(NamedTuple):
    """One ordered pair; ``better`` and ``worse`` are positions in ``case.responses``."""

    better: int
    worse: int
    weight: float = 1.0
    margin: float = 0.0


def pairs_of(case: Case, choice: PairChoice | None = None) -> tuple[IndexedPair, ...]:
    """Return the case's pairs, in a fixed order. ``None`` takes the listed pairs where there are any, else the tiers.

    ``tiers``: every pair across tiers (CHEEMS, section 3.3). ``reachable``: those of them joined by a path of
    judgments from the better to the worse. ``judged``: those judged so directly and never otherwise.
    ``listed``: the case's own ``pairs``. Raises EvidenceError when the case lacks what the choice needs.
    """
    chosen = choice or ("listed" if case.pairs is not None else "tiers")
    position = {response.id: index for index, response in enumerate(case.responses)}
    if chosen == "listed":
        if case.pairs is None:
            raise EvidenceError(f"case {case.prompt.id!r} lists no pairs", do=Advice("say ", Remedy("pairs", "tiers")))
        return tuple(
            IndexedPair(
                position[pair.better],
                position[pair.worse],
                1.0 if pair.weight is None else pair.weight,
                pair.margin or 0.0,
            )
            for pair in case.pairs
        )
    across = tuple(IndexedPair(position[better], position[worse]) for better, worse in _across_tiers(case))
    if chosen == "tiers":
        return across
    if not case.judgments:
        raise EvidenceError(f"case {case.prompt.id!r} has no judgments", do=Advice("say ", Remedy("pairs", "tiers")))
    allowed = _reachable(case, position) if chosen == "reachable" else _judged(case, position)
    return tuple(pair for pair in across if (pair.better, pair.worse) in allowed)


def ties_of(case: Case, ordered: Iterable[IndexedPair]) -> tuple[IndexedPair, ...]:
    """Return the pairs that were judged equal, each once, by the positions of their responses.

    A tie needs a verdict ``tie`` on these two responses and no verdict that prefers one of them. It must not be among
    the ``ordered`` pairs, and both responses must be in one tier where the case has a ranking. Responses of one tier
    that nobody compared, or that are in a cycle, are not ties: nobody judged them equal. Without judgments or listed
    pairs the ranking is all there is, and every two responses of a tier are a tie.
    """
    position = {response.id: index for index, response in enumerate(case.responses)}
    if not case.judgments and case.pairs is None:
        tiers = (sorted(map(position.__getitem__, tier)) for tier in case.ranking or ())
        return tuple(IndexedPair(*ends) for tier in tiers for ends in combinations(tier, 2))
    tier = {name: number for number, tier in enumerate(case.ranking or ()) for name in tier}
    tied: dict[tuple[int, int], bool] = {}
    for judgment in case.judgments:
        if judgment.verdict == "none" or judgment.left == judgment.right:
            continue
        if case.ranking is not None and tier.get(judgment.left, -1) != tier.get(judgment.right, -2):
            continue
        first, second = sorted((position[judgment.left], position[judgment.right]))
        tied[first, second] = tied.get((first, second), True) and judgment.verdict == "tie"
    taken = {(min(pair[:2]), max(pair[:2])) for pair in ordered}
    return tuple(IndexedPair(*ends) for ends in sorted(tied) if tied[ends] and ends not in taken)


def best_response(case: Case) -> Response | None:
    """Return the response to imitate: the only one of the first tier, else the first better one of the listed pairs.

    Null where that one also loses a listed pair, or is not in the first tier: none of the case is then known to be the
    best.
    """
    first_tier = case.ranking[0] if case.ranking else ()
    if len(first_tier) == 1:
        name = first_tier[0]
    elif case.pairs and case.pairs[0].better not in {pair.worse for pair in case.pairs}:
        name = case.pairs[0].better
    else:
        return None
    if first_tier and name not in first_tier:
        return None
    return next(response for response in case.responses if response.id == name)


def listed_pairs(case: Case, pairs: Iterable[IndexedPair]) -> tuple[Pair, ...]:
    """Return the pairs as a case lists them, without weights and margins."""
    names = [response.id for response in case.responses]
    return tuple(Pair(better=names[pair.better], worse=names[pair.worse]) for pair in pairs)


def num_beyond_listed(case: Case, pairs: Iterable[IndexedPair]) -> int:
    """Count the pairs that curation left out: those that a case with listed pairs does not list. 0 for other cases."""
    return 0 if case.pairs is None else len(_ends(pairs) - _ends(pairs_of(case, "listed")))


def _ends(pairs: Iterable[IndexedPair]) -> set[tuple[int, int]]:
    """Return the pairs without weights and margins, which do not distinguish them."""
    return {(pair.better, pair.worse) for pair in pairs}


def _across_tiers(case: Case) -> Iterator[tuple[str, str]]:
    """Yield the ids of every two responses in different tiers, the better one first, in the order of the ranking."""
    tiers = case.ranking or ()
    for index, tier in enumerate(tiers):
        for better in tier:
            for lower in tiers[index + 1 :]:
                for worse in lower:
                    yield better, worse


def _judgment_edges(case: Case, position: dict[str, int]) -> set[tuple[int, int]]:
    """Return the edges of the preference graph, from better to worse; a tie gives one in each direction."""
    edges: set[tuple[int, int]] = set()
    for judgment in case.judgments:
        left, right = position[judgment.left], position[judgment.right]
        if judgment.verdict in ("left", "tie"):
            edges.add((left, right))
        if judgment.verdict in ("right", "tie"):
            edges.add((right, left))
    return edges


def _reachable(case: Case, position: dict[str, int]) -> set[tuple[int, int]]:
    """Return the transitive closure of the preference graph (Warshall's algorithm)."""
    edges = _judgment_edges(case, position)
    for middle in position.values():
        into = [start for start, end in edges if end == middle]
        out_of = [end for start, end in edges if start == middle]
        edges |= {(start, end) for start in into for end in out_of}
    return edges


def _judged(case: Case, position: dict[str, int]) -> set[tuple[int, int]]:
    """Return the edges of the preference graph without an edge in the other direction."""
    edges = _judgment_edges(case, position)
    return {(better, worse) for better, worse in edges if (worse, better) not in edges}
