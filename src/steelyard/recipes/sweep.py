"""Running a sweep: every training as one recipe, then how accuracy grows with data and with weights."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from steelyard.core.types import Meta
from steelyard.io.atomic import atomic_write, write_text
from steelyard.recipes.arms import NUM_RESAMPLES, Against, Arm, Measured, differences, read_arms
from steelyard.recipes.run import run
from steelyard.recipes.sweeps import Point, Sweep, points_of, sweep_recipe
from steelyard.statistics.significance import Trend, trend

TABLE_FILE, PLOT_FILE = "sweep.json", "sweep.svg"
_ALIKE = 0.02
"""Two backbones whose numbers of weights differ by no more than this share are of one size."""


class Grown(NamedTuple):
    """How accuracy grows along one line: ``by`` pairs of the data, or weights of the model."""

    name: str
    by: str
    trend: Trend

    def record(self) -> dict[str, Any]:
        """The line as it is written."""
        return {"name": self.name, "by": self.by, **self.trend.record()}


class Swept(NamedTuple):
    """The whole table. ``points`` and ``arms`` stand in the same order."""

    points: tuple[Point, ...]
    arms: tuple[Arm, ...]
    grown: tuple[Grown, ...]
    starts: tuple[Against, ...]

    def record(self) -> dict[str, Any]:
        """The table as it is written."""
        return {
            "arms": [_described(point) | arm.record() for point, arm in zip(self.points, self.arms, strict=True)],
            "growth": [one.record() for one in self.grown],
            "starts": [one.record() for one in self.starts],
            "correction": "Holm, over the differences between starts",
        }


def sweep(asked: Sweep, path: Path, out: Path) -> Swept:
    """Train and evaluate every point with every seed, and write ``sweep.json`` and ``sweep.svg``.

    Finished stages are skipped: after a kill, or with a further model, share or seed, the same folder goes on. Raises
    what the stages raise.
    """
    run(sweep_recipe(asked, path), out)
    points = points_of(asked)
    measured = read_arms([point.name for point in points], asked.seeds, out)
    found = Swept(
        points, measured.arms, tuple(_growth(points, measured)), differences(measured, _starts(points, measured))
    )
    with atomic_write(out / TABLE_FILE) as file:
        file.write(msgspec.json.format(msgspec.json.encode(found.record()), indent=2) + b"\n")
    write_text(out / PLOT_FILE, _drawn(found))
    return found


def _described(point: Point) -> Meta:
    backbone = point.backbone
    return {"model": backbone.name, "start": backbone.start, "share": point.share, "settings": dict(point.settings)}


def _growth(points: Sequence[Point], measured: Measured) -> Iterator[Grown]:
    """A line of pairs for each series of shares, and one of weights for each start, over the largest share."""
    by_series: dict[str, list[int]] = defaultdict(list)
    by_start: dict[str, list[int]] = defaultdict(list)
    largest = max(point.share for point in points)
    for index, point in enumerate(points):
        by_series[point.series].append(index)
        if point.share == largest:
            settings = [f"{key}={value}" for key, value in point.settings.items()]
            by_start["_".join([point.backbone.start or "all", *settings])].append(index)
    for name, own in by_series.items():
        yield from _line(name, "pairs", own, [measured.arms[index].num_pairs for index in own], measured)
    for name, own in by_start.items():
        yield from _line(name, "weights", own, [measured.arms[index].num_weights for index in own], measured)


def _line(name: str, by: str, own: Sequence[int], sizes: Sequence[float], measured: Measured) -> Iterator[Grown]:
    if len(set(sizes)) < 2:
        return
    tables = [measured.statistics[measured.arms[index].name] for index in own]
    yield Grown(name, by, trend(measured.layout, tables, sizes, num_resamples=NUM_RESAMPLES, seed=0))


def _starts(points: Sequence[Point], measured: Measured) -> list[tuple[str, str]]:
    """Pairs of models of one size, share and settings that were trained differently before."""
    found = []
    for (first, one), (second, other) in combinations(zip(points, measured.arms, strict=True), 2):
        is_one_size = abs(one.num_weights - other.num_weights) <= _ALIKE * max(one.num_weights, other.num_weights)
        is_alike = first.share == second.share and first.settings == second.settings
        if is_one_size and is_alike and first.backbone.start != second.backbone.start:
            found.append((other.name, one.name))
    return found


def _drawn(found: Swept) -> str:
    import vl_convert

    from steelyard.report.scaling import Mark, scaling_figure

    marks = [
        Mark(point.series, point.backbone.start, point.share, arm.num_pairs, arm.num_weights, arm.accuracy, arm.by_seed)
        for point, arm in zip(found.points, found.arms, strict=True)
    ]
    return vl_convert.vegalite_to_svg(scaling_figure(marks))
