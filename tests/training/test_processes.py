import json

import pytest

from many_processes import ended_together
from steelyard.core.errors import OutputError
from steelyard.networks.devices import LOCAL
from steelyard.training.distributed import process_group, shared_folder

pytestmark = pytest.mark.slow

MEETS = """
import os
import sys
from datetime import timedelta
from pathlib import Path

from steelyard.core.errors import EvidenceError
from steelyard.training import distributed
from steelyard.training.distributed import process_group, shared_folder

work, who_fails = Path(sys.argv[1]), sys.argv[2]
# Where only the second fails, nothing comes from the first.
distributed._FIRST_ERROR_TIMEOUT = timedelta(seconds=1 if who_fails == "1" else 400)
with process_group() as all:
    print("silent unless first")
    assert all.all_sum([1.5, 2.0 * all.rank]) == [3.0, 2.0]
    assert all.all_max([7, 10 - all.rank]) == [7, 10]
    assert all.broadcast({"rank": all.rank}) == {"rank": 0}
    assert all.all_gather(("rank", all.rank)) == [("rank", 0), ("rank", 1)]
    with process_group() as inner:
        assert inner == all
    with shared_folder(work / "out", "test", config={}, inputs={}, force=False, world=all) as result:
        assert not result.is_finished
        result.summary = {"written by": all.rank}
    all.all_gather(None)
    with shared_folder(work / "out", "test", config={}, inputs={}, force=False, world=all) as result:
        assert result.is_finished
    if who_fails == "gone":
        if all.rank == 1:
            os._exit(7)
        all.all_gather(None)
    if who_fails in ("both", str(all.rank)):
        raise EvidenceError("no pair", where="cases.jsonl")
    if who_fails != "none":
        all.broadcast(None)
assert not distributed.dist.is_initialized()
print("parted")
"""


@pytest.fixture
def script(tmp_path):
    (tmp_path / "meets.py").write_text(MEETS)
    return tmp_path / "meets.py"


def test_one_process_alone_agrees_with_itself(tmp_path):
    with process_group() as processes:
        assert processes == LOCAL == (0, 1)
        assert (processes.is_first, processes.is_alone) == (True, True)
        assert processes.all_sum([1.5]) == [1.5]
        assert processes.all_max([3]) == [3]
        assert processes.broadcast("a") == "a"
        assert processes.all_gather("a") == ["a"]
    with shared_folder(tmp_path / "out", "test", config={}, inputs={}, force=False) as result:
        result.path("a.txt").write_text("a")
    assert json.loads((tmp_path / "out" / "run.json").read_text())["outputs"].keys() == {"a.txt"}
    with (
        pytest.raises(OutputError, match="holds files of something else"),
        shared_folder(tmp_path, "test", config={}, inputs={}, force=False),
    ):
        pass


def test_processes_agree_and_only_the_first_talks_and_writes(script, tmp_path):
    first, second = ended_together(script, tmp_path, "none")
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert first.stdout == "silent unless first\nparted\n"
    assert second.stdout == "parted\n"
    assert json.loads((tmp_path / "out" / "run.json").read_text())["summary"] == {"written by": 0}


@pytest.mark.parametrize(
    ("who_fails", "said"),
    [
        ("both", "error: cases.jsonl: no pair"),
        ("1", "error (process 1): cases.jsonl: no pair"),
    ],
)
def test_a_users_error_is_said_once(script, tmp_path, who_fails, said):
    ended = ended_together(script, tmp_path, who_fails)
    whole = ended[0].stderr + ended[1].stderr
    assert [line for line in whole.splitlines() if line.startswith("error")] == [said], whole
    assert (ended[0].returncode, ended[1].returncode) == (2, 2)


def test_a_process_that_is_gone_is_reported_by_the_first_without_a_traceback(script, tmp_path):
    first, second = ended_together(script, tmp_path, "gone")
    assert (first.returncode, second.returncode) == (2, 7)
    assert "\nerror: another process of this training has ended\n" in first.stderr
    assert "Traceback" not in first.stderr
