"""What every experiment of trainings has: its file, its seeds, and the stages of an arm as a recipe has them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from steelyard.core.config import Config as BaseConfig
from steelyard.core.config import resolve_config
from steelyard.core.errors import ConfigError
from steelyard.core.types import Meta
from steelyard.io.settings import read_toml

_FEWEST_SEEDS = 3
Tables = dict[str, dict[str, Any]]


class Experiment(BaseConfig, frozen=True, kw_only=True):
    """What every experiment's file says: the test files, the seeds, and settings of `train` and `evaluate`."""

    benches: tuple[str, ...]
    """The test files, as `[KIND=]FILE`."""
    about: str = ""
    """A sentence about the experiment, for its report."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """The seeds; each training is done once for each."""
    train: Meta = msgspec.field(default_factory=dict)
    """Settings of `train`."""
    evaluate: Meta = msgspec.field(default_factory=dict)
    """Settings of `evaluate`."""
    num_threads: int | None = None
    """The number of threads of a training; none leaves it to PyTorch."""


ExperimentType = TypeVar("ExperimentType", bound=Experiment)


def read_experiment(
    kind: type[ExperimentType], path: Path, settings: Mapping[str, Any] | None = None
) -> ExperimentType:
    """The experiment in a file; ``settings`` stand over its own, a table's keys one by one.

    Raises ConfigError for an unknown setting or fewer than three different seeds: one seed shows no effect.
    """
    content = read_toml(path)
    for key, value in (settings or {}).items():
        both = isinstance(value, dict) and isinstance(content.get(key), dict)
        content[key] = content[key] | value if both else value
    found = resolve_config(kind, content, where=str(path))
    if len(set(found.seeds)) < _FEWEST_SEEDS:
        raise ConfigError(
            f"{len(set(found.seeds))} seeds", where=f"{path} at seeds", allowed=f"{_FEWEST_SEEDS} different or more"
        )
    return found


def model_name(arm: str, seed: int) -> str:
    """The stage that trains an arm with a seed."""
    return f"{arm}.{seed}.model"


def run_name(arm: str, seed: int) -> str:
    """The stage that evaluates an arm trained with a seed."""
    return f"{arm}.{seed}.evaluated"


def trained_and_evaluated(
    arm: str, seed: int, *, cases: str, model: str, experiment: Experiment, settings: Mapping[str, Any] | None = None
) -> Tables:
    """The two stages of an arm and a seed. ``settings`` of the training stand over the experiment's own."""
    threads = {} if experiment.num_threads is None else {"num_threads": experiment.num_threads}
    config = experiment.train | dict(settings or {}) | {"seed": seed}
    trained = model_name(arm, seed)
    return {
        trained: {"verb": "train", "cases": cases, "model": model, "config": config, **threads},
        run_name(arm, seed): {
            "verb": "evaluate",
            "benches": list(experiment.benches),
            "model": trained,
            "config": {"baselines": []} | experiment.evaluate | {"seed": 0},
            **threads,
        },
    }


def percent(share: float) -> str:
    """A share as it stands in names: 0.25 is 25%."""
    return f"{100 * share:g}%"


def share_of(file: str, share: float, seed: int, *, name: str) -> tuple[Tables, str]:
    """The stage that draws a share of a file's prompts, and where it lies. Raises ConfigError for what is no share."""
    if not 0 < share <= 1:
        raise ConfigError(f"scaling by {share}", where="scaling", allowed="shares above 0, at most 1")
    if share == 1:
        return {}, file
    stage = f"{name}.{seed}.part"
    parts = {"kept": share, "rest": 1 - share}
    return {stage: {"verb": "split", "cases": file, "config": {"parts": parts, "seed": seed}}}, f"{stage}/kept.jsonl"
