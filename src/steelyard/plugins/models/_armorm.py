"""The torch half of ArmoRM.

Read from public copies of the ``modeling_custom.py`` that is published with RLHFlow/ArmoRM-Llama3-8B-v0.1
(class ``LlamaForRewardModelWithGating``) and from ``armo-rm/stage-2_train.py`` of RLHFlow/RLHF-Reward-Modeling.

Differs from: that file, which works in bfloat16 throughout: here everything behind the decoder is float32.
"""

from typing import Any

from torch import nn

from steelyard.plugins.models._checkpoint import fill, load_backbone, local_folder, read_config, stored_weights
from steelyard.plugins.models._gating import Gate, GatedHead, is_head_weight, turn_reader
from steelyard.plugins.models._headed import Family, HeadedModel
from steelyard.plugins.models._network import load_tokenizer
from steelyard.plugins.models._settings import DecoderConfig, rendering_of


def build_armorm(config: DecoderConfig) -> HeadedModel:
    """The scorer of an ArmoRM folder."""
    folder = local_folder(config.path)
    tokenizer = load_tokenizer(str(folder))
    head = armorm_head(read_config(folder))
    fill(head, stored_weights(folder, is_head_weight), where=folder)
    family = Family("armorm", head, turn_reader(tokenizer, where=config.path))
    backbone = load_backbone(folder, dtype=config.dtype)
    return HeadedModel(config, family, backbone, tokenizer=tokenizer, rendering=rendering_of(config, tokenizer))


def armorm_head(settings: dict[str, Any]) -> GatedHead:
    """The head of a published ``config.json``; absent settings are the published file's defaults."""
    width, num_objectives = settings["hidden_size"], settings.get("num_objectives", 19)
    inner = settings.get("gating_hidden_dim", 1024)
    widths = [width] + [inner] * settings.get("gating_n_hidden", 3)
    layers = [nn.Linear(before, after) for before, after in zip(widths, [*widths[1:], num_objectives], strict=True)]
    gate = Gate(layers, temperature=settings.get("gating_temperature", 10), is_relu_between=True)
    return GatedHead(width, gate, num_objectives=num_objectives)
