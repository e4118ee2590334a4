"""Formats of one answer a row: consecutive rows of one question make one case, and a case makes such rows again.

What a row says under keys of its own belongs to the prompt where all rows of the case say it, and else to the answer.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from typing import Any

from steelyard.core.protocols import Row
from steelyard.core.types import Case, Meta
from steelyard.plugins.formats._fields import PromptIds, rest


def gathered(rows: Iterable[Row], key: Callable[[Row], Hashable]) -> Iterator[list[Row]]:
    """The rows in runs of one key."""
    group: list[Row] = []
    current: Hashable = None
    for row in rows:
        found = key(row)
        if group and found != current:
            yield group
            group = []
        current = found
        group.append(row)
    if group:
        yield group


def group_id(group: Sequence[Row], ids: PromptIds) -> str:
    """An id for the case of some rows, which have none; equal rows get ``~2`` and are counted."""
    return ids.made(Row(group[0].place, {"rows": [row.value for row in group]}))


def split_meta(group: Sequence[Row], known: Collection[str]) -> tuple[Meta | None, list[Meta | None]]:
    """What all rows say beyond the known keys, and what each says besides."""
    said = [rest(row, known) or {} for row in group]
    shared = {
        key: value for key, value in said[0].items() if all(key in other and other[key] == value for other in said)
    }
    return shared or None, [{key: value for key, value in one.items() if key not in shared} or None for one in said]


def with_metas(
    row: dict[str, Any], case: Case, meta: Meta | None, known: Collection[str], lost: Counter[str]
) -> dict[str, Any]:
    """The row with the prompt's and the answer's ``meta``; what the format or the prompt names itself is counted."""
    for name, said in (("prompt", case.prompt.meta or {}), ("response", meta or {})):
        clashing = sum(key in row or key in known for key in said)
        if clashing:
            lost[f"{name} meta under the format's own names"] += clashing
        row = row | {key: value for key, value in said.items() if key not in row and key not in known}
    return row
