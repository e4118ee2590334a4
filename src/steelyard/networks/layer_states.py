"""Token states behind the frozen layers, kept for each row: a pack then begins at the first layer that is trained."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from steelyard.networks.packing import Pack, num_shared_tokens

Row = tuple[int, ...]
States = Float[Tensor, "token size"]


class RowStates(NamedTuple):
    """The states of one row: those of the tokens shared with other rows of its prompt (one tensor for all), its own."""

    shared: States
    own: States

    def behind(self, num_tokens: int) -> States:
        """The states behind the first ``num_tokens`` tokens."""
        cut = num_tokens - len(self.shared)
        return self.own[cut:] if cut >= 0 else torch.cat([self.shared[num_tokens:], self.own])


class LayerStates(NamedTuple):
    """What the first ``num_layers`` decoder layers make of each row."""

    num_layers: int
    rows: Mapping[Row, RowStates]

    def of_pack(self, prompts: Sequence[Sequence[Row]]) -> States | None:
        """The states of these prompts in the order of their pack; null where a row is not kept."""
        parts: list[States] = []
        for rows in prompts:
            shared = num_shared_tokens(rows)
            for place, row in enumerate(rows):
                kept = self.rows.get(row)
                if kept is None:
                    return None
                parts.append(kept.behind(0 if place == 0 else shared))
        return torch.cat(parts)


def split_states(states: States, packed: Pack, prompts: Sequence[Sequence[Row]]) -> Iterator[tuple[Row, RowStates]]:
    """The states of a pack, row by row."""
    for branch, rows in zip(packed.branches, prompts, strict=True):
        shared = states[branch.start : branch.start + branch.num_shared].clone()
        ends = [branch.start + branch.num_shared]
        for tail in branch.tails:
            ends.append(ends[-1] + tail)
        for row, (start, end) in zip(rows, pairwise(ends), strict=True):
            yield row, RowStates(shared, states[start:end].clone())


@contextmanager
def begin_at(layers: Sequence[Any], number: int, states: States) -> Iterator[None]:
    """Within it the first ``number`` layers do nothing, and the next one is given ``states``."""

    def given(hidden: Tensor, *_: Any, **__: Any) -> Tensor:
        return torch.nn.functional.pad(states, (0, 0, 0, hidden.shape[1] - len(states)))[None]

    with _replaced(layers[: number - 1], _identity), _replaced(layers[number - 1 : number], given):
        yield


@contextmanager
def end_at(layers: Sequence[Any], number: int, seen: list[States]) -> Iterator[None]:
    """Within it the layers behind the first ``number`` do nothing; the states before them are put into ``seen``."""
    hook = layers[number - 1].register_forward_hook(lambda _, __, found: seen.append(found[0].detach()))
    try:
        with _replaced(layers[number:], _identity):
            yield
    finally:
        hook.remove()


def _identity(hidden: Tensor, *_: Any, **__: Any) -> Tensor:
    return hidden


@contextmanager
def _replaced(layers: Sequence[Any], forward: Any) -> Iterator[None]:
    # A compiled or recomputing layer has its forward in its own dictionary: that one is put back.
    before = [vars(layer).get("forward") for layer in layers]
    for layer in layers:
        layer.forward = forward
    try:
        yield
    finally:
        for layer, former in zip(layers, before, strict=True):
            vars(layer).pop("forward")
            if former is not None:
                layer.forward = former
