"""Potato and Prodigy: a row per annotator of an item; rows of one item that follow each other are one case.

Potato is written from the page on the ranking schema and the exporters in the repository davidjurgens/potato: an
annotation is ``{instance_id, user_id, labels: {schema: {rank_order}}}``, best first, ``=`` between equals. The exports
keep the items in a separate file, so a row is an annotation that has been joined with its item's data under ``item`` (a
layout of this project: none is published): the prompt and the answers by their names, which are the ranked
identifiers, a list of items with ``id`` and ``text``, or a list of texts. The page on pairwise annotation has
``{selection: A, B or tie}`` and ``{scale_value}``, below 0 where the first answer is better. Older versions write
``id`` and ``label_annotations``, ``{schema: {label: value}}``: one label that names an answer (``Response A``) is a
selection. Potato's own DPO export is ``{prompt, chosen, rejected}``: the format ``trl``.

Prodigy is written from the public documentation of its choice interface and its support forum (the tool is not public):
``{text, options: [{id, text}], accept: [ids], answer}`` with ``_session_id``, ``_annotator_id``, ``_input_hash``,
``_task_hash`` and ``_timestamp``. With the answer ``accept``, every accepted option is better than every other one;
where all are accepted, they are ties. ``reject``, ``ignore`` and an empty choice give no verdict: for two options
that is a judgment without a verdict, for more it is counted. The judge is the session, or the annotator where there is
no session.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from msgspec.structs import replace

from steelyard.core.errors import Place, RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.protocols import Row, parse_number
from steelyard.core.types import UNKNOWN_JUDGE, Case, JsonObject, Judgment
from steelyard.curation.format_support import carrying, count_lost
from steelyard.plugins.formats._annotation_tools import (
    RankedTiers,
    RankingSource,
    data_of,
    form_facts,
    judgments_of,
    named_item,
    rankings_of,
    read_again,
    read_items,
    without_people,
    without_tasks,
)
from steelyard.plugins.formats._label_phrases import verdict_of_label
from steelyard.plugins.formats._row_format import (
    CaseReader,
    RowFormat,
    split_meta,
)

_BETWEEN, _EQUAL = ",", "="
_SIDES = {"left", "right"}
_JOIN = "add the item to each row, under 'item': the record of the data file that has the id of the row"
_OLD_KEYS = {"id": "instance_id", "label_annotations": "labels"}
"""The keys of older versions, by those of today."""
_PERSONAL = ("accept", "answer", "_session_id", "_annotator_id", "_timestamp")
"""The keys of Prodigy's rows that belong to one answer; all others belong to the task."""
_ANSWERS = ("accept", "reject", "ignore")


# Potato


def _renamed(row: Row) -> Row:
    """Return a row of an older version under the keys of today."""
    if "label_annotations" not in row.value:
        return row
    return Row(row.place, {_OLD_KEYS.get(key, key): value for key, value in row.value.items()})


def _potato_case(reader: CaseReader) -> Case:
    old = [key for key in _OLD_KEYS if key in reader.row.value and "label_annotations" in reader.row.value]
    reader = reader._replace(rows=[*map(_renamed, reader.rows)])
    group, first = reader.rows, reader.row
    item = first.value["item"]
    orders = (order for row in group for _, order in _orders(row.value["labels"], (), Counter()))
    ranked = {name for order in orders for tier in _tiers(order) for name in tier}
    ranked = (ranked | (_SIDES if item.keys() >= _SIDES else set())) & item.keys()
    answers = named_item(item, first.at("item"), reader.warnings, ranked=ranked, has_items=True)
    shared, others = split_meta(group, reader.keys)
    row_id = first.value["instance_id"]
    annotations = [
        {key: row.value[key] for key in ("user_id", "labels") if key in row.value} | (other or {})
        for row, other in zip(group, others, strict=True)
    ]
    names = [response.id for response in answers.responses]
    return Case(
        prompt=reader.prompt(answers.messages, name=str(row_id), meta=shared),
        responses=answers.responses,
        judgments=tuple(_ranking_judgments(group, names, reader.warnings)),
        meta=reader.meta(id=row_id, old=old, **form_facts(answers, item), rows=annotations),
    )


