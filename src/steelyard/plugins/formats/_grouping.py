"""Formats of one answer a row: consecutive rows of one question are one case, and a case is such rows again.

A field under another key belongs to the prompt where all rows of the case agree on it, and else to the answer.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence

from steelyard.core.protocols import Row
from steelyard.core.types import Case, JsonObject, Meta
from steelyard.plugins.formats._fields import PromptIds, other_meta, with_meta


def groups_of(rows: Iterable[Row], key: Callable[[Row], Hashable]) -> Iterator[list[Row]]:
    """Yield the rows in runs of one key."""
    group: list[Row] = []
    current: Hashable = None
    for row in rows:
        row_key = key(row)
        if group and row_key != current:
            yield group
            group = []
        current = row_key
        group.append(row)
    if group:
        yield group


def group_id(group: Sequence[Row], ids: PromptIds) -> str:
    """Return an id for the case of rows without one; equal rows get ``~2`` and are counted."""
    return ids.take(Row(group[0].place, {"rows": [row.value for row in group]}))


def split_meta(group: Sequence[Row], known: Collection[str]) -> tuple[Meta | None, list[Meta | None]]:
    """Return the other fields that all rows share, and those of each row."""
    metas = [row.others(known) or {} for row in group]
    shared = {
        key: value for key, value in metas[0].items() if all(key in meta and meta[key] == value for meta in metas)
    }
    return shared or None, [{key: value for key, value in meta.items() if key not in shared} or None for meta in metas]


def with_metas(
    row: JsonObject, case: Case, meta: Meta | None, known: Collection[str], dropped: Counter[str]
) -> JsonObject:
    """Return the row with the prompt's and the answer's ``meta``; keys that are taken are left out and counted."""
    row = with_meta(row, case, known, dropped)
    return row | other_meta(meta, {*known, *row}, dropped)
