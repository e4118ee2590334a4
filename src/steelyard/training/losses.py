"""Losses of reward models as pure functions of scores, and the table `LOSSES` from which training takes its own.

A loss is a sum over terms (pairs, choices among several answers, ratings) divided by a weight that is known before any
score.
Sums of a step's chunks over the weights of the whole step are the loss of the step, however it is cut, on one device or
on many. To add a loss, write its entry of `LOSSES`.
"""

from collections.abc import Callable
from math import log
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import softplus

from steelyard.networks.devices import to_device
from steelyard.networks.settings import RatingLink

Reduction = Literal["pair", "prompt"]
Differences = Float[Tensor, " pair"]


class PairBatch(NamedTuple):
    """The comparable pairs of one step. ``better`` and ``worse`` are positions among the step's scores.

    ``prompt`` numbers the prompts of the step from 0; ``weight`` is at least 0; ``margin`` is in units of reward.
    """

    better: Int[Tensor, " pair"]
    worse: Int[Tensor, " pair"]
    weight: Float[Tensor, " pair"]
    margin: Float[Tensor, " pair"]
    prompt: Int[Tensor, " pair"]


class RatingBatch(NamedTuple):
    """The rated responses of one step. ``response`` is a position among the step's scores.

    ``target`` is the rating as the loss reads it: standardised, or a share of its range. ``weight`` is at least 0.
    """

    response: Int[Tensor, " rating"]
    target: Float[Tensor, " rating"]
    weight: Float[Tensor, " rating"]
    prompt: Int[Tensor, " rating"]


NO_RATINGS = RatingBatch(torch.zeros(0, dtype=torch.long), torch.zeros(0), torch.zeros(0), torch.zeros(0).long())


class LossInputs(NamedTuple):
    """The inputs of a loss for whole prompts: pairs, which of them are ties, the number of scores, and ratings.

    They may stay on the CPU: a loss moves what it reads to the device of the scores.
    """

    pairs: PairBatch
    tied: Bool[Tensor, " pair"]
    num_responses: int
    ratings: RatingBatch = NO_RATINGS


class TermWeights(NamedTuple):
    """The weight of each term of a loss and the prompt that it belongs to; both are known before any score."""

    weight: Float[Tensor, " term"]
    prompt: Int[Tensor, " term"]


class LossParameter(NamedTuple):
    """A learned number of a loss. ``start`` is its first value; the manifest keeps the last one under ``name``."""

    name: str
    start: float


class Loss(NamedTuple):
    """A loss as the negative log-likelihood of its terms, in nats, or as squared errors.

    ``terms`` takes scores, inputs, the learned parameter and the probability that a label is reversed. ``equal`` is the
    mean cost of a term where all scores are 0, without margins; null where it differs. ``rating_link`` maps a reward to
    a rating, for losses that read ratings.
    """

    terms: Callable[[Tensor, LossInputs, Tensor | None, float], Float[Tensor, " term"]]
    weights: Callable[[LossInputs], TermWeights]
    parameter: LossParameter | None = None
    has_smoothing: bool = True
    equal: float | None = None
    reads_ties: bool = False
    rating_link: RatingLink | None = None


class Objective(NamedTuple):
    """A loss of `LOSSES`, how its mean is taken, and the weights of the regularisers."""

    loss: str = "bradley-terry"
    reduction: Reduction = "pair"
    smoothing: float = 0.0
    centring: float = 0.0
    regulariser: float = 0.0


class StepWeights(NamedTuple):
    """The divisors of a step's sums."""

    loss: float
    pairs: float
    responses: float


class LossSums(NamedTuple):
    """The loss, the centring and the squares of the rewards, summed; all functions of the scores.

    ``squares`` makes the regulariser, a Gaussian prior on rewards (CHEEMS, eq. 4).
    """

    loss: Float[Tensor, ""]
    centring: Float[Tensor, ""]
    squares: Float[Tensor, ""]


