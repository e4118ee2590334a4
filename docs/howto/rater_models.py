"""Compare rater models: the probable truth about each pair given who judged what, by several models.

All models take the same votes and answer about any pairs of the same prompts: (pair, 3) probabilities that the first is
better, that the second is better, and that they are equal. A row of NaN means that the model cannot answer.
`compare_on_held_out` compares models at equal coverage on raters held out, `compare_with_key` on a key.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from steelyard.core.numerics import Floats, Integers
from steelyard.ranking.dawid_skene import Pairs, Votes, answers_at, fit_dawid_skene, pair_keys
from steelyard.ranking.judgment_table import Aggregate, Verdicts, edges_of
from steelyard.ranking.tiers import tiers_of
from steelyard.statistics.agreement import FIRST, SECOND, TIED, count_labels
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.unit_bootstrap import (
    MOST_UNITS,
    Entries,
    Tally,
    UnitSums,
    estimate_share_difference,
    estimate_shares,
)

_CLOSE = 1e-7


class AccurateRaters(NamedTuple):
    """Answers, how often each rater follows the strengths rather than their reverse, and the strengths."""

    answers: Floats
    accuracy: Floats
    strength: Floats
    num_steps: int


def by_majority(votes: Votes, queries: Pairs) -> Floats:
    """Return the share of each label among the votes on the pair itself."""
    items, place, known = pair_keys(votes.pairs, queries)
    counts = count_labels(place, votes.label, len(items))
    return answers_at(counts / counts.sum(axis=1, keepdims=True), items, known)


def by_tiers(votes: Votes, queries: Pairs, aggregate: Aggregate = "none") -> Floats:
    """Answer by CHEEMS, algorithm 1: the higher tier is better, one tier is equal, NaN if a response is unranked."""
    pairs = votes.pairs
    num_prompts = int(max(pairs.prompt.max(initial=-1), queries.prompt.max(initial=-1))) + 1
    sizes = np.zeros(num_prompts, np.int64)
    for each in (pairs, queries):
        np.maximum.at(sizes, each.prompt, each.second + 1)
    tiers = tiers_of(edges_of(Verdicts(pairs.prompt, pairs.first, pairs.second, votes.label), aggregate), sizes)
    first, second = tiers[queries.prompt, queries.first], tiers[queries.prompt, queries.second]
    answers = np.stack([first < second, first > second, first == second], axis=1).astype(np.float64)
    answers[(first < 0) | (second < 0)] = np.nan
    return answers


def by_accuracy(
    votes: Votes, queries: Pairs, *, spread: float = 2.0, right: float = 3.0, wrong: float = 1.0, most_steps: int = 500
) -> AccurateRaters:
    """Fit Bradley-Terry strengths within each prompt and each rater's accuracy, by expectation maximisation.

    P(rater prefers i to j) = a * sigmoid(s_i - s_j) + (1 - a) * sigmoid(s_j - s_i), as in Crowd-BT (Chen et al., 2013);
    a tie is half a vote each way. Strengths have a normal prior of standard deviation ``spread``, and each accuracy
    one worth ``right`` verdicts that follow the strengths and ``wrong`` that do not. Maximum a posteriori.
    """
    width = int(max(votes.pairs.second.max(initial=0), queries.second.max(initial=0))) + 1
    num_prompts = int(max(votes.pairs.prompt.max(initial=-1), queries.prompt.max(initial=-1))) + 1
    better, worse, weight, rater = _halves(votes, width)
    strength = np.zeros(num_prompts * width)
    touched = np.bincount(np.concatenate([better, worse]), np.tile(weight, 2), len(strength))
    number = np.bincount(rater, weight, votes.num_raters)
    accuracy, step = np.full(votes.num_raters, right / (right + wrong)), 0
    while step < most_steps:
        step += 1
        likely = _sigmoid(strength[better] - strength[worse])
        follows = accuracy[rater] * likely
        follows = follows / (follows + (1 - accuracy[rater]) * (1 - likely))
        accuracy = (np.bincount(rater, weight * follows, votes.num_raters) + right) / (number + right + wrong)
        pull = weight * (follows - likely)  # a verdict that does not follow counts for the other response
        slope = np.bincount(better, pull, len(strength)) - np.bincount(worse, pull, len(strength))
        # The curvature of the logistic part is at most half the number of verdicts that touch a response.
        moved = (slope - strength / spread**2) / (touched / 2 + 1 / spread**2)
        strength = strength + moved
        if np.abs(moved).max(initial=0.0) < _CLOSE:
            break
    first, second = queries.prompt * width + queries.first, queries.prompt * width + queries.second
    better = _sigmoid(strength[first] - strength[second])
    answers = np.stack([better, 1 - better, np.zeros(len(better))], axis=1)
    answers[(touched[first] == 0) | (touched[second] == 0)] = np.nan
    return AccurateRaters(answers, accuracy, strength.reshape(num_prompts, width), step)


def _halves(votes: Votes, width: int) -> tuple[Integers, Integers, Floats, Integers]:
    """Return every vote as better response, worse response, weight and rater; a tie twice, half each way."""
    first, second = (votes.pairs.prompt * width + side for side in (votes.pairs.first, votes.pairs.second))
    down, up = votes.label != SECOND, votes.label != FIRST
    weight = np.where(votes.label == TIED, 0.5, 1.0)
    return (
        np.concatenate([first[down], second[up]]),
        np.concatenate([second[down], first[up]]),
        np.concatenate([weight[down], weight[up]]),
        np.concatenate([votes.rater[down], votes.rater[up]]),
    )


def _sigmoid(value: Floats) -> Floats:
    return 0.5 * (1.0 + np.tanh(value / 2))


Model = Callable[[Votes, Pairs], Floats]

ALGORITHM_1 = "algorithm_1"
MODELS: Mapping[str, Model] = MappingProxyType(
    {
        ALGORITHM_1: by_tiers,
        "algorithm_1_of_majority": lambda votes, queries: by_tiers(votes, queries, "majority"),
        "majority": by_majority,
        "dawid_skene": lambda votes, queries: fit_dawid_skene(votes, queries).answers,
        "bradley_terry_with_accuracy": lambda votes, queries: by_accuracy(votes, queries).answers,
    }
)
"""The models by name, each from votes and pairs to answers."""
EVERYONE = "all"


class AnswerKey(NamedTuple):
    """Pairs with a known answer: the first is better (0), or the second (1)."""

    pairs: Pairs
    label: Integers


class RaterModelScore(NamedTuple):
    """How well one model predicts the strict verdicts of a held-out rater (or of all in turn), or a key.

    ``coverage`` is the share of them on which the model takes a side, and ``accuracy_of_all`` its accuracy there.
    ``accuracy`` is taken on the model's surest verdicts up to the coverage that every model reaches
    (``equal_coverage``), so that all models are measured on equally many. ``gain`` is accuracy minus that of the
    baseline model, resampled together. ``n`` counts the strict verdicts of the rater, or the pairs of the key.
    """

    rater: str
    model: str
    accuracy: Estimate
    gain: Estimate
    coverage: float
    equal_coverage: float
    accuracy_of_all: Estimate


class _Predicted(NamedTuple):
    """For one rater the prompt of each strict verdict, and for each model the summed columns (see `_COLUMNS`)."""

    prompt: np.ndarray
    columns: dict[str, Floats]
    coverage: dict[str, float]


_COLUMNS = 4
"""Right and taken verdicts at equal coverage, then right and taken verdicts among all with a side."""


def compare_on_held_out(
    votes: Votes, names: Sequence[str], *, seed: int, models: Mapping[str, Model] = MODELS, baseline: str = ALGORITHM_1
) -> tuple[RaterModelScore, ...]:
    """Hold out each rater in turn: the models see the others' votes and predict the rater's strict verdicts.

    ``names[rater]`` are the names. A rater without a strict verdict is skipped. Where a model is equally sure of more
    verdicts than are needed, each counts in part, which is the expectation over a random choice.
    """
    predictions: dict[str, _Predicted] = {}
    for rater, name in enumerate(names):
        is_held_out = votes.rater == rater
        strict = is_held_out & (votes.label != TIED)
        if strict.any():
            others = Votes(votes.pairs.where(~is_held_out), votes.rater[~is_held_out], votes.label[~is_held_out])
            predictions[name] = _predict(others, votes.pairs.where(strict), votes.label[strict], models)
    return _scores(predictions, models, baseline, seed=seed)


def compare_with_key(
    votes: Votes, key: AnswerKey, *, seed: int, models: Mapping[str, Model] = MODELS, baseline: str = ALGORITHM_1
) -> tuple[RaterModelScore, ...]:
    """Compare the models, which see all votes, with a key on equally many pairs: the surest of each model.

    A key made of the same raters' numbers is not independent; held-out raters are. Models agree more with it on
    their surer pairs, so that agreement at different coverages cannot be compared.
    """
    return _scores({EVERYONE: _predict(votes, key.pairs, key.label, models)}, models, baseline, seed=seed)


def _scores(
    predictions: Mapping[str, _Predicted], models: Mapping[str, Model], baseline: str, *, seed: int
) -> tuple[RaterModelScore, ...]:
    assert baseline in models, "the baseline is one of the models"
    tally = Tally(_COLUMNS)
    for name, predicted in predictions.items():
        for model in models:
            tally.add(_entries(predicted, model, name))
    draws = tally.draw(seed=seed)
    scores = []
    for rater in dict.fromkeys((*predictions, EVERYONE)):
        names = list(predictions) if rater == EVERYONE else [rater]
        base = draws.totals([(name, baseline) for name in names])
        for model in models:
            totals = draws.totals([(name, model) for name in names])
            scores.append(_score(rater, model, totals, base, [predictions[name] for name in names]))
    return tuple(scores)


def _predict(votes: Votes, queries: Pairs, label: np.ndarray, models: Mapping[str, Model]) -> _Predicted:
    sides = {}
    for name, model in models.items():
        answers = np.nan_to_num(model(votes, queries))
        sides[name] = np.round(answers[:, FIRST] - answers[:, SECOND], 12)
    coverage = {name: float((side != 0).mean()) for name, side in sides.items()}
    wanted = min(coverage.values()) * len(label)
    columns = {}
    for name, side in sides.items():
        taken, is_right = _surest(np.abs(side), wanted), (side > 0) == (label == FIRST)
        has_side = (side != 0).astype(np.float64)
        columns[name] = np.stack([taken * is_right, taken, has_side * is_right, has_side])
    return _Predicted(queries.prompt, columns, coverage)


def _surest(sure: Floats, wanted: float) -> Floats:
    """Return how much of each verdict is taken so that they sum to ``wanted``: the least sure in part."""
    levels, level, sizes = np.unique(-sure, return_inverse=True, return_counts=True)
    before = np.cumsum(sizes) - sizes
    return np.clip((wanted - before) / sizes, 0.0, 1.0)[level] if len(levels) else np.zeros(0)


def _entries(predicted: _Predicted, model: str, rater: str) -> Entries:
    unit = np.tile(predicted.prompt % MOST_UNITS, _COLUMNS)
    column = np.repeat(np.arange(_COLUMNS), len(predicted.prompt))
    return Entries(((rater, model),), unit, column, predicted.columns[model].reshape(-1))


def _score(
    rater: str, model: str, totals: UnitSums, base: UnitSums, predictions: Sequence[_Predicted]
) -> RaterModelScore:
    both = UnitSums(*(np.concatenate(columns, axis=-1) for columns in zip(totals, base, strict=True)))

    def parts(sums: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        right, taken, base_right, base_taken = (sums[..., at] for at in (0, 1, _COLUMNS, _COLUMNS + 1))
        return right, taken, base_right, base_taken

    sizes = np.array([len(predicted.prompt) for predicted in predictions])
    number = int(sizes.sum())
    rights = estimate_shares(totals, lambda sums: (sums[..., [0, 2]], sums[..., [1, 3]]))
    accuracy, of_all = (replace(estimate, n=number) for estimate in rights)
    gain = estimate_share_difference(both, parts, number)
    coverage = float(np.average([predicted.coverage[model] for predicted in predictions], weights=sizes))
    return RaterModelScore(rater, model, accuracy, gain, coverage, float(totals.point[1] / sizes.sum()), of_all)
