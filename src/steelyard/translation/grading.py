"""EASY and HARD pairs of rated translations (M-RewardBench, section 3).

Of a source's translations, ordered by the mean of their raters, the EASY pair is the best and the worst. The HARD pair
is two of the others, drawn by the seed among those whose ratings are near each other and still apart. Gaps are shares
of the width of the scale: the paper's 0.25 and 0.50 of a scale from 1 to 6 are 0.05 and 0.10. A scale without limits,
as MQM's, has the distance between the 5% and 95% quantiles of all translations as its width.

One source draws one request to translate, for both of its pairs: with equal prompts they are one unit of resampling
(`prompt_names`). Both levels take sources in one order of the seed, so that they have as many in common as possible.

Differs from: the paper wants the ratings of a HARD pair close to each other and asks for a larger least gap than for
EASY pairs, without a largest gap; here it is a setting. Its Table 1 counts 400 translation instances and its text 800,
which the sum of the table needs: 100 for each level and direction are made here. It draws 100 requests for each set of
pairs; here each source draws one. It has five translations a source; of more, all but the best and the worst can be in
a HARD pair.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import accumulate
from typing import Annotated, Literal, NamedTuple

import msgspec
import numpy as np

from steelyard.annotation.derived_judgments import NEITHER_IS_BETTER, RaterScale, rating_scale
from steelyard.core.config import Config as BaseConfig
from steelyard.core.config import Positive
from steelyard.core.errors import ConfigError, EvidenceError, RecordError
from steelyard.core.languages import LANGUAGE_NAMES, language_key, nearest_languages
from steelyard.core.numerics import derived_seed
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.text import normal_form, response_text
from steelyard.core.types import Case, Message, Prompt, Record
from steelyard.prompts.taxonomy import read_data
from steelyard.translation.passages import Passage, PassagePair
from steelyard.translation.wording import check_language

LEVELS = ("easy", "hard")
_Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
_NAMES = LANGUAGE_NAMES | {"zh-Hant": "Traditional Chinese"}
_LOW, _HIGH = 0.05, 0.95
"""The quantiles between which a scale without limits has its width."""
_TOO_FEW = "fewer than two rated translations"
_LONGEST_DIRECTION = 30
_MOST_OUTSIDE = 0.1
"""The share of ratings outside the scale above which they have another one."""
_DIGITS = 9
"""Means are compared to this many digits, as sums of tenths are not exact."""


class GradingConfig(BaseConfig, frozen=True):
    """Settings of EASY and HARD pairs. Gaps are shares of the width of the scale of the ratings."""

    easy_gap: _Share = 0.05
    """The least gap between the best and the worst translation, as a share of the scale."""
    hard_gap: _Share = 0.10
    """The least gap between the two translations of a HARD pair."""
    hard_limit: _Share = 0.20
    """The largest gap between the two translations of a HARD pair."""
    num_pairs: Positive | Literal["all"] = 100
    """The number of pairs of each level, or all that there are."""
    seed: int = 0
    """The seed of the drawn sources, pairs and requests."""
    dimension: str = ""
    """The dimension of the ratings that grade, where translations have several. Empty: the one that they have."""


class GradedPairs(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The counts of EASY and HARD pairs of one direction.

    ``width`` is that of the scale of the ratings, estimated where the scale has no limits (``is_estimated``).
    ``available`` counts the pairs of each level by which the sources can serve, ``pairs`` those that were taken.
    ``dropped`` counts the sources without a pair of the level by reason, ``noted`` observations without dropping.
    """

    direction: str
    num_sources: int
    width: float
    is_estimated: bool
    available: dict[str, int]
    pairs: dict[str, int]
    dropped: dict[str, dict[str, int]]
    noted: dict[str, int]


class _Source(NamedTuple):
    """A source with its rated translations, best first, and their mean ratings, higher for better ones."""

    case: Case
    names: tuple[str, ...]
    means: tuple[float, ...]


class _GradedPair(NamedTuple):
    better: str
    worse: str
    gap: float


