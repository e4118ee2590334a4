"""Rewards of examples in evaluation mode: held-out accuracy, statistics of a reference set, a policy's reference."""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import torch
from scipy.stats import rankdata

from steelyard.core.errors import ConfigError, EvidenceError, ModelError
from steelyard.core.languages import language_key
from steelyard.core.numerics import Booleans, Floats, Integers
from steelyard.core.remedies import Advice, Command, Remedy
from steelyard.core.text import common_spellings, conversation_form, name_form, number_of, verb_for
from steelyard.core.types import Case, InputFinding
from steelyard.curation.input_checks import is_far_below
from steelyard.io.hashing import file_hash
from steelyard.io.progress import log
from steelyard.networks.answer_tokens import AnswerTokens
from steelyard.networks.conversation import Rendering, encode
from steelyard.networks.devices import device_memory, fits
from steelyard.networks.reward_network import AnswerReference, PolicyNetwork, RewardNetwork, Row
from steelyard.networks.scorer import Scorer
from steelyard.networks.settings import RewardReference, RewardScale, TargetScale
from steelyard.statistics.correlation import pearson
from steelyard.statistics.groups import units_of
from steelyard.statistics.intervals import score_interval, student
from steelyard.statistics.linearised import group_ratios
from steelyard.statistics.pair_counts import PromptStatistics, exact_matches, prompt_statistics
from steelyard.training.config import GroupAccuracy, HeldOutAccuracy, RatingFit
from steelyard.training.examples import Example, Examples

_NUM_ROUNDED = 8


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


def check_disjoint(train: Sequence[Case], held_out: Sequence[Case], *, where: str) -> None:
    """Raise EvidenceError where a held-out conversation is also in the training data."""
    trained = {conversation_form(case.prompt.messages) for case in train} - {""}
    shared = [case.prompt.id for case in held_out if conversation_form(case.prompt.messages) in trained]
    if shared:
        raise EvidenceError(
            f"{len(shared)} of {len(held_out)} held-out prompts are in the training data, the first: {shared[0]!r}",
            where=where,
            do=Advice("split by prompt (", Command("split"), "), or say ", Remedy("allow_overlap", value=True)),
        )


class ReferenceSet(NamedTuple):
    """The answers whose rewards the manifest describes: name and hash of their source, and their token ids."""

    name: str
    data_hash: str
    examples: tuple[Example, ...]

    def is_part_of(self, examples: Examples) -> bool:
        """Return whether it is the beginning of these examples, whose rewards then include its rewards."""
        return bool(self.examples) and self.examples == examples.examples[: len(self.examples)]


def first_prompts(examples: Examples, path: Path, num_prompts: int, *, role: str) -> ReferenceSet:
    """Return the reference set where no file is named: the first prompts of the held-out or training file."""
    return ReferenceSet(f"{role}: {path.name}", file_hash(path), examples.examples[:num_prompts])


def all_answers(cases: Sequence[Case], tokenizer: Any, rendering: Rendering, *, where: str) -> tuple[Example, ...]:
    """Encode all answers within the limit, also those in no pair. Raises EvidenceError where there is none."""
    examples = []
    for case in cases:
        encoded = [encode(tokenizer, rendering, case, response) for response in case.responses]
        rows = tuple(answer.ids for answer in encoded if not answer.is_over_length or rendering.cuts)
        if rows:
            examples.append(Example(rows, (), name=case.prompt.id))
    if not examples:
        raise EvidenceError("no answer for the reference of rewards", where=where, do="name a file with answers")
    return tuple(examples)


def reward_reference(
    scorer: Scorer, reference: ReferenceSet, *, rewards: Sequence[Floats] | None = None
) -> RewardReference | None:
    """Return mean and spread of the set's rewards by this network; null for an empty set.

    ``rewards`` are those of the set's examples where they are known already. Raises ModelError where one is not finite.
    """
    if not reference.examples:
        return None
    rewards = rewards or rewards_of(scorer, reference.examples, title="rewards of the reference set")
    flat: Floats = np.concatenate(rewards)
    if not np.isfinite(flat).all():
        raise ModelError(
            "the trained model gives rewards that are not finite", do=Advice("lower ", Remedy("learning_rate"))
        )
    within = np.concatenate([values - values.mean() for values in rewards])
    return RewardReference(
        name=reference.name,
        data_hash=reference.data_hash,
        num_prompts=len(rewards),
        num_rewards=len(flat),
        mean=float(flat.mean()),
        spread=float(flat.std()),
        spread_within=float(np.sqrt((within**2).mean())),
    )


