"""Attention over a pack: each prompt to itself, each answer to its prompt and itself, and nothing else computed.

On a CPU the pack is cut into ragged runs, each through PyTorch's own attention; on an accelerator it is one call of
FlexAttention with a block mask, so that no block of foreign tokens is touched.
"""

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import dropout, scaled_dot_product_attention

from steelyard.networks.devices import has_slow_bfloat16
from steelyard.networks.packing import Branch, Pack

Heads = Float[Tensor, "1 head token size"]
_WIDENED = 256
"""The longest row in tokens of packs that attend in float32 on a CPU although bfloat16 is set.

Measured with AMX: the gradient of bfloat16 attention compiles kernels for every length. With all of them compiled it
takes 2.6 times as long as float32 at 40 keys, as long at 150, and half as long at 256.
"""
_QUERIES_AT_A_TIME = 256
"""The least size of a run of a long answer's queries; keys after a run are not computed."""


class AttentionRule(NamedTuple):
    """The parameters of a layer's attention. ``window`` includes the token itself."""

    scale: float
    window: int | None
    softcap: float | None
    dropout: float


class MaskCache(dict[Any, Any]):
    """Masks that layers share; a subclass, since FSDP copies plain dicts when it gathers weights."""


class PackLayout(NamedTuple):
    """A pack on its device. ``masks`` are shared by layers; ``is_last``: only last tokens of answers are queries.

    Filler (`fill_up`) is at the end: it attends to filler alone, and no token attends to it.
    """

    branches: tuple[Branch, ...]
    places: Mapping[str, Int[Tensor, " token"]]
    last: Int[Tensor, " answer"]
    masks: MaskCache
    is_last: bool = False


def layout_of(packed: Pack, device: torch.device) -> PackLayout:
    """Return the layout of a pack on a device.

    ``places`` has the prompt, the answer (from 1; 0 for shared tokens) and the position of each token: shapes (token,).
    """
    pieces = [piece for branch in packed.branches for piece in (branch.num_shared, *branch.tails)]
    prompts = [place for place, branch in enumerate(packed.branches) for _ in (0, *branch.tails)]
    answers = [answer for branch in packed.branches for answer in range(len(branch.tails) + 1)]
    lengths = torch.tensor([*pieces, len(packed.ids) - sum(pieces)])
    # Filler is one more prompt: no other token attends to it, and its softmax is not empty.
    prompts, answers = [*prompts, len(packed.branches)], [*answers, 0]
    places = {
        "prompt": torch.tensor(prompts).repeat_interleave(lengths).to(device),
        "answer": torch.tensor(answers).repeat_interleave(lengths).to(device),
        "position": torch.from_numpy(packed.positions).to(device),
    }
    return PackLayout(packed.branches, places, torch.from_numpy(packed.last).to(device), MaskCache())


def attend(query: Heads, key: Heads, value: Heads, layout: PackLayout, rule: AttentionRule) -> Heads:
    """Return the attention output. Keys may have fewer heads than queries; the last layer has one query per answer."""
    if _is_widened(value, layout):
        with torch.autocast("cpu", enabled=False):
            wide = ragged_attention(query.float(), key.float(), value.float(), layout, rule)
        return wide.to(value.dtype)
    # FlexAttention supports neither dropout nor float64.
    is_ragged = query.device.type == "cpu" or rule.dropout > 0 or query.dtype == torch.float64
    if is_ragged:
        return ragged_attention(query, key, value, layout, rule)
    return flex_attention(query, key, value, layout, rule, kernel=_compiled())


def _is_widened(value: Heads, layout: PackLayout) -> bool:
    """Return whether bfloat16 attention is computed in float32: on a CPU, for short rows or where bfloat16 is slow."""
    if value.device.type != "cpu" or value.dtype != torch.bfloat16:
        return False
    if has_slow_bfloat16(value.device):
        return True
    return max(branch.num_shared + max(branch.tails) for branch in layout.branches) <= _WIDENED


def ragged_attention(query: Heads, key: Heads, value: Heads, layout: PackLayout, rule: AttentionRule) -> Heads:
    """Compute attention run by run: a prompt together with its first answer, then each other answer by itself."""
    # One split: its gradient is one concatenation, while each of many slices would have a gradient of full size.
    sizes = [size for branch in layout.branches for size in (branch.num_shared + branch.tails[0], *branch.tails[1:])]
    num_queries = [1] * len(sizes) if layout.is_last else sizes
    filler, num_unused = key.shape[2] - sum(sizes), query.shape[2] - sum(num_queries)
    keys, values = iter(key.split([*sizes, filler], dim=2)), iter(value.split([*sizes, filler], dim=2))
    queries = iter(query.split([*num_queries, num_unused], dim=2))
    parts: list[Tensor] = []
    for branch in layout.branches:
        first_key, first_value = next(keys), next(values)
        parts.append(_run(next(queries), first_key, first_value, layout, rule))
        shared_key, shared_value = (states[:, :, : branch.num_shared] for states in (first_key, first_value))
        for _ in branch.tails[1:]:
            row_key = torch.cat([shared_key, next(keys)], dim=2)
            row_value = torch.cat([shared_value, next(values)], dim=2)
            parts += _runs(next(queries), row_key, row_value, layout, rule)
    if num_unused:
        parts.append(parts[0].new_zeros(*parts[0].shape[:2], num_unused, parts[0].shape[3]))
    return torch.cat(parts, dim=2)