def graded_pairs(cases: Iterable[Case], direction: str, config: GradingConfig) -> tuple[list[Case], GradedPairs]:
    """Return a case for each EASY and HARD pair, and the counts; ``direction`` is such as ``zh-en``.

    A pair is a ranking of two translations, with the ratings that grade it and its judgments. All sources are held in
    memory. Raises ConfigError for an unknown direction or gaps, RecordError for a source that stands twice,
    EvidenceError for ratings on several scales, and where there are fewer pairs than wanted.
    """
    languages = _languages(direction)
    if config.hard_limit < config.hard_gap:
        problem = f"hard_limit is {config.hard_limit:g}, below hard_gap, {config.hard_gap:g}"
        raise ConfigError(problem, where="grading", allowed=f"hard_limit from {config.hard_gap:g} to 1")
    noted = Counter[str]()
    sources, scale = _read_sources(cases, config, noted)
    _check_direction(sources, languages)
    width = _width(sources, scale)
    dropped = {level: Counter[str]() for level in LEVELS}
    pairs: dict[str, list[tuple[_Source, _GradedPair]]] = {level: [] for level in LEVELS}
    for source in sorted(sources, key=lambda source: derived_seed(config.seed, "source", source.case.prompt.id)):
        for level, pair in (("easy", _easy(source, config, width)), ("hard", _hard(source, config, width))):
            if isinstance(pair, str):
                dropped[level][pair] += 1
            else:
                pairs[level].append((source, pair))
    available = {level: len(candidates) for level, candidates in pairs.items()}
    num_pairs = _num_pairs(available, dropped, direction, config)
    graded = [
        _pair_case(source, pair, level, languages, config.seed)
        for level, candidates in pairs.items()
        for source, pair in candidates[: num_pairs[level]]
    ]
    counts = GradedPairs(
        direction="-".join(languages),
        num_sources=len(sources),
        width=round(width, _DIGITS),
        is_estimated=scale.range is None,
        available=available,
        pairs=num_pairs,
        dropped={level: dict(sorted(reasons.items())) for level, reasons in dropped.items()},
        noted=dict(sorted((+noted).items())),
    )
    return graded, counts


def _languages(direction: str) -> tuple[str, str]:
    """Return the codes of the source and the target language."""
    parts = tuple(map(language_key, direction.split("-")))
    allowed = "SOURCE-TARGET, such as zh-en or zho_Hant-eng_Latn"
    if len(parts) != 2:
        raise ConfigError(f"{direction!r} is not a direction", where="translation_pairs", allowed=allowed)
    for name, code in zip(direction.split("-"), parts, strict=True):
        if code not in _NAMES:
            do = f"the nearest codes: {', '.join(nearest_languages(name))}"
            raise ConfigError(f"unknown language {name!r}", where="translation_pairs", allowed=allowed, do=do)
    source, target = parts
    if source == target:
        raise ConfigError(f"{direction!r} has one language", where="translation_pairs", allowed=allowed)
    return source, target


def _read_sources(
    cases: Iterable[Case], config: GradingConfig, noted: Counter[str]
) -> tuple[list[_Source], RaterScale]:
    """Return the sources in the order of the file, and their common scale, without its rater."""
    sources: list[_Source] = []
    scale: RaterScale | None = None
    seen, dimensions = set[str](), set[str]()
    num_outside = num_ratings = 0
    for case in cases:
        if case.prompt.id in seen:
            problem = f"source {case.prompt.id!r} stands twice"
            raise RecordError(problem, do="convert one direction at a time, with an id for each source")
        seen.add(case.prompt.id)
        if not case.prompt.messages:
            raise RecordError(f"source {case.prompt.id!r} has no text", do="leave the case out")
        dimensions.update(rating.dimension for rating in case.ratings)
        ratings = tuple(each for each in case.ratings if config.dimension in ("", each.dimension))
        for rating in ratings:
            of_rating = rating_scale(rating)._replace(rater="")
            scale = scale or of_rating
            num_ratings += 1
            num_outside += scale.range is not None and not scale.range[0] <= rating.value <= scale.range[1]
            if of_rating != scale:
                problem = (
                    f"translations are rated on several scales: {_scale_text(scale)}, and {_scale_text(of_rating)}"
                )
                remedy = Remedy("grading.dimension", scale.dimension)
                if of_rating.kind != scale.kind:
                    remedy = Remedy("evidence", of_rating.kind)
                do = Advice("keep one kind of ratings, with ", remedy, " for example")
                raise EvidenceError(problem, where=f"prompt {case.prompt.id!r}", do=do)
        sources.append(_source(msgspec.structs.replace(case, ratings=ratings), config.seed, noted))
    if scale is None and dimensions:
        problem = f"no translation has a rating of the dimension {config.dimension!r}"
        raise EvidenceError(problem, where="grading.dimension", allowed=", ".join(sorted(dimensions)))
    if scale is None or scale.better == NEITHER_IS_BETTER["better"]:
        problem = "no translation has a rating" if scale is None else f"{scale.dimension!r} has no better end"
        raise EvidenceError(problem, allowed="cases with several rated translations of one source")
    if scale.range is not None and num_outside > _MOST_OUTSIDE * num_ratings:
        problem = f"{num_outside:,} of {num_ratings:,} ratings are outside their scale"
        raise EvidenceError(problem, allowed=_scale_text(scale), do="give the ratings on this scale")
    return sources, scale


