"""Modes of training that change no result except by rounding: recomputed activations and compiled layers."""

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
    """Let the backward pass recompute activations, with equal gradients and equal dropout.

    ``mlp``: norms and feed-forward parts keep their inputs alone; ``layers``: whole decoder layers do.
    Raises ModelError where these parts cannot be identified.
    """
    layers = network.layers
    if mode == "layers":
        parts: list[Any] = layers
    else:
        parts = [part for layer in layers for part in _light_parts(layer)] if mode == "mlp" else []
    if mode == "mlp" and not parts:
        raise ModelError("cannot identify the layers' norms and feed-forward parts", do="use --set recompute=layers")
    for part in parts:
        part.forward = partial(_recomputed, part.forward)


def _recomputed(forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    if not torch.is_grad_enabled():
        return forward(*args, **kwargs)
    return checkpoint(forward, *args, use_reentrant=False, **kwargs)


def _light_parts(layer: nn.Module) -> Iterator[nn.Module]:
    for name, part in layer.named_children():
        if name == "mlp" or "Norm" in type(part).__name__:
            yield part


def compile_layers(network: RewardNetwork) -> bool:
    """Compile the decoder layers for any length; return false, and log the reason, without a compiler.

    The last layer is not compiled: in a pack it computes only the tokens that are scored.
    """
    device = best_device()
    try:
        torch.compile(lambda value: value + 1)(torch.zeros(2, device=device))
    except RuntimeError as error:
        compiler = "a C++ compiler (g++)" if device.type == "cpu" else "Triton"
        log(f"compile=true has no effect: it needs {compiler}: {str(error).splitlines()[0]}")
        return False
    _exclude_attention()
    for layer in network.layers[:-1]:
        layer.forward = torch.compile(layer.forward, dynamic=True)
    return True


def _exclude_attention() -> None:
    """Exclude packed attention from compilation: it goes run by run, and each length would be compiled separately."""
    from transformers import AttentionInterface

    from steelyard.networks.packed_forward import ATTENTIONS

    registered = AttentionInterface()
    for name in ATTENTIONS:
        AttentionInterface.register(name, torch.compiler.disable(registered[name]))


def without_modes(network: RewardNetwork) -> None:
    """Undo `set_recompute` and `compile_layers`: every module runs the forward of its class."""
    for module in network.modules():
        vars(module).pop("forward", None)