class Rounding(NamedTuple):
    """The distance between rewards in bfloat16 and in float32, as shares of the spread of the rewards."""

    num_rewards: int
    typical: float
    most: float


def rounding_of(scorer: Scorer, reference: ReferenceSet) -> Rounding | None:
    """Measure the rounding error of bfloat16 in the rewards of a few answers; the network is not changed.

    Null for a float32 model, a policy, many processes, or a model whose float32 weights would not fit in memory.
    """
    network: RewardNetwork = scorer.network
    size = 4 * sum(weight.numel() for weight in network.parameters())
    is_measured = scorer.is_autocast and not isinstance(network, PolicyNetwork) and scorer.world.is_alone
    if not is_measured or not reference.examples or not fits(2 * size, device_memory()):
        return None
    examples = reference.examples[:_NUM_ROUNDED]
    rounded = np.concatenate(rewards_of(scorer, examples))
    network.backbone.float()
    try:
        exact = np.concatenate(rewards_of(scorer.with_network(network, is_autocast=False), examples))
    finally:
        network.backbone.to(torch.bfloat16)  # exact: these values came from bfloat16
    spread = float(exact.std())
    if not spread > 0:
        return None
    distances = (rounded - exact) / spread
    return Rounding(len(distances), float(np.sqrt((distances**2).mean())), float(np.abs(distances).max()))


def in_unit_of_ratings(reference: RewardReference | None, scale: TargetScale) -> RewardReference | None:
    """Return the reference as the saved head gives it, which includes the spread of the ratings."""
    if reference is None or scale.link != "identity":
        return reference
    factor = scale.spread
    mean, spread, within = reference.mean * factor, reference.spread * factor, reference.spread_within * factor
    return msgspec.structs.replace(reference, mean=mean, spread=spread, spread_within=within)


def standardise(reference: RewardReference) -> tuple[RewardReference, RewardScale]:
    """Return the reference with a spread of 1, and the scale and shift that achieve it.

    Raises ModelError where all rewards are equal.
    """
    if not reference.spread > 0:
        raise ModelError("all rewards of the reference set are equal", do="leave calibrate_rewards out")
    scale = 1 / reference.spread
    mean, within = reference.mean * scale, reference.spread_within * scale
    scaled = msgspec.structs.replace(reference, mean=mean, spread=1.0, spread_within=within)
    return scaled, RewardScale(scale=scale, shift=-mean)


def fold_scale(network: RewardNetwork, calibration: RewardScale | None) -> None:
    """Multiply the head by the scale: every engine that loads the model gives the scaled reward."""
    if calibration is not None:
        with torch.no_grad():
            for weight in network.head.parameters():
                weight.mul_(calibration.scale)


def answer_starts(cases: Iterable[Case], tokenizer: Any, rendering: Rendering) -> dict[Row, int]:
    """Return where the answer of each row begins, in tokens; rows whose answers are several turns have no entry."""
    answers = AnswerTokens(tokenizer, rendering, with_header=False)
    rows = chain.from_iterable(answers.rows(case) for case in cases)
    # No token can be likely or unlikely before the first one.
    return {row.ids: max(row.start, 1) for row in rows if row is not None and row.start < len(row.ids)}


def store_reference(
    scorer: Scorer, examples: Sequence[Example], starts: dict[Row, int], *, reference_free: bool
) -> None:
    """Store in a policy where answers begin, and their log-probabilities under its untrained weights.

    The reference is the policy before training, so that no second model is kept in memory. Raises ConfigError for an
    answer whose beginning is unknown.
    """
    network: PolicyNetwork = scorer.network
    rows = [row for example in examples for row in example.rows]
    unknown = sum(row not in starts for row in rows)
    if unknown:
        raise ConfigError(
            f"{number_of(unknown, 'answer')} {verb_for(unknown, 'is', 'are')} empty or of several turns: a policy's "
            "answer is one turn",
            where="train",
            do="leave them out, or train a classifier",
        )
    network.references.update({row: AnswerReference(starts[row], 0.0) for row in rows})
    if reference_free:
        return
    with scorer.evaluating():
        rewards = scorer.rewards([example.rows for example in examples])
    logs = (rewards.double() / network.beta).tolist()
    network.references.update({row: AnswerReference(starts[row], value) for row, value in zip(rows, logs, strict=True)})
    log(f"the reference has scored {number_of(len(rows), 'answer')}")
