"""Training in many processes: forming the group, failing together, and sharding the network over them (FSDP2).

``torchrun`` starts the processes and sets the rank of each; without it there is one process, and no sharding. All
processes must call every function of this module at the same place.
"""

import copy
import ctypes
import io
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous
from torch.distributed.tensor import DTensor, distribute_tensor

from steelyard.core.errors import UserError
from steelyard.io.progress import log_error
from steelyard.io.run_folder import Result, RunRequest, result_folder
from steelyard.networks.devices import LOCAL, World, best_device
from steelyard.networks.reward_network import PolicyNetwork, RewardNetwork

_TIMEOUT = timedelta(minutes=30)
"""The longest wait for another process: longer than rank 0 may need to read, measure or save alone."""
_FIRST_ERROR_TIMEOUT = timedelta(seconds=10)
_SECONDS_TO_RELEASE = 0.2
_LOST_CONNECTION = ("Connection closed by peer", "Connection reset by peer", "remote process exited")
"""Messages of gloo and NCCL when another process has ended."""
_SET_PARENT_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of prctl(2)."""
_CLIP_EPSILON = 1e-6
"""Amount that PyTorch's own clipping adds to a norm before it divides by it."""


@contextmanager
def process_group() -> Iterator[World]:
    """Join the processes of one training: rank 0 writes messages, and a UserError ends all processes.

    Of many processes the first with a UserError reports it, and each exits with its code. So does a process that loses
    another one, which a signal or the kernel has ended. Any other failure is left to the launcher, which ends the other
    processes. Within an existing group this yields that group.
    """
    if dist.is_initialized():
        yield World(dist.get_rank(), dist.get_world_size())
        return
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield LOCAL
        return
    if sys.platform == "linux":  # killed with its launcher, this process does not run on during the next start
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    store, rank, size = next(iter(rendezvous("env://")))
    has_gpu = torch.cuda.is_available()
    if has_gpu:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    dist.init_process_group(
        "cpu:gloo,cuda:nccl" if has_gpu else "gloo", store=store, rank=rank, world_size=size, timeout=_TIMEOUT
    )
    try:
        with ExitStack() as silence:
            if rank > 0:
                silence.enter_context(redirect_stdout(io.StringIO()))
                silence.enter_context(redirect_stderr(io.StringIO()))
            yield World(rank, size)
    except (UserError, RuntimeError) as error:
        user_error = _user_error(error)
        _log_once(user_error, PrefixStore("steelyard", store), rank)
        _leave_group()
        raise SystemExit(user_error.exit_code) from error
    _leave_group()


def _user_error(error: UserError | RuntimeError) -> UserError:
    """Return the error as a UserError. Raises it again where it is a failure of this program."""
    if isinstance(error, UserError):
        return error
    if not any(words in str(error) for words in _LOST_CONNECTION):
        raise error
    return UserError(
        "another process of this training has ended",
        do="look for its message, and run the same again: it continues from the last checkpoint",
    )


def _leave_group() -> None:
    """Leave the group, after a moment in which the threads of gloo release the last tensors."""
    # They need Python's lock for that: a thread that still waits for it when Python ends would abort the process.
    time.sleep(_SECONDS_TO_RELEASE)
    dist.destroy_process_group()


def _log_once(error: UserError, store: Any, rank: int) -> None:
    """Log an error once, in the first process if it has one: the launcher ends all when any of them ends."""
    if _is_reporter(store) if rank else not store.check(["is reported"]):
        log_error("error" if rank == 0 else f"error (process {rank})", error)
        store.set("is reported", "yes")


def _is_reporter(store: Any) -> bool:
    """Return whether this process must log the error: the first process has none, and no other was quicker."""
    try:
        store.wait(["is reported"], _FIRST_ERROR_TIMEOUT)
    except dist.DistStoreError:
        return store.add("num_reporters", 1) == 1
    except dist.DistNetworkError:
        return False  # the first process has logged it, and is gone with the store
    return False


