"""Ratings as targets of training: their dimensions, the scale that they share, and the mean over raters.

A response's rating is a weighted sum over dimensions of its mean over raters. Targets of a loss with the identity link
are standardised by the mean and spread of the training data, or relative to the mean of their prompt; those with the
logistic link are shares of the range.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite, sqrt
from typing import NamedTuple

from steelyard.core.errors import ConfigError, EvidenceError, choices
from steelyard.core.remedies import CASES, Advice, Command, Remedy
from steelyard.core.text import number_of, verb_for
from steelyard.core.types import Case, Rating
from steelyard.networks.settings import RatingCenter, RatingLink, TargetScale
from steelyard.ranking.pairs import IndexedPair

Dimensions = str | dict[str, float] | None
Range = tuple[float, float]
_NUM_NAMED = 3


class IndexedRating(NamedTuple):
    """The target of one response, by its position, with its number of raters as the weight."""

    response: int
    target: float
    weight: float


class RatedResponse(NamedTuple):
    """The rating of one response in the unit of the ratings, and the number of raters behind it."""

    response: int
    value: float
    num_raters: float


def check_dimensions(dimensions: Dimensions) -> None:
    """Raise ConfigError for a table of dimensions that is empty or has a weight of 0."""
    if not isinstance(dimensions, dict):
        return
    if not dimensions or any(not isfinite(weight) or weight == 0 for weight in dimensions.values()):
        raise ConfigError(
            f"dimensions is {dimensions}",
            where="train",
            allowed="a table of dimensions with weights other than 0, as {helpfulness = 1.0}",
        )


def rating_scale(
    cases: Sequence[Case],
    dimensions: Dimensions,
    link: RatingLink,
    *,
    center: RatingCenter = "data",
    where: str,
    table: str = "",
) -> TargetScale:
    """Return the scale of the training cases' ratings.

    Different ranges of one dimension are mapped linearly to its commonest. ``table`` precedes the settings that an
    error names, as ``model.`` does for those of a model. Raises EvidenceError for cases without ratings of these
    dimensions, for ratings outside their range, and where all ratings (of every prompt, with the center ``prompt``)
    are equal.
    """
    weights = _weights_of(cases, dimensions, where=where, table=table)
    ranges: dict[str, Range | None] = {dimension: _common_range(cases, dimension) for dimension in weights}
    _check_ranges(cases, ranges, where=where)
    if link == "logistic":
        ranges = {dimension: ranges[dimension] or _unit_range(cases, dimension, where) for dimension in weights}
    ends = [(weights[name] * scale[0], weights[name] * scale[1]) for name, scale in ranges.items() if scale is not None]
    is_bounded = len(ends) == len(weights)
    by_case = [tuple(rated_responses(case, weights, ranges)) for case in cases]
    if center == "prompt":
        if not any(len({response.value for response in rated}) > 1 for rated in by_case):
            raise EvidenceError(
                f"no prompt has two responses with different ratings of {', '.join(weights)}",
                where=where,
                do=Advice("compare ratings over prompts: ", Remedy(f"{table}rating_center", "data")),
            )
        by_case = [relative_to_prompt(rated) for rated in by_case]
    rated = [response for responses in by_case for response in responses]
    if len({response.value for response in rated}) < 2:
        problem = f"no response has a rating of each dimension: {', '.join(weights)}"
        if rated:
            verb = verb_for(len(rated), "is", "are all")
            problem = f"{number_of(len(rated), 'rated response')} {verb} {rated[0].value:g}: nothing can be learned"
        raise EvidenceError(problem, where=where, allowed="two responses or more with different ratings")
    total = sum(response.num_raters for response in rated)
    mean = sum(response.num_raters * response.value for response in rated) / total if center == "data" else 0.0
    variance = sum(response.num_raters * (response.value - mean) ** 2 for response in rated) / total
    return TargetScale(
        dimensions=weights,
        ranges=ranges,
        lowest=sum(map(min, ends)) if is_bounded else None,
        highest=sum(map(max, ends)) if is_bounded else None,
        mean=mean,
        spread=sqrt(variance),
        num_ratings=len(rated),
        link=link,
        center=center,
    )


def check_ratings(cases: Iterable[Case], scale: TargetScale, *, where: str) -> None:
    """Raise EvidenceError for ratings outside their range, or outside that of the training data if they have none."""
    _check_ranges(cases, scale.ranges, where=where)


def rated_responses(
    case: Case, weights: Mapping[str, float], ranges: Mapping[str, Range | None]
) -> Iterator[RatedResponse]:
    """Yield the responses with a rating of every dimension, in their order."""
    by_dimension: dict[tuple[str, str], dict[str, list[float]]] = {}
    for rating in case.ratings:
        if rating.dimension in weights:
            of_raters = by_dimension.setdefault((rating.response, rating.dimension), {})
            of_raters.setdefault(rating.rater, []).append(_mapped(rating, ranges[rating.dimension]))
    for place, response in enumerate(case.responses):
        raters = {name: by_dimension.get((response.id, name)) for name in weights}
        if not all(raters.values()):
            continue
        # A rater who rated a response twice is one rater.
        means = {
            name: [sum(values) / len(values) for values in (of_raters or {}).values()]
            for name, of_raters in raters.items()
        }
        value = sum(weights[name] * sum(of_raters) / len(of_raters) for name, of_raters in means.items())
        # The number of raters with the variance of this sum, for equal variances in all dimensions.
        squares = sum(weight**2 for weight in weights.values())
        yield RatedResponse(
            place, value, squares / sum(weight**2 / len(means[name]) for name, weight in weights.items())
        )


def targets_of(case: Case, scale: TargetScale) -> tuple[IndexedRating, ...]:
    """Return the targets of the case's rated responses; none of a single one that is relative to its prompt."""
    rated = tuple(rated_responses(case, scale.dimensions, scale.ranges))
    return tuple(
        IndexedRating(response.response, target_of(response.value, scale), response.num_raters)
        for response in (relative_to_prompt(rated) if scale.center == "prompt" else rated)
    )


