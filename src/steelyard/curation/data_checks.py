"""Data to check: pairs whose label a model disputes, duplicates, and lengths of answers that stand out.

The model of `disputed_pairs` must not have been trained on the prompts that it scores: a model that has read a wrong
label agrees with it. Nothing here changes or drops data.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from steelyard.annotation.case_answers import RatersSummary
from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError
from steelyard.core.numerics import Floats, Integers
from steelyard.core.text import normal_form, num_characters, number_of, response_text, verb_for
from steelyard.core.types import Case, Record, Scores
from steelyard.prompts.near_duplicates import Links, comparable_prompts, conversation_text, near_duplicates
from steelyard.ranking.judgment_table import EVERYTHING, Only, distinct_judgments
from steelyard.ranking.pairs import PairChoice, pairs_of
from steelyard.statistics.groups import prompt_names, units_of
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.unit_bootstrap import number_units, share_of

MOST_LISTED = 100
"""Number of findings of each kind that the summary lists; all are counted."""
NGRAMS = "ngram"
"""The name of the model in folds that is used where no scores are given."""
LENGTH_EDGES = (0, 1, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000)
"""The lower ends of the bins of answer lengths, in code points; 0 are empty answers."""
_FENCES = 3.0
"""An answer is extreme if log(1 + length) lies this many interquartile ranges outside the quartiles (Tukey, 1977)."""

_FEWEST_PROMPTS = 20


class Config(BaseConfig, frozen=True):
    """Settings of an audit."""

    pairs: PairChoice | None = None
    """Which pairs are the labels. Default: the pairs that a case lists, or else every pair across tiers."""
    confidence: float = 0.8
    """The probability that a label is wrong from which its pair is called a suspect, by the model's margin."""
    near_duplicates: float = 0.8
    """The similarity of prompts (Jaccard, of character shingles) from which they are duplicates."""
    folds: int = 5
    """The number of folds, by which a prompt is scored by a model without it."""
    only: Only = EVERYTHING
    """The judgments whose conflicts and raters count."""


def check_settings(config: Config) -> None:
    """Raise ConfigError for settings outside their ranges."""
    if not 0.5 < config.confidence < 1:
        raise ConfigError(f"confidence is {config.confidence}", where="audit", allowed="above 0.5 and below 1")
    if not 0 < config.near_duplicates <= 1:
        raise ConfigError(f"near_duplicates is {config.near_duplicates}", where="audit", allowed="above 0, at most 1")
    if config.folds < 2:
        raise ConfigError(f"folds is {config.folds}", where="audit", allowed="2 or more")


def lack_of_prompts(pairs: "LabelledPairs") -> str | None:
    """Return why the labels are too few for a model to dispute them, null where they are enough."""
    num_prompts = len(np.unique(pairs.unit))
    if num_prompts >= _FEWEST_PROMPTS:
        return None
    have = verb_for(num_prompts, "has", "have")
    return f"{number_of(num_prompts, 'prompt')} {have} an ordered pair, {_FEWEST_PROMPTS} are needed"


class DisputedPair(Record, frozen=True, kw_only=True):
    """A labelled pair that a model orders the other way. ``probability``: that the label is right, by its margin.

    ``num_for`` and ``num_against`` count the strict judgments on the pair; null without judgments in the file.
    """

    prompt: str
    language: str | None
    better: str
    worse: str
    probability: float
    margin: float
    num_for: int | None = None
    num_against: int | None = None


class DisputedPairs(Record, frozen=True, kw_only=True):
    """The labels that a model disputes, the least probable first. ``accuracy``: pairs ordered as labelled.

    ``model`` is the file of the scores, or `NGRAMS`. ``num_suspects``: those whose label is right with a probability
    of at most 1 minus the confidence. ``inverse_temperature`` turns margins into probabilities. ``num_unscored`` pairs
    have no scores.
    """

    model: str
    confidence: float
    num_pairs: int
    num_unscored: int
    accuracy: Estimate
    inverse_temperature: float
    num_disputed: int
    num_suspects: int
    listed: tuple[DisputedPair, ...]