def _runs(query: Heads, key: Heads, value: Heads, layout: PackLayout, rule: AttentionRule) -> Iterator[Heads]:
    """Yield causal attention with the last query at the last key, in runs without the keys after them."""
    seen = key.shape[2] - query.shape[2]
    for part in query.chunk(max(1, query.shape[2] // _QUERIES_AT_A_TIME), dim=2):
        seen += part.shape[2]
        is_all = seen == key.shape[2]
        yield _run(part, key if is_all else key[:, :, :seen], value if is_all else value[:, :, :seen], layout, rule)


def _run(query: Heads, key: Heads, value: Heads, layout: PackLayout, rule: AttentionRule) -> Heads:
    """Return causal attention with the last query at the last key, within the window where there is one."""
    num_queries, num_keys = query.shape[2], key.shape[2]
    is_windowed = rule.window is not None and num_keys > rule.window
    is_square = num_queries == num_keys and not is_windowed
    if rule.softcap is not None:
        mask = _allowed(num_queries, num_keys, rule.window if is_windowed else None, query, layout)
        return _capped(query, key, value, mask, rule)
    is_grouped = query.shape[1] != key.shape[1]
    # PyTorch aligns is_causal with the first key: it is right for squares alone. One query at the last key sees every
    # key.
    if is_square or (num_queries == 1 and not is_windowed):
        return scaled_dot_product_attention(
            query, key, value, is_causal=is_square, scale=rule.scale, dropout_p=rule.dropout, enable_gqa=is_grouped
        )
    mask = _allowed(num_queries, num_keys, rule.window if is_windowed else None, query, layout)
    return scaled_dot_product_attention(
        query, key, value, attn_mask=mask, scale=rule.scale, dropout_p=rule.dropout, enable_gqa=is_grouped
    )


def _capped(query: Heads, key: Heads, value: Heads, mask: Tensor, rule: AttentionRule) -> Heads:
    """Return attention with capped logits, which PyTorch's lacks: softmax(c tanh(qk / c)) v (Gemma 2, section 2)."""
    assert rule.softcap is not None
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = (states.repeat_interleave(groups, dim=1) for states in (key, value))
    logits = torch.tanh(query @ key.transpose(2, 3) * (rule.scale / rule.softcap)) * rule.softcap + mask
    # Softmax in float32, as the eager attention of transformers computes it.
    wide = torch.float64 if query.dtype == torch.float64 else torch.float32
    return dropout(logits.softmax(dim=-1, dtype=wide).to(query.dtype), rule.dropout) @ value


def _allowed(num_queries: int, num_keys: int, window: int | None, like: Tensor, layout: PackLayout) -> Tensor:
    """Return the mask that is added to the logits: 0 for visible keys, minus infinity for others."""
    name = (num_queries, num_keys, window, like.dtype)
    if name not in layout.masks:
        last = num_keys - num_queries
        ones = torch.ones(num_queries, num_keys, dtype=torch.bool, device=like.device)
        seen = ones.tril(last) if window is None else ones.tril(last) & ones.triu(last - window + 1)
        # Added to the logits and not boolean: attention with capped logits adds it itself.
        zeros = torch.zeros(num_queries, num_keys, dtype=like.dtype, device=like.device)
        layout.masks[name] = zeros.masked_fill_(~seen, float("-inf"))
    return layout.masks[name]


def flex_attention(
    query: Heads, key: Heads, value: Heads, layout: PackLayout, rule: AttentionRule, *, kernel: Callable[..., Tensor]
) -> Heads:
    """Compute all runs in one call of ``kernel``, PyTorch's FlexAttention, which does not support dropout."""
    softcap = rule.softcap or 0.0

    def capped(score: Tensor, *_: Tensor) -> Tensor:
        return torch.tanh(score / softcap) * softcap

    return kernel(
        query,
        key,
        value,
        score_mod=capped if softcap else None,
        block_mask=_block_mask(query.shape[2], key.shape[2], layout, rule.window),
        scale=rule.scale,
        enable_gqa=query.shape[1] != key.shape[1],
    )


def _block_mask(num_queries: int, num_keys: int, layout: PackLayout, window: int | None) -> Any:
    from torch.nn.attention.flex_attention import create_block_mask

    name = ("blocks", layout.is_last, window)
    if name not in layout.masks:
        device = layout.last.device
        layout.masks[name] = create_block_mask(
            visibility(layout, window), None, None, num_queries, num_keys, device=device
        )
    return layout.masks[name]


def visibility(layout: PackLayout, window: int | None) -> Callable[..., Bool[Tensor, "..."]]:
    """Return FlexAttention's mask function: batch, head, query and key as indices, to whether the key is visible.

    Visible are keys of the same prompt and answer, not after the query, and within the window.
    """
    prompt, answer, position = (layout.places[name] for name in ("prompt", "answer", "position"))
    last = layout.last

    def is_visible(_: Tensor, __: Tensor, query: Tensor, key: Tensor) -> Tensor:
        place = last[query] if layout.is_last else query
        is_same_row = (prompt[place] == prompt[key]) & ((answer[key] == 0) | (answer[key] == answer[place]))
        is_past = position[place] >= position[key]
        is_near = True if window is None else position[place] - position[key] < window
        return is_same_row & is_past & is_near

    return is_visible


@functools.cache
def _compiled() -> Callable[..., Tensor]:
    from torch.nn.attention.flex_attention import flex_attention as kernel

    return torch.compile(kernel, dynamic=True)  # packs differ in length: one program for all of them