def relative_to_prompt(rated: Sequence[RatedResponse]) -> tuple[RatedResponse, ...]:
    """Return the ratings of one prompt minus their mean over its raters; none where one response alone is rated."""
    if len(rated) < 2:
        return ()
    total = sum(response.num_raters for response in rated)
    mean = sum(response.num_raters * response.value for response in rated) / total
    return tuple(response._replace(value=response.value - mean) for response in rated)


def target_of(value: float, scale: TargetScale) -> float:
    """Return a rating as the loss reads it: in standard deviations from the mean, or as a share of the range."""
    if scale.link == "identity":
        return (value - scale.mean) / scale.spread
    assert scale.lowest is not None
    assert scale.highest is not None
    return (value - scale.lowest) / (scale.highest - scale.lowest)


def pairs_by_ratings(ratings: Sequence[IndexedRating]) -> tuple[IndexedPair, ...]:
    """Return every pair of responses with different ratings, the higher one as the better."""
    return tuple(
        IndexedPair(first.response, second.response)
        for first in ratings
        for second in ratings
        if first.target > second.target
    )


def scale_sentence(cases: Iterable[Case], scale: TargetScale) -> str:
    """Return the ratings that are trained on in one line, with their origin and what was mapped to another range."""
    chosen = [rating for case in cases for rating in case.ratings if rating.dimension in scale.dimensions]
    kinds = Counter(rating.kind for rating in chosen)
    names = ", ".join(
        name if weight == 1 else f"{weight:g} {name}" for name, weight in sorted(scale.dimensions.items())
    )
    mapped = sum(rating.range is not None and rating.range != scale.ranges[rating.dimension] for rating in chosen)
    bounds = "" if scale.lowest is None else f", from {scale.lowest:g} to {scale.highest:g}"
    others = f"; {number_of(mapped, 'rating')} of other ranges {verb_for(mapped, 'is', 'are')} mapped to it"
    center = ", less the mean of their prompt" if scale.center == "prompt" else ""
    return (
        f"ratings of {names}{bounds}{center}: {number_of(scale.num_ratings, 'response')} by "
        f"{', '.join(f'{number:,} {kind}' for kind, number in sorted(kinds.items()))} ratings, mean {scale.mean:.3f}, "
        f"standard deviation {scale.spread:.3f}{others if mapped else ''}"
    )


