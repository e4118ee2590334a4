"""Heads of published reward models: linear, layered, of attributes, and of objectives that a gate weighs.

Each takes the hidden states at the places that its family reads, (row, place, width) in float32, and gives one reward a
row. Their weights have the names under which they are published.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from steelyard.core.errors import ModelError
from steelyard.core.types import JsonObject
from steelyard.networks.published import ReadPlaces

# Where the prompt ends and the answer begins in Llama 3's template. The published pattern also has the two line feeds
# behind it; they are left out, since they become another token where an answer begins with a line feed.
TURN_MARK = "<|eot_id|><|start_header_id|>assistant<|end_header_id|>"
HELPSTEER_WEIGHTS = (0.3, 0.74, 0.46, 0.47, -0.33)
"""The weights of helpfulness, correctness, coherence, complexity and verbosity, in this order."""


class LinearHead(nn.Module):
    """reward = w·h, with h the hidden state at the first place that is read."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1, width))

    def forward(self, read: Float[Tensor, "row place width"]) -> Float[Tensor, " row"]:
        """Return one reward per row."""
        return nn.functional.linear(read[:, 0], self.weight)[:, 0]


class ValueHead(nn.Module):
    """reward = summary(h): linear, or layers with ReLU between and a linear one at the end."""

    def __init__(self, settings: JsonObject) -> None:
        super().__init__()
        width, inner = settings["hidden_size"], settings.get("vhead_num_neurons", 1024)
        if settings.get("vhead_layer_type", "mlp") == "linear":
            self.summary: nn.Module = nn.Linear(width, 1)
            return
        widths = [width] + [inner] * settings.get("vhead_num_layers", 1)
        layers: list[nn.Module] = []
        for before, after in pairwise(widths):
            layers += [nn.Linear(before, after), nn.ReLU()]
        self.summary = nn.Sequential(*layers, nn.Linear(inner, 1))

    def forward(self, read: Float[Tensor, "row place width"]) -> Float[Tensor, " row"]:
        """Return one reward per row."""
        return self.summary(read[:, 0])[:, 0]


class AttributeHead(nn.Module):
    """reward = Σ weight · mean over the attributes; the spreads are not used."""

    def __init__(self, width: int, *, is_weighted: bool, has_bias: bool) -> None:
        super().__init__()
        num = len(HELPSTEER_WEIGHTS)
        self.score = nn.Linear(width, 2 * num, bias=False)
        if is_weighted:
            self.weights = nn.Linear(width, num, bias=has_bias)
        else:
            self.register_buffer("fixed", torch.tensor(HELPSTEER_WEIGHTS), persistent=False)
        self.is_weighted = is_weighted

    def forward(self, read: Float[Tensor, "row place width"]) -> Float[Tensor, " row"]:
        """Return one reward per row."""
        means = self.score(read[:, 0])[:, 0::2]
        weights = self.weights(read[:, 0]) if self.is_weighted else self.fixed
        return (means * weights).sum(dim=-1)


def attribute_head(width: int, weights: Mapping[str, Tensor]) -> AttributeHead:
    """Return the head that the names of the weights imply."""
    is_weighted = any(name.startswith("weights.") for name in weights)
    return AttributeHead(width, is_weighted=is_weighted, has_bias="weights.bias" in weights)


def turn_reader(tokenizer: Any, *, where: str) -> ReadPlaces:
    """Return a reader of the last turn mark, for the gate, and of the last token, for the objectives.

    Raises ModelError for a tokenizer that lacks the mark's tokens: it is another family's model.
    """
    known = tokenizer.get_vocab()
    if absent := [mark for mark in re.findall(r"<\|.*?\|>", TURN_MARK) if mark not in known]:
        problem = f"its tokenizer has no {', '.join(absent)}, which the gate reads at"
        raise ModelError(problem, where=where, allowed="models on Llama 3 with its own template")
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
        """Return one weight per objective; a row's weights sum to the scale."""
        values = prompt
        for index, layer in enumerate(self.layers):
            values = layer(values)
            if self.is_relu_between and index < len(self.layers) - 1:
                values = values.relu()
        return (values / self.temperature).softmax(dim=-1) * self.logit_scale


class GatedHead(nn.Module):
    """reward = Σ gate(prompt) · (objectives(answer) · transform), an objective being the mean of its quantiles."""

    def __init__(self, width: int, gating: Gate, *, num_objectives: int, num_quantiles: int = 1) -> None:
        super().__init__()
        self.regression_layer = nn.Linear(width, num_objectives * num_quantiles, bias=False)
        self.reward_transform_matrix = nn.Parameter(torch.eye(num_objectives))
        self.gating = gating
        self.num_quantiles = num_quantiles

    def forward(self, read: Float[Tensor, "row place width"]) -> Float[Tensor, " row"]:
        """Return one reward per row; the first place is the prompt's end, the second the answer's."""
        quantiles = self.regression_layer(read[:, 1]).unflatten(-1, (-1, self.num_quantiles))
        objectives = quantiles.mean(dim=-1) @ self.reward_transform_matrix
        return (self.gating(read[:, 0]) * objectives).sum(dim=-1)


def armorm_head(settings: JsonObject) -> GatedHead:
    """Return the head of a published ``config.json``; absent settings are the published file's defaults."""
    width, num_objectives = settings["hidden_size"], settings.get("num_objectives", 19)
    inner = settings.get("gating_hidden_dim", 1024)
    widths = [width] + [inner] * settings.get("gating_n_hidden", 3)
    layers = [nn.Linear(before, after) for before, after in zip(widths, [*widths[1:], num_objectives], strict=True)]
    gate = Gate(layers, temperature=settings.get("gating_temperature", 10), is_relu_between=True)
    return GatedHead(width, gate, num_objectives=num_objectives)


def qrm_head(settings: JsonObject, *, where: str) -> GatedHead:
    """Return the head of a published ``config.json``. Raises ModelError where it names no number of quantiles."""
    if "num_quantiles" not in settings:
        raise ModelError("its config.json has no num_quantiles", where=where, allowed="the layout of QRM-Llama3.1-8B")
    width, num_objectives = settings["hidden_size"], settings.get("num_objectives", 19)
    inner, before = settings.get("gating_hidden_dim", 1024), width
    layers: list[nn.Module] = []
    for _ in range(settings.get("gating_n_hidden", 3)):
        layers += [nn.Linear(before, inner, bias=False), nn.ReLU(), nn.BatchNorm1d(inner)]
        before = inner
    layers.append(nn.Linear(before, num_objectives))
    gate = Gate(layers, temperature=settings.get("gating_temperature", 10), is_relu_between=False)
    return GatedHead(width, gate, num_objectives=num_objectives, num_quantiles=settings["num_quantiles"])