def bradley_terry_loss(
    scores: Float[Tensor, " response"],
    pairs: PairBatch,
    reduction: Literal["none", "pair", "prompt"] = "pair",
    *,
    smoothing: float = 0.0,
) -> Float[Tensor, "..."]:
    """Compute -log sigmoid(r_better - r_worse - margin) (CHEEMS, eq. 3), in nats.

    ``none`` returns the loss of each pair, which training sums up. ``pair`` is the weighted mean over all pairs, as in
    the published code: a prompt with more pairs weighs more. ``prompt`` is equation 3 as written: the mean over prompts
    of the weighted mean over their pairs.
    """
    losses = _smoothed(lambda ahead: softplus(-ahead), differences(scores, pairs), smoothing)
    if reduction == "none":
        return losses
    total = reduced_sum(losses, pairs.weight, pairs.prompt, reduction)
    return total / reduced_weight(pairs.weight, pairs.prompt, reduction)


def rao_kupper_losses(ahead: Differences, tied: Bool[Tensor, " pair"], log_threshold: Tensor) -> Differences:
    """Compute the loss of pairs and ties with a threshold (Rao and Kupper, 1967), in nats.

    P(first better) = sigmoid(d - t), P(tie) = 1 - P(first better) - P(second better), with d = r_first - r_second and
    t = exp(``log_threshold``). With t near 0 it is the Bradley-Terry loss.
    """
    threshold = log_threshold.exp()
    better = softplus(threshold - ahead)
    # P(tie) = (e^2t - 1) sigmoid(d - t) sigmoid(-d - t), without subtracting nearly equal probabilities, and
    # log(e^2t - 1) without raising e to a large power.
    odds = 2 * threshold + torch.log(-torch.expm1(-2 * threshold))
    return torch.where(tied, better + softplus(threshold + ahead) - odds, better)


def davidson_losses(ahead: Differences, tied: Bool[Tensor, " pair"], log_strength: Tensor) -> Differences:
    """Compute the loss of pairs and ties with a strength of ties (Davidson, 1970), in nats.

    P(tie) = v sqrt(ab) / (a + b + v sqrt(ab)) with a, b = exp(r_first), exp(r_second) and v = exp(``log_strength``).
    """
    half = ahead / 2
    terms = torch.stack([half, -half, log_strength.expand_as(half)])
    return terms.logsumexp(dim=0) - torch.where(tied, terms[2], terms[0])


def plackett_luce_losses(scores: Float[Tensor, " response"], pairs: PairBatch) -> Float[Tensor, " choice"]:
    """Compute the negative log-likelihood of each choice (Plackett, 1975; Luce, 1959), in nats.

    Each better response is chosen among itself and the worse responses of its pairs. With the pairs of whole tiers this
    is the likelihood of the ranking; with listed pairs a response is compared with those listed only. A choice weighs
    the mean weight of its distinct pairs, and an alternative counts in proportion to its pair's weight, moved by the
    margin: of two responses it is the weighted Bradley-Terry loss, and a pair of weight 0 counts as absent.
    """
    device = scores.device
    pairs, choice, (weight, _) = _choices(pairs)
    share, margin = (
        to_device(values.to(scores.dtype), device) for values in (pairs.weight / weight[choice], pairs.margin)
    )
    better, worse, choice = (to_device(places, device) for places in (pairs.better, pairs.worse, choice))
    ahead = scores[worse] - scores[better] + margin + share.log()
    # log(1 + sum of exp(ahead)), with the largest term taken out; the chosen response itself is the 1.
    # From 0 up: the chosen response is a term as well, with exponent 0.
    largest = scores.new_zeros(len(weight)).scatter_reduce(0, choice, ahead.detach(), "amax")
    total = scores.new_zeros(len(weight)).index_add(0, choice, (ahead - largest[choice]).exp())
    return largest + (total + (-largest).exp()).log()


def cross_entropies(rewards: Float[Tensor, " rating"], target: Float[Tensor, " rating"]) -> Float[Tensor, " rating"]:
    """Compute the cross-entropy of targets from 0 to 1 and sigmoid(reward), in nats, without overflow."""
    return softplus(rewards) - target * rewards


