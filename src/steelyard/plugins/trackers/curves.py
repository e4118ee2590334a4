"""The trackers of a training: a JSON-lines file, TensorBoard's event files, MLflow and Weights & Biases.

A tracker is built for the model folder ``folder``, under the name ``name``, with the training's settings. ``start``
is the step at which the training goes on; points that a killed run wrote after it are removed or hidden where possible.
"""

import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from steelyard.core.config import Config
from steelyard.core.errors import ConfigError, MissingPartError
from steelyard.core.plugins import Plugin
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.types import JsonObject
from steelyard.io.atomic import atomic_write
from steelyard.io.run_folder import path_inside

FILE = "progress.jsonl"
_MAX_PARAMETER = 500
"""The longest parameter of MLflow, in characters."""


class JsonlConfig(Config, frozen=True):
    """Settings of the file."""

    file: str = FILE
    """The name of the file within the model folder."""


class JsonlTracker:
    """Appends and flushes line by line, so that the file can be followed."""

    def __init__(self, path: Path, start: int) -> None:
        # The lines of the steps up to the start stay.
        lines: list[bytes] = []
        for line in path.read_bytes().splitlines(keepends=True) if start and path.is_file() else ():
            try:
                if line.endswith(b"\n") and msgspec.json.decode(line)["step"] <= start:
                    lines.append(line)
            except (msgspec.DecodeError, KeyError, TypeError):
                continue  # half a line, as a kill leaves it
        with atomic_write(path) as file:
            file.writelines(lines)
        self._file = path.open("ab")

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Write one line, with the seconds since 1970."""
        self._file.write(msgspec.json.encode({"step": step, "time": round(time.time(), 3), **values}) + b"\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _jsonl(config: JsonlConfig, *, folder: Path, name: str, run_settings: JsonObject, start: int) -> JsonlTracker:
    return JsonlTracker(path_inside(folder, config.file), start)


class TensorBoardConfig(Config, frozen=True):
    """Settings of the event files."""

    folder: str = "tensorboard"
    """The name of the folder within the model folder."""
    flush_seconds: int = 10
    """The time between two writes, in seconds."""


class TensorBoardTracker:
    """Writes through tensorboardX, which needs no TensorFlow."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Add a point to each curve."""
        for name, value in values.items():
            self._writer.add_scalar(name, value, global_step=step)

    def close(self) -> None:
        """Close the event file."""
        self._writer.close()


def _tensorboard(
    config: TensorBoardConfig, *, folder: Path, name: str, run_settings: JsonObject, start: int
) -> TensorBoardTracker:
    """Build the tracker. Raises MissingPartError where tensorboardX is not installed."""
    try:
        from tensorboardX import SummaryWriter
    except ImportError as error:
        raise MissingPartError.of_import(error, "tensorboardX") from error
    events = path_inside(folder, config.folder)
    if start == 0 and events.is_dir():
        shutil.rmtree(events)
    writer = SummaryWriter(
        str(events),
        purge_step=start + 1 if start else None,
        flush_secs=config.flush_seconds,
        # Two files of one second would have one name without a suffix.
        filename_suffix=f".{start}",
    )
    if start == 0:
        lines = "\n".join(f"    {key} = {value}" for key, value in run_settings.items())
        writer.add_text("settings", f"    {name}\n{lines}", global_step=0)
    return TensorBoardTracker(writer)


class MlflowConfig(Config, frozen=True):
    """Settings of the tracking server."""

    uri: str | None = None
    """The address of the tracking server or store. Default: MLflow's own setting."""
    experiment: str = "steelyard"
    """The name of the experiment."""


class MlflowTracker:
    """A run of MLflow's client."""

    def __init__(self, client: Any, run: str) -> None:
        self._client = client
        self._run = run

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Add a point to each curve. MLflow takes letters of any script, digits and a few signs in a name."""
        for name, value in values.items():
            allowed = "".join(sign if sign.isalnum() or sign in "_-. /" else "_" for sign in name)
            self._client.log_metric(self._run, allowed, value, step=step)

    def close(self) -> None:
        """End the run."""
        self._client.set_terminated(self._run)


def _mlflow(config: MlflowConfig, *, folder: Path, name: str, run_settings: JsonObject, start: int) -> MlflowTracker:
    """Build the tracker. Raises MissingPartError without MLflow, ConfigError where it cannot begin."""
    try:
        import mlflow
    except ImportError as error:
        raise MissingPartError.of_import(error, "mlflow") from error
    try:
        client = mlflow.MlflowClient(tracking_uri=config.uri)
        stored = client.get_experiment_by_name(config.experiment)
        experiment = stored.experiment_id if stored else client.create_experiment(config.experiment)
        run = client.create_run(experiment, run_name=name).info.run_id
        for key, value in {**run_settings, "folder": folder, "start": start}.items():
            client.log_param(run, key, str(value)[:_MAX_PARAMETER])
    except mlflow.exceptions.MlflowException as error:
        raise ConfigError(
            f"MLflow cannot begin ({str(error).splitlines()[0]})",
            where="trackers.mlflow",
            do=Advice("name a store: ", Remedy("trackers", [{"kind": "mlflow", "uri": "sqlite:///mlflow.db"}])),
        ) from error
    return MlflowTracker(client, run)


class WandbConfig(Config, frozen=True):
    """Settings of the run."""

    project: str = "steelyard"
    """The name of the project."""
    entity: str | None = None
    """The user or team. Default: that of the account."""
    mode: Literal["online", "offline"] = "online"
    """Send runs at once, or keep them in the model folder for `wandb sync`."""


class WandbTracker:
    """A run of Weights & Biases' client."""

    def __init__(self, run: Any) -> None:
        self._run = run

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Add a point to each curve; points of one step may come in several calls."""
        self._run.log({**values, "step": step})

    def close(self) -> None:
        """End the run."""
        self._run.finish()


def _wandb(config: WandbConfig, *, folder: Path, name: str, run_settings: JsonObject, start: int) -> WandbTracker:
    """Build the tracker, whose curves have the step as their axis.

    A training that goes on after a kill is a new run with its ``start``. Raises MissingPartError where wandb is not
    installed, ConfigError where it cannot begin.
    """
    try:
        import wandb
    except ImportError as error:
        raise MissingPartError.of_import(error, "wandb") from error
    try:
        run = wandb.init(
            project=config.project,
            entity=config.entity,
            name=name,
            dir=str(folder),
            mode=config.mode,
            config={**run_settings, "start": start},
            settings=wandb.Settings(silent=True),
        )
    except wandb.errors.Error as error:
        raise ConfigError(
            f"Weights & Biases cannot begin ({str(error).splitlines()[0]})",
            where="trackers.wandb",
            do=Advice("log in with `wandb login`, or use ", Remedy("trackers", [{"kind": "wandb", "mode": "offline"}])),
        ) from error
    run.define_metric("step")
    run.define_metric("*", step_metric="step")
    return WandbTracker(run)


KINDS = {
    "jsonl": Plugin(
        JsonlConfig,
        _jsonl,
        "A line per step in ``progress.jsonl`` next to the model, with times, which the curve leaves out.",
    ),
    "mlflow": Plugin(
        MlflowConfig, _mlflow, "MLflow: one run per training, on a tracking server or in a folder beside the model."
    ),
    "tensorboard": Plugin(
        TensorBoardConfig,
        _tensorboard,
        "TensorBoard's event files in the folder ``tensorboard`` beside the model, for ``tensorboard``.",
    ),
    "wandb": Plugin(
        WandbConfig,
        _wandb,
        "Weights & Biases: one run per training; the key is taken where its own client looks for it.",
    ),
}
