import importlib.util

import pytest

from steelyard.core.errors import ConfigError, MissingPartError
from steelyard.core.plugins import build

PARTS = {"name": "run", "run_settings": {"epochs": 2}, "start": 0}
IS_THERE = importlib.util.find_spec("mlflow") is not None
pytestmark = pytest.mark.filterwarnings("ignore")  # of what MLflow itself calls


@pytest.mark.skipif(IS_THERE, reason="mlflow is installed")
def test_without_the_package_it_says_how_to_get_it(tmp_path):
    with pytest.raises(MissingPartError, match="mlflow is not installed"):
        build("trackers", "mlflow", {}, folder=tmp_path, **PARTS)


@pytest.mark.skipif(not IS_THERE, reason="mlflow is not installed")
def test_the_store_holds_every_point(tmp_path):
    import mlflow

    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    tracker = build("trackers", "mlflow", {"uri": uri}, folder=tmp_path, **PARTS)
    tracker.log(1, {"train/loss": 0.5})
    tracker.log(2, {"train/loss": 0.25, "by_category/数学,算": 1.0})
    tracker.close()
    client = mlflow.MlflowClient(tracking_uri=uri)
    (run,) = client.search_runs([client.get_experiment_by_name("steelyard").experiment_id])
    assert [(one.step, one.value) for one in client.get_metric_history(run.info.run_id, "train/loss")] == [
        (1, 0.5), (2, 0.25),
    ]  # fmt: skip
    assert run.data.metrics["by_category/数学_算"] == 1.0
    assert run.data.params["epochs"] == "2"


@pytest.mark.skipif(not IS_THERE, reason="mlflow is not installed")
def test_a_store_that_does_not_exist_is_said_plainly(tmp_path):
    with pytest.raises(ConfigError, match="MLflow cannot begin"):
        build("trackers", "mlflow", {"uri": "nonsense://here"}, folder=tmp_path, **PARTS)
