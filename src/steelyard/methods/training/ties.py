"""Ties as evidence: which pairs were judged equal, and the losses that learn how far apart equal answers may be."""

from collections.abc import Sequence
from math import log

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import softplus

from steelyard.core.types import Case
from steelyard.methods.ranking.pairs import IndexedPair

START = {"rao-kupper": log(log(2)), "davidson": 0.0}
"""Where the learned parameter begins: at equal scores better, worse and tied are then equally likely."""


def ties_of(case: Case, ordered: Sequence[IndexedPair]) -> tuple[IndexedPair, ...]:
    """The pairs that were judged equal, each once, by the positions of their responses.

    A tie needs a verdict ``tie`` on these two responses and none that prefers one of them; it must not be among the
    ``ordered`` pairs, and where the case has a ranking, both must stand in one tier of it. Responses of one tier that
    nobody compared, or that stand in a cycle, are not ties: nobody said that they are equal.
    """
    position = {response.id: index for index, response in enumerate(case.responses)}
    tier = {one: number for number, tier in enumerate(case.ranking or ()) for one in tier}
    tied: dict[tuple[int, int], bool] = {}
    for judgment in case.judgments:
        if judgment.verdict == "none" or judgment.left == judgment.right:
            continue
        if case.ranking is not None and tier.get(judgment.left, -1) != tier.get(judgment.right, -2):
            continue
        first, second = sorted((position[judgment.left], position[judgment.right]))
        tied[first, second] = tied.get((first, second), True) and judgment.verdict == "tie"
    taken = {(min(pair[:2]), max(pair[:2])) for pair in ordered}
    return tuple(IndexedPair(*ends) for ends in sorted(tied) if tied[ends] and ends not in taken)


def rao_kupper_losses(
    ahead: Float[Tensor, " pair"], tied: Bool[Tensor, " pair"], log_threshold: Float[Tensor, " 1"]
) -> Float[Tensor, " pair"]:
    """Minus the log-likelihood of each pair, of which some are ties, by a threshold (Rao and Kupper, 1967), in nats.

    P(first better) = sigmoid(d - t), P(tie) = 1 - P(first better) - P(second better), with d = r_first - r_second and
    t = exp(``log_threshold``). With t near 0 it is the Bradley-Terry loss.
    """
    threshold = log_threshold.exp()
    better = softplus(threshold - ahead)
    # P(tie) = (e^2t - 1) sigmoid(d - t) sigmoid(-d - t), without subtracting nearly equal probabilities, and
    # log(e^2t - 1) without raising e to a large power.
    odds = 2 * threshold + torch.log(-torch.expm1(-2 * threshold))
    return torch.where(tied, better + softplus(threshold + ahead) - odds, better)


def davidson_losses(
    ahead: Float[Tensor, " pair"], tied: Bool[Tensor, " pair"], log_strength: Float[Tensor, " 1"]
) -> Float[Tensor, " pair"]:
    """Minus the log-likelihood of each pair, of which some are ties, by the strength of ties (Davidson, 1970), in nats.

    P(tie) = v sqrt(ab) / (a + b + v sqrt(ab)) with a, b = exp(r_first), exp(r_second) and v = exp(``log_strength``).
    """
    half = ahead / 2
    terms = torch.stack([half, -half, log_strength.expand_as(half)])
    return terms.logsumexp(dim=0) - torch.where(tied, terms[2], terms[0])
