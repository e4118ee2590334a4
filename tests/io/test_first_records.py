"""Threads that read the first records of a process at once: msgspec must have described those before they start."""

import re
import subprocess
import sys

import msgspec
import pytest

from package_source import PACKAGE, sources
from steelyard.core.types import prepare_records

# Threads change after a microsecond, so that they meet in what msgspec does once for a type.
BODY = {"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]}
FIRST_REPLIES = f"""
import sys, threading
from steelyard.io.addresses import Key
from steelyard.io.connections import RequestLimits
from steelyard.io.dispatch import dispatch
from steelyard.io.http import Attempt, HttpReply
from steelyard.io.pacing import RequestPace
from steelyard.plugins.chats._completion import is_empty
sys.setswitchinterval(1e-6)
barrier = threading.Barrier(8)
def send(*_):
    barrier.wait()
    assert not is_empty({BODY})
    return Attempt(HttpReply(None))
print(len(list(dispatch(range(8), send, RequestLimits(5.0, 1, 1.0, Key()), RequestPace(8)))))
"""


def test_first_replies_at_once():
    # While no type was described before, 5 of 6 runs ended in a segmentation fault.
    words = [sys.executable, "-c", FIRST_REPLIES]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()) == (0, ["8"]), done.stderr


def test_a_record_of_another_library_that_cannot_be_described_stops_nothing():
    class Foreign(msgspec.Struct):
        unknown: "NameOfNothing"  # noqa: F821

    with pytest.raises(NameError):
        msgspec.json.Decoder(Foreign)
    prepare_records()


UNPREPARED = {
    "integrations/inspect_scorer.py": "reads with a lock held",
    "io/hashing.py": "hashes bytes, reads no record",
    "networks/pretrained.py": "opens a socket, reads no record",
    "plugins/chats/apertium.py": "runs a program, reads no record",
    "plugins/engines/local.py": "waits for the parent process, reads no record",
    "workbench/figures/fit_keeper.py": "is started by the application, which has described them",
    "workbench/routes/fast_routes.py": "belongs to the application, which has described them",
    "workbench/serving.py": "waits for the parent process, imports scipy",
}


def test_whatever_starts_threads_describes_the_records_before():
    starts = re.compile(r"\bThread\(|ThreadPoolExecutor\(|to_thread\(|uvicorn\.Config\(|FastAPI\(")
    starting = {
        source.path.relative_to(PACKAGE).as_posix(): "prepare_records()" in "\n".join(source.lines)
        for source in sources()
        if starts.search("\n".join(source.lines))
    }
    unprepared = {name for name, is_prepared in starting.items() if not is_prepared}
    assert unprepared == set(UNPREPARED), "call prepare_records first, or say why not"