def choice_weights(pairs: PairBatch) -> TermWeights:
    """Return the weight and the prompt of each choice, without a score."""
    _, _, weights = _choices(pairs)
    return weights


def differences(scores: Float[Tensor, " response"], pairs: PairBatch) -> Differences:
    """Return the difference of the better and the worse reward, less the margin."""
    better, worse, margin = (to_device(column, scores.device) for column in (pairs.better, pairs.worse, pairs.margin))
    return scores[better] - scores[worse] - margin


def reduced_sum(
    losses: Float[Tensor, " term"], weight: Float[Tensor, " term"], prompt: Int[Tensor, " term"], reduction: Reduction
) -> Float[Tensor, ""]:
    """Return the dividend of the mean: the sum of weighted losses, or of each prompt's weighted mean of them."""
    weight = weight.to(losses.dtype)
    if reduction == "prompt":
        total = _by_prompt(weight, prompt)[prompt]
        weight = weight / total.where(total > 0, 1)
    return (losses * to_device(weight, losses.device)).sum()


def reduced_weight(
    weight: Float[Tensor, " term"], prompt: Int[Tensor, " term"], reduction: Reduction
) -> Float[Tensor, ""]:
    """Return the divisor of the mean: the weight of all terms, or the number of prompts with any weight."""
    if reduction == "pair":
        return weight.sum()
    return (_by_prompt(weight, prompt) > 0).sum().to(weight.dtype)


def centring_sum(scores: Float[Tensor, " response"], pairs: PairBatch) -> Float[Tensor, ""]:
    """Return the weighted sum of (r_better + r_worse)^2: rewards around zero (Eisenstein et al., 2023, eq. 2).

    Over the weight of all pairs it is their mean. Unlike the mean of r^2 it does not act on a pair's difference.
    """
    better, worse, weight = (to_device(column, scores.device) for column in (pairs.better, pairs.worse, pairs.weight))
    return ((scores[better] + scores[worse]).square() * weight).sum()


def weights_of(inputs: LossInputs, objective: Objective) -> StepWeights:
    """Return the divisors of the sums of these inputs, without a score."""
    weight, prompt = LOSSES[objective.loss].weights(inputs)
    # In float64: the divisor of a step is one number for all its chunks, however many.
    total = reduced_weight(weight.double(), prompt, objective.reduction)
    return StepWeights(float(total), float(inputs.pairs.weight.double().sum()), float(inputs.num_responses))


def sums_of(
    scores: Float[Tensor, " response"], inputs: LossInputs, objective: Objective, parameter: Tensor | None = None
) -> LossSums:
    """Return the sums of these inputs; ``parameter`` is the learned number of the loss, where it has one."""
    loss = LOSSES[objective.loss]
    # Without centring a zero with a graph, in the type and on the device of the other sums.
    centring = centring_sum(scores, inputs.pairs) if objective.centring else scores.sum() * 0
    losses = loss.terms(scores, inputs, parameter, objective.smoothing)
    weight, prompt = loss.weights(inputs)
    return LossSums(reduced_sum(losses, weight, prompt, objective.reduction), centring, scores.square().sum())


def step_loss(sums: LossSums, weights: StepWeights, objective: Objective) -> Float[Tensor, ""]:
    """Return the minimised loss; for the sums of a part of a step, its share of the loss of the step."""
    centring = sums.centring / weights.pairs if weights.pairs else sums.centring
    parts = (sums.loss / weights.loss, objective.centring * centring)
    return parts[0] + parts[1] + objective.regulariser * sums.squares / weights.responses


def _choices(pairs: PairBatch) -> tuple[PairBatch, Int[Tensor, " pair"], TermWeights]:
    """Return the pairs of positive weight, the choice that each belongs to, and the weights of the choices."""
    pairs = PairBatch(*(column[pairs.weight > 0] for column in pairs))
    better, choice = pairs.better.unique(return_inverse=True)
    total = pairs.weight.new_zeros(len(better)).index_add(0, choice, pairs.weight)
    alternatives = torch.stack([choice, pairs.worse]).unique(dim=1)[0]
    prompt = pairs.prompt.new_zeros(len(better)).index_copy(0, choice, pairs.prompt)
    return pairs, choice, TermWeights(total / alternatives.bincount(minlength=len(better)), prompt)


