"""Attention over a pack: each prompt to itself, each answer to its prompt and itself, and nothing else computed.

On a CPU the pack is cut into ragged runs, each through PyTorch's own attention in blocks of fixed size. On a GPU it is
one call of attention over runs of different lengths (`varlen_attention`), or of FlexAttention where that kernel lacks
what a model needs.
"""

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import dropout, pad, scaled_dot_product_attention

from steelyard.networks.devices import has_slow_bfloat16
from steelyard.networks.invariance import FAST, Arithmetic
from steelyard.networks.packing import Branch, Pack

Heads = Float[Tensor, "1 head token size"]
_WIDENED = 256
"""The most keys of a block that attends in float32 on a CPU although bfloat16 is set.

Measured with AMX, with all kernels compiled: bfloat16 attention with its gradient takes 2.6 times as long as float32 at
40 keys, as long at 150, and half as long at 256.
"""
_BLOCK = 64
"""The queries of a block. Blocks begin at multiples of it in the row, wherever the prompt ends."""
_HALF = (torch.bfloat16, torch.float16)


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
    arithmetic: Arithmetic = FAST
    is_last: bool = False


def layout_of(packed: Pack, device: torch.device, arithmetic: Arithmetic = FAST) -> PackLayout:
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
    return PackLayout(packed.branches, places, torch.from_numpy(packed.last).to(device), MaskCache(), arithmetic)


def attend(query: Heads, key: Heads, value: Heads, layout: PackLayout, rule: AttentionRule) -> Heads:
    """Return the attention output. Keys may have fewer heads than queries; the last layer has one query per answer."""
    if value.dtype == torch.bfloat16 and has_slow_bfloat16(value.device):
        return _widened(ragged_attention, query, key, value, layout, rule)
    # FlexAttention supports neither dropout nor float64.
    if query.device.type == "cpu" or rule.dropout > 0 or query.dtype == torch.float64:
        return ragged_attention(query, key, value, layout, rule)
    # Under autocast queries and keys come in float32 from the rotation, and values in 16 bits.
    is_varlen = value.dtype in _HALF and rule.softcap is None and layout.arithmetic.kind != "repeatable"
    if is_varlen and (kernel := _varlen_kernel()) is not None:
        return varlen_attention(query, key, value, layout, rule, kernel=kernel)
    if layout.arithmetic.is_invariant:
        # The blocks of FlexAttention begin anywhere in a row.
        return ragged_attention(query.to(value.dtype), key.to(value.dtype), value, layout, rule)
    return flex_attention(query, key, value, layout, rule, flex=_compiled())


def _widened(attention: Callable[..., Heads], query: Heads, key: Heads, value: Heads, *rest: Any) -> Heads:
    """Return attention that is computed in float32, rounded to the type of the values."""
    with torch.autocast("cpu", enabled=False):
        return attention(query.float(), key.float(), value.float(), *rest).to(value.dtype)


def ragged_attention(query: Heads, key: Heads, value: Heads, layout: PackLayout, rule: AttentionRule) -> Heads:
    """Compute attention run by run, in blocks of queries: each prompt, and each answer behind its prompt.

    Each product has a size that depends on the place of its block in the row, so that neither the pack nor the end of
    the prompt changes a bit: the beginning of a block in which the prompt ends is computed again with each answer.
    """
    # One split: its gradient is one concatenation, while each of many slices would have a gradient of full size.
    sizes = [size for branch in layout.branches for size in (branch.num_shared, *branch.tails)]
    num_queries = [size for branch in layout.branches for size in (0, *[1] * len(branch.tails))]
    num_queries = num_queries if layout.is_last else sizes
    filler, num_unused = key.shape[2] - sum(sizes), query.shape[2] - sum(num_queries)
    keys, values = iter(key.split([*sizes, filler], dim=2)), iter(value.split([*sizes, filler], dim=2))
    queries = iter(query.split([*num_queries, num_unused], dim=2))
    parts: list[Tensor] = []
    for branch in layout.branches:
        shared_query, shared_key, shared_value = next(queries), next(keys), next(values)
        if shared_query.shape[2]:
            parts += _blocks(shared_query, shared_key, shared_value, layout, rule)
        start = branch.num_shared - branch.num_shared % _BLOCK
        for _ in branch.tails:
            row_key = torch.cat([shared_key, next(keys)], dim=2)
            row_value = torch.cat([shared_value, next(values)], dim=2)
            if layout.is_last:
                parts.append(_block(next(queries), row_key, row_value, layout, rule))
                continue
            row_query = torch.cat([shared_query[:, :, start:], next(queries)], dim=2)
            first, *others = _blocks(row_query, row_key, row_value, layout, rule)
            parts += [first[:, :, branch.num_shared - start :], *others]
    if num_unused:
        parts.append(parts[0].new_zeros(*parts[0].shape[:2], num_unused, parts[0].shape[3]))
    return torch.cat(parts, dim=2)


