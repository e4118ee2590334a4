"""Attention over a pack: each prompt to itself, each answer to its prompt and itself, and nothing else computed.

On a CPU the pack is cut into ragged runs, or into blocks of fixed size, each through PyTorch's own attention. On a GPU
it is one call of attention over runs of different lengths, or of FlexAttention where that kernel lacks what a model
needs (`steelyard.networks.gpu_attention`).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import dropout, scaled_dot_product_attention

from steelyard.networks.devices import has_slow_bfloat16
from steelyard.networks.gpu_attention import compiled_flex, flex_attention, varlen_attention, varlen_kernel
from steelyard.networks.pack_layout import AttentionRule, Heads, PackLayout

_WIDENED = 256
"""The most keys of a block that attends in float32 on a CPU although bfloat16 is set.

Measured with AMX, with all kernels compiled: bfloat16 attention with its gradient takes 2.6 times as long as float32 at
40 keys, as long at 150, and half as long at 256.
"""
_BLOCK, _SMALL_BLOCK, _NUM_IN_SMALL = 32, 16, 128
"""The queries of a block, those of each of the first tokens of a row, and the number of these tokens.

Blocks begin at multiples of their size, wherever the prompt ends.
"""
_QUERIES_AT_A_TIME = 256
"""The least size of a run of a long answer's queries; keys after a run are not computed."""
_HALF = (torch.bfloat16, torch.float16)


def attend(query: Heads, key: Heads, value: Heads, layout: PackLayout, rule: AttentionRule) -> Heads:
    """Return the attention output. Keys may have fewer heads than queries; the last layer has one query per answer."""
    if _is_widened(value, layout):
        return _widened(ragged_attention, query, key, value, layout, rule)
    # FlexAttention supports neither dropout nor float64.
    if query.device.type == "cpu" or rule.dropout > 0 or query.dtype == torch.float64:
        return ragged_attention(query, key, value, layout, rule)
    # Under autocast queries and keys come in float32 from the rotation, and values in 16 bits.
    is_varlen = value.dtype in _HALF and rule.softcap is None and layout.arithmetic.kind != "repeatable"
    if is_varlen and (kernel := varlen_kernel()) is not None:
        return varlen_attention(query, key, value, layout, rule, kernel=kernel)
    if layout.arithmetic.is_invariant:
        # The blocks of FlexAttention begin anywhere in a row.
        return ragged_attention(query.to(value.dtype), key.to(value.dtype), value, layout, rule)
    return flex_attention(query, key, value, layout, rule, flex=compiled_flex())


def _is_widened(value: Heads, layout: PackLayout) -> bool:
    """Return whether all blocks of the pack attend in float32: on a CPU, for short rows or where bfloat16 is slow."""
    if value.device.type != "cpu" or value.dtype != torch.bfloat16:
        return False
    longest = max(branch.num_shared + max(branch.tails) for branch in layout.branches)
    return longest + _BLOCK <= _WIDENED or has_slow_bfloat16(value.device)


def _widened(attention: Callable[..., Heads], query: Heads, key: Heads, value: Heads, *rest: Any) -> Heads:
    """Return attention that is computed in float32, rounded to the type of the values."""
    with torch.autocast("cpu", enabled=False):
        return attention(query.float(), key.float(), value.float(), *rest).to(value.dtype)


def ragged_attention(query: Heads, key: Heads, value: Heads, layout: PackLayout, rule: AttentionRule) -> Heads:
    """Compute attention run by run: a prompt together with its first answer, then each other answer by itself.

    Runs are as long as possible, and their ends depend on the pack: an invariant pass takes `blocked_attention`.
    """
    if layout.arithmetic.is_invariant:
        return blocked_attention(query, key, value, layout, rule)
    sizes = [size for branch in layout.branches for size in (branch.num_shared + branch.tails[0], *branch.tails[1:])]
    num_queries = [1] * len(sizes) if layout.is_last else sizes
    queries, keys, values = _split(query, num_queries), _split(key, sizes), _split(value, sizes)
    parts: list[Tensor] = []
    for branch in layout.branches:
        first_key, first_value = next(keys), next(values)
        parts.append(_run(next(queries), first_key, first_value, layout, rule))
        shared_key, shared_value = (states[:, :, : branch.num_shared] for states in (first_key, first_value))
        for _ in branch.tails[1:]:
            row_key = torch.cat([shared_key, next(keys)], dim=2)
            row_value = torch.cat([shared_value, next(values)], dim=2)
            parts += _runs_of_queries(next(queries), row_key, row_value, layout, rule)
    return _joined(parts, query.shape[2] - sum(num_queries))


