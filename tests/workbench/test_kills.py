"""The server is killed while people submit: nothing that it acknowledged is lost, nothing is there twice."""

import os
import signal
import time
import urllib.request
from pathlib import Path

import pytest

from postgres_server import run_statement
from workbench_clients import KillableServer
from workbench_kills import check_whole, work_and_kill
from workbench_server import LONGEST_START

pytestmark = pytest.mark.slow


def test_nothing_is_lost_or_doubled_when_the_server_is_killed(database, address):
    workers, total = work_and_kill(database, address, num_kills=3, num_items=8)
    check_whole(database, workers, total)


def children(process):
    """The numbers of the processes that a process has started and that run."""
    return Path(f"/proc/{process}/task/{process}/children").read_text().split()


def serves(process):
    """Whether a process is one of several that serve: it runs, and was started by `multiprocessing`."""
    try:
        return b"spawn_main" in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False


def workers_of(server):
    """The numbers of the processes that serve; those of several that serve for one that was started."""
    (parent,) = children(server.process)
    return [process for process in children(parent) if serves(process)]


def test_a_process_of_a_server_that_is_silent_for_a_while_serves_on(postgres):
    run_statement(postgres.format(name="postgres"), "CREATE DATABASE silent TEMPLATE template_workbench")
    with KillableServer(postgres.format(name="silent"), "--processes", "2") as server:
        with urllib.request.urlopen(f"{server.url}login") as answer:
            assert answer.status == 200
        workers = workers_of(server)
        # As one that is starting on a busy machine. Uvicorn would kill it after 5 seconds, however often it began anew.
        os.kill(int(workers[0]), signal.SIGSTOP)
        time.sleep(6.5)
        os.kill(int(workers[0]), signal.SIGCONT)
        assert workers_of(server) == workers


def test_the_processes_of_a_server_end_with_it(postgres):
    run_statement(postgres.format(name="postgres"), "CREATE DATABASE served TEMPLATE template_workbench")
    with KillableServer(postgres.format(name="served"), "--processes", "2") as server:
        with urllib.request.urlopen(f"{server.url}login") as answer:
            assert answer.status == 200
        workers = workers_of(server)
        assert len(workers) == 2
    # The parent was killed and could not stop them.
    end = time.monotonic() + LONGEST_START
    while any(map(serves, workers)):
        assert time.monotonic() < end, "a process serves on without its parent"
        time.sleep(0.05)
