"""Sweeps as recipes: backbones (CHEEMS, Figure 7), shares of the data (Figure 6), and settings, each with each."""

from collections import Counter
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError
from steelyard.recipes.experiments import (
    Experiment,
    Tables,
    percent,
    read_experiment,
    share_of,
    trained_and_evaluated,
)
from steelyard.recipes.recipes import Recipe, build_recipe


class Backbone(BaseConfig, frozen=True, kw_only=True):
    """A model to start from: a folder beside the file, or a name on the hub.

    ``start`` says in a word how it was trained before (``pretrained``, ``instruct``): backbones of one start are one
    line in the plot by size.
    """

    name: str
    """The name in tables and figures."""
    model: str
    """A folder relative to the file, or a name on the hub."""
    start: str = ""
    """How the model was trained before, in a word: pretrained, instruct. Equal words are one line in the plot."""


class Sweep(Experiment, frozen=True, kw_only=True):
    """What a sweep's file says. Files are case files, looked for beside it.

    Every model is trained on every share of the ``training`` prompts with every combination of the settings in
    ``vary`` (a list of values for each key of `train`), once a seed, and evaluated on the ``benches``.
    """

    training: str
    models: tuple[Backbone, ...]
    shares: tuple[float, ...] = (1.0,)
    vary: dict[str, tuple[Any, ...]] = msgspec.field(default_factory=dict)


class Point(NamedTuple):
    """One training of a sweep, but for its seed."""

    backbone: Backbone
    share: float
    settings: Mapping[str, Any]

    @property
    def series(self) -> str:
        """The model and its settings: what stays the same over shares."""
        return "_".join([self.backbone.name, *(f"{key}={value}" for key, value in self.settings.items())])

    @property
    def name(self) -> str:
        """The arm's name."""
        return f"{self.series}_{percent(self.share)}"


def read_sweep(path: Path, settings: dict[str, Any] | None = None) -> Sweep:
    """The sweep in a file; ``settings`` stand over its own. Raises ConfigError for one that compares nothing."""
    found = read_experiment(Sweep, path, settings)
    where = str(path)
    if any(not values for values in found.vary.values()):
        raise ConfigError("a setting in vary without values", where=where, do="give each a list of values")
    names = [point.name for point in points_of(found)]
    if len(names) < 2:
        raise ConfigError(
            "a sweep of one training", where=where, do="give two models, two shares, or two values in vary"
        )
    for name, times in Counter(names).items():
        if times > 1:
            raise ConfigError(f"{times} trainings named {name!r}", where=where, do="give each model, share, value once")
        if "/" in name:
            raise ConfigError(f"a training named {name!r}", where=where, allowed="names without /: they name folders")
    return found


def points_of(sweep: Sweep) -> tuple[Point, ...]:
    """Every training, models first, then settings, then shares."""
    combinations = [dict(zip(sweep.vary, values, strict=True)) for values in product(*sweep.vary.values())]
    return tuple(
        Point(backbone, share, settings)
        for backbone, settings, share in product(sweep.models, combinations, sweep.shares)
    )


def sweep_recipe(sweep: Sweep, path: Path) -> Recipe:
    """The whole sweep as one recipe. A share of a seed is drawn once for all models. Raises as recipes do."""
    stages: Tables = {}
    for point, seed in product(points_of(sweep), sweep.seeds):
        drawn, cases = share_of(sweep.training, point.share, seed, name=percent(point.share))
        own = trained_and_evaluated(
            point.name, seed, cases=cases, model=point.backbone.model, experiment=sweep, settings=point.settings
        )
        stages |= drawn | own
    return build_recipe({"about": sweep.about, "stages": stages}, path)
