"""The processes that work on one network: rank and size of the group, and what all of them exchange.

A `World` is passed to whatever needs it. `LOCAL` is the world of one process, in which every exchange returns the value
of this process. `steelyard.training.distributed.process_group` makes larger ones.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import torch
import torch.distributed as dist

Value = TypeVar("Value")


class World(NamedTuple):
    """The rank of this process, counted from 0, and the number of processes.

    All processes must call each exchanging method at the same place.
    """

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and messages."""
        return self.rank == 0

    @property
    def is_alone(self) -> bool:
        """Whether there is no other process."""
        return self.size == 1

    def total(self, values: Sequence[float]) -> list[float]:
        """Return the sum of each value over all processes, in float64."""
        return self._reduced(values, torch.float64, dist.ReduceOp.SUM)

    def most(self, values: Sequence[int]) -> list[int]:
        """Return the largest of each value over all processes."""
        return [int(value) for value in self._reduced(values, torch.int64, dist.ReduceOp.MAX)]

    def from_first(self, value: Value) -> Value:
        """Return the first process's value on every process."""
        if self.is_alone:
            return value
        values = [value]
        dist.broadcast_object_list(values, src=0)
        return values[0]

    def everyone(self, value: Value) -> list[Value]:
        """Return the value of each process, in the order of their ranks."""
        if self.is_alone:
            return [value]
        values: list[Any] = [None] * self.size
        dist.all_gather_object(values, value)
        return values

    def _reduced(self, values: Sequence[float], dtype: torch.dtype, operation: Any) -> list[Any]:
        if self.is_alone:
            return list(values)
        tensor = torch.tensor(values, dtype=dtype)
        dist.all_reduce(tensor, operation)
        return tensor.tolist()


LOCAL = World()