def _potato_rows(case: Case, form: JsonObject, dropped: Counter[str]) -> Iterator[JsonObject]:
    """Yield the rows of a case: as they were read while they mean the same, else one per ranking.

    A case without judgments is one row without an annotator.
    """
    count_lost(without_people(without_tasks(case)), dropped, _POTATO.supports)
    renamed = case if form else _with_plain_ids(case, dropped)
    rows = form.get("rows", ())
    if not rows or _ranked_again(rows, [response.id for response in renamed.responses]) != renamed.judgments:
        dropped["annotations written anew"] += bool(rows)
        rows = [_ranking_row(ranked) for ranked in rankings_of(renamed.judgments, dropped)] or [{"labels": {}}]
    row_id = form.get("id")
    instance = {"instance_id": row_id if str(row_id) == case.prompt.id else case.prompt.id}
    old = {_OLD_KEYS[key]: key for key in form.get("old", ())}
    for row in rows:
        fields = {**instance, **row, "item": data_of(renamed, form, dropped)}
        yield {old.get(key, key): value for key, value in fields.items()}


def _instance(row: Row) -> str:
    """Return the id of the row's item. Raises RecordError where it has no instance, no item or no labels."""
    row = _renamed(row)
    for key, form in (("instance_id", str | int), ("item", dict), ("labels", dict)):
        if not isinstance(row.value.get(key), form) or isinstance(row.value[key], bool):
            allowed = "instance_id: a text or number; item and labels: objects"
            do = _JOIN if key == "item" else None
            raise RecordError(f"the row lacks {key!r}", where=row.place, allowed=allowed, do=do)
    return str(row.value["instance_id"])


def _ranking_judgments(rows: Iterable[Row], names: Sequence[str], warnings: Counter[str]) -> Iterator[Judgment]:
    """Yield the judgments of the rows. Raises RecordError for a ranking of other things than the answers."""
    for row in rows:
        user = row.value.get("user_id")
        for schema, order in _orders(row.value["labels"], names, warnings):
            tiers = _tiers(order)
            ranked = [name for tier in tiers for name in tier]
            if not set(ranked) <= set(names) or len(set(ranked)) < len(ranked):
                problem, where = (f"a ranking {order!r} that is not of the answers", row.at(f"labels.{schema}"))
                allowed = f"an order of {', '.join(names)}, such as B,D=A,C"
                raise RecordError(problem, where=where, allowed=allowed)
            judge = UNKNOWN_JUDGE if user is None else str(user)
            yield from judgments_of(RankedTiers(RankingSource(judge, "human", schema), tiers))


def _ranked_again(rows: Sequence[JsonObject], names: Sequence[str]) -> tuple[Judgment, ...] | None:
    return read_again(
        lambda: tuple(_ranking_judgments([Row(Place("the row to write"), row) for row in rows], names, Counter()))
    )


def _orders(labels: JsonObject, names: Sequence[str], warnings: Counter[str]) -> Iterator[tuple[str, str]]:
    """Yield the schemas with their orders; a comparison of the first two answers becomes an order of two."""
    for schema, value in labels.items():
        fields = value if isinstance(value, dict) else {}
        order = fields.get("rank_order") or _order_of_two(fields, names)
        if isinstance(order, str):
            yield schema, order
        else:
            warnings["labels that are not rankings"] += 1


def _order_of_two(fields: JsonObject, names: Sequence[str]) -> str | None:
    """Return the order of a selection (A, B or tie), or of a scale whose negative values prefer the first answer."""
    chosen_labels = [label for label, value in fields.items() if value not in (None, "", "0", False, 0)]
    scale = fields.get("scale_value")
    number = parse_number(str(scale)) if isinstance(scale, str | int | float) else None
    # Older versions write one label of several as a key.
    selection = fields.get("selection", chosen_labels[0] if len(chosen_labels) == 1 else None)
    chosen = verdict_of_label(str(selection), tuple(names[: len(_SIDES)]))
    better = number if chosen is None else {"left": -1, "right": 1}.get(chosen, 0)
    if better is None or len(names) < len(_SIDES):
        return None
    first, second = names[:2]
    ends = (first, second) if better < 0 else (second, first)
    return (_BETWEEN if better else _EQUAL).join(ends if better else (first, second))


def _tiers(order: str) -> tuple[tuple[str, ...], ...]:
    tiers = (tuple(name.strip() for name in tier.split(_EQUAL)) for tier in order.split(_BETWEEN))
    return tuple(tiers) if order.strip() else ()


