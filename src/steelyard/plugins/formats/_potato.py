"""Potato's rank orders as judgments, and judgments as rows with a rank order."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from steelyard.core.errors import Place, RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import Case, Judgment
from steelyard.plugins.formats._fields import form_of, with_meta
from steelyard.plugins.formats._named import data_of
from steelyard.plugins.formats._parts import UNKNOWN, count_lost
from steelyard.plugins.formats._rankings import (
    Ranked,
    Voice,
    judgments_of,
    rankings_of,
    without_people,
    without_tasks,
)

KIND = "potato"
KEYS = ("instance_id", "user_id", "labels", "item")
_BETWEEN, _EQUAL = ",", "="
_SCHEMA = "ranking"


def checked(row: Row) -> Row:
    """The row itself. Raises RecordError where it has no instance, no item or no labels."""
    for key, form in (("instance_id", str | int), ("item", dict), ("labels", dict)):
        if not isinstance(row.value.get(key), form) or isinstance(row.value[key], bool):
            allowed = "instance_id: a text or number; item and labels: objects"
            raise RecordError(f"the row lacks {key!r}", where=row.place, allowed=allowed)
    return row


def ranked_names(rows: Iterable[Row]) -> set[str]:
    """The identifiers that the rows rank."""
    return {
        name
        for row in rows
        for _, order in _orders(row.value["labels"], Counter())
        for tier in _tiers(order)
        for name in tier
    }


def said_of(rows: Iterable[Row], names: Collection[str], noted: Counter[str]) -> Iterator[Judgment]:
    """The judgments of the rows. Raises RecordError for a ranking of other things than the answers."""
    for row in rows:
        user = row.value.get("user_id")
        for schema, order in _orders(row.value["labels"], noted):
            tiers = _tiers(order)
            ranked = [name for tier in tiers for name in tier]
            if not set(ranked) <= set(names) or len(set(ranked)) < len(ranked):
                found, where = (
                    f"a ranking {order!r} that is not of the answers",
                    row.place._replace(path=f"labels.{schema}"),
                )
                raise RecordError(found, where=where, allowed=_listed(names))
            judge = UNKNOWN if user is None else str(user)
            yield from judgments_of(Ranked(Voice(judge, "human", schema), tiers))


def potato_rows(case: Case, lost: Counter[str], carries: Collection[str]) -> Iterator[dict[str, Any]]:
    """The rows of a case: as they were read while they say the same, else one a ranking."""
    count_lost(without_people(without_tasks(case)), lost, carries)
    form = form_of(case, KIND)
    case = case if form else _with_plain_ids(case, lost)
    names = [response.id for response in case.responses]
    rows = form.get("rows", ())
    if not rows or tuple(said_of(_placed(rows), names, Counter())) != case.judgments:
        lost["annotations written anew"] += bool(rows)
        rows = [_row(ranked) for ranked in rankings_of(case.judgments, lost)] or [{"labels": {}}]
    given = form.get("id")
    instance = {"instance_id": given if str(given) == case.prompt.id else case.prompt.id}
    for row in rows:
        yield with_meta({**instance, **row, "item": data_of(case, form, lost)}, case, KEYS, lost)


def _orders(labels: Mapping[str, Any], noted: Counter[str]) -> Iterator[tuple[str, str]]:
    for schema, value in labels.items():
        order = value.get("rank_order") if isinstance(value, dict) else None
        if isinstance(order, str):
            yield schema, order
        else:
            noted["labels that are no ranking"] += 1


def _tiers(order: str) -> tuple[tuple[str, ...], ...]:
    tiers = (tuple(name.strip() for name in tier.split(_EQUAL)) for tier in order.split(_BETWEEN))
    return tuple(tiers) if order.strip() else ()


def _row(ranked: Ranked) -> dict[str, Any]:
    order = _BETWEEN.join(_EQUAL.join(tier) for tier in ranked.tiers)
    return {"user_id": ranked.voice.judge, "labels": {ranked.voice.task or _SCHEMA: {"rank_order": order}}}


def _placed(rows: Sequence[dict[str, Any]]) -> Iterator[Row]:
    return (Row(Place("the row to write"), row) for row in rows)


def _with_plain_ids(case: Case, lost: Counter[str]) -> Case:
    """The case with other ids for the responses whose own cannot stand in a rank order."""
    new = {
        response.id: f"response{number}"
        for number, response in enumerate(case.responses, 1)
        if _tiers(response.id) != ((response.id,),)
    }
    taken = {response.id for response in case.responses}
    while taken & set(new.values()):
        new = {old: f"{name}_" for old, name in new.items()}
    if not new:
        return case
    lost["response ids that cannot stand in a rank order"] += len(new)
    return replace(
        case,
        responses=tuple(replace(one, id=new.get(one.id, one.id)) for one in case.responses),
        judgments=tuple(
            replace(one, left=new.get(one.left, one.left), right=new.get(one.right, one.right), shown=None)
            for one in case.judgments
        ),
    )


def _listed(names: Collection[str]) -> str:
    return f"an order of {', '.join(names)}, such as B,D=A,C"
