"""A Ray cluster: one result per batch, in order, on every machine of it, with a bounded number of batches under way.

Tasks, not Ray Data, carry the batches: results must come in order and as they are done, and no batch may be read before
a worker is free (`docs/decisions/0007-ray-tasks-behind-the-engine.md`).
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any, TypeVar

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError, UserError
from steelyard.plugins.engines.local import check_importable

Batch = TypeVar("Batch")
Result = TypeVar("Result")

_MAX_RETRIES = 3


class Config(BaseConfig, frozen=True):
    """Settings of a cluster."""

    address: str | None = None
    """The address of the cluster; auto for the one of this machine. Default: one is started here."""
    ahead: int = 2
    """The number of batches that wait for each core."""
    num_cpus: float = 1.0
    """The share of a core that a batch takes."""


class RayEngine:
    """Maps over batches by tasks of a cluster. Ray retries a task elsewhere when it loses its machine."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def map(self, function: Callable[[Batch], Result], batches: Iterable[Batch]) -> Iterator[Result]:
        """Yield one result per batch, in order; at most ``ahead`` batches a core of the cluster are under way.

        Exceptions of ``function`` are raised here, at the turn of their batch. Raises TypeError for a function that a
        worker could not import by name, and UserError when the cluster loses a batch after all retries.
        """
        check_importable(function)
        return self._map_in_tasks(function, iter(batches))

    def _map_in_tasks(self, function: Callable[[Batch], Result], batches: Iterator[Batch]) -> Iterator[Result]:
        ray = _library()
        task = ray.remote(num_cpus=self.config.num_cpus, max_retries=_MAX_RETRIES)(_call)
        shared = ray.put(function)
        waiting: deque[Any] = deque()
        try:
            for batch in batches:
                waiting.append(task.remote(shared, batch))
                # Machines may join or leave a cluster while it works.
                cores = ray.cluster_resources().get("CPU", 1.0)
                if len(waiting) >= max(1, int(self.config.ahead * cores / self.config.num_cpus)):
                    yield _result(waiting.popleft())
            while waiting:
                yield _result(waiting.popleft())
        finally:
            for reference in waiting:
                ray.cancel(reference)


def build(config: Config) -> RayEngine:
    """Return the engine, connected to the cluster at the address, or to one that starts on this machine.

    A process that has joined a cluster keeps it. Raises ConfigError for an address without a cluster.
    """
    if config.ahead < 1 or config.num_cpus <= 0:
        problem = f"ahead={config.ahead}, num_cpus={config.num_cpus}"
        raise ConfigError(problem, where="engines.ray", allowed="ahead 1 or more, num_cpus above 0")
    ray = _library()
    try:
        if not ray.is_initialized():
            ray.init(address=config.address, log_to_driver=False, include_dashboard=False, configure_logging=False)
    except (ConnectionError, ValueError) as error:
        raise ConfigError(
            f"no Ray cluster answers at {config.address!r} ({error})",
            where="engines.ray",
            do="start its head node with `ray start`, and name its address",
        ) from error
    return RayEngine(config)


def _library() -> Any:
    """Return the library ``ray``, which this file's own name would hide from a type checker."""
    return import_module("ray")


def _call(function: Callable[[Any], Any], batch: Any) -> Any:
    return function(batch)


def _result(reference: Any) -> Any:
    ray = _library()
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except ray.exceptions.RayError as error:
        raise UserError(
            f"the cluster lost a batch after all retries ({type(error).__name__}: {str(error).splitlines()[0]})",
            do="look at the cluster's memory with `ray status`, and give its machines more",
        ) from error
