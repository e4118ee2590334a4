"""The torch half of GRM's value head.

Read from ``rewardbench/models/grm.py`` of allenai/reward-bench (classes ``ValueHead`` and ``GRewardModel``).
"""

from itertools import pairwise
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from steelyard.plugins.models._checkpoint import fill, load_backbone, local_folder, read_config, stored_weights
from steelyard.plugins.models._headed import Family, HeadedModel
from steelyard.plugins.models._network import load_tokenizer
from steelyard.plugins.models._settings import DecoderConfig, rendering_of


class ValueHead(nn.Module):
    """reward = summary(h): linear, or layers with ReLU between and a linear one at the end."""

    def __init__(self, settings: dict[str, Any]) -> None:
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
        """One reward a row."""
        return self.summary(read[:, 0])[:, 0]


def build_grm(config: DecoderConfig) -> HeadedModel:
    """The scorer of a folder with GRM's value head."""
    folder = local_folder(config.path)
    tokenizer = load_tokenizer(str(folder))
    head = ValueHead(read_config(folder))
    stored = stored_weights(folder, lambda name: name.startswith("v_head."))
    fill(head, {name.removeprefix("v_head."): value for name, value in stored.items()}, where=folder)
    backbone = load_backbone(folder, dtype=config.dtype)
    rendering = rendering_of(config, tokenizer)
    return HeadedModel(config, Family("grm", head), backbone, tokenizer=tokenizer, rendering=rendering)
