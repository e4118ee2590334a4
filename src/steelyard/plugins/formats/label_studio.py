"""Label Studio tasks: data, people's annotations (Pairwise, Ranker and Rating results) and models' predictions.

Written from the documentation of the tags Pairwise, Ranker and Rating and of the JSON export. A pairwise result has
``selected`` left or right, of the two answers that ``to_name`` names, or else of the task's first two. A ranker's
value is ``{name: [ids, best first]}``, or with buckets ``{bucket: [ids]}``, best bucket first and each a tie; the
bucket ``_`` holds what was not moved. Results become judgments with ``from_name`` as their task; a skipped task
(``was_cancelled``) of two answers is a judgment without a verdict. What config names the data is not in the export:
the prompt and the answers are found by their names, or the answers are a list of items with ``id`` and ``body``.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from steelyard.core.errors import Place, RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.protocols import Row, is_number
from steelyard.core.types import Case, JsonObject, Judgment, Kind, Rating, Response, Verdict
from steelyard.curation.format_support import UNKNOWN, carrying, count_lost
from steelyard.plugins.formats._annotation_items import (
    RankedTiers,
    ToolEvidence,
    ToolRecord,
    Voice,
    data_of,
    judgments_of,
    named_item,
    rankings_of,
    tool_case,
    tool_row,
    without_tasks,
)
from steelyard.plugins.formats._fields import PromptIds, form_of

KIND = "label_studio"
LISTS = ("annotations", "predictions")
KEYS = ("id", "data", *LISTS)
_UNSORTED = "_"
_VERDICTS: dict[str, Verdict] = {"left": "left", "right": "right"}


class ToolResult(NamedTuple):
    """One result: its author, the responses that it concerns, and its place."""

    voice: Voice
    type: Any
    value: JsonObject
    targets: tuple[str, ...]
    place: Place


class LabelStudio:
    """One task a prompt; annotations are human evidence, predictions are of the kind llm."""

    keys = KEYS
    supports = carrying(
        "system turns", "earlier turns", "prompt meta", "prompt ids", "response ids", "response meta",
        "more than two responses", "judgments", "judges", "ratings", "raters",
    )  # fmt: skip

    def matches(self, row: JsonObject) -> bool:
        """Return whether the row has data as an object, and a list of annotations or predictions."""
        return isinstance(row.get("data"), dict) and any(isinstance(row.get(key), list) for key in LISTS)

    def read(self, rows: Iterable[Row], warnings: Counter[str]) -> Iterator[Case]:
        """Yield cases with judgments and ratings."""
        ids = PromptIds(warnings)
        for row in rows:
            data = row.value.get("data")
            if not isinstance(data, dict):
                raise RecordError("the row lacks 'data'", where=row.place, allowed="data: an object")
            results = {key: row.items(key, default=()) for key in LISTS}
            item = named_item(data, row.at("data"), warnings, has_items=True)
            evidence = evidence_of(results, item.responses, row.place, warnings)
            yield tool_case(ToolRecord(row, item, data, results, evidence), KIND, KEYS, fresh_lists, ids)

    def write(self, cases: Iterable[Case], dropped: Counter[str]) -> Iterator[JsonObject]:
        """Yield a task a case, to be imported again."""
        for case in cases:
            count_lost(without_tasks(case), dropped, self.supports)
            form = form_of(case, KIND)
            content = {"data": data_of(case, form, dropped)} | _lists(case, form.get("said", {}), dropped)
            yield tool_row(case, KIND, KEYS, content, dropped)


def evidence_of(
    annotations_of: Mapping[str, Sequence[Any]], responses: Sequence[Response], place: Place, warnings: Counter[str]
) -> ToolEvidence:
    """Return judgments and ratings of all results. Raises RecordError for an annotation that is none."""
    names = [response.id for response in responses]
    judgments: list[Judgment] = []
    ratings: list[Rating] = []
    for key, annotations in annotations_of.items():
        for index, annotation in enumerate(annotations):
            where = place._replace(path=f"{key}[{index}]")
            voice = _voice(key, annotation, where)
            if annotation.get("was_cancelled"):
                warnings["cancelled annotations"] += 1
                if len(names) == 2:
                    said_of_both: JsonObject = voice._asdict() | {"reason": "cancelled"}
                    judgments.append(Judgment(left=names[0], right=names[1], verdict="none", **said_of_both))
                continue
            for result in _results(voice, annotation, names, where):
                if result.type == "rating" and is_number(result.value.get("rating")) and len(result.targets) == 1:
                    ratings.append(_rating(result))
                elif (comparisons := list(_judgments(result, names))) or result.type in ("pairwise", "ranker"):
                    judgments += comparisons
                else:
                    warnings["results that are no comparison and no rating of a response"] += 1
    return ToolEvidence(tuple(judgments), tuple(ratings))


def _voice(key: str, annotation: Any, where: Place) -> Voice:
    if not isinstance(annotation, dict) or not isinstance(annotation.get("result") or [], list):
        raise RecordError("an annotation without results", where=where, allowed='{"result": […], …}')
    kind: Kind = "human" if key == "annotations" else "llm"
    who = annotation.get("completed_by" if kind == "human" else "model_version")
    if isinstance(who, dict):
        who = who.get("email", who.get("id"))
    return Voice(UNKNOWN if who is None else str(who), kind)


def _results(voice: Voice, annotation: JsonObject, names: Sequence[str], where: Place) -> Iterator[ToolResult]:
    for number, result in enumerate(annotation.get("result") or ()):
        place = where._replace(path=f"{where.path}.result[{number}]")
        if not isinstance(result, dict) or not isinstance(result.get("value"), dict):
            raise RecordError("a result without a value", where=place, allowed='{"type": …, "value": {…}}')
        targets_named = tuple(str(result.get("to_name") or "").split(","))
        targets = targets_named if set(targets_named) <= set(names) else tuple(names) if len(names) == 1 else ()
        task = result.get("from_name")
        question = voice._replace(task=task if isinstance(task, str) else None)
        yield ToolResult(question, result.get("type"), result["value"], targets, place)


def _rating(result: ToolResult) -> Rating:
    voice = result.voice
    return Rating(
        response=result.targets[0],
        rater=voice.judge,
        kind=voice.kind,
        dimension=voice.task or "rating",
        value=result.value["rating"],
    )


def _judgments(result: ToolResult, names: Sequence[str]) -> Iterator[Judgment]:
    if result.type == "pairwise":
        selected = result.value.get("selected")
        targets = result.targets if len(result.targets) == 2 else tuple(names[:2])
        if selected is not None and (selected not in _VERDICTS or len(targets) < 2 or targets[0] == targets[1]):
            raise RecordError(f"unknown choice {selected!r} of two", where=result.place, allowed="left, right")
        if selected is not None:
            verdict = _VERDICTS[selected]
            yield Judgment(left=targets[0], right=targets[1], verdict=verdict, **result.voice._asdict())
    if result.type == "ranker":
        yield from judgments_of(RankedTiers(result.voice, _tiers(result, names)))


def _tiers(result: ToolResult, names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    value = result.value.get("ranker")
    lists = value if isinstance(value, dict) else {}
    ids = [str(name) for names_of_list in lists.values() if isinstance(names_of_list, list) for name in names_of_list]
    if not lists or not set(ids) <= set(names) or len(set(ids)) < len(ids):
        raise RecordError("a ranking that is not of the answers", where=result.place, allowed=", ".join(names))
    if len(lists) == 1:
        return tuple((str(name),) for names_of_list in lists.values() for name in names_of_list)
    return tuple(
        tuple(map(str, names_of_list))
        for bucket, names_of_list in lists.items()
        if bucket != _UNSORTED and names_of_list
    )


def _lists(case: Case, lists_read: JsonObject, dropped: Counter[str]) -> JsonObject:
    """Return the lists as they were read, while they mean what the case holds; else new ones, which are counted."""
    if not lists_read:
        return fresh_lists(case, dropped)
    lists = fresh_lists(case, Counter()) | lists_read
    if evidence_of(lists, case.responses, Place("the row"), Counter()) == (case.judgments, case.ratings):
        return lists
    dropped["annotations written anew"] += 1
    return fresh_lists(case, dropped)


def fresh_lists(case: Case, dropped: Counter[str]) -> JsonObject:
    """Return annotations of people and predictions of models, one for each ranking or rating."""
    written: JsonObject = {key: [] for key in LISTS}
    results = [(ranking.voice, _ranking_result(ranking)) for ranking in rankings_of(case.judgments, dropped)]
    for rating in case.ratings:
        value = {"from_name": rating.dimension, "to_name": rating.response, "type": "rating"}
        results.append((Voice(rating.rater, rating.kind), {**value, "value": {"rating": rating.value}}))
    for voice, result in results:
        if voice.kind == "human":
            written["annotations"].append({"completed_by": voice.judge, "was_cancelled": False, "result": [result]})
            continue
        if voice.kind == "model":
            dropped["kinds of judges and raters"] += 1
        written["predictions"].append({"model_version": voice.judge, "result": [result]})
    return written


def _ranking_result(ranked: RankedTiers) -> JsonObject:
    """Return two answers in order as a pairwise result, more as a ranking, ties as buckets."""
    names = [name for tier in ranked.tiers for name in tier]
    is_strict = len(names) == len(ranked.tiers)
    if is_strict and len(names) == 2 and not any("," in name for name in names):
        task, value = ranked.voice.task or "pairwise", {"selected": "left"}
        return {"from_name": task, "to_name": ",".join(names), "type": "pairwise", "value": value}
    lists = {"ranking": names} if is_strict else {str(place): list(tier) for place, tier in enumerate(ranked.tiers, 1)}
    # A single list is an order: the empty bucket says that these are buckets.
    value = {"ranker": lists if is_strict else lists | {_UNSORTED: []}}
    return {"from_name": ranked.voice.task or "ranker", "to_name": "items", "type": "ranker", "value": value}


KINDS = {"label_studio": without_settings(LabelStudio(), __doc__)}