class DuplicatePrompts(Record, frozen=True, kw_only=True):
    """Prompts that are near-duplicates, linked directly or through others: their keys."""

    prompts: tuple[tuple[str, str | None], ...]


class EqualResponses(Record, frozen=True, kw_only=True):
    """Responses of one prompt with one text; ``is_ordered`` if a label ranks one of them above another."""

    prompt: str
    language: str | None
    responses: tuple[str, ...]
    is_ordered: bool


class Duplicates(Record, frozen=True, kw_only=True):
    """Near-duplicate prompts, equal responses of one prompt, and texts that are a response to several prompts."""

    threshold: float
    num_prompt_groups: int
    num_prompts_in_groups: int
    prompt_groups: tuple[DuplicatePrompts, ...]
    num_equal_responses: int
    num_equal_and_ordered: int
    equal_responses: tuple[EqualResponses, ...]
    num_texts_of_several_prompts: int


class LengthGroup(Record, frozen=True, kw_only=True):
    """The lengths of the responses of one author (or of those without one), in code points."""

    author: str | None
    num_responses: int
    median: float
    num_empty: int


class OddLength(Record, frozen=True, kw_only=True):
    """An empty response, or one of an extreme length."""

    prompt: str
    language: str | None
    response: str
    length: int


class Lengths(Record, frozen=True, kw_only=True):
    """Lengths of responses: by the bins of `LENGTH_EDGES` for the better and the worse of all pairs, and by author."""

    edges: tuple[int, ...]
    better: tuple[int, ...]
    worse: tuple[int, ...]
    authors: tuple[LengthGroup, ...]
    num_empty: int
    num_extreme: int
    odd: tuple[OddLength, ...]


class ConflictedPrompt(Record, frozen=True, kw_only=True):
    """A prompt whose judgments conflict: how many of how many, and its shortest cycle, as ``A > B > C > A``.

    ``cycle`` has the ids, and ``shown`` the letters of the responses in the order of the case.
    """

    prompt: str
    language: str | None
    num_conflicting: int
    num_judgments: int
    shown: str
    cycle: tuple[str, ...]


class AuditSummary(Record, frozen=True, kw_only=True):
    """The summary of a run of ``audit``. Lists have up to 100 entries, and all are counted.

    ``disputed`` is null without labels of 20 prompts, and ``why_not_disputed`` is the reason. ``raters`` is null where
    no prompt has verdicts of two raters. ``num_unranked`` prompts have judgments, and neither a ranking nor pairs.
    """

    num_cases: int
    num_conflicted: int
    conflicted: tuple[ConflictedPrompt, ...]
    disputed: DisputedPairs | None
    why_not_disputed: str | None
    duplicates: Duplicates
    lengths: Lengths
    raters: RatersSummary | None = None
    num_unranked: int = 0


class LabelledPairs(NamedTuple):
    """Pairs by the position of their case, and of their responses in it; all arrays have shape (pair,).

    ``unit``: prompts of one id or one text are one (`units_of`).
    """

    case: Integers
    better: Integers
    worse: Integers
    unit: Integers


def labelled_pairs(cases: Sequence[Case], choice: PairChoice | None) -> LabelledPairs:
    """Return the pairs of all cases."""
    rows = [(place, pair.better, pair.worse) for place, case in enumerate(cases) for pair in pairs_of(case, choice)]
    case, better, worse = np.array(rows, np.int64).reshape(-1, 3).T
    unit = number_units(units_of(list(map(prompt_names, cases))))
    return LabelledPairs(case, better, worse, unit[case])


