"""Plain parts of a result: rows of Python's tables and data frames, and headlines of models.

An estimate takes four columns: ``accuracy``, ``accuracy_low``, ``accuracy_high``, ``accuracy_n``.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from steelyard.core.types import JsonObject, Record
from steelyard.evaluation.language_table import ModelRow
from steelyard.evaluation.tables import DASH, count, isolate, word
from steelyard.report.page import first_names
from steelyard.statistics.intervals import Estimate
from steelyard.views.view import RunHeadline

_MOST_NAMED = 6
_MOST_BEST = 3


class RankedModel(msgspec.Struct):
    """The part of a ranked model's record that a headline needs."""

    name: str


def ranked_headline(models: Sequence[RankedModel], bench: str) -> RunHeadline:
    """Return the number of models, the best first, and its name."""
    best = models[0].name if models else DASH
    return RunHeadline(count(len(models)), f"{word('view_models_best')} {best} · {bench}")


def flat_row(
    record: msgspec.Struct | Mapping[str, object], prefix: str = "", *, skip: Sequence[str] = ()
) -> JsonObject:
    """Return a record as one row: an inner record's fields have its name before theirs; lists stay lists."""
    if isinstance(record, Estimate):
        name = prefix or "value"
        row = {name: record.value, f"{name}_low": record.low, f"{name}_high": record.high, f"{name}_n": record.n}
        fields = set(record.__struct_fields__) - set(Estimate.__struct_fields__)
        return row | {_joined(prefix, field): getattr(record, field) for field in sorted(fields)}
    values = msgspec.structs.asdict(record) if isinstance(record, msgspec.Struct) else record
    row: JsonObject = {}
    for key, value in values.items():
        name = _joined(prefix, str(key))
        if value is UNSET or key in skip:
            continue
        if isinstance(value, Record | Mapping):
            row |= flat_row(value, name)
        else:
            row[name] = msgspec.to_builtins(value)
    return row


def _joined(prefix: str, name: str) -> str:
    return f"{prefix}_{name}" if prefix else name


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
