"""MLflow: one run a training, on a tracking server or in a folder beside the model."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError, MissingPartError

_LONGEST = 500
"""How long a parameter may be."""


class Config(BaseConfig, frozen=True):
    """``uri`` is that of a tracking server or store; null asks MLflow itself, which has one set or a default."""

    uri: str | None = None
    """The address of the tracking server or store; none takes MLflow's own setting."""
    experiment: str = "steelyard"
    """The name of the experiment."""


class MlflowTracker:
    """A run of the client."""

    def __init__(self, client: Any, run: str) -> None:
        self._client = client
        self._run = run

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """One point on each curve."""
        for name, value in values.items():
            self._client.log_metric(self._run, _allowed(name), value, step=step)

    def close(self) -> None:
        """Nothing more will come."""
        self._client.set_terminated(self._run)


def build(config: Config, *, folder: Path, name: str, told: Mapping[str, Any], start: int) -> MlflowTracker:
    """The tracker of a run. Raises MissingPartError without MLflow, ConfigError where it cannot begin."""
    try:
        import mlflow  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise MissingPartError("mlflow is not installed", do="pip install mlflow") from error
    try:
        client = mlflow.MlflowClient(tracking_uri=config.uri)
        found = client.get_experiment_by_name(config.experiment)
        experiment = found.experiment_id if found else client.create_experiment(config.experiment)
        run = client.create_run(experiment, run_name=name).info.run_id
        for key, value in {**told, "folder": folder, "start": start}.items():
            client.log_param(run, key, str(value)[:_LONGEST])
    except mlflow.exceptions.MlflowException as error:
        raise ConfigError(
            f"MLflow cannot begin ({str(error).splitlines()[0]})",
            where="trackers.mlflow",
            do="""name a store: --set 'track=[{kind="mlflow",uri="sqlite:///mlflow.db"}]'""",
        ) from error
    return MlflowTracker(client, run)


def _allowed(name: str) -> str:
    """MLflow takes letters, digits and a few signs; a name in another script keeps its letters."""
    return "".join(sign if sign.isalnum() or sign in "_-. /" else "_" for sign in name)