def _split(states: Heads, sizes: Sequence[int]) -> Iterator[Heads]:
    """Return the states of consecutive runs of tokens, and last of those behind them.

    One split: its gradient is one concatenation, while each of many slices would have a gradient of full size.
    """
    return iter(states.split([*sizes, states.shape[2] - sum(sizes)], dim=2))


def _joined(parts: list[Tensor], num_unused: int) -> Heads:
    """Join the states of runs, with zeros for the tokens behind them."""
    if num_unused:
        parts.append(parts[0].new_zeros(*parts[0].shape[:2], num_unused, parts[0].shape[3]))
    return torch.cat(parts, dim=2)


def _runs_of_queries(
    query: Heads, key: Heads, value: Heads, layout: PackLayout, rule: AttentionRule
) -> Iterator[Heads]:
    """Yield causal attention with the last query at the last key, in runs without the keys after them."""
    seen = key.shape[2] - query.shape[2]
    for part in query.chunk(max(1, query.shape[2] // _QUERIES_AT_A_TIME), dim=2):
        seen += part.shape[2]
        yield _run(part, key[:, :, :seen], value[:, :, :seen], layout, rule)


def _run(query: Heads, key: Heads, value: Heads, layout: PackLayout, rule: AttentionRule) -> Heads:
    """Return causal attention with the last query at the last key, without a mask where PyTorch has the rule."""
    num_queries, num_keys = query.shape[2], key.shape[2]
    is_square = num_queries == num_keys
    is_windowed = rule.window is not None and num_keys > rule.window
    # PyTorch aligns is_causal with the first key: it is right for squares alone.
    if rule.softcap is not None:
        return _block(query, key, value, layout, rule)
    is_causal = is_square and not is_windowed
    mask = None if is_causal else _allowed(query, num_keys, 1, layout, rule)
    is_grouped = query.shape[1] != key.shape[1]
    return scaled_dot_product_attention(
        query, key, value, attn_mask=mask, is_causal=is_causal, scale=rule.scale, dropout_p=rule.dropout,
        enable_gqa=is_grouped,
    )  # fmt: skip


def blocked_attention(query: Heads, key: Heads, value: Heads, layout: PackLayout, rule: AttentionRule) -> Heads:
    """Compute attention in blocks of queries: each prompt, and each answer behind its prompt.

    Each product has a size that depends on the place of its block in the row, so that neither the pack nor the end of
    the prompt changes a bit: the beginning of a block in which the prompt ends is computed again with each answer.
    """
    sizes = [size for branch in layout.branches for size in (branch.num_shared, *branch.tails)]
    num_queries = [size for branch in layout.branches for size in (0, *[1] * len(branch.tails))]
    num_queries = num_queries if layout.is_last else sizes
    queries, keys, values = _split(query, num_queries), _split(key, sizes), _split(value, sizes)
    parts: list[Tensor] = []
    for branch in layout.branches:
        shared = _Run(next(queries), next(keys), next(values))
        if shared.query.shape[2]:
            parts += _blocks([shared], branch.num_shared, layout, rule)
        num_again = branch.num_shared % _block_size(branch.num_shared)
        begun = shared._replace(query=shared.query[:, :, branch.num_shared - num_again :])
        for tail in branch.tails:
            answer = _Run(next(queries), next(keys), next(values))
            if layout.is_last:
                key_of_row = torch.cat([shared.key, answer.key], dim=2)
                value_of_row = torch.cat([shared.value, answer.value], dim=2)
                parts.append(_block(answer.query, key_of_row, value_of_row, layout, rule))
                continue
            first, *others = _blocks([begun, answer], num_again + tail, layout, rule)
            parts += [first[:, :, num_again:], *others]
    return _joined(parts, query.shape[2] - sum(num_queries))


class _Run(NamedTuple):
    """The states of consecutive tokens of a row."""

    query: Heads
    key: Heads
    value: Heads


def _blocks(runs: Sequence[_Run], num_queries: int, layout: PackLayout, rule: AttentionRule) -> Iterator[Heads]:
    """Yield causal attention of the last queries of a row in blocks, each with the keys up to its end.

    The row consists of runs; the first may lack queries.
    """
    end = sum(run.key.shape[2] for run in runs)
    filler = -end % _block_size(end - 1)
    query, key, value = (
        torch.cat([*states, states[0].new_zeros(*states[0].shape[:2], filler, states[0].shape[3])], dim=2)
        for states in zip(*runs, strict=True)
    )
    start = end - num_queries
    place = start
    while place < end:
        size = _block_size(place)
        first = 0 if rule.window is None else max(0, place + 1 - rule.window) // size * size
        block = query[:, :, place - start : place - start + size]
        read = _block(block, key[:, :, first : place + size], value[:, :, first : place + size], layout, rule)
        yield read[:, :, : end - place]
        place += size


def _block_size(position: int) -> int:
    return _SMALL_BLOCK if position < _NUM_IN_SMALL else _BLOCK


def _block(query: Heads, key: Heads, value: Heads, layout: PackLayout, rule: AttentionRule) -> Heads:
    """Return causal attention with the last query at the last key, within the window where there is one."""
    if value.device.type == "cpu" and value.dtype == torch.bfloat16 and key.shape[2] <= _WIDENED:
        return _widened(_block, query, key, value, layout, rule)
    _, num_heads, num_queries, size = query.shape
    groups = num_heads // key.shape[1]
    mask = _allowed(query, key.shape[2], groups, layout, rule)
    # The heads of a group stand below each other as further queries: no key is copied.
    query = query.reshape(1, key.shape[1], groups * num_queries, size)
    if rule.softcap is not None:
        read = _capped(query, key, value, mask, rule)
    else:
        read = scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=rule.scale, dropout_p=rule.dropout)
    return read.reshape(1, num_heads, num_queries, size)


def _capped(query: Heads, key: Heads, value: Heads, mask: Tensor | None, rule: AttentionRule) -> Heads:
    """Return attention with capped logits, which PyTorch's lacks: softmax(c tanh(qk / c)) v (Gemma 2, section 2)."""
    assert rule.softcap is not None
    logits = torch.tanh(query @ key.transpose(2, 3) * (rule.scale / rule.softcap)) * rule.softcap
    logits = logits if mask is None else logits + mask
    # Softmax in float32, as the eager attention of transformers computes it.
    wide = torch.float64 if query.dtype == torch.float64 else torch.float32
    return dropout(logits.softmax(dim=-1, dtype=wide).to(query.dtype), rule.dropout) @ value


def _allowed(query: Heads, num_keys: int, groups: int, layout: PackLayout, rule: AttentionRule) -> Tensor | None:
    """Return the mask that is added to the logits: 0 for visible keys, minus infinity for others.

    It has a row for each query of each of the ``groups`` of heads; null for one query that sees all keys.
    """
    num_queries, window = query.shape[2], rule.window
    if num_queries == 1 and (window is None or num_keys <= window):
        return None
    is_block = num_queries in (_SMALL_BLOCK, _BLOCK)
    name = (num_queries, groups, window, query.dtype, 0 if is_block else num_keys)
    if name not in layout.masks or layout.masks[name].shape[1] < num_keys:
        # The columns of a longer mask from the end on are those of a shorter one: one mask serves all blocks.
        longest = max(branch.num_shared + max(branch.tails) for branch in layout.branches) + _BLOCK
        width = max(longest, num_keys) if is_block else num_keys
        ones = torch.ones(num_queries, width, dtype=torch.bool, device=query.device)
        last = ones.shape[1] - num_queries
        seen = ones.tril(last) if window is None else ones.tril(last) & ones.triu(last - window + 1)
        # Added to the logits and not boolean: attention with capped logits adds it itself.
        zeros = torch.zeros(ones.shape, dtype=query.dtype, device=query.device)
        layout.masks[name] = zeros.masked_fill_(~seen, float("-inf")).repeat(groups, 1)
    return layout.masks[name][:, -num_keys:]