def _ranking_row(ranked: RankedTiers) -> JsonObject:
    order = _BETWEEN.join(_EQUAL.join(tier) for tier in ranked.tiers)
    return {"user_id": ranked.source.judge, "labels": {ranked.source.task or "ranking": {"rank_order": order}}}


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
    dropped["response ids that a rank order cannot hold"] += len(new)
    return replace(
        case,
        responses=tuple(replace(item, id=new.get(item.id, item.id)) for item in case.responses),
        judgments=tuple(
            replace(item, left=new.get(item.left, item.left), right=new.get(item.right, item.right), shown=None)
            for item in case.judgments
        ),
    )


_POTATO = RowFormat(
    kind="potato",
    keys=("instance_id", "user_id", "labels", "item"),
    supports=carrying(
        "system turns", "earlier turns", "prompt meta", "prompt ids", "response ids", "response meta",
        "more than two responses", "judgments",
    ),
    # An export without items is one too: its error says how to join them.
    matches=lambda row: (
        ("instance_id" in row and isinstance(row.get("labels"), dict) and not {"item", "user_id"}.isdisjoint(row))
        or (isinstance(row.get("label_annotations"), dict) and not {"id", "instance_id"}.isdisjoint(row))
    ),
    parse=_potato_case,
    rows_of=_potato_rows,
    group_key=_instance,
)  # fmt: skip
"""One row per annotator of an item."""


# Prodigy


def _prodigy_case(reader: CaseReader) -> Case:
    first = reader.row
    text, responses = first.text("text"), read_items(first.items("options"), "text", first.at("options"), noun="option")
    names = [response.id for response in responses]
    return Case(
        prompt=reader.prompt(text, id=reader.ids.take(Row(first.place, _task(first)))),
        responses=responses,
        judgments=tuple(judgment for row in reader.rows for judgment in _judgments(row, names, reader.warnings)),
    )


def _task(row: Row) -> JsonObject:
    return {key: value for key, value in row.value.items() if key not in _PERSONAL}


def _judgments(row: Row, names: Sequence[str], warnings: Counter[str]) -> Iterator[Judgment]:
    """Yield the judgments of an answer. Raises RecordError for an unknown answer or option."""
    answer = row.value.get("answer")
    accepted = [str(name) for name in row.items("accept", default=())]
    if answer is None:
        return
    if answer not in _ANSWERS or not set(accepted) <= set(names):
        problem = f"unknown answer {answer!r}" if answer not in _ANSWERS else "an accepted id that is not an option's"
        raise RecordError(problem, where=row.place, allowed=f"answer: {', '.join(_ANSWERS)}; accept: ids of options")
    judges = [str(row.value[key]) for key in ("_session_id", "_annotator_id") if row.value.get(key) is not None]
    judge: JsonObject = {"judge": (*judges, UNKNOWN_JUDGE)[0], "kind": "human"}
    others = [name for name in names if name not in accepted]
    if answer == "accept" and accepted and others:
        yield from (
            Judgment(left=better, right=other, verdict="left", **judge) for better in accepted for other in others
        )
    elif answer == "accept" and accepted:
        yield from (
            Judgment(left=first, right=second, verdict="tie", **judge) for first, second in combinations(accepted, 2)
        )
    elif len(names) == 2:
        reason = "nothing chosen" if answer == "accept" else answer
        yield Judgment(left=names[0], right=names[1], verdict="none", reason=reason, **judge)
    else:
        warnings["tasks without a choice"] += 1


_PRODIGY = RowFormat(
    kind="prodigy",
    keys=("text", "options", *_PERSONAL),
    supports=carrying("prompt meta", "response ids", "response meta", "more than two responses", "judgments"),
    matches=lambda row: (
        {"text", "options"} <= row.keys()
        and isinstance(row["options"], list)
        and ("answer" in row or "_task_hash" in row)
    ),
    parse=_prodigy_case,
    group_key=_task,
)
"""One row per annotator's answer to a task."""

KINDS = {
    "potato": without_settings(
        _POTATO,
        "Potato's rankings: an item, and an annotator's labels that rank its answers (``rank_order``: ``B,D=A,C``).",
    ),
    "prodigy": without_settings(_PRODIGY, "Prodigy's choice tasks: a text, options, and what an annotator accepted."),
}
