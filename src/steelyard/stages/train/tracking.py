"""The figures of a training as it runs, handed to every tracker that was asked for."""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from steelyard.core.errors import ConfigError
from steelyard.core.plugins import build
from steelyard.stages.train.processes import current
from steelyard.stages.train.settings import Config

_LEFT_OUT = ("track", "chat_template")


class Tracker(Protocol):
    """What shows the figures of one training, or keeps them to be shown."""

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """The figures of a step, by name."""
        ...

    def close(self) -> None:
        """Nothing more will come."""
        ...


class Trackers:
    """All trackers of one training, as one; of many processes the first has them."""

    def __init__(self, trackers: tuple[Tracker, ...]) -> None:
        self._trackers = trackers

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """The figures of a step, by name."""
        for tracker in self._trackers:
            tracker.log(step, values)

    def __enter__(self) -> "Trackers":
        """The trackers, open."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close them, whatever happened."""
        for tracker in self._trackers:
            tracker.close()


def open_trackers(config: Config, *, folder: Path, told: Mapping[str, Any], start: int) -> Trackers:
    """The trackers asked for, of a training that begins after step ``start``; ``told`` is what they say of it.

    Raises ConfigError for a table without ``kind``, KindError for a kind that does not exist, MissingPartError where
    its package is not installed.
    """
    if not current().is_first:
        return Trackers(())
    asked = ("jsonl", *(["tensorboard"] if find_spec("tensorboardX") else [])) if config.track is None else config.track
    kept = {key: value for key, value in told.items() if key not in _LEFT_OUT}
    built = []
    for one in asked:
        kind, settings = _kind_of(one)
        built.append(build("trackers", kind, settings, folder=folder, name=folder.name, told=kept, start=start))
    return Trackers(tuple(built))


def _kind_of(asked: str | dict[str, Any]) -> tuple[str, dict[str, Any]]:
    if isinstance(asked, str):
        return asked, {}
    if not isinstance(asked.get("kind"), str):
        raise ConfigError(f"a tracker without a kind: {asked}", where="train.track", allowed='{kind = "wandb", ...}')
    return asked["kind"], {key: value for key, value in asked.items() if key != "kind"}