@contextmanager
def shared_folder(
    folder: Path,
    stage: str,
    *,
    config: Any,
    inputs: Mapping[str, Path],
    force: bool,
    world: World = LOCAL,
) -> Iterator[Result]:
    """Open a `result_folder` for many processes: the first claims it and writes, the others receive its state.

    Only the first process reads inputs and writes; what the others record of the run is dropped.
    """
    if not world.is_first:
        result = Result(folder, RunRequest(stage=stage, config={}, inputs={}))
        result.is_finished = _receive(world)
        yield result
        return
    is_sent = False
    try:
        with result_folder(folder, stage, config=config, inputs=inputs, force=force) as result:
            world.broadcast(result.is_finished)
            is_sent = True
            yield result
    except UserError:
        if not is_sent:
            world.broadcast(None)
        raise


def _receive(world: World) -> Any:
    """Return what the first process sends. Raises UserError where it sends nothing, since it was refused."""
    value = world.broadcast(None)
    if value is None:
        raise UserError("the first process has ended with an error, and reports it")
    return value


def shard(network: RewardNetwork, *, dtype: str, world: World) -> RewardNetwork:
    """Move the network to its device; many processes each keep a part of every decoder layer, in place.

    The weights of the first process are divided: the others may have the network without weights (`load_on_first`).
    Gradients are summed over the processes and not averaged: the loss has its divisor already. In bfloat16 the layers
    are gathered in the number type in which they compute; all else, the master weights and the sums of gradients stay
    in float32. Raises ModelError where the decoder's layers cannot be identified.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard, register_fsdp_forward_method

    if world.is_alone:
        return network.to(best_device())
    mesh = init_device_mesh(best_device().type, (world.size,))
    weights = _take_weights(network)
    computed = torch.bfloat16 if dtype == "bfloat16" else None
    in_layers = MixedPrecisionPolicy(computed, torch.float32 if computed else None, cast_forward_inputs=False)
    for layer in network.layers:
        _reduce_by_sum(fully_shard(layer, mesh=mesh, mp_policy=in_layers))
    ignored = {network.tie} if network.tie is not None else set()
    # A policy gathers its other weights together: its head may be the embedding, and recomputes chunks backwards.
    outside = (network,) if isinstance(network, PolicyNetwork) else (network.backbone, network.head)
    for module in outside:
        # Weights are released after each pass: else an evaluation would leave some that the next step makes stale.
        _reduce_by_sum(fully_shard(module, mesh=mesh, reshard_after_forward=True, ignored_params=ignored))
    register_fsdp_forward_method(network, "packed_rewards")
    _divide(weights, network, world)
    return network.to(best_device())


def load_on_first(load: Callable[[], RewardNetwork], *, world: World) -> RewardNetwork:
    """Load the network on the first process; the others get it without its weights, which take no memory yet.

    Raises UserError in the others where the first is refused.
    """
    if not world.is_first:
        return _receive(world)
    try:
        network = load()
    except UserError:
        world.broadcast(None)
        raise
    world.broadcast(outline_of(network, world=world))
    return network


def _take_weights(network: RewardNetwork) -> dict[str, Tensor]:
    """Return the weights by name, and leave the network without them."""
    weights = {name: weight.data for name, weight in network.named_parameters() if weight is not network.tie}
    empty = {weight: _without_data(weight) for weight in network.parameters() if weight is not network.tie}
    _put_weights(empty, network, network)
    return weights


def _divide(weights: dict[str, Tensor], network: RewardNetwork, world: World) -> None:
    """Divide the weights of the first process, one after another, each released as it is divided."""
    # Each division is a collective call: all processes go through the weights in the same order.
    divided: dict[nn.Parameter, nn.Parameter] = {}
    for name, weight in network.named_parameters():
        if isinstance(weight, DTensor):
            full, device = weights.pop(name), weight.device_mesh.device_type
            full = full.to(device) if world.is_first else torch.empty_like(full, device=device)
            part = distribute_tensor(full, weight.device_mesh, weight.placements)
            divided[weight] = nn.Parameter(part, weight.requires_grad)
    _put_weights(divided, network, network)


def _put_weights(weights: Mapping[nn.Parameter, nn.Parameter], source: RewardNetwork, target: RewardNetwork) -> None:
    """Put new weights into the target at the places of the source's weights; tied weights stay tied."""
    names = source.named_parameters(remove_duplicate=False)
    values = {name: weights[weight] for name, weight in names if weight in weights}
    target.load_state_dict(values, strict=False, assign=True)


