"""Plain parts of a result: rows of Python's tables and data frames, and the headline of ranked models.

An estimate takes four columns: ``accuracy``, ``accuracy_low``, ``accuracy_high``, ``accuracy_n``.
"""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import UNSET

from steelyard.core.types import JsonObject, Record
from steelyard.evaluation.tables import DASH, count, word
from steelyard.statistics.intervals import Estimate
from steelyard.views.view import RunHeadline


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
