"""Sweeps: backbones (CHEEMS, Figure 7), shares of the data (Figure 6), and settings, each with each, as one recipe.

Then the growth of accuracy with data and with weights.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any, NamedTuple, Self

import msgspec
from msgspec.structs import replace

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError
from steelyard.core.types import JsonObject
from steelyard.evaluation.experiments import Arm, ArmDifference, Growth, SweepSummary, SweptArm
from steelyard.recipes.experiments import Experiment, ExperimentKind, Tables, draw_share, percent, trained_and_evaluated
from steelyard.recipes.measured_arms import (
    MeasuredArms,
    arms_on_bench,
    compare_arms,
    corrected,
    on_bench,
)
from steelyard.statistics.significance import NUM_RESAMPLES, trend

_SIZE_TOLERANCE = 0.02
"""Two backbones are of one size if their numbers of weights differ by at most this share."""


class Backbone(BaseConfig, frozen=True, kw_only=True):
    """A model to start from: a folder beside the file, or a name on the hub.

    ``start`` names its earlier training in a word (``pretrained``, ``instruct``): backbones with one start are one line
    in the plot by size.
    """

    name: str
    """The name in tables and figures."""
    model: str
    """A folder relative to the file, or a name on the hub."""
    start: str = ""
    """Earlier training of the model, in a word: pretrained, instruct. Equal words are one line in the plot."""


class Sweep(Experiment, frozen=True, kw_only=True):
    """The settings of a sweep. Files are case files, searched beside the sweep's file.

    Every model is trained on every share of the ``training`` prompts with every combination of the settings in
    ``vary`` (a list of values for each key of `train`), once per seed, and evaluated on the ``benches``.
    """

    training: str
    """The training cases."""
    models: tuple[Backbone, ...]
    """The backbones."""
    shares: tuple[float, ...] = (1.0,)
    """The shares of the prompts to train on."""
    vary: dict[str, tuple[Any, ...]] = msgspec.field(default_factory=dict)
    """Lists of values by setting of `train`."""


class SweepPoint(NamedTuple):
    """One training of a sweep, for all seeds."""

    backbone: Backbone
    share: float
    settings: JsonObject

    @property
    def series(self) -> str:
        """Return the name of the model and its settings, which all shares have in common."""
        return "_".join([self.backbone.name, *(f"{key}={value}" for key, value in self.settings.items())])

    @property
    def name(self) -> str:
        """Return the name of the arm."""
        return f"{self.series}_{percent(self.share)}"


def _check(sweep: Sweep, where: str) -> None:
    if any(not values for values in sweep.vary.values()):
        raise ConfigError("a setting in vary without values", where=where, do="give each a list of values")
    names = Counter(_arms(sweep))
    if names.total() < 2:
        raise ConfigError(
            "a sweep of one training", where=where, do="give two models, two shares, or two values in vary"
        )
    for name, times in names.items():
        if times > 1:
            raise ConfigError(f"{times} trainings named {name!r}", where=where, do="give each model, share, value once")
        if "/" in name:
            raise ConfigError(f"a training named {name!r}", where=where, allowed="names without /: they name folders")


def points_of(sweep: Sweep) -> tuple[SweepPoint, ...]:
    """Return every training: models first, then settings, then shares."""
    combinations_of_settings = [dict(zip(sweep.vary, values, strict=True)) for values in product(*sweep.vary.values())]
    return tuple(
        SweepPoint(backbone, share, settings)
        for backbone, settings, share in product(sweep.models, combinations_of_settings, sweep.shares)
    )


def _arms(sweep: Sweep) -> list[str]:
    return [point.name for point in points_of(sweep)]


def _stages(sweep: Sweep) -> Tables:
    """Return the stages of the recipe. A share of a seed is drawn once for all models."""
    stages: Tables = {}
    for point, seed in product(points_of(sweep), sweep.seeds):
        drawn, cases = draw_share(sweep.training, point.share, seed, name=percent(point.share))
        stages |= drawn
        stages |= trained_and_evaluated(
            point.name, seed, cases=cases, model=point.backbone.model, experiment=sweep, settings=point.settings
        )
    return stages


class SweepResult(NamedTuple):
    """The arm of each point, in the same order, the growth of each line, and differences between starts."""

    points: tuple[SweepPoint, ...]
    arms: tuple[Arm, ...]
    growth: tuple[Growth, ...]
    starts: tuple[ArmDifference, ...]

    def record(self) -> SweepSummary:
        """Return the table as it is written."""
        arms = tuple(
            SweptArm(
                **msgspec.structs.asdict(arm),
                model=point.backbone.name,
                start=point.backbone.start,
                share=point.share,
                settings=point.settings,
            )
            for point, arm in zip(self.points, self.arms, strict=True)
        )
        correction = "Holm, over the differences between starts"
        return SweepSummary(arms=arms, growth=self.growth, starts=self.starts, correction=correction)

    def figure(self) -> JsonObject:
        """Return the plot of accuracy by data and by weights."""
        from steelyard.report.study_figures import ScalingPoint, scaling_figure

        rows = [
            ScalingPoint(
                point.series,
                point.backbone.start,
                point.share,
                arm.num_pairs,
                arm.num_weights,
                arm.accuracy,
                arm.accuracy_by_seed,
            )
            for point, arm in zip(self.points, self.arms, strict=True)
        ]
        return scaling_figure(rows)

    @classmethod
    def join(cls, by_bench: Mapping[str, Self]) -> Self:
        """Return the results on several kinds of bench as one, p-values corrected over all."""
        points = [
            point._replace(backbone=replace(point.backbone, name=f"{bench}: {point.backbone.name}"))
            for bench, result in by_bench.items()
            for point in result.points
        ]
        arms = [arm for bench, result in by_bench.items() for arm in arms_on_bench(result.arms, bench)]
        growth = [
            replace(line, name=f"{bench}: {line.name}") for bench, result in by_bench.items() for line in result.growth
        ]
        starts = [each for bench, result in by_bench.items() for each in on_bench(result.starts, bench)]
        return cls(tuple(points), tuple(arms), tuple(growth), corrected(starts))


def _compare(sweep: Sweep, measured: MeasuredArms) -> SweepResult:
    points = points_of(sweep)
    starts = compare_arms(measured, _pairs_of_starts(points, measured))
    return SweepResult(points, measured.arms, tuple(_growth(points, measured)), starts)


def _growth(points: Sequence[SweepPoint], measured: MeasuredArms) -> Iterator[Growth]:
    """Yield a line of pairs for each series of shares, and one of weights for each start, at the largest share."""
    by_series: dict[str, list[int]] = defaultdict(list)
    by_start: dict[str, list[int]] = defaultdict(list)
    largest = max(point.share for point in points)
    for index, point in enumerate(points):
        by_series[point.series].append(index)
        if point.share == largest:
            settings = [f"{key}={value}" for key, value in point.settings.items()]
            by_start["_".join([point.backbone.start or "all", *settings])].append(index)
    for by, lines in (("pairs", by_series), ("weights", by_start)):
        for name, indices in lines.items():
            arms = [measured.arms[index] for index in indices]
            sizes = [arm.num_pairs if by == "pairs" else arm.num_weights for arm in arms]
            if len(set(sizes)) > 1:
                tables = [measured.statistics[arm.name] for arm in arms]
                grown = trend(measured.layout, tables, sizes, num_resamples=NUM_RESAMPLES)
                yield Growth(name=name, by=by, **grown._asdict())


def _pairs_of_starts(points: Sequence[SweepPoint], measured: MeasuredArms) -> list[tuple[str, str]]:
    """Return pairs of models of one size, share and settings with different starts, the later one first."""
    pairs = []
    for (first, arm), (second, later) in combinations(zip(points, measured.arms, strict=True), 2):
        smaller, larger = sorted((arm.num_weights, later.num_weights))
        is_one_size = larger - smaller <= _SIZE_TOLERANCE * larger
        is_alike = first.share == second.share and first.settings == second.settings
        if is_one_size and is_alike and first.backbone.start != second.backbone.start:
            pairs.append((later.name, arm.name))
    return pairs


EXPERIMENT = ExperimentKind("sweep", "sweep", Sweep, SweepSummary, _check, _arms, _stages, _compare)
