"""Rewards of packed prompts: each prompt's tokens once, each answer attending to the prompt and to itself alone.

It is exact for decoders with causal attention and rotary positions, listed in `EXACT`. The model's forward runs with an
attention that is registered with transformers' attention interface and handles packs; the last layer computes only the
tokens that are scored.
"""

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, eager_mask, sdpa_mask
from transformers.modeling_utils import AttentionInterface

from steelyard.networks.devices import has_slow_bfloat16, to_device
from steelyard.networks.invariance import FAST, Arithmetic
from steelyard.networks.pack_attention import attend
from steelyard.networks.pack_layout import AttentionRule, PackLayout, layout_of
from steelyard.networks.packing import Pack, few_sizes, fill_up

EXACT = (
    "gemma", "gemma2", "gemma3_text", "llama", "mistral", "mixtral", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe",
)  # fmt: skip
"""The model types for which packing is exact; tests compare each with one forward pass for each answer."""

_NOT_EXACT = {
    "bert": "its attention looks both ways",
    "dbrx": "its experts may be limited in capacity",
    "falcon_mamba": "its layers are recurrent",
    "gpt2": "its positions are learned",
    "gpt_neox": "its layers take attention and feed-forward side by side",
    "jamba": "some of its layers are recurrent",
    "llama4_text": "some of its layers attend within chunks",
    "mamba": "its layers are recurrent",
    "mamba2": "its layers are recurrent",
    "modernbert": "its attention looks both ways",
    "opt": "its positions are learned",
    "qwen3_5": "some of its layers are recurrent",
    "qwen3_next": "some of its layers are recurrent",
    "recurrent_gemma": "some of its layers are recurrent",
    "rwkv": "its layers are recurrent",
    "switch_transformers": "its experts are limited in capacity",
}
_PLAIN = {"eager": eager_mask, "sdpa": sdpa_mask}
_Keywords = dict[str, Any]
_Changed = tuple[tuple[Any, ...], _Keywords] | None


def packing_obstacle(settings: Any) -> str | None:
    """Return why packing is not exact for a decoder of these settings (transformers' configuration), null if it is."""
    kind, values = settings.model_type, settings.to_dict()
    if kind not in EXACT:
        return f"{kind}: {_NOT_EXACT.get(kind, 'packing is not known to be exact for it')}"
    if values.get("use_bidirectional_attention") or values.get("is_causal") is False:
        return f"{kind}: its attention looks both ways"
    if _rotates_by_length(values.get("rope_parameters")):
        return f"{kind}: its positions depend on the longest row of the batch"
    if settings._attn_implementation not in (*_PLAIN, *map(_name, _PLAIN)):
        return f"{kind}: its attention is {settings._attn_implementation}"
    return None


def _rotates_by_length(rope: Any) -> bool:
    """Return whether the rotation of a token depends on the lengths of other rows in the batch."""
    if not isinstance(rope, dict):
        return False
    kind = str(rope.get("rope_type"))
    return "dynamic" in kind or kind == "longrope" or any(map(_rotates_by_length, rope.values()))


def wanted_tokens(device: torch.device) -> int | None:
    """Return the best size of a pack in tokens: on a CPU one that stays in its cache, null where memory decides.

    Measured: packs of 8,192 and 16,384 tokens take 11 % and 18 % longer a token than those of 2,048 to 4,096.
    """
    return 3072 if device.type == "cpu" else None


def packed_rewards(
    backbone: Any, head: nn.Linear, packed: Pack, *, is_pruned: bool = True, arithmetic: Arithmetic = FAST
) -> Float[Tensor, " answer"]:
    """Return the reward of every answer in the pack, in its order, in the head's number type.

    Without ``is_pruned`` the last layer computes every token, with the same result but for rounding. Packing must be
    exact for the decoder (`packing_obstacle`).
    """
    device, num_answers = head.weight.device, sum(len(branch.tails) for branch in packed.branches)
    sizes = few_sizes(packed) if _compiles_products(backbone, device) else (len(packed.ids), len(packed.last))
    if arithmetic.is_invariant:
        sizes = (arithmetic.num_rows(sizes[0]), arithmetic.num_rows(sizes[1]))
        # With one query a row, kernels of a GPU may divide its keys among processors, by the size of the pack.
        is_pruned = is_pruned and device.type == "cpu"
    packed = fill_up(packed, *sizes)
    layout = layout_of(packed, device, arithmetic)
    hidden = packed_states(backbone, packed, layout, is_pruned=is_pruned)
    # The answers of `fill_up` come last, and have no reward.
    read = hidden if is_pruned else hidden[layout.last]
    if device.type == "cpu" or not arithmetic.is_invariant:  # a GPU adds rows up by kernels that their number chooses
        read = read[:num_answers]
    # In bfloat16 unequal rewards tie: the head computes in its own type, float32, inside any network.
    with torch.autocast(device.type, enabled=False):
        return head(read.to(head.weight.dtype))[:num_answers, 0]


