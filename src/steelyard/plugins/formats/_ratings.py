"""Evidence in rows: scores as ratings, ranks as tiers, the two sides of a ranking, verdicts by the order of a row."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace

from steelyard.core.types import Case, Judgment, Kind, Ranking, Rating, Response, Verdict
from steelyard.plugins.formats._rows import OTHER_SHAPE


class RatingScale(NamedTuple):
    """The meaning of a format's number. ``rater`` is null where the rows name the rater."""

    dimension: str
    range: tuple[float, float] | None
    rater: str | None
    kind: Kind


class TakenRatings(NamedTuple):
    """The ratings that a format can write, by response and dimension, and the case with only the others."""

    ratings: Mapping[tuple[str, str], Rating]
    rest: Case

    def value(self, response: str, dimension: str) -> float | None:
        """Return the number for the response, null where there is none."""
        rating = self.ratings.get((response, dimension))
        return None if rating is None else rating.value


def rating_of(response: str, value: float, scale: RatingScale, warnings: Counter[str], **fields: Any) -> Rating:
    """Return the number as a rating, unchanged; a number outside the scale is counted."""
    if scale.range is not None and not scale.range[0] <= value <= scale.range[1]:
        warnings[f"ratings outside their scale ({scale.dimension})"] += 1
    defaults = {"rater": scale.rater, "kind": scale.kind, "dimension": scale.dimension, "range": scale.range}
    return Rating(response=response, value=value, **(defaults | fields))


def take_ratings(
    case: Case, scales: Iterable[RatingScale], dropped: Counter[str], *, keeps_meta: bool = False
) -> TakenRatings:
    """Take one rating for each response and scale: the first of that dimension and range.

    Details of a taken rating that the format cannot write are counted here; the others are left to ``count_lost``.
    """
    by_dimension = {scale.dimension: scale for scale in scales}
    taken: dict[tuple[str, str], Rating] = {}
    others: list[Rating] = []
    for rating in case.ratings:
        scale = by_dimension.get(rating.dimension)
        key = (rating.response, rating.dimension)
        if scale is None or scale.range != rating.range or key in taken:
            others.append(rating)
            continue
        taken[key] = rating
        dropped["raters"] += (rating.rater if scale.rater is not None else None, rating.kind) != (
            scale.rater,
            scale.kind,
        )
        has_details = any(value is not None for value in (rating.id, rating.task, rating.spans))
        dropped["rating details"] += has_details or bool(rating.meta and not keeps_meta)
    return TakenRatings(taken, replace(case, ratings=tuple(others)))


def tiers_of(ranks: Mapping[str, float]) -> Ranking:
    """Return the ids by their rank, smallest first; equal ranks are one tier."""
    tiers: dict[float, list[str]] = defaultdict(list)
    for name, rank in ranks.items():
        tiers[rank].append(name)
    return tuple(tuple(tiers[rank]) for rank in sorted(tiers))


def rank_of(ranking: Ranking, *, first: int = 1) -> dict[str, int]:
    """Return the rank of each id: the number of its tier."""
    return {name: number for number, tier in enumerate(ranking, first) for name in tier}


def verdict_from(first: str, judgment: Judgment) -> Verdict:
    """Return the verdict as seen from this response: ``left`` where it is the better one."""
    if judgment.left == first:
        return judgment.verdict
    turned: dict[Verdict, Verdict] = {"left": "right", "right": "left"}
    return turned.get(judgment.verdict, judgment.verdict)


def with_each(
    case: Case,
    *,
    response: Callable[[Response], Response] = lambda item: item,
    judgment: Callable[[Judgment], Judgment] = lambda item: item,
    rating: Callable[[Rating], Rating] = lambda item: item,
) -> Case:
    """Return the case with each of its parts changed, such as without the details that a format holds elsewhere."""
    return replace(
        case,
        responses=tuple(map(response, case.responses)),
        judgments=tuple(map(judgment, case.judgments)),
        ratings=tuple(map(rating, case.ratings)),
    )


class RankedSides(NamedTuple):
    """The responses of a case's two tiers."""

    better: tuple[Response, ...]
    worse: tuple[Response, ...]


def sides_of(
    case: Case, dropped: Counter[str], *, num_better: int | None = None, num_worse: int | None = None
) -> RankedSides:
    """Return the two tiers of a ranking over all responses; otherwise two empty sides, and the case is counted.

    ``num_better`` and ``num_worse`` are the sizes that a side must have, null for any size.
    """
    tiers = case.ranking or ()
    sizes = [len(tier) for tier in tiers]
    fits = (
        len(tiers) == 2
        and sum(sizes) == len(case.responses)
        and all(wanted in (None, size) for wanted, size in zip((num_better, num_worse), sizes, strict=True))
    )
    if not fits:
        dropped[OTHER_SHAPE] += 1
        return RankedSides((), ())
    by_id = {response.id: response for response in case.responses}
    return RankedSides(*(tuple(by_id[name] for name in tier) for tier in tiers))