def _reduce_by_sum(module: Any) -> None:
    """Sum gradients over the processes; the default is their mean."""
    module.set_gradient_divide_factor(1.0)
    module.set_force_sum_reduction_for_comms(True)  # FSDP's default is a reduction that gloo lacks


def outline_of(network: RewardNetwork, *, world: World) -> RewardNetwork | None:
    """Return the network without its weights, to gather them into after training; null for one process alone.

    The answer references of a policy are shared with the outline and not copied.
    """
    if world.is_alone:
        return None
    copied: dict[int, Any] = {id(weight): _without_data(weight) for weight in network.parameters()}
    if isinstance(network, PolicyNetwork):
        copied[id(network.references)] = network.references
    return copy.deepcopy(network, copied)


def _without_data(weight: nn.Parameter) -> nn.Parameter:
    return nn.Parameter(weight.to("meta"), weight.requires_grad)


def unshard(network: RewardNetwork, outline: RewardNetwork | None, *, world: World) -> RewardNetwork:
    """Return the network with whole weights in the main memory of the first process.

    The other processes get it without weights. One process alone gets its network back.
    """
    if outline is None:
        return network
    weights: dict[nn.Parameter, nn.Parameter] = {}
    for weight in network.parameters():
        full = whole(weight.detach())
        if world.is_first or weight is network.tie:
            weights[weight] = nn.Parameter(full.cpu(), weight.requires_grad)
    _put_weights(weights, network, outline)
    return outline


def whole(tensor: Tensor) -> Tensor:
    """Return a divided tensor whole, on every process; any other tensor unchanged."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def copy_into(tensor: Tensor, target: Tensor, *, world: World) -> None:
    """Copy a tensor into another; where the target is divided, the tensor of the first process is divided."""
    if isinstance(target, DTensor) and not isinstance(tensor, DTensor):
        device, dtype = target.device, target.dtype
        full = tensor.to(device, dtype) if world.is_first else torch.empty_like(tensor, device=device, dtype=dtype)
        tensor = distribute_tensor(full, target.device_mesh, target.placements)
    target.copy_(tensor)


def clip_gradient(weights: list[nn.Parameter], most: float, *, world: World) -> Tensor:
    """Clip the norm of the gradients over all weights on all processes; returns the norm before clipping."""
    if world.is_alone:
        return torch.nn.utils.clip_grad_norm_(weights, most)
    gradients = [weight.grad for weight in weights if weight.grad is not None]
    parts = [gradient.to_local() if isinstance(gradient, DTensor) else gradient for gradient in gradients]
    # A gradient that is whole on every process is counted by the first alone.
    counted = [
        part for gradient, part in zip(gradients, parts, strict=True) if isinstance(gradient, DTensor) or world.is_first
    ]
    # In float64 and summed over processes: every process clips by the same factor.
    squares = torch.stack([part.double().square().sum() for part in counted]).tolist() if counted else []
    norm = torch.tensor(world.all_sum([sum(squares)])[0], dtype=torch.float64).sqrt()
    factor = min(1.0, most / (norm.item() + _CLIP_EPSILON))
    for part in parts:
        part.mul_(factor)
    return norm
