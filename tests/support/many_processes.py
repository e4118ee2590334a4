"""Processes started as by a launcher, for the tests of training on several devices."""

import os
import socket
from contextlib import contextmanager

from warm_process import Process


def alone():
    """Return the environment without a launcher's variables: a launcher may run the test itself."""
    kept = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
    return kept | {"OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR"}


def ended_together(script, *words, number=2, seconds=500):
    """Run one script in several processes and return how each ended."""
    with reserved_port() as port:
        met = alone() | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(number)}
        started = [
            Process([script, *words], env=met | {"RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in range(number)
        ]
        return [process.wait(seconds) for process in started]


@contextmanager
def reserved_port():
    """Yield a port that the system gives to nobody else in the block.

    The first process listens there, as it may beside a socket that shares the address and does not listen.
    """
    with socket.socket() as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(("", 0))
        yield bound.getsockname()[1]
