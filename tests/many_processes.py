"""Several processes that meet as a launcher would have them meet, for the tests of training on many devices."""

import os
import socket

from warm_process import Process


def alone():
    """The environment without a launcher's words: a test may itself be run by one."""
    kept = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
    return kept | {"OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR"}


def ended_together(script, *words, number=2, seconds=240):
    """What each of so many processes came to; they run the same script."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    met = alone() | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(number)}
    started = [
        Process([script, *words], env=met | {"RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in range(number)
    ]
    return [process.wait(seconds) for process in started]
