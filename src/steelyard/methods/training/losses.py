"""Losses of reward models, as pure functions of scores: the multi-response Bradley-Terry loss and its regulariser.

A loss is a sum over what a mean is taken of, and how many that are: the sums of a step's chunks, over the number of the
whole step, are the step's loss, however it is cut, on one device or on many.
"""

from typing import Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import softplus

Reduction = Literal["pair", "prompt"]


class PairBatch(NamedTuple):
    """The comparable pairs of one step. ``better`` and ``worse`` are positions among the step's scores.

    ``prompt`` numbers the prompts of the step from 0; ``weight`` is at least 0; ``margin`` is in units of reward.
    """

    better: Int[Tensor, " pair"]
    worse: Int[Tensor, " pair"]
    weight: Float[Tensor, " pair"]
    margin: Float[Tensor, " pair"]
    prompt: Int[Tensor, " pair"]


def bradley_terry_loss(
    scores: Float[Tensor, " response"], pairs: PairBatch, reduction: Reduction = "pair", *, smoothing: float = 0.0
) -> Float[Tensor, ""]:
    """The mean of -log sigmoid(r_better - r_worse - margin) (CHEEMS, eq. 3), in nats.

    ``pair`` is the weighted mean over all pairs of the step, as the published code has it: a prompt with more pairs
    weighs more. ``prompt`` is equation 3 as written: the mean over prompts of the weighted mean over their pairs.
    """
    return bradley_terry_sum(scores, pairs, reduction, smoothing=smoothing) / loss_weight(pairs, reduction)


def bradley_terry_sum(
    scores: Float[Tensor, " response"], pairs: PairBatch, reduction: Reduction, *, smoothing: float = 0.0
) -> Float[Tensor, ""]:
    """What `bradley_terry_loss` is the mean of, summed; `loss_weight` is what it is divided by.

    ``smoothing`` is the probability with which a label is taken to be the wrong way round: the loss of a pair is then
    (1 - smoothing) of its own and ``smoothing`` of that of the reversed pair (label smoothing; 0 to below 0.5).
    """
    behind = scores[pairs.worse] + pairs.margin - scores[pairs.better]
    losses = softplus(behind)
    if smoothing:
        losses = (1 - smoothing) * losses + smoothing * softplus(-behind)
    losses = losses * pairs.weight
    if reduction == "pair":
        return losses.sum()
    total, weight = (_by_prompt(values, pairs) for values in (losses, pairs.weight.to(losses.dtype)))
    return (total[weight > 0] / weight[weight > 0]).sum()


def loss_weight(pairs: PairBatch, reduction: Reduction) -> Float[Tensor, ""]:
    """The weight of all pairs, or the number of prompts with a pair that weighs anything."""
    if reduction == "pair":
        return pairs.weight.sum()
    return (_by_prompt(pairs.weight, pairs) > 0).sum().to(pairs.weight.dtype)


def _by_prompt(values: Float[Tensor, " pair"], pairs: PairBatch) -> Float[Tensor, " prompt"]:
    return values.new_zeros(int(pairs.prompt.max()) + 1).index_add(0, pairs.prompt, values)


def gaussian_regulariser(scores: Float[Tensor, " response"]) -> Float[Tensor, ""]:
    """The mean of r^2 over all scored responses of the step: a Gaussian prior on rewards (CHEEMS, eq. 4)."""
    return scores.square().mean()


def plackett_luce_sum(scores: Float[Tensor, " response"], tier: Int[Tensor, " response"]) -> Float[Tensor, ""]:
    """Minus the log-likelihood of one prompt's tiers, best is 0 (Plackett, 1975; Luce, 1959), in nats.

    Each response above the last tier is the one chosen among itself and all in lower tiers; responses of one tier,
    which are not ordered, are not held against each other. Of two responses it is `bradley_terry_loss`.
    """
    lower = tier[None, :] > tier[:, None]
    own = torch.eye(len(tier), dtype=torch.bool, device=tier.device)
    against = scores[None, :].masked_fill(~(lower | own), float("-inf")).logsumexp(dim=1)
    return (against - scores)[lower.any(dim=1)].sum()


def centring(scores: Float[Tensor, " response"], pairs: PairBatch) -> Float[Tensor, ""]:
    """The weighted mean of (r_better + r_worse)^2: rewards around zero (Eisenstein et al., 2023, eq. 2).

    Unlike `gaussian_regulariser` it leaves the distance of a pair alone.
    """
    both = (scores[pairs.better] + scores[pairs.worse]).square()
    return (both * pairs.weight).sum() / pairs.weight.sum()


def rao_kupper_loss(
    difference: Float[Tensor, " pair"], tied: Int[Tensor, " pair"], log_threshold: Float[Tensor, ""]
) -> Float[Tensor, ""]:
    """The mean loss of pairs of which some are ties, by a threshold (Rao and Kupper, 1967), in nats.

    P(first better) = sigmoid(d - t), P(tie) = 1 - P(first better) - P(second better), with d = r_first - r_second and
    t = exp(``log_threshold``) above 0. ``tied`` is 1 for a tie, 0 where the first is better.
    """
    threshold = log_threshold.exp()
    better = softplus(threshold - difference)
    # P(tie) = (e^2t - 1) sigmoid(d - t) sigmoid(-d - t), without subtracting nearly equal probabilities.
    tie = better + softplus(threshold + difference) - torch.expm1(2 * threshold).log()
    return torch.where(tied == 1, tie, better).mean()


def davidson_loss(
    difference: Float[Tensor, " pair"], tied: Int[Tensor, " pair"], log_strength: Float[Tensor, ""]
) -> Float[Tensor, ""]:
    """The mean loss of pairs of which some are ties, by the strength of ties (Davidson, 1970), in nats.

    P(tie) = v sqrt(ab) / (a + b + v sqrt(ab)) with a, b = exp(r_first), exp(r_second) and v = exp(``log_strength``).
    """
    half = difference / 2
    terms = torch.stack([half, -half, log_strength.expand_as(half)])
    return (terms.logsumexp(dim=0) - torch.where(tied == 1, terms[2], terms[0])).mean()
