"""The contract of every tracker: built alike, it takes figures step by step, goes on after a kill, and closes."""

import importlib.util

import pytest

from steelyard.core.errors import FileError
from steelyard.core.plugins import build, kinds

pytestmark = pytest.mark.filterwarnings("ignore")  # of what the trackers themselves call
NEEDS = {"tensorboard": "tensorboardX", "wandb": "wandb", "mlflow": "mlflow"}
OFFLINE = {"wandb": {"mode": "offline"}}
FIGURES = {"train/loss": 0.5, "held_out/by_category/数学/accuracy": 0.75, "held_out/by_language/עברית/accuracy": 1.0}


def settings_of(kind, folder):
    if kind == "mlflow":
        return {"uri": f"sqlite:///{folder / 'mlflow.db'}"}
    return OFFLINE.get(kind, {})


@pytest.fixture(params=kinds("trackers"))
def kind(request):
    package = NEEDS.get(request.param)
    if package and importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    return request.param


def test_figures_are_taken_step_by_step_and_after_a_kill(kind, tmp_path):
    parts = {"folder": tmp_path, "name": "a run", "run_settings": {"epochs": 2, "text": "好" * 600, "none": None}}
    first = build("trackers", kind, settings_of(kind, tmp_path), **parts, start=0)
    for step in (1, 2, 3):
        first.log(step, FIGURES)
    first.log(3, {"train/loss": 0.25})
    first.close()
    again = build("trackers", kind, settings_of(kind, tmp_path), **parts, start=2)
    again.log(3, {"train/loss": 0.125})
    again.close()
    assert [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.parametrize("given", [("jsonl", "file"), ("tensorboard", "folder")], ids=lambda given: given[0])
def test_what_it_writes_stays_in_the_model_s_folder(given, tmp_path):
    kind, setting = given
    (tmp_path / "victim").mkdir()
    with pytest.raises(FileError, match="outside"):
        build("trackers", kind, {setting: "../victim"}, folder=tmp_path / "out", name="a run", run_settings={}, start=0)
    assert (tmp_path / "victim").is_dir()
