"""Checkpoints: the state from which a training continues as if it had never stopped, in one file, written atomically.

It holds whole tensors, however many processes train, so that another number of them can continue. The first process
writes and reads the file, one tensor at a time, so that at most one is whole in memory. Random draws depend on the
seed, the step and the process alone, and are not stored.

The file has the data of one tensor after another; then, by `torch.save`, an outline of the content in which each tensor
is replaced by its position; then the position of the outline.
"""

import errno
import io
import pickle
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from steelyard.core.errors import FileError, OutputError
from steelyard.io.atomic import atomic_write
from steelyard.networks.devices import LOCAL, World
from steelyard.networks.reward_network import RewardNetwork
from steelyard.training.distributed import copy_into, whole

CHECKPOINT_FILE = "checkpoint.pt"
Line = dict[str, Any]
"""A line of the curve: a step, or an evaluation after a step."""
_MARK = b"steelyard tensors"
_END = struct.Struct(f"<Q{len(_MARK)}s")
_PLACE = "stored at"
_CONTINUES = ": it continues from the last checkpoint"
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


class StoredTensor(NamedTuple):
    """A tensor in a file, from the byte ``start`` on."""

    path: Path
    start: int
    shape: tuple[int, ...]
    dtype: torch.dtype

    def read(self) -> Tensor:
        """Return the tensor in main memory. Raises ValueError where the file ends before it."""
        tensor = torch.empty(self.shape, dtype=self.dtype)
        with self.path.open("rb") as file:
            file.seek(self.start)
            if file.readinto(_bytes(tensor)) != tensor.nbytes:
                raise ValueError(f"{self.path} ends within a tensor")
        return tensor


class BestWeights(NamedTuple):
    """The trained weights at the best evaluation so far, and the figure of that evaluation."""

    step: int
    value: float
    weights: Mapping[str, Tensor | StoredTensor]


class State(NamedTuple):
    """Optimiser and trained weights after ``step`` steps."""

    step: int
    weights: Mapping[str, Tensor | StoredTensor]
    optimiser: Mapping[str, Any]


class Checkpoint(NamedTuple):
    """A state, the lines of the curve up to it, and the best weights so far, if they are kept."""

    state: State
    lines: Sequence[Line]
    best: BestWeights | None


def trained_weights(network: RewardNetwork) -> dict[str, Tensor]:
    """Return the trained weights by name; the tensors are in use and change with further steps."""
    return {name: weight.data for name, weight in network.named_parameters() if weight.requires_grad}


def state_of(network: RewardNetwork, optimiser: torch.optim.Optimizer, step: int) -> State:
    """Return the state after ``step`` steps; its tensors are in use and must be written at once."""
    return State(step, trained_weights(network), optimiser.state_dict())


def restore(state: State, network: RewardNetwork, optimiser: torch.optim.Optimizer, *, world: World = LOCAL) -> None:
    """Restore the state. Raises FileError for a checkpoint of another model: of other weights or other shapes."""
    trained = trained_weights(network)
    names = [name for name in state.weights if name in trained]
    shapes = [name for name in names if state.weights[name].shape != trained[name].shape]
    differing = [*(state.weights.keys() ^ trained.keys()), *shapes]
    if differing:
        raise FileError(
            f"a checkpoint of another model: {len(differing)} weights differ in name or shape: {sorted(differing)[0]}",
            where=CHECKPOINT_FILE,
            do="remove it, to train from the beginning",
        )
    put_weights(state.weights, network, world=world)
    weights = [weight for group in optimiser.param_groups for weight in group["params"]]
    moments = {
        index: {name: _like(value, weights[index], world) for name, value in values.items()}
        for index, values in state.optimiser["state"].items()
    }
    optimiser.load_state_dict({**state.optimiser, "state": moments})


def put_weights(weights: Mapping[str, Tensor | StoredTensor], network: RewardNetwork, *, world: World = LOCAL) -> None:
    """Copy weights into those of the network."""
    trained = trained_weights(network)
    for name, weight in weights.items():
        _put(weight, trained[name], world)


def best_in_memory(best: BestWeights, network: RewardNetwork, *, world: World = LOCAL) -> BestWeights:
    """Return a checkpoint's best weights in memory, divided as the network's: the file may then be replaced."""
    trained = trained_weights(network)
    return best._replace(weights={name: _like(value, trained[name], world) for name, value in best.weights.items()})


def save_checkpoint(folder: Path, checkpoint: Checkpoint, *, world: World = LOCAL) -> None:
    """Write a checkpoint; the former one is replaced when this one is complete."""
    best = None if checkpoint.best is None else checkpoint.best._asdict()
    content = {"state": checkpoint.state._asdict(), "lines": list(checkpoint.lines), "best": best}
    if not world.is_first:
        # Gathering divided tensors takes every process, although one writes.
        write_stored(content, None)
        return
    with translate_disk_full(folder / CHECKPOINT_FILE), atomic_write(folder / CHECKPOINT_FILE) as file:
        write_stored(content, file)