def _blocks(query: Heads, key: Heads, value: Heads, layout: PackLayout, rule: AttentionRule) -> Iterator[Heads]:
    """Yield causal attention of the last queries of a row in blocks, each with the keys up to its end."""
    num_queries, start = query.shape[2], key.shape[2] - query.shape[2]
    filler = (0, 0, 0, -num_queries % _BLOCK)
    query, key, value = (pad(states, filler) if filler[-1] else states for states in (query, key, value))
    for place in range(0, num_queries, _BLOCK):
        end = start + place + _BLOCK
        first = 0 if rule.window is None else max(0, end - _BLOCK + 1 - rule.window) // _BLOCK * _BLOCK
        block = query[:, :, place : place + _BLOCK]
        read = _block(block, key[:, :, first:end], value[:, :, first:end], layout, rule)
        yield read[:, :, : num_queries - place]


def _block(query: Heads, key: Heads, value: Heads, layout: PackLayout, rule: AttentionRule) -> Heads:
    """Return causal attention with the last query at the last key, within the window where there is one."""
    if value.device.type == "cpu" and value.dtype == torch.bfloat16 and key.shape[2] <= _WIDENED:
        return _widened(_block, query, key, value, layout, rule)
    mask = _allowed(query, key.shape[2], layout, rule)
    if rule.softcap is not None:
        return _capped(query, key, value, mask, rule)
    is_grouped = query.shape[1] != key.shape[1]
    return scaled_dot_product_attention(
        query, key, value, attn_mask=mask, scale=rule.scale, dropout_p=rule.dropout, enable_gqa=is_grouped
    )


def _capped(query: Heads, key: Heads, value: Heads, mask: Tensor | None, rule: AttentionRule) -> Heads:
    """Return attention with capped logits, which PyTorch's lacks: softmax(c tanh(qk / c)) v (Gemma 2, section 2)."""
    assert rule.softcap is not None
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = (states.repeat_interleave(groups, dim=1) for states in (key, value))
    logits = torch.tanh(query @ key.transpose(2, 3) * (rule.scale / rule.softcap)) * rule.softcap
    logits = logits if mask is None else logits + mask
    # Softmax in float32, as the eager attention of transformers computes it.
    wide = torch.float64 if query.dtype == torch.float64 else torch.float32
    return dropout(logits.softmax(dim=-1, dtype=wide).to(query.dtype), rule.dropout) @ value


def _allowed(query: Heads, num_keys: int, layout: PackLayout, rule: AttentionRule) -> Tensor | None:
    """Return the mask that is added to the logits: 0 for visible keys, minus infinity for others.

    Null for one query that sees all keys.
    """
    num_queries, window = query.shape[2], rule.window
    if num_queries == 1 and (window is None or num_keys <= window):
        return None
    name = (num_queries, window, query.dtype)
    if name not in layout.masks or layout.masks[name].shape[1] < num_keys:
        # The columns of a longer mask from the end on are those of a shorter one: one mask serves all blocks.
        longest = max(branch.num_shared + max(branch.tails) for branch in layout.branches) + _BLOCK
        ones = torch.ones(num_queries, max(longest, num_keys), dtype=torch.bool, device=query.device)
        last = ones.shape[1] - num_queries
        seen = ones.tril(last) if window is None else ones.tril(last) & ones.triu(last - window + 1)
        # Added to the logits and not boolean: attention with capped logits adds it itself.
        zeros = torch.zeros(ones.shape, dtype=query.dtype, device=query.device)
        layout.masks[name] = zeros.masked_fill_(~seen, float("-inf"))
    return layout.masks[name][:, -num_keys:]


class VarlenKernel(NamedTuple):
    """PyTorch's attention over runs of different lengths, and what its version supports."""

    attend: Callable[..., Any]
    has_groups: bool
    has_splits: bool


@functools.cache
def _varlen_kernel() -> VarlenKernel | None:
    """Return the kernel of this version of PyTorch, null where it is missing or lacks a scale and a window."""
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        return None
    names = inspect.signature(varlen_attn).parameters
    if not {"scale", "window_size"} <= names.keys():
        return None
    return VarlenKernel(varlen_attn, "enable_gqa" in names, "num_splits" in names)


def varlen_attention(
    query: Heads, key: Heads, value: Heads, layout: PackLayout, rule: AttentionRule, *, kernel: VarlenKernel
) -> Heads:
    """Compute all runs in one call: each prompt, and each answer with the keys of its prompt gathered before its own.

    The last query of a run is at its last key. A row's keys begin at its first token, so that neither the pack nor the
    end of the prompt changes a bit of the forward pass.
    """
    runs = _runs(layout, query.shape[2], key.shape[2])
    groups = query.shape[1] // key.shape[1]
    # The kernel takes 16 bits alone.
    gathered = [states[0].to(value.dtype).index_select(1, runs.keys).transpose(0, 1) for states in (key, value)]
    options: dict[str, int] = {}
    if groups > 1 and kernel.has_groups:
        options["enable_gqa"] = True
    elif groups > 1:
        gathered = [states.repeat_interleave(groups, dim=1) for states in gathered]
    if layout.arithmetic.is_invariant and kernel.has_splits:
        options["num_splits"] = 1  # keys that are divided among processors are added in another order
    window = (-1 if rule.window is None else rule.window - 1, 0)
    read = kernel.attend(
        query[0].transpose(0, 1).to(value.dtype), *gathered, runs.query_ends, runs.key_ends,
        runs.most_queries, runs.most_keys, scale=rule.scale, window_size=window, **options,
    )  # fmt: skip
    return read.transpose(0, 1)[None]


