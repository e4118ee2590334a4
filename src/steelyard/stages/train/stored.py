"""Tensors in one file, of which no more than one is whole in memory at a time, whoever has parts of them.

The file has the numbers of one tensor after another; then, by `torch.save`, what they belong to, with the place of each
in its stead; then where that begins.
"""

import io
import struct
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import torch
from torch import Tensor, nn

from steelyard.stages.train.sharded import whole

_MARK = b"steelyard tensors"
_END = struct.Struct(f"<Q{len(_MARK)}s")
_PLACE = "stored at"


class Stored(NamedTuple):
    """A tensor that lies in a file, from a byte on."""

    path: Path
    start: int
    shape: tuple[int, ...]
    dtype: torch.dtype

    def read(self) -> Tensor:
        """The tensor in main memory. Raises ValueError where the file ends before it."""
        found = torch.empty(self.shape, dtype=self.dtype)
        with self.path.open("rb") as file:
            file.seek(self.start)
            if file.readinto(_bytes(found)) != found.nbytes:
                raise ValueError(f"{self.path} ends within a tensor")
        return found


def write_stored(content: Any, file: IO[bytes] | None) -> None:
    """Write lists and mappings that hold tensors, each gathered as its turn comes, and let go.

    ``file`` is null in the processes that only help to gather: all are called with contents of one shape.
    """
    outline = _changed(content, partial(_write, file))
    if file is not None:
        start = file.tell()
        torch.save(outline, file)
        file.write(_END.pack(start, _MARK))


def read_stored(path: Path) -> Any:
    """What was written, with a Stored for each tensor of more than one number. Raises ValueError for another file."""
    with path.open("rb") as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(max(0, size - _END.size))
        end = file.read()
        if len(end) < _END.size or not end.endswith(_MARK):
            raise ValueError("it does not end as one")
        start, _ = _END.unpack(end)
        file.seek(start)
        outline = io.BytesIO(file.read(size - _END.size - start))
    return _placed(torch.load(outline, map_location="cpu", weights_only=True), path)


def _write(file: IO[bytes] | None, tensor: Tensor) -> Any:
    full = whole(tensor)
    if file is None:
        return None
    # Single numbers, and moments in 8 bits, which are more than their numbers, stay with what they belong to.
    if full.numel() < 2 or type(full) not in (Tensor, nn.Parameter):
        return full
    start = file.tell()
    file.write(_bytes(full.detach().cpu().contiguous()))
    return {_PLACE: [start, list(full.shape), full.dtype]}


def _bytes(tensor: Tensor) -> memoryview:
    return tensor.flatten().view(torch.uint8).numpy().data


def _changed(value: Any, change: Callable[[Tensor], Any]) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, Mapping):
        return {name: _changed(one, change) for name, one in value.items()}
    return [_changed(one, change) for one in value] if isinstance(value, list) else value


def _placed(value: Any, path: Path) -> Any:
    if isinstance(value, dict):
        if value.keys() == {_PLACE}:
            start, shape, dtype = value[_PLACE]
            return Stored(path, start, tuple(shape), dtype)
        return {name: _placed(one, path) for name, one in value.items()}
    return [_placed(one, path) for one in value] if isinstance(value, list) else value
