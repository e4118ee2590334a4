"""A pack on its device, as attention reads it, and the parameters of a layer's attention."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from steelyard.networks.devices import to_device
from steelyard.networks.invariance import FAST, Arithmetic
from steelyard.networks.packing import Branch, Pack

Heads = Float[Tensor, "1 head token size"]


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
    lengths = [*pieces, len(packed.ids) - sum(pieces)]
    # Filler is one more prompt: no other token attends to it, and its softmax is not empty.
    prompts, answers = [*prompts, len(packed.branches)], [*answers, 0]
    places = {
        name: to_device(torch.from_numpy(column), device)
        for name, column in (
            ("prompt", np.repeat(prompts, lengths)),
            ("answer", np.repeat(answers, lengths)),
            ("position", packed.positions),
        )
    }
    last = to_device(torch.from_numpy(packed.last), device)
    return PackLayout(packed.branches, places, last, MaskCache(), arithmetic)