def label_margins(cases: Sequence[Case], pairs: LabelledPairs, scores: Iterable[Scores]) -> Floats:
    """Return the score of each pair's better response minus that of the worse; NaN where one has none."""
    values = [
        np.array([scored.scores.get(response.id) for response in case.responses], np.float64)  # null becomes NaN
        for case, scored in zip(cases, scores, strict=True)
    ]
    ends = zip(pairs.case.tolist(), pairs.better.tolist(), pairs.worse.tolist(), strict=True)
    return np.array([values[case][better] - values[case][worse] for case, better, worse in ends], np.float64)


def disputed_pairs(
    cases: Sequence[Case],
    pairs: LabelledPairs,
    margin: Floats,
    inverse_temperature: float,
    *,
    model: str,
    confidence: float,
) -> tuple[DisputedPairs, tuple[DisputedPair, ...]]:
    """Return the summary of the disputed labels, and all of them, the least probable first."""
    is_scored = ~np.isnan(margin)
    probability = 1 / (1 + np.exp(-inverse_temperature * np.where(is_scored, margin, 0.0)))
    disputed = np.flatnonzero(is_scored & (margin < 0))
    disputed = disputed[np.argsort(margin[disputed], kind="stable")]
    votes = {place: _strict_votes(cases[place]) for place in set(pairs.case[disputed].tolist())}
    rows = tuple(
        _disputed(
            cases[place],
            (int(pairs.better[at]), int(pairs.worse[at])),
            votes[place],
            probability=float(probability[at]),
            margin=float(margin[at]),
        )
        for place, at in zip(pairs.case[disputed].tolist(), disputed.tolist(), strict=True)
    )
    summary = DisputedPairs(
        model=model,
        confidence=confidence,
        num_pairs=len(margin),
        num_unscored=int((~is_scored).sum()),
        accuracy=share_of(pairs.unit, is_scored, margin > 0, seed=0),
        inverse_temperature=inverse_temperature,
        num_disputed=len(rows),
        num_suspects=sum(row.probability <= 1 - confidence for row in rows),
        listed=rows[:MOST_LISTED],
    )
    return summary, rows


def _strict_votes(case: Case) -> Counter[tuple[str, str]]:
    """Return how many strict judgments prefer the first response to the second."""
    return Counter(
        (judgment.left, judgment.right) if judgment.verdict == "left" else (judgment.right, judgment.left)
        for judgment in distinct_judgments(case.judgments)
        if judgment.verdict in ("left", "right")
    )


def _disputed(
    case: Case, pair: tuple[int, int], votes: Counter[tuple[str, str]], *, probability: float, margin: float
) -> DisputedPair:
    better, worse = (case.responses[place].id for place in pair)
    return DisputedPair(
        prompt=case.prompt.id,
        language=case.prompt.language,
        better=better,
        worse=worse,
        probability=probability,
        margin=margin,
        num_for=votes[better, worse] if case.judgments else None,
        num_against=votes[worse, better] if case.judgments else None,
    )


def find_duplicates(cases: Sequence[Case], pairs: LabelledPairs, threshold: float) -> Duplicates:
    """Return the duplicates among prompts (see `comparable_prompts`) and responses, in any script."""
    links = Links(len(cases))
    comparable: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, case in enumerate(cases):
        comparable[comparable_prompts(case.prompt)].append(place)
    for places in comparable.values():
        for pair in near_duplicates([conversation_text(cases[place].prompt) for place in places], threshold):
            links.join(places[pair.first], places[pair.second])
    groups = sorted((group for group in links.groups() if len(group) > 1), key=lambda group: -len(group))
    ordered = set(zip(*(column.tolist() for column in pairs[:3]), strict=True))
    equal: list[EqualResponses] = []
    units_of_text: dict[str, set[str]] = defaultdict(set)
    for place, (case, unit) in enumerate(zip(cases, units_of(list(map(prompt_names, cases))), strict=True)):
        by_text: dict[str, list[int]] = defaultdict(list)
        for position, response in enumerate(case.responses):
            text = normal_form(response_text(response))
            by_text[text].append(position)
            if text:
                units_of_text[text].add(unit)
        equal += [
            EqualResponses(
                prompt=case.prompt.id,
                language=case.prompt.language,
                responses=tuple(case.responses[position].id for position in positions),
                is_ordered=any((place, first, second) in ordered for first in positions for second in positions),
            )
            for positions in by_text.values()
            if len(positions) > 1
        ]
    equal.sort(key=lambda group: not group.is_ordered)
    return Duplicates(
        threshold=threshold,
        num_prompt_groups=len(groups),
        num_prompts_in_groups=sum(map(len, groups)),
        prompt_groups=tuple(
            DuplicatePrompts(prompts=tuple(cases[place].key for place in group)) for group in groups[:MOST_LISTED]
        ),
        num_equal_responses=len(equal),
        num_equal_and_ordered=sum(group.is_ordered for group in equal),
        equal_responses=tuple(equal[:MOST_LISTED]),
        num_texts_of_several_prompts=sum(len(units) > 1 for units in units_of_text.values()),
    )


