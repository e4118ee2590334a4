"""How a training runs, to the same end: with an adapter, with activations worked out again, with compiled layers."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from steelyard.core.errors import ModelError
from steelyard.files.talk import say
from steelyard.plugins.models._adapter import Adapter, Saved, merge_adapter, saved_adapter
from steelyard.plugins.models._network import best_device
from steelyard.plugins.models._reward_network import RewardNetwork
from steelyard.stages.train.processes import current
from steelyard.stages.train.settings import Config

Recompute = Literal["none", "mlp", "layers"]


def adapter_of(config: Config) -> Adapter | None:
    """The adapter that the settings ask for."""
    if config.adapter is None:
        return None
    return Adapter(
        config.adapter, config.adapter_rank, config.adapter_alpha, config.adapter_dropout, config.adapter_layers
    )


def fold_adapter(network: RewardNetwork, config: Config, *, base: str) -> Saved | None:
    """Fold the adapter, if there is one, into the weights; gives it apart where it is to be saved apart.

    Of many processes the first alone has the weights, and saves.
    """
    if config.adapter is None:
        return None
    is_apart = config.save_adapter == "adapter" and current().is_first
    saved = saved_adapter(network, base=base) if is_apart else None
    merge_adapter(network)
    return saved


def set_recompute(network: RewardNetwork, mode: Recompute) -> None:
    """Let the backward pass work out again what the forward pass need not keep: the same gradients, drawn alike.

    ``mlp``: within norms and feed-forward parts, which keep their inputs alone; ``layers``: whole decoder layers.
    Raises ModelError where these parts cannot be told.
    """
    layers = decoder_layers(network)
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
    """Compile the decoder layers for any length; false, and said why, where there is no compiler.

    The last layer is left as it is: in a pack it works out only what the score reads.
    """
    device = best_device()
    try:
        torch.compile(_one_more)(torch.zeros(2, device=device))
    except RuntimeError as error:
        what = "a C++ compiler (g++)" if device.type == "cpu" else "Triton"
        say(f"compile=true goes on without: it needs {what}: {str(error).splitlines()[0]}")
        return False
    _keep_attention_apart()
    for layer in decoder_layers(network)[:-1]:
        layer.forward = torch.compile(layer.forward, dynamic=True)
    return True


def _one_more(value: torch.Tensor) -> torch.Tensor:
    return value + 1


def _keep_attention_apart() -> None:
    """Attention over a pack goes run by run, each of another length: compiled, each would be a program of its own."""
    from transformers import AttentionInterface

    from steelyard.plugins.models import _packed

    registered = AttentionInterface()
    for name in _packed.ATTENTIONS:
        AttentionInterface.register(name, torch.compiler.disable(registered[name]))


def without_modes(network: RewardNetwork) -> None:
    """Let every part run as its class says, as before `set_recompute` and `compile_layers`."""
    for module in network.modules():
        vars(module).pop("forward", None)


def decoder_layers(network: RewardNetwork) -> list[nn.Module]:
    """The decoder's layers, from first to last. Raises ModelError where they cannot be told."""
    for module in network.backbone.modules():
        if isinstance(module, nn.ModuleList):
            return list(module)
    raise ModelError("cannot tell the decoder's layers", do="leave recompute and compile out")