def _weights_of(cases: Iterable[Case], dimensions: Dimensions, *, where: str, table: str) -> dict[str, float]:
    """Return the weight of each dimension. Raises EvidenceError for one that no case has."""
    available = Counter(rating.dimension for case in cases for rating in case.ratings)
    if not available:
        raise EvidenceError(
            "no case has a rating",
            where=where,
            do=Advice("train on pairs: ", Remedy(f"{table}loss", "bradley-terry")),
        )
    if dimensions is None:
        if len(available) > 1:
            raise EvidenceError(
                f"the cases are rated in several dimensions: {', '.join(sorted(available))}",
                where=where,
                do=Advice("choose one: ", Remedy(f"{table}dimensions", available.most_common(1)[0][0])),
            )
        return dict.fromkeys(available, 1.0)
    weights = {dimensions: 1.0} if isinstance(dimensions, str) else dimensions
    for dimension in weights:
        if dimension not in available:
            raise EvidenceError(
                f"no case has a rating of {dimension!r}", where=where, allowed=choices(dimension, sorted(available))
            )
    return dict(weights)


def _common_range(cases: Iterable[Case], dimension: str) -> Range | None:
    """Return the range of most ratings of a dimension that have any; of equally common ones the first."""
    ranges = Counter(
        rating.range
        for case in cases
        for rating in case.ratings
        if rating.dimension == dimension and rating.range is not None
    )
    return ranges.most_common(1)[0][0] if ranges else None


def _unit_range(cases: Iterable[Case], dimension: str, where: str) -> Range:
    """Return 0 to 1 for ratings without a range that lie within it. Raises EvidenceError for others."""
    values = [rating.value for case in cases for rating in case.ratings if rating.dimension == dimension]
    if all(0 <= value <= 1 for value in values):
        return (0.0, 1.0)
    raise EvidenceError(
        f"the ratings of {dimension!r} have no range, and lie from {min(values):g} to {max(values):g}",
        where=where,
        allowed="ratings with a range, or from 0 to 1",
        do=Advice("give every rating its range, or use ", Remedy("loss", "mean-squared-error")),
    )


def _check_ranges(cases: Iterable[Case], ranges: Mapping[str, Range | None], *, where: str) -> None:
    faults: list[str] = []
    for case in cases:
        for rating in case.ratings:
            scale = rating.range or ranges.get(rating.dimension)
            if rating.dimension not in ranges or scale is None:
                continue
            if not (scale[0] < scale[1] and scale[0] <= rating.value <= scale[1]):
                place = f"{case.prompt.id} / {rating.response}"
                faults.append(f"{place} ({rating.dimension} {rating.value:g} on {scale[0]:g} to {scale[1]:g})")
    if faults:
        more = f" and {len(faults) - _NUM_NAMED} more" if len(faults) > _NUM_NAMED else ""
        raise EvidenceError(
            f"{number_of(len(faults), 'rating')} {verb_for(len(faults), 'is', 'are')} outside "
            f"{verb_for(len(faults), 'its range', 'their ranges')}: {', '.join(faults[:_NUM_NAMED])}{more}",
            where=where,
            allowed="ranges from a lower to a higher number, and ratings within them",
            do=Advice("correct the rows; ", Command("inspect", (CASES,)), " shows them"),
        )


def _mapped(rating: Rating, common: Range | None) -> float:
    """Return the number of a rating on the common range of its dimension."""
    if rating.range is None or common is None or rating.range == common:
        return rating.value
    share = (rating.value - rating.range[0]) / (rating.range[1] - rating.range[0])
    return common[0] + share * (common[1] - common[0])
