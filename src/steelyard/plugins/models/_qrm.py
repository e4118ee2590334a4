"""The torch half of QRM.

Read from ``rewardbench/models/qrm.py`` of allenai/reward-bench (classes ``LlamaForRewardModelWithGating3`` and ``…31``,
which give the same score).
"""

from typing import Any

from torch import nn

from steelyard.core.errors import ModelError
from steelyard.plugins.models._checkpoint import fill, load_backbone, local_folder, read_config, stored_weights
from steelyard.plugins.models._gating import Gate, GatedHead, is_head_weight, turn_reader
from steelyard.plugins.models._headed import Family, HeadedModel
from steelyard.plugins.models._network import load_tokenizer
from steelyard.plugins.models._settings import DecoderConfig, rendering_of


def build_qrm(config: DecoderConfig) -> HeadedModel:
    """The scorer of a QRM folder."""
    folder = local_folder(config.path)
    tokenizer = load_tokenizer(str(folder))
    head = qrm_head(read_config(folder), where=config.path)
    fill(head, stored_weights(folder, is_head_weight), where=folder)
    family = Family("qrm", head, turn_reader(tokenizer, where=config.path))
    backbone = load_backbone(folder, dtype=config.dtype)
    return HeadedModel(config, family, backbone, tokenizer=tokenizer, rendering=rendering_of(config, tokenizer))


def qrm_head(settings: dict[str, Any], *, where: str) -> GatedHead:
    """The head of a published ``config.json``. Raises ModelError where it names no number of quantiles."""
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
