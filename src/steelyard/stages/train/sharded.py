"""A network whose weights lie in parts on many processes (FSDP2), and tensors on their way there and back.

Every function is called by all processes at the same place. Of one process alone nothing is divided.
"""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, distribute_tensor

from steelyard.core.errors import ModelError, UserError
from steelyard.plugins.models._network import best_device
from steelyard.plugins.models._policy import PolicyNetwork
from steelyard.plugins.models._reward_network import RewardNetwork
from steelyard.stages.train.processes import current

_TINY = 1e-6
"""What PyTorch's own clipping adds to a norm before it divides by it."""


def spread(network: RewardNetwork, *, dtype: str) -> RewardNetwork:
    """The network on its device; of many processes each keeps a part of every decoder layer, in place.

    What the first process has is divided: the others may have the network without its weights (`from_first`).
    Gradients are summed over the processes and not averaged: what is divided by is known to the loss. In bfloat16 the
    layers are gathered in the number type in which they compute; all else, the master weights and the sums of
    gradients stay in float32. Raises ModelError when the decoder's layers cannot be told.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard, register_fsdp_forward_method

    processes = current()
    if processes.is_alone:
        return network.to(best_device())
    mesh = init_device_mesh(best_device().type, (processes.number,))
    held = _taken_off(network)
    computed = torch.bfloat16 if dtype == "bfloat16" else None
    in_layers = MixedPrecisionPolicy(computed, torch.float32 if computed else None, cast_forward_inputs=False)
    for layer in _layers(network):
        _sum_up(fully_shard(layer, mesh=mesh, mp_policy=in_layers))
    ignored = {network.tie} if network.tie is not None else set()
    for module in _outside_layers(network):
        # Weights are let go after each pass: else an evaluation would leave some that the next step makes stale.
        _sum_up(fully_shard(module, mesh=mesh, reshard_after_forward=True, ignored_params=ignored))
    register_fsdp_forward_method(network, "packed_rewards")
    _hand_out(held, network)
    return network.to(best_device())


def from_first(load: Callable[[], RewardNetwork]) -> RewardNetwork:
    """What the first process loads; the others are given it without its weights, which take no memory before `spread`.

    Raises UserError in the others where the first is refused.
    """
    processes = current()
    if not processes.is_first:
        shape = processes.from_first(None)
        if shape is None:
            raise UserError("the first process was refused, and says why")
        return shape
    try:
        network = load()
    except UserError:
        processes.from_first(None)
        raise
    processes.from_first(shape_of(network))
    return network


def _taken_off(network: RewardNetwork) -> dict[str, Tensor]:
    """The weights by name, which the network then no longer has."""
    held = {name: weight.data for name, weight in network.named_parameters() if weight is not network.tie}
    empty = {weight: _empty(weight) for weight in network.parameters() if weight is not network.tie}
    _put_in(empty, network, network)
    return held


def _hand_out(held: dict[str, Tensor], network: RewardNetwork) -> None:
    """Divide what the first process holds, one weight after another, each let go as it is divided."""
    divided: dict[nn.Parameter, nn.Parameter] = {}
    for name, weight in network.named_parameters():
        if isinstance(weight, DTensor):
            full, there = held.pop(name), weight.device_mesh.device_type
            full = full.to(there) if current().is_first else torch.empty_like(full, device=there)
            part = distribute_tensor(full, weight.device_mesh, weight.placements)
            divided[weight] = nn.Parameter(part, weight.requires_grad)
    _put_in(divided, network, network)


def _put_in(weights: Mapping[nn.Parameter, nn.Parameter], named: RewardNetwork, network: RewardNetwork) -> None:
    """Give the network the weights in the places of those that another names; one of several places stays one."""
    names = named.named_parameters(remove_duplicate=False)
    found = {name: weights[weight] for name, weight in names if weight in weights}
    network.load_state_dict(found, strict=False, assign=True)


def _outside_layers(network: RewardNetwork) -> tuple[nn.Module, ...]:
    """What gathers the weights that are in no decoder layer.

    Of a policy it is all of it: its head may be the embedding, and works its chunks out again in the backward pass.
    """
    return (network,) if isinstance(network, PolicyNetwork) else (network.backbone, network.head)


def _sum_up(module: Any) -> None:
    """Gradients are summed over the processes as they are: the default is their mean."""
    module.set_gradient_divide_factor(1.0)
    module.set_force_sum_reduction_for_comms(True)  # else a sum is asked for that gloo does not know


def _layers(network: RewardNetwork) -> list[nn.Module]:
    for module in network.backbone.modules():
        if isinstance(module, nn.ModuleList):
            return list(module)
    raise ModelError("cannot tell the decoder's layers", do="train in one process, without torchrun")


def shape_of(network: RewardNetwork) -> RewardNetwork | None:
    """The network without its weights, to gather them into after training; of one process alone null.

    What a policy knows of its rows is not copied but known to both.
    """
    if current().is_alone:
        return None
    kept: dict[int, Any] = {id(weight): _empty(weight) for weight in network.parameters()}
    if isinstance(network, PolicyNetwork):
        kept[id(network.known)] = network.known
    return copy.deepcopy(network, kept)


def _empty(weight: nn.Parameter) -> nn.Parameter:
    return nn.Parameter(weight.to("meta"), weight.requires_grad)


def gathered(network: RewardNetwork, shape: RewardNetwork | None) -> RewardNetwork:
    """The network with its weights whole, in the main memory of the first process; of one alone the network itself.

    The others are given it without its weights.
    """
    if shape is None:
        return network
    found: dict[nn.Parameter, nn.Parameter] = {}
    for weight in network.parameters():
        full = whole(weight.detach())
        if current().is_first or weight is network.tie:
            found[weight] = nn.Parameter(full.cpu(), weight.requires_grad)
    _put_in(found, network, shape)
    return shape


def whole(tensor: Tensor) -> Tensor:
    """A tensor of which each process has a part, on every process; any other as it is."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def put(tensor: Tensor, there: Tensor) -> None:
    """Copy a tensor into one that lies whole, or in parts: then what the first process has is divided."""
    if isinstance(there, DTensor) and not isinstance(tensor, DTensor):
        is_first = current().is_first
        full = tensor.to(there.device, there.dtype) if is_first else torch.empty_like(tensor, device=there.device)
        tensor = distribute_tensor(full.to(there.dtype), there.device_mesh, there.placements)
    there.copy_(tensor)


def clip_gradient(weights: list[nn.Parameter], most: float) -> Tensor:
    """Scale the gradients down to a norm over all weights on all processes; gives the norm before that."""
    processes = current()
    if processes.is_alone:
        return torch.nn.utils.clip_grad_norm_(weights, most)
    own = [weight.grad for weight in weights if weight.grad is not None]
    parts = [one.to_local() if isinstance(one, DTensor) else one for one in own]
    # What lies whole on every process is counted by the first alone.
    counted = [part for one, part in zip(own, parts, strict=True) if isinstance(one, DTensor) or processes.is_first]
    square = sum(float(part.double().square().sum()) for part in counted)
    norm = torch.tensor(processes.total([square])[0], dtype=torch.float64).sqrt()
    factor = min(1.0, most / (norm.item() + _TINY))
    for part in parts:
        part.mul_(factor)
    return norm
