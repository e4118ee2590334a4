"""A Ray cluster: one result a batch, in order, on every machine of it, with a bounded number of batches under way.

Tasks, not Ray Data, carry the batches: results must come in order and as they are done, and no batch may be read before
a worker is free (`docs/decisions/0007-ray-tasks-behind-the-engine.md`).
"""

from typing import TYPE_CHECKING

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError

if TYPE_CHECKING:
    from steelyard.plugins.engines._ray import RayEngine


class Config(BaseConfig, frozen=True):
    """``address`` is the cluster's (``auto``: the one this machine belongs to); null starts one on this machine.

    ``ahead`` is how many batches a core may have waiting; ``num_cpus`` is how much of a core one batch claims.
    """

    address: str | None = None
    """The address of the cluster; auto for the one of this machine, none to start one here."""
    ahead: int = 2
    """The number of batches that wait for each core."""
    num_cpus: float = 1.0
    """The share of a core that a batch takes."""


def build(config: Config) -> "RayEngine":
    """The engine, connected. Raises ConfigError for an address at which no cluster answers."""
    if config.ahead < 1 or config.num_cpus <= 0:
        found = f"ahead={config.ahead}, num_cpus={config.num_cpus}"
        raise ConfigError(found, where="engines.ray", allowed="ahead 1 or more, num_cpus above 0")
    from steelyard.plugins.engines._ray import RayEngine, connect

    connect(config.address)
    return RayEngine(config)
