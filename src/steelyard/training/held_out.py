"""Rewards of examples in evaluation mode: held-out accuracy, statistics of a reference set, a policy's reference."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from scipy.stats import rankdata

from steelyard.core.languages import language_key
from steelyard.core.numerics import Booleans, Floats, Integers
from steelyard.core.text import common_spellings, name_form
from steelyard.core.types import InputFinding
from steelyard.curation.input_checks import is_far_below
from steelyard.networks.scorer import Scorer
from steelyard.networks.settings import TargetScale
from steelyard.statistics.correlation import pearson
from steelyard.statistics.groups import units_of
from steelyard.statistics.intervals import score_interval, student
from steelyard.statistics.linearised import group_ratios
from steelyard.statistics.pair_counts import PromptStatistics, exact_matches, prompt_statistics
from steelyard.training.config import GroupAccuracy, HeldOutAccuracy, RatingFit
from steelyard.training.examples import Example


def measure(
    rewards: Sequence[Floats], examples: Sequence[Example], *, scale: TargetScale | None = None
) -> HeldOutAccuracy:
    """Measure the rewards of each example's rows (`rewards_of`) against its pairs; a tied reward is wrong.

    With a ``scale`` also against its ratings; such examples may have no pair.
    """
    fit = None if scale is None else rating_fit(rewards, examples, scale)
    paired = [number for number, example in enumerate(examples) if example.pairs]
    rewards, examples = [rewards[number] for number in paired], [examples[number] for number in paired]
    statistics = prompt_statistics_of(rewards, examples)
    names = [example.prompt_names or (f"{number}",) for number, example in enumerate(examples)]
    unit = np.unique(units_of(names), return_inverse=True)[1]

    def by(labels: Sequence[str | None], identity: Callable[[str], str]) -> dict[str, GroupAccuracy]:
        spelling = common_spellings(filter(None, labels), identity)
        common = [spelling.get(label or "") for label in labels]
        return {
            name: _accuracy(statistics, unit, np.array([label == name for label in common]))
            for name in sorted(set(spelling.values()))
        }

    of_all = _accuracy(statistics, unit, np.ones(len(examples), np.bool_))
    return HeldOutAccuracy(
        **msgspec.structs.asdict(of_all),
        by_category=by([example.category for example in examples], name_form),
        by_language=by([example.language for example in examples], language_key),
        ratings=fit,
    )


class HeldOutMeasures(NamedTuple):
    """The rewards of held-out examples, and their accuracy."""

    rewards: list[Floats]
    accuracy: HeldOutAccuracy


def measure_held_out(
    scorer: Scorer, examples: Sequence[Example], *, scale: TargetScale | None, title: str | None = None
) -> HeldOutMeasures:
    """Compute the rewards of the examples, and measure them."""
    rewards = rewards_of(scorer, examples, title=title)
    return HeldOutMeasures(rewards, measure(rewards, examples, scale=scale))


def rating_fit(rewards: Sequence[Floats], examples: Sequence[Example], scale: TargetScale) -> RatingFit | None:
    """Measure the rewards against the targets of rated rows, all prompts together; null without ratings.

    The interval of the correlation resamples prompts, those that share a name together.
    """
    rated = [number for number, example in enumerate(examples) if example.ratings]
    if not rated:
        return None
    targets = [np.array([rating.target for rating in examples[number].ratings]) for number in rated]
    chosen = [rewards[number][[rating.response for rating in examples[number].ratings]] for number in rated]
    names = [examples[number].prompt_names or (f"{number}",) for number in rated]
    reward, target = np.concatenate(chosen), np.concatenate(targets)
    unit = np.repeat(np.unique(units_of(names), return_inverse=True)[1], [len(values) for values in targets])
    predicted, factor, centre = reward, scale.spread, 0.0
    if scale.link == "logistic":
        assert scale.lowest is not None
        assert scale.highest is not None
        predicted, factor = 1 / (1 + np.exp(-reward)), scale.highest - scale.lowest
        centre = (scale.mean - scale.lowest) / factor
    pearson_value, spearman_value = float(pearson(reward, target)), float(pearson(rankdata(reward), rankdata(target)))
    return RatingFit(
        num_ratings=len(target),
        num_prompts=int(unit.max()) + 1,
        mean_squared_error=float(factor**2 * ((predicted - target) ** 2).mean()),
        variance=float(factor**2 * ((target - centre) ** 2).mean()),
        pearson=None if np.isnan(pearson_value) else pearson_value,
        spearman=None if np.isnan(spearman_value) else spearman_value,
        interval=_correlation_interval(reward, target, unit),
    )


def _correlation_interval(reward: Floats, target: Floats, unit: Integers) -> tuple[float, float] | None:
    """Return the 95% interval of Pearson's correlation on Fisher's scale, with the variance over prompts.

    It is the variance of the correlation's influence function, summed over the responses of a prompt. Null for fewer
    than three prompts, and where one side does not vary.
    """
    number = int(unit.max()) + 1
    correlation = float(pearson(reward, target))
    if number < 3 or np.isnan(correlation) or abs(correlation) >= 1:
        return None
    first, second = ((values - values.mean()) / values.std() for values in (reward, target))
    influence = first * second - correlation * (first**2 + second**2) / 2
    by_prompt = np.bincount(unit, influence, number)
    variance = number / (number - 1) * float((by_prompt**2).sum()) / len(reward) ** 2 / (1 - correlation**2) ** 2
    reach = student(number - 1) * variance**0.5
    middle = np.arctanh(correlation)
    return float(np.tanh(middle - reach)), float(np.tanh(middle + reach))


def rewards_of(scorer: Scorer, examples: Sequence[Example], *, title: str | None = None) -> list[Floats]:
    """Return the rewards of each example's rows in evaluation mode, in float64."""
    with scorer.evaluating():
        rewards = scorer.rewards([example.rows for example in examples], title=title).double().cpu()
    return [part.numpy() for part in rewards.split([len(example.rows) for example in examples])]


