"""Potato's rankings: an item, and an annotator's labels that rank its answers (``rank_order``: ``B,D=A,C``).

Written from the page on the ranking schema and the exporters in the repository davidjurgens/potato: an annotation is
``{instance_id, user_id, labels: {schema: {rank_order}}}``, best first, ``=`` between equals. The exports keep the items
in a file of their own, so a row is an annotation that has been joined with its item's data under ``item`` (a layout of
this project, for want of a published one): the prompt and the answers by their names, which are the ranked
identifiers, or a list of items with ``id`` and ``text``. Rows of one ``instance_id`` that follow each other are one
case with several annotators. Potato's own DPO export is ``{prompt, chosen, rejected}``: the format ``trl``.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby

from msgspec.structs import replace

from steelyard.core.errors import Place, RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.protocols import Row
from steelyard.core.types import Case, JsonObject, Judgment
from steelyard.curation.format_support import UNKNOWN, carrying, count_lost
from steelyard.plugins.formats._annotation_items import (
    RankedTiers,
    Voice,
    data_of,
    form_facts,
    judgments_of,
    named_item,
    rankings_of,
    without_people,
    without_tasks,
)
from steelyard.plugins.formats._fields import PromptIds, as_read, form_of, with_meta, with_prompt

KIND = "potato"
KEYS = ("instance_id", "user_id", "labels", "item")
_BETWEEN, _EQUAL = ",", "="
_SCHEMA = "ranking"


class Potato:
    """A row an annotator of an item."""

    keys = KEYS
    supports = carrying(
        "system turns", "earlier turns", "prompt meta", "prompt ids", "response ids", "response meta",
        "more than two responses", "judgments",
    )  # fmt: skip

    def matches(self, row: JsonObject) -> bool:
        """Return whether the row has an instance with its item and labels."""
        return "instance_id" in row and all(isinstance(row.get(key), dict) for key in ("item", "labels"))

    def read(self, rows: Iterable[Row], warnings: Counter[str]) -> Iterator[Case]:
        """Yield cases with judgments, one for each run of rows of an instance."""
        ids = PromptIds(warnings)
        for _, together in groupby(map(checked, rows), key=lambda row: str(row.value["instance_id"])):
            group = list(together)
            first, item = group[0], group[0].value["item"]
            answers = named_item(
                item, first.at("item"), warnings, ranked=ranked_names(group) & item.keys(), has_items=True
            )
            others = [row.others(KEYS) or {} for row in group]
            # What the rows of one instance say alike is of the prompt, all else of the single row.
            common = {
                key: value for key, value in others[0].items() if all(fields.get(key) == value for fields in others)
            }
            row_id = first.value["instance_id"]
            yield Case(
                prompt=with_prompt(answers.messages, id=ids.take(first, str(row_id)), meta=common),
                responses=answers.responses,
                judgments=tuple(ranking_judgments(group, [response.id for response in answers.responses], warnings)),
                meta=as_read(
                    KIND,
                    id=row_id,
                    **form_facts(answers, item),
                    rows=[
                        {key: row.value[key] for key in ("user_id", "labels") if key in row.value}
                        | {key: value for key, value in other.items() if key not in common}
                        for row, other in zip(group, others, strict=True)
                    ],
                ),
            )

    def write(self, cases: Iterable[Case], dropped: Counter[str]) -> Iterator[JsonObject]:
        """Yield a row a ranking; a row without an annotator where a case has no judgments."""
        for case in cases:
            yield from potato_rows(case, dropped, self.supports)


def checked(row: Row) -> Row:
    """Return the row itself. Raises RecordError where it has no instance, no item or no labels."""
    for key, form in (("instance_id", str | int), ("item", dict), ("labels", dict)):
        if not isinstance(row.value.get(key), form) or isinstance(row.value[key], bool):
            allowed = "instance_id: a text or number; item and labels: objects"
            raise RecordError(f"the row lacks {key!r}", where=row.place, allowed=allowed)
    return row


def ranked_names(rows: Iterable[Row]) -> set[str]:
    """Return the identifiers that the rows rank."""
    return {
        name
        for row in rows
        for _, order in _orders(row.value["labels"], Counter())
        for tier in _tiers(order)
        for name in tier
    }


def ranking_judgments(rows: Iterable[Row], names: Collection[str], warnings: Counter[str]) -> Iterator[Judgment]:
    """Yield the judgments of the rows. Raises RecordError for a ranking of other things than the answers."""
    for row in rows:
        user = row.value.get("user_id")
        for schema, order in _orders(row.value["labels"], warnings):
            tiers = _tiers(order)
            ranked = [name for tier in tiers for name in tier]
            if not set(ranked) <= set(names) or len(set(ranked)) < len(ranked):
                problem, where = (f"a ranking {order!r} that is not of the answers", row.at(f"labels.{schema}"))
                raise RecordError(problem, where=where, allowed=_listed(names))
            judge = UNKNOWN if user is None else str(user)
            yield from judgments_of(RankedTiers(Voice(judge, "human", schema), tiers))


def potato_rows(case: Case, dropped: Counter[str], supports: Collection[str]) -> Iterator[JsonObject]:
    """Yield the rows of a case: as they were read while they say the same, else one a ranking."""
    count_lost(without_people(without_tasks(case)), dropped, supports)
    form = form_of(case, KIND)
    case = case if form else _with_plain_ids(case, dropped)
    names = [response.id for response in case.responses]
    rows = form.get("rows", ())
    if not rows or tuple(ranking_judgments(_placed(rows), names, Counter())) != case.judgments:
        dropped["annotations written anew"] += bool(rows)
        rows = [_row(ranked) for ranked in rankings_of(case.judgments, dropped)] or [{"labels": {}}]
    row_id = form.get("id")
    instance = {"instance_id": row_id if str(row_id) == case.prompt.id else case.prompt.id}
    for row in rows:
        yield with_meta({**instance, **row, "item": data_of(case, form, dropped)}, case, KEYS, dropped)


def _orders(labels: JsonObject, warnings: Counter[str]) -> Iterator[tuple[str, str]]:
    for schema, value in labels.items():
        order = value.get("rank_order") if isinstance(value, dict) else None
        if isinstance(order, str):
            yield schema, order
        else:
            warnings["labels that are no ranking"] += 1


def _tiers(order: str) -> tuple[tuple[str, ...], ...]:
    tiers = (tuple(name.strip() for name in tier.split(_EQUAL)) for tier in order.split(_BETWEEN))
    return tuple(tiers) if order.strip() else ()


def _row(ranked: RankedTiers) -> JsonObject:
    order = _BETWEEN.join(_EQUAL.join(tier) for tier in ranked.tiers)
    return {"user_id": ranked.voice.judge, "labels": {ranked.voice.task or _SCHEMA: {"rank_order": order}}}


def _placed(rows: Sequence[JsonObject]) -> Iterator[Row]:
    return (Row(Place("the row to write"), row) for row in rows)


def _with_plain_ids(case: Case, dropped: Counter[str]) -> Case:
    """Return the case with other ids for the responses whose ids a rank order cannot hold."""
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
    dropped["response ids that cannot stand in a rank order"] += len(new)
    return replace(
        case,
        responses=tuple(replace(item, id=new.get(item.id, item.id)) for item in case.responses),
        judgments=tuple(
            replace(item, left=new.get(item.left, item.left), right=new.get(item.right, item.right), shown=None)
            for item in case.judgments
        ),
    )


def _listed(names: Collection[str]) -> str:
    return f"an order of {', '.join(names)}, such as B,D=A,C"


KINDS = {"potato": without_settings(Potato(), __doc__)}
