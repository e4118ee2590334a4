"""InternLM2-reward as Llama: its decoder is Llama's under other names.

Read from ``internvl/model/internlm2/modeling_internlm2.py`` of OpenGVLab/InternVL (the decoder), from public copies of
``InternLM2ForRewardModel`` (the head, the reward token, ``get_score``), and from ``rewardbench/models/internlm.py`` of
allenai/reward-bench (the reward token is added only where it is not there).
"""

from pathlib import Path
from typing import Any

from torch import Tensor, nn

from steelyard.core.errors import ConfigError, ModelError
from steelyard.core.types import JsonObject
from steelyard.networks.loading import fill, local_folder, quiet, read_config, stored_weights
from steelyard.networks.pretrained import Precision, load_pretrained
from steelyard.networks.published import Family, HeadedModel
from steelyard.networks.settings import DecoderConfig, decoder_rendering
from steelyard.plugins.models._heads import LinearHead

_OF_A_LAYER = {
    "attention.wo": "self_attn.o_proj",
    "feed_forward.w1": "mlp.gate_proj",
    "feed_forward.w3": "mlp.up_proj",
    "feed_forward.w2": "mlp.down_proj",
    "attention_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}


def internlm2_reward(config: DecoderConfig) -> HeadedModel:
    """Return the scorer of an InternLM2-reward folder.

    Raises ConfigError for a length at which positions would depend on the batch, ModelError for another layout.
    """
    folder = local_folder(config.path)
    settings = read_config(folder)
    reward_id = settings.get("reward_token_id")
    if settings.get("model_type") != "internlm2" or not isinstance(reward_id, int):
        raise ModelError("is no InternLM2 with a reward_token_id in its config.json", where=config.path)
    limit = settings["max_position_embeddings"]
    if config.max_length >= limit:
        problem = f"max_length={config.max_length}: beyond the positions it was made for, a score depends on its batch"
        raise ConfigError(problem, where=config.path, allowed=f"below {limit}")
    tokenizer = fast_tokenizer(folder)
    stored = stored_weights(folder, lambda name: not name.endswith("inv_freq"))
    head = LinearHead(settings["hidden_size"])
    fill(head, {"weight": stored.pop("v_head.weight")} if "v_head.weight" in stored else {}, where=folder)
    backbone = llama_from_internlm2(settings, stored, dtype=config.dtype, where=folder)
    family = Family("internlm2_reward", head, behind=(reward_id,))
    return HeadedModel(config, family, backbone, tokenizer=tokenizer, rendering=decoder_rendering(config, tokenizer))


def fast_tokenizer(folder: Path) -> Any:
    """Return the tokenizer of ``tokenizer.json``. Raises ModelError where there is none."""
    from transformers.tokenization_utils_tokenizers import PreTrainedTokenizerFast

    if not (folder / "tokenizer.json").is_file():
        problem = "its tokenizer is code that comes with the model, and such code is not run"
        raise ModelError(problem, where=str(folder), do="put the same tokenizer there as tokenizer.json")
    with quiet():
        return load_pretrained(PreTrainedTokenizerFast, folder)


def llama_from_internlm2(
    settings: JsonObject, stored: dict[str, Tensor], *, dtype: Precision, where: Path
) -> nn.Module:
    """Return the decoder as Llama's. Raises ModelError for weights that are missing or left over."""
    import torch
    from transformers.models.llama import LlamaConfig, LlamaModel

    if settings.get("bias"):
        raise ModelError("has biases in its attention", where=str(where), allowed="the published InternLM2 rewards")
    same = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
            "num_key_value_heads", "rms_norm_eps", "hidden_act", "max_position_embeddings")  # fmt: skip
    scaling = settings.get("rope_scaling") or {}
    kind = scaling.get("type", scaling.get("rope_type", "default"))
    rope = {"rope_type": kind, "rope_theta": float(settings["rope_theta"])}
    made = LlamaConfig(
        **{name: settings[name] for name in same},
        rope_parameters=rope | ({"factor": float(scaling["factor"])} if "factor" in scaling else {}),
        pad_token_id=None,
    )
    model = LlamaModel(made)
    weights: dict[str, Tensor] = {}
    for name, value in stored.items():
        inner = name.removeprefix("model.")
        if inner == "tok_embeddings.weight":
            weights["embed_tokens.weight"] = value
        elif inner.endswith(".attention.wqkv.weight"):
            place = inner.removesuffix("attention.wqkv.weight") + "self_attn"
            for letter, part in zip("qkv", _split(value, settings), strict=True):
                weights[f"{place}.{letter}_proj.weight"] = part
        else:
            number = ".".join(inner.split(".")[:2]) + "."
            part = inner.removeprefix(number).removesuffix(".weight")
            weights[f"{number}{_OF_A_LAYER[part]}.weight" if part in _OF_A_LAYER else inner] = value
    missing, extra = model.load_state_dict(weights, strict=False)
    if missing or extra:
        problem = f"lacks {', '.join(missing[:3])}" if missing else f"has weights of another family: {extra[0]}"
        raise ModelError(problem, where=str(where), do="check the download")
    return model.to(getattr(torch, dtype)).eval()


def _split(fused: Tensor, settings: JsonObject) -> tuple[Tensor, Tensor, Tensor]:
    """Return queries, keys and values, which are stored by groups: a group's queries, then its key, then its value."""
    groups, width = settings["num_key_value_heads"], settings["hidden_size"]
    size = width // settings["num_attention_heads"]
    by_group = fused.view(groups, -1, size, width)
    parts = (by_group[:, :-2], by_group[:, -2], by_group[:, -1])
    queries, keys, values = (part.reshape(-1, width).contiguous() for part in parts)
    return queries, keys, values
