"""Attention over a pack in one call of a GPU: runs of different lengths, or FlexAttention with a mask of blocks."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from steelyard.io.progress import log
from steelyard.networks.devices import to_device
from steelyard.networks.pack_layout import AttentionRule, Heads, PackLayout

_FILLER_RUN = 64
_VARLEN = "torch.nn.attention.varlen"


class VarlenKernel(NamedTuple):
    """PyTorch's attention over runs of different lengths, and what its version supports."""

    attend: Callable[..., Any]
    has_groups: bool
    has_splits: bool


@functools.cache
def varlen_kernel() -> VarlenKernel | None:
    """Return the kernel of this version of PyTorch, null where it is missing or lacks a scale and a window.

    A kernel that is there and cannot be imported is null too, and is logged.
    """
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError as error:
        if error.name != _VARLEN:  # neither the module nor its function is missing: it is broken
            log(f"{_VARLEN} cannot be imported, slower attention takes its place: {type(error).__name__}: {error}")
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
        # A run for each query of filler in the last layer, of a few elsewhere: a long run would be computed in vain.
        size = 1 if layout.is_last else _FILLER_RUN
        for start in range(sum(queries), num_queries, size):
            end = min(start + size, num_queries)
            keys.append(np.zeros(1, np.int64) if layout.is_last else np.arange(start, end))
            queries.append(end - start)
        lengths = [len(run) for run in keys]
        ends = [np.cumsum([0, *sizes]) for sizes in (queries, lengths)]
        # One transfer to the device for all.
        numbers = torch.from_numpy(np.concatenate([*ends, *keys]).astype(np.int32))
        numbers = to_device(numbers, layout.last.device)
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
    reach = to_device(torch.tensor(torch.iinfo(torch.int64).max if window is None else window), prompt.device)

    def is_visible(_: Tensor, __: Tensor, query: Tensor, key: Tensor) -> Tensor:
        is_same_row = (query_prompt[query] == prompt[key]) & ((answer[key] == 0) | (answer[key] == query_answer[query]))
        distance = query_position[query] - position[key]
        return is_same_row & (distance >= 0) & (distance < reach)

    return is_visible


@functools.cache
def compiled_flex(backend: Any = "inductor") -> Flex:
    """Return FlexAttention, compiled for any length. Unfused it would take many times as long: that is an error."""
    from torch.nn.attention.flex_attention import create_block_mask
    from torch.nn.attention.flex_attention import flex_attention as kernel

    attend = torch.compile(kernel, dynamic=True, fullgraph=True, backend=backend)
    return Flex(attend, torch.compile(create_block_mask, dynamic=True, fullgraph=True, backend=backend))
