"""Checkpoints: all that a training needs to go on as if it had never stopped, in one file that is always whole."""

import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from steelyard.core.errors import FileError
from steelyard.files.atomic import written
from steelyard.plugins.models._network import RewardNetwork

CHECKPOINT_FILE = "checkpoint.pt"
Line = dict[str, Any]


class Best(NamedTuple):
    """The trained weights at the best evaluation so far, and what was measured there."""

    step: int
    value: float
    weights: Mapping[str, Tensor]


class State(NamedTuple):
    """What the optimiser, the weights and the random draws are after ``step`` steps."""

    step: int
    weights: Mapping[str, Tensor]
    optimiser: Mapping[str, Any]
    draws: Sequence[Tensor]


class Checkpoint(NamedTuple):
    """A state, the lines of the curve up to it, and the best state so far, if one is kept."""

    state: State
    lines: Sequence[Line]
    best: Best | None


def trained_weights(network: RewardNetwork) -> dict[str, Tensor]:
    """The weights that are trained, by name; they go on changing."""
    return {name: weight.data for name, weight in network.named_parameters() if weight.requires_grad}


def state_of(network: RewardNetwork, optimiser: torch.optim.Optimizer, step: int) -> State:
    """The state after ``step`` steps; its tensors are those in use, to be written at once."""
    return State(step, trained_weights(network), optimiser.state_dict(), _draws())


def restore(state: State, network: RewardNetwork, optimiser: torch.optim.Optimizer) -> None:
    """Put the state back. Asserts that the same weights are trained: another config is refused before."""
    own = trained_weights(network)
    assert own.keys() == state.weights.keys(), "the same config trains the same weights"
    put_weights(state.weights, network)
    optimiser.load_state_dict(dict(state.optimiser))
    torch.set_rng_state(state.draws[0])
    if torch.cuda.is_available():
        torch.cuda.set_rng_state_all(list(state.draws[1:]))


def put_weights(weights: Mapping[str, Tensor], network: RewardNetwork) -> None:
    """Copy weights into the network's own."""
    own = trained_weights(network)
    for name, weight in weights.items():
        own[name].copy_(weight)


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Write the checkpoint in the place of the one before, which stays until this one is whole."""
    best = None if checkpoint.best is None else checkpoint.best._asdict()
    content = {"state": checkpoint.state._asdict(), "lines": list(checkpoint.lines), "best": best}
    with written(folder / CHECKPOINT_FILE) as file:
        torch.save(content, file)


def load_checkpoint(folder: Path) -> Checkpoint | None:
    """The checkpoint in the folder of an unfinished run, if it has one. Raises FileError for a broken file."""
    path = folder / CHECKPOINT_FILE
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


def forget_checkpoint(folder: Path) -> None:
    """Remove the checkpoint of a run that is finished."""
    (folder / CHECKPOINT_FILE).unlink(missing_ok=True)


def _draws() -> list[Tensor]:
    return [torch.get_rng_state(), *(torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [])]