def prompt_statistics_of(scores: Sequence[Floats], examples: Sequence[Example]) -> PromptStatistics:
    """Count right and wrong pairs of each example."""
    prompt = np.array([index for index, example in enumerate(examples) for _ in example.pairs], np.int64)
    pairs = [(values, pair) for values, example in zip(scores, examples, strict=True) for pair in example.pairs]
    better = np.array([values[pair.better] for values, pair in pairs])
    worse = np.array([values[pair.worse] for values, pair in pairs])
    return prompt_statistics(prompt, better, worse, len(examples))


def _accuracy(statistics: PromptStatistics, unit: Integers, chosen: Booleans) -> GroupAccuracy:
    num_prompts = int(chosen.sum())
    correct, pairs = statistics.num_correct[chosen].astype(np.float64), statistics.num_pairs[chosen].astype(np.float64)
    (ratio,) = group_ratios(np.zeros(num_prompts, np.int64), unit[chosen], correct, pairs, 1)
    return GroupAccuracy(
        accuracy=ratio.value,
        exact_match=float(exact_matches(statistics)[chosen].mean()),
        num_pairs=int(pairs.sum()),
        num_prompts=num_prompts,
        interval=score_interval(ratio.value, ratio.variance, ratio.evidence) if ratio.num_units > 1 else None,
    )


def held_out_findings(held_out: HeldOutAccuracy | None) -> tuple[InputFinding, ...]:
    """Return a finding if the trained model is far below chance; a tied reward, which is rare, counts as reversed."""
    if held_out is None or held_out.interval is None:
        return ()
    accuracy, total = held_out.accuracy, held_out.num_pairs
    if not is_far_below(accuracy, held_out.interval[1], 1 - accuracy):
        return ()
    return (InputFinding(check="held_out_below_chance", count=total - round(accuracy * total), total=total),)
