"""A server that has just been started reads the first answers of several people at once."""

import subprocess
import sys

import pytest

# Threads change after a microsecond, so that they meet in what msgspec does once for a type.
AT_ONCE = """
import sys, threading
from steelyard.workbench.application import application
from steelyard.workbench.storage.database import Database
database = Database("sqlite:///" + sys.argv[1])
database.migrate()
application(database)
import msgspec
from steelyard.annotation.answers import TaskAnswer
sys.setswitchinterval(1e-6)
barrier, answers = threading.Barrier(8), []
def read():
    barrier.wait()
    answers.append(msgspec.convert({"scores": {"r0": 5}, "ranking": [["r0"], ["r1"]]}, TaskAnswer))
threads = [threading.Thread(target=read) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(set(map(repr, answers))), len(answers))
"""


@pytest.mark.parametrize("attempt", [0, *(pytest.param(number, marks=pytest.mark.slow) for number in (1, 2, 3))])
def test_first_answers_at_once(tmp_path, attempt):
    # Without `prepare_records` each attempt ended in a segmentation fault in half of the runs.
    command = [sys.executable, "-c", AT_ONCE, str(tmp_path / "workbench.db")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout.split()) == (0, ["1", "8"]), (attempt, done.stderr)