class VarlenRuns(NamedTuple):
    """The runs of a pack on its device: the place of each key, and where queries and keys of each run end (int32)."""

    keys: Int[Tensor, " key"]
    query_ends: Int[Tensor, " run"]
    key_ends: Int[Tensor, " run"]
    most_queries: int
    most_keys: int


def _runs(layout: PackLayout, num_queries: int, num_keys: int) -> VarlenRuns:
    """Return the runs of a pack, in the order of its queries; filler attends to itself."""
    name = ("runs", layout.is_last)
    if name not in layout.masks:
        keys: list[np.ndarray] = []
        queries: list[int] = []
        for branch in layout.branches:
            if branch.num_shared and not layout.is_last:
                keys.append(np.arange(branch.start, branch.start + branch.num_shared))
                queries.append(branch.num_shared)
            keys += [branch.places(answer) for answer in range(len(branch.tails))]
            queries += [1] * len(branch.tails) if layout.is_last else branch.tails
        # A run for each query of filler in the last layer, of a block elsewhere: a long run would be computed in vain.
        size = 1 if layout.is_last else _BLOCK
        for start in range(sum(queries), num_queries, size):
            end = min(start + size, num_queries)
            keys.append(np.zeros(1, np.int64) if layout.is_last else np.arange(start, end))
            queries.append(end - start)
        lengths = [len(run) for run in keys]
        ends = [np.cumsum([0, *sizes]) for sizes in (queries, lengths)]
        # One transfer to the device for all.
        numbers = torch.from_numpy(np.concatenate([*ends, *keys]).astype(np.int32)).to(layout.last.device)
        query_ends, key_ends, places = numbers.split([len(queries) + 1, len(queries) + 1, sum(lengths)])
        layout.masks[name] = VarlenRuns(places, query_ends, key_ends, max(queries), max(lengths))
    return layout.masks[name]


class Flex(NamedTuple):
    """PyTorch's FlexAttention and the function that makes its block masks."""

    attend: Callable[..., Tensor]
    block_mask: Callable[..., Any]


def flex_attention(
    query: Heads, key: Heads, value: Heads, layout: PackLayout, rule: AttentionRule, *, flex: Flex
) -> Heads:
    """Compute all runs in one call of FlexAttention, which does not support dropout."""
    softcap = rule.softcap or 0.0

    def capped(score: Tensor, *_: Tensor) -> Tensor:
        return torch.tanh(score / softcap) * softcap

    name = ("blocks", layout.is_last, rule.window)
    if name not in layout.masks:
        sizes = (query.shape[2], key.shape[2])
        layout.masks[name] = flex.block_mask(visibility(layout, rule.window), None, None, *sizes, device=key.device)
    return flex.attend(
        query,
        key,
        value,
        score_mod=capped if softcap else None,
        block_mask=layout.masks[name],
        scale=rule.scale,
        enable_gqa=query.shape[1] != key.shape[1],
    )


def visibility(layout: PackLayout, window: int | None) -> Callable[..., Bool[Tensor, "..."]]:
    """Return FlexAttention's mask function: batch, head, query and key as indices, to whether the key is visible.

    Visible are keys of the same prompt and answer, not after the query, and within the window. The function closes over
    tensors alone: it would be compiled again for every other value.
    """
    prompt, answer, position = (layout.places[name] for name in ("prompt", "answer", "position"))
    # Copies, also of all tokens: one tensor under two names would be compiled apart.
    query_prompt, query_answer, query_position = (
        places[layout.last] if layout.is_last else places.clone() for places in (prompt, answer, position)
    )
    reach = torch.tensor(torch.iinfo(torch.int64).max if window is None else window, device=prompt.device)

    def is_visible(_: Tensor, __: Tensor, query: Tensor, key: Tensor) -> Tensor:
        is_same_row = (query_prompt[query] == prompt[key]) & ((answer[key] == 0) | (answer[key] == query_answer[query]))
        distance = query_position[query] - position[key]
        return is_same_row & (distance >= 0) & (distance < reach)

    return is_visible


@functools.cache
def _compiled(backend: str = "inductor") -> Flex:
    """Return FlexAttention, compiled for any length. Unfused it would take many times as long: that is an error."""
    from torch.nn.attention.flex_attention import create_block_mask
    from torch.nn.attention.flex_attention import flex_attention as kernel

    attend = torch.compile(kernel, dynamic=True, fullgraph=True, backend=backend)
    return Flex(attend, torch.compile(create_block_mask, dynamic=True, fullgraph=True, backend=backend))