def _smoothed(loss: Callable[[Tensor], Tensor], ahead: Differences, smoothing: float) -> Differences:
    """Return the expected loss where labels are reversed with probability ``smoothing``."""
    losses = loss(ahead)
    return (1 - smoothing) * losses + smoothing * loss(-ahead) if smoothing else losses


def _by_prompt(values: Float[Tensor, " term"], prompt: Int[Tensor, " term"]) -> Float[Tensor, " prompt"]:
    number = int(prompt.max()) + 1 if len(prompt) else 0
    return values.new_zeros(number).index_add(0, prompt, values)


def _pair_weights(inputs: LossInputs) -> TermWeights:
    return TermWeights(inputs.pairs.weight, inputs.pairs.prompt)


def _with_ties(losses: Callable[[Tensor, Tensor, Tensor], Tensor], name: str, start: float) -> Loss:
    """Return the entry of a loss over pairs and ties."""

    def terms(scores: Tensor, inputs: LossInputs, parameter: Tensor | None, smoothing: float) -> Tensor:
        assert parameter is not None, "losses of ties learn a parameter"
        ahead = differences(scores, inputs.pairs)
        tied = to_device(inputs.tied, scores.device)
        return _smoothed(lambda ahead: losses(ahead, tied, parameter), ahead, smoothing)

    return Loss(terms, _pair_weights, LossParameter(name, start), reads_ties=True)


def _with_ratings(losses: Callable[[Tensor, Tensor], Tensor], link: RatingLink, **properties: Any) -> Loss:
    """Return the entry of a loss over ratings, and over pairs where the inputs have any.

    Pairs and ratings share one reward. Its unit is that of the ratings, and the Bradley-Terry loss of pairs learns the
    factor between this unit and its own.
    """

    def terms(scores: Tensor, inputs: LossInputs, parameter: Tensor | None, smoothing: float) -> Tensor:
        response, target = (to_device(column, scores.device) for column in inputs.ratings[:2])
        target = target.to(scores.dtype)
        of_ratings = losses(scores[response], (1 - smoothing) * target + smoothing * (1 - target))
        if parameter is None:
            return of_ratings
        ahead = differences(scores, inputs.pairs) * parameter.exp()
        return torch.cat([of_ratings, _smoothed(lambda ahead: softplus(-ahead), ahead, smoothing)])

    def weights(inputs: LossInputs) -> TermWeights:
        of_ratings, of_pairs = TermWeights(*inputs.ratings[2:]), _pair_weights(inputs)
        return TermWeights(*(torch.cat(columns) for columns in zip(of_ratings, of_pairs, strict=True)))

    return Loss(terms, weights, LossParameter("log_pair_scale", 0.0), rating_link=link, **properties)


LOSSES = {
    "bradley-terry": Loss(
        lambda scores, inputs, _, smoothing: bradley_terry_loss(scores, inputs.pairs, "none", smoothing=smoothing),
        _pair_weights,
        equal=log(2),
    ),
    "plackett-luce": Loss(
        lambda scores, inputs, _, __: plackett_luce_losses(scores, inputs.pairs),
        lambda inputs: choice_weights(inputs.pairs),
        has_smoothing=False,
    ),
    # At the start better, worse and tied are equally likely for equal scores.
    "rao-kupper": _with_ties(rao_kupper_losses, "log_threshold", log(log(2))),
    "davidson": _with_ties(davidson_losses, "log_strength", 0.0),
    # Standardised targets have mean 0 and variance 1: equal scores of 0 cost 1.
    "mean-squared-error": _with_ratings(
        lambda rewards, target: (rewards - target).square(), "identity", has_smoothing=False, equal=1.0
    ),
    "binary-cross-entropy": _with_ratings(cross_entropies, "logistic"),
}
"""Every loss that can be trained, by the name of the setting ``loss``."""
