"""The half of the Ray engine that needs Ray."""

import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import ray  # pyright: ignore[reportMissingImports]
from ray.exceptions import RayError, RayTaskError  # pyright: ignore[reportMissingImports]

from steelyard.core.errors import ConfigError, UserError
from steelyard.plugins.engines.ray import Config

Given = TypeVar("Given")
Returned = TypeVar("Returned")

_MOST_RETRIES = 3


def connect(address: str | None) -> None:
    """Join the cluster at the address, or start one on this machine; nothing where this process has one already."""
    if ray.is_initialized():
        return
    try:
        ray.init(address=address, log_to_driver=False, include_dashboard=False, configure_logging=False)
    except (ConnectionError, ValueError) as error:
        raise ConfigError(
            f"no Ray cluster answers at {address!r} ({error})",
            where="engines.ray",
            do="start one with `ray start --head`, and name its address",
        ) from error


class RayEngine:
    """Maps over batches by tasks of a cluster. A task whose machine is lost is tried again elsewhere by Ray."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def map(self, function: Callable[[Given], Returned], batches: Iterable[Given]) -> Iterator[Returned]:
        """One result a batch, in order; at most ``ahead`` batches a core of the cluster are under way.

        What ``function`` raises is raised here, at its batch's turn. Raises TypeError for a function that a worker
        could not import by name, and UserError when the cluster loses a batch for good.
        """
        _check_importable(function)
        return self._in_tasks(function, iter(batches))

    def _in_tasks(self, function: Callable[[Given], Returned], batches: Iterator[Given]) -> Iterator[Returned]:
        task = ray.remote(num_cpus=self.config.num_cpus, max_retries=_MOST_RETRIES)(_call)
        shared = ray.put(function)
        waiting: deque[Any] = deque()
        try:
            for batch in batches:
                waiting.append(task.remote(shared, batch))
                # Machines may join or leave a cluster while it works.
                if len(waiting) >= self._num_under_way():
                    yield _result(waiting.popleft())
            while waiting:
                yield _result(waiting.popleft())
        finally:
            for reference in waiting:
                ray.cancel(reference)

    def _num_under_way(self) -> int:
        cores = ray.cluster_resources().get("CPU", 1.0)
        return max(1, int(self.config.ahead * cores / self.config.num_cpus))


def _call(function: Callable[[Any], Any], batch: Any) -> Any:
    return function(batch)


def _result(reference: Any) -> Any:
    try:
        return ray.get(reference)
    except RayTaskError as error:
        raise error.cause from None
    except RayError as error:
        raise UserError(
            f"the cluster lost a batch for good ({type(error).__name__}: {str(error).splitlines()[0]})",
            do="look at the cluster's memory with `ray status`, and give its machines more",
        ) from error


def _check_importable(function: Callable[..., object]) -> None:
    try:
        pickle.dumps(function)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise TypeError(f"{function!r} cannot be imported by name in a worker process") from error
