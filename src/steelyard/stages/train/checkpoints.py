"""Checkpoints: all that a training needs to go on as if it had never stopped, in one file that is always whole.

It holds whole tensors, however many processes train: another number of them can go on. The first process writes and
reads it, one tensor at a time. What is drawn at random is no part of it, being a function of the seed, the step and the
process.
"""

import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from steelyard.core.errors import FileError
from steelyard.files.atomic import written
from steelyard.plugins.models._reward_network import RewardNetwork
from steelyard.stages.train.disk import room_on_disk
from steelyard.stages.train.processes import current
from steelyard.stages.train.sharded import put
from steelyard.stages.train.stored import Stored, read_stored, write_stored

CHECKPOINT_FILE = "checkpoint.pt"
Line = dict[str, Any]


class Best(NamedTuple):
    """The trained weights at the best evaluation so far, and what was measured there."""

    step: int
    value: float
    weights: Mapping[str, Tensor | Stored]


class State(NamedTuple):
    """What the optimiser and the weights are after ``step`` steps."""

    step: int
    weights: Mapping[str, Tensor | Stored]
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
    """The state after ``step`` steps; its tensors are those in use, or the parts in use, to be written at once."""
    return State(step, trained_weights(network), optimiser.state_dict())


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


def _check_same(kept: Mapping[str, Tensor | Stored], own: Mapping[str, Tensor]) -> None:
    names = [name for name in kept if name in own]
    differing = [*(kept.keys() ^ own.keys()), *(name for name in names if kept[name].shape != own[name].shape)]
    if differing:
        raise FileError(
            f"a checkpoint of another model: {len(differing)} weights differ in name or shape: {sorted(differing)[0]}",
            where=CHECKPOINT_FILE,
            do="remove it, to train from the beginning",
        )


def put_weights(weights: Mapping[str, Tensor | Stored], network: RewardNetwork) -> None:
    """Copy weights into the network's own."""
    own = trained_weights(network)
    for name, weight in weights.items():
        _put(weight, own[name])


def _like(value: Any, weight: Tensor) -> Any:
    """What is kept of a weight, in memory, divided as the weight is."""
    if not isinstance(value, Stored):
        return value
    there = torch.empty_like(weight, dtype=value.dtype, requires_grad=False)
    _put(value, there)
    return there


def kept(best: Best, network: RewardNetwork) -> Best:
    """The best state of a checkpoint in memory, each weight divided as the network's own: the file may then go."""
    own = trained_weights(network)
    return best._replace(weights={name: _like(value, own[name]) for name, value in best.weights.items()})


def _put(value: Tensor | Stored, there: Tensor) -> None:
    if isinstance(value, Stored):
        value = value.read() if current().is_first else torch.empty(value.shape, dtype=value.dtype, device="meta")
    put(value, there)


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Write the checkpoint in the place of the one before, which stays until this one is whole."""
    best = None if checkpoint.best is None else checkpoint.best._asdict()
    content = {"state": checkpoint.state._asdict(), "lines": list(checkpoint.lines), "best": best}
    if not current().is_first:
        write_stored(content, None)
        return
    with room_on_disk(folder / CHECKPOINT_FILE), written(folder / CHECKPOINT_FILE) as file:
        write_stored(content, file)


def load_checkpoint(folder: Path) -> Checkpoint | None:
    """The checkpoint in the folder of an unfinished run, if it has one. Raises FileError for a broken file.

    Its tensors stay in the file, for the first process to read when they are wanted.
    """
    processes = current()
    return processes.from_first(_read(folder / CHECKPOINT_FILE) if processes.is_first else None)


def _read(path: Path) -> Checkpoint | None:
    if not path.is_file():
        return None
    try:
        content = read_stored(path)
        best = None if content["best"] is None else Best(**content["best"])
        return Checkpoint(State(**content["state"]), content["lines"], best)
    except (RuntimeError, KeyError, TypeError, EOFError, ValueError, pickle.UnpicklingError) as error:
        raise FileError(
            f"not a checkpoint of this version ({str(error).splitlines()[0]})",
            where=str(path),
            do="remove it, to train from the beginning",
        ) from error


def forget_checkpoint(folder: Path) -> None:
    """Remove the checkpoint of a run that is finished."""
    if current().is_first:
        (folder / CHECKPOINT_FILE).unlink(missing_ok=True)
