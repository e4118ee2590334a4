"""Weights & Biases: one run a training; the key is taken where its own client looks for it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError, MissingPartError


class Config(BaseConfig, frozen=True):
    """``mode``: ``offline`` keeps all in the model folder, for `wandb sync` later."""

    project: str = "steelyard"
    """The name of the project."""
    entity: str | None = None
    """The user or team; none takes the default of the account."""
    mode: Literal["online", "offline"] = "online"
    """Whether runs are sent at once, or kept in the model folder for `wandb sync`."""


class WandbTracker:
    """A run of the client."""

    def __init__(self, run: Any) -> None:
        self._run = run

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """One point on each curve. Points of one step may come one after another."""
        self._run.log({**values, "step": step})

    def close(self) -> None:
        """Nothing more will come."""
        self._run.finish()


def build(config: Config, *, folder: Path, name: str, told: Mapping[str, Any], start: int) -> WandbTracker:
    """The tracker of a run, whose curves have the step for their axis.

    A training that goes on after a kill is a run of its own, which says at which step it began. Raises
    MissingPartError where wandb is not installed, ConfigError where it cannot begin.
    """
    try:
        import wandb  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise MissingPartError("wandb is not installed", do="pip install wandb") from error
    try:
        run = wandb.init(
            project=config.project,
            entity=config.entity,
            name=name,
            dir=str(folder),
            mode=config.mode,
            config={**told, "start": start},
            settings=wandb.Settings(silent=True),
        )
    except wandb.errors.Error as error:
        raise ConfigError(
            f"Weights & Biases cannot begin ({str(error).splitlines()[0]})",
            where="trackers.wandb",
            do='log in with `wandb login`, or say --set \'track=[{kind="wandb",mode="offline"}]\'',
        ) from error
    run.define_metric("step")
    run.define_metric("*", step_metric="step")
    return WandbTracker(run)
