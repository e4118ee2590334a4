import json

import pytest

from steelyard.core.errors import ConfigError, KindError
from steelyard.training.callbacks import open_trackers
from steelyard.training.config import Config


def opened(folder, track, start=0):
    return open_trackers(Config(track=track), folder=folder, settings={"epochs": 2}, start=start)


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_tracker_gets_the_figures(tmp_path):
    trackers = opened(tmp_path, ("jsonl", {"kind": "jsonl", "file": "other.jsonl"}))
    trackers.log(1, {"train/loss": 0.5})
    trackers.close()
    for name in ("progress.jsonl", "other.jsonl"):
        assert [(line["step"], line["train/loss"]) for line in lines(tmp_path / name)] == [(1, 0.5)]


def test_by_default_there_are_lines_and_by_request_nothing(tmp_path):
    opened(tmp_path / "default", None).close()
    assert (tmp_path / "default" / "progress.jsonl").is_file()
    assert opened(tmp_path / "none", ()).members == ()
    assert not (tmp_path / "none").exists()


def test_what_does_not_exist_is_refused(tmp_path):
    with pytest.raises(KindError, match=r"did you mean 'wandb'"):
        opened(tmp_path, ("wand",))
    with pytest.raises(ConfigError, match="a tracker without a kind"):
        opened(tmp_path, ({"mode": "offline"},))