def load_checkpoint(folder: Path, *, world: World = LOCAL) -> Checkpoint | None:
    """Return the checkpoint of an unfinished run, if there is one. Raises FileError for a broken file.

    Its tensors stay in the file until the first process needs them.
    """
    return world.broadcast(_read(folder / CHECKPOINT_FILE) if world.is_first else None)


def remove_checkpoint(folder: Path, *, world: World = LOCAL) -> None:
    """Remove the checkpoint of a finished run."""
    if world.is_first:
        (folder / CHECKPOINT_FILE).unlink(missing_ok=True)


def write_stored(content: Any, file: IO[bytes] | None) -> None:
    """Write lists and mappings that hold tensors, gathering and releasing one tensor after another.

    ``file`` is null in the processes that only take part in gathering: all must be called with equal structures.
    """
    outline = _map_tensors(content, partial(_write, file))
    if file is not None:
        start = file.tell()
        torch.save(outline, file)
        file.write(_END.pack(start, _MARK))


def read_stored(path: Path) -> Any:
    """Return what was written, with a StoredTensor for each tensor of several numbers. Raises ValueError for others."""
    with path.open("rb") as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(max(0, size - _END.size))
        end = file.read()
        if len(end) < _END.size or not end.endswith(_MARK):
            raise ValueError("it does not end as one")
        start, _ = _END.unpack(end)
        file.seek(start)
        outline = io.BytesIO(file.read(size - _END.size - start))
    return _with_tensors(torch.load(outline, map_location="cpu", weights_only=True), path)


@contextmanager
def translate_disk_full(folder: Path) -> Iterator[None]:
    """Raise OutputError where the block finds the disk full; it must leave the folder's checkpoint untouched."""
    try:
        yield
    except (OSError, RuntimeError, SafetensorError) as error:
        if not _is_disk_full(error):
            raise
        has_checkpoint = (folder / CHECKPOINT_FILE).is_file()
        raise OutputError(
            f"the disk is full{'; the last checkpoint is unchanged' if has_checkpoint else ''}",
            where=str(folder),
            do=f"free some space, and run the same again{_CONTINUES if has_checkpoint else ''}",
        ) from error


def _is_disk_full(error: BaseException) -> bool:
    # torch fails a second time when it closes its archive: the first error is the context of that one.
    causes = (error, error.__context__, error.__cause__)
    has_code = any(isinstance(cause, OSError) and cause.errno in _DISK_FULL for cause in causes)
    return has_code or (
        isinstance(error, SafetensorError) and any(f"(os error {code})" in str(error) for code in _DISK_FULL)
    )


def _like(value: Any, weight: Tensor, world: World) -> Any:
    """Return a stored tensor in memory, divided as the weight is, and any other value unchanged."""
    if not isinstance(value, StoredTensor):
        return value
    target = torch.empty_like(weight, dtype=value.dtype, requires_grad=False)
    _put(value, target, world)
    return target


def _put(value: Tensor | StoredTensor, target: Tensor, world: World) -> None:
    if isinstance(value, StoredTensor):
        value = value.read() if world.is_first else torch.empty(value.shape, dtype=value.dtype, device="meta")
    copy_into(value, target, world=world)


def _read(path: Path) -> Checkpoint | None:
    if not path.is_file():
        return None
    try:
        content = read_stored(path)
        best = None if content["best"] is None else BestWeights(**content["best"])
        return Checkpoint(State(**content["state"]), content["lines"], best)
    except (RuntimeError, KeyError, TypeError, EOFError, ValueError, pickle.UnpicklingError) as error:
        raise FileError(
            f"not a checkpoint of this version ({str(error).splitlines()[0]})",
            where=str(path),
            do="remove it, to train from the beginning",
        ) from error


def _write(file: IO[bytes] | None, tensor: Tensor) -> Any:
    full = whole(tensor)
    if file is None:
        return None
    # Single numbers, and moments in 8 bits, which are more than their numbers, stay in the outline.
    if full.numel() < 2 or type(full) not in (Tensor, nn.Parameter):
        return full
    start = file.tell()
    file.write(_bytes(full.detach().cpu().contiguous()))
    return {_PLACE: [start, list(full.shape), full.dtype]}


def _bytes(tensor: Tensor) -> memoryview:
    # As bytes: NumPy has no bfloat16.
    return tensor.flatten().view(torch.uint8).numpy().data


def _map_tensors(value: Any, change: Callable[[Tensor], Any]) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, Mapping):
        return {name: _map_tensors(item, change) for name, item in value.items()}
    return [_map_tensors(item, change) for item in value] if isinstance(value, list) else value


def _with_tensors(value: Any, path: Path) -> Any:
    if isinstance(value, dict):
        if value.keys() == {_PLACE}:
            start, shape, dtype = value[_PLACE]
            return StoredTensor(path, start, tuple(shape), dtype)
        return {name: _with_tensors(item, path) for name, item in value.items()}
    return [_with_tensors(item, path) for item in value] if isinstance(value, list) else value
