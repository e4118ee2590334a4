"""Checkpoints: all that a training needs to go on as if it had never stopped, in one file that is always whole.

It holds whole tensors, however many processes train: another number of them can go on. The first process writes and
reads it. What is drawn at random is no part of it, being a function of the seed, the step and the process.
"""

import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor

from steelyard.core.errors import FileError
from steelyard.files.atomic import written
from steelyard.plugins.models._reward_network import RewardNetwork
from steelyard.stages.train.disk import room_on_disk
from steelyard.stages.train.processes import current
from steelyard.stages.train.sharded import put, whole_on_first

CHECKPOINT_FILE = "checkpoint.pt"
Line = dict[str, Any]


class Best(NamedTuple):
    """The trained weights at the best evaluation so far, and what was measured there."""

    step: int
    value: float
    weights: Mapping[str, Tensor]


class State(NamedTuple):
    """What the optimiser and the weights are after ``step`` steps."""

    step: int
    weights: Mapping[str, Tensor]
    optimiser: Mapping[str, Any]


class Checkpoint(NamedTuple):
    """A state, the lines of the curve up to it, and the best state so far, if one is kept."""

    state: State
    lines: Sequence[Line]
    best: Best | None


def trained_weights(network: RewardNetwork) -> dict[str, Tensor]:
    """The weights that are trained, by name; they go on changing."""
    return {name: weight.data for name, weight in network.named_parameters() if weight.requires_grad}


def state_of(network: RewardNetwork, optimiser: torch.optim.Optimizer, step: int) -> State:
    """The state after ``step`` steps; of one process its tensors are those in use, to be written at once."""
    found = optimiser.state_dict()
    moments = {index: whole_on_first(values) for index, values in found["state"].items()}
    return State(step, whole_on_first(trained_weights(network)), found | {"state": moments})


def restore(state: State, network: RewardNetwork, optimiser: torch.optim.Optimizer) -> None:
    """Put the state back. Raises FileError for a checkpoint of another model: of other weights, or other shapes."""
    _check_same(state.weights, trained_weights(network))
    put_weights(state.weights, network)
    weights = [weight for group in optimiser.param_groups for weight in group["params"]]
    moments = {
        index: {name: _like(value, weights[index]) for name, value in values.items()}
        for index, values in state.optimiser["state"].items()
    }
    optimiser.load_state_dict({**state.optimiser, "state": moments})


def _check_same(kept: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> None:
    names = [name for name in kept if name in own]
    differing = [*(kept.keys() ^ own.keys()), *(name for name in names if kept[name].shape != own[name].shape)]
    if differing:
        raise FileError(
            f"a checkpoint of another model: {len(differing)} weights differ in name or shape: {sorted(differing)[0]}",
            where=CHECKPOINT_FILE,
            do="remove it, to train from the beginning",
        )


def put_weights(weights: Mapping[str, Tensor], network: RewardNetwork) -> None:
    """Copy weights into the network's own."""
    own = trained_weights(network)
    for name, weight in weights.items():
        put(weight, own[name])


def _like(value: Any, weight: Tensor) -> Any:
    """What the optimiser keeps of a weight, divided as the weight is."""
    if not isinstance(weight, DTensor) or not isinstance(value, Tensor) or value.shape != weight.shape:
        return value
    there = torch.empty_like(weight, dtype=value.dtype, requires_grad=False)
    put(value, there)
    return there


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Write the checkpoint in the place of the one before, which stays until this one is whole."""
    best = checkpoint.best
    best = None if best is None else best._replace(weights=whole_on_first(best.weights))._asdict()
    if current().is_first:
        content = {"state": checkpoint.state._asdict(), "lines": list(checkpoint.lines), "best": best}
        with room_on_disk(folder / CHECKPOINT_FILE), written(folder / CHECKPOINT_FILE) as file:
            torch.save(content, file)


def load_checkpoint(folder: Path) -> Checkpoint | None:
    """The checkpoint in the folder of an unfinished run, if it has one. Raises FileError for a broken file.

    Other processes than the first are given all but what the tensors hold.
    """
    processes = current()
    found = _read(folder / CHECKPOINT_FILE) if processes.is_first else None
    told = processes.from_first(None if processes.is_alone else _outline(found))
    return found if processes.is_first else told


def _read(path: Path) -> Checkpoint | None:
    if not path.is_file():
        return None
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
        best = None if content["best"] is None else Best(**content["best"])
        return Checkpoint(State(**content["state"]), content["lines"], best)
    except (RuntimeError, KeyError, TypeError, EOFError, ValueError, pickle.UnpicklingError) as error:
        raise FileError(
            f"not a checkpoint of this version ({str(error).splitlines()[0]})",
            where=str(path),
            do="remove it, to train from the beginning",
        ) from error


def _outline(value: Any) -> Any:
    """The same with tensors of more than one number emptied of what they hold."""
    if isinstance(value, Tensor):
        return value.to("meta") if value.numel() > 1 else value
    if isinstance(value, Mapping):
        return {name: _outline(one) for name, one in value.items()}
    if isinstance(value, State | Checkpoint | Best):
        return type(value)(*map(_outline, value))
    return [_outline(one) for one in value] if isinstance(value, list) else value


def forget_checkpoint(folder: Path) -> None:
    """Remove the checkpoint of a run that is finished."""
    if current().is_first:
        (folder / CHECKPOINT_FILE).unlink(missing_ok=True)