def measure_lengths(cases: Sequence[Case], pairs: LabelledPairs) -> Lengths:
    """Return the lengths of the responses; white space alone counts as empty."""
    lengths = [
        np.array([num_characters(each) if response_text(each).strip() else 0 for each in case.responses], np.int64)
        for case in cases
    ]
    sides = [
        np.array([lengths[case][place] for case, place in zip(pairs.case.tolist(), column.tolist(), strict=True)])
        for column in (pairs.better, pairs.worse)
    ]
    odd, num_empty, num_extreme = _odd_lengths(cases, lengths)
    return Lengths(
        edges=LENGTH_EDGES,
        better=_binned(sides[0]),
        worse=_binned(sides[1]),
        authors=_authors(cases, lengths),
        num_empty=num_empty,
        num_extreme=num_extreme,
        odd=odd,
    )


def _binned(lengths: Integers) -> tuple[int, ...]:
    places = np.searchsorted(LENGTH_EDGES, lengths, side="right") - 1
    return tuple(np.bincount(places.astype(np.int64), minlength=len(LENGTH_EDGES)).tolist())


def _odd_lengths(cases: Sequence[Case], lengths: Sequence[Integers]) -> tuple[tuple[OddLength, ...], int, int]:
    """Return empty responses and extreme ones, the longest first after the empty ones, and how many there are."""
    every = np.concatenate([*lengths, np.zeros(0, np.int64)])
    if not (every > 0).any():
        low, high = -np.inf, np.inf
    else:
        first, third = np.quantile(np.log1p(every[every > 0]), (0.25, 0.75)).tolist()
        # A set of nearly equal lengths has no range: half of a doubling is the least.
        room = _FENCES * max(third - first, np.log(2) / 2)
        low, high = first - room, third + room
    odd = [
        OddLength(prompt=case.prompt.id, language=case.prompt.language, response=response.id, length=int(length))
        for case, of_case in zip(cases, lengths, strict=True)
        for response, length in zip(case.responses, of_case, strict=True)
        if length == 0 or not low <= np.log1p(length) <= high
    ]
    odd.sort(key=lambda row: (row.length != 0, -row.length))
    num_empty = int((every == 0).sum())
    return tuple(odd[:MOST_LISTED]), num_empty, len(odd) - num_empty


def _authors(cases: Sequence[Case], lengths: Sequence[Integers]) -> tuple[LengthGroup, ...]:
    by_author: Mapping[str | None, list[int]] = defaultdict(list)
    for case, of_case in zip(cases, lengths, strict=True):
        for response, length in zip(case.responses, of_case.tolist(), strict=True):
            by_author[response.author].append(length)
    groups = [
        LengthGroup(
            author=author,
            num_responses=len(values),
            median=float(np.median(values)),
            num_empty=values.count(0),
        )
        for author, values in by_author.items()
    ]
    return tuple(sorted(groups, key=lambda group: (-group.num_responses, group.author or ""))[:MOST_LISTED])