def _check_direction(sources: Sequence[_Source], languages: tuple[str, str]) -> None:
    """Raise EvidenceError where a field names another direction, or most texts are not in the script of theirs."""
    expected = "-".join(languages)
    fields: dict[str, Counter[str | None]] = {}
    for source in sources:
        for name, value in (source.case.prompt.meta or {}).items():
            fields.setdefault(name, Counter())[_direction_in(value)] += 1
    for name, directions in fields.items():
        others = directions.total() - directions[expected]
        # A field of directions has nothing else.
        if others and not directions[None]:
            other = next(each for each in directions if each != expected)
            problem = f"{others:,} of {len(sources):,} sources are of {other} by the field {name!r}, not of {expected}"
            raise EvidenceError(problem, do="convert one direction at a time, from a file with its rows alone")
    pairs = [
        PassagePair(
            Passage("source", source.case.prompt.messages[-1].content, languages[0]),
            Passage("translation", response_text(source.case.responses[0]), languages[1]),
        )
        for source in sources
        if source.case.responses
    ]
    for place, of_place in (("translations", pairs), ("sources", [PassagePair(*reversed(pair)) for pair in pairs])):
        num_wrong = sum(any(each.kind == "wrong_language" for each in check_language(pair, None)) for pair in of_place)
        if num_wrong > len(of_place) / 2:
            problem = f"{num_wrong:,} of {len(of_place):,} {place} are not in the script of their language"
            raise EvidenceError(problem, where=expected, do="name the direction of the file: SOURCE-TARGET")


def _direction_in(value: object) -> str | None:
    """Return the direction that a text names, as ``de-en`` or ``de→en``; null for any other value."""
    parts = (
        re.split(r"\s*(?:->|[-–→>])\s*", value) if isinstance(value, str) and len(value) < _LONGEST_DIRECTION else []
    )
    codes = [language_key(part) for part in parts]
    return "-".join(codes) if len(codes) == 2 and all(code in _NAMES for code in codes) else None


def _scale_text(scale: RaterScale) -> str:
    limits = "without limits" if scale.range is None else f"from {scale.range[0]:g} to {scale.range[1]:g}"
    return f"{scale.dimension} by {scale.kind} raters, {limits}"


def _source(case: Case, seed: int, noted: Counter[str]) -> _Source:
    """Return the source with its translations in order; of equal texts the first one, and of ties one by the seed."""
    raters: dict[str, dict[str, list[float]]] = {}
    for rating in case.ratings:
        value = -rating.value if rating_scale(rating).better == "lower" else rating.value
        raters.setdefault(rating.response, {}).setdefault(rating.rater, []).append(value)
    means: dict[str, float] = {}
    texts = set[str]()
    most = max(map(len, raters.values()), default=0)
    for response in case.responses:
        if response.id not in raters:
            noted["translations without a rating, left out"] += 1
        elif (text := normal_form(response_text(response))) in texts:
            noted["translations with an equal text, left out"] += 1
        else:
            texts.add(text)
            values = [sum(each) / len(each) for each in raters[response.id].values()]
            means[response.id] = round(sum(values) / len(values), _DIGITS)
            noted["translations with fewer raters than others of the source"] += len(values) < most
    names = sorted(means, key=lambda name: (-means[name], derived_seed(seed, "tie", case.prompt.id, name)))
    if len(names) > 1:
        noted["sources with several best translations"] += means[names[0]] == means[names[1]]
        noted["sources with several worst translations"] += means[names[-1]] == means[names[-2]]
    return _Source(case, tuple(names), tuple(means[name] for name in names))


def _width(sources: Sequence[_Source], scale: RaterScale) -> float:
    if scale.range is not None:
        return scale.range[1] - scale.range[0]
    low, high = np.quantile([mean for source in sources for mean in source.means], (_LOW, _HIGH))
    if not high > low:
        problem = f"the scale has no limits, and the middle {_HIGH - _LOW:.0%} of its means are equal"
        raise EvidenceError(problem, allowed="translations whose mean ratings differ")
    return float(high - low)


