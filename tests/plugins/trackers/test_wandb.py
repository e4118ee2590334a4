import importlib.util

import pytest

from steelyard.core.errors import MissingPartError
from steelyard.core.plugins import build

PARTS = {"name": "run", "run_settings": {"epochs": 2}, "start": 0}


@pytest.mark.skipif(importlib.util.find_spec("wandb") is not None, reason="wandb is installed")
def test_without_the_package_it_says_how_to_get_it(tmp_path):
    with pytest.raises(MissingPartError, match="wandb is not installed"):
        build("trackers", "wandb", {}, folder=tmp_path, **PARTS)


@pytest.mark.skipif(importlib.util.find_spec("wandb") is None, reason="wandb is not installed")
def test_offline_everything_stays_in_the_model_folder(tmp_path):
    tracker = build("trackers", "wandb", {"mode": "offline"}, folder=tmp_path, **PARTS)
    tracker.log(1, {"train/loss": 0.5})
    tracker.close()
    assert list(tmp_path.glob("wandb/offline-run-*/*.wandb"))
