"""Heads of many objectives whose weights a gate reads from the prompt: ArmoRM's, and QRM's with quantiles."""

import re
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from steelyard.core.errors import ModelError
from steelyard.plugins.models._headed import Read

# Where the prompt ends and the answer begins in Llama 3's template. The published pattern also has the two line feeds
# behind it; they are left out, since they become another token where an answer begins with a line feed.
TURN_MARK = "<|eot_id|><|start_header_id|>assistant<|end_header_id|>"


def turn_reader(tokenizer: Any, *, where: str) -> Read:
    """Reads the start of the last turn mark, where the gate looks, and the last token, where the objectives look.

    Raises ModelError for a tokenizer that lacks the mark's tokens: this is no model of the family.
    """
    known = tokenizer.get_vocab()
    if absent := [mark for mark in re.findall(r"<\|.*?\|>", TURN_MARK) if mark not in known]:
        found = f"its tokenizer has no {', '.join(absent)}, which the gate reads at"
        raise ModelError(found, where=where, allowed="models on Llama 3 with its own template")
    pattern = tuple(tokenizer(TURN_MARK, add_special_tokens=False).input_ids)

    def read(ids: Sequence[int]) -> tuple[int, ...] | None:
        for start in range(len(ids) - len(pattern), -1, -1):
            if tuple(ids[start : start + len(pattern)]) == pattern:
                return (start, len(ids) - 1)
        return None

    return read


class Gate(nn.Module):
    """Weights of the objectives from the prompt's hidden state: layers, then a softmax at a temperature, scaled."""

    def __init__(self, layers: Sequence[nn.Module], *, temperature: float, is_relu_between: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.logit_scale = nn.Parameter(torch.ones(1))
        self.temperature = temperature
        self.is_relu_between = is_relu_between

    def forward(self, prompt: Float[Tensor, "row width"]) -> Float[Tensor, "row objective"]:
        """One weight an objective; a row's weights sum to the scale."""
        found = prompt
        for index, layer in enumerate(self.layers):
            found = layer(found)
            if self.is_relu_between and index < len(self.layers) - 1:
                found = found.relu()
        return (found / self.temperature).softmax(dim=-1) * self.logit_scale


class GatedHead(nn.Module):
    """reward = Σ gate(prompt) · (objectives(answer) · transform), an objective being the mean of its quantiles."""

    def __init__(self, width: int, gating: Gate, *, num_objectives: int, num_quantiles: int = 1) -> None:
        super().__init__()
        self.regression_layer = nn.Linear(width, num_objectives * num_quantiles, bias=False)
        self.reward_transform_matrix = nn.Parameter(torch.eye(num_objectives))
        self.gating = gating
        self.num_quantiles = num_quantiles

    def forward(self, read: Float[Tensor, "row place width"]) -> Float[Tensor, " row"]:
        """One reward a row; the first place is the prompt's end, the second the answer's."""
        quantiles = self.regression_layer(read[:, 1]).unflatten(-1, (-1, self.num_quantiles))
        objectives = quantiles.mean(dim=-1) @ self.reward_transform_matrix
        return (self.gating(read[:, 0]) * objectives).sum(dim=-1)


def is_head_weight(name: str) -> bool:
    """Whether a published weight belongs to such a head."""
    return name.startswith(("regression_layer.", "gating.", "reward_transform_matrix"))
