import json
import resource

import pytest

from steelyard.core.errors import OutputError
from steelyard.core.plugins import build


def tracker(folder, start=0):
    return build("trackers", "jsonl", {}, folder=folder, name="run", run_settings={}, start=start)


def lines(folder):
    return [json.loads(line) for line in (folder / "progress.jsonl").read_text(encoding="utf-8").splitlines()]


def test_each_line_can_be_read_while_the_training_runs(tmp_path):
    open_one = tracker(tmp_path)
    open_one.log(1, {"loss": 0.5, "数学": 1.0})
    (line,) = lines(tmp_path)
    assert (line["step"], line["loss"], line["数学"]) == (1, 0.5, 1.0)
    open_one.close()


def test_what_comes_after_the_checkpoint_is_taken_back_and_half_a_line_with_it(tmp_path):
    first = tracker(tmp_path)
    for step in (1, 2, 3):
        first.log(step, {"loss": float(step)})
    first.close()
    with (tmp_path / "progress.jsonl").open("a") as file:
        file.write('{"step": 1, "lo')
    again = tracker(tmp_path, start=2)
    again.log(3, {"loss": 30.0})
    again.close()
    assert [(line["step"], line["loss"]) for line in lines(tmp_path)] == [(1, 1.0), (2, 2.0), (3, 30.0)]
    tracker(tmp_path).close()
    assert lines(tmp_path) == []


def test_lines_of_a_run_that_goes_on_are_kept_where_the_disk_refuses_them(tmp_path):
    first = tracker(tmp_path)
    for step in range(50):
        first.log(step, {"loss": float(step)})
    first.close()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(OutputError, match="larger than allowed; the previous file is unchanged"):
            tracker(tmp_path, start=49)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [line["step"] for line in lines(tmp_path)] == list(range(50))
