"""The processes that train one model together: who is first, what all have in common, and how they fail as one.

Started by ``torchrun``, which tells each process its number; without it there is one process, and nothing to agree on.
"""

import ctypes
import io
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from steelyard.core.errors import UserError
from steelyard.files.results import Asked, Result, result_folder
from steelyard.files.talk import say

Value = TypeVar("Value")

_TIMEOUT = timedelta(minutes=30)
"""How long a process waits for the others: longer than rank 0 may need to read, measure or save alone."""
_PATIENCE_WITH_THE_FIRST = timedelta(seconds=10)
_SECONDS_TO_LET_GO = 0.2
_SET_PARENT_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG, as prctl(2) numbers it."""


class Processes(NamedTuple):
    """The number of this process, counted from 0, and how many there are.

    All processes call each method that asks the others at the same place.
    """

    rank: int = 0
    number: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this process is the one that writes and talks."""
        return self.rank == 0

    @property
    def is_alone(self) -> bool:
        """Whether there is no other."""
        return self.number == 1

    def total(self, values: Sequence[float]) -> list[float]:
        """The sum of each value over all processes, in float64."""
        return self._reduced(values, torch.float64, dist.ReduceOp.SUM)

    def most(self, values: Sequence[int]) -> list[int]:
        """The largest of each value over all processes."""
        return [int(value) for value in self._reduced(values, torch.int64, dist.ReduceOp.MAX)]

    def from_first(self, value: Value) -> Value:
        """What the first process has, for all."""
        if self.is_alone:
            return value
        told = [value]
        dist.broadcast_object_list(told, src=0)
        return told[0]

    def everyone(self, value: Value) -> list[Value]:
        """What each process has, in the order of their numbers."""
        if self.is_alone:
            return [value]
        told: list[Any] = [None] * self.number
        dist.all_gather_object(told, value)
        return told

    def _reduced(self, values: Sequence[float], dtype: torch.dtype, how: Any) -> list[Any]:
        if self.is_alone:
            return list(values)
        there = torch.tensor(values, dtype=dtype)
        dist.all_reduce(there, how)
        return there.tolist()


def current() -> Processes:
    """The processes of this training, as far as they have met."""
    if not dist.is_available() or not dist.is_initialized():
        return Processes()
    return Processes(dist.get_rank(), dist.get_world_size())


def is_first() -> bool:
    """Whether this process is to show results; to be asked before the processes have met, and after they parted."""
    return os.environ.get("RANK", "0") == "0"


@contextmanager
def joined() -> Iterator[Processes]:
    """All processes of one training, met: the first talks, the others are silent, and a user's error ends them all.

    Of many processes the first to be refused says why, and each exits with code 2. One that fails otherwise is left to
    the launcher, which ends the others.
    """
    if dist.is_initialized() or int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield current()
        return
    _end_with_launcher()
    store, rank, number = next(iter(rendezvous("env://")))
    has_gpu = torch.cuda.is_available()
    if has_gpu:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    dist.init_process_group(
        "cpu:gloo,cuda:nccl" if has_gpu else "gloo", store=store, rank=rank, world_size=number, timeout=_TIMEOUT
    )
    try:
        with ExitStack() as silence:
            if rank > 0:
                silence.enter_context(redirect_stdout(io.StringIO()))
                silence.enter_context(redirect_stderr(io.StringIO()))
            yield Processes(rank, number)
    except UserError as error:
        _say_once(error, PrefixStore("steelyard", store), rank)
        _part()
        raise SystemExit(2) from error
    _part()


def _part() -> None:
    """Leave the others. Threads of gloo then have had the time to let go of the last tensors.

    They need Python's lock for that: one that still waits for it when Python ends would abort the process, after all
    was done.
    """
    time.sleep(_SECONDS_TO_LET_GO)
    dist.destroy_process_group()


def _say_once(error: UserError, store: Any, rank: int) -> None:
    """Say an error by the first process, where it has it too: the launcher ends all when the first of them ends."""
    if rank == 0 or _is_to_say(store):
        say(f"error: {error}" if rank == 0 else f"error (process {rank}): {error}")
        store.set("said", "yes")


def _is_to_say(store: Any) -> bool:
    """Whether no other process says it: the first has no error and waits for us, and we are the first who ask."""
    try:
        store.wait(["said"], _PATIENCE_WITH_THE_FIRST)
    except dist.DistStoreError:
        return store.add("saying", 1) == 1
    except dist.DistNetworkError:
        return False  # the first process has said it, and is gone with the store
    return False


def _end_with_launcher() -> None:
    """Let this process be killed with its launcher: else it would go on beside those of the next start."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


@contextmanager
def shared_folder(
    folder: Path, stage: str, *, config: Any, inputs: Mapping[str, Path], seed: int | None, force: bool
) -> Iterator[Result]:
    """`result_folder` for many processes: the first claims it and writes; the others learn whether it is finished.

    Only the first process's folder and inputs are looked at; what the others note of the run is dropped.
    """
    processes = current()
    if not processes.is_first:
        result = Result(folder, Asked(stage=stage, config={}, seed=seed, inputs={}))
        is_finished = processes.from_first(None)
        if is_finished is None:
            raise UserError("the first process was refused, and says why")
        result.is_finished = is_finished
        yield result
        return
    is_told = False
    try:
        with result_folder(folder, stage, config=config, inputs=inputs, seed=seed, force=force) as result:
            processes.from_first(result.is_finished)
            is_told = True
            yield result
    except UserError:
        if not is_told:
            processes.from_first(None)
        raise
