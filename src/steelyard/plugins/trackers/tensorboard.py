"""TensorBoard's event files in the folder ``tensorboard`` beside the model: ``tensorboard --logdir OUT``."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import MissingPartError
from steelyard.io.run_folder import path_inside


class Config(BaseConfig, frozen=True):
    """``folder`` is its name within the model folder; ``flush_seconds`` how often the page has something new."""

    folder: str = "tensorboard"
    """The name of the folder within the model folder."""
    flush_seconds: int = 10
    """The time between two writes, in seconds."""


class TensorBoardTracker:
    """Writes through tensorboardX, which needs no TensorFlow."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """One point on each curve."""
        for name, value in values.items():
            self._writer.add_scalar(name, value, global_step=step)

    def close(self) -> None:
        """Nothing more will come."""
        self._writer.close()


def build(config: Config, *, folder: Path, name: str, told: Mapping[str, Any], start: int) -> TensorBoardTracker:
    """The tracker of a run; what a killed run wrote after step ``start`` is hidden.

    Raises MissingPartError where tensorboardX is not installed.
    """
    try:
        from tensorboardX import SummaryWriter  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise MissingPartError("tensorboardX is not installed", do="pip install tensorboardX") from error
    there = path_inside(folder, config.folder)
    if start == 0 and there.is_dir():
        shutil.rmtree(there)
    writer = SummaryWriter(
        str(there),
        purge_step=start + 1 if start else None,
        flush_secs=config.flush_seconds,
        # Two files of one second would be one file, were they not told apart.
        filename_suffix=f".{start}",
    )
    if start == 0:
        lines = "\n".join(f"    {key} = {value}" for key, value in told.items())
        writer.add_text("settings", f"    {name}\n{lines}", global_step=0)
    return TensorBoardTracker(writer)
