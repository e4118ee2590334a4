"""The likelihood of whole rankings: Plackett-Luce over tiers, one choice a response."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


class Choices(NamedTuple):
    """A loss for each choice that the tiers tell of, in nats, and the prompt that it belongs to."""

    losses: Float[Tensor, " choice"]
    prompt: Int[Tensor, " choice"]


def plackett_luce(
    scores: Float[Tensor, " response"], tier: Int[Tensor, " response"], prompt: Int[Tensor, " response"]
) -> Choices:
    """Minus the log-likelihood of each prompt's tiers, best is 0 (Plackett, 1975; Luce, 1959), choice by choice.

    Each response above its prompt's last tier is the one chosen among itself and all in lower tiers; responses of one
    tier, which are not ordered, are not held against each other. Of two responses it is the Bradley-Terry loss.
    """
    lower = _is_lower(tier, prompt)
    own = torch.eye(len(tier), dtype=torch.bool, device=tier.device)
    against = scores[None, :].masked_fill(~(lower | own), float("-inf")).logsumexp(dim=1)
    is_choice = lower.any(dim=1)
    return Choices((against - scores)[is_choice], prompt[is_choice])


def choice_prompts(tier: Int[Tensor, " response"], prompt: Int[Tensor, " response"]) -> Int[Tensor, " choice"]:
    """The prompt of each choice that the tiers tell of: known before any score."""
    return prompt[_is_lower(tier, prompt).any(dim=1)]


def _is_lower(tier: Int[Tensor, " response"], prompt: Int[Tensor, " response"]) -> Bool[Tensor, "response other"]:
    return (tier[None, :] > tier[:, None]) & (prompt[None, :] == prompt[:, None])
