"""Modes of a training that change no result but by rounding: recomputed activations and compiled layers."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from steelyard.core.errors import ModelError
from steelyard.io.progress import log
from steelyard.networks.devices import best_device
from steelyard.networks.reward_network import RewardNetwork

Recompute = Literal["none", "mlp", "layers"]


def set_recompute(network: RewardNetwork, mode: Recompute) -> None:
    """Let the backward pass recompute what the forward pass does not keep: the same gradients, the same dropout.

    ``mlp``: within norms and feed-forward parts, which keep their inputs alone; ``layers``: whole decoder layers.
    Raises ModelError where these parts cannot be told.
    """
    layers = network.layers
    if mode == "layers":
        parts: list[Any] = layers
    else:
        parts = [part for layer in layers for part in _light_parts(layer)] if mode == "mlp" else []
    if mode == "mlp" and not parts:
        raise ModelError("cannot tell the layers' norms and feed-forward parts", do="use --set recompute=layers")
    for part in parts:
        part.forward = partial(_again, part.forward)


def _again(forward: Callable[..., Any], *given: Any, **named: Any) -> Any:
    if not torch.is_grad_enabled():
        return forward(*given, **named)
    return checkpoint(forward, *given, use_reentrant=False, **named)


def _light_parts(layer: nn.Module) -> Iterator[nn.Module]:
    for name, part in layer.named_children():
        if name == "mlp" or "Norm" in type(part).__name__:
            yield part


def compile_layers(network: RewardNetwork) -> bool:
    """Compile the decoder layers for any length; false, with a logged reason, where there is no compiler.

    The last layer is left as it is: in a pack it computes only what the score reads.
    """
    device = best_device()
    try:
        torch.compile(_one_more)(torch.zeros(2, device=device))
    except RuntimeError as error:
        what = "a C++ compiler (g++)" if device.type == "cpu" else "Triton"
        log(f"compile=true goes on without: it needs {what}: {str(error).splitlines()[0]}")
        return False
    _keep_attention_apart()
    for layer in network.layers[:-1]:
        layer.forward = torch.compile(layer.forward, dynamic=True)
    return True


def _one_more(value: torch.Tensor) -> torch.Tensor:
    return value + 1


def _keep_attention_apart() -> None:
    """Attention over a pack goes run by run, each of another length: compiled, each would be a program of its own."""
    from transformers import AttentionInterface

    from steelyard.networks import packed_forward as _packed

    registered = AttentionInterface()
    for name in _packed.ATTENTIONS:
        AttentionInterface.register(name, torch.compiler.disable(registered[name]))


def without_modes(network: RewardNetwork) -> None:
    """Let every part run as its class says, as before `set_recompute` and `compile_layers`."""
    for module in network.modules():
        vars(module).pop("forward", None)
