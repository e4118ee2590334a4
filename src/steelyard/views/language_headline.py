"""Headlines of tables of models by language: the models with the highest mean, each in its own direction."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from steelyard.evaluation.language_table import ModelRow
from steelyard.evaluation.tables import count, isolate, word
from steelyard.report.page import first_names
from steelyard.statistics.intervals import Estimate
from steelyard.views.view import RunHeadline

_MOST_NAMED = 6
_MOST_BEST = 3


def isolated_names(names: Iterable[str], most: int = _MOST_NAMED) -> str:
    """Return the first names of models, each in its own direction."""
    return first_names([isolate(name) for name in names], most)


class TopModel(msgspec.Struct):
    """A model of a record, with its mean over columns."""

    model: str
    mean: Estimate | None = None


class TableHeadline(msgspec.Struct):
    """The part of a record that its headline needs."""

    models: tuple[TopModel, ...]
    bench: str = ""


def headline(run: TableHeadline) -> RunHeadline:
    """Return the number of models, and those with the highest mean."""
    best = isolated_names(highest_models(run.models).names, _MOST_BEST)
    models = f"{word('view_models_best')} {best}" if best else word("number_of_models")
    return RunHeadline(count(len(run.models)), f"{models} · {run.bench}")


class HighestModels(NamedTuple):
    """The models with the highest mean over columns, and this mean; none where no model has one."""

    names: list[str]
    mean: float | None


def highest_models(models: Sequence[ModelRow | TopModel]) -> HighestModels:
    """Return the models with the highest mean over columns."""
    means = {row.model: row.mean.value for row in models if row.mean is not None and row.mean.value is not None}
    highest = max(means.values(), default=None)
    return HighestModels([name for name, mean in means.items() if mean == highest], highest)