def _easy(source: _Source, config: GradingConfig, width: float) -> _GradedPair | str:
    """Return the best and the worst translation, or why they are not a pair."""
    if len(source.names) < 2:
        return _TOO_FEW
    gap = round(source.means[0] - source.means[-1], _DIGITS)
    if gap <= 0:
        return "equal mean ratings"
    if gap < round(config.easy_gap * width, _DIGITS):
        return "gap too small"
    return _GradedPair(source.names[0], source.names[-1], gap)


def _hard(source: _Source, config: GradingConfig, width: float) -> _GradedPair | str:
    """Return two of the others by the seed, or why none fits."""
    names, means = source.names[1:-1], source.means[1:-1]
    if len(names) < 2:
        return "fewer than four rated translations"
    least, most = (round(share * width, _DIGITS) for share in (config.hard_gap, config.hard_limit))
    # Means fall, so that the partners of each translation are a range of places: linear in the number of pairs' ends.
    falling = [-mean for mean in means]
    ranges = [
        (
            max(place + 1, bisect_left(falling, round(least - mean, _DIGITS)), bisect_right(falling, -mean)),
            bisect_right(falling, round(most - mean, _DIGITS)),
        )
        for place, mean in enumerate(means)
    ]
    ends = list(accumulate(max(0, end - start) for start, end in ranges))
    if not ends[-1]:
        gap = round(means[0] - means[-1], _DIGITS)
        return "equal mean ratings" if gap <= 0 else "gap too small" if gap < least else "no gap between the limits"
    drawn = derived_seed(config.seed, "hard", source.case.prompt.id) % ends[-1]
    first = bisect_right(ends, drawn)
    second = ranges[first][1] - (ends[first] - drawn)
    return _GradedPair(names[first], names[second], round(means[first] - means[second], _DIGITS))


def _num_pairs(
    available: Mapping[str, int], without: Mapping[str, Counter[str]], direction: str, config: GradingConfig
) -> dict[str, int]:
    """Return how many pairs of each level are taken. Raises EvidenceError where there are too few."""
    numbers = " and ".join(f"{number:,} {level}" for level, number in available.items())
    fewest = min(available.values())
    if config.num_pairs == "all":
        if not any(available.values()):
            raise EvidenceError(f"no translations of {direction} are apart as the gaps ask", do="choose smaller gaps")
        return dict(available)
    if fewest < config.num_pairs:
        do = Advice("take ", Remedy("grading.num_pairs", fewest or "all"), ", or choose other gaps")
        problem = f"{direction} has {numbers} pairs, fewer than {config.num_pairs} of each"
        reasons = [
            f"{level}: {', '.join(f'{why} {number:,}' for why, number in counts.most_common())}"
            for level, counts in without.items()
            if counts
        ]
        if without["easy"][_TOO_FEW] > available["easy"]:
            do = "rows of one source have to follow each other: sort the file by source"
        raise EvidenceError("; ".join((problem, *reasons)), do=do)
    return dict.fromkeys(available, config.num_pairs)


def _pair_case(source: _Source, pair: _GradedPair, level: str, languages: tuple[str, str], seed: int) -> Case:
    """Return the case of one pair, whose prompt is the source's request to translate."""
    case, ids = source.case, {pair.better, pair.worse}
    number = derived_seed(seed, "request", case.prompt.id) % len(translation_requests())
    names = {"source": _NAMES[languages[0]], "target": _NAMES[languages[1]]}
    request = translation_requests()[number].format(**names, text=case.prompt.messages[-1].content)
    prompt = Prompt(
        id=f"{case.prompt.id}/{level}",
        messages=(*case.prompt.messages[:-1], Message(role="user", content=request)),
        # The language of the request; the answer's is in meta, where judges read it.
        language="en",
        source=case.prompt.source,
        subset="_".join((level, *languages)),
        reference=case.prompt.reference,
        meta={
            **(case.prompt.meta or {}),
            "answer_language": languages[1],
            "gap": pair.gap,
            "request": number,
            "translation_source": case.prompt.id,
        },
    )
    # Files list systems in an order that often is that of their quality.
    order = {name: derived_seed(seed, "order", prompt.id, name) for name in ids}
    responses = sorted((response for response in case.responses if response.id in ids), key=lambda one: order[one.id])
    return Case(
        prompt=prompt,
        responses=tuple(responses),
        judgments=tuple(judgment for judgment in case.judgments if {judgment.left, judgment.right} == ids),
        ratings=tuple(rating for rating in case.ratings if rating.response in ids),
        ranking=((pair.better,), (pair.worse,)),
    )


@cache
def translation_requests() -> tuple[str, ...]:
    """Return the requests to translate, with places for the names of the languages and the text."""
    return tuple(read_data("translation_prompts.toml")["templates"])