def _compiles_products(backbone: nn.Module, device: torch.device) -> bool:
    """Return whether a kernel is compiled for each size of a product: oneDNN, in bfloat16 on a CPU.

    Measured with AMX: compiling takes 25 ms where the product of 1,000 tokens takes 5, and a kernel 4 MB.
    """
    if device.type != "cpu" or has_slow_bfloat16(device):
        return False
    return torch.is_autocast_enabled("cpu") or next(backbone.parameters()).dtype == torch.bfloat16


def packed_states(backbone: Any, packed: Pack, layout: PackLayout, *, is_pruned: bool) -> Float[Tensor, "token size"]:
    """Return the last hidden states of a pack: of every token, or, pruned, of the last token of each answer.

    From then on the model uses the packing attention, which equals its former attention without a pack.
    """
    # The model's attention is replaced permanently: layers that checkpointing recomputes need it too. Without a pack
    # the hooks do nothing.
    if backbone.config._attn_implementation in _PLAIN:
        backbone.config._attn_implementation = _name(backbone.config._attn_implementation)
        backbone.layers[-1].register_forward_pre_hook(_prune, with_kwargs=True)
        backbone.layers[-1].self_attn.register_forward_pre_hook(_read_all, with_kwargs=True)
    device = layout.last.device
    return backbone(
        input_ids=to_device(torch.from_numpy(packed.ids)[None], device),
        position_ids=layout.places["position"][None],
        attention_mask=torch.empty(1, 1, 0, 0, device=device),  # of four dimensions: taken as a complete mask
        use_cache=False,
        packed=_PackedPass(layout, is_pruned),
    ).last_hidden_state[0]


class _PackedPass(NamedTuple):
    """The argument of every layer in a forward pass of a pack."""

    layout: PackLayout
    is_pruned: bool


class _PrunedPass(NamedTuple):
    """The argument of the last layer: what its attention needs of the tokens that are pruned from it."""

    layout: PackLayout
    hidden: Tensor
    rotation: Any
    norm: Any
    states: tuple[Tensor, Tensor] | None = None


def _name(plain: str) -> str:
    return f"steelyard_{plain}"


def _prune(layer: Any, args: tuple[Any, ...], kwargs: _Keywords) -> _Changed:
    """Reduce the last layer's input to the last token of each answer; the states of all tokens go with ``packed``."""
    packed = kwargs.get("packed")
    if packed is None or not packed.is_pruned:
        return None
    (hidden,), layout = args, packed.layout
    cos, sin = kwargs["position_embeddings"]
    last = _PrunedPass(layout._replace(is_last=True), hidden, (cos, sin), layer.input_layernorm)
    # Queries are rotated at the positions of their tokens in the row, which pruning must not renumber.
    rotation = (cos[:, layout.last], sin[:, layout.last])
    return (hidden[:, layout.last],), kwargs | {"packed": last, "position_embeddings": rotation}


def _read_all(attention: Any, args: tuple[Any, ...], kwargs: _Keywords) -> _Changed:
    """Compute keys and values of all tokens for the queries of the last layer."""
    last = kwargs.get("packed")
    if not isinstance(last, _PrunedPass):
        return None
    normed = last.norm(last.hidden)
    keys, values = (_heads(attention, name, normed) for name in ("k", "v"))
    # The family's own rotation takes queries and keys: keys stand for both, and the first result is not used.
    turned = sys.modules[type(attention).__module__].apply_rotary_pos_emb(keys, keys, *last.rotation)[1]
    return args, kwargs | {"packed": last._replace(states=(turned, values))}


def _heads(attention: Any, name: str, hidden: Tensor) -> Tensor:
    """Return keys or values by head, ``[1, head, token, size]``, normed where the family norms them."""
    children = dict(attention.named_children())
    heads = children[f"{name}_proj"](hidden).unflatten(-1, (-1, attention.head_dim))
    norm = children.get(f"{name}_norm")
    return (heads if norm is None else norm(heads)).transpose(1, 2)


def _packing_attention(plain: str) -> Callable[..., tuple[Tensor, Tensor | None]]:
    """Return attention for transformers, ``[1, head, token, size]`` to ``[1, token, head, size]``.

    Without a pack it is the ``plain`` one.
    """

    def attention(
        module: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        *,
        packed: Any = None,
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor | None]:
        if packed is None:
            eager = sys.modules[type(module).__module__].eager_attention_forward
            return (eager if plain == "eager" else sdpa_attention_forward)(module, query, key, value, mask, **kwargs)
        if isinstance(packed, _PrunedPass):
            assert packed.states is not None, "made before the layer's attention"
            key, value = packed.states
        # Some families pass the window with each call, others keep it in the layer.
        window = kwargs["sliding_window"] if "sliding_window" in kwargs else vars(module).get("sliding_window")
        rule = AttentionRule(kwargs["scaling"], window, kwargs.get("softcap"), kwargs.get("dropout", 0.0))
        return attend(query, key, value, packed.layout, rule).transpose(1, 2), None

    return attention


for _plain, _mask in _PLAIN.items():
    AttentionInterface.register(_name(_plain), _packing_attention(_plain))
    AttentionMaskInterface.register(_name(_plain), _mask)
