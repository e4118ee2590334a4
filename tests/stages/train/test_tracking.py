import json

import pytest

from steelyard.core.errors import ConfigError, KindError
from steelyard.stages.train.settings import Config
from steelyard.stages.train.tracking import open_trackers


def opened(folder, track, start=0):
    return open_trackers(Config(track=track), folder=folder, told={"epochs": 2}, start=start)


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_tracker_is_told_and_closed_whatever_happens(tmp_path):
    both = ("jsonl", {"kind": "jsonl", "file": "other.jsonl"})

    def fail():
        with opened(tmp_path, both) as trackers:
            trackers.log(1, {"train/loss": 0.5})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    for name in ("progress.jsonl", "other.jsonl"):
        assert [(line["step"], line["train/loss"]) for line in lines(tmp_path / name)] == [(1, 0.5)]


def test_by_default_there_are_lines_and_by_request_nothing(tmp_path):
    opened(tmp_path / "default", None).__exit__()
    assert (tmp_path / "default" / "progress.jsonl").is_file()
    with opened(tmp_path / "none", ()) as trackers:
        trackers.log(1, {"train/loss": 0.5})
    assert not (tmp_path / "none").exists()


def test_what_does_not_exist_is_refused(tmp_path):
    with pytest.raises(KindError, match=r"did you mean 'wandb'"):
        opened(tmp_path, ("wand",))
    with pytest.raises(ConfigError, match="a tracker without a kind"):
        opened(tmp_path, ({"mode": "offline"},))
