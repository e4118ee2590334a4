"""Rewards of packed prompts: each prompt's tokens once, each answer attending to the prompt and to itself alone.

It is exact for decoders with causal attention and rotary positions, whose layers `EXACT` names; the last layer works
out only what the score reads. Everything else of the model is transformers' own: our attention is registered with its
attention interface, and stands in while a pack is scored.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface

from steelyard.methods.training.sharing import Branch, Pack
from steelyard.plugins.models._network import RewardNetwork

EXACT = ("gemma", "gemma2", "gemma3_text", "llama", "mistral", "qwen2", "qwen3")
"""The model types for which packing is exact, each held against one forward an answer in the tests."""

_NAME = "steelyard_packed"
_NOT_EXACT = {
    "bert": "its attention looks both ways",
    "gpt2": "its positions are learned",
    "mamba": "its layers are recurrent",
    "mamba2": "its layers are recurrent",
    "mixtral": "its experts are not tested",
    "qwen3_next": "some of its layers are recurrent",
}


def reason_against(network: RewardNetwork) -> str | None:
    """Why packing is not exact for this model, or null where it is."""
    settings = network.classifier.config.get_text_config()
    kind = settings.model_type
    if kind not in EXACT:
        return f"{kind}: {_NOT_EXACT.get(kind, 'packing is not known to be exact for it')}"
    if getattr(settings, "use_bidirectional_attention", False):
        return f"{kind}: its attention looks both ways"
    return None


def packed_rewards(network: RewardNetwork, packed: Pack) -> Float[Tensor, " answer"]:
    """The reward of every answer in the pack, in its order, in the head's number type.

    Asserts that packing is exact for the model (`reason_against`).
    """
    device = network.head.weight.device
    ids, positions = (torch.from_numpy(column)[None].to(device) for column in (packed.ids, packed.positions))
    layout = _Layout(packed.branches, torch.from_numpy(packed.last).to(device))
    backbone: Any = network.backbone
    with _standing_in(backbone, layout):
        hidden = backbone(
            input_ids=ids, position_ids=positions, attention_mask=None, use_cache=False
        ).last_hidden_state[0]
    # In bfloat16 rewards tie that are not equal: the head works in its own type, float32, whatever surrounds it.
    with torch.autocast(device.type, enabled=False):
        return network.head(hidden.to(network.head.weight.dtype))[:, 0]


class _Layout(NamedTuple):
    branches: tuple[Branch, ...]
    last: Tensor


@contextmanager
def _standing_in(backbone: Any, layout: _Layout) -> Iterator[None]:
    """Our attention in every layer, and our last layer, as long as the block runs."""
    settings, layer = backbone.config, backbone.layers[-1]
    before = settings._attn_implementation
    for one in backbone.layers:
        one.self_attn.packed_branches = layout.branches
    settings._attn_implementation = _NAME
    layer.forward = lambda hidden_states, **given: _last_layer(layer, hidden_states, layout, **given)
    try:
        yield
    finally:
        del layer.forward
        settings._attn_implementation = before
        for one in backbone.layers:
            del one.self_attn.packed_branches


def _no_mask(*_: Any, **__: Any) -> None:
    """Who attends to whom follows from the branches."""


def _attention(module: Any, query: Tensor, key: Tensor, value: Tensor, _: Any, **given: Any) -> tuple[Tensor, None]:
    """Attention over a pack: ``[1, head, token, size]`` to ``[1, token, head, size]``, as transformers asks it."""
    rule = _rule(module, given)
    key, value = _for_each_head(key, query), _for_each_head(value, query)
    parts: list[Tensor] = []
    for branch in module.packed_branches:
        parts += _branch_attention(branch, query, key, value, rule)
    return torch.cat(parts, dim=2).transpose(1, 2), None


class _Rule(NamedTuple):
    scale: float
    window: int | None
    softcap: float | None
    dropout: float


def _rule(module: Any, given: Any) -> _Rule:
    softcap = given.get("softcap") or getattr(module, "attn_logit_softcapping", None)
    return _Rule(given["scaling"], given.get("sliding_window"), softcap, given.get("dropout", 0.0))


def _for_each_head(values: Tensor, query: Tensor) -> Tensor:
    """Keys or values of shared heads, once for each head of the queries."""
    groups = query.shape[1] // values.shape[1]
    return values if groups == 1 else values.repeat_interleave(groups, dim=1)


def _branch_attention(branch: Branch, query: Tensor, key: Tensor, value: Tensor, rule: _Rule) -> Iterator[Tensor]:
    """The prompt together with its first answer, which lie in one run, then each further answer behind the prompt."""
    start, shared = branch.start, branch.num_shared
    first = slice(start, start + shared + branch.tails[0])
    yield _attend(query[:, :, first], key[:, :, first], value[:, :, first], rule)
    prompt = slice(start, start + shared)
    for place, length in list(zip(branch.tail_starts(), branch.tails, strict=True))[1:]:
        own = slice(place, place + length)
        keys, values = (torch.cat([one[:, :, prompt], one[:, :, own]], dim=2) for one in (key, value))
        yield _attend(query[:, :, own], keys, values, rule)


def _attend(query: Tensor, key: Tensor, value: Tensor, rule: _Rule) -> Tensor:
    """Causal attention whose last query stands at the last key, within the window where there is one."""
    num_queries, num_keys = query.shape[2], key.shape[2]
    is_windowed = rule.window is not None and num_keys > rule.window
    if rule.softcap is None and not is_windowed and num_queries == num_keys:
        return scaled_dot_product_attention(query, key, value, is_causal=True, scale=rule.scale, dropout_p=rule.dropout)
    mask = _mask(num_queries, num_keys, rule.window, query.device)
    if rule.softcap is None:
        return scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=rule.scale, dropout_p=rule.dropout)
    weights = torch.tanh(query @ key.transpose(2, 3) * (rule.scale / rule.softcap)) * rule.softcap
    weights = weights.masked_fill(~mask, float("-inf")).softmax(dim=-1, dtype=_wide(query)).to(query.dtype)
    return torch.nn.functional.dropout(weights, rule.dropout) @ value


def _wide(values: Tensor) -> torch.dtype:
    """The number type of a softmax: float32, or float64 where all is."""
    return torch.float64 if values.dtype == torch.float64 else torch.float32


def _mask(num_queries: int, num_keys: int, window: int | None, device: torch.device) -> Tensor:
    """True where a query may look: not ahead, and not further back than the window."""
    ones = torch.ones(num_queries, num_keys, dtype=torch.bool, device=device)
    last = num_keys - num_queries
    allowed = ones.tril(last)
    return allowed if window is None else allowed & ones.triu(last - window + 1)


def _last_layer(layer: Any, hidden: Tensor, layout: _Layout, *, position_embeddings: Any, **_: Any) -> Tensor:
    """The last layer, worked out only at the last token of each answer: keys and values of all, queries of those."""
    attention, turn = layer.self_attn, sys.modules[type(layer).__module__].apply_rotary_pos_emb
    cos, sin = position_embeddings
    normed = layer.input_layernorm(hidden)
    residual, asked = hidden[:, layout.last], normed[:, layout.last]
    query = _heads(attention, "q", asked)
    key, value = _heads(attention, "k", normed), _heads(attention, "v", normed)
    query, _ = turn(query, query, cos[:, layout.last], sin[:, layout.last])
    key, _ = turn(key, key, cos, sin)
    dropout = attention.attention_dropout if attention.training else 0.0
    # Mistral's layers leave the window to the config; the others know which of them have one.
    window = getattr(attention, "sliding_window", getattr(attention.config, "sliding_window", None))
    rule = _rule(attention, {"scaling": attention.scaling, "sliding_window": window, "dropout": dropout})
    key, value = _for_each_head(key, query), _for_each_head(value, query)
    read = torch.cat(list(_last_attention(layout.branches, query, key, value, rule)), dim=2)
    mixed = attention.o_proj(read.transpose(1, 2).flatten(2))
    return _after_attention(layer, residual, mixed)


def _heads(attention: Any, name: str, hidden: Tensor) -> Tensor:
    """Queries, keys or values by head, ``[1, head, token, size]``, normed where the family norms them."""
    made = getattr(attention, f"{name}_proj")(hidden).unflatten(-1, (-1, attention.head_dim))
    norm = getattr(attention, f"{name}_norm", None)
    return (made if norm is None else norm(made)).transpose(1, 2)


def _last_attention(
    branches: tuple[Branch, ...], query: Tensor, key: Tensor, value: Tensor, rule: _Rule
) -> Iterator[Tensor]:
    answer = 0
    for branch in branches:
        prompt = slice(branch.start, branch.start + branch.num_shared)
        for place, length in zip(branch.tail_starts(), branch.tails, strict=True):
            own = slice(place, place + length)
            keys, values = (torch.cat([one[:, :, prompt], one[:, :, own]], dim=2) for one in (key, value))
            yield _attend(query[:, :, answer : answer + 1], keys, values, rule)
            answer += 1


def _after_attention(layer: Any, residual: Tensor, mixed: Tensor) -> Tensor:
    """What the families do behind attention: a norm before the feed-forward, or one before and after each part."""
    if hasattr(layer, "pre_feedforward_layernorm"):
        hidden = residual + layer.post_attention_layernorm(mixed)
        return hidden + layer.post_feedforward_layernorm(layer.mlp(layer.pre_feedforward_layernorm(hidden)))
    hidden = residual + mixed
    return hidden + layer.mlp(layer.post_attention_layernorm(hidden))


AttentionInterface.register(_NAME, _attention)
AttentionMaskInterface.register(_NAME, _no_mask)
