"""Losses of reward models, as pure functions of scores: the multi-response Bradley-Terry loss and its regulariser."""

from typing import Literal, NamedTuple

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
    scores: Float[Tensor, " response"], pairs: PairBatch, reduction: Reduction = "pair"
) -> Float[Tensor, ""]:
    """The mean of -log sigmoid(r_better - r_worse - margin) (CHEEMS, eq. 3), in nats.

    ``pair`` is the weighted mean over all pairs of the step, as the published code has it: a prompt with more pairs
    weighs more. ``prompt`` is equation 3 as written: the mean over prompts of the weighted mean over their pairs.
    """
    losses = softplus(scores[pairs.worse] + pairs.margin - scores[pairs.better]) * pairs.weight
    if reduction == "pair":
        return losses.sum() / pairs.weight.sum()
    num_prompts = int(pairs.prompt.max()) + 1
    nothing = scores.new_zeros(num_prompts)
    total = nothing.index_add(0, pairs.prompt, losses)
    weight = nothing.index_add(0, pairs.prompt, pairs.weight)
    return (total[weight > 0] / weight[weight > 0]).mean()


def gaussian_regulariser(scores: Float[Tensor, " response"]) -> Float[Tensor, ""]:
    """The mean of r^2 over all scored responses of the step: a Gaussian prior on rewards (CHEEMS, eq. 4)."""
    return scores.square().mean()
