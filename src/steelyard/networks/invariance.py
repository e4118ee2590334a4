"""Rewards with the same bits in every batch: how a device must compute products for it, found by trying it.

A product of matrices is computed by a kernel that is chosen for its number of rows, and kernels add up in different
orders. A reward then depends on what else is in its pack. It does not where every product has enough rows for one
kernel, or is computed in blocks of one size. On a CPU the last numbers of an activation are computed by another
function than the others, one by one: activations are computed in pieces without such an end.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

_TRIED_ROWS = 3072
_FEWEST_ROWS = 8
"""The rows to which every product is filled up: with fewer, most processors take other kernels."""
_FEW_ROWS = 64
"""Up to this number of rows a product is tried at three places."""
_MOST_FILLED = 128
"""The most rows to which products are filled up; a device that needs more computes them in blocks."""
_BLOCKS = {"cuda": 4096}
_BLOCK = 256
"""The rows of a block, on a GPU and elsewhere: cuBLAS chooses among kernels up to thousands of rows."""
_PIECE = 32_768
"""The numbers that one thread gets of an elementwise operation (PyTorch's grain size): whole vectors in any case."""
_SETTINGS_OF_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")


class Arithmetic(NamedTuple):
    """Computation of a pass, and its numbers of rows.

    ``fast``: bits may differ with the pack and, on a GPU, from run to run. ``repeatable``: one pack, one result.
    ``invariant``: the bits of a reward depend on its row alone; products have ``least_rows`` rows or more, and a
    multiple of ``block`` where that is set. ``single_reason``: why each row is a pass by itself, null where packs are.
    """

    kind: Literal["fast", "repeatable", "invariant"]
    least_rows: int = 1
    block: int | None = None
    single_reason: str | None = None

    @property
    def is_invariant(self) -> bool:
        """True where the bits of a reward depend on its row alone."""
        return self.kind == "invariant"

    def num_rows(self, number: int) -> int:
        """Return the number of rows to which ``number`` rows are filled up."""
        most = max(number, self.least_rows)
        return most if self.block is None else -(-most // self.block) * self.block


FAST = Arithmetic("fast")
REPEATABLE = Arithmetic("repeatable")


def invariant_arithmetic(network: Any, device: torch.device, *, autocast: bool = False) -> Arithmetic:
    """Return the arithmetic with which rewards of the network keep their bits on a device, found by trying it.

    Without a graph, the decoder's activations on a CPU are computed in pieces from now on, and its linear layers in
    blocks where that is needed.
    """
    if reason := _single_reason(network):
        return Arithmetic("invariant", single_reason=reason)
    # One linear layer of each shape is tried.
    linear = (module for module in network.backbone.modules() if isinstance(module, nn.Linear))
    layers = list({(layer.weight.shape, layer.bias is None, layer.weight.dtype): layer for layer in linear}.values())
    with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=autocast):
        if device.type == "cpu":
            # The parts of feed-forward layers without weights compute each row alone.
            parts = (
                part
                for layer in network.layers
                for name, child in layer.named_children()
                if name == "mlp"
                for part in child.modules()
            )
            for part in parts:
                if next(part.parameters(), None) is None and next(part.children(), None) is None:
                    _replace_forward(part, _in_pieces)
        least = None if device.type in _BLOCKS else _least_rows(layers)
        if least is not None:
            return Arithmetic("invariant", least)
        block = _BLOCKS.get(device.type, _BLOCK)
        if not all(_keeps_bits(layer, block) for layer in layers):
            return Arithmetic("invariant", single_reason="products of equal size differ on this device")
    for layer in network.backbone.modules():
        if isinstance(layer, nn.Linear):
            _replace_forward(layer, _in_blocks, block)
    return Arithmetic("invariant", block, block)


def _single_reason(network: Any) -> str | None:
    """Return why rows of this network cannot share a pass with other rows, null where they can."""
    if not getattr(network, "is_packable", True):
        return "a reward of log-probabilities"
    settings = network.classifier.config.get_text_config().to_dict()
    has_experts = any((settings.get(name) or 0) > 1 for name in _SETTINGS_OF_EXPERTS)
    return "experts get rows of all answers of a pass" if has_experts else None


def _least_rows(layers: list[nn.Linear]) -> int | None:
    """Return the number of rows from which on products of these layers keep the bits of each row, null above 128."""
    least = _FEWEST_ROWS
    for layer in layers:
        rows = _drawn(layer, _TRIED_ROWS)
        expected = layer(rows)
        for number, place in _tried():
            if number >= least and not torch.equal(layer(rows[place : place + number]), expected[place:][:number]):
                least = 2 * least
                while least <= number:
                    least *= 2
        if least > _MOST_FILLED:
            return None
    return least


def _tried() -> Iterator[tuple[int, int]]:
    """Yield numbers of rows and the row at which they begin: every small number, then some, odd and even."""
    number, numbers = 17, list(range(_FEWEST_ROWS, 17))
    while number < _TRIED_ROWS // 2:
        numbers.append(number)
        number = number * 3 // 2
    for position, number in enumerate(numbers):
        places = (0, (_TRIED_ROWS - number) // 2, _TRIED_ROWS - number)
        yield from ((number, place) for place in (places if number <= _FEW_ROWS else places[position % 3 :][:1]))


def _keeps_bits(layer: nn.Linear, block: int) -> bool:
    """Return whether the bits of a row do not depend on its place in a block nor on the other rows."""
    rows = _drawn(layer, block)
    expected = layer(rows)
    turned = all(torch.equal(layer(rows.roll(by, 0)), expected.roll(by, 0)) for by in (1, block // 2 + 3))
    others = torch.cat([rows[: block // 2], -2 * rows[block // 2 :]])
    return turned and torch.equal(layer(others)[: block // 2], expected[: block // 2])


def _drawn(layer: nn.Linear, number: int) -> Tensor:
    draws = torch.Generator().manual_seed(0)
    rows = torch.randn(number, layer.in_features, generator=draws)
    return rows.to(layer.weight.device, layer.weight.dtype)


def _replace_forward(part: nn.Module, function: Callable[..., Tensor], *settings: int) -> None:
    """Let a module compute by ``function``, which gets the module, its forward and the settings before its inputs."""
    before = vars(part).get("forward")
    if not (isinstance(before, partial) and before.func is function):
        part.forward = partial(function, part, part.forward, *settings)


def _in_pieces(_: nn.Module, forward: Callable[[Tensor], Tensor], inputs: Tensor) -> Tensor:
    """Return an elementwise function, computed in pieces that threads divide into whole vectors; with a graph in one.

    PyTorch gives each thread 32,768 numbers or more, and computes what is left behind its last whole vector one by one,
    by a function of other rounding.
    """
    if torch.is_grad_enabled():
        return forward(inputs)
    flat = inputs.flatten()
    size = _PIECE * torch.get_num_threads()
    pieces = flat.split(size)
    filled = nn.functional.pad(pieces[-1], (0, size - len(pieces[-1])))
    return torch.cat([forward(piece) for piece in (*pieces[:-1], filled)])[: len(flat)].view_as(inputs)


def _in_blocks(layer: nn.Linear, forward: Callable[[Tensor], Tensor], block: int, inputs: Tensor) -> Tensor:
    """Return the product of a linear layer, computed in blocks of rows; with a graph in one."""
    if torch.is_grad_enabled():
        return forward(inputs)
    rows = inputs.flatten(0, -2)
    number = len(rows)
    rows = nn.functional.pad(rows, (0, 0, 0, -number % block))
    is_plain = type(layer) is nn.Linear and not torch.is_autocast_enabled(rows.device.type) and layer.bias is None
    if is_plain and rows.is_cuda:
        # Each block is written into its place: joining them would copy every product once more.
        product = rows.new_empty(len(rows), layer.out_features)
        for place in range(0, len(rows), block):
            torch.mm(rows[place : place + block], layer.weight.t(), out=product[place : place + block])
    else:
        product = torch.cat([forward(part) for part in rows.split(block)])
    return product[:number].unflatten(0, inputs.shape[:-1])
